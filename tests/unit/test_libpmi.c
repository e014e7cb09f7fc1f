/* SPDX-License-Identifier: BSD-3-Clause */
#include <criterion/criterion.h>
#include <criterion/redirect.h>
#include <arpa/inet.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>
#include "client/pmi.h"
#include "tests/unit/script.h"

#define MAXES "cmd=maxes rc=0 kvsname_max=64 keylen_max=64 vallen_max=1024\n"
#define START "cmd=response_to_init rc=0 pmi_version=1 pmi_subversion=1\n" MAXES
#define STARTED "cmd=init pmi_version=1 pmi_subversion=1\ncmd=get_maxes\n"

static int start(const char *more)
{
    int server = script_start(START), spawned = 7;

    script_say(server, more);
    cr_assert_eq(PMI_Init(&spawned), PMI_SUCCESS);
    cr_expect_eq(spawned, 0);
    script_expect(server, STARTED);
    return server;
}

Test(libpmi, put_get_barrier)
{
    int server = start("cmd=put_result rc=0\ncmd=barrier_out rc=0\ncmd=get_result rc=0 value= a=b  c \n"
                       "cmd=get_result rc=4 msg=no_such_key\ncmd=finalize_ack rc=0\n");
    char value[32] = "";
    int n = -7;

    cr_expect_eq(PMI_Get_rank(&n), PMI_SUCCESS);
    cr_expect_eq(n, 1);
    cr_expect_eq(PMI_Get_size(&n), PMI_SUCCESS);
    cr_expect_eq(n, 4);
    cr_expect_eq(PMI_KVS_Put("job", "k", " a=b  c "), PMI_SUCCESS);
    cr_expect_eq(PMI_KVS_Commit("job"), PMI_SUCCESS);
    cr_expect_eq(PMI_Barrier(), PMI_SUCCESS);
    cr_expect_eq(PMI_KVS_Get("job", "k", value, sizeof(value)), PMI_SUCCESS);
    cr_expect_str_eq(value, " a=b  c ");
    cr_expect_eq(PMI_KVS_Get("job", "l", value, sizeof(value)), PMI_ERR_INVALID_KEY);
    cr_expect_eq(PMI_Finalize(), PMI_SUCCESS);
    script_expect(server, "cmd=put kvsname=job key=k value= a=b  c \ncmd=barrier_in\ncmd=get kvsname=job key=k\n"
                          "cmd=get kvsname=job key=l\ncmd=finalize\n");
}

Test(libpmi, asks_for_what_does_not_change_but_once)
{
    int server = start("cmd=my_kvsname rc=0 kvsname=job-7\ncmd=appnum rc=0 appnum=3\ncmd=universe_size rc=0 size=-1\n"
                       "cmd=get_result rc=0 value=(vector,(0,2,2))\n");
    int n = -7, ranks[4];
    char name[64];

    for (int i = 0; i < 2; i++) {
        cr_expect_eq(PMI_KVS_Get_my_name(name, sizeof(name)), PMI_SUCCESS);
        cr_expect_str_eq(name, "job-7");
        cr_expect_eq(PMI_Get_appnum(&n), PMI_SUCCESS);
        cr_expect_eq(n, 3);
    }
    cr_expect_eq(PMI_Get_universe_size(&n), PMI_SUCCESS);
    cr_expect_eq(n, -1);
    cr_expect_eq(PMI_Get_clique_size(&n), PMI_SUCCESS);
    cr_expect_eq(n, 2);
    cr_expect_eq(PMI_Get_clique_ranks(ranks, 4), PMI_SUCCESS);
    cr_expect(ranks[0] == 0 && ranks[1] == 1);
    script_expect(server, "cmd=get_my_kvsname\ncmd=get_appnum\ncmd=get_universe_size\n"
                          "cmd=get kvsname=job-7 key=PMI_process_mapping\n");
}

Test(libpmi, without_a_mapping_every_rank_is_by_itself)
{
    int n = -7, ranks[1];

    start("cmd=my_kvsname rc=0 kvsname=job-7\ncmd=get_result rc=-1 msg=key_not_found value=unknown\n");
    cr_expect_eq(PMI_Get_clique_size(&n), PMI_SUCCESS);
    cr_expect_eq(n, 1);
    cr_expect_eq(PMI_Get_clique_ranks(ranks, 1), PMI_SUCCESS);
    cr_expect_eq(ranks[0], 1);
}

