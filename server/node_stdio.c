/* SPDX-License-Identifier: BSD-3-Clause */
/* node_stdio.c - the tasks' standard streams between their pipes and the tree, within end-to-end credit */
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>
#include "common/io/log.h"
#include "common/util.h"
#include "server/node_pmix.h"

#define READ_MAX 32768
#define SILENCE_MS 500 /* how long a stray process may keep a pipe quiet before it is closed on it */

static void on_stream_ready(uv_poll_t *h, int status, int events);
static void on_silence(uv_timer_t *h);
static void say_words(struct stream *s);

/* Read it, or not for now. */
static void stream_watch(struct stream *s)
{
    const struct node *n = s->task->job->node;
    bool may;

    say_words(s);
    may = s->words == NULL && s->credit > 0 && !n->ops->up_full(n->arg);
    if (s->h.open)
        node_fd_watch(&s->h, may ? UV_READABLE : 0, on_stream_ready);
}

static void send_output(struct stream *s, struct span data, bool eof)
{
    struct task *t = s->task;
    struct msg_out *m = node_job_map(t->job);

    if (m != NULL) {
        msg_put_u64(m, "place", t->job->node->conf.place);
        msg_put_u64(m, "rank", t->rank);
        msg_put_bool(m, "err", s->is_err);
        if (eof)
            msg_put_bool(m, "eof", true);
        else
            msg_put_bin(m, "data", data);
    }
    node_send_map(t->job->node, MSG_OUTPUT, m, true);
}

/* What others say of the task comes among what it writes itself: in order, whole, and only as fast as it can go on. Who
 * has said it waits as long. */
static void word_answer(const struct node *n, struct pmix_up *u, int rc)
{
    const struct node_pmix *p = n->pmix;

    if (u->answer != NULL && p != NULL && !(p->ending && p->unclean)) /* else the library is left, or gone */
        u->answer(u, rc, SPAN_NONE);
    u->answer = NULL;
}

static void word_done(struct stream *s, int rc)
{
    const struct node *n = s->task->job->node;
    struct pmix_up *u = s->words;

    s->words = u->next;
    if (n->pmix != NULL)
        n->pmix->words -= pmix_up_size(u);
    word_answer(n, u, rc);
    pmix_up_done(u, rc, SPAN_NONE);
}

static void words_drop(struct stream *s)
{
    while (s->words != NULL)
        word_done(s, -ECANCELED);
}

static void say_words(struct stream *s)
{
    const struct node *n = s->task->job->node;
    struct pmix_up *u;

    if (s->saying) /* credit that comes meanwhile is used as well */
        return;
    s->saying = true;
    while ((u = s->words) != NULL) {
        struct span text = {u->data.p + u->said, MIN(u->data.len - u->said, s->credit)};

        if (u->said == u->data.len) {
            word_done(s, 0);
            continue;
        }
        if (text.n == 0 || n->ops->up_full(n->arg))
            break;
        s->credit -= text.n;
        u->said += text.n;
        s->midline = text.p[text.n - 1] != '\n';
        send_output(s, text, false);
    }
    s->saying = false;
}

int task_stdio_say(struct task *t, struct pmix_up *u)
{
    struct stream *s = t->err.h.open ? &t->err : &t->out; /* a terminal has both in one */
    struct node_pmix *p = t->job->node->pmix;

    if (pmix_up_size(u) > PMIX_WORDS_MAX - p->words)
        return -ENOSPC;
    if (!s->h.open) {
        if (u->data.len > 0)
            log_warn("rank %u: %s", t->rank, log_escape(buf_span(&u->data)));
        node_pmix_done(p, u, 0, SPAN_NONE);
        return 0;
    }
    p->words += pmix_up_size(u);
    u->next = NULL;
    if (s->words == NULL)
        s->words = u;
    else
        s->last_word->next = u;
    s->last_word = u;
    stream_watch(s);
    return 0;
}

