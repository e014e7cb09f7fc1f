/* SPDX-License-Identifier: BSD-3-Clause */
/* pmi_suite.c - a task that calls everything in pmi.h and looks at what comes of it
 *
 *     pmi_suite [--plain] [--names] [--fork] [--threads] [--again] [--spawn] [--abort]
 *
 * Without options what any launcher should be able to do. --plain: values of up to 600 bytes without blanks and
 * semicolons; Hydra and Slurm cut others. --again: after PMI_Finalize a second PMI_Init. Says one line on rank 0 when
 * all is right. It knows no library but libpmi.so.0, whichever is found at run time. */
#include <pmi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/progs/suite.h"

#define KEYS 7
#define ROUNDS 50

const char *suite_name = "pmi_suite";

static int size, name_max, key_max, value_max, value_length;
static char name[512];
static const char *without = "";

static void before_init(void)
{
    char text[64];
    int n;

    n = PMI_TRUE;
    GIVES(PMI_SUCCESS, PMI_Initialized(&n));
    CHECK(n == PMI_FALSE);
    GIVES(PMI_ERR_INVALID_ARG, PMI_Initialized(NULL));
    GIVES(PMI_ERR_INIT, PMI_Get_rank(&n));
    GIVES(PMI_ERR_INIT, PMI_Get_size(&n));
    GIVES(PMI_ERR_INIT, PMI_KVS_Put("k", "k", "v"));
    GIVES(PMI_ERR_INIT, PMI_KVS_Get("k", "k", text, sizeof(text)));
    GIVES(PMI_ERR_INIT, PMI_KVS_Get_my_name(text, sizeof(text)));
    GIVES(PMI_ERR_INIT, PMI_Barrier());
    GIVES(PMI_ERR_INIT, PMI_Finalize());
}

static void expect_env(const char *var, int value)
{
    const char *text = getenv(var);

    CHECK(text == NULL || strtol(text, NULL, 10) == value);
}

static void init(void)
{
    const char *env = getenv("PMI_SPAWNED");
    int n = 7;

    GIVES(PMI_ERR_INVALID_ARG, PMI_Init(NULL));
    GIVES(PMI_SUCCESS, PMI_Init(&n));
    CHECK(n == (env != NULL));
    GIVES(PMI_SUCCESS, PMI_Init(&n));
    GIVES(PMI_SUCCESS, PMI_Initialized(&n));
    CHECK(n == PMI_TRUE);
    GIVES(PMI_SUCCESS, PMI_Get_rank(&suite_rank));
    GIVES(PMI_SUCCESS, PMI_Get_size(&size));
    CHECK(size >= 1 && suite_rank >= 0 && suite_rank < size);
    expect_env("PMI_RANK", suite_rank);
    expect_env("PMI_SIZE", size);
    GIVES(PMI_ERR_INVALID_ARG, PMI_Get_rank(NULL));
    GIVES(PMI_ERR_INVALID_ARG, PMI_Get_size(NULL));
}

static void numbers(void)
{
    int n = -7;

    GIVES(PMI_SUCCESS, PMI_KVS_Get_name_length_max(&name_max));
    GIVES(PMI_SUCCESS, PMI_KVS_Get_key_length_max(&key_max));
    GIVES(PMI_SUCCESS, PMI_KVS_Get_value_length_max(&value_max));
    CHECK(name_max >= 16 && name_max <= (int)sizeof(name) && key_max >= 32 && value_max >= 64 && value_max <= 1024);
    value_length = *without != '\0' && value_max > 601 ? 601 : value_max;
    GIVES(PMI_SUCCESS, PMI_Get_id_length_max(&n));
    CHECK(n == name_max);
    GIVES(PMI_SUCCESS, PMI_Get_universe_size(&n));
    CHECK(n == -1 || n >= 1);
    GIVES(PMI_SUCCESS, PMI_Get_appnum(&n));
    CHECK(n >= -1);
    GIVES(PMI_ERR_INVALID_ARG, PMI_Get_appnum(NULL));
    GIVES(PMI_ERR_INVALID_ARG, PMI_Get_universe_size(NULL));
    GIVES(PMI_ERR_INVALID_ARG, PMI_KVS_Get_key_length_max(NULL));
}

