/* SPDX-License-Identifier: BSD-3-Clause */
/* launcher_signal.c - signals to the launcher: the end, those that are handed on, stop and go on */
#include <signal.h>
#include <unistd.h>
#include "common/msg.h"
#include "server/launcher_priv.h"

/* After telling the nodes, how long to go on before stopping ourselves, so that the words are on their way. */
#define STOP_AFTER_MS 100

static void tell_pause(struct launcher *l, bool on)
{
    struct msg_out *m = msg_out_new();
    struct span body;

    if (m != NULL) {
        msg_put_bool(m, "on", on);
        if (msg_out_done(m, &body) == 0)
            node_down(l->node, MSG_PAUSE, body);
    }
    msg_out_free(m);
}

static void on_stop(uv_timer_t *t)
{
    struct launcher *l = t->data;

    root_terminal(l->root, false);
    (void)kill(getpid(), SIGSTOP);
}

static void stop_all(struct launcher *l)
{
    tell_pause(l, true);
    root_signal(l->root, SIGSTOP); /* a task's process group is orphaned, so TSTP would be ignored there */
    uv_timer_start(&l->stop, on_stop, STOP_AFTER_MS, 0);
}

static void go_on(struct launcher *l)
{
    uv_timer_stop(&l->stop); /* it may come before we have stopped */
    tell_pause(l, false);
    root_signal(l->root, SIGCONT);
    root_terminal(l->root, true);
    root_window(l->root);
}

static void on_signal(uv_signal_t *h, int sig)
{
    struct launcher *l = h->data;

    if (l->closing)
        return;
    l->interrupted = l->interrupted || sig == SIGINT;
    if (sig == SIGTSTP)
        stop_all(l);
    else if (sig == SIGCONT)
        go_on(l);
    else if (sig == SIGWINCH)
        root_window(l->root);
    else
        root_signal(l->root, sig);
}

int launcher_signals_open(struct launcher *l, struct err *err)
{
    static const int wanted[] = {SIGINT, SIGTERM, SIGHUP, SIGUSR1, SIGUSR2, SIGQUIT, SIGTSTP, SIGCONT, SIGWINCH};

    for (size_t i = 0; i < sizeof(wanted) / sizeof(wanted[0]); i++) {
        uv_signal_t *h = &l->signal[l->signal_count];
        int rc;

        if ((wanted[i] == SIGHUP && l->limits.ignore_hup) || (wanted[i] == SIGINT && l->limits.ignore_int) ||
            (wanted[i] == SIGWINCH && !l->conf->pty))
            continue;
        uv_signal_init(&l->loop, h);
        h->data = l;
        l->signal_count++;
        rc = uv_signal_start(h, on_signal, wanted[i]);
        if (rc < 0)
            return err_set(err, rc, "cannot catch signal %d: %s", wanted[i], uv_strerror(rc));
    }
    l->reaps = leave_reap_strays(&l->loop, &l->strays, l->keeper_pid) == 1;
    return 0;
}

void launcher_signals_close(struct launcher *l)
{
    if (l->reaps)
        uv_close((uv_handle_t *)&l->strays, NULL);
    l->reaps = false;
    for (unsigned i = 0; i < l->signal_count; i++)
        uv_close((uv_handle_t *)&l->signal[i], NULL);
    l->signal_count = 0;
}

void launcher_signals_last(const struct launcher *l, int status)
{
    if (l->interrupted && status == 128 + SIGINT)
        leave_by_int();
}
