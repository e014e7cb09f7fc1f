/* SPDX-License-Identifier: BSD-3-Clause */
#include "server/outmux.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "common/buf.h"
#include "common/io/stdfd.h"
#include "common/limits.h"

#define PARTIAL_MS 100
#define PIECE_MAX 65536

struct pane {        /* one stream of one task */
    struct buf part; /* the line so far */
    uint64_t since;  /* loop time at which it began to wait */
    size_t owed;     /* bytes before it that are not written yet */
    int fd;          /* its file, or -1 */
};

/* Bytes written to a descriptor up to `end` include `raw` of this stream's. */
struct owed {
    uint64_t end;
    uint32_t task, raw;
    bool is_err;
};

struct sink { /* standard output or error */
    struct outmux *mux;
    struct stdfd_out *out;
    int fd;
    uint64_t queued, written;
    struct owed *owed; /* ring [cap] */
    size_t head, count, cap;
    bool broken;
};

struct outmux {
    uv_loop_t *loop;
    const struct outmux_ops *ops; /* lent */
    void *arg;
    uint32_t size;
    struct outmux_conf conf;
    bool file_broken;
    struct pane *pane; /* [2 * size] */
    struct sink sink[2];
    uv_timer_t timer;
    bool timer_on;
};

/* --- what is written, and credit for it ------------------------------------------------------------------------- */

static int owe(struct sink *s, const struct owed *o)
{
    if (s->count == s->cap) {
        size_t cap = s->cap ? s->cap * 2 : 64;
        struct owed *p = calloc(cap, sizeof(*p));

        if (p == NULL)
            return -ENOMEM;
        for (size_t i = 0; i < s->count; i++)
            p[i] = s->owed[(s->head + i) % s->cap];
        free(s->owed);
        s->owed = p;
        s->head = 0;
        s->cap = cap;
    }
    s->owed[(s->head + s->count++) % s->cap] = *o;
    return 0;
}

static void on_timer(uv_timer_t *t);

/* For the rest of a line, from now on. */
static void begin_wait(struct outmux *m, struct pane *p)
{
    p->since = uv_now(m->loop);
    if (m->conf.label || m->timer_on)
        return;
    m->timer_on = true;
    uv_timer_start(&m->timer, on_timer, PARTIAL_MS, 0);
}

static void on_written(ssize_t n, void *arg)
{
    struct sink *s = arg;
    struct outmux *m = s->mux;

    if (n < 0 && !s->broken) {
        struct err err;

        s->broken = true;
        err_set(&err, (int)n, "cannot write standard %s: %s", s->fd == 1 ? "output" : "error", strerror((int)-n));
        m->ops->on_broken(s->fd, &err, m->arg);
        return;
    }
    if (n > 0)
        s->written += (uint64_t)n;
    while (s->count > 0 && s->owed[s->head].end <= s->written) {
        struct owed o = s->owed[s->head];
        struct pane *p = &m->pane[2 * o.task + o.is_err];

        p->owed -= o.raw;
        if (p->owed == 0 && p->part.len > 0)
            begin_wait(m, p);
        s->head = (s->head + 1) % s->cap;
        s->count--;
        m->ops->credit(o.task, o.is_err, o.raw, m->arg);
    }
}

static int sink_write(struct sink *s, struct span text)
{
    s->queued += text.n;
    return stdfd_out_write(s->out, text);
}

static int expand(const struct outmux *m, const char *pattern, uint32_t task, struct buf *out)
{
    struct outmux_task who;
    int rc = 0;

    m->conf.describe(task, &who, m->arg);
    for (const char *p = pattern; *p != '\0' && rc == 0; p++) {
        if (*p != '%')
            rc = buf_add(out, p, 1);
        else if (*++p == 'r')
            rc = buf_add_str(out, who.rank);
        else if (*p == 'n')
            rc = buf_printf(out, "%u", who.node);
        else if (*p == 'h')
            rc = buf_add_str(out, who.host);
        else
            rc = buf_add(out, "%", 1);
    }
    return rc;
}

/* Said once: of many files on one disk the first is enough. */
static void file_failed(struct outmux *m, uint32_t task, bool is_err, int why)
{
    struct buf name;
    struct err err;

    if (m->file_broken)
        return;
    m->file_broken = true;
    buf_init(&name, 0);
    if (expand(m, is_err ? m->conf.error : m->conf.output, task, &name) < 0 || buf_str(&name) == NULL)
        err_set(&err, why, "cannot write a task's output file: %s", strerror(-why));
    else
        err_set(&err, why, "cannot write %s: %s", name.p, strerror(-why));
    buf_done(&name);
    m->ops->on_broken(-1, &err, m->arg);
}

static void file_write(struct outmux *m, uint32_t task, bool is_err, struct span text)
{
    while (text.n > 0) {
        ssize_t put = write(m->pane[2 * task + is_err].fd, text.p, text.n);

        if (put < 0 && errno == EINTR)
            continue;
        if (put < 0) {
            file_failed(m, task, is_err, -errno);
            return;
        }
        text.p += put;
        text.n -= (size_t)put;
    }
}

