/* SPDX-License-Identifier: BSD-3-Clause */
/* pmix_host.c - the library's life in this process: a queue from its threads to the loop, and a thread of ours for the
 * calls that block
 */
#include "config.h"
#ifdef HAVE_PMIX
#include <assert.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include "common/io/log.h"
#include "common/limits.h"
#include "server/pmix_begin.h"
#include "server/pmix_lib.h"
#include "server/pmix_priv.h"
#include "server/pmix_value.h"

#define STORE "PMIX_MCA_gds" /* the setting that says where the library keeps data */
#define SETTINGS_MAX 400     /* bytes of what is said of settings */

/* A call that blocks: done by `caller`, one after the other, then `done` on the loop. */
struct call {
    struct call *next;
    void (*run)(struct pmix_host *h, struct call *c);
    void (*done)(struct pmix_host *h, struct call *c);
    struct pmix_space space;
    pmix_status_t status;
    const char *what; /* that failed */
};

struct pmix_host {
    const struct pmix_host_ops *ops; /* lent */
    void *arg;
    struct pmix_lib lib;
    uv_async_t async;
    uv_timer_t timer; /* from the close until the library must have ended */
    unsigned handles;
    void (*closed)(void *arg);
    bool closing;
    pthread_t caller;
    bool started;    /* the library; the caller's alone */
    char *overruled; /* a setting that it cannot have */
    /* Guarded by `lock`: */
    pthread_mutex_t lock;
    struct pmix_up *up, **up_tail; /* from the library */
    struct call *todo, **todo_tail, *over;
    bool running;   /* `caller` looks at todo again before it ends */
    bool to_join;   /* `caller` is there to be joined */
    bool abandoned; /* nothing is looked at any more, and nothing may be freed */
};

/* Upcalls have no argument of ours. Set ahead of the library's threads. */
static struct pmix_host *the_host;
static bool is_left;

bool pmix_host_is_built(void)
{
    return true;
}

bool pmix_host_is_left(void)
{
    return is_left;
}

/* --- from the library's threads to the loop --------------------------------------------------------------------- */

void pmix_host_post(struct pmix_up *u)
{
    struct pmix_host *h = the_host;
    bool drop;

    u->next = NULL;
    pthread_mutex_lock(&h->lock);
    drop = h->abandoned;
    if (!drop) {
        *h->up_tail = u;
        h->up_tail = &u->next;
        uv_async_send(&h->async); /* under the lock: the handle is closed under it */
    }
    pthread_mutex_unlock(&h->lock);
    if (drop) { /* an answer from here could hang the library, which hangs already */
        u->answer = NULL;
        pmix_up_done(u, -ECANCELED, SPAN_NONE);
    }
}

void pmix_host_drain(struct pmix_host *h)
{
    struct pmix_up *u, *next;

    pthread_mutex_lock(&h->lock);
    u = h->up;
    h->up = NULL;
    h->up_tail = &h->up;
    pthread_mutex_unlock(&h->lock);
    for (; u != NULL; u = next) {
        next = u->next;
        if (h->closing)
            pmix_up_done(u, -ECANCELED, SPAN_NONE);
        else
            h->ops->up(u, h->arg);
    }
}

static void finish_calls(struct pmix_host *h)
{
    struct call *c, *next;

    pthread_mutex_lock(&h->lock);
    c = h->over;
    h->over = NULL;
    pthread_mutex_unlock(&h->lock);
    for (; c != NULL; c = next) {
        next = c->next;
        c->done(h, c);
        pmix_space_done(&c->space);
        free(c);
    }
}

static void on_async(uv_async_t *a)
{
    struct pmix_host *h = a->data;

    pmix_host_drain(h);
    finish_calls(h);
}

/* --- calls that block ------------------------------------------------------------------------------------------- */

static void *caller(void *arg)
{
    struct pmix_host *h = arg;

    pthread_mutex_lock(&h->lock);
    while (h->todo != NULL) {
        struct call *c = h->todo, **last;

        h->todo = c->next;
        if (h->todo == NULL)
            h->todo_tail = &h->todo;
        pthread_mutex_unlock(&h->lock);
        c->run(h, c);
        pthread_mutex_lock(&h->lock);
        if (h->abandoned) /* its memory is the process's now */
            break;
        for (last = &h->over; *last != NULL; last = &(*last)->next) {
        }
        c->next = NULL;
        *last = c;
        uv_async_send(&h->async);
    }
    h->running = false;
    pthread_mutex_unlock(&h->lock);
    return NULL;
}

