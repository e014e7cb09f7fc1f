/* SPDX-License-Identifier: BSD-3-Clause */
/* limits.h - every size that a peer, a file or a user controls has its cap here */
#ifndef COMMON_LIMITS_H
#define COMMON_LIMITS_H

/* PMI-1 lengths as the protocol counts them, terminator included: what Flux gives. MPICH 4.0.2 and MVAPICH2 crash
 * when vallen_max is above 1024. */
#define PMI_KVSNAME_MAX 64
#define PMI_KEY_MAX 64
#define PMI_VALUE_MAX 1024
#define PMI_LINE_MAX 65536  /* a request line without a newline in this many bytes ends the session */
#define PMI_REPLY_MAX 1023  /* MPICH 4.0.2 reads a reply into 1024 bytes, terminator included */
#define PMI_MAPPING_MAX 860 /* a longer PMI_process_mapping crashes MPICH 4.0.2: answered "not found" */
#define PMI_LINE_FIELDS_MAX 64
#define PMI2_PAYLOAD_MAX 999999  /* all that the 6 digits of a PMI-2 frame can say */
#define PMI_MAXES_MAX 65536      /* what our client believes of a server's get_maxes */
#define PMI2_NAME_MAX 257        /* of a job, terminator included; Slurm and Hydra have up to 256 bytes */
#define WIRE_LINE_MAX (1u << 20) /* a reply to our client that is not complete in this many bytes */

#define PMI2_THRID_MAX 64    /* bytes that name a client's thread, sent back as they came */
#define PMI_UNBOUND_MAX 1024 /* bytes of a request on a connection of which nobody knows yet whose it is */
#define PMI_WAITING_MAX 1024 /* requests of one connection whose answers are to come */
#define ATTRS_MAX 65536      /* node attributes of one job on one node */
#define NAME_SERVICE_MAX 256
#define NAME_PORT_MAX 994 /* so that the reply fits PMI_REPLY_MAX */

/* One spawn request. */
#define SPAWN_CMDS_MAX 1024
#define SPAWN_STRINGS_MAX 65536
#define SPAWN_BYTES_MAX (4u << 20)

/* PMIx. */
#define PMIX_PIECE_MAX 49152              /* bytes of a collective in one message: with the rest it fits one frame */
#define PMIX_FENCES_MAX 65536             /* collectives under way at once on a node */
#define PMIX_FENCE_BYTES_MAX (256u << 20) /* what all members of one bring */
#define PMIX_BLOB_MAX (16u << 20)         /* one rank's keys (direct modex), or what one request publishes */
#define PMIX_WORDS_MAX (64u << 20)        /* what ranks of a node say by PMIx_Log() and the launcher cannot take yet */
#define PMIX_EVENTS_MAX (16u << 20)       /* of events that ranks of a node have sent, and that wait there, */
#define PMIX_EVENT_WAIT_MS 20000          /* for so long, until one is left out */
#define PMIX_EVENTS_AWAY_MAX (64u << 20)  /* of those on their way to the root and back, of all nodes together */
#define PMIX_QUERY_BYTES_MAX 4096         /* of the keys of one question that are known */
#define PMIX_GROUP_NAME_MAX 1024          /* bytes of a group's name */
#define PMIX_ASKED_MAX 65536              /* requests of a node that wait for an answer */
#define PMIX_STORE_KEYS_MAX 65536         /* published at once in a run, */
#define PMIX_STORE_BYTES_MAX (256u << 20) /* with all their bytes, */
#define PMIX_WAITERS_MAX 65536            /* and lookups that wait for one */
#define PMIX_START_MS 30000               /* in which the library must have begun a job on a node, */
#define PMIX_END_MS 2000                  /* and in which it must have ended */

#define HOSTS_MAX (1u << 20)  /* hosts of one list, after expansion */
#define HOST_NAME_MAX_LEN 255 /* one name; RFC 1035 */
#define HOST_BRACKETS_MAX 16  /* pairs of brackets in one name of a list */
#define HOST_DIGITS_MAX 18    /* of a number between brackets */
#define HOSTFILE_BYTES_MAX (64u << 20)
#define SLOTS_MAX 1024
#define TASKS_MAX (1u << 24)
#define NODES_MAX (1u << 20)

#define FRAME_BODY_MAX 65536         /* one frame's body */
#define MESSAGE_MAX (64u << 20)      /* a message put together from frames, trusted peers only */
#define PMI_STRANGERS_MAX 1024       /* connections to one PMI_PORT that have not said which rank they are; */
#define PMI_STRANGER_BYTES 4096      /* what each may say until then, */
#define PMI_STRANGER_MS 10000        /* and how long it may take */
#define SERVE_RANGES_MAX 256         /* of --serve */
#define SERVE_WARNED_MAX 1024        /* addresses whose connections were refused and of which that was said, */
#define SERVE_WARNINGS_MAX 16        /* and how often of one of them */
#define PMI_REFUSALS_MAX 16          /* the same, of one PMI_PORT: everybody on the host can knock */
#define PMI_SESSIONS_MAX 65536       /* of one rank */
#define PREAUTH_BYTES_MAX 4096       /* plaintext bytes accepted from a connection before its hello was accepted */
#define PREAUTH_WIRE_MAX (20u << 10) /* the same as it comes from the wire, TLS handshake included */
#define JOIN_WARNINGS_MAX 16         /* words about those who could not join a run with a shared secret */
#define PREAUTH_MS 10000
#define PREAUTH_CONNS_MAX 256
#define PREAUTH_CONNS_PER_ADDR 8
#define ADDRS_MAX 8 /* addresses that the launcher gives out */

#define PING_IDLE_MS 5000
#define LINGER_MS 2000     /* from our last byte until the peer must have closed too */
#define LINK_LOST_MS 25000 /* the contract says within 30 s; an outage of 10 s plus TCP's back-off fits below */

#define LINK_AHEAD (256u << 10)       /* encrypted ahead of the socket; what control messages cannot overtake */
#define LINK_DATA_HIGH (1u << 20)     /* data queued on a link: producers are asked to stop, */
#define LINK_DATA_LOW (256u << 10)    /* and to go on */
#define LINK_CONTROL_HIGH (1u << 20)  /* control messages queued on a link: a round's data waits from here, */
#define LINK_CONTROL_LOW (256u << 10) /* and goes on */
#define LINK_CONTROL_MAX (256u << 20) /* control messages queued for a peer that does not read: it is dropped */

#define STDIO_CREDIT (256u << 10) /* bytes of one stream under way between a task and the launcher */

#define KEEPER_END_MS 5000       /* at the end a worker waits this long for its keeper to end what is left */
#define DESCENDANTS_KILL_MS 4000 /* a worker whose keeper was killed ends what it left, for at most this long */

#define BENCH_VALUE_MAX 65536 /* pmi-bench: bytes of a value, */
#define BENCH_SESSIONS_MAX (1u << 20)
#define BENCH_COPIES_MAX 65536
#define BENCH_COUNT_MAX 1000000000

#define BARRIERS_MAX 131072 /* under way at once in one job on one node: each session may have one */

/* Tests build a program that comes to these soon. */
#ifndef KVS_BYTES_MAX
#define KVS_BYTES_MAX (3u << 30) /* one job's keys on one node */
#endif
#ifndef BARRIERS_KNOWN_MAX
#define BARRIERS_KNOWN_MAX (1u << 20) /* names that one job may ever use on a node; their round numbers are kept */
#endif

#endif
