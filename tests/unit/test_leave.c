/* SPDX-License-Identifier: BSD-3-Clause */
#include <criterion/criterion.h>
#include <signal.h>
#include <unistd.h>
#include "server/leave.h"

static uv_loop_t loop;
static struct leave leave;
static int got[8];
static unsigned count;

static void on_signal(int sig, void *arg)
{
    cr_expect_eq(arg, &loop);
    got[count++] = sig;
}

/* Each signal to ourselves, and what came of it. */
static void send_all(void)
{
    static const int all[] = {SIGHUP, SIGINT, SIGTERM, SIGUSR1, SIGUSR2};

    cr_assert_eq(uv_loop_init(&loop), 0);
    cr_assert_eq(leave_open(&leave, &loop, on_signal, &loop), 0);
    for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
        unsigned before = count;

        kill(getpid(), all[i]);
        for (int k = 0; k < 10 && count == before; k++)
            uv_run(&loop, UV_RUN_NOWAIT);
    }
    leave_close(&leave);
    leave_close(&leave);
    cr_assert_eq(uv_run(&loop, UV_RUN_DEFAULT), 0);
    cr_assert_eq(uv_loop_close(&loop), 0);
}

Test(leave, signals_come_by_their_number)
{
    signal(SIGHUP, SIG_DFL); /* whoever runs the tests may ignore them */
    signal(SIGINT, SIG_DFL);
    send_all();
    cr_assert_eq(count, 5);
    cr_expect(got[0] == SIGHUP && got[1] == SIGINT && got[2] == SIGTERM && got[3] == SIGUSR1 && got[4] == SIGUSR2);
}

/* As under nohup, and in the background of a script. */
Test(leave, what_was_ignored_at_the_start_stays_ignored)
{
    signal(SIGHUP, SIG_IGN);
    signal(SIGINT, SIG_IGN);
    signal(SIGUSR1, SIG_IGN); /* but for those that are ours alone */
    send_all();
    cr_assert_eq(count, 3);
    cr_expect(got[0] == SIGTERM && got[1] == SIGUSR1 && got[2] == SIGUSR2);
}

Test(leave, only_the_first_process_of_a_container_takes_up_strays)
{
    uv_signal_t handle;

    cr_assert_eq(uv_loop_init(&loop), 0);
    cr_expect_eq(leave_reap_strays(&loop, &handle, 1), 0);
    cr_assert_eq(uv_loop_close(&loop), 0);
}