/* `raw` bytes of the stream come out as `text`. */
static int emit(struct outmux *m, uint32_t task, bool is_err, struct span text, size_t raw)
{
    struct pane *p = &m->pane[2 * task + is_err];
    struct sink *s = &m->sink[is_err];
    struct owed o;
    int rc;

    if (p->fd >= 0) {
        file_write(m, task, is_err, text);
        m->ops->credit(task, is_err, raw, m->arg);
        return 0;
    }
    rc = sink_write(s, text);
    o = (struct owed){.end = s->queued, .task = task, .raw = (uint32_t)raw, .is_err = is_err};
    if (rc == 0)
        rc = owe(s, &o);
    if (rc == 0)
        p->owed += raw;
    return rc;
}

/* --- lines ------------------------------------------------------------------------------------------------------ */

/* Each line of `text` with `before` and `after` around it. What is left behind the last newline is a line too, ended
 * only where `ended`. */
static int add_lines(struct buf *b, struct span text, const char *before, const char *after, bool ended)
{
    int rc = 0;

    for (size_t at = 0; rc == 0 && at < text.n;) {
        const char *nl = memchr(text.p + at, '\n', text.n - at);
        size_t n = nl == NULL ? text.n - at : (size_t)(nl - text.p) - at;

        rc = buf_add_str(b, before);
        if (rc == 0)
            rc = buf_add(b, text.p + at, n);
        if (rc == 0 && (nl != NULL || ended))
            rc = buf_add_str(b, after);
        at += n + (nl != NULL);
    }
    return rc;
}

static int emit_labelled(struct outmux *m, uint32_t task, bool is_err, struct span text)
{
    struct outmux_task who;
    char label[sizeof(who.rank) + 2];
    struct buf b;
    int rc;

    m->conf.describe(task, &who, m->arg);
    (void)snprintf(label, sizeof(label), "%s: ", who.rank);
    buf_init(&b, 0);
    rc = add_lines(&b, text, label, "\n", true);
    if (rc == 0)
        rc = emit(m, task, is_err, buf_span(&b), text.n);
    buf_done(&b);
    return rc;
}

/* For a terminal that is raw. */
static int emit_crlf(struct outmux *m, uint32_t task, bool is_err, struct span text)
{
    struct buf b;
    int rc;

    buf_init(&b, 0);
    rc = add_lines(&b, text, "", "\r\n", false);
    if (rc == 0)
        rc = emit(m, task, is_err, buf_span(&b), text.n);
    buf_done(&b);
    return rc;
}

static int emit_text(struct outmux *m, uint32_t task, bool is_err, struct span text)
{
    if (text.n == 0)
        return 0;
    if (m->conf.label && m->pane[2 * task + is_err].fd < 0)
        return emit_labelled(m, task, is_err, text);
    if (m->conf.terminal >= 0 && task != (uint32_t)m->conf.terminal)
        return emit_crlf(m, task, is_err, text);
    return emit(m, task, is_err, text, text.n);
}

static int pane_flush(struct outmux *m, uint32_t task, bool is_err)
{
    struct pane *p = &m->pane[2 * task + is_err];
    int rc = emit_text(m, task, is_err, buf_span(&p->part));

    p->part.len = 0;
    return rc;
}

static void on_timer(uv_timer_t *t)
{
    struct outmux *m = t->data;
    bool left = false;

    m->timer_on = false;
    for (uint32_t i = 0; i < 2 * m->size; i++) {
        struct pane *p = &m->pane[i];

        /* One whose output is not read yet may be held up within a line, for want of credit: that is no rest of its
         * own. on_written() tells when it is over. */
        if (p->part.len == 0 || p->owed > 0)
            continue;
        if (uv_now(m->loop) - p->since >= PARTIAL_MS)
            (void)pane_flush(m, i / 2, i % 2);
        else
            left = true;
    }
    if (left) {
        m->timer_on = true;
        uv_timer_start(t, on_timer, PARTIAL_MS / 4, 0);
    }
}

/* Whole lines out, the rest of the last one waits. */
int outmux_data(struct outmux *m, uint32_t task, bool is_err, struct span data)
{
    struct pane *p = &m->pane[2 * task + is_err];
    const char *nl = data.n == 0 ? NULL : memrchr(data.p, '\n', data.n);
    size_t whole = nl == NULL ? 0 : (size_t)(nl - data.p) + 1;
    int rc = 0;

    if (m->conf.terminal == (int64_t)task)
        return emit_text(m, task, is_err, data);
    if (whole > 0 && p->part.len > 0) {
        if ((rc = buf_add(&p->part, data.p, whole)) < 0 || (rc = pane_flush(m, task, is_err)) < 0)
            return rc;
    } else if (whole > 0) {
        rc = emit_text(m, task, is_err, (struct span){data.p, whole});
    }
    if (rc < 0 || whole == data.n)
        return rc;
    if (p->part.len == 0)
        begin_wait(m, p);
    rc = buf_add(&p->part, data.p + whole, data.n - whole);
    return rc == 0 && p->part.len >= PIECE_MAX ? pane_flush(m, task, is_err) : rc;
}