static void names_of_the_job(void)
{
    char text[512], small[2];

    GIVES(PMI_SUCCESS, PMI_KVS_Get_my_name(name, name_max));
    CHECK(strlen(name) > 0 && strlen(name) < (size_t)name_max);
    GIVES(PMI_SUCCESS, PMI_Get_id(text, name_max));
    CHECK(strcmp(text, name) == 0);
    GIVES(PMI_SUCCESS, PMI_Get_kvs_domain_id(text, name_max));
    CHECK(strlen(text) > 0);
    GIVES(PMI_ERR_INVALID_LENGTH, PMI_KVS_Get_my_name(small, sizeof(small)));
    GIVES(PMI_ERR_INVALID_LENGTH, PMI_Get_id(small, 0));
    GIVES(PMI_ERR_INVALID_ARG, PMI_KVS_Get_my_name(NULL, 10));
}

static void put(const char *key, const char *value)
{
    GIVES(PMI_SUCCESS, PMI_KVS_Put(name, key, value));
}

static void want(const char *key, const char *value)
{
    char got[SUITE_VALUE_ROOM];

    GIVES(PMI_SUCCESS, PMI_KVS_Get(name, key, got, sizeof(got)));
    if (strcmp(got, value) != 0)
        fprintf(stderr, "pmi_suite: %s is '%s' and not '%s'\n", key, got, value);
    CHECK(strcmp(got, value) == 0);
}

static void meet(void)
{
    GIVES(PMI_SUCCESS, PMI_KVS_Commit(name));
    GIVES(PMI_SUCCESS, PMI_Barrier());
}

static void exchange(void)
{
    char key[64], value[SUITE_VALUE_ROOM];

    for (int i = 0; i < KEYS; i++) {
        snprintf(key, sizeof(key), "key-%d[%d]", suite_rank, i);
        suite_value(value, suite_rank, i, 0, value_length, without);
        put(key, value);
    }
    meet();
    for (int rank = 0; rank < size; rank++)
        for (int i = 0; i < KEYS; i++) {
            snprintf(key, sizeof(key), "key-%d[%d]", rank, i);
            suite_value(value, rank, i, 0, value_length, without);
            want(key, value);
        }
}

/* Each reads its neighbour's value of this very round. */
static void rounds(void)
{
    int next = (suite_rank + 1) % size;
    char key[64], value[SUITE_VALUE_ROOM];

    for (int round = 0; round < ROUNDS; round++) {
        snprintf(key, sizeof(key), "round-%d-%d", round, suite_rank);
        suite_value(value, suite_rank, round, round, value_length, without);
        put(key, value);
        meet();
        snprintf(key, sizeof(key), "round-%d-%d", round, next);
        suite_value(value, next, round, round, value_length, without);
        want(key, value);
    }
}

static void refusals(void)
{
    char text[SUITE_VALUE_ROOM], longest[2048];

    memset(longest, 'x', sizeof(longest));
    longest[sizeof(longest) - 1] = '\0';
    GIVES(PMI_ERR_INVALID_KEY_LENGTH, PMI_KVS_Put(name, longest, "v"));
    GIVES(PMI_ERR_INVALID_KEY_LENGTH, PMI_KVS_Get(name, longest, text, sizeof(text)));
    GIVES(PMI_ERR_INVALID_VAL_LENGTH, PMI_KVS_Put(name, "k", longest));
    GIVES(PMI_ERR_INVALID_LENGTH, PMI_KVS_Put(longest, "k", "v"));
    GIVES(PMI_ERR_INVALID_KEY, PMI_KVS_Put(name, "", "v"));
    GIVES(PMI_ERR_INVALID_KEY, PMI_KVS_Put(name, "two words", "v"));
    GIVES(PMI_ERR_INVALID_KEY, PMI_KVS_Put(name, "a=b", "v"));
    GIVES(PMI_ERR_INVALID_VAL, PMI_KVS_Put(name, "k", "two\nlines"));
    GIVES(PMI_ERR_INVALID_ARG, PMI_KVS_Put(NULL, "k", "v"));
    GIVES(PMI_ERR_INVALID_ARG, PMI_KVS_Put(name, NULL, "v"));
    GIVES(PMI_ERR_INVALID_ARG, PMI_KVS_Put(name, "k", NULL));
    GIVES(PMI_ERR_INVALID_ARG, PMI_KVS_Get(name, "k", NULL, 10));
    GIVES(PMI_ERR_INVALID_ARG, PMI_KVS_Commit(NULL));
    CHECK(PMI_KVS_Get(name, "nobody-has-put-this", text, sizeof(text)) != PMI_SUCCESS);
    GIVES(PMI_ERR_INVALID_LENGTH, PMI_KVS_Get(name, "key-0[2]", text, 24));
    GIVES(PMI_FAIL, PMI_KVS_Create(text, sizeof(text)));
    GIVES(PMI_FAIL, PMI_KVS_Destroy(name));
    GIVES(PMI_FAIL, PMI_KVS_Iter_first(name, text, 10, longest, 10));
    GIVES(PMI_FAIL, PMI_KVS_Iter_next(name, text, 10, longest, 10));
}

