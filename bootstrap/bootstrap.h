/* SPDX-License-Identifier: BSD-3-Clause */
/* bootstrap.h - start a provider on every node that is not the launcher itself
 *
 * One interface for all methods. The bootstrap starts processes through what its owner hands in (struct boot_ops), and
 * learns who joined or failed by calls. It decides which hosts are tried again, and when the start has failed.
 */
#ifndef BOOTSTRAP_BOOTSTRAP_H
#define BOOTSTRAP_BOOTSTRAP_H

#include <stdbool.h>
#include <stdint.h>
#include <uv.h>
#include "bootstrap/plan.h"
#include "common/buf.h"
#include "common/err.h"
#include "common/span.h"
#include "conf/conf.h"

struct bootstrap;

struct boot_ops {
    /* Start a process in a session of its own, standard input /dev/null, its output and error on two new pipes whose
     * reading ends are returned (owned by the bootstrap; non-blocking, close-on-exec). Its end comes by boot_exited(),
     * never from inside this call. */
    int (*spawn)(uint32_t id, char *const *argv, char *const *envp, int *out_fd, int *err_fd, void *arg,
                 struct err *err);
    /* To the whole process group that was started under `id`. */
    void (*kill)(uint32_t id, int sig, void *arg);
    /* A provider's key line came back over its login: whoever shows this key is (run, index), which is node `node`. The
     * owner keeps it until the hello comes. */
    void (*on_key)(uint32_t node, uint32_t run, uint32_t index, const char *key, void *arg);
    /* The start has failed; once, never from inside boot_open(). `text` is one line for each distinct reason, joined by
     * newlines, none at the end: hosts folded, "hostb: STAGE: reason". boot_close() may be called from here. */
    void (*on_failed)(const char *text, void *arg);
    /* At a provider, by boot_login(): it has failed for `text`, and nobody tries again here. NULL: they are tried
     * again, and in the end the start has failed. */
    void (*on_login_failed)(uint32_t node, const char *text, void *arg);
    /* Who is to log in to `node`, where it was not we; lent. NULL: nobody else does. */
    const char *(*login_from)(uint32_t node, void *arg);
    void *arg;
};

struct boot_conf {
    const struct conf *conf;
    const struct plan *plan;
    char *const *addrs; /* to give out, "ADDR" text */
    uint16_t port;
    const char *key;       /* the launcher's fingerprint; "" where nodes prove themselves by --secret-file (manual) */
    const char *self_path; /* absolute path of this program */
    char *const *envp;     /* the launcher's own environment */
    const char *script;    /* rsh: the path of the user's script or of the shipped one */
    const char *srun;      /* slurm: its path */
    const char *agent;     /* rsh: what the shipped script uses in the place of ssh, or NULL */
    bool one_by_one;       /* rsh: nothing is started but by boot_login() */
    uint64_t limit_ms;     /* rsh: after which the owner gives up a login; 0: as long as the start may take */
    uint32_t providers;    /* of the whole run, where the plan has not all of them; 0: it has */
};

/* Starts at once. `boot_conf` and what it points to is lent and outlives the bootstrap. */
int boot_open(uv_loop_t *loop, const struct boot_conf *conf, const struct boot_ops *ops, struct bootstrap **out,
              struct err *err);
/* Ids at and above this are the bootstrap's in calls of spawn/kill/boot_exited. */
#define BOOT_ID_BASE 0x40000000u
void boot_exited(struct bootstrap *b, uint32_t id, int wstatus);
/* In its place where it never ran. */
void boot_not_started(struct bootstrap *b, uint32_t id, int err_no);

/* Start the login of a node that waits. */
int boot_login(struct bootstrap *b, uint32_t node, struct err *err);
/* "STAGE: reason" of one that has not joined yet. */
void boot_why(const struct bootstrap *b, uint32_t node, struct buf *out);
/* End its login, if it still runs and is one of its own. */
void boot_cancel(struct bootstrap *b, uint32_t node);
/* It had joined, and was lost: it waits again. */
void boot_unjoined(struct bootstrap *b, uint32_t node);
/* What is known of a login that was tried from elsewhere: said as long as none from here was begun. */
void boot_words(struct bootstrap *b, uint32_t node, const char *text);

/* Which node is provider `index` of run `run`, or -1. This is how a hello finds its node where no key line vouches for
 * it. */
int64_t boot_node_of(const struct bootstrap *b, uint32_t run, uint32_t index);
/* A hello was accepted for `node`; `attached`: its login stays open for the run. */
void boot_joined(struct bootstrap *b, uint32_t node, bool attached);
/* A connection for `node` came but was refused for good ("version 1..1 here, 2..2 there"). Fails the start. */
void boot_refused(struct bootstrap *b, uint32_t node, const char *reason);
/* A connection came whose key nobody vouched for (for "the script does not pass on the providers' output"). */
void boot_stranger(struct bootstrap *b);
/* How many nodes have joined / are awaited, and their names folded, for the progress line. */
uint32_t boot_waiting(const struct bootstrap *b);
void boot_waiting_names(const struct bootstrap *b, struct buf *out);
/* All joined: attached logins stay, nothing is retried any more. */
void boot_done(struct bootstrap *b);
/* End logins that still run; NULL is fine. No callback comes after it, and no other call may; the memory goes with the
 * loop. */
void boot_close(struct bootstrap *b);

#endif