/* Hydra 4.1.1 to 4.2.0. */
Test(libpmi, found_behind_a_value_is_no_part_of_it)
{
    char value[32];

    start("cmd=get_result rc=0 msg=success value=v w found=TRUE\n");
    cr_expect_eq(PMI_KVS_Get("job", "k", value, sizeof(value)), PMI_SUCCESS);
    cr_expect_str_eq(value, "v w");
}

Test(libpmi, codes_of_the_server_are_passed_on)
{
    start("cmd=put_result rc=7 msg=too_long\ncmd=put_result rc=1\ncmd=put_result rc=99\ncmd=put_result rc=-3\n");
    cr_expect_eq(PMI_KVS_Put("job", "k", "v"), PMI_ERR_INVALID_VAL_LENGTH);
    cr_expect_eq(PMI_KVS_Put("job", "k", "v"), PMI_FAIL);
    cr_expect_eq(PMI_KVS_Put("job", "k", "v"), PMI_FAIL);
    cr_expect_eq(PMI_KVS_Put("job", "k", "v"), PMI_FAIL);
}

Test(libpmi, names)
{
    int server = start("cmd=publish_result rc=0\ncmd=lookup_result port=p#1$ info=ok rc=0 msg=success\n"
                       "cmd=lookup_result rc=1 msg=service_not_found\ncmd=unpublish_result rc=0\n");
    char port[1024];

    cr_expect_eq(PMI_Publish_name("s", "p#1$"), PMI_SUCCESS);
    cr_expect_eq(PMI_Lookup_name("s", port), PMI_SUCCESS);
    cr_expect_str_eq(port, "p#1$");
    cr_expect_eq(PMI_Lookup_name("t", port), PMI_FAIL);
    cr_expect_eq(PMI_Unpublish_name("s"), PMI_SUCCESS);
    cr_expect_eq(PMI_Publish_name("two words", "p"), PMI_ERR_INVALID_ARG);
    cr_expect_eq(PMI_Publish_name("s", "two words"), PMI_ERR_INVALID_ARG);
    script_expect(server, "cmd=publish_name service=s port=p#1$\ncmd=lookup_name service=s\ncmd=lookup_name service=t\n"
                          "cmd=unpublish_name service=s\n");
}

static const char spawn_request[] =
    "mcmd=spawn\nnprocs=2\nexecname=/bin/a\ntotspawns=2\nspawnssofar=1\narg1= x y\narg2=\n"
    "argcnt=2\npreput_num=1\npreput_key_0=pk\npreput_val_0=p v\ninfo_num=1\n"
    "info_key_0=wdir\ninfo_val_0=/t m\nendcmd\n"
    "mcmd=spawn\nnprocs=1\nexecname=b\ntotspawns=2\nspawnssofar=2\nargcnt=0\n"
    "preput_num=1\npreput_key_0=pk\npreput_val_0=p v\ninfo_num=0\nendcmd\n";