/* All in a clique must say the same of it. */
static void clique(void)
{
    int n = 0, *ranks = calloc((size_t)size + 1, sizeof(*ranks)), self = 0;
    char key[64], text[SUITE_VALUE_ROOM] = "";

    GIVES(PMI_SUCCESS, PMI_Get_clique_size(&n));
    CHECK(n >= 1 && n <= size);
    ranks[n] = -7;
    GIVES(PMI_SUCCESS, PMI_Get_clique_ranks(ranks, n));
    CHECK(ranks[n] == -7);
    GIVES(PMI_ERR_INVALID_ARG, PMI_Get_clique_size(NULL));
    GIVES(PMI_ERR_INVALID_ARG, PMI_Get_clique_ranks(NULL, n));
    GIVES(PMI_ERR_INVALID_LENGTH, PMI_Get_clique_ranks(ranks, n - 1));
    for (int i = 0; i < n; i++) {
        size_t len = strlen(text);

        CHECK(ranks[i] >= 0 && ranks[i] < size && (i == 0 || ranks[i] > ranks[i - 1]));
        self += ranks[i] == suite_rank;
        snprintf(text + len, sizeof(text) - len, "%s%d", i > 0 ? "," : "", ranks[i]);
    }
    CHECK(self == 1);
    if (strlen(text) >= (size_t)value_max)
        snprintf(text, sizeof(text), "%d ranks", n);
    snprintf(key, sizeof(key), "clique-%d", suite_rank);
    put(key, text);
    meet();
    for (int i = 0; i < n; i++) {
        snprintf(key, sizeof(key), "clique-%d", ranks[i]);
        want(key, text);
    }
    if (suite_rank == 0)
        printf("pmi_suite: clique of rank 0: %s\n", text);
    free(ranks);
}

static void options(void)
{
    char *args[] = {(char[]){"-x"}, NULL}, *(*argv)[] = &args, text[64];
    int argc = 1, n = 7, count = 7;
    PMI_keyval_t *pairs = NULL;

    GIVES(PMI_SUCCESS, PMI_Parse_option(argc, args, &n, &pairs, &count));
    CHECK(n == 0 && count == 0);
    GIVES(PMI_SUCCESS, PMI_Args_to_keyval(&argc, argv, &pairs, &count));
    CHECK(argc == 1 && count == 0);
    GIVES(PMI_SUCCESS, PMI_Free_keyvals(pairs, count));
    n = sizeof(text);
    GIVES(PMI_SUCCESS, PMI_Get_options(text, &n));
}

static void names(void)
{
    char port[SUITE_VALUE_ROOM];

    if (suite_rank == 0)
        GIVES(PMI_SUCCESS, PMI_Publish_name("suite-service", "tag#0$description#host$port#1$"));
    meet();
    GIVES(PMI_SUCCESS, PMI_Lookup_name("suite-service", port));
    CHECK(strcmp(port, "tag#0$description#host$port#1$") == 0);
    CHECK(PMI_Lookup_name("no-such-service", port) != PMI_SUCCESS);
    CHECK(PMI_Unpublish_name("no-such-service") != PMI_SUCCESS);
    meet();
    if (suite_rank == 0) {
        CHECK(PMI_Publish_name("suite-service", "again") != PMI_SUCCESS);
        GIVES(PMI_SUCCESS, PMI_Unpublish_name("suite-service"));
    }
    meet();
    CHECK(PMI_Lookup_name("suite-service", port) != PMI_SUCCESS);
    GIVES(PMI_ERR_INVALID_ARG, PMI_Publish_name(NULL, "p"));
    GIVES(PMI_ERR_INVALID_ARG, PMI_Publish_name("s", NULL));
    GIVES(PMI_ERR_INVALID_ARG, PMI_Lookup_name(NULL, port));
    GIVES(PMI_ERR_INVALID_ARG, PMI_Unpublish_name(NULL));
}

