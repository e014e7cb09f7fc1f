/* SPDX-License-Identifier: BSD-3-Clause */
#include "server/session.h"

#include <stdlib.h>
#include "common/num.h"
#include "common/pmi2.h"
#include "common/util.h"
#include "server/session_priv.h"

#define QUOTE_MAX 80 /* bytes of a bad request that a message shows */

struct session *session_new(const struct session_ops *ops, void *arg)
{
    struct session *s = calloc(1, sizeof(*s));

    if (s == NULL)
        return NULL;
    s->ops = ops;
    s->arg = arg;
    s->wire = 1;
    s->waits_tail = &s->waits;
    return s;
}

void session_bind(struct session *s, const struct session_who *who)
{
    s->who = *who;
    s->is_bound = true;
}

bool session_is_bound(const struct session *s)
{
    return s->is_bound;
}

void session_free(struct session *s)
{
    if (s == NULL)
        return;
    session_waits_free(s);
    spawn_parse_done(&s->spawn);
    buf_done(&s->in);
    buf_done(&s->out);
    buf_done(&s->plain);
    free(s);
}

/* --- what both wires use ---------------------------------------------------------------------------------------- */

int session_quote(struct span line, const char *what, struct err *err)
{
    struct buf b = {0};
    int rc;

    buf_add_escaped(&b, (struct span){line.p, MIN(line.n, (size_t)QUOTE_MAX)});
    rc = err_set(err, -EPROTO, "%s: '%s%s'", what, buf_str(&b) ? b.p : "", line.n > QUOTE_MAX ? "..." : "");
    buf_done(&b);
    return rc;
}

int session_check_key(struct span key, const char **msg)
{
    if (key.n == 0) {
        *msg = "no_key";
        return RC_FAIL;
    }
    *msg = "too_long";
    return key.n >= PMI_KEY_MAX ? RC_KEY_LENGTH : 0;
}

int session_check_value(struct span value, const char **msg)
{
    if (value.p == NULL) {
        *msg = "no_value";
        return RC_FAIL;
    }
    *msg = "too_long";
    return value.n >= PMI_VALUE_MAX ? RC_VALUE_LENGTH : 0;
}

int session_put(struct session *s, struct span key, struct span value, const char **msg)
{
    int rc = session_check_key(key, msg);

    if (rc == 0)
        rc = session_check_value(value, msg);
    if (rc == 0 && kvs_put(s->who.job->kvs, s->who.slot, key, value) < 0) {
        *msg = "no_memory";
        rc = RC_NOMEM;
    }
    return rc;
}

int session_map(struct session *s, struct span text)
{
    enum session_map what = span_is(text, "bell") ? SESSION_MAP_BELL : SESSION_MAP_KVS;
    int rc = s->ops->map == NULL ? -ENOSYS : s->ops->map(s, what, s->arg);

    if (rc == 0 && what == SESSION_MAP_BELL)
        s->has_bell = true;
    return rc;
}

/* No reply: MPICH 4.0.2 waits for one in MPI_Abort, and would go on with the program if it got one. */
void session_abort(struct session *s, struct span code, struct span text)
{
    int64_t v = 1;

    (void)num_i64(code, INT64_MIN, INT64_MAX, &v); /* 1 stays where there is no number */
    v &= 255;
    if (text.p == NULL)
        text = (struct span){"", 0};
    s->ops->abort(s, v == 0 ? 1 : (int)v, text, s->arg);
}

const char *session_why(int rc)
{
    switch (rc) {
    case -ENOSYS:
        return "not_served";
    case -ENOSPC:
        return "too_many";
    case -ENOMEM:
        return "no_memory";
    case -EINVAL:
        return "malformed";
    case -E2BIG:
        return "too_long";
    default:
        return "refused";
    }
}

/* --- bytes to requests ------------------------------------------------------------------------------------------ */

/* Move bytes from the front of `*bytes` to s->in until that holds `want`. */
static int collect(struct session *s, struct span *bytes, size_t want)
{
    size_t n = MIN(want - s->in.len, bytes->n);
    int rc = buf_add(&s->in, bytes->p, n);

    *bytes = (struct span){bytes->p + n, bytes->n - n};
    return rc;
}

