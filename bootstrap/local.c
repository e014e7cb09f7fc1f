/* SPDX-License-Identifier: BSD-3-Clause */
/* local.c - nodes played on this machine: one provider process each, started by the launcher itself */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include "bootstrap/boot.h"
#include "bootstrap/command.h"
#include "common/io/log.h"
#include "common/strv.h"
#include "common/util.h"

struct local_proc {
    struct proc proc;
    uint32_t node;
    char key[KEYLINE_KEY_LEN + 1];
};

struct local {
    struct local_proc *proc; /* by index in the run */
    uint32_t count;
};

static struct local_proc *of_proc(struct proc *p)
{
    return CONTAINER_OF(p, struct local_proc, proc);
}

static void on_key(struct proc *p, const struct keyline_found *found)
{
    struct local *l = p->boot->method_data;
    struct local_proc *lp = of_proc(p);

    /* The pipe says who it is. */
    if (found->run != 1 || found->index != (uint32_t)(lp - l->proc) || lp->key[0] != '\0')
        return;
    memcpy(lp->key, found->key, sizeof(lp->key));
    boot_node_key(p->boot, lp->node, found);
}

static void on_line(struct proc *p, bool is_err, const struct hostwords_line *line)
{
    struct boot_node *n = &p->boot->node[of_proc(p)->node];

    if (is_err)
        boot_node_words(n, span_starts(line->whole, "pmi-start: ") ? line->text : line->whole);
}

static void on_end(struct proc *p, int wstatus)
{
    uint32_t node = of_proc(p)->node;

    (void)wstatus;
    boot_node_failed(p->boot, node); /* but for one that has joined */
}

static const struct proc_ops proc_ops = {.on_key = on_key, .on_line = on_line, .on_end = on_end};

static int start_one(struct bootstrap *b, struct local_proc *lp, char *const *words, struct err *err)
{
    struct local *l = b->method_data;
    char rank[32], **argv = strv_dup(words);
    int rc = argv == NULL ? -ENOMEM : 0;

    snprintf(rank, sizeof(rank), "--pmi-rank=%td", lp - l->proc);
    if (rc == 0)
        rc = strv_add(&argv, rank);
    b->node[lp->node].run = 1;
    b->node[lp->node].index = (uint32_t)(lp - l->proc);
    if (rc < 0)
        err_set(err, rc, "out of memory");
    else
        rc = proc_start(&lp->proc, b, &proc_ops, argv, b->conf->envp, err);
    strv_free(argv);
    return rc;
}

static int start_all(struct bootstrap *b, struct err *err)
{
    struct local *l = b->method_data;
    char **words = NULL;
    int rc = command_argv(b->conf, b->conf->self_path, l->count + 1, 1, ATTACH_YES, &words);

    if (rc < 0)
        err_set(err, rc, "out of memory");
    for (uint32_t i = 0, node = 0; rc == 0 && i < l->count; node++) {
        if (b->node[node].state == NODE_SELF)
            continue;
        l->proc[i].node = node;
        rc = start_one(b, &l->proc[i++], words, err);
    }
    strv_free(words);
    return rc;
}

/* Two pipes and a connection each, until all are in, at the least. */
static int check_room(const struct bootstrap *b, struct err *err)
{
    uint64_t need = UINT64_C(3) * b->awaited;
    struct rlimit lim;

    if (getrlimit(RLIMIT_NOFILE, &lim) < 0 || lim.rlim_cur == RLIM_INFINITY || need <= lim.rlim_cur)
        return 0;
    return err_set(err, -EMFILE,
                   "--nodes=%" PRIu32 ": too many open files: it takes %" PRIu64
                   " here, and the limit (ulimit -n) is %" PRIu64 ": play fewer nodes, or raise it",
                   b->conf->plan->node_count, need, (uint64_t)lim.rlim_cur);
}

static int local_open(struct bootstrap *b, struct err *err)
{
    struct local *l;
    int rc = check_room(b, err);

    if (rc < 0)
        return rc;

    if (b->conf->key[0] == '\0')
        return err_set(err, -EINVAL, "--secret-file goes with --bootstrap=manual; local needs none");
    l = calloc(1, sizeof(*l));
    if (l != NULL)
        l->proc = calloc(b->awaited, sizeof(*l->proc));
    if (l == NULL || l->proc == NULL) {
        free(l);
        return err_set(err, -ENOMEM, "out of memory");
    }
    l->count = b->awaited;
    b->method_data = l;
    b->label = calloc(b->conf->plan->node_count, sizeof(*b->label));
    if (b->label == NULL)
        return err_set(err, -ENOMEM, "out of memory");
    for (uint32_t i = 0; i < b->conf->plan->node_count; i++)
        snprintf(b->label[i], sizeof(b->label[i]), "node%" PRIu32, i);
    return start_all(b, err);
}

static int64_t local_node_of(const struct bootstrap *b, uint32_t run, uint32_t index)
{
    const struct local *l = b->method_data;

    return run == 1 && index < l->count ? (int64_t)l->proc[index].node : -1;
}

static void local_why(const struct bootstrap *b, uint32_t node, struct buf *out)
{
    const struct local *l = b->method_data;
    const struct boot_node *n = &b->node[node];
    const struct proc *p = &l->proc[n->index].proc;

    if (l->proc[n->index].key[0] != '\0' && (n->words != NULL || !p->exited)) {
        boot_why_no_connection(b, node, out);
        return;
    }
    buf_add_str(out, "start: ");
    if (n->words != NULL)
        buf_add_str(out, n->words);
    else if (p->exited)
        proc_end_text(p, out);
    else
        buf_printf(out, "no word from %s within %" PRIu64 " s", b->conf->self_path,
                   b->conf->conf->start_timeout_ms / 1000);
}

static void local_free(struct bootstrap *b)
{
    struct local *l = b->method_data;

    free(b->label);
    free(l->proc);
    free(l);
}

const struct boot_method_ops boot_local = {
    .open = local_open,
    .node_of = local_node_of,
    .why = local_why,
    .free = local_free,
};
