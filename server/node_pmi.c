/* SPDX-License-Identifier: BSD-3-Clause */
/* node_pmi.c - the PMI connections of one job's tasks on this node, and what their sessions ask of it */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include "common/io/log.h"
#include "common/util.h"
#include "conf/conf.h"
#include "server/blame.h"
#include "server/node_attrs.h"
#include "server/node_priv.h"

#define PMI_EOF_MS 200          /* after end of file the exit status tells more; wait for it this long */
#define REPLIES_HIGH (4u << 20) /* bytes of replies of one connection that may wait */
#define READ_MAX 65536

/* --- life of a connection --------------------------------------------------------------------------------------- */

/* From its task's sessions, or from the strangers. */
static void conn_unlink(struct pmi_conn *c)
{
    if (c->task != NULL) {
        HASH_DELETE(hh, c->task->conns, c);
    } else if (c->prev != NULL) {
        *c->prev = c->next;
        if (c->next != NULL)
            c->next->prev = c->prev;
        c->prev = NULL;
        c->job->stranger_count--;
    }
}

static void conn_unref(void *arg)
{
    struct pmi_conn *c = arg;

    if (--c->handles > 0)
        return;
    session_free(c->session);
    buf_done(&c->out);
    free(c);
}

static void on_conn_timer_closed(uv_handle_t *h)
{
    struct pmi_conn *c = h->data;
    struct node_job *j = c->job;

    conn_unref(c);
    node_job_unref(j);
}

void pmi_conn_timer(struct pmi_conn *c, uv_timer_cb cb, uint64_t ms)
{
    if (!c->timer_open) {
        uv_timer_init(c->job->node->loop, &c->timer);
        c->timer.data = c;
        c->timer_open = true;
        c->handles++;
        c->job->handles++;
    }
    uv_timer_start(&c->timer, cb, ms, 0);
}

/* It stays open until the connection closes: its memory could not be had again before the loop has come round, and the
 * end of a connection may follow its first words at once. */
static void timer_stop(struct pmi_conn *c)
{
    if (c->timer_open)
        uv_timer_stop(&c->timer);
}

static void timer_close(struct pmi_conn *c)
{
    if (!c->timer_open)
        return;
    c->timer_open = false;
    uv_close((uv_handle_t *)&c->timer, on_conn_timer_closed);
}

static bool timer_runs(const struct pmi_conn *c)
{
    return c->timer_open && uv_is_active((const uv_handle_t *)&c->timer);
}

void pmi_conn_close(struct pmi_conn *c)
{
    struct node_job *j = c->job;

    if (c->closing)
        return;
    c->closing = true;
    conn_unlink(c);
    node_fd_close(&c->h);
    timer_close(c);
    if (c->task != NULL && j->serve != NULL && !j->closing)
        node_serve_left(c);
    conn_unref(c); /* the one that it has as long as it is in use; memory goes with the last handle */
}

struct pmi_conn *node_pmi_find(const struct node_job *j, uint32_t slot, uint32_t set)
{
    struct pmi_conn *c;

    HASH_FIND(hh, j->task[slot].conns, &set, sizeof(set), c);
    return c;
}

/* --- what a session asks ---------------------------------------------------------------------------------------- */

static void on_pmi_ready(uv_poll_t *h, int status, int events);

void pmi_conn_flush(struct pmi_conn *c)
{
    while (c->out.len > 0) {
        ssize_t put = node_map_send(c);

        if (put < 0 && errno == EINTR)
            continue;
        if (put < 0 && errno != EAGAIN)
            c->out.len = 0; /* it is gone; its end of file or exit will tell */
        if (put <= 0)
            break;
        buf_drop(&c->out, (size_t)put);
    }
    /* Who does not read its replies is not read either. */
    node_fd_watch(&c->h, (c->out.len < REPLIES_HIGH ? UV_READABLE : 0) | (c->out.len > 0 ? UV_WRITABLE : 0),
                  on_pmi_ready);
}

static const struct fault no_reply = {.from = FAULT_OWN, .text = {"out of memory for a PMI reply", 29}};

static void on_reply(struct session *s, struct span bytes, void *arg)
{
    struct pmi_conn *c = arg;

    (void)s;
    if (!c->h.open)
        return;
    if (buf_add(&c->out, bytes.p, bytes.n) < 0)
        node_fault(c->job->node, &no_reply);
    else if (!c->is_fed) /* else several replies go out at once */
        pmi_conn_flush(c);
}

static int on_identify(struct session *s, uint32_t id, struct err *err, void *arg)
{
    (void)s;
    return node_port_identify(arg, id, err);
}

static int on_barrier_in(struct session *s, const struct barrier_id *id, void *arg)
{
    struct pmi_conn *c = arg;

    (void)s;
    return node_barrier_enter(c->task, id);
}

