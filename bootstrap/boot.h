/* SPDX-License-Identifier: BSD-3-Clause */
/* boot.h - what the bootstrap's methods share: node states, the stall timer, one failure text. Not for other folders.
 * */
#ifndef BOOTSTRAP_BOOT_H
#define BOOTSTRAP_BOOT_H

#include "bootstrap/bootstrap.h"
#include "bootstrap/proc.h"

#define BOOT_LABEL_MAX 16

enum boot_state {
    NODE_SELF,    /* the launcher's own */
    NODE_WAITING, /* to be started, being started, or to be started again */
    NODE_KEYED,   /* its key line came */
    NODE_JOINED,
    NODE_FAILED, /* for good */
};

struct boot_node {
    enum boot_state state;
    uint32_t run, index; /* where it was started last; run 0: not yet */
    unsigned tries;
    bool logging_in; /* started in `run`, and its login is not known to have ended */
    bool decisive;   /* `words` are a reason not to try again */
    bool crowded;    /* `words` say that too many logged in at once */
    int exit_code;   /* of its login, or -1 */
    char *words;     /* the last that it said, printable; or NULL */
    char *elsewhere; /* how a login from another host failed, printable; or NULL */
    char *refused;   /* why its connection was refused, or NULL */
};

struct boot_method_ops {
    /* Starts at once; what it starts may fail later by boot_fail(). */
    int (*open)(struct bootstrap *b, struct err *err);
    /* Only where there is method_data, as with free(). */
    int64_t (*node_of)(const struct bootstrap *b, uint32_t run, uint32_t index);
    void (*joined)(struct bootstrap *b, uint32_t node, bool attached); /* may be NULL */
    /* For boot_login() and boot_cancel(); may be NULL. */
    int (*login)(struct bootstrap *b, uint32_t node, struct err *err);
    void (*cancel)(struct bootstrap *b, uint32_t node);
    /* "STAGE: reason" for a node that has not joined. */
    void (*why)(const struct bootstrap *b, uint32_t node, struct buf *out);
    /* All that is to be said when nobody has come for too long; may be NULL: then it is `why` of each. */
    void (*stalled)(const struct bootstrap *b, struct buf *out);
    /* Who has not come, in a few words. Where there is this, nobody is logged in to, and people may have to do
     * something: it is said now and then. May be NULL. */
    void (*awaited)(const struct bootstrap *b, struct buf *out);
    void (*close)(struct bootstrap *b); /* close timers of its own; may be NULL */
    void (*free)(struct bootstrap *b);  /* all handles are closed */
};

struct bootstrap {
    const struct boot_method_ops *method;
    uv_loop_t *loop;
    const struct boot_conf *conf;
    struct boot_ops ops;
    struct boot_node *node; /* [plan->node_count] */
    uint32_t awaited;       /* neither joined nor our own */
    uint32_t failed_count;
    uint32_t keys, strangers;
    char (
        *label)[BOOT_LABEL_MAX]; /* by node, where hosts' names do not tell nodes apart; or NULL. Owned by the method */
    struct proc **proc;          /* by id - BOOT_ID_BASE */
    uint32_t proc_count, proc_cap;
    uv_timer_t stall;  /* --start-timeout since the last one joined */
    uv_timer_t tell;   /* whom we wait for */
    uv_timer_t settle; /* after the first failed for good: others may fail too, one message for all */
    unsigned handles;  /* open ones, ours and the method's */
    bool opened;       /* boot_open() has returned */
    bool over;         /* failed or done: nothing is started or reported any more */
    bool closing;
    char read_buf[65536]; /* every pipe reads through it: a read's bytes are used up before the next */
    void *method_data;
};

extern const struct boot_method_ops boot_local, boot_rsh, boot_manual, boot_slurm, boot_k8s;

/* A handle that the bootstrap's memory has to outlive. `boot_timer_init` cannot fail. */
void boot_timer_init(struct bootstrap *b, uv_timer_t *t);
void boot_handle_close(struct bootstrap *b, uv_handle_t *h);
/* The id for a new process, or a negative errno. */
int64_t boot_proc_add(struct bootstrap *b, struct proc *p);

/* The start has failed, for this reason alone. */
void boot_fail(struct bootstrap *b, const char *text);
/* `node` cannot be started: reported once the others have settled, at most BOOT_SETTLE_MS later. */
void boot_node_failed(struct bootstrap *b, uint32_t node);
#define BOOT_SETTLE_MS 5000

/* Keep a host's words, printable and cut. */
void boot_node_words(struct boot_node *n, struct span text);
/* A key line came for `node`, which waits for it. */
void boot_node_key(struct bootstrap *b, uint32_t node, const struct keyline_found *found);
/* Two different keys came for `node` from the same start of it: the whole start has failed. */
void boot_fail_two_keys(struct bootstrap *b, uint32_t node, const char *first, const struct keyline_found *found);
/* "connect: WORDS" or "connect: started, but did not reach ADDR:PORT (...)". */
void boot_why_no_connection(const struct bootstrap *b, uint32_t node, struct buf *out);

/* What a node is called in messages. */
static inline const char *boot_host(const struct bootstrap *b, uint32_t node)
{
    return b->label != NULL ? b->label[node] : b->conf->plan->node[node].host;
}

#endif
