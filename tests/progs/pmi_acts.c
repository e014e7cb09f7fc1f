/* SPDX-License-Identifier: BSD-3-Clause */
/* pmi_acts.c - signals, and daemons that nobody waits for */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "tests/progs/pmi_acts.h"

int number(const struct pmi *p, const char *text)
{
    char *end;
    long n = strtol(text, &end, 10);

    if (end == text || *end != '\0' || n < 0 || n > 1000000000)
        pmi_die(p, 2, "'%s' is not a number", text);
    return (int)n;
}

void sleep_ms(int ms)
{
    struct timespec left = {ms / 1000, ms % 1000 * 1000000L};

    while (nanosleep(&left, &left) < 0 && errno == EINTR)
        ;
}

void do_signal(struct pmi *p, char **arg)
{
    struct rlimit none = {0, 0};

    fflush(NULL);
    setrlimit(RLIMIT_CORE, &none);
    signal(number(p, arg[0]), SIG_DFL);
    raise(number(p, arg[0]));
    pmi_die(p, 2, "signal %s did not end us", arg[0]);
}

/* Not even TERM ends this process, nor those it daemonises from here on. */
void do_deaf(struct pmi *p, char **arg)
{
    (void)p;
    (void)arg;
    signal(SIGTERM, SIG_IGN);
    signal(SIGINT, SIG_IGN);
    signal(SIGHUP, SIG_IGN);
}

/* What a trapped signal has to do; a handler may use no more than this. */
static struct {
    char line[64];
    size_t len;
    int status;
} traps[NSIG];

static void trapped(int sig)
{
    if (write(STDOUT_FILENO, traps[sig].line, traps[sig].len) < 0)
        _exit(STATUS_WRONG);
    if (traps[sig].status >= 0)
        _exit(traps[sig].status);
}

/* trap SIGNAL TEXT STATUS|on: at that signal print TEXT, then exit STATUS or go on. A shell that loops around sleep(1)
 * is no such task: while its child is stopped behind vfork(2), it is not stopped itself.
 */
void do_trap(struct pmi *p, char **arg)
{
    struct sigaction sa = {.sa_handler = trapped, .sa_flags = SA_RESTART};
    int sig = number(p, arg[0]);

    if (sig >= NSIG || strlen(arg[1]) > sizeof(traps[sig].line) - 2)
        pmi_die(p, 2, "trap: no such signal, or more text than a line");
    traps[sig].len = (size_t)snprintf(traps[sig].line, sizeof(traps[sig].line), "%s\n", arg[1]);
    traps[sig].status = strcmp(arg[2], "on") == 0 ? -1 : number(p, arg[2]);
    if (sigaction(sig, &sa, NULL) < 0)
        pmi_die(p, 2, "trap %d: %s", sig, strerror(errno));
}

static void be_daemon(int quiet)
{
    int null = open("/dev/null", O_RDWR);

    setsid();
    if (fork() != 0)
        _exit(0);
    for (int fd = 0; quiet && fd < 3; fd++)
        dup2(null, fd);
    for (int fd = 3; quiet && fd < 64; fd++)
        close(fd);
    sleep_ms(600 * 1000);
    _exit(0);
}

/* daemonize N quiet|loud: N grandchildren in sessions of their own, which live for ten minutes. The loud ones hold on
 * to every descriptor: standard output, and the connection to the server.
 */
void do_daemonize(struct pmi *p, char **arg)
{
    fflush(NULL);
    for (int i = number(p, arg[0]); i > 0; i--) {
        pid_t pid = fork();

        if (pid == 0)
            be_daemon(strcmp(arg[1], "loud") != 0);
        if (pid < 0 || waitpid(pid, NULL, 0) != pid)
            pmi_die(p, 2, "fork: %s", strerror(errno));
    }
}
