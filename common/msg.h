/* SPDX-License-Identifier: BSD-3-Clause */
/* msg.h - the body of a message between nodes: a msgpack map with text keys
 *
 * Unknown keys are ignored and optional ones have defaults: that is what lets one version talk to the next. Writing is
 * cumulative; the first failure (out of memory, over MESSAGE_MAX) sticks and shows in msg_out_done().
 */
#ifndef COMMON_MSG_H
#define COMMON_MSG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "common/err.h"
#include "common/span.h"

enum msg_type {
    /* up */
    MSG_HELLO = 1,
    MSG_LISTENING,
    MSG_PLACED,
    MSG_READY,
    MSG_START_FAILED,
    MSG_BARRIER,
    MSG_EXITED,
    MSG_FAILED,
    MSG_STUCK,
    MSG_NODE_LOST,
    MSG_OUTPUT,
    MSG_INPUT_CREDIT,
    MSG_TRACE,
    MSG_LOG,
    MSG_REPORT,
    MSG_FINISHED,
    MSG_STARTED,
    MSG_NAME,
    MSG_SPAWN,
    MSG_CAME,
    MSG_LEFT,
    MSG_WAITS,
    MSG_SLOW,
    MSG_FAULT,
    MSG_PMIX_FENCE,
    MSG_PMIX_ASK,
    MSG_PMIX_GOT,
    MSG_PMIX_CAME,
    MSG_LEAVING,
    MSG_JOINED,
    MSG_UNJOINED,
    MSG_WANT,
    MSG_BACK,
    MSG_LOGIN_FAILED,
    MSG_PMIX_EVENT,
    MSG_UP_LAST = MSG_PMIX_EVENT,
    /* down */
    MSG_WELCOME = 64,
    MSG_REFUSED,
    MSG_PLACE,
    MSG_JOB,
    MSG_GO,
    MSG_SIGNAL,
    MSG_PAUSE,
    MSG_END,
    MSG_RELEASE,
    MSG_RANK_GONE,
    MSG_BROKEN,
    MSG_OUTPUT_CREDIT,
    MSG_INPUT,
    MSG_ASK,
    MSG_NAMED,
    MSG_SPAWNED,
    MSG_JOB_OVER,
    MSG_CHECK,
    MSG_WINDOW,
    MSG_PMIX_RELEASE,
    MSG_PMIX_ANSWER,
    MSG_PMIX_GET,
    MSG_STATUS,
    MSG_SHARE,
    MSG_PMIX_NOTIFY,
    MSG_PMIX_CHECK,
    MSG_DOWN_LAST = MSG_PMIX_CHECK,
    /* both, on one edge */
    MSG_PING = 128,
    MSG_PONG,
};

/* For logs and errors: "hello", or "type 77". Static, or one of a few static buffers. */
const char *msg_name(unsigned type);

struct msg_out; /* a map being written */

struct msg_out *msg_out_new(void); /* NULL: out of memory */
void msg_out_free(struct msg_out *m);
void msg_put_u64(struct msg_out *m, const char *key, uint64_t v);
void msg_put_i64(struct msg_out *m, const char *key, int64_t v);
void msg_put_bool(struct msg_out *m, const char *key, bool v);
void msg_put_str(struct msg_out *m, const char *key, const char *s);     /* NULL: left out */
void msg_put_bin(struct msg_out *m, const char *key, struct span bytes); /* p NULL: left out */
/* A key: the message is wiped at free. It must be a small one (8 KiB), as where it grows copies stay behind. */
void msg_put_secret(struct msg_out *m, const char *key, struct span bytes);
void msg_put_strv(struct msg_out *m, const char *key, char *const *v, size_t count);
void msg_put_u32v(struct msg_out *m, const char *key, const uint32_t *v, size_t count);
/* The finished body, lent until msg_out_free(). 0, -ENOMEM or -E2BIG (over MESSAGE_MAX). */
int msg_out_done(struct msg_out *m, struct span *body);

struct msg_in; /* a map being read; views point into the body, which must outlive it */

/* -EPROTO: not one whole map of text keys, nested deeper than 8, or longer than MESSAGE_MAX. Counts and lengths are
 * held against the bytes that are there before anything is allocated. Of a key given twice the first counts. */
int msg_in_new(struct msg_in **out, struct span body, struct err *err);
void msg_in_free(struct msg_in *m);
/* 0; -ENOENT: no such key; -EPROTO: another kind of value, or out of min..max; `err` names the key. */
int msg_get_u64(const struct msg_in *m, const char *key, uint64_t min, uint64_t max, uint64_t *out, struct err *err);
int msg_get_i64(const struct msg_in *m, const char *key, int64_t *out, struct err *err);
int msg_get_bool(const struct msg_in *m, const char *key, bool *out, struct err *err);
/* Text or binary. */
int msg_get_bin(const struct msg_in *m, const char *key, struct span *out, struct err *err);
/* A fresh string; -EPROTO as well where it holds a NUL. */
int msg_get_str(const struct msg_in *m, const char *key, char **out, struct err *err);
/* A fresh NULL-terminated array of fresh strings; free with strv_free(). At most `max`. */
int msg_get_strv(const struct msg_in *m, const char *key, size_t max, char ***out, size_t *count, struct err *err);
int msg_get_u32v(const struct msg_in *m, const char *key, size_t max, uint32_t **out, size_t *count, struct err *err);

#endif
