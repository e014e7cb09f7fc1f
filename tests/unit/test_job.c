/* SPDX-License-Identifier: BSD-3-Clause */
#include <criterion/criterion.h>
#include "server/job.h"
#include "server/tree.h"

static struct job sample(void)
{
    static char *argv0[] = {(char *)"prog", (char *)"a b", (char *)"", (char *)"\xff=\n", NULL},
                *argv1[] = {(char *)"x", NULL};
    static char *env[] = {(char *)"A=1", (char *)"B=", NULL}, *preput[] = {(char *)"k", (char *)"v v", NULL};
    static struct job_app apps[] = {{.argv = argv0, .env = env, .dir = (char *)"/d", .ntasks = 3},
                                    {.argv = argv1, .env = env, .search = (char *)"/s:/t", .ntasks = 2}};
    static uint32_t parent[] = {TREE_NONE, 0, 0}, node_at[] = {0, 2, 1}, run_node[] = {0, 1, 2}, run_len[] = {2, 2, 1};
    struct job j = {.size = 5,
                    .nodes = 3,
                    .places = 3,
                    .parent = parent,
                    .node_at = node_at,
                    .runs = 3,
                    .run_node = run_node,
                    .run_len = run_len,
                    .app_count = 2,
                    .app = apps,
                    .dir = (char *)"/tmp",
                    .kvsname = (char *)"kvs",
                    .spawner = (char *)"parent",
                    .connect = 3,
                    .subversion2 = true,
                    .mapping = NULL,
                    .preput = preput,
                    .input = -2,
                    .trace = true,
                    .log_level = 2};

    j.limits.soft[3] = UINT64_MAX;
    j.limits.set[3] = true;
    j.limits.umask = 027;
    return j;
}

Test(job, what_is_packed_comes_out_again)
{
    struct job j = sample(), *k;
    struct err err = {0};
    struct buf b;

    buf_init(&b, 0);
    cr_assert_eq(job_pack(&j, &b), 0);
    cr_assert_eq(job_unpack(buf_span(&b), &k, &err), 0, "%s", err.text);
    cr_expect_eq(k->size, 5u);
    cr_expect_eq(k->app[0].ntasks, 3u);
    for (int i = 0; j.app[0].argv[i] != NULL; i++)
        cr_expect_str_eq(k->app[0].argv[i], j.app[0].argv[i]);
    cr_expect_str_eq(k->app[1].env[1], "B=");
    cr_expect_str_eq(k->preput[1], "v v");
    cr_expect_null(k->mapping);
    cr_expect_str_eq(k->spawner, "parent");
    cr_expect_str_eq(job_app_dir(k, &k->app[0]), "/d");
    cr_expect_str_eq(job_app_dir(k, &k->app[1]), "/tmp");
    cr_expect_null(k->app[0].search);
    cr_expect_str_eq(k->app[1].search, "/s:/t");
    cr_expect(k->connect == 3 && k->subversion2);
    cr_expect_eq(k->limits.soft[3], UINT64_MAX);
    cr_expect_not(k->limits.set[2]);
    cr_expect_eq(k->limits.umask, 027);
    cr_expect_eq(k->input, -2);
    cr_expect_eq(job_app_of(k, 2), 0u);
    cr_expect_eq(job_app_of(k, 3), 1u);
    uint32_t *node_of = job_node_of(k);
    const uint32_t want[] = {0, 0, 1, 1, 2};
    cr_expect_arr_eq(node_of, want, sizeof(want));
    free(node_of);
    job_free(k);
    buf_done(&b);
}

Test(job, every_cut_and_every_flipped_byte_is_refused_or_lawful)
{
    struct job j = sample(), *k;
    struct buf b;

    buf_init(&b, 0);
    cr_assert_eq(job_pack(&j, &b), 0);
    for (size_t n = 0; n < b.len; n++)
        cr_expect_lt(job_unpack((struct span){b.p, n}, &k, NULL), 0);
    for (size_t i = 0; i < b.len; i++) {
        char old = b.p[i];

        b.p[i] = (char)(old ^ 0x41);
        if (job_unpack(buf_span(&b), &k, NULL) == 0) {
            uint32_t *node_of = job_node_of(k);

            cr_expect_not_null(node_of);
            free(node_of);
            job_free(k);
        }
        b.p[i] = old;
    }
    buf_done(&b);
}

Test(job, placement_must_cover_every_rank)
{
    struct job j = sample(), *k = NULL;
    struct err err = {0};
    uint32_t short_len[] = {2, 2, 0};
    struct buf b;

    buf_init(&b, 0);
    j.run_len = short_len;
    cr_assert_eq(job_pack(&j, &b), 0);
    cr_expect_eq(job_unpack(buf_span(&b), &k, &err), -EPROTO);
    cr_expect_not_null(strstr(err.text, "placement"), "%s", err.text);
    buf_done(&b);
}
