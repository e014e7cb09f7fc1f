/* SPDX-License-Identifier: BSD-3-Clause */
#include "client/lib.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static struct {
    pthread_mutex_t lock;
    _Atomic(pid_t) owner; /* the process that is connected; 0: none is */
    /* 1 in that process and 0 in what it forks, as the kernel clears the page; to ask it for our number would take
     * longer than a get. NULL: there is no such page. */
    _Atomic(_Atomic(int) *) mark;
    _Atomic(int) mark_users; /* threads that look at it now */
    bool debug;
    bool told_lost;
    struct pm pm;
} lib = {.lock = PTHREAD_MUTEX_INITIALIZER};

static void tell(const char *text)
{
    if (lib.owner != 0)
        fprintf(stderr, "%s: rank %d: %s\n", lib_name, lib.pm.rank, text);
    else
        fprintf(stderr, "%s: %s\n", lib_name, text);
}

/* Made once, as it may be read at any time. */
static void set_mark(void)
{
    _Atomic(int) *mark = lib.mark;

    if (mark == NULL) {
        void *page = mmap(NULL, sizeof(*mark), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

        if (page == MAP_FAILED)
            return;
        if (madvise(page, sizeof(*mark), MADV_WIPEONFORK) < 0) {
            munmap(page, sizeof(*mark));
            return;
        }
        mark = page;
    }
    *mark = 1;
    lib.mark = mark;
}

static bool is_owner(pid_t owner)
{
    const _Atomic(int) *mark;
    bool is;

    if (owner == 0)
        return false;
    lib.mark_users++;
    mark = lib.mark;
    is = mark != NULL ? *mark != 0 : owner == getpid();
    lib.mark_users--;
    return is;
}

/* At the end of the process other threads may still be at it, and then it stays. */
static void drop_mark(void)
{
    _Atomic(int) *mark = lib.mark;

    lib.mark = NULL;
    if (mark != NULL && lib.mark_users == 0)
        munmap(mark, sizeof(*mark));
}

/* A forked child has a copy of everything, which may have been locked when it was made: it must not even try the lock.
 */
static bool is_forked(void)
{
    pid_t owner = lib.owner;

    return owner != 0 && !is_owner(owner);
}

bool lib_is_initialized(void)
{
    return is_owner(lib.owner);
}

static void check_forked_child(struct err *err)
{
    err_set(
        err, -EPERM,
        "this process was forked by process %d, whose connection to the PMI server is not for two: it cannot have one",
        (int)lib.owner);
}

static bool wants_debug(void)
{
    const char *debug = getenv("PMI_DEBUG");

    return debug != NULL && *debug != '\0' && strcmp(debug, "0") != 0;
}

int lib_init(bool pmi2, struct pm **pm)
{
    struct err err = {0};
    int rc = PM_OK;

    if (is_forked()) {
        check_forked_child(&err);
        fprintf(stderr, "%s: %s\n", lib_name, err.text);
        return PM_FAIL;
    }
    pthread_mutex_lock(&lib.lock);
    if (lib.owner == 0) {
        lib.debug = wants_debug();
        lib.told_lost = false;
        rc = pm_open(&lib.pm, environ, pmi2, &err);
        if (rc != PM_OK) {
            tell(err.text);
            pm_close(&lib.pm);
            pthread_mutex_unlock(&lib.lock);
            return rc;
        }
        set_mark();
        lib.owner = getpid();
    }
    *pm = &lib.pm;
    return PM_OK;
}

int lib_enter(struct pm **pm)
{
    if (is_forked()) {
        struct err err;

        check_forked_child(&err);
        if (lib.debug)
            tell(err.text);
        return PM_FAIL;
    }
    pthread_mutex_lock(&lib.lock);
    if (lib.owner == 0) {
        pthread_mutex_unlock(&lib.lock);
        return PM_INIT;
    }
    *pm = &lib.pm;
    return PM_OK;
}

int lib_leave(int rc, const struct err *err)
{
    bool newly_lost = lib.pm.wire.is_broken && !lib.told_lost;

    if (rc != PM_OK && err != NULL && (newly_lost || lib.debug)) {
        lib.told_lost = lib.told_lost || newly_lost;
        tell(err->text);
    }
    pthread_mutex_unlock(&lib.lock);
    return rc;
}

int lib_finalize(void)
{
    struct err err = {0};
    struct pm *pm;
    int rc = lib_enter(&pm);

    if (rc != PM_OK)
        return rc;
    rc = pm->ops->finalize(pm, &err);
    if (rc != PM_OK)
        tell(err.text);
    pm_close(pm);
    lib.owner = 0;
    return lib_leave(rc, NULL);
}

void lib_abort(const char *call, int code, const char *text)
{
    bool locked;
    struct err err;

    if (text == NULL)
        text = "";
    err_set(&err, -ECANCELED, "%s(%d)%s%s", call, code, *text != '\0' ? ": " : "", text);
    tell(err.text);
    if (lib_is_initialized()) {
        /* Another thread may wait in a barrier that never comes. Then its lock is not waited for; the server takes an
         * abort at any time. */
        locked = pthread_mutex_trylock(&lib.lock) == 0;
        lib.pm.ops->abort(&lib.pm, code, text);
        if (locked)
            pthread_mutex_unlock(&lib.lock);
    }
    exit(code);
}

int lib_copy(struct span text, char *out, int room, struct err *err)
{
    if (room < 0 || text.n >= (size_t)room)
        return pm_fail(err, PM_INVALID_LENGTH, "%zu bytes do not fit into a buffer of %d", text.n + 1, room);
    if (text.n > 0)
        memcpy(out, text.p, text.n);
    out[text.n] = '\0';
    return PM_OK;
}

/* dlclose() without a finalize, or the end of the process. */
__attribute__((destructor)) static void unload(void)
{
    if (lib.owner != 0 && pthread_mutex_trylock(&lib.lock) == 0) {
        lib.owner = 0;
        pm_close(&lib.pm);
        pthread_mutex_unlock(&lib.lock);
    }
    drop_mark();
}
