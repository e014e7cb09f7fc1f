/* SPDX-License-Identifier: BSD-3-Clause */
/* rsh.c - providers started by a script that logs in to the hosts: which hosts are tried, when, and how often */
#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "bootstrap/rsh.h"
#include "common/io/log.h"
#include "common/util.h"

#define RETRY_BATCH_MS 500 /* those due this soon after the first go along with it */

static void pump(struct bootstrap *b);

static uint32_t slots_used(const struct rsh *r)
{
    uint32_t used = 0;

    for (uint32_t i = 0; i < r->run_count; i++)
        if (!r->run[i]->ended)
            used += MAX(1, MIN(r->run[i]->fanout, r->run[i]->open));
    return used;
}

/* How many logins a run that starts now may have under way; 0: not yet. A run keeps its fan-out to its end, so one that
 * starts with too few slots would be slow for ever. */
static uint32_t slots_free(const struct bootstrap *b)
{
    const struct rsh *r = b->method_data;
    uint32_t fanout = MAX(1, b->conf->conf->rsh_fanout), used;

    if (r->all_at_once)
        return r->pending_count;
    used = slots_used(r);
    if (used >= fanout || fanout - used < MIN(fanout, r->pending_count))
        return 0;
    return fanout - used;
}

/* Is a login under way that has neither joined nor ended? */
static bool is_logging_in(const struct bootstrap *b)
{
    for (uint32_t i = 0; i < b->conf->plan->node_count; i++)
        if (b->node[i].logging_in && (b->node[i].state == NODE_WAITING || b->node[i].state == NODE_KEYED))
            return true;
    return false;
}

/* Those that were turned away because too many came at once are started a few at a time, then one by one, each lot when
 * the one before is in: a fan-out alone would not do, as logins that stay for the run never give up their slot. */
static uint32_t next_lot(const struct bootstrap *b)
{
    static const uint32_t lot[RSH_TRIES_MAX] = {UINT32_MAX, 4, 1};
    const struct rsh *r = b->method_data;
    uint32_t n = 0;

    if (b->node[r->pending[0]].crowded)
        return is_logging_in(b) ? 0 : MIN(r->pending_count, lot[b->node[r->pending[0]].tries]);
    while (n < r->pending_count && !b->node[r->pending[n]].crowded)
        n++;
    return n;
}

/* 0, or a negative errno; nothing more can be started then. */
static int start_pending(struct bootstrap *b, struct err *err)
{
    struct rsh *r = b->method_data;

    while (r->pending_count > 0) {
        uint32_t fanout = slots_free(b), lot = next_lot(b);
        int64_t n;

        if (fanout == 0 || lot == 0)
            return 0;
        n = rsh_run_start(b, r->pending, lot, fanout, err);
        if (n < 0)
            return (int)n;
        r->pending_count -= (uint32_t)n;
        memmove(r->pending, r->pending + n, r->pending_count * sizeof(*r->pending));
    }
    return 0;
}

static void pump(struct bootstrap *b)
{
    struct err err;

    if (!b->over && start_pending(b, &err) < 0)
        boot_fail(b, err.text);
}

static int crowded_last(const void *x, const void *y, void *arg)
{
    const struct bootstrap *b = arg;
    uint32_t i = *(const uint32_t *)x, k = *(const uint32_t *)y;

    if (b->node[i].crowded != b->node[k].crowded)
        return b->node[i].crowded ? 1 : -1;
    return (i > k) - (i < k);
}

static void sort_pending(struct bootstrap *b)
{
    struct rsh *r = b->method_data;

    qsort_r(r->pending, r->pending_count, sizeof(*r->pending), crowded_last, b);
}

static void on_retry(uv_timer_t *t)
{
    struct bootstrap *b = t->data;
    struct rsh *r = b->method_data;
    uint64_t now = uv_now(b->loop), next = UINT64_MAX;
    uint32_t kept = 0;

    for (uint32_t i = 0; i < r->retry_count; i++) {
        uint32_t node = r->retry[i];

        if (b->node[node].state != NODE_WAITING)
            continue; /* its key came late, or it has joined */
        if (r->due[node] <= now + RETRY_BATCH_MS) {
            r->pending[r->pending_count++] = node;
            continue;
        }
        next = MIN(next, r->due[node]);
        r->retry[kept++] = node;
    }
    r->retry_count = kept;
    sort_pending(b);
    if (kept > 0)
        uv_timer_start(t, on_retry, next - now, 0);
    pump(b);
}

void rsh_login_failed(struct bootstrap *b, uint32_t node)
{
    static const uint64_t pause_ms[RSH_TRIES_MAX] = {0, 1000, 3000};
    struct rsh *r = b->method_data;
    struct boot_node *n = &b->node[node];

    if (n->state != NODE_WAITING)
        return;
    if (b->ops.on_login_failed != NULL || n->decisive || n->tries >= RSH_TRIES_MAX) {
        boot_node_failed(b, node);
        return;
    }
    r->due[node] = uv_now(b->loop) + pause_ms[n->tries];
    assert(r->retry_count < b->conf->plan->node_count);
    r->retry[r->retry_count++] = node;
    log_info("%s: %s; trying again", boot_host(b, node), n->words != NULL ? n->words : "no provider came up");
    if (!uv_is_active((uv_handle_t *)&r->retry_timer))
        uv_timer_start(&r->retry_timer, on_retry, pause_ms[n->tries], 0);
}