/* Signals are the loop's: neither our thread nor those of the library, which inherit its mask, take one. */
static int start_caller(struct pmix_host *h)
{
    sigset_t all, old;
    int rc;

    if (h->to_join)
        (void)pthread_join(h->caller, NULL);
    h->to_join = false;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    rc = -pthread_create(&h->caller, NULL, caller, h);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    h->to_join = rc == 0;
    return rc;
}

/* Takes `c` over. */
static int enqueue(struct pmix_host *h, struct call *c)
{
    bool start;
    int rc = 0;

    pthread_mutex_lock(&h->lock);
    c->next = NULL;
    *h->todo_tail = c;
    h->todo_tail = &c->next;
    start = !h->running;
    h->running = true;
    pthread_mutex_unlock(&h->lock);
    if (start && (rc = start_caller(h)) < 0) {
        h->running = false;
        h->todo = NULL;
        h->todo_tail = &h->todo;
        pmix_space_done(&c->space);
        free(c);
    }
    return rc;
}

/* --- namespaces ------------------------------------------------------------------------------------------------- */

static void run_add(struct pmix_host *h, struct call *c)
{
    c->status = pmix_begin(&h->lib, &c->space, &h->started, &c->what);
}

/* The library's own word for a wrong setting is SILENT_ERROR, so that the settings are named. */
static void say_failed(const struct pmix_host *h, const struct call *c, int rc, struct err *err)
{
    struct buf set = {0};

    buf_init(&set, SETTINGS_MAX);
    (void)pmix_begin_settings(h->lib.major < 5 ? STORE : NULL, &set); /* what there is room for */
    if (set.len > 0)
        err_set(err, rc, "PMIx: %s: %s, with %s in the environment there: unset what it cannot have", c->what,
                h->lib.error_string(c->status), log_escape(buf_span(&set)));
    else
        err_set(err, rc, "PMIx: %s: %s", c->what, h->lib.error_string(c->status));
    buf_done(&set);
}

static void added(struct pmix_host *h, struct call *c)
{
    struct err err = {0};
    int rc = pmix_lib_rc(c->status);

    if (h->closing)
        return;
    if (rc < 0)
        say_failed(h, c, rc, &err);
    h->ops->added(c->space.name, rc, err.text, h->arg);
}

int pmix_host_add(struct pmix_host *h, struct pmix_space *s)
{
    struct call *c = calloc(1, sizeof(*c));

    if (c == NULL) {
        pmix_space_done(s);
        return -ENOMEM;
    }
    *c = (struct call){.run = run_add, .done = added, .space = *s};
    *s = (struct pmix_space){0};
    return enqueue(h, c);
}

/* --- the end ---------------------------------------------------------------------------------------------------- */

static void run_remove(struct pmix_host *h, struct call *c)
{
    pmix_nspace_t name;

    pmix_begin_name(name, c->space.name);
    if (h->started)
        h->lib.deregister_nspace(name, NULL, NULL);
}

static void nothing(struct pmix_host *h, struct call *c)
{
    (void)h;
    (void)c;
}

void pmix_host_remove(struct pmix_host *h, const char *nspace)
{
    struct call *c = h->closing ? NULL : calloc(1, sizeof(*c));

    if (c == NULL)
        return;
    *c = (struct call){.run = run_remove, .done = nothing};
    c->space.name = strdup(nspace);
    if (c->space.name == NULL)
        free(c);
    else
        (void)enqueue(h, c);
}

static void run_end(struct pmix_host *h, struct call *c)
{
    (void)c;
    if (h->started)
        (void)h->lib.server_finalize();
    h->started = false;
}

static void on_handle_closed(uv_handle_t *handle)
{
    struct pmix_host *h = handle->data;
    void (*closed)(void *) = h->closed;
    void *arg = h->arg;

    if (--h->handles > 0)
        return;
    if (!h->abandoned) {
        pthread_mutex_destroy(&h->lock);
        the_host = NULL;
        free(h->overruled);
        free(h);
    }
    closed(arg);
}

static void close_handles(struct pmix_host *h)
{
    uv_close((uv_handle_t *)&h->async, on_handle_closed);
    uv_close((uv_handle_t *)&h->timer, on_handle_closed);
}

static void ended(struct pmix_host *h, struct call *c)
{
    (void)c;
    if (h->to_join) /* it is past its last call */
        (void)pthread_join(h->caller, NULL);
    h->to_join = false;
    pmix_host_drain(h);
    close_handles(h);
}

/* Its memory is its own from now on. */
static void leave(struct pmix_host *h)
{
    is_left = true;
    pthread_mutex_lock(&h->lock);
    h->abandoned = true;
    close_handles(h);
    pthread_mutex_unlock(&h->lock);
    if (h->to_join)
        (void)pthread_detach(h->caller);
}

