/* SPDX-License-Identifier: BSD-3-Clause */
#include "server/task_exec.h"

#include <criterion/criterion.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>
#include "common/strv.h"
#include "tests/unit/spawner_world.h"

Test(task_exec, failures_tell_stage_and_errno)
{
    struct spawn_req req = request(0, ARGV("/nowhere/prog"));

    setup();
    spawn(&req);
    req = request(1, ARGV("/etc/passwd"));
    spawn(&req);
    req = request(2, ARGV("/bin/true"));
    req.dir = "/nowhere";
    spawn(&req);
    wait_ended(3);
    cr_expect(w.seen[0].failed == 1 && w.seen[0].stage == SPAWN_EXEC && w.seen[0].err_no == ENOENT);
    cr_expect(w.seen[1].failed == 1 && w.seen[1].stage == SPAWN_EXEC && w.seen[1].err_no == EACCES);
    cr_expect(w.seen[2].failed == 1 && w.seen[2].stage == SPAWN_CHDIR && w.seen[2].err_no == ENOENT);
    for (int i = 0; i < 3; i++)
        cr_expect_eq(w.seen[i].started + w.seen[i].exited, 0);
    teardown();
}

Test(task_exec, directory_umask_and_limits)
{
    struct task_limits limits;
    struct spawn_req req = request(0, SH("pwd; umask; ulimit -n; ulimit -c"));
    char want[200];
    struct rlimit files;

    task_limits_capture(&limits);
    getrlimit(RLIMIT_NOFILE, &files);
    limits.umask = 027;
    limits.soft[RLIMIT_NOFILE] = 123;
    limits.soft[RLIMIT_CORE] = 0;
    setup();
    req.dir = "/usr/bin";
    req.limits = &limits;
    cr_expect_str_eq(output_of(req), "/usr/bin\n0027\n123\n0\n");
    limits.soft[RLIMIT_NOFILE] = UINT64_MAX; /* more than the hard limit allows */
    req.id = 1;
    req.argv = SH("ulimit -n; ulimit -Hn");
    snprintf(want, sizeof(want), "%llu\n%llu\n", (unsigned long long)files.rlim_max,
             (unsigned long long)files.rlim_max);
    cr_expect_str_eq(output_of(req), want);
    teardown();
}

Test(task_exec, own_umask_and_limits_are_captured)
{
    struct task_limits limits;
    struct rlimit core = {0};

    umask(031);
    setrlimit(RLIMIT_CORE, &core);
    signal(SIGHUP, SIG_IGN);
    signal(SIGINT, SIG_DFL); /* a background job of a script has it ignored */
    task_limits_capture(&limits);
    cr_expect_eq(limits.umask, 031);
    cr_expect_eq(umask(0), 031);
    cr_expect(limits.set[RLIMIT_CORE] && limits.soft[RLIMIT_CORE] == 0);
    cr_expect(limits.set[RLIMIT_NOFILE] && !limits.set[RLIMIT_NPROC]);
    cr_expect(limits.ignore_hup && !limits.ignore_int);
}

static void expect_signals(const char *text, unsigned long long ignored_want)
{
    unsigned long long blocked, ignored;

    cr_assert_eq(sscanf(text, "SigBlk: %llx SigIgn: %llx", &blocked, &ignored), 2, "%s", text);
    cr_expect_eq(blocked, 0);
    cr_expect_eq(ignored, ignored_want);
}

Test(task_exec, signals_are_default_but_those_ignored_at_the_start)
{
    struct spawn_req req = request(0, ARGV("/bin/grep", "-E", "Sig(Ign|Blk)", "/proc/self/status"));
    struct task_limits limits = {.umask = 022, .ignore_hup = true};
    sigset_t all;

    sigfillset(&all);
    sigprocmask(SIG_BLOCK, &all, NULL);
    signal(SIGPIPE, SIG_IGN);
    signal(SIGUSR1, SIG_IGN);
    signal(SIGCHLD, SIG_IGN);
    setup();
    expect_signals(output_of(req), 0);
    req.limits = &limits;
    req.id = 1;
    expect_signals(output_of(req), 1u << (SIGHUP - 1));
    teardown();
}

Test(task_exec, only_its_own_descriptors)
{
    struct spawn_req req = request(0, SH("cd /proc/self/fd; for f in *; do test -e $f && echo $f; done; true"));
    int leak = dup(1), pair[2]; /* not close-on-exec */

    cr_assert_geq(leak, 3);
    cr_assert_eq(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
    setup();
    cr_expect_str_eq(output_of(req), "0\n1\n2\n");
    req.pmi_fd = pair[0];
    req.id = 1;
    cr_expect_str_eq(output_of(req), "0\n1\n2\n3\n");
    teardown();
}

Test(task_exec, descriptors_reach_their_places)
{
    struct spawn_req req = request(0, SH("echo out; echo err >&2; cat; cat <&3"));
    int in[2], pmi[2];

    cr_assert_eq(pipe2(in, O_CLOEXEC), 0);
    cr_assert_eq(pipe2(pmi, O_CLOEXEC), 0);
    cr_assert_eq(write(in[1], "in\n", 3), 3);
    cr_assert_eq(write(pmi[1], "pmi\n", 4), 4);
    close(in[1]);
    close(pmi[1]);
    setup();
    req.fd[0] = in[0];
    req.pmi_fd = pmi[0];
    cr_expect_str_eq(output_of(req), "out\nin\npmi\n");
    teardown();
}

Test(task_exec, script_without_interpreter_line_is_run_by_sh)
{
    char path[] = "/tmp/test_spawner.XXXXXX";
    int fd = mkstemp(path);
    struct spawn_req req = request(0, ARGV("whatever", "a b", "c"));

    cr_assert_eq(write(fd, "echo \"$# $1\"\n", 13), 13);
    fchmod(fd, 0755);
    close(fd);
    setup();
    req.program = path;
    cr_expect_str_eq(output_of(req), "2 a b\n");
    unlink(path);
    teardown();
}

Test(task_exec, session_of_its_own)
{
    struct spawn_req req = request(0, SH("cut -d' ' -f 1,5,6 /proc/$$/stat"));
    int pid, pgrp, sid;

    setup();
    cr_assert_eq(sscanf(output_of(req), "%d %d %d", &pid, &pgrp, &sid), 3);
    cr_expect(pid == w.seen[0].pid && pgrp == pid && sid == pid);
    teardown();
}

Test(task_exec, arguments_byte_for_byte)
{
    char **argv = NULL;
    struct spawn_req req;

    strv_add(&argv, "/usr/bin/printf");
    strv_add(&argv, "<%s>");
    strv_add(&argv, "");
    strv_add(&argv, " a'\"$\\ \n\t*");
    strv_add(&argv, "\x01\xff\xc3");
    setup();
    req = request(0, argv);
    cr_expect_str_eq(output_of(req), "<>< a'\"$\\ \n\t*><\x01\xff\xc3>");
    strv_free(argv);
    teardown();
}
