/* SPDX-License-Identifier: BSD-3-Clause */
/* pmi2_suite.c - a task that calls everything in pmi2.h and looks at what comes of it
 *
 *     pmi2_suite [--ours] [--plain] [--no-names] [--spawn]
 *
 * Without options what any libpmi2.so.0 can do. --plain: values without blanks and semicolons; Hydra and Slurm cut
 * others. --ours: also what only our library promises: codes for bad arguments, forks, threads, several inits. Says
 * one line on rank 0 when all is right. */
#include <pmi2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/progs/suite.h"

#define KEYS 7
#define ROUNDS 50

const char *suite_name = "pmi2_suite";

static int size;
static const char *without = "";
static char job[512];

static void before_init(void)
{
    char text[64];
    int n;

    CHECK(PMI2_Initialized() == 0);
    GIVES(PMI2_ERR_INIT, PMI2_Job_GetRank(&n));
    GIVES(PMI2_ERR_INIT, PMI2_Job_GetId(text, sizeof(text)));
    GIVES(PMI2_ERR_INIT, PMI2_KVS_Put("k", "v"));
    GIVES(PMI2_ERR_INIT, PMI2_KVS_Fence());
    GIVES(PMI2_ERR_INIT, PMI2_Finalize());
    GIVES(PMI2_ERR_INVALID_ARG, PMI2_Init(NULL, &n, &n, &n));
}

static void init(void)
{
    const char *env = getenv("PMI_SPAWNED");
    int spawned = 7, appnum = -7, n = -7;

    GIVES(PMI2_SUCCESS, PMI2_Init(&spawned, &size, &suite_rank, &appnum));
    CHECK((spawned != 0) == (env != NULL));
    CHECK(size >= 1 && suite_rank >= 0 && suite_rank < size && appnum >= -1);
    CHECK(PMI2_Initialized() != 0);
    GIVES(PMI2_SUCCESS, PMI2_Job_GetRank(&n));
    CHECK(n == suite_rank);
    GIVES(PMI2_SUCCESS, PMI2_Job_GetId(job, sizeof(job)));
    CHECK(strlen(job) > 0);
    GIVES(PMI2_SUCCESS, PMI2_Info_GetSize(&n));
    CHECK(n >= 1 && n <= size);
}

static void want(const char *id, int from, const char *key, const char *value)
{
    char got[SUITE_VALUE_ROOM];
    int len = -7;

    GIVES(PMI2_SUCCESS, PMI2_KVS_Get(id, from, key, got, sizeof(got), &len));
    CHECK(len == (int)strlen(got));
    if (strcmp(got, value) != 0)
        fprintf(stderr, "pmi2_suite: %s is '%s' and not '%s'\n", key, got, value);
    CHECK(strcmp(got, value) == 0);
}

static void exchange(void)
{
    char key[64], value[SUITE_VALUE_ROOM];

    for (int i = 0; i < KEYS; i++) {
        snprintf(key, sizeof(key), "key-%d[%d]", suite_rank, i);
        suite_value(value, suite_rank, i, 0, PMI2_MAX_VALLEN, without);
        GIVES(PMI2_SUCCESS, PMI2_KVS_Put(key, value));
    }
    GIVES(PMI2_SUCCESS, PMI2_KVS_Fence());
    for (int rank = 0; rank < size; rank++)
        for (int i = 0; i < KEYS; i++) {
            snprintf(key, sizeof(key), "key-%d[%d]", rank, i);
            suite_value(value, rank, i, 0, PMI2_MAX_VALLEN, without);
            want(i % 2 == 0 ? job : NULL, i % 3 == 0 ? PMI2_ID_NULL : rank, key, value);
        }
}

static void rounds(void)
{
    int next = (suite_rank + 1) % size;
    char key[64], value[SUITE_VALUE_ROOM];

    for (int round = 0; round < ROUNDS; round++) {
        snprintf(key, sizeof(key), "round-%d-%d", round, suite_rank);
        suite_value(value, suite_rank, round, round, PMI2_MAX_VALLEN, without);
        GIVES(PMI2_SUCCESS, PMI2_KVS_Put(key, value));
        GIVES(PMI2_SUCCESS, PMI2_KVS_Fence());
        snprintf(key, sizeof(key), "round-%d-%d", round, next);
        suite_value(value, next, round, round, PMI2_MAX_VALLEN, without);
        want(job, PMI2_ID_NULL, key, value);
    }
}

/* A barrier. Hydra lets ranks through a fence at once, and holds a get behind it only until the key is there. */
static void meet(void)
{
    char key[64];
    static int met;

    met++;
    snprintf(key, sizeof(key), "meet-%d-%d", met, suite_rank);
    GIVES(PMI2_SUCCESS, PMI2_KVS_Put(key, "v"));
    GIVES(PMI2_SUCCESS, PMI2_KVS_Fence());
    for (int rank = 0; rank < size; rank++) {
        snprintf(key, sizeof(key), "meet-%d-%d", met, rank);
        want(job, rank, key, "v");
    }
}

