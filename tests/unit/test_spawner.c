/* SPDX-License-Identifier: BSD-3-Clause */
#include "server/spawner.h"

#include <criterion/criterion.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>
#include "common/strv.h"
#include "common/util.h"
#include "tests/unit/spawner_world.h"

static bool is_started_0(void)
{
    return w.seen[0].started > 0;
}

static bool is_lost(void)
{
    return w.lost;
}

/* Descendants that are not yet reaped. */
static size_t living(void)
{
    struct descendants list = {0};
    size_t n;

    cr_assert_eq(descendants_list(&list, "/proc", getpid(), NULL, 0), 0);
    n = list.count;
    descendants_done(&list);
    return n;
}

/* End of file on `fd`: whoever held the other end has gone. */
static void wait_eof(int fd)
{
    char c;
    ssize_t n;

    alarm(LIMIT_MS / 1000);
    while ((n = read(fd, &c, 1)) > 0)
        ;
    alarm(0);
    cr_expect_eq(n, 0);
}

static void wait_bytes(int fd, size_t want)
{
    char c[64];

    alarm(LIMIT_MS / 1000);
    while (want > 0) {
        ssize_t n = read(fd, c, MIN(want, sizeof(c)));
        cr_assert_gt(n, 0);
        want -= (size_t)n;
    }
    alarm(0);
}

/* Writes a byte to descriptor 1 for each of three daemonised sleepers, which hold it open, then sleeps too. */
#define DAEMONS "for i in 1 2 3; do setsid sh -c '(echo >&1; exec sleep 1000) &' & done; wait; exec sleep 1000"

Test(spawner, exit_codes_and_signals)
{
    setup();
    spawn_sh(0, "exit 0");
    spawn_sh(1, "exit 42");
    spawn_sh(2, "kill -SEGV $$");
    spawn_sh(3, "kill -KILL $$");
    wait_ended(4);
    cr_expect_eq(w.seen[0].wstatus, 0);
    cr_expect_eq(WEXITSTATUS(w.seen[1].wstatus), 42);
    cr_expect(WIFSIGNALED(w.seen[2].wstatus) && WTERMSIG(w.seen[2].wstatus) == SIGSEGV);
    cr_expect(WIFSIGNALED(w.seen[3].wstatus) && WTERMSIG(w.seen[3].wstatus) == SIGKILL);
    teardown();
}

Test(spawner, kill_reaches_the_group_of_one_or_of_all_tasks)
{
    int p[2];
    struct spawn_req req = request(0, SH("sleep 1000 & echo; wait"));

    cr_assert_eq(pipe2(p, O_CLOEXEC), 0);
    setup();
    req.fd[1] = p[1];
    spawn(&req);
    close(p[1]);
    spawn_sh(1, "exec sleep 1000");
    spawn_sh(2, "exec sleep 1000");
    spawn_sh(SPAWN_ID_KEPT + 1, "exec sleep 1000");
    run_until(is_started_0);
    wait_bytes(p[0], 1);
    spawner_kill(w.s, 0, SIGUSR1);
    wait_ended(1);
    cr_expect_eq(WTERMSIG(w.seen[0].wstatus), SIGUSR1);
    wait_eof(p[0]); /* the sleep behind it got it too */
    spawner_kill(w.s, 77, SIGKILL);
    spawner_kill(w.s, SPAWN_ID_ALL, SIGTERM);
    wait_ended(3);
    cr_expect_eq(WTERMSIG(w.seen[1].wstatus), SIGTERM);
    cr_expect_eq(WTERMSIG(w.seen[2].wstatus), SIGTERM);
    cr_expect_eq(seen(SPAWN_ID_KEPT + 1)->exited, 0);
    spawner_kill(w.s, SPAWN_ID_KEPT + 1, SIGKILL);
    wait_ended(4);
    close(p[0]);
    teardown();
}

Test(spawner, kill_right_behind_a_spawn_is_not_lost)
{
    setup();
    for (uint32_t i = 0; i < 30; i++) {
        spawn_sh(i, "exec sleep 1000");
        spawner_kill(w.s, i, SIGTERM);
    }
    wait_ended(30);
    for (uint32_t i = 0; i < 30; i++)
        cr_expect(WIFSIGNALED(w.seen[i].wstatus) && WTERMSIG(w.seen[i].wstatus) == SIGTERM);
    teardown();
}

Test(spawner, stopped_task_heeds_term)
{
    setup();
    spawn_sh(0, "exec sleep 1000");
    spawner_kill(w.s, 0, SIGSTOP);
    spawner_kill(w.s, 0, SIGTERM);
    wait_ended(1);
    cr_expect_eq(WTERMSIG(w.seen[0].wstatus), SIGTERM);
    teardown();
}

