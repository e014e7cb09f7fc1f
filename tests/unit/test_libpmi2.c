/* SPDX-License-Identifier: BSD-3-Clause */
#include <criterion/criterion.h>
#include <criterion/redirect.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>
#include "client/pmi2.h"
#include "tests/unit/script.h"

static void reply(int server, const char *payload)
{
    char text[2048];

    snprintf(text, sizeof(text), "%6zu%s", strlen(payload), payload);
    script_say(server, text);
}

static void expect(int server, const char *payload)
{
    char text[2048];

    snprintf(text, sizeof(text), "%6zu%s", strlen(payload), payload);
    script_expect(server, text);
}

static int start(void)
{
    int server = script_start("cmd=response_to_init pmi_version=2 pmi_subversion=0 rc=0\n");
    int spawned = 7, size = -7, rank = -7, appnum = -7;

    reply(server, "cmd=fullinit-response;pmi-version=2;pmi-subversion=0;rank=1;size=4;appnum=2;debugged=FALSE;"
                  "pmiverbose=FALSE;rc=0;");
    cr_assert_eq(PMI2_Init(&spawned, &size, &rank, &appnum), PMI2_SUCCESS);
    cr_expect(spawned == 0 && size == 4 && rank == 1 && appnum == 2);
    script_expect(server, "cmd=init pmi_version=2 pmi_subversion=0\n    38cmd=fullinit;pmirank=1;threaded=FALSE;");
    return server;
}

/* Slurm's server refuses a fullinit without it. */
Test(libpmi2, the_job_id_is_told)
{
    int server = script_start("cmd=response_to_init pmi_version=2 pmi_subversion=0 rc=0\n"), n, appnum;

    setenv("PMI_JOBID", "12.0", 1);
    reply(server, "cmd=fullinit-response;rank=1;size=4;appnum=-1;rc=0;");
    cr_expect_eq(PMI2_Init(&n, &n, &n, &appnum), PMI2_SUCCESS);
    cr_expect_eq(appnum, -1);
    script_expect(server, "cmd=init pmi_version=2 pmi_subversion=0\n"
                          "    52cmd=fullinit;pmijobid=12.0;pmirank=1;threaded=FALSE;");
}

Test(libpmi2, put_fence_get)
{
    int server = start(), len = -7;
    char value[16];

    reply(server, "cmd=kvs-put-response;rc=0;");
    cr_expect_eq(PMI2_KVS_Put("k", "a;b =c"), PMI2_SUCCESS);
    expect(server, "cmd=kvs-put;key=k;value=a;;b =c;");
    reply(server, "cmd=kvs-fence-response;rc=0;");
    cr_expect_eq(PMI2_KVS_Fence(), PMI2_SUCCESS);
    expect(server, "cmd=kvs-fence;");
    reply(server, "cmd=kvs-get-response;found=TRUE;value=a;;b =c;rc=0;");
    cr_expect_eq(PMI2_KVS_Get("job", 3, "k", value, sizeof(value), &len), PMI2_SUCCESS);
    expect(server, "cmd=kvs-get;jobid=job;key=k;");
    cr_expect_str_eq(value, "a;b =c");
    cr_expect_eq(len, 6);
}

Test(libpmi2, a_value_that_does_not_fit_is_cut_and_its_length_negative)
{
    int server = start(), len = -7;
    char value[5];

    reply(server, "cmd=kvs-get-response;found=TRUE;value=12345;rc=0;");
    cr_expect_eq(PMI2_KVS_Get(NULL, PMI2_ID_NULL, "k", value, sizeof(value), &len), PMI2_SUCCESS);
    cr_expect_str_eq(value, "1234");
    cr_expect_eq(len, -5);
}

Test(libpmi2, a_key_that_is_not_there)
{
    int server = start(), len;
    char value[5];

    reply(server, "cmd=kvs-get-response;found=FALSE;rc=0;");
    cr_expect_eq(PMI2_KVS_Get(NULL, PMI2_ID_NULL, "k", value, sizeof(value), &len), PMI2_ERR_INVALID_KEY);
    reply(server, "cmd=kvs-get-response;rc=1;");
    cr_expect_eq(PMI2_KVS_Get(NULL, PMI2_ID_NULL, "k", value, sizeof(value), &len), PMI2_FAIL);
}