void outmux_eof(struct outmux *m, uint32_t task, bool is_err)
{
    (void)pane_flush(m, task, is_err);
}

void outmux_flush(struct outmux *m)
{
    for (uint32_t i = 0; i < 2 * m->size; i++)
        (void)pane_flush(m, i / 2, i % 2);
}

size_t outmux_queued(const struct outmux *m)
{
    size_t n = 0;

    for (int i = 0; i < 2; i++)
        if (!m->sink[i].broken)
            n += stdfd_out_queued(m->sink[i].out);
    return n;
}

bool outmux_is_written(const struct outmux *m, uint32_t task)
{
    return m->pane[2 * task].owed == 0 && m->pane[2 * task].part.len == 0;
}

bool outmux_is_idle(const struct outmux *m)
{
    return outmux_queued(m) == 0;
}

/* --- files ------------------------------------------------------------------------------------------------------ */

/* A named pipe may have no reader, and to open it would hold up the whole launcher. */
static int open_plain(const char *path, int *fd)
{
    struct stat st;
    int f = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC | O_NONBLOCK, 0666);

    if (f < 0)
        return -errno;
    if (fstat(f, &st) < 0 || S_ISFIFO(st.st_mode)) {
        close(f);
        return -ENXIO;
    }
    *fd = f;
    return 0;
}

static int open_file(struct outmux *m, uint32_t task, bool is_err, struct err *err)
{
    struct pane *p = &m->pane[2 * task + is_err];
    const struct outmux_conf *conf = &m->conf;
    const char *pattern = is_err ? conf->error : conf->output;
    struct buf name;
    int rc;

    if (pattern == NULL)
        return 0;
    if (is_err && conf->output != NULL && strcmp(conf->output, conf->error) == 0) {
        p->fd = fcntl(m->pane[2 * task].fd, F_DUPFD_CLOEXEC, 3); /* one file for both: one offset */
        return p->fd < 0 ? err_set(err, -errno, "cannot open output files: %s", strerror(errno)) : 0;
    }
    buf_init(&name, 0);
    rc = expand(m, pattern, task, &name);
    if (rc < 0 || buf_str(&name) == NULL)
        rc = err_set(err, -ENOMEM, "out of memory");
    else if ((rc = open_plain(buf_str(&name), &p->fd)) < 0)
        err_set(err, rc, "cannot open %s: %s", buf_str(&name), rc == -ENXIO ? "it is a pipe" : strerror(-rc));
    buf_done(&name);
    return rc;
}

static void outmux_free(struct outmux *m)
{
    for (uint32_t i = 0; m->pane != NULL && i < 2 * m->size; i++) {
        buf_done(&m->pane[i].part);
        if (m->pane[i].fd >= 0)
            close(m->pane[i].fd);
    }
    free(m->pane);
    free(m->sink[0].owed);
    free(m->sink[1].owed);
    free(m);
}

static void on_timer_closed(uv_handle_t *h)
{
    outmux_free(h->data);
}

void outmux_close(struct outmux *m)
{
    if (m == NULL)
        return;
    for (int i = 0; i < 2; i++)
        if (m->sink[i].out != NULL)
            stdfd_out_close(m->sink[i].out);
    uv_close((uv_handle_t *)&m->timer, on_timer_closed);
}

int outmux_grow(struct outmux *m, uint32_t more, struct err *err)
{
    uint32_t first = m->size;
    struct pane *p = realloc(m->pane, 2 * ((size_t)first + more) * sizeof(*p));
    int rc = 0;

    if (p == NULL)
        return err_set(err, -ENOMEM, "out of memory");
    m->pane = p;
    for (size_t i = 2 * (size_t)first; i < 2 * ((size_t)first + more); i++)
        p[i] = (struct pane){.fd = -1};
    m->size = first + more;
    for (uint32_t t = first; rc == 0 && t < m->size; t++) {
        rc = open_file(m, t, false, err);
        if (rc == 0)
            rc = open_file(m, t, true, err);
    }
    return rc;
}

int outmux_open(uv_loop_t *loop, const struct outmux_conf *conf, const struct outmux_ops *ops, void *arg,
                struct outmux **out, struct err *err)
{
    struct outmux *m = calloc(1, sizeof(*m));
    int rc = 0;

    if (m == NULL)
        return err_set(err, -ENOMEM, "out of memory");
    *m = (struct outmux){.loop = loop, .ops = ops, .arg = arg, .conf = *conf};
    uv_timer_init(loop, &m->timer);
    m->timer.data = m;
    for (int i = 0; rc == 0 && i < 2; i++) {
        m->sink[i].mux = m;
        m->sink[i].fd = i + 1;
        rc = stdfd_out_open(loop, i + 1, on_written, &m->sink[i], &m->sink[i].out, err);
    }
    if (rc == 0)
        rc = outmux_grow(m, conf->size, err);
    if (rc < 0) {
        outmux_close(m);
        return rc;
    }
    *out = m;
    return 0;
}