/* 1: `*line` is the next line, without its newline. The usual case, a whole line, is used where it lies. */
static int next_line(struct session *s, struct span *bytes, struct span *line, struct err *err)
{
    const char *nl = memchr(bytes->p, '\n', bytes->n);
    size_t len = nl == NULL ? bytes->n : (size_t)(nl - bytes->p), max = s->is_bound ? PMI_LINE_MAX : PMI_UNBOUND_MAX;

    if (s->in.len + len > max)
        return err_set(err, -E2BIG, "a PMI request of more than %zu bytes without a newline", max);
    *line = (struct span){bytes->p, len};
    if (nl == NULL || s->in.len > 0) {
        if (collect(s, bytes, s->in.len + len) < 0)
            return err_set(err, -ENOMEM, "no memory for a PMI request");
        *line = buf_span(&s->in);
        len = 0;
    }
    len += nl != NULL;
    *bytes = (struct span){bytes->p + len, bytes->n - len};
    return nl != NULL;
}

static int frame_len(const struct session *s, const char *header, size_t *len, struct err *err)
{
    if (pmi2_header(header, len) < 0)
        return session_quote((struct span){header, PMI2_HEADER}, "not the length of a PMI-2 request", err);
    if (!s->is_bound && *len > PMI_UNBOUND_MAX)
        return err_set(err, -E2BIG, "a PMI-2 request of %zu bytes ahead of fullinit", *len);
    return 0;
}

/* 1: `*payload` is that of the next frame. */
static int next_frame(struct session *s, struct span *bytes, struct span *payload, struct err *err)
{
    size_t len;
    int rc;

    if (s->in.len == 0 && bytes->n >= PMI2_HEADER) {
        rc = frame_len(s, bytes->p, &len, err);
        if (rc < 0)
            return rc;
        if (len <= bytes->n - PMI2_HEADER) {
            *payload = (struct span){bytes->p + PMI2_HEADER, len};
            *bytes = (struct span){payload->p + len, bytes->n - PMI2_HEADER - len};
            return 1;
        }
    }
    if (s->in.len < PMI2_HEADER && collect(s, bytes, PMI2_HEADER) < 0)
        return err_set(err, -ENOMEM, "no memory for a PMI request");
    if (s->in.len < PMI2_HEADER)
        return 0;
    rc = frame_len(s, s->in.p, &len, err);
    if (rc < 0)
        return rc;
    if (collect(s, bytes, PMI2_HEADER + len) < 0)
        return err_set(err, -ENOMEM, "no memory for a PMI request");
    *payload = (struct span){s->in.p + PMI2_HEADER, len};
    return s->in.len == PMI2_HEADER + len;
}

/* No length begins with a letter: a further program on the same descriptor says its init in text. */
static bool is_text(const struct session *s, struct span bytes)
{
    return s->wire == 1 || (s->in.len > 0 ? s->in.p : bytes.p)[0] == 'c';
}

/* One large spawn request is no reason to keep a megabyte. */
static void forget_large(struct buf *b)
{
    if (b->cap > 2 * PMI_LINE_MAX)
        buf_done(b);
}

static int take_bytes(struct session *s, struct span bytes, struct err *err)
{
    struct span request;
    int rc;

    while (bytes.n > 0) {
        bool text = is_text(s, bytes);

        rc = text ? next_line(s, &bytes, &request, err) : next_frame(s, &bytes, &request, err);
        if (rc <= 0)
            return rc;
        s->thrid = SPAN_NONE;
        rc = text ? session1_line(s, request, err) : session2_frame(s, request, err);
        s->in.len = 0;
        forget_large(&s->in);
        forget_large(&s->plain);
        if (rc < 0)
            return rc == -ENOMEM ? err_set(err, rc, "no memory for a PMI reply") : rc;
    }
    return 0;
}

int session_feed(struct session *s, struct span bytes, struct err *err)
{
    int rc;

    if (s->failed < 0)
        return err_set(err, s->failed, "bytes after a PMI request that was refused");
    rc = take_bytes(s, bytes, err);
    if (rc < 0)
        s->failed = rc;
    return rc;
}

enum session_phase session_phase(const struct session *s)
{
    return s->phase;
}

const struct session_who *session_who(const struct session *s)
{
    return &s->who;
}
