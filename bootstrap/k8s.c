/* SPDX-License-Identifier: BSD-3-Clause */
/* k8s.c - providers that Kubernetes starts: the other pods of the Job come by themselves, and prove who they are by the
 * secret that is mounted in all of them
 */
#include <inttypes.h>
#include "bootstrap/boot.h"

#define PODS_SHOWN_MAX 300 /* bytes of a list of pods */

static int k8s_open(struct bootstrap *b, struct err *err)
{
    (void)b;
    (void)err;
    return 0;
}

static bool is_missing(const struct bootstrap *b, uint32_t node)
{
    return b->node[node].state == NODE_WAITING;
}

/* "3,7-9" */
static void list_missing(const struct bootstrap *b, struct buf *out)
{
    uint32_t count = b->conf->plan->node_count, last;
    size_t start = out->len;

    for (uint32_t i = 0; i < count; i = last + 1) {
        last = i;
        if (!is_missing(b, i))
            continue;
        while (last + 1 < count && is_missing(b, last + 1))
            last++;
        if (out->len - start > PODS_SHOWN_MAX) {
            buf_add_str(out, ",...");
            return;
        }
        buf_printf(out, "%s%" PRIu32, out->len > start ? "," : "", i);
        if (last > i)
            buf_printf(out, "-%" PRIu32, last);
    }
}

static void k8s_awaited(const struct bootstrap *b, struct buf *out)
{
    buf_add_str(out, b->awaited == 1 ? "pod " : "pods ");
    list_missing(b, out);
}

static void k8s_stalled(const struct bootstrap *b, struct buf *out)
{
    k8s_awaited(b, out);
    buf_printf(out, " %s not come (nobody within %g s; see kubectl get pods, and the logs of those that run)",
               b->awaited == 1 ? "has" : "have", (double)b->conf->conf->start_timeout_ms / 1000);
}

static void k8s_why(const struct bootstrap *b, uint32_t node, struct buf *out)
{
    (void)b;
    (void)node;
    buf_add_str(out, "start: it has not come");
}

/* There is no data of this method's own: a pod says its number itself. */
const struct boot_method_ops boot_k8s = {
    .open = k8s_open,
    .why = k8s_why,
    .awaited = k8s_awaited,
    .stalled = k8s_stalled,
};