Test(libpmi, spawn)
{
    int server = start("cmd=spawn_result rc=0 errcodes=0,0,1\ncmd=spawn_result rc=0\ncmd=spawn_result rc=0 errcodes=0\n"
                       "cmd=spawn_result rc=-1 msg=not_served\n");
    const char *cmds[] = {"/bin/a", "b"}, *args[] = {" x y", "", NULL}, **argvs[] = {args, NULL};
    const int nprocs[] = {2, 1}, ninfo[] = {1, 0}, none[] = {2, 0};
    PMI_keyval_t info = {(char[]){"wdir"}, (char[]){"/t m"}}, preput = {(char[]){"pk"}, (char[]){"p v"}};
    const PMI_keyval_t *infos[] = {&info, NULL};
    int errors[3] = {7, 7, 7};

    cr_expect_eq(PMI_Spawn_multiple(2, cmds, argvs, nprocs, ninfo, infos, 1, &preput, errors), PMI_SUCCESS);
    cr_expect(errors[0] == 0 && errors[1] == 0 && errors[2] == 1);
    script_expect(server, spawn_request);
    cr_expect_eq(PMI_Spawn_multiple(2, cmds, argvs, nprocs, ninfo, infos, 1, &preput, NULL), PMI_SUCCESS);
    cr_expect_eq(PMI_Spawn_multiple(2, cmds, argvs, nprocs, NULL, NULL, 0, NULL, errors), PMI_FAIL);
    cr_expect_eq(PMI_Spawn_multiple(2, cmds, argvs, nprocs, ninfo, infos, 1, &preput, errors), PMI_FAIL);
    cr_expect_eq(PMI_Spawn_multiple(0, cmds, argvs, nprocs, ninfo, infos, 0, NULL, errors), PMI_ERR_INVALID_ARG);
    cr_expect_eq(PMI_Spawn_multiple(2, cmds, argvs, none, ninfo, infos, 0, NULL, errors), PMI_ERR_INVALID_ARG);
    args[0] = "two\nlines";
    cr_expect_eq(PMI_Spawn_multiple(2, cmds, argvs, nprocs, ninfo, infos, 0, NULL, errors), PMI_ERR_INVALID_ARG);
}

Test(libpmi, alone_without_any_variable)
{
    char value[8];
    int n = -7;

    script_alone();
    cr_expect_eq(PMI_Init(&n), PMI_SUCCESS);
    cr_expect_eq(PMI_Get_size(&n), PMI_SUCCESS);
    cr_expect_eq(n, 1);
    cr_expect_eq(PMI_Get_universe_size(&n), PMI_SUCCESS);
    cr_expect_eq(n, 1);
    cr_expect_eq(PMI_Get_clique_size(&n), PMI_SUCCESS);
    cr_expect_eq(n, 1);
    cr_expect_eq(PMI_KVS_Put("singleton", "k", "v"), PMI_SUCCESS);
    cr_expect_eq(PMI_KVS_Put("singleton", "k", "w"), PMI_SUCCESS);
    cr_expect_eq(PMI_Barrier(), PMI_SUCCESS);
    cr_expect_eq(PMI_KVS_Get("singleton", "k", value, sizeof(value)), PMI_SUCCESS);
    cr_expect_str_eq(value, "w");
    cr_expect_eq(PMI_KVS_Get("singleton", "l", value, sizeof(value)), PMI_ERR_INVALID_KEY);
    cr_expect_eq(PMI_Publish_name("s", "p"), PMI_FAIL);
    cr_expect_eq(PMI_Finalize(), PMI_SUCCESS);
}

Test(libpmi, variables_without_a_server, .init = cr_redirect_stderr)
{
    int n;

    script_alone();
    setenv("PMI_RANK", "0", 1);
    cr_expect_eq(PMI_Init(&n), PMI_FAIL);
    cr_expect_stderr_eq_str(
        "libpmi: PMI_RANK is set but neither PMI_FD nor PMI_PORT: there is no PMI server to talk to. "
        "Start this program with a PMI launcher, or without any PMI_ variable to have it run alone\n");
    cr_expect_eq(PMI_Get_rank(&n), PMI_ERR_INIT);
}

Test(libpmi, a_server_of_another_version, .init = cr_redirect_stderr)
{
    int n;

    script_start("cmd=response_to_init rc=-1 pmi_version=2 pmi_subversion=0\n");
    cr_expect_eq(PMI_Init(&n), PMI_FAIL);
    cr_expect_stderr_eq_str("libpmi: the PMI server does not speak PMI-1 (rc=-1, version 2)\n");
}

Test(libpmi, a_server_without_sense, .init = cr_redirect_stderr)
{
    int n;

    script_start("cmd=response_to_init rc=0 pmi_version=1 pmi_subversion=1\n"
                 "cmd=maxes kvsname_max=64 keylen_max=0 vallen_max=1024\n");
    cr_expect_eq(PMI_Init(&n), PMI_FAIL);
    cr_expect_stderr_eq_str("libpmi: the PMI server sent a maxes without a good keylen_max\n");
}