void rsh_run_ended(struct bootstrap *b)
{
    pump(b);
}

/* Every slot of `run` is held by a login that stays: the hosts still waiting in it would wait for the end of the job.
 * */
static void leave_stalled(struct bootstrap *b, struct rsh_run *run)
{
    struct rsh *r = b->method_data;

    r->all_at_once = true;
    for (uint32_t i = 0; i < run->count; i++) {
        struct boot_node *n = &b->node[run->node[i]];

        if (n->state == NODE_WAITING && n->run == run->number && n->logging_in) {
            n->logging_in = false;
            n->tries = 0; /* it was never tried */
            r->pending[r->pending_count++] = run->node[i];
        }
    }
}

static void rsh_joined(struct bootstrap *b, uint32_t node, bool attached)
{
    struct rsh *r = b->method_data;
    struct boot_node *n = &b->node[node];
    struct rsh_run *run = n->run > 0 ? r->run[n->run - 1] : NULL;

    if (run == NULL || !n->logging_in)
        return;
    if (attached) {
        run->attached++;
        if (!r->all_at_once && run->attached >= run->fanout)
            leave_stalled(b, run);
    } else {
        n->logging_in = false;
        run->open--;
    }
    rsh_run_joined(b, run, node);
    pump(b);
}

static int64_t rsh_node_of(const struct bootstrap *b, uint32_t run, uint32_t index)
{
    const struct rsh *r = b->method_data;

    if (run < 1 || run > r->run_count || index >= r->run[run - 1]->count)
        return -1;
    return r->run[run - 1]->node[index];
}

static int rsh_open(struct bootstrap *b, struct err *err)
{
    const struct conf *conf = b->conf->conf;
    uint32_t nodes = b->conf->plan->node_count;
    struct rsh *r;

    if (b->conf->key[0] == '\0')
        return err_set(err, -EINVAL, "--secret-file goes with --bootstrap=manual; logins need none");
    if (conf->rsh_command != NULL && access(conf->rsh_command, X_OK) < 0)
        return err_set(err, -EINVAL, "--rsh-command='%s': %s", conf->rsh_command, strerror(errno));
    r = calloc(1, sizeof(*r));
    if (r == NULL)
        return err_set(err, -ENOMEM, "out of memory");
    r->pending = calloc(nodes, sizeof(*r->pending));
    r->retry = calloc(nodes, sizeof(*r->retry));
    r->due = calloc(nodes, sizeof(*r->due));
    b->method_data = r;
    boot_timer_init(b, &r->retry_timer);
    if (r->pending == NULL || r->retry == NULL || r->due == NULL)
        return err_set(err, -ENOMEM, "out of memory");
    for (uint32_t i = 0; i < nodes; i++)
        if (b->node[i].state == NODE_WAITING)
            r->pending[r->pending_count++] = i;
    r->total = b->conf->providers > 0 ? b->conf->providers : r->pending_count;
    r->all_at_once = conf->rsh_attach == ATTACH_YES || (conf->rsh_attach == ATTACH_AUTO && !rsh_is_ssh(b->conf));
    if (!b->conf->one_by_one)
        return start_pending(b, err);
    r->pending_count = 0;
    return rsh_check_provider(b, err);
}

static int rsh_login(struct bootstrap *b, uint32_t node, struct err *err)
{
    int64_t rc = rsh_run_start(b, &node, 1, 1, err);

    return rc < 0 ? (int)rc : 0;
}

static void rsh_cancel(struct bootstrap *b, uint32_t node)
{
    struct rsh *r = b->method_data;
    struct rsh_run *run = b->node[node].run > 0 ? r->run[b->node[node].run - 1] : NULL;

    if (run == NULL || run->count > 1)
        return;
    b->node[node].logging_in = false;
    run->ended = true;
    proc_stop(&run->proc);
}

static void rsh_close(struct bootstrap *b)
{
    struct rsh *r = b->method_data;

    boot_handle_close(b, (uv_handle_t *)&r->retry_timer);
}

static void rsh_free(struct bootstrap *b)
{
    struct rsh *r = b->method_data;

    for (uint32_t i = 0; i < r->run_count; i++)
        rsh_run_free(r->run[i]);
    free(r->run);
    free(r->pending);
    free(r->retry);
    free(r->due);
    free(r);
}

const struct boot_method_ops boot_rsh = {
    .open = rsh_open,
    .node_of = rsh_node_of,
    .joined = rsh_joined,
    .login = rsh_login,
    .cancel = rsh_cancel,
    .why = rsh_why,
    .close = rsh_close,
    .free = rsh_free,
};
