/* SPDX-License-Identifier: BSD-3-Clause */
#include "server/program_find.h"

#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "common/buf.h"
#include "common/span.h"
#include "common/strv.h"

#define DEFAULT_PATH "/bin:/usr/bin"

static int check(const char *path)
{
    struct stat st;

    if (stat(path, &st) < 0)
        return -errno;
    if (S_ISDIR(st.st_mode))
        return -EISDIR;
    if (!S_ISREG(st.st_mode) || faccessat(AT_FDCWD, path, X_OK, AT_EACCESS) < 0)
        return -EACCES;
    return 0;
}

/* `element` of PATH (empty: `dir` itself) and `name` put together; NULL: out of memory. */
static char *join(const char *dir, struct span element, const char *name)
{
    struct buf b = {0};
    bool absolute = element.n > 0 && element.p[0] == '/';
    int rc = absolute ? 0 : buf_printf(&b, "%s/", strcmp(dir, "/") == 0 ? "" : dir);

    if (rc == 0 && element.n > 0)
        rc = buf_printf(&b, "%.*s/", SPAN_FMT(element));
    if (rc == 0)
        rc = buf_add(&b, name, strlen(name) + 1);
    if (rc < 0) {
        buf_done(&b);
        return NULL;
    }
    return b.p;
}

static int say(struct err *err, int rc, const char *path)
{
    if (rc == -EACCES)
        return err_set(err, rc, "%s: not executable", path);
    return err_set(err, rc, "%s: %s", path, strerror(-rc));
}

/* A name with a slash: no search. */
static int find_here(const char *name, const char *dir, char **path, struct err *err)
{
    char *p = name[0] == '/' ? strdup(name) : join(dir, SPAN_NONE, name);
    int rc = p == NULL ? -ENOMEM : check(p);

    if (rc < 0)
        say(err, rc, p == NULL ? name : p);
    else
        *path = p;
    if (rc < 0)
        free(p);
    return rc;
}

/* Remember the first that is there but cannot be executed: execvp() goes on behind it as well. */
static void note_denied(char **denied, int *why, char *p, int rc)
{
    if (*denied != NULL || (rc != -EACCES && rc != -EISDIR)) {
        free(p);
        return;
    }
    *denied = p;
    *why = rc;
}

static int search(const char *name, const char *dir, const char *list, char **path, struct err *err)
{
    char *denied = NULL;
    int why = -ENOENT;

    for (const char *at = list; at != NULL;) {
        const char *end = strchrnul(at, ':');
        char *p = join(dir, (struct span){at, (size_t)(end - at)}, name);
        int rc = p == NULL ? -ENOMEM : check(p);

        if (rc == 0 || rc == -ENOMEM) {
            free(denied);
            if (rc == 0)
                *path = p;
            return rc == 0 ? 0 : say(err, rc, name);
        }
        note_denied(&denied, &why, p, rc);
        at = *end == ':' ? end + 1 : NULL;
    }
    if (denied == NULL)
        return err_set(err, -ENOENT, "%s: not found in PATH", name);
    say(err, why, denied);
    free(denied);
    return why;
}

int program_find(const char *name, const char *dir, char *const *envp, char **path, struct err *err)
{
    const char *list = env_get(envp, "PATH");

    if (name[0] == '\0')
        return err_set(err, -ENOENT, "the program's name is empty");
    if (strchr(name, '/') != NULL)
        return find_here(name, dir, path, err);
    return search(name, dir, list == NULL ? DEFAULT_PATH : list, path, err);
}
