/* SPDX-License-Identifier: BSD-3-Clause */
/* pmix_host.h - this process as the PMIx server of its node: libpmix, loaded at run time, behind calls of our own
 *
 * Nobody outside of pmix_host.c, pmix_up*.c, pmix_value.c and pmix_lib.c knows a type of PMIx. The library has threads;
 * what it asks is copied there and comes to the loop's thread as a struct pmix_up. What blocks, as the library's begin
 * and end do, runs on a thread of ours. One server a process, since the library is that.
 */
#ifndef SERVER_PMIX_HOST_H
#define SERVER_PMIX_HOST_H

#include <stdbool.h>
#include <stdint.h>
#include <uv.h>
#include "common/buf.h"
#include "common/err.h"
#include "server/pmix_space.h"
#include "server/session_spawn.h"

struct pmix_host;

enum pmix_up_kind {
    PMIX_UP_CONNECTED,
    PMIX_UP_FINALIZED,
    PMIX_UP_ABORT, /* status, data: its words */
    PMIX_UP_LOG,   /* data: text for the user; rc: 0, or why there is none */
    PMIX_UP_FENCE, /* member[], data: what this node brings */
    PMIX_UP_CONNECT,
    PMIX_UP_DISCONNECT, /* member[] */
    PMIX_UP_GET,        /* member[0]: whose keys */
    PMIX_UP_GOT,        /* the answer to pmix_host_get(): rc, data */
    PMIX_UP_PUBLISH,    /* data: pairs without job and rank; once */
    PMIX_UP_LOOKUP,     /* data: keys likewise; wait, timeout */
    PMIX_UP_UNPUBLISH,  /* data: keys */
    PMIX_UP_SPAWN,      /* want */
    PMIX_UP_GROUP,      /* member[] of the group `name`, data: what this node brings */
    PMIX_UP_UNGROUP,    /* member[], name: it goes */
    PMIX_UP_EVENT,      /* status, range, data: pairs of infos; own_job; rc: 0, or why there are none */
    PMIX_UP_QUERY       /* answered by the names of all namespaces, with commas */
};

#define PMIX_UP_ALL UINT32_MAX /* as a rank: every one of the namespace */

struct pmix_id {
    char *nspace;
    uint32_t rank;
};

/* What the library asks or tells. The receiver owns it and ends it by pmix_up_done(), once. */
struct pmix_up {
    struct pmix_up *next; /* the receiver's, for lists of its own */
    enum pmix_up_kind kind;
    struct pmix_id who; /* nspace NULL: nobody in particular */
    struct pmix_id *member;
    size_t count;
    struct buf data;
    int rc, status;
    bool once, wait, own_job;
    bool counted;       /* among the events that wait */
    bool partial;       /* of a collective: a member that this node had is gone, perhaps before it was in */
    bool wants_context; /* a group: it is to get a number, */
    uint64_t context;   /* which the receiver fills in */
    char *name;         /* of a group */
    unsigned range;     /* of an event; PMIx's number */
    uint32_t timeout;   /* seconds; 0: none */
    uint64_t ticket;    /* of pmix_host_get() */
    unsigned ticks;     /* the receiver's: for how long it has waited, */
    size_t said;        /* and how much of the data is through */
    struct spawn_want want;
    void (*answer)(struct pmix_up *u, int rc, struct span data); /* NULL: nobody waits */
    void (*call)(void);
    void *call_arg;
};

/* What it takes while it waits, about. */
static inline size_t pmix_up_size(const struct pmix_up *u)
{
    return sizeof(*u) + u->data.len;
}

/* Answer it and free it. `rc`: 0 or a negative errno. `data`: of a fence or get what was brought; of a lookup pairs; of
 * a spawn the new namespace. The owners of a lookup's pairs are to be in member[], in their order. */
void pmix_up_done(struct pmix_up *u, int rc, struct span data);

struct pmix_host_ops {
    void (*up)(struct pmix_up *u, void *arg);
    /* pmix_host_add() has come to its end; the text says why it failed. */
    void (*added)(const char *nspace, int rc, const char *text, void *arg);
};

/* Is there support for it in this program? */
bool pmix_host_is_built(void);
/* Load the library; no thread is made yet. -ENOSYS: built without; -ENOENT: there is no such library, or it lacks
 * something; the text says what to do. */
int pmix_host_open(uv_loop_t *loop, const struct pmix_host_ops *ops, void *arg, struct pmix_host **out,
                   struct err *err);
/* "OpenPMIx 4.2.2", as the library says. */
const char *pmix_host_version(const struct pmix_host *h);
/* A setting in this process's environment that would stop the server for good, "PMIX_MCA_gds=ds21", and so was
 * replaced. NULL: there is none. */
const char *pmix_host_overruled(const struct pmix_host *h);
/* Make a namespace known, and its local ranks, whom `uid` and `gid` of this process may connect for. With the first one
 * the server begins. Takes `s` over. 0, and ops->added() comes; or -ENOMEM. */
int pmix_host_add(struct pmix_host *h, struct pmix_space *s);
void pmix_host_remove(struct pmix_host *h, const char *nspace);
/* What a rank's environment must have, added. 0 or a negative errno. */
int pmix_host_env(struct pmix_host *h, const char *nspace, uint32_t rank, char ***env);
/* A local rank's keys, once it has committed them: they come as PMIX_UP_GOT with that ticket. */
void pmix_host_get(struct pmix_host *h, const char *nspace, uint32_t rank, uint64_t ticket);
/* An event of a rank on another node, for those of this node's ranks that have asked for such. 0 or a negative errno.
 */
int pmix_host_notify(struct pmix_host *h, const struct pmix_id *source, int status, unsigned range, struct span pairs);
/* What was posted and has not come up yet comes now. */
void pmix_host_drain(struct pmix_host *h);
/* End the server, within PMIX_END_MS; nothing comes up any more. `closed` is called from the loop. Unless it is
 * `clean`, that is, where a client may have been turned away or has not finalized, it is left as it is: libraries from
 * 4.2 to 6.1 hang or crash in their end then. */
void pmix_host_close(struct pmix_host *h, bool clean, void (*closed)(void *arg));
/* A server was left: its threads run on, and the process must end by _exit(). */
bool pmix_host_is_left(void);

#endif