Test(libpmi2, attributes)
{
    int server = start(), found = 7, n = -7, array[3];
    char value[32];

    reply(server, "cmd=info-getjobattr-response;found=TRUE;value=(vector,(0,1,4));rc=0;");
    cr_expect_eq(PMI2_Info_GetJobAttr("PMI_process_mapping", value, sizeof(value), &found), PMI2_SUCCESS);
    cr_expect(found == 1 && strcmp(value, "(vector,(0,1,4))") == 0);
    expect(server, "cmd=info-getjobattr;key=PMI_process_mapping;");
    reply(server, "cmd=info-getjobattr-response;found=FALSE;rc=0;");
    cr_expect_eq(PMI2_Info_GetJobAttrIntArray("universeSize", array, 3, &n, &found), PMI2_SUCCESS);
    cr_expect(found == 0 && n == 0);
    expect(server, "cmd=info-getjobattr;key=universeSize;");
    reply(server, "cmd=info-putnodeattr-response;rc=0;");
    cr_expect_eq(PMI2_Info_PutNodeAttr("a", "1,-2"), PMI2_SUCCESS);
    expect(server, "cmd=info-putnodeattr;key=a;value=1,-2;");
    reply(server, "cmd=info-getnodeattr-response;found=TRUE;value=1,-2;rc=0;");
    cr_expect_eq(PMI2_Info_GetNodeAttr("a", value, sizeof(value), &found, 1), PMI2_SUCCESS);
    cr_expect(found == 1 && strcmp(value, "1,-2") == 0);
    expect(server, "cmd=info-getnodeattr;key=a;wait=TRUE;");
    reply(server, "cmd=info-getnodeattr-response;found=TRUE;value=1,-2,3,4;rc=0;");
    cr_expect_eq(PMI2_Info_GetNodeAttrIntArray("a", array, 3, &n, &found), PMI2_SUCCESS);
    cr_expect(found == 1 && n == 3 && array[0] == 1 && array[1] == -2 && array[2] == 3);
    reply(server, "cmd=info-getnodeattr-response;found=TRUE;value=1,x;rc=0;");
    cr_expect_eq(PMI2_Info_GetNodeAttrIntArray("a", array, 3, &n, &found), PMI2_FAIL);
}

Test(libpmi2, size_of_the_node)
{
    int server = start(), n = -7;

    reply(server, "cmd=info-getjobattr-response;found=TRUE;value=(vector,(0,1,3),(1,1,1));rc=0;");
    cr_expect_eq(PMI2_Info_GetSize(&n), PMI2_SUCCESS);
    cr_expect_eq(n, 3);
}

/* Hydra's answer has a port, Slurm's a value. */
Test(libpmi2, names)
{
    int server = start();
    char port[16];

    reply(server, "cmd=name-publish-response;rc=0;");
    cr_expect_eq(PMI2_Nameserv_publish("s", NULL, "p;1"), PMI2_SUCCESS);
    expect(server, "cmd=name-publish;name=s;port=p;;1;infokeycount=0;");
    reply(server, "cmd=name-lookup-response;rc=0;port=p;;1;");
    cr_expect_eq(PMI2_Nameserv_lookup("s", NULL, port, sizeof(port)), PMI2_SUCCESS);
    cr_expect_str_eq(port, "p;1");
    reply(server, "cmd=name-lookup-response;value=p2;rc=0;");
    cr_expect_eq(PMI2_Nameserv_lookup("s", NULL, port, sizeof(port)), PMI2_SUCCESS);
    cr_expect_str_eq(port, "p2");
    reply(server, "cmd=name-lookup-response;found=FALSE;rc=1;");
    cr_expect_eq(PMI2_Nameserv_lookup("t", NULL, port, sizeof(port)), PMI2_FAIL);
    reply(server, "cmd=name-unpublish-response;rc=1;errmsg=no such service;");
    cr_expect_eq(PMI2_Nameserv_unpublish("t", NULL), PMI2_FAIL);
}

