/* SPDX-License-Identifier: BSD-3-Clause */
/* provider_join.c - a node that nobody's login has started: --join by hand, and pods; signals to it, and to Slurm's
 *
 * It stays in the foreground, looks for its launcher by name, and ends as the run does.
 */
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include "common/io/log.h"
#include "common/limits.h"
#include "common/msg.h"
#include "server/provider_priv.h"
#include "server/root.h"
#include "server/spawn_id.h"
#include "server/spawner.h"

/* While it looks for its launcher it says now and then what it waits for. */
#define SEEKING_FIRST_MS 10000
#define SEEKING_EVERY_MS 60000

/* It has not joined. */
static void leave_at_once(struct provider *p, int status)
{
    if (p->node == NULL) {
        if (status == 128 + SIGINT)
            leave_by_int();
        _exit(status); /* there is nothing to end, and a name may still be looked up for a long time */
    }
    provider_end(p, status);
}

void provider_cannot_join(struct provider *p, const struct err *why)
{
    struct err text = *why;

    if (p->conf->is_pod && why->code == -ETIMEDOUT && p->node == NULL)
        err_set(&text, why->code, "%s (see kubectl get pods,services,networkpolicies, and the log of pod 0)",
                why->text);
    provider_say(p, text.text);
    leave_at_once(p, EXIT_HOST);
}

void provider_end_as_run(struct provider *p)
{
    char text[128];

    if (p->conf->join == NULL) {
        provider_end(p, p->run_status == 0 ? 0 : 1); /* nobody looks at it but a login that has no use for it */
        return;
    }
    if (p->run_status != 0 && !p->closing) {
        snprintf(text, sizeof(text), "the run has ended with status %d; why, %s says", p->run_status,
                 p->conf->is_pod ? "the log of pod 0" : "its launcher");
        provider_say(p, text);
    }
    provider_end(p, p->run_status);
}

void provider_lost_launcher(struct provider *p, const struct err *why)
{
    struct err text;

    err_set(&text, -ECONNRESET, "the launcher, or what leads to it, is lost: %s",
            why->code < 0 ? why->text : "it closed the connection");
    provider_say(p, text.text);
    provider_end(p, EXIT_HOST);
}

static void on_seeking(uv_timer_t *t)
{
    struct provider *p = t->data;
    struct buf text = {0};

    buf_add_str(&text, "waiting for the launcher: ");
    join_node_state(p->join, &text);
    if (buf_str(&text) != NULL)
        provider_say(p, text.p);
    buf_done(&text);
}

static int tell_leaving(struct provider *p, int sig)
{
    struct msg_out *m = msg_out_new();
    struct span body;
    int rc;

    if (m == NULL)
        return -ENOMEM;
    msg_put_u64(m, "place", p->place);
    msg_put_u64(m, "signal", (uint64_t)sig);
    rc = msg_out_done(m, &body);
    if (rc == 0)
        rc = links_send(p->links, LINKS_PARENT, MSG_LEAVING, body, false);
    msg_out_free(m);
    return rc;
}

/* This node is to end, and with it the run: the launcher says so to all, this node's tasks among them, which have the
 * usual time for it. Where it does not know us yet, or cannot be told, or at a second signal, we end at once. */
static void on_leave(struct provider *p, int sig)
{
    if (p->node == NULL)
        leave_at_once(p, 128 + sig);
    else if (p->told_to_leave || !links_has(p->links, LINKS_PARENT) || tell_leaving(p, sig) < 0)
        provider_end(p, 128 + sig);
    else
        p->told_to_leave = true;
}

static void on_signal(int sig, void *arg)
{
    struct provider *p = arg;

    if (sig == SIGUSR1 || sig == SIGUSR2)
        (void)spawner_kill(p->spawner, SPAWN_ID_ALL, sig);
    else
        on_leave(p, sig);
}

int provider_catch_signals(struct provider *p, struct err *err)
{
    int rc = leave_open(&p->leave, &p->loop, on_signal, p);

    return rc < 0 ? err_set(err, rc, "cannot catch signals: %s", uv_strerror(rc)) : 0;
}

void provider_seek(struct provider *p)
{
    uv_timer_start(&p->key_line, on_seeking, SEEKING_FIRST_MS, SEEKING_EVERY_MS);
}

int provider_join(const struct conf *conf)
{
    struct provider p = {.login_done = -1, .login_out = -1, .login_err = -1, .run_status = -1};
    struct err err = {0};

    if (provider_conf_join(conf, &p.conf, &err) < 0) {
        log_error("%s", err.text);
        return 1;
    }
    return provider_start(&p);
}
