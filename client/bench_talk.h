/* SPDX-License-Identifier: BSD-3-Clause */
/* bench_talk.h - one PMI session, whatever it speaks: PMI-1 or PMI-2 over the wire, or a libpmi or libpmi2
 *
 * A request is sent by talk_ask() and its answer read by talk_answer(), so that one thread can have many sessions at
 * work. A library knows no such halves: there the whole call is made in talk_answer().
 */
#ifndef CLIENT_BENCH_TALK_H
#define CLIENT_BENCH_TALK_H

#include <stdbool.h>
#include <stdint.h>
#include "client/where.h"
#include "client/wire.h"
#include "common/buf.h"
#include "common/err.h"
#include "common/limits.h"
#include "common/span.h"

enum talk_op {
    TALK_PUT,
    TALK_GET,
    TALK_BARRIER,
    TALK_ATTR, /* a get of what the server itself says; PMI-1 knows no difference */
    TALK_PUBLISH,
    TALK_LOOKUP,
    TALK_UNPUBLISH,
    TALK_SPAWN,
    TALK_FINALIZE,
    TALK_OPS
};

struct talk_spawn {
    const char *program;
    char *const *args; /* behind argv[0], NULL-terminated */
    uint32_t copies;
    const char *key, *value; /* a pair that the new job finds in its KVS */
};

struct talk_request {
    enum talk_op op;
    const char *key;   /* or a service's name; lent until the answer */
    struct span value; /* of a put, or a service's port; likewise */
    const struct talk_spawn *spawn;
};

struct talk_answer {
    int rc;            /* 0: done. What else it may be is the server's. */
    struct span value; /* of a get or lookup, or a spawn's error codes, comma between; lent until the next call */
    struct span msg;   /* what it says of a failure, if anything */
};

struct talk_kind;

/* What all sessions of this process share. */
struct talk_job {
    const struct talk_kind *kind;
    void *library;                    /* of dlopen */
    const void *api;                  /* its functions, as the kind knows them */
    int rank, size, appnum, universe; /* universe -1: not known */
    bool is_spawned;
    unsigned key_most, value_most; /* characters that may be put */
    char name[256];                /* of the job's KVS */
    struct buf out, room;
};

struct talk {
    struct talk_job *job;
    struct wire wire;
    uint32_t session;
    struct talk_request now; /* libraries only: what is to be called */
};

/* How a kind does it. `id` is PMI_ID where the session has one, else -1. */
struct talk_kind {
    const char *name;
    bool has_wire;
    int (*start)(struct talk *t, const struct where *w, int64_t id, struct err *err);
    int (*ask)(struct talk *t, const struct talk_request *r, struct err *err);
    int (*answer)(struct talk *t, enum talk_op op, struct talk_answer *a, struct err *err);
};

extern const struct talk_kind talk_pmi1, talk_pmi2, talk_lib1, talk_lib2;

/* Fill job->kind and the functions from a library; `version` 0: what it has. */
int talk_load(struct talk_job *job, const char *path, int version, struct err *err);
void talk_job_done(struct talk_job *job);

/* Connect and initialize session number `session`; number 0 fills the job's fields. After a failure only talk_close()
 * is of use. */
int talk_open(struct talk *t, struct talk_job *job, const struct where *w, uint32_t session, struct err *err);
void talk_close(struct talk *t);

int talk_ask(struct talk *t, const struct talk_request *r, struct err *err);
int talk_answer(struct talk *t, enum talk_op op, struct talk_answer *a, struct err *err);

/* Both, under the deadline. */
int talk_do(struct talk *t, const struct talk_request *r, struct talk_answer *a, struct err *err);

/* "the reply to get", for messages. */
const char *talk_awaits(enum talk_op op);

#endif