/* SIGPIPE has its default here: a signal would end the test. Said once. */
Test(libpmi, the_server_is_gone, .init = cr_redirect_stderr)
{
    int server = start("");

    close(server);
    cr_expect_eq(PMI_Barrier(), PMI_FAIL);
    cr_expect_eq(PMI_KVS_Put("job", "k", "v"), PMI_FAIL);
    cr_expect_stderr_eq_str("libpmi: rank 1: the PMI server has closed the connection\n");
}

Test(libpmi, a_trace_where_it_is_asked_for, .init = cr_redirect_stderr)
{
    int server = script_start(START), n;
    char value[8];

    setenv("PMI_DEBUG", "1", 1);
    cr_assert_eq(PMI_Init(&n), PMI_SUCCESS);
    script_say(server, "cmd=get_result rc=4 msg=no_such_key\n");
    cr_expect_eq(PMI_KVS_Get("job", "k", value, sizeof(value)), PMI_ERR_INVALID_KEY);
    cr_expect_stderr_eq_str("libpmi: rank 1: the PMI server answers cmd=get_result rc=4 msg=no_such_key\n");
}

Test(libpmi, a_forked_child_leaves_the_connection_alone)
{
    int server = start("cmd=barrier_out rc=0\n"), status;
    pid_t pid = fork();

    if (pid == 0) {
        int n = 1;
        bool good =
            PMI_Initialized(&n) == PMI_SUCCESS && n == 0 && PMI_Barrier() == PMI_FAIL && PMI_Finalize() == PMI_FAIL;

        _exit(good ? 0 : 1);
    }
    cr_assert_eq(waitpid(pid, &status, 0), pid);
    cr_expect_eq(status, 0);
    script_expect(server, "");
    cr_expect_eq(PMI_Barrier(), PMI_SUCCESS);
}

Test(libpmi, abort_says_it_tells_and_exits)
{
    int server = script_start(START), status;
    pid_t pid = fork();

    if (pid == 0) {
        int n;

        PMI_Init(&n);
        PMI_Abort(42, "two\nlines");
    }
    cr_assert_eq(waitpid(pid, &status, 0), pid);
    cr_expect(WIFEXITED(status) && WEXITSTATUS(status) == 42);
    script_expect(server, STARTED "cmd=abort exitcode=42 error_msg=two lines\n");
}

Test(libpmi, a_second_init_on_the_same_descriptor)
{
    int server = start("cmd=finalize_ack rc=0\n"), n, fd = (int)strtol(getenv("PMI_FD"), NULL, 10);

    cr_expect_eq(fcntl(fd, F_GETFD), FD_CLOEXEC);
    cr_expect_eq(PMI_Finalize(), PMI_SUCCESS);
    cr_expect_eq(fcntl(fd, F_GETFD), 0);
    script_say(server, START);
    cr_expect_eq(PMI_Init(&n), PMI_SUCCESS);
    script_expect(server, "cmd=finalize\n" STARTED);
}

Test(libpmi, over_a_port)
{
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int listening = socket(AF_INET, SOCK_STREAM, 0), n = -7, server;
    socklen_t len = sizeof(a);
    char at[32];

    script_alone();
    cr_assert(bind(listening, (struct sockaddr *)&a, len) == 0 && listen(listening, 1) == 0);
    getsockname(listening, (struct sockaddr *)&a, &len);
    snprintf(at, sizeof(at), "127.0.0.1:%d", ntohs(a.sin_port));
    setenv("PMI_PORT", at, 1);
    setenv("PMI_ID", "9", 1);
    if (fork() == 0) {
        server = accept(listening, NULL, NULL);
        script_say(server, "cmd=initack rc=0\ncmd=set size=3\ncmd=set rank=2\ncmd=set debug=0\n" START);
        while (recv(server, at, sizeof(at), 0) > 0)
            ;
        _exit(0);
    }
    cr_expect_eq(PMI_Init(&n), PMI_SUCCESS);
    cr_expect_eq(PMI_Get_rank(&n), PMI_SUCCESS);
    cr_expect_eq(n, 2);
    cr_expect_eq(PMI_Get_size(&n), PMI_SUCCESS);
    cr_expect_eq(n, 3);
}
