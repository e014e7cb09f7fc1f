/* SPDX-License-Identifier: BSD-3-Clause */
/* pm.h - the process manager as one of its tasks sees it: the same calls over PMI-1, over PMI-2, and with no server
 *
 * What both libraries stand on. No lock and no global: one thread at a time for each struct pm. Texts that are given
 * back are lent until the next call on the same struct.
 *
 * Calls return one of the API's codes, which are the same numbers in pmi.h, pmi2.h and Flux's replies; where it is not
 * PM_OK, `err` says why, for a person. Its own code is of no meaning then.
 */
#ifndef CLIENT_PM_H
#define CLIENT_PM_H

#include <limits.h>
#include "client/wire.h"
#include "common/buf.h"
#include "common/err.h"
#include "common/kvtab.h"
#include "common/span.h"

enum {
    PM_OK = 0,
    PM_FAIL = -1,
    PM_INIT = 1,
    PM_NOMEM = 2,
    PM_INVALID_ARG = 3,
    PM_INVALID_KEY = 4, /* also: there is no such key */
    PM_INVALID_KEY_LENGTH = 5,
    PM_INVALID_VAL = 6,
    PM_INVALID_VAL_LENGTH = 7,
    PM_INVALID_LENGTH = 8,
};

struct pm_pair {
    const char *key, *value;
};

struct pm_cmd {
    const char *path;
    const char *const *args; /* without the path */
    size_t nargs;
    int nprocs; /* at least 1 */
    const struct pm_pair *info;
    size_t ninfo;
};

struct pm_spawn {
    const struct pm_cmd *cmd;
    size_t count;
    const struct pm_pair *preput;
    size_t npreput;
    int nprocs; /* of all commands together */
};

struct pm;
struct pm_map;
struct pm_bell;

/* One row a wire. `pm_` calls of the same names are what everybody uses; they have checked lengths. */
struct pm_ops {
    int (*get_name)(struct pm *pm, struct err *err); /* fills pm->name */
    int (*put)(struct pm *pm, const char *name, const char *key, const char *value, struct err *err);
    int (*get)(struct pm *pm, const char *name, const char *key, struct span *value, struct err *err);
    int (*fence)(struct pm *pm, struct err *err);
    int (*appnum)(struct pm *pm, int *n, struct err *err);
    int (*universe)(struct pm *pm, int *n, struct err *err);
    int (*node_put)(struct pm *pm, const char *key, const char *value, struct err *err);
    int (*node_get)(struct pm *pm, const char *key, bool wait, struct span *value, struct err *err);
    int (*job_get)(struct pm *pm, const char *key, struct span *value, struct err *err);
    int (*publish)(struct pm *pm, const char *service, const char *port, struct err *err);
    int (*unpublish)(struct pm *pm, const char *service, struct err *err);
    int (*lookup)(struct pm *pm, const char *service, struct span *port, struct err *err);
    int (*spawn)(struct pm *pm, const struct pm_spawn *s, struct span *name, int *errors, struct err *err);
    /* `what` NULL: the keys. The descriptor goes to pm->wire.passed. */
    int (*map)(struct pm *pm, const char *what, uint32_t *slot, struct err *err);
    void (*abort)(struct pm *pm, int code, const char *text);
    int (*finalize)(struct pm *pm, struct err *err);
};

#define APPNUM_UNKNOWN INT_MIN

struct pm {
    const struct pm_ops *ops;
    struct wire wire;
    struct buf out; /* the request under construction */
    int rank, size;
    int appnum;                       /* APPNUM_UNKNOWN: not asked yet; Slurm has -1 */
    bool spawned;                     /* started by another job's spawn */
    int name_max, key_max, value_max; /* lengths with the terminator */
    char *name;                       /* of our key space, which is also the job's; NULL: not asked yet */
    bool may_map, may_bell;           /* the server is one that may be asked for a mapping of the keys, for a bell */
    struct pm_map *map;               /* NULL: there is none, or it was not asked for yet */
    struct pm_bell *bell;             /* likewise */
    unsigned fences;                  /* without it */
    struct kvtab kvs, attrs;          /* of a singleton */
    uint32_t puts;                    /* likewise */
    int *clique;                      /* ranks on our node, ascending; NULL: not asked yet */
    int clique_size;
};

/* Find the server that `env` names, and begin. PMI-2 where `pmi2` and the server speaks it, else PMI-1. */
int pm_open(struct pm *pm, char *const *env, bool pmi2, struct err *err);
/* Without a word to the server; frees all. Also after a failed pm_open(). */
void pm_close(struct pm *pm);

int pm_name(struct pm *pm, const char **name, struct err *err);
/* `name` NULL: our own key space. */
int pm_put(struct pm *pm, const char *name, const char *key, const char *value, struct err *err);
int pm_get(struct pm *pm, const char *name, const char *key, struct span *value, struct err *err);
int pm_appnum(struct pm *pm, int *appnum, struct err *err);
/* Ranks on this node: ascending, lent as long as `pm` is open. */
int pm_clique(struct pm *pm, const int **ranks, int *count, struct err *err);
/* `errors`: room for s->nprocs, NULL: not wanted. `*name`: of the new job, SPAN_NONE where the server does not say. */
int pm_spawn(struct pm *pm, const struct pm_spawn *s, struct span *name, int *errors, struct err *err);

/* pm_map.c, for the wires: true where `key` of our own key space was found without asking the server; else it is to be
 * asked. Asks it for a mapping when first needed. */
bool pm_mapped(struct pm *pm, const char *name, const char *key, struct span *value);
void pm_unmap(struct pm *pm);

/* pm_bell.c, for the wires. A barrier is about to be entered: true where its end is to come from the bell, and then the
 * request has to say so. Asks for a bell where there have been barriers enough for it to be worth while. */
bool pm_bell_is_heard(struct pm *pm);
/* Sleep until it is over: true, or else it was answered over the wire, or that broke. */
bool pm_bell_wait(struct pm *pm);
void pm_bell_close(struct pm *pm);

/* What PMI-1 can carry as a key or a name, and as a value. */
bool pm_is_word(const char *s);
bool pm_is_line(const char *s);

/* For the wires: what a server's rc is as a code. */
int pm_code(int rc);
/* Likewise: err_set() with a code that is no errno. */
int pm_fail(struct err *err, int code, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
/* Likewise: read "0,0,1" into `errors`, which has room for `count`. */
int pm_errors(struct span list, int *errors, int count, struct err *err);

/* Begin on a fresh connection; -EPROTONOSUPPORT: the server does not speak it. Both return negative errno. */
int pm1_begin(struct pm *pm, const struct where *where, struct err *err);
int pm2_begin(struct pm *pm, const struct where *where, struct err *err);
void pm_self_begin(struct pm *pm);

#endif
