/* SPDX-License-Identifier: BSD-3-Clause */
/* manual.c - providers started by hand: say what to run where, and wait
 *
 * Nothing comes back over a login, so no key line can vouch for a provider: a secret shared beforehand does.
 */
#include <inttypes.h>
#include <stdlib.h>
#include "bootstrap/boot.h"
#include "bootstrap/command.h"
#include "common/io/log.h"
#include "common/strv.h"

struct manual {
    uint32_t *node; /* by index */
    uint32_t count;
};

static int command_text(struct bootstrap *b, uint32_t count, struct buf *out, struct err *err)
{
    const char *program = b->conf->conf->remote_path != NULL ? b->conf->conf->remote_path : b->conf->self_path;
    char **words = NULL;
    int rc = command_argv(b->conf, program, count + 1, 1, ATTACH_YES, &words);

    if (rc < 0)
        err_set(err, rc, "out of memory");
    else
        rc = command_line(words, out, err);
    if (rc == 0 && buf_str(out) == NULL)
        rc = err_set(err, -ENOMEM, "out of memory");
    strv_free(words);
    return rc;
}

static int manual_open(struct bootstrap *b, struct err *err)
{
    struct buf text = {0};
    struct manual *m;
    int rc;

    if (b->conf->conf->secret_file == NULL)
        return err_set(err, -EINVAL,
                       "--bootstrap=manual needs --secret-file=FILE, the same on every host; "
                       "pmi-start --new-secret=FILE makes one");
    m = calloc(1, sizeof(*m));
    if (m != NULL)
        m->node = calloc(b->awaited, sizeof(*m->node));
    if (m == NULL || m->node == NULL) {
        free(m);
        return err_set(err, -ENOMEM, "out of memory");
    }
    m->count = 0;
    b->method_data = m;
    rc = command_text(b, b->awaited, &text, err);
    /* Said at any --quiet: without these lines nothing can go on. */
    if (rc == 0)
        log_error("start these, each on its host:");
    for (uint32_t i = 0; rc == 0 && i < b->conf->plan->node_count; i++) {
        if (b->node[i].state == NODE_SELF)
            continue;
        log_error("%s: %s --pmi-rank=%" PRIu32, b->conf->plan->node[i].login, text.p, m->count);
        m->node[m->count++] = i;
    }
    buf_done(&text);
    return rc;
}

static int64_t manual_node_of(const struct bootstrap *b, uint32_t run, uint32_t index)
{
    const struct manual *m = b->method_data;

    return run == 1 && index < m->count ? (int64_t)m->node[index] : -1;
}

static void manual_why(const struct bootstrap *b, uint32_t node, struct buf *out)
{
    (void)node;
    buf_printf(out, "start: nobody connected within %g s", (double)b->conf->conf->start_timeout_ms / 1000);
}

static void manual_free(struct bootstrap *b)
{
    struct manual *m = b->method_data;

    free(m->node);
    free(m);
}

const struct boot_method_ops boot_manual = {
    .open = manual_open,
    .node_of = manual_node_of,
    .why = manual_why,
    .awaited = boot_waiting_names,
    .free = manual_free,
};
