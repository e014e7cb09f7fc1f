/* SPDX-License-Identifier: BSD-3-Clause */
#include <criterion/criterion.h>
#include <errno.h>
#include <stdlib.h>
#include "server/spawn_job.h"
#include "server/tree.h"

static struct plan_node nodes[] = {
    {.login = "ha", .host = "ha"}, {.login = "u@hb", .host = "hb"}, {.login = "hc", .host = "hc"}};
static struct plan plan = {.node_count = 3, .node = nodes};
static char *first_argv[] = {(char *)"parent", NULL}, *first_env[] = {(char *)"A=1", NULL};
static struct job_app first_app = {.argv = first_argv, .env = first_env, .ntasks = 3};
static uint32_t parent[] = {TREE_NONE, 0, 0}, node_at[] = {0, 1, 2};
static struct job first = {.size = 3,
                           .nodes = 3,
                           .places = 3,
                           .parent = parent,
                           .node_at = node_at,
                           .app_count = 1,
                           .app = &first_app,
                           .dir = (char *)"/home/me",
                           .kvsname = (char *)"kvs",
                           .connect = 1};

static char *argv[] = {(char *)"child", (char *)" x = y", NULL};
static uint32_t next_node;

static struct spawn_base base(void)
{
    next_node = 0;
    return (struct spawn_base){.plan = &plan, .first = &first, .spawner = "kvs", .number = 4, .next_node = &next_node};
}

/* The nodes of its ranks as digits. */
static const char *places(const struct job *j, char out[16])
{
    uint32_t *of = job_node_of(j);

    for (uint32_t i = 0; i < j->size; i++)
        out[i] = (char)('0' + of[i]);
    out[j->size] = '\0';
    free(of);
    return out;
}

static int make(struct spawn_cmd *cmd, uint32_t count, struct job **out, struct err *err)
{
    struct spawn_want want = {.count = count, .cmd = cmd};
    struct spawn_base b = base();

    *out = NULL;
    return spawn_job_make(&b, &want, out, err);
}

Test(spawn_job, ranks_go_round_the_nodes_over_all_commands)
{
    struct spawn_cmd cmd[] = {{.argv = argv, .argc = 2, .nprocs = 2}, {.argv = argv, .argc = 2, .nprocs = 3}};
    struct err err = {0};
    struct job *j;
    char out[16];

    cr_assert_eq(make(cmd, 2, &j, &err), 0, "%s", err.text);
    cr_expect_str_eq(places(j, out), "01201");
    cr_expect_eq(next_node, 2u);
    cr_expect_eq(job_app_of(j, 1), 0u);
    cr_expect_eq(job_app_of(j, 2), 1u);
    cr_expect_str_eq(j->app[1].argv[1], " x = y");
    cr_expect_str_eq(j->app[1].env[0], "A=1");
    cr_expect_str_eq(j->kvsname, "kvs.4");
    cr_expect_str_eq(j->spawner, "kvs");
    cr_expect_eq(j->input, -1);
    cr_expect_not_null(j->mapping);
    job_free(j);
}

Test(spawn_job, hosts_by_name_and_number)
{
    static const struct {
        const char *key, *value, *want;
    } cases[] = {
        {"host", "hc", "22222"},   {"hosts", "hc,ha", "20202"}, {"host", "hb:3,ha", "11101"}, {"host", "h[a]", NULL},
        {"host", "nowhere", NULL}, {"host", "", NULL},          {"soft", "1:9", "01201"},     {"file", "x", "01201"},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char *info[] = {(char *)cases[i].key, (char *)cases[i].value, NULL};
        struct spawn_cmd cmd = {.argv = argv, .argc = 2, .nprocs = 5, .info = info, .ninfo = 1};
        struct err err = {0};
        struct job *j;
        char out[16];
        int rc = make(&cmd, 1, &j, &err);

        if (cases[i].want == NULL) {
            cr_expect_eq(rc, -EINVAL, "%s", cases[i].value);
            cr_expect(err.text[0] != '\0');
            continue;
        }
        cr_assert_eq(rc, 0, "%s: %s", cases[i].value, err.text);
        cr_expect_str_eq(places(j, out), cases[i].want, "%s", cases[i].value);
        job_free(j);
    }
}

Test(spawn_job, directory_and_search_path)
{
    char *info[] = {(char *)"wdir", (char *)"sub/dir", (char *)"path", (char *)"/opt/bin:/x", NULL};
    char *absolute[] = {(char *)"wdir", (char *)"/tmp", NULL};
    struct spawn_cmd cmd[] = {{.argv = argv, .argc = 2, .nprocs = 1, .info = info, .ninfo = 2},
                              {.argv = argv, .argc = 2, .nprocs = 1, .info = absolute, .ninfo = 1},
                              {.argv = argv, .argc = 2, .nprocs = 1}};
    struct err err = {0};
    struct job *j;

    cr_assert_eq(make(cmd, 3, &j, &err), 0, "%s", err.text);
    cr_expect_str_eq(job_app_dir(j, &j->app[0]), "/home/me/sub/dir");
    cr_expect_str_eq(j->app[0].search, "/opt/bin:/x");
    cr_expect_str_eq(job_app_dir(j, &j->app[1]), "/tmp");
    cr_expect_str_eq(job_app_dir(j, &j->app[2]), "/home/me");
    job_free(j);
}

Test(spawn_job, preputs_are_held_to_the_limits_of_the_kvs)
{
    static const struct {
        const char *key, *value;
        int rc;
    } cases[] = {
        {"PARENT_ROOT_PORT_NAME", "tag#0$ a=b", 0},
        {"", "v", -EINVAL},
        {"k", "a\nb", -EINVAL},
        {"0123456789012345678901234567890123456789012345678901234567890123", "v", -EINVAL},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char *preput[] = {(char *)cases[i].key, (char *)cases[i].value, NULL};
        struct spawn_cmd cmd = {.argv = argv, .argc = 2, .nprocs = 1};
        struct spawn_want want = {.count = 1, .cmd = &cmd, .preput = preput, .npreput = 1};
        struct spawn_base b = base();
        struct err err = {0};
        struct job *j = NULL;

        cr_expect_eq(spawn_job_make(&b, &want, &j, &err), cases[i].rc, "%s", cases[i].key);
        job_free(j);
    }
}