static int on_name(struct session *s, uint32_t req, enum session_name_op op, struct span service, struct span port,
                   void *arg)
{
    (void)s;
    return node_ask_name(arg, req, op, service, port);
}

static int on_spawn(struct session *s, uint32_t req, const struct spawn_want *want, void *arg)
{
    (void)s;
    return node_ask_spawn(arg, req, want);
}

static void on_abort(struct session *s, int code, struct span text, void *arg)
{
    struct pmi_conn *c = arg;

    (void)s;
    node_task_failure(c->task, BLAME_ABORT, code, log_escape(text));
}

static void on_warn(struct session *s, const char *text, void *arg)
{
    (void)s;
    (void)arg;
    log_warn("%s", text);
}

static void on_trace(struct session *s, bool request, struct span line, void *arg)
{
    struct pmi_conn *c = arg;
    struct msg_out *m;
    struct timespec now;

    if (!session_is_bound(s))
        return;
    clock_gettime(CLOCK_REALTIME, &now);
    m = node_job_map(c->job);
    if (m != NULL) {
        msg_put_u64(m, "rank", session_who(s)->rank);
        msg_put_bool(m, "request", request);
        msg_put_bin(m, "line", line);
        msg_put_u64(m, "us", (uint64_t)now.tv_sec * 1000000u + (uint64_t)now.tv_nsec / 1000u);
    }
    node_send_map(c->job->node, MSG_TRACE, m, true);
}

static int on_map(struct session *s, enum session_map what, void *arg)
{
    (void)s;
    return node_map_offer(arg, what);
}

static const struct session_ops session_ops = {
    .reply = on_reply,
    .identify = on_identify,
    .barrier_in = on_barrier_in,
    .name = on_name,
    .spawn = on_spawn,
    .abort = on_abort,
    .warn = on_warn,
    .map = on_map,
};
static const struct session_ops session_ops_traced = {
    .reply = on_reply,
    .identify = on_identify,
    .barrier_in = on_barrier_in,
    .name = on_name,
    .spawn = on_spawn,
    .abort = on_abort,
    .warn = on_warn,
    .trace = on_trace,
};

struct pmi_conn *pmi_conn_new(struct node_job *j, int fd)
{
    struct pmi_conn *c = calloc(1, sizeof(*c));

    if (c == NULL) {
        close(fd);
        return NULL;
    }
    c->job = j;
    c->handles = 1;
    c->session = session_new(j->job->trace ? &session_ops_traced : &session_ops, c);
    if (c->session == NULL) {
        close(fd);
        conn_unref(c);
        return NULL;
    }
    c->h.on_closed = conn_unref;
    if (node_fd_open(j, c, &c->h, fd) < 0) {
        conn_unref(c);
        return NULL;
    }
    c->handles++;
    return c;
}

int pmi_conn_bind(struct pmi_conn *c, struct task *t, uint32_t set)
{
    const struct session_who who = {
        .job = &c->job->sjob, .rank = t->rank, .slot = t->slot, .appnum = t->app, .set = set};

    c->set = set;
    c->hh.tbl = NULL;
    HASH_ADD(hh, t->conns, set, sizeof(c->set), c);
    if (c->hh.tbl == NULL)
        return -ENOMEM;
    conn_unlink(c);
    c->task = t;
    timer_stop(c);
    session_bind(c->session, &who);
    return 0;
}

int task_pmi_open(struct task *t, int fd)
{
    struct pmi_conn *c = pmi_conn_new(t->job, fd);

    if (c == NULL)
        return -ENOMEM;
    c->own = true;
    if (pmi_conn_bind(c, t, 0) == 0)
        return 0;
    pmi_conn_close(c);
    return -ENOMEM;
}

/* --- reading ---------------------------------------------------------------------------------------------------- */

static bool mid_session(const struct pmi_conn *c)
{
    return c->task != NULL && session_phase(c->session) == SESSION_READY;
}

/* The task can have no other connection. */
static bool is_last(const struct pmi_conn *c)
{
    return c->own && !(c->job->job->connect & CONNECT_PORT);
}

static void on_pmi_eof_late(uv_timer_t *h)
{
    struct pmi_conn *c = h->data;
    struct err text = {0};

    err_set(&text, -EPROTO, "closed PMI before finalize");
    if (c->lost != 0 && c->lost != ECONNRESET)
        err_set(&text, -c->lost, "was lost before PMI finalize: %s", strerror(c->lost));
    if (mid_session(c) && c->task->state != TASK_ENDED)
        node_task_failure(c->task, BLAME_UNFINALIZED, 1, text.text);
    if (is_last(c))
        node_task_left(c->task);
    pmi_conn_close(c);
}