Test(spawner, megabyte_of_environment)
{
    struct spawn_req req = request(0, ARGV("/bin/sh", "-c", "env | grep -c ^BIG_"));
    char **env = NULL, big[4096];

    memset(big, 'x', sizeof(big) - 1);
    big[sizeof(big) - 1] = '\0';
    cr_assert_eq(env_set(&env, "PATH", "/bin:/usr/bin"), 0);
    for (int i = 0; i < 256; i++) {
        char name[32];
        snprintf(name, sizeof(name), "BIG_%d", i);
        cr_assert_eq(env_set(&env, name, big), 0);
    }
    setup();
    req.envp = env;
    cr_expect_str_eq(output_of(req), "256\n");
    for (uint32_t i = 1; i <= 8; i++) { /* more than the socket holds */
        req.id = i;
        spawn(&req);
    }
    wait_ended(9);
    for (uint32_t i = 1; i <= 8; i++)
        cr_expect_eq(w.seen[i].wstatus, 0);
    strv_free(env);
    teardown();
}

Test(spawner, two_hundred_tasks_with_four_descriptors_each)
{
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);

    setup();
    for (uint32_t i = 0; i < 200; i++) {
        struct spawn_req req = request(i, ARGV("/bin/true"));
        req.fd[0] = req.fd[1] = req.fd[2] = req.pmi_fd = null;
        spawn(&req);
    }
    wait_ended(200);
    for (uint32_t i = 0; i < 200; i++)
        cr_expect(w.seen[i].started == 1 && w.seen[i].exited == 1 && w.seen[i].wstatus == 0, "task %u", i);
    close(null);
    teardown();
}

Test(spawner, too_large_a_request_is_refused)
{
    size_t len = 65u << 20;
    char *huge = malloc(len + 1);
    struct spawn_req req;
    struct err err = {0};

    cr_assert_not_null(huge);
    memset(huge, 'x', len);
    huge[len] = '\0';
    setup();
    req = request(0, ARGV("/bin/true", huge));
    cr_expect_eq(spawner_spawn(w.s, &req, &err), -E2BIG);
    free(huge);
    teardown();
}

Test(spawner, close_ends_everything)
{
    struct spawn_req req = request(0, SH(DAEMONS));
    int p[2];

    cr_assert_eq(pipe2(p, O_CLOEXEC), 0);
    setup();
    req.fd[1] = p[1];
    spawn(&req);
    close(p[1]);
    wait_bytes(p[0], 3);
    teardown();
    wait_eof(p[0]);
    close(p[0]);
}

/* The worker is a child of the test, which is what its own descendants would fall to. */
Test(spawner, killed_worker_leaves_nothing)
{
    int p[2];
    pid_t worker;

    prctl(PR_SET_CHILD_SUBREAPER, 1);
    cr_assert_eq(pipe2(p, O_CLOEXEC), 0);
    worker = fork();
    if (worker == 0) {
        struct spawn_req req = request(0, SH("trap '' TERM; " DAEMONS));
        setup();
        req.fd[1] = p[1];
        spawn(&req);
        close(p[1]);
        uv_run(&w.loop, UV_RUN_DEFAULT);
        _exit(0);
    }
    close(p[1]);
    wait_bytes(p[0], 3);
    cr_expect_geq(living(), 6);
    kill(worker, SIGKILL);
    wait_eof(p[0]);
    alarm(LIMIT_MS / 1000);
    while (waitpid(-1, NULL, 0) > 0) /* the worker, and its keeper, which fell to us: nothing else outlives that */
        ;
    cr_expect_eq(errno, ECHILD);
    close(p[0]);
}

Test(spawner, killed_keeper_is_noticed_and_leaves_nothing)
{
    struct spawn_req req = request(0, SH(DAEMONS));
    int p[2];

    cr_assert_eq(pipe2(p, O_CLOEXEC), 0);
    setup();
    req.fd[1] = p[1];
    spawn(&req);
    close(p[1]);
    wait_bytes(p[0], 3);
    kill(spawner_keeper_pid(w.s), SIGKILL);
    run_until(is_lost);
    cr_expect_eq(descendants_kill_all(5000), 0);
    cr_expect_eq(living(), 0);
    wait_eof(p[0]);
    close(p[0]);
    cr_expect_eq(spawner_kill(w.s, 0, SIGKILL), 0);
    spawner_close(w.s);
    uv_close((uv_handle_t *)&w.limit, NULL);
    uv_run(&w.loop, UV_RUN_DEFAULT);
    cr_expect_eq(uv_loop_close(&w.loop), 0);
}

Test(spawner, keeper_shrugs_at_signals)
{
    static const int sigs[] = {SIGINT, SIGTERM, SIGHUP, SIGTSTP, SIGPIPE, SIGQUIT, SIGUSR1};

    setup();
    for (size_t i = 0; i < ARRAY_SIZE(sigs); i++)
        cr_expect_eq(kill(w.keeper, sigs[i]), 0);
    spawn_sh(0, "exit 7");
    wait_ended(1);
    cr_expect_eq(WEXITSTATUS(w.seen[0].wstatus), 7);
    teardown();
}

/* A keeper whose worker does not read must still take its words. */
Test(spawner, slow_worker_blocks_nothing)
{
    struct spawn_req req = request(0, ARGV("/bin/sh", "-c", "sleep 1000"));
    int small = 1;

    setup();
    setsockopt(w.fd, SOL_SOCKET, SO_RCVBUF, &small, sizeof(small));
    for (uint32_t i = 0; i < 150; i++) {
        req.id = i;
        spawn(&req);
        spawner_kill(w.s, i, SIGKILL);
    }
    wait_ended(150);
    teardown();
}