Test(libpmi2, spawn)
{
    int server = start(), argcs[] = {2, 0}, errors[3] = {7, 7, 7};
    const char *cmds[] = {"/bin/a", "b"}, *args[] = {" x;y", ""}, **argvs[] = {args, NULL};
    const int nprocs[] = {2, 1}, ninfo[] = {1, 0};
    struct MPID_Info info = {.key = (char[]){"wdir"}, .value = (char[]){"/t"}};
    struct MPID_Info preput = {.key = (char[]){"pk"}, .value = (char[]){"pv"}};
    const struct MPID_Info *infos[] = {&info, NULL}, *preputs[] = {&preput};
    char job[16];

    reply(server, "cmd=spawn-response;rc=0;jobid=job-2;nerrs=0;");
    cr_expect_eq(PMI2_Job_Spawn(2, cmds, argcs, argvs, nprocs, ninfo, infos, 1, preputs, job, sizeof(job), errors),
                 PMI2_SUCCESS);
    cr_expect_str_eq(job, "job-2");
    cr_expect(errors[0] == 0 && errors[1] == 0 && errors[2] == 0);
    expect(server,
           "cmd=spawn;ncmds=2;preputcount=1;ppkey0=pk;ppval0=pv;subcmd=/bin/a;maxprocs=2;argc=2;argv0= x;;y;argv1=;"
           "infokeycount=1;infokey0=wdir;infoval0=/t;subcmd=b;maxprocs=1;argc=0;infokeycount=0;");
    reply(server, "cmd=spawn-response;rc=1;errmsg=no;");
    cr_expect_eq(PMI2_Job_Spawn(2, cmds, argcs, argvs, nprocs, ninfo, infos, 1, preputs, NULL, 0, errors), PMI2_FAIL);
}

Test(libpmi2, abort)
{
    int server = start(), status;
    pid_t pid;

    reply(server, "cmd=finalize-response;rc=0;");
    cr_expect_eq(PMI2_Finalize(), PMI2_SUCCESS);
    expect(server, "cmd=finalize;");
    pid = fork();
    if (pid == 0) {
        server = start();
        if (fork() == 0) /* not from here: the connection is the parent's */
            PMI2_Abort(1, "bad");
        (void)wait(NULL);
        script_expect(server, "");
        PMI2_Abort(1, "a;b");
    }
    cr_assert_eq(waitpid(pid, &status, 0), pid);
    cr_expect(WIFEXITED(status) && WEXITSTATUS(status) == 255);
}

/* A server that speaks PMI-1 alone, as Flux's. */
Test(libpmi2, falls_back_to_pmi_1)
{
    int server = script_start("cmd=response_to_init rc=-1\ncmd=response_to_init rc=0 pmi_version=1 pmi_subversion=1\n"
                              "cmd=maxes rc=0 kvsname_max=64 keylen_max=64 vallen_max=1024\ncmd=appnum rc=0 appnum=0\n"
                              "cmd=my_kvsname rc=0 kvsname=job\ncmd=put_result rc=0\ncmd=barrier_out rc=0\n"
                              "cmd=get_result rc=0 value=v w\ncmd=put_result rc=0\ncmd=get_result rc=4\n"
                              "cmd=get_result rc=0 value=1\ncmd=universe_size rc=0 size=6\n");
    int spawned, size, rank, appnum, len, found, array[2];
    char value[16];

    cr_expect_eq(PMI2_Init(&spawned, &size, &rank, &appnum), PMI2_SUCCESS);
    cr_expect(size == 4 && rank == 1 && appnum == 0);
    cr_expect_eq(PMI2_KVS_Put("k", "v w"), PMI2_SUCCESS);
    cr_expect_eq(PMI2_KVS_Fence(), PMI2_SUCCESS);
    cr_expect_eq(PMI2_KVS_Get("job", -1, "k", value, sizeof(value), &len), PMI2_SUCCESS);
    cr_expect_str_eq(value, "v w");
    cr_expect_eq(PMI2_Info_PutNodeAttr("a", "1"), PMI2_SUCCESS);
    cr_expect_eq(PMI2_Info_GetNodeAttr("a", value, sizeof(value), &found, 1), PMI2_SUCCESS);
    cr_expect(found == 1 && strcmp(value, "1") == 0);
    cr_expect_eq(PMI2_Info_GetJobAttrIntArray("universeSize", array, 2, &len, &found), PMI2_SUCCESS);
    cr_expect(found == 1 && len == 1 && array[0] == 6);
    script_expect(server, "cmd=init pmi_version=2 pmi_subversion=0\ncmd=init pmi_version=1 pmi_subversion=1\n"
                          "cmd=get_maxes\ncmd=get_appnum\ncmd=get_my_kvsname\ncmd=put kvsname=job key=k value=v w\n"
                          "cmd=barrier_in\ncmd=get kvsname=job key=k\ncmd=put kvsname=job key=local::a value=1\n"
                          "cmd=get kvsname=job key=local::a\ncmd=get kvsname=job key=local::a\n"
                          "cmd=get_universe_size\n");
}