static void missing_key(void)
{
    char got[64];
    int len;

    CHECK(PMI2_KVS_Get(job, PMI2_ID_NULL, "nobody-has-put-this", got, sizeof(got), &len) != PMI2_SUCCESS);
}

/* What `found` says is all that tells. */
static void job_attrs(void)
{
    char value[SUITE_VALUE_ROOM];
    int found = 7, n = -7, array[4] = {-7, -7, -7, -7};

    GIVES(PMI2_SUCCESS, PMI2_Info_GetJobAttr("PMI_process_mapping", value, sizeof(value), &found));
    CHECK(found == 0 || strncmp(value, "(vector,(", 9) == 0);
    GIVES(PMI2_SUCCESS, PMI2_Info_GetJobAttrIntArray("universeSize", array, 4, &n, &found));
    CHECK(found == 0 || (n == 1 && (array[0] == -1 || array[0] >= 1)));
}

/* The first of each node puts, the others wait for it. */
static void node_attrs(void)
{
    char value[SUITE_VALUE_ROOM], mine[64];
    int found = 7, n = -7, array[4] = {-7, -7, -7, -7};

    snprintf(mine, sizeof(mine), "suite-of-%d", suite_rank);
    found = 7;
    GIVES(PMI2_SUCCESS, PMI2_Info_GetNodeAttr(mine, value, sizeof(value), &found, 0));
    CHECK(found == 0);
    GIVES(PMI2_SUCCESS, PMI2_Info_PutNodeAttr(mine, "1,2,-3"));
    GIVES(PMI2_SUCCESS, PMI2_Info_GetNodeAttr(mine, value, sizeof(value), &found, 1));
    CHECK(found != 0 && strcmp(value, "1,2,-3") == 0);
    GIVES(PMI2_SUCCESS, PMI2_Info_GetNodeAttrIntArray(mine, array, 4, &n, &found));
    CHECK(found != 0 && n == 3 && array[0] == 1 && array[1] == 2 && array[2] == -3);
}

static void names(void)
{
    static const char port[] = "tag#0$description#host$port#1$";
    char got[SUITE_VALUE_ROOM];

    if (suite_rank == 0)
        GIVES(PMI2_SUCCESS, PMI2_Nameserv_publish("suite-service", NULL, port));
    meet();
    GIVES(PMI2_SUCCESS, PMI2_Nameserv_lookup("suite-service", NULL, got, sizeof(got)));
    CHECK(strcmp(got, port) == 0);
    CHECK(PMI2_Nameserv_lookup("no-such-service", NULL, got, sizeof(got)) != PMI2_SUCCESS);
    meet();
    if (suite_rank == 0)
        GIVES(PMI2_SUCCESS, PMI2_Nameserv_unpublish("suite-service", NULL));
    meet();
}

static void refusals(void)
{
    char text[SUITE_VALUE_ROOM], longest[2048], jobid[2];
    int len = 7, n, spawned;

    memset(longest, 'x', sizeof(longest));
    longest[sizeof(longest) - 1] = '\0';
    GIVES(PMI2_SUCCESS, PMI2_Init(&spawned, &n, &n, &n));
    GIVES(PMI2_ERR_INVALID_KEY_LENGTH, PMI2_KVS_Put(longest, "v"));
    GIVES(PMI2_ERR_INVALID_VAL_LENGTH, PMI2_KVS_Put("k", longest));
    GIVES(PMI2_ERR_INVALID_KEY, PMI2_KVS_Put("", "v"));
    GIVES(PMI2_ERR_INVALID_ARG, PMI2_KVS_Put(NULL, "v"));
    GIVES(PMI2_ERR_INVALID_ARG, PMI2_KVS_Put("k", NULL));
    GIVES(PMI2_ERR_INVALID_ARG, PMI2_KVS_Get(job, -1, NULL, text, 10, &len));
    GIVES(PMI2_ERR_INVALID_ARG, PMI2_KVS_Get(job, -1, "k", text, 0, &len));
    GIVES(PMI2_SUCCESS, PMI2_KVS_Get(job, -1, "key-0[2]", text, 24, &len));
    CHECK(len == -100 && strlen(text) == 23);
    GIVES(PMI2_ERR_INVALID_LENGTH, PMI2_Job_GetId(jobid, sizeof(jobid)));
    GIVES(PMI2_ERR_INVALID_ARG, PMI2_Job_GetId(NULL, 1));
    GIVES(PMI2_ERR_INVALID_ARG, PMI2_Job_GetRank(NULL));
    GIVES(PMI2_ERR_INVALID_KEY_LENGTH, PMI2_Info_PutNodeAttr(longest, "v"));
    GIVES(PMI2_ERR_INVALID_VAL_LENGTH, PMI2_Info_PutNodeAttr("a", longest));
    GIVES(PMI2_ERR_INVALID_ARG, PMI2_Info_GetNodeAttr(NULL, text, 10, &n, 0));
    GIVES(PMI2_ERR_INVALID_KEY, PMI2_Info_GetJobAttr("", text, 10, &n));
    GIVES(PMI2_FAIL, PMI2_Job_Connect(job, NULL));
    GIVES(PMI2_FAIL, PMI2_Job_Disconnect(job));
}

