/* SPDX-License-Identifier: BSD-3-Clause */
/* session.h - one PMI connection of a task: bytes in, replies and events out
 *
 * An engine without descriptor, clock or log. It answers what it can from what it is lent and calls its owner for the
 * rest. Speaks PMI-1.1, PMI-1.2 or PMI-2, as its client begins, by RFC 13 and as MPICH, Intel MPI, MVAPICH, Flux and
 * Slurm's libpmi2 use them; see docs/protocol.md. Several requests of one connection may wait at once, each for an
 * answer of its own; PMI_WAITING_MAX of them.
 */
#ifndef SERVER_SESSION_H
#define SERVER_SESSION_H

#include <stdbool.h>
#include <stdint.h>
#include "common/err.h"
#include "common/span.h"
#include "server/attrs.h"
#include "server/barrier.h"
#include "server/kvs.h"
#include "server/session_spawn.h"

struct session;

/* What the session may say about its job; lent, outlives the session. */
struct session_job {
    uint32_t size, universe;
    const char *kvsname;
    const char *spawner; /* kvsname of the job that spawned this one, or NULL */
    struct kvs *kvs;
    struct attrs *attrs; /* of this job on this node */
    bool subversion2;    /* init 1.x is answered 1.2: --pmi-subversion=2 */
    bool mapping_later;  /* gets of PMI_process_mapping wait; then this is cleared and session_mapping_known() called */
};

/* Whom a connection speaks for. */
struct session_who {
    const struct session_job *job;
    uint32_t rank, slot, appnum; /* slot: the task's number on this node, for the kvs */
    uint32_t set;                /* session number: barriers of different sets never mix */
};

/* What a client may map: the job's keys (common/kvmap.h), or the bell of its barriers (common/bell.h). */
enum session_map { SESSION_MAP_KVS, SESSION_MAP_BELL };

enum session_name_op { SESSION_PUBLISH, SESSION_LOOKUP, SESSION_UNPUBLISH };

/* Called from inside session_feed() and the calls that bring an answer; none of them may free a session of the job. A
 * refusal is a negative errno, of which -ENOSYS, -ENOSPC and -ENOMEM are told to the client as what they are. */
struct session_ops {
    /* Whole lines or frames for the client. Also called while another session of the job is fed: what one puts as a
     * node attribute may be the answer that another waits for. */
    void (*reply)(struct session *s, struct span bytes, void *arg);
    /* A connection that nobody speaks for yet (PMI_PORT) says `initack pmiid=id`, or PMI-2's `fullinit pmirank=id`. The
     * owner calls session_bind() and returns 0, or refuses and fills err, with which session_feed() fails. */
    int (*identify)(struct session *s, uint32_t id, struct err *err, void *arg);
    /* It enters a barrier: the owner commits the slot's puts; answered by session_barrier_out(), then or later. The
     * group is "WORLD", "NODE", or as group.h names a list of ranks, of which this one is. Several may be under way at
     * once, but each id only once: an id entered again waits in the session until the round before is over. */
    int (*barrier_in)(struct session *s, const struct barrier_id *id, void *arg);
    /* Ask the run's name service. Answered by session_name_done(), then or later, once. `port` is for publish. NULL, as
     * of the next: -ENOSYS. */
    int (*name)(struct session *s, uint32_t req, enum session_name_op op, struct span service, struct span port,
                void *arg);
    /* Start a new job. Answered by session_spawn_done(), then or later, once. `want` is lent for the call. */
    int (*spawn)(struct session *s, uint32_t req, const struct spawn_want *want, void *arg);
    /* The client asked for the end of the job. code 1..255: the low 8 bits of what it said, 1 where they are 0 or no
     * number was said; text may be empty. No reply is sent. */
    void (*abort)(struct session *s, int code, struct span text, void *arg);
    /* Said once: "rank 3 speaks PMI-3 ... ". */
    void (*warn)(struct session *s, const char *text, void *arg);
    /* A request or reply, a line without its newline or a frame without its length, for --pmi-trace. NULL: none
     * wanted. */
    void (*trace)(struct session *s, bool request, struct span line, void *arg);
    /* The client wants something to map: its descriptor goes with the next reply. NULL: -ENOSYS. */
    int (*map)(struct session *s, enum session_map what, void *arg);
};

/* READY from an accepted init (PMI-2: fullinit) to finalize: only then is the client's end an untimely one. Requests
 * are served in any phase, and init may come again after finalize, on either wire. */
enum session_phase { SESSION_NEW, SESSION_READY, SESSION_FINALIZED };

/* Not bound to anybody yet. `ops` and `arg` are lent. NULL: out of memory. */
struct session *session_new(const struct session_ops *ops, void *arg);
/* Copies `who`. A task's own PMI_FD is bound before its first byte; a PMI_PORT connection from inside identify(). */
void session_bind(struct session *s, const struct session_who *who);
bool session_is_bound(const struct session *s);
/* Also withdraws what it waits for in the job's attrs. NULL is fine. */
void session_free(struct session *s);

/* Bytes from the client, any fragmentation. 0; -EPROTO (rubbish, or a request out of turn: the session is to be closed
 * and, when it is bound, the job to fail; err says what and quotes it), -E2BIG (a request over the caps that cannot be
 * skipped), -ENOMEM, or what identify() refused with. */
int session_feed(struct session *s, struct span bytes, struct err *err);

/* Barrier `id` is over for this session, rc < 0: failed. Without effect when it waits in none of that id. One that is
 * to learn it from the bell is told nothing where rc is 0. */
void session_barrier_out(struct session *s, const struct barrier_id *id, int rc);
/* rc 0, or -EEXIST (publish), -ENOENT (lookup, unpublish), others. `port` is for a lookup. Unknown `req`: without
 * effect. */
void session_name_done(struct session *s, uint32_t req, int rc, struct span port);
/* rc 0: every task was started, or `errcodes` (`count` of them, one a task asked for; 0: none) says which were not.
 * rc < 0: refused as a whole. Unknown `req`: without effect. */
void session_spawn_done(struct session *s, uint32_t req, int rc, const char *kvsname, const int *errcodes,
                        uint32_t count);

/* Answers the gets of PMI_process_mapping that wait, from the job's KVS. */
void session_mapping_known(struct session *s);

enum session_phase session_phase(const struct session *s);
/* The node attribute that it waits for, where it waits for nothing else and so can put none; p NULL: none. But where
 * *threaded comes back true, another thread of its client may. */
struct span session_awaits_attr(const struct session *s, bool *threaded);
/* Some request of it has yet to be answered. */
bool session_is_waiting(const struct session *s);
/* Only while it is bound. */
const struct session_who *session_who(const struct session *s);

#endif
