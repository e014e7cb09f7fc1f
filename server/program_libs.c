/* SPDX-License-Identifier: BSD-3-Clause */
#include "server/program_libs.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "common/buf.h"
#include "common/elf.h"
#include "common/span.h"
#include "common/strv.h"
#include "common/util.h"

#define FILES_MAX 512 /* that are looked into; the largest programs have some 300 */

struct walk {
    bool (*wanted)(const char *name, bool direct);
    const char *ld_path;
    char **files;   /* the program and the libraries that were found: those that are to be looked into, in turn */
    char **names;   /* that were looked for */
    char **own;     /* folders that the program names: for some loaders and files they hold for all libraries */
    char **folders; /* those that the file at hand names */
    char **here;    /* the libraries that it names */
    bool direct, found;
};

static long read_at(uint64_t off, void *buf, size_t n, void *arg)
{
    ssize_t got;

    do
        got = pread(*(int *)arg, buf, n, (off_t)off);
    while (got < 0 && errno == EINTR);
    return got < 0 ? -errno : got;
}

static int open_file(const char *path)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    struct stat st;

    if (fd >= 0 && (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))) {
        close(fd);
        fd = -1;
    }
    return fd;
}

/* What every program has, and what is of no other MPI; not to open a file for nothing. */
static bool is_known(const char *name)
{
    static const char *const known[] = {"libc.so.",     "libm.so.",      "libdl.so.", "librt.so.",   "libpthread.so.",
                                        "libgcc_s.so.", "libstdc++.so.", "ld-linux",  "libmpich.so", "libmpi.so.12"};
    struct span s = span_of(name);

    for (size_t i = 0; i < ARRAY_SIZE(known); i++)
        if (span_starts(s, known[i]))
            return true;
    return false;
}

static bool holds(char *const *v, const char *s)
{
    for (; v != NULL && *v != NULL; v++)
        if (strcmp(*v, s) == 0)
            return true;
    return false;
}

/* --- where they are ----------------------------------------------------------------------------------------------- */

/* Opens nothing that is not there: the file is looked into later. */
static bool try_one(struct walk *w, const char *folder, size_t n, const char *name)
{
    struct buf b = {0};
    bool there = false;

    if (buf_printf(&b, "%.*s/%s", (int)MIN(n, (size_t)PATH_MAX), folder, name) == 0)
        there = access(b.p, R_OK) == 0 && strv_add(&w->files, b.p) == 0;
    buf_done(&b);
    return there;
}

static bool try_list(struct walk *w, const char *list, const char *name)
{
    while (list != NULL && *list != '\0') {
        size_t n = strcspn(list, ":;");

        if (n > 0 && try_one(w, list, n, name))
            return true;
        list += n + (list[n] != '\0');
    }
    return false;
}

static bool try_all(struct walk *w, char *const *folders, const char *name)
{
    for (; folders != NULL && *folders != NULL; folders++)
        if (try_list(w, *folders, name))
            return true;
    return false;
}

/* Debian has its libraries in a folder of the machine's name: the one where our own C library is. */
static bool try_system(struct walk *w, const char *name)
{
    Dl_info info;
    void *libc = dlsym(RTLD_DEFAULT, "getpid");
    const char *slash = libc != NULL && dladdr(libc, &info) != 0 ? strrchr(info.dli_fname, '/') : NULL;

    return (slash != NULL && try_one(w, info.dli_fname, (size_t)(slash - info.dli_fname), name)) ||
           try_list(w, "/lib64:/usr/lib64:/lib:/usr/lib:/usr/local/lib", name);
}

static void look_for(struct walk *w, const char *name)
{
    if (is_known(name) || holds(w->names, name) || strv_add(&w->names, name) < 0)
        return;
    if (strchr(name, '/') != NULL)
        (void)strv_add(&w->files, name);
    else if (!try_all(w, w->folders, name) && !try_all(w, w->own, name) && !try_list(w, w->ld_path, name))
        (void)try_system(w, name);
}

/* --- one file ----------------------------------------------------------------------------------------------------- */

static int note_word(enum elf_word kind, const char *text, void *arg)
{
    struct walk *w = arg;

    if (kind == ELF_FOLDERS)
        return strv_add(&w->folders, text);
    w->found = w->wanted(text, w->direct);
    return w->found ? 1 : strv_add(&w->here, text);
}

/* $ORIGIN is the folder of the file itself. */
static char *put_origin(const char *text, const char *path)
{
    const char *slash = strrchr(path, '/'), *at;
    struct buf b = {0};
    int rc = 0;

    while (rc == 0 && (at = strchr(text, '$')) != NULL) {
        size_t n = strncmp(at, "$ORIGIN", 7) == 0 ? 7 : strncmp(at, "${ORIGIN}", 9) == 0 ? 9 : 0;

        rc = buf_printf(&b, "%.*s%.*s", (int)(at - text), text, n > 0 && slash != NULL ? (int)(slash - path) : 0, path);
        text = at + (n > 0 ? n : 1);
    }
    if (rc == 0)
        rc = buf_add(&b, text, strlen(text) + 1);
    if (rc < 0)
        buf_done(&b);
    return rc < 0 ? NULL : b.p;
}

static void clear(char ***v)
{
    strv_free(*v);
    *v = NULL;
}

static void look_into(struct walk *w, const char *path)
{
    int fd = open_file(path);

    if (fd < 0)
        return;
    (void)elf_words(read_at, &fd, note_word, w);
    close(fd);
    for (char **f = w->folders; !w->found && f != NULL && *f != NULL; f++) {
        char *whole = put_origin(*f, path);

        if (whole != NULL) {
            free(*f);
            *f = whole;
        }
    }
    if (w->direct)
        w->own = strv_dup(w->folders);
    for (char **n = w->here; !w->found && n != NULL && *n != NULL; n++)
        look_for(w, *n);
    clear(&w->here);
    clear(&w->folders);
}

bool program_needs(const char *path, char *const *env, bool (*wanted)(const char *name, bool direct))
{
    struct walk w = {.wanted = wanted, .ld_path = env_get(env, "LD_LIBRARY_PATH"), .direct = true};
    char *real = realpath(path, NULL);

    look_into(&w, real != NULL ? real : path);
    w.direct = false;
    for (size_t i = 0; !w.found && i < FILES_MAX && i < strv_count(w.files); i++) {
        char *file = strdup(w.files[i]); /* the array grows meanwhile */

        if (file != NULL)
            look_into(&w, file);
        free(file);
    }
    free(real);
    strv_free(w.files);
    strv_free(w.names);
    strv_free(w.own);
    return w.found;
}