static int in_child(void)
{
    int n;

    CHECK(PMI2_Initialized() == 0);
    GIVES(PMI2_FAIL, PMI2_Job_GetRank(&n));
    GIVES(PMI2_FAIL, PMI2_KVS_Put("child", "v"));
    GIVES(PMI2_FAIL, PMI2_KVS_Fence());
    GIVES(PMI2_FAIL, PMI2_Finalize());
    GIVES(PMI2_FAIL, PMI2_Init(&n, &n, &n, &n));
    return 0;
}

static void in_thread(int index)
{
    char key[64], value[SUITE_VALUE_ROOM];

    for (int i = 0; i < 100; i++) {
        snprintf(key, sizeof(key), "thread-%d-%d-%d", suite_rank, index, i);
        GIVES(PMI2_SUCCESS, PMI2_KVS_Put(key, "v"));
        suite_value(value, 0, index % KEYS, 0, PMI2_MAX_VALLEN, without);
        snprintf(key, sizeof(key), "key-0[%d]", index % KEYS);
        want(NULL, PMI2_ID_NULL, key, value);
    }
}

static void ring(void)
{
    char mine[32], left[32], right[32], want_left[32], want_right[32];
    int rank = -7, ranks = -7;

    for (int i = 0; i < 3; i++) {
        snprintf(mine, sizeof(mine), "ring %d of %d", i, suite_rank);
        GIVES(PMI2_SUCCESS, PMIX_Ring(mine, &rank, &ranks, left, right, sizeof(left)));
        CHECK(rank == suite_rank && ranks == size);
        snprintf(want_left, sizeof(want_left), "ring %d of %d", i, (suite_rank + size - 1) % size);
        snprintf(want_right, sizeof(want_right), "ring %d of %d", i, (suite_rank + 1) % size);
        CHECK(strcmp(left, want_left) == 0 && strcmp(right, want_right) == 0);
    }
}

static void spawn(const char *path)
{
    const char *cmds[] = {path, path}, *option = *without != '\0' ? "--plain" : "--nothing";
    const char *first[] = {"--spawned", " leading blank", "a=b c", "", option};
    const char *second[] = {"--spawned", option};
    const char **argvs[] = {first, second};
    int argcs[] = {5, 2};
    const int nprocs[] = {2, 1}, ninfo[] = {1, 0};
    struct MPID_Info info = {.key = (char[]){"wdir"}, .value = (char[]){"/"}};
    struct MPID_Info preput = {.key = (char[]){"suite-parent"}, .value = job};
    const struct MPID_Info *infos[] = {&info, NULL}, *preputs[] = {&preput};
    int errors[3] = {7, 7, 7};
    char id[512] = "";

    if (suite_rank == 0) {
        GIVES(PMI2_SUCCESS,
              PMI2_Job_Spawn(2, cmds, argcs, argvs, nprocs, ninfo, infos, 1, preputs, id, sizeof(id), errors));
        CHECK(errors[0] == 0 && errors[1] == 0 && errors[2] == 0);
        CHECK(strcmp(id, job) != 0);
    }
    meet();
}

static void spawned(char **argv)
{
    char value[SUITE_VALUE_ROOM], dir[4];
    int len;

    CHECK(size == 3);
    GIVES(PMI2_SUCCESS, PMI2_KVS_Get(job, PMI2_ID_NULL, "suite-parent", value, sizeof(value), &len));
    CHECK(strcmp(value, job) != 0);
    if (suite_rank < 2) {
        CHECK(strcmp(argv[2], " leading blank") == 0 && strcmp(argv[3], "a=b c") == 0 && *argv[4] == '\0');
        CHECK(getcwd(dir, sizeof(dir)) != NULL && strcmp(dir, "/") == 0);
    }
}

static void only_ours(void)
{
    refusals();
    suite_in_child(in_child);
    suite_in_threads(8, in_thread);
    ring();
}

int main(int argc, char **argv)
{
    bool ours = suite_option(argv, "--ours");

    (void)argc;
    if (suite_option(argv, "--plain"))
        without = " ;";
    if (ours)
        before_init();
    init();
    exchange();
    missing_key();
    job_attrs();
    node_attrs();
    if (!suite_option(argv, "--no-names"))
        names();
    if (ours)
        only_ours();
    if (suite_option(argv, "--spawn"))
        spawn(argv[0]);
    if (suite_option(argv, "--spawned"))
        spawned(argv);
    rounds();
    GIVES(PMI2_SUCCESS, PMI2_Finalize());
    if (ours)
        GIVES(PMI2_ERR_INIT, PMI2_Job_GetRank(&size));
    if (suite_rank == 0)
        printf("pmi2_suite: all right\n");
    return 0;
}