static const struct {
    const char *payload, *says;
} bad[] = {
    {"cmd=kvs-put-response;rc=0;", "libpmi2: rank 1: the PMI server's answer to kvs-fence is something else\n"},
    {"cmd=kvs-fence;rc=0;", "libpmi2: rank 1: the PMI server's answer to kvs-fence is something else\n"},
    {"cmd=kvs-fence-response;rc=0", "libpmi2: rank 1: the PMI server's answer to kvs-fence is something else\n"},
    {"cmd=kvs-fence-response;rc=no;",
     "libpmi2: rank 1: the PMI server's answer to kvs-fence has an rc that is no number\n"},
};

static void a_bad_answer(int i)
{
    int server = start();

    reply(server, bad[i].payload);
    cr_expect_eq(PMI2_KVS_Fence(), PMI2_FAIL);
    cr_expect_stderr_eq_str(bad[i].says);
}

Test(libpmi2, an_answer_to_something_else, .init = cr_redirect_stderr)
{
    a_bad_answer(0);
}

Test(libpmi2, an_answer_that_is_none, .init = cr_redirect_stderr)
{
    a_bad_answer(1);
}

Test(libpmi2, an_answer_that_is_cut, .init = cr_redirect_stderr)
{
    a_bad_answer(2);
}

Test(libpmi2, an_answer_whose_rc_is_no_number, .init = cr_redirect_stderr)
{
    a_bad_answer(3);
}

Test(libpmi2, no_such_rank, .init = cr_redirect_stderr)
{
    int server = script_start("cmd=response_to_init pmi_version=2 pmi_subversion=0 rc=0\n"), n;

    reply(server, "cmd=fullinit-response;rank=4;size=4;appnum=0;rc=0;");
    cr_expect_eq(PMI2_Init(&n, &n, &n, &n), PMI2_FAIL);
    cr_expect_stderr_eq_str("libpmi2: the PMI server's answer to fullinit has no good rank and size\n");
}

Test(libpmi2, alone_without_any_variable)
{
    int spawned = 7, size, rank, appnum, found, len, rank2, ranks;
    char value[16], left[8], right[8];

    script_alone();
    cr_expect_eq(PMI2_Init(&spawned, &size, &rank, &appnum), PMI2_SUCCESS);
    cr_expect(spawned == 0 && size == 1 && rank == 0 && appnum == 0);
    cr_expect_eq(PMI2_KVS_Put("k", "v"), PMI2_SUCCESS);
    cr_expect_eq(PMI2_KVS_Fence(), PMI2_SUCCESS);
    cr_expect_eq(PMI2_KVS_Get(NULL, 0, "k", value, sizeof(value), &len), PMI2_SUCCESS);
    cr_expect_str_eq(value, "v");
    cr_expect_eq(PMI2_Info_GetNodeAttr("a", value, sizeof(value), &found, 0), PMI2_SUCCESS);
    cr_expect_eq(found, 0);
    cr_expect_eq(PMI2_Info_GetNodeAttr("a", value, sizeof(value), &found, 1), PMI2_FAIL);
    cr_expect_eq(PMI2_Info_PutNodeAttr("a", "1"), PMI2_SUCCESS);
    cr_expect_eq(PMI2_Info_GetNodeAttr("a", value, sizeof(value), &found, 1), PMI2_SUCCESS);
    cr_expect_eq(found, 1);
    cr_expect_eq(PMIX_Ring("x", &rank2, &ranks, left, right, sizeof(left)), PMI2_SUCCESS);
    cr_expect(rank2 == 0 && ranks == 1 && strcmp(left, "x") == 0 && strcmp(right, "x") == 0);
    cr_expect_eq(PMI2_Finalize(), PMI2_SUCCESS);
}