static void pmi_eof(struct pmi_conn *c)
{
    node_fd_close(&c->h);
    if (!(mid_session(c) || is_last(c)) || c->task->state == TASK_ENDED)
        pmi_conn_close(c);
    else if (!timer_runs(c))
        pmi_conn_timer(c, on_pmi_eof_late, PMI_EOF_MS);
}

/* It broke the protocol: its job fails. A stranger fails alone. */
static void pmi_rubbish(struct pmi_conn *c, const struct err *why)
{
    struct err text = {0};
    struct task *t = c->task;

    if (t == NULL) {
        node_port_refused(c, why->text);
        pmi_conn_flush(c);
        pmi_conn_close(c);
        return;
    }
    err_set(&text, -EPROTO, "sent rubbish on its PMI connection: %s", why->text);
    pmi_conn_flush(c);
    pmi_conn_close(c);
    t->cut_off = true;
    node_task_failure(t, BLAME_STATUS, 1, text.text);
}

/* What the client sent. False when the connection is done with, or there is nothing for now. */
static bool pmi_read(struct pmi_conn *c)
{
    char data[READ_MAX];
    struct err err = {0};
    ssize_t got = recv(c->h.fd, data, sizeof(data), MSG_DONTWAIT);
    int rc;

    if (got < 0 && (errno == EAGAIN || errno == EINTR))
        return false;
    if (got <= 0) {
        c->lost = got < 0 ? errno : 0;
        pmi_eof(c);
        return false;
    }
    c->heard += (size_t)got;
    c->is_fed = true;
    rc = session_feed(c->session, (struct span){data, (size_t)got}, &err);
    c->is_fed = false;
    if (rc < 0 || (c->task == NULL && c->heard > PMI_STRANGER_BYTES &&
                   err_set(&err, -E2BIG, "%zu bytes and not a word of which rank it is", c->heard))) {
        pmi_rubbish(c, &err);
        return false;
    }
    pmi_conn_flush(c);
    node_attrs_arm(c->job);
    if (c->job->serve != NULL && session_phase(c->session) == SESSION_FINALIZED)
        node_serve_check(c->job->node);
    return c->h.open;
}

static void on_pmi_ready(uv_poll_t *h, int status, int events)
{
    struct node_fd *f = h->data;
    struct pmi_conn *c = f->owner;

    if (status < 0) { /* reset: but what came before it counts */
        while (f->open && pmi_read(c))
            ;
        if (f->open)
            pmi_eof(c);
        return;
    }
    if (events & UV_WRITABLE)
        pmi_conn_flush(c);
    if ((events & UV_READABLE) && f->open)
        (void)pmi_read(c);
}

/* --- of a task -------------------------------------------------------------------------------------------------- */

void task_pmi_start(struct task *t)
{
    struct pmi_conn *c, *next;

    HASH_ITER(hh, t->conns, c, next)
    {
        pmi_conn_flush(c);
    }
}

void task_pmi_close(struct task *t)
{
    struct pmi_conn *c, *next;

    HASH_ITER(hh, t->conns, c, next)
    {
        pmi_conn_close(c);
    }
}

/* All that its connections still hold; one that is done with leaves the list. */
static void drain(struct task *t)
{
    struct pmi_conn *c, *next;

    HASH_ITER(hh, t->conns, c, next)
    {
        bool more = true;

        while (more && c->h.open)
            more = pmi_read(c);
    }
}

void task_pmi_ended(struct task *t)
{
    struct pmi_conn *c, *next;
    bool unfinished = false;

    drain(t);
    HASH_ITER(hh, t->conns, c, next)
    {
        unfinished = unfinished || mid_session(c);
    }
    if (unfinished && WIFEXITED(t->wstatus) && WEXITSTATUS(t->wstatus) == 0)
        node_task_failure(t, BLAME_UNFINALIZED, 1, "exited before PMI finalize");
    task_pmi_close(t);
}

int node_pmi_setup(struct node_job *j)
{
    const struct job *job = j->job;
    int rc = 0;

    j->kvs = kvs_new(j->task_count, j->node->kid_count + 1, j->node->conf.place != 0);
    if (j->kvs == NULL)
        return -ENOMEM;
    j->attrs = attrs_new();
    if (j->attrs == NULL)
        return -ENOMEM;
    j->sjob = (struct session_job){
        .size = job->size,
        .universe = job->size,
        .kvsname = job->kvsname,
        .spawner = job->spawner,
        .kvs = j->kvs,
        .attrs = j->attrs,
        .subversion2 = job->subversion2,
    };
    if (job->mapping != NULL)
        rc = kvs_preput(j->kvs, span_of("PMI_process_mapping"), span_of(job->mapping));
    for (size_t i = 0; rc == 0 && job->preput != NULL && job->preput[i] != NULL; i += 2)
        rc = kvs_preput(j->kvs, span_of(job->preput[i]), span_of(job->preput[i + 1]));
    return rc;
}
