/* SPDX-License-Identifier: BSD-3-Clause */
/* root_start.c - from "all are in" to "go", or to a failed start */
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include "common/io/log.h"
#include "server/root_priv.h"

static int fill_tree(struct root *r, const uint32_t *parents, const uint32_t *nodes, uint32_t places)
{
    struct job *j = r->first->job;

    j->places = places;
    j->parent = calloc(places, sizeof(*j->parent));
    j->node_at = calloc(places, sizeof(*j->node_at));
    r->place_of = calloc(r->plan->node_count + 1u, sizeof(*r->place_of));
    r->place_lost = calloc(places, sizeof(*r->place_lost));
    if (j->parent == NULL || j->node_at == NULL || r->place_of == NULL || r->place_lost == NULL)
        return -ENOMEM;
    memcpy(j->parent, parents, places * sizeof(*parents));
    memcpy(j->node_at, nodes, places * sizeof(*nodes));
    for (uint32_t p = 0; p < places; p++)
        if (nodes[p] < r->plan->node_count)
            r->place_of[nodes[p]] = p;
    return 0;
}

void root_wired(struct root *r, const uint32_t *parents, const uint32_t *nodes, uint32_t places)
{
    struct buf body;
    int rc;

    if (r->phase != ROOT_STARTING)
        return;
    r->ops->start_over(r->arg);
    r->phase = ROOT_PREPARING;
    log_info("all %u nodes are in", r->plan->node_count);
    buf_init(&body, MESSAGE_MAX);
    rc = fill_tree(r, parents, nodes, places);
    if (rc == 0)
        rc = job_pack(r->first->job, &body);
    if (rc < 0)
        root_start_failed(r, rc == -E2BIG ? "the environment and arguments are too large" : "out of memory");
    else
        r->ops->send(MSG_JOB, buf_span(&body), false, r->arg);
    buf_done(&body);
}

void root_start_failed(struct root *r, const char *text)
{
    if (r->phase >= ROOT_RUNNING)
        return;
    if (!r->final) {
        const char *p = text;

        r->final = true;
        r->final_status = EXIT_HOST;
        while (*p != '\0') {
            size_t n = strcspn(p, "\n");

            log_error("%.*s", (int)n, p);
            p += n + (p[n] == '\n');
        }
    }
    root_end(r, SIGTERM);
}

/* COMMAND is told where the ranks are served, so that they must be able to come first. */
static void begin_serving(struct root *r)
{
    struct err err = {0};

    if (root_serve_begin(r, &err) < 0)
        root_blame(r, BLAME_STATUS, 1, err.text);
}

static void let_go(struct root_job *j)
{
    j->state = JOB_RUNNING;
    root_send_map(j->root, MSG_GO, root_job_map(j), false);
}

void root_tell_strangers(uint64_t count)
{
    log_warn("%llu connection%s of strangers %s dropped during the start", (unsigned long long)count,
             count == 1 ? "" : "s", count == 1 ? "was" : "were");
}

void root_ready(struct root *r, struct root_job *j, const struct msg_in *m)
{
    char line[ERR_TEXT_MAX];
    uint64_t strangers;

    if (msg_get_u64(m, "strangers", 1, UINT64_MAX, &strangers, NULL) == 0)
        root_tell_strangers(strangers);
    if (root_pmix_versions(r, m, line, sizeof(line)) && r->phase == ROOT_PREPARING) {
        root_blame(r, BLAME_STATUS, 1, line);
        return;
    }
    if (j != r->first && j != r->served) {
        root_spawn_ready(j);
        return;
    }
    if (r->phase != ROOT_PREPARING)
        return;
    if (r->conf->serve_count > 0 && r->served == NULL) {
        begin_serving(r);
        return;
    }
    r->phase = ROOT_RUNNING;
    if (r->served != NULL)
        let_go(r->served);
    let_go(r->first);
    root_input_start(r->input);
}

/* --- its terminal ----------------------------------------------------------------------------------------------- */

void root_window(struct root *r)
{
    root_input_window(r->input);
}

/* Silence of the rank's terminal after which nothing more is waited for: somebody who has outlived it may hold it open.
 */
#define LAST_WORDS_MS 500

static void on_last_words(uv_timer_t *t)
{
    struct root *r = t->data;

    uv_timer_stop(t);
    root_input_terminal(r->input, false);
}

void root_last_words(struct root *r)
{
    uv_timer_start(&r->terminal, on_last_words, LAST_WORDS_MS, LAST_WORDS_MS);
    root_terminal_look(r, (uint32_t)r->first->job->input);
}

void root_terminal_look(struct root *r, uint32_t task)
{
    if (!uv_is_active((uv_handle_t *)&r->terminal) || task != (uint32_t)r->first->job->input)
        return;
    if (r->terminal_eof && outmux_is_written(r->out, task))
        on_last_words(&r->terminal);
    else
        uv_timer_again(&r->terminal);
}

void root_terminal(struct root *r, bool raw)
{
    root_input_terminal(r->input, raw);
}
