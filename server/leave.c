/* SPDX-License-Identifier: BSD-3-Clause */
#include "server/leave.h"

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/wait.h>
#include <unistd.h>

static void on_signal(uv_signal_t *h, int sig)
{
    struct leave *l = h->data;

    l->on_signal(sig, l->arg);
}

/* As under nohup, or for ^C in the background of a script: whoever started us has asked for that. */
static bool stays_ignored(int sig)
{
    struct sigaction sa;

    return (sig == SIGHUP || sig == SIGINT) && sigaction(sig, NULL, &sa) == 0 && !(sa.sa_flags & SA_SIGINFO) &&
           sa.sa_handler == SIG_IGN;
}

int leave_open(struct leave *l, uv_loop_t *loop, void (*fn)(int sig, void *arg), void *arg)
{
    static const int wanted[LEAVE_SIGNALS] = {SIGHUP, SIGINT, SIGTERM, SIGUSR1, SIGUSR2};
    int rc = 0;

    l->on_signal = fn;
    l->arg = arg;
    l->count = 0;
    for (unsigned i = 0; rc == 0 && i < LEAVE_SIGNALS; i++) {
        uv_signal_t *h = &l->handle[l->count];

        if (stays_ignored(wanted[i]))
            continue;
        uv_signal_init(loop, h);
        h->data = l;
        l->count++;
        rc = uv_signal_start(h, on_signal, wanted[i]);
    }
    return rc;
}

void leave_close(struct leave *l)
{
    while (l->count > 0)
        uv_close((uv_handle_t *)&l->handle[--l->count], NULL);
}

static void on_child(uv_signal_t *h, int sig)
{
    pid_t keeper = (pid_t)(intptr_t)h->data;
    siginfo_t info = {0};

    (void)sig;
    /* Looked at first: the keeper's own end is its owner's to see. */
    while (waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) == 0 && info.si_pid != 0 && info.si_pid != keeper)
        (void)waitpid(info.si_pid, NULL, WNOHANG);
}

int leave_reap_strays(uv_loop_t *loop, uv_signal_t *h, pid_t keeper)
{
    if (getpid() != 1)
        return 0;
    uv_signal_init(loop, h);
    h->data = (void *)(intptr_t)keeper;
    (void)uv_signal_start(h, on_child, SIGCHLD);
    return 1;
}

void leave_by_int(void)
{
    sigset_t set;

    (void)signal(SIGINT, SIG_DFL);
    sigemptyset(&set);
    sigaddset(&set, SIGINT);
    sigprocmask(SIG_UNBLOCK, &set, NULL);
    raise(SIGINT);
}
