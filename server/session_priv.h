/* SPDX-License-Identifier: BSD-3-Clause */
/* session_priv.h - what the files session*.c share; nobody else includes it
 *
 * session.c: bytes to requests. session1.c, session2.c: the commands of each wire and the shape of their answers.
 * session_wait.c: requests that are answered later.
 */
#ifndef SERVER_SESSION_PRIV_H
#define SERVER_SESSION_PRIV_H

#include "common/buf.h"
#include "common/limits.h"
#include "server/session.h"

/* Codes that the API's PMI_ERR_* have; Flux puts them on the wire as they are. */
enum {
    RC_FAIL = -1,
    RC_OTHER = 1, /* of a name that is there already, or is not */
    RC_NOMEM = 2,
    RC_INVALID_KEY = 4,
    RC_KEY_LENGTH = 5,
    RC_VALUE_LENGTH = 7,
    RC_NAME_LENGTH = 8,
};

enum wait_kind { WAIT_BARRIER, WAIT_NAME, WAIT_SPAWN, WAIT_ATTR, WAIT_MAPPING };

/* A request, as far as its answer needs it. */
struct waiting {
    struct waiting *next;
    struct session *s;
    enum wait_kind kind;
    int wire;                /* that it came over */
    bool is_tagged;          /* a barrier of PMI-1.2: the answer says which */
    bool by_bell;            /* a barrier whose end the client learns from the bell, unless it fails */
    bool is_entered;         /* a barrier that the owner knows of; else it is queued behind one of the same id */
    enum session_name_op op; /* of a name */
    uint32_t req;            /* of a name or spawn */
    struct span thrid;       /* raw; p NULL: none */
    struct span text;        /* a name's service, a node attribute's key, or the name of the answer with the mapping */
    struct barrier_id id;
};

struct session {
    const struct session_ops *ops; /* lent by the owner, as is arg */
    void *arg;
    struct session_who who;
    bool is_bound;
    enum session_phase phase;
    int wire;      /* 1 or 2 */
    bool has_junk; /* each frame has 6 bytes of rubbish at its end */
    bool is_warned;
    bool is_threaded; /* its client has said that several threads use it */
    bool has_bell;    /* it was handed over */
    int failed;       /* what session_feed() ended with, for good */
    uint32_t last_req;
    struct span thrid; /* of the request that is served or answered now, raw */
    struct waiting *waits, **waits_tail;
    unsigned nwaits;
    struct spawn_parse spawn;
    struct buf in;    /* an unfinished request */
    struct buf out;   /* the reply under construction */
    struct buf plain; /* values of a frame without their doubled semicolons */
};

/* session.c */
int session_quote(struct span line, const char *what, struct err *err);
/* 0 or an RC_*, and then one word that says why. */
int session_check_key(struct span key, const char **msg);
int session_check_value(struct span value, const char **msg);
int session_put(struct session *s, struct span key, struct span value, const char **msg);
/* `text` is what the client wants to map: the keys unless it says so. */
int session_map(struct session *s, struct span text);
void session_abort(struct session *s, struct span code, struct span text);
/* One word for a negative errno. */
const char *session_why(int rc);

/* session_wait.c. Each of the three answers at once when it cannot wait. */
int session_enter(struct session *s, const struct waiting *ask);
int session_ask_name(struct session *s, const struct waiting *ask, struct span port);
/* s->spawn has been read. */
int session_ask_spawn(struct session *s);
/* Is it a key that is not known yet, so that its get is to wait? */
bool session_is_later(const struct session *s, struct span key);
/* `cmd` is the name of the answer. False: it cannot wait. */
bool session_await_mapping(struct session *s, const char *cmd);
/* Copies; NULL: out of memory, or too many. */
struct waiting *session_wait(struct session *s, const struct waiting *ask);
void session_wait_over(struct waiting *w);
void session_waits_free(struct session *s);

/* What a spawn came to. */
struct spawn_done {
    int rc;
    const char *why; /* one word, when rc < 0 */
    const char *kvsname;
    const int *errcodes;
    uint32_t count;
};

/* session1.c */
int session1_line(struct session *s, struct span text, struct err *err);
int session1_barrier_out(struct session *s, const struct waiting *w, int rc, const char *msg);
/* The answer to a get of a key that may be looked up. */
int session1_get_done(struct session *s, struct span key);
int session1_name_done(struct session *s, const struct waiting *w, int rc, struct span port);
int session1_spawn_done(struct session *s, const struct spawn_done *done);

/* session2.c */
int session2_frame(struct session *s, struct span payload, struct err *err);
int session2_barrier_out(struct session *s, int rc, const char *msg);
int session2_get_done(struct session *s, struct span cmd, struct span key);
int session2_name_done(struct session *s, const struct waiting *w, int rc, struct span port);
int session2_spawn_done(struct session *s, const struct spawn_done *done);

#endif
