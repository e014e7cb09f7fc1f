/* SPDX-License-Identifier: BSD-3-Clause */
/* provider_logins.h - a provider that logs in to further hosts (--rsh-tree): its names, its bootstrap, its logins */
#ifndef SERVER_PROVIDER_LOGINS_H
#define SERVER_PROVIDER_LOGINS_H

#include <uv.h>
#include "conf/provider_conf.h"
#include "server/links.h"
#include "server/logins.h"
#include "server/spawner.h"

struct provider_logins;

struct provider_logins_conf {
    const struct logins_how *how; /* lent, as all the others; outlives us */
    const struct provider_conf *conf;
    const struct task_limits *limits;
    const char *interface; /* what --interface is on this host, or NULL */
    struct spawner *spawner;
    struct links *links;
    uint32_t place;
    void (*send_up)(unsigned type, struct span body, void *arg);
    /* A child was lost too often before all were in, or the like; where `place` is our own, this node is to end. */
    void (*on_lost)(uint32_t place, const struct err *why, void *arg);
    void *arg;
};

/* Nothing is opened yet. NULL: out of memory. */
struct provider_logins *provider_logins_new(uv_loop_t *loop, const struct provider_logins_conf *conf);
/* A share came from the parent. What cannot be done is handed back; -EPROTO: it makes no sense. */
int provider_logins_share(struct provider_logins *p, struct span body, struct err *err);
/* The logins, or NULL where there never were any. */
struct logins *provider_logins_of(struct provider_logins *p);
/* A process of the bootstrap has ended, or (`err_no` > 0) could not be started. */
void provider_logins_exited(struct provider_logins *p, uint32_t id, int err_no, int wstatus);
/* All nodes are in: how many strangers there were. */
uint64_t provider_logins_all_in(struct provider_logins *p);
/* Before the loop's end. */
void provider_logins_close(struct provider_logins *p);
/* After it. NULL is fine. */
void provider_logins_free(struct provider_logins *p);

#endif