static void words_answer(const struct stream *s)
{
    for (struct pmix_up *u = s->words; u != NULL; u = u->next)
        word_answer(s->task->job->node, u, 0);
}

void node_words_answer(const struct node *n)
{
    for (const struct node_job *j = n->jobs; j != NULL; j = j->next)
        for (uint32_t i = 0; i < j->task_count; i++) {
            words_answer(&j->task[i].out);
            words_answer(&j->task[i].err);
        }
}

static void stream_end(struct stream *s)
{
    words_drop(s);
    if (!s->h.open)
        return;
    if (s->midline) /* else the launcher holds nothing back */
        send_output(s, SPAN_NONE, true);
    node_fd_close(&s->h);
    node_job_check_over(s->task->job);
    node_check_finished(s->task->job->node);
}

static void on_stream_ready(uv_poll_t *h, int status, int events)
{
    struct node_fd *f = h->data;
    struct stream *s = f->owner;
    struct node_job *j = f->job;
    char data[READ_MAX];
    ssize_t got;

    (void)events;
    got = status < 0 ? 0 : read(f->fd, data, MIN(sizeof(data), s->credit));
    if (got < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (got <= 0) {
        stream_end(s);
        return;
    }
    s->credit -= (size_t)got;
    s->midline = data[got - 1] != '\n';
    send_output(s, (struct span){data, (size_t)got}, false);
    if (j->over)
        uv_timer_again(&j->node->silence);
    stream_watch(s);
}

static void on_in_ready(uv_poll_t *h, int status, int events);

static void in_close(struct task *t)
{
    node_fd_close(&t->in);
    t->in_buf.len = 0;
}

static void grant_input(struct task *t, size_t bytes)
{
    struct msg_out *m = node_job_map(t->job);

    if (m != NULL) {
        msg_put_u64(m, "rank", t->rank);
        msg_put_u64(m, "bytes", bytes);
    }
    node_send_map(t->job->node, MSG_INPUT_CREDIT, m, false);
}

static void in_flush(struct task *t)
{
    while (t->in.open && t->in_buf.len > 0) {
        ssize_t put = write(t->in.fd, t->in_buf.p, t->in_buf.len);

        if (put < 0 && errno == EINTR)
            continue;
        if (put < 0 && errno == EAGAIN)
            break;
        if (put < 0) { /* it reads no more: what comes is taken and dropped, so that the sender is not held up */
            size_t left = t->in_buf.len;

            in_close(t);
            grant_input(t, left);
            return;
        }
        buf_drop(&t->in_buf, (size_t)put);
        grant_input(t, (size_t)put);
    }
    if (t->in_eof && t->in_buf.len == 0)
        in_close(t);
    else
        node_fd_watch(&t->in, t->in_buf.len > 0 ? UV_WRITABLE : 0, on_in_ready);
}

static void on_in_ready(uv_poll_t *h, int status, int events)
{
    struct node_fd *f = h->data;

    (void)status;
    (void)events;
    in_flush(f->owner);
}

int task_stdio_open(struct task *t, int out_fd, int err_fd, int in_fd)
{
    struct node_job *j = t->job;
    int rc = node_fd_open(j, &t->out, &t->out.h, out_fd), rc2 = 0, rc3 = 0;

    if (err_fd >= 0) /* a terminal has both in one */
        rc2 = node_fd_open(j, &t->err, &t->err.h, err_fd);
    if (in_fd >= 0)
        rc3 = node_fd_open(j, t, &t->in, in_fd);
    buf_init(&t->in_buf, 4 * STDIO_CREDIT);
    stream_watch(&t->out);
    stream_watch(&t->err);
    return rc < 0 ? rc : rc2 < 0 ? rc2 : rc3;
}

void task_stdio_close(struct task *t)
{
    words_drop(&t->out);
    words_drop(&t->err);
    node_fd_close(&t->out.h);
    node_fd_close(&t->err.h);
    in_close(t);
}

static int find_rank(struct node_job *j, const struct msg_in *m, struct task **t, struct err *err)
{
    uint64_t rank;
    int rc = msg_get_u64(m, "rank", 0, TASKS_MAX, &rank, err);

    if (rc < 0)
        return rc;
    *t = node_task_of_rank(j, (uint32_t)rank);
    return *t == NULL ? err_set(err, -EPROTO, "rank %u is not on this node", (unsigned)rank) : 0;
}

int node_output_credit(struct node_job *j, const struct msg_in *m, struct err *err)
{
    struct task *t;
    uint64_t bytes;
    bool is_err;
    int rc = find_rank(j, m, &t, err);

    if (rc < 0 || (rc = msg_get_u64(m, "bytes", 1, STDIO_CREDIT, &bytes, err)) < 0 ||
        (rc = msg_get_bool(m, "err", &is_err, err)) < 0)
        return rc;
    struct stream *s = is_err ? &t->err : &t->out;
    s->credit = MIN(s->credit + (size_t)bytes, (size_t)STDIO_CREDIT);
    stream_watch(s);
    return 0;
}

int node_input(struct node_job *j, const struct msg_in *m, struct err *err)
{
    struct span data = SPAN_NONE;
    struct task *t;
    bool eof = false;
    int rc = find_rank(j, m, &t, err);

    if (rc < 0)
        return rc;
    (void)msg_get_bin(m, "data", &data, NULL);
    (void)msg_get_bool(m, "eof", &eof, NULL);
    t->in_eof = t->in_eof || eof;
    if (!t->in.open) {
        if (data.n > 0)
            grant_input(t, data.n);
        return 0;
    }
    rc = data.n > 0 ? buf_add(&t->in_buf, data.p, data.n) : 0;
    if (rc < 0) {
        in_close(t);
        return err_set(err, rc, rc == -ENOMEM ? "out of memory" : "more input than was granted");
    }
    in_flush(t);
    return 0;
}

void node_streams_resume(struct node *n)
{
    for (struct node_job *j = n->jobs; j != NULL; j = j->next)
        for (uint32_t i = 0; i < j->task_count; i++) {
            stream_watch(&j->task[i].out);
            stream_watch(&j->task[i].err);
        }
}

bool node_streams_open(const struct node_job *j)
{
    for (uint32_t i = 0; i < j->task_count; i++)
        if (j->task[i].out.h.open || j->task[i].err.h.open)
            return true;
    return false;
}

/* Is it not silent: not read because of the other side, or is there something that was not read yet? Where this process
 * was not let run for a while, the timer comes before what the tasks wrote meanwhile. */
static bool is_pending(const struct stream *s)
{
    struct pollfd p = {.fd = s->h.fd, .events = POLLIN};

    return s->h.open && (s->h.events == 0 || poll(&p, 1, 0) > 0);
}

static bool is_busy(const struct node_job *j)
{
    if (j->running > 0)
        return true;
    for (uint32_t i = 0; i < j->task_count; i++)
        if (is_pending(&j->task[i].out) || is_pending(&j->task[i].err))
            return true;
    return false;
}

static void on_silence(uv_timer_t *h)
{
    struct node *n = h->data;
    bool wait = false;

    for (struct node_job *j = n->jobs, *next; j != NULL; j = next) {
        next = j->next;
        if (!j->over || !node_streams_open(j))
            continue;
        if (is_busy(j)) {
            wait = true;
            continue;
        }
        for (uint32_t i = 0; i < j->task_count; i++) {
            stream_end(&j->task[i].out);
            stream_end(&j->task[i].err);
        }
    }
    if (!wait)
        uv_timer_stop(h);
}

void node_streams_drain(struct node *n)
{
    bool wait = false;

    for (struct node_job *j = n->jobs; j != NULL; j = j->next) {
        wait = wait || (j->over && node_streams_open(j));
        for (uint32_t i = 0; j->over && i < j->task_count; i++)
            in_close(&j->task[i]);
    }
    if (wait)
        uv_timer_start(&n->silence, on_silence, SILENCE_MS, SILENCE_MS);
}