static int in_child(void)
{
    char text[64];
    int n = PMI_TRUE;

    GIVES(PMI_SUCCESS, PMI_Initialized(&n));
    CHECK(n == PMI_FALSE);
    GIVES(PMI_FAIL, PMI_Get_rank(&n));
    GIVES(PMI_FAIL, PMI_KVS_Put(name, "child", "v"));
    GIVES(PMI_FAIL, PMI_KVS_Get(name, "key-0[0]", text, sizeof(text)));
    GIVES(PMI_FAIL, PMI_Barrier());
    GIVES(PMI_FAIL, PMI_Finalize());
    GIVES(PMI_FAIL, PMI_Init(&n));
    return 0;
}

static void in_thread(int index)
{
    char key[64], value[SUITE_VALUE_ROOM];

    for (int i = 0; i < 100; i++) {
        snprintf(key, sizeof(key), "thread-%d-%d", suite_rank, index);
        suite_value(value, suite_rank, i, index, value_length, without);
        put(key, value);
        suite_value(value, 0, index % KEYS, 0, value_length, without);
        snprintf(key, sizeof(key), "key-0[%d]", index % KEYS);
        want(key, value);
    }
}

/* The new tasks run this program, with --spawned, and find what was put for them. */
static void spawn(const char *path)
{
    const char *cmds[] = {path, path}, *option = *without != '\0' ? "--plain" : NULL;
    const char *first[] = {"--spawned", " leading blank", "a=b c", "", option, NULL};
    const char *second[] = {"--spawned", option, NULL};
    const char **argvs[] = {first, second};
    const int nprocs[] = {2, 1}, ninfo[] = {1, 0};
    PMI_keyval_t info = {(char[]){"wdir"}, (char[]){"/"}}, preput = {(char[]){"suite-parent"}, name};
    const PMI_keyval_t *infos[] = {&info, NULL};
    int errors[3] = {7, 7, 7};

    if (suite_rank == 0) {
        GIVES(PMI_SUCCESS, PMI_Spawn_multiple(2, cmds, argvs, nprocs, ninfo, infos, 1, &preput, errors));
        CHECK(errors[0] == 0 && errors[1] == 0 && errors[2] == 0);
        GIVES(PMI_ERR_INVALID_ARG, PMI_Spawn_multiple(0, cmds, argvs, nprocs, ninfo, infos, 1, &preput, errors));
    }
    meet();
}

static void spawned(char **argv)
{
    char value[SUITE_VALUE_ROOM], dir[4];
    int appnum;

    CHECK(size == 3);
    GIVES(PMI_SUCCESS, PMI_KVS_Get(name, "suite-parent", value, sizeof(value)));
    CHECK(strcmp(value, name) != 0);
    GIVES(PMI_SUCCESS, PMI_Get_appnum(&appnum));
    CHECK(appnum == (suite_rank == 2));
    if (appnum == 0) {
        CHECK(strcmp(argv[2], " leading blank") == 0 && strcmp(argv[3], "a=b c") == 0 && *argv[4] == '\0');
        CHECK(getcwd(dir, sizeof(dir)) != NULL && strcmp(dir, "/") == 0);
    }
}

/* One gives up while the others wait for it. */
static void give_up(void)
{
    if (suite_rank == size - 1)
        PMI_Abort(42, "as told");
    PMI_Barrier();
}

static void finish(void)
{
    int n;

    GIVES(PMI_SUCCESS, PMI_Finalize());
    GIVES(PMI_ERR_INIT, PMI_Get_rank(&n));
    GIVES(PMI_ERR_INIT, PMI_Finalize());
}

int main(int argc, char **argv)
{
    (void)argc;
    if (suite_option(argv, "--plain"))
        without = " ;";
    before_init();
    init();
    numbers();
    names_of_the_job();
    exchange();
    refusals();
    clique();
    options();
    if (suite_option(argv, "--names"))
        names();
    if (suite_option(argv, "--fork"))
        suite_in_child(in_child);
    if (suite_option(argv, "--threads"))
        suite_in_threads(8, in_thread);
    if (suite_option(argv, "--spawn"))
        spawn(argv[0]);
    if (suite_option(argv, "--spawned"))
        spawned(argv);
    if (suite_option(argv, "--abort"))
        give_up();
    rounds();
    finish();
    if (suite_option(argv, "--again")) {
        init();
        exchange();
        finish();
    }
    if (suite_rank == 0)
        printf("pmi_suite: %d ranks, all right\n", size);
    return 0;
}