static void on_end_late(uv_timer_t *t)
{
    leave(t->data);
}

void pmix_host_close(struct pmix_host *h, bool clean, void (*closed)(void *arg))
{
    struct call *c;

    if (h->closing)
        return;
    h->closing = true;
    h->closed = closed;
    c = clean ? calloc(1, sizeof(*c)) : NULL;
    if (c != NULL) {
        pmix_host_drain(h);
        *c = (struct call){.run = run_end, .done = ended};
    }
    if (c == NULL || enqueue(h, c) < 0)
        leave(h);
    else
        uv_timer_start(&h->timer, on_end_late, PMIX_END_MS, 0);
}

/* --- life and small calls --------------------------------------------------------------------------------------- */

/* The stores in shared memory of 3 and 4 can stop a server for good when a client dies, or as it begins (openpmix#1233,
 * #4269). */
static void set_store(struct pmix_host *h)
{
    const char *old = getenv(STORE);
    struct buf b = {0};

    if (old != NULL && strcmp(old, "hash") != 0 && buf_printf(&b, STORE "=%s", old) == 0 && buf_str(&b) != NULL)
        h->overruled = b.p;
    else
        buf_done(&b);
    (void)setenv(STORE, "hash", 1);
}

int pmix_host_open(uv_loop_t *loop, const struct pmix_host_ops *ops, void *arg, struct pmix_host **out, struct err *err)
{
    struct pmix_host *h;
    int rc;

    assert(the_host == NULL);
    h = calloc(1, sizeof(*h));
    if (h == NULL)
        return err_set(err, -ENOMEM, "out of memory");
    h->ops = ops;
    h->arg = arg;
    pmix_begin_clean();
    rc = pmix_lib_open(&h->lib, err);
    if (rc == 0 && (rc = uv_async_init(loop, &h->async, on_async)) < 0)
        err_set(err, rc, "PMIx: %s", uv_strerror(rc));
    if (rc < 0) {
        free(h);
        return rc;
    }
    if (h->lib.major < 5)
        set_store(h);
    uv_timer_init(loop, &h->timer);
    h->async.data = h->timer.data = h;
    h->handles = 2;
    pthread_mutex_init(&h->lock, NULL);
    h->up_tail = &h->up;
    h->todo_tail = &h->todo;
    the_host = h;
    *out = h;
    return 0;
}

const char *pmix_host_version(const struct pmix_host *h)
{
    return h->lib.version;
}

const char *pmix_host_overruled(const struct pmix_host *h)
{
    return h->overruled;
}

int pmix_host_env(struct pmix_host *h, const char *nspace, uint32_t rank, char ***env)
{
    pmix_proc_t p = {.rank = rank};

    pmix_begin_name(p.nspace, nspace);
    return pmix_lib_rc(h->lib.setup_fork(&p, env));
}

static void told(pmix_status_t status, void *arg)
{
    (void)status;
    (void)arg;
}

/* The library copies all that it is given. It is handed a function to call, as it would wait here without. */
int pmix_host_notify(struct pmix_host *h, const struct pmix_id *source, int status, unsigned range, struct span pairs)
{
    pmix_proc_t p = {.rank = source->rank};
    struct pmix_infos l = {0};
    int rc = pmix_infos_unpack(&l, pairs);

    pmix_begin_name(p.nspace, source->nspace);
    if (rc == 0)
        rc = pmix_lib_rc(h->lib.notify_event(status, &p, (pmix_data_range_t)range, l.v, l.count, told, NULL));
    for (size_t i = 0; i < l.count; i++)
        pmix_value_drop(&l.v[i].value);
    pmix_infos_done(&l);
    return rc;
}

void pmix_host_get(struct pmix_host *h, const char *nspace, uint32_t rank, uint64_t ticket)
{
    struct pmix_up *u = calloc(1, sizeof(*u));
    pmix_proc_t p = {.rank = rank};
    pmix_status_t rc;

    if (u == NULL)
        return;
    u->kind = PMIX_UP_GOT;
    u->ticket = ticket;
    buf_init(&u->data, PMIX_BLOB_MAX);
    pmix_begin_name(p.nspace, nspace);
    rc = h->lib.dmodex_request(&p, pmix_up_got, u);
    if (rc != PMIX_SUCCESS) {
        u->rc = pmix_lib_rc(rc);
        u->rc = u->rc == 0 ? -EIO : u->rc;
        pmix_host_post(u);
    }
}
#endif
