/* SPDX-License-Identifier: BSD-3-Clause */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>
#include "bootstrap/plan.h"
#include "common/buf.h"
#include "common/limits.h"
#include "common/util.h"

static bool is_me(const char *name)
{
    return strcmp(name, "me") == 0 || strcmp(name, "localhost") == 0;
}

/* "host=rank rank|host=..." */
static char *flat(const struct plan *p)
{
    static struct buf b;

    b.len = 0;
    for (uint32_t i = 0; i < p->node_count; i++) {
        buf_printf(&b, "%s%s=", i > 0 ? "|" : "", p->node[i].host);
        for (uint32_t k = 0; k < p->node[i].ntasks; k++)
            buf_printf(&b, "%s%u", k > 0 ? " " : "", p->node[i].ranks[k]);
    }
    buf_str(&b);
    return b.p;
}

struct given {
    const char *hosts; /* NULL: none */
    enum boot_method method;
    unsigned nodes;
    int ntasks, ppn; /* 0: not given */
    enum map_order map;
    const char *apps; /* one digit a part, '-' where it has no -n */
    enum alloc_kind alloc;
    const char *pod_base;
};

static int make(const struct given *g, struct plan **out, struct err *err)
{
    struct conf_app app[8] = {{.ntasks = g->ntasks > 0 ? g->ntasks : -1}};
    struct conf conf = {.bootstrap = g->method, .nodes = g->nodes, .map = g->map, .app = app, .app_count = 1};
    int rc;

    conf.alloc = g->alloc;
    conf.pod_base = (char *)(uintptr_t)g->pod_base;
    conf.ntasks = app[0].ntasks;
    conf.ppn = g->ppn > 0 ? g->ppn : -1;
    if (g->apps != NULL) {
        conf.app_count = strlen(g->apps);
        conf.ntasks = -1;
        for (size_t i = 0; i < conf.app_count; i++)
            app[i].ntasks = g->apps[i] == '-' ? -1 : g->apps[i] - '0';
    }
    if (g->hosts != NULL) {
        conf.hosts = hostlist_new();
        cr_assert(g->hosts[0] == '\0' || hostlist_add(conf.hosts, span_of(g->hosts), NULL, NULL, NULL) == 0);
    }
    rc = plan_make(&conf, is_me, "myself", out, err);
    /* The names are lent by conf: keep what the tests look at. */
    for (uint32_t i = 0; rc == 0 && conf.hosts != NULL && i < (*out)->node_count; i++)
        (*out)->node[i].host = strdup((*out)->node[i].host);
    hostlist_free(conf.hosts);
    return rc;
}

static void done(const struct given *g, struct plan *p)
{
    for (uint32_t i = 0; g->hosts != NULL && i < p->node_count; i++)
        free((char *)(uintptr_t)p->node[i].host);
    plan_free(p);
}

static const struct {
    const char *name;
    struct given g;
    enum boot_method method;
    int32_t self;
    const char *flat;
} cases[] = {
    {"nothing", {0}, BOOT_LOCAL, 0, "myself=0"},
    {"-n alone", {.ntasks = 4}, BOOT_LOCAL, 0, "myself=0 1 2 3"},
    {"--ppn alone", {.ppn = 3}, BOOT_LOCAL, 0, "myself=0 1 2"},
    {"--nodes alone", {.nodes = 3}, BOOT_LOCAL, 0, "myself=0|myself=1|myself=2"},
    {"--nodes --ppn", {.nodes = 2, .ppn = 2}, BOOT_LOCAL, 0, "myself=0 1|myself=2 3"},
    {"--nodes -n", {.nodes = 2, .ntasks = 3}, BOOT_LOCAL, 0, "myself=0 1|myself=2"},
    {"--nodes over -n", {.nodes = 4, .ntasks = 2}, BOOT_LOCAL, 0, "myself=0|myself=1"},

    {"hosts", {.hosts = "a,b"}, BOOT_RSH, -1, "a=0|b=1"},
    {"slots", {.hosts = "a:2,b:1"}, BOOT_RSH, -1, "a=0 1|b=2"},
    {"some slots", {.hosts = "a:2,b"}, BOOT_RSH, -1, "a=0 1|b=2"},
    {"same host twice", {.hosts = "h,h,h"}, BOOT_RSH, -1, "h=0|h=1|h=2"},
    {"--ppn over slots", {.hosts = "a:4,b", .ppn = 2}, BOOT_RSH, -1, "a=0 1|b=2 3"},
    {"-n even", {.hosts = "a,b", .ntasks = 4}, BOOT_RSH, -1, "a=0 1|b=2 3"},
    {"-n uneven", {.hosts = "a,b,c", .ntasks = 8}, BOOT_RSH, -1, "a=0 1 2|b=3 4 5|c=6 7"},
    {"-n under hosts", {.hosts = "a,b,c", .ntasks = 2}, BOOT_RSH, -1, "a=0|b=1"},
    {"-n within slots", {.hosts = "a:2,b:2", .ntasks = 3}, BOOT_RSH, -1, "a=0 1|b=2"},
    {"-n in the first's slots", {.hosts = "a:4,b:4", .ntasks = 3}, BOOT_RSH, -1, "a=0 1 2"},
    {"-n over slots", {.hosts = "a:2,b:1", .ntasks = 8}, BOOT_RSH, -1, "a=0 1 3 4 6 7|b=2 5"},
    {"-n over some slots", {.hosts = "a:2,b", .ntasks = 4}, BOOT_RSH, -1, "a=0 1 3|b=2"},
    {"-n --ppn", {.hosts = "a,b,c", .ntasks = 3, .ppn = 2}, BOOT_RSH, -1, "a=0 1|b=2"},
    {"-n over --ppn", {.hosts = "a,b", .ntasks = 7, .ppn = 2}, BOOT_RSH, -1, "a=0 1 4 5|b=2 3 6"},

    {"cyclic", {.hosts = "a,b", .ppn = 2, .map = MAP_CYCLIC}, BOOT_RSH, -1, "a=0 2|b=1 3"},
    {"cyclic slots", {.hosts = "a:3,b:1,c:2", .map = MAP_CYCLIC}, BOOT_RSH, -1, "a=0 3 5|b=1|c=2 4"},
    {"cyclic -n", {.hosts = "a,b,c", .ntasks = 5, .map = MAP_CYCLIC}, BOOT_RSH, -1, "a=0 3|b=1 4|c=2"},
    {"cyclic -n slots", {.hosts = "a:4,b:4", .ntasks = 3, .map = MAP_CYCLIC}, BOOT_RSH, -1, "a=0 2|b=1"},
    {"cyclic over slots", {.hosts = "a:2,b:1", .ntasks = 5, .map = MAP_CYCLIC}, BOOT_RSH, -1, "a=0 2 3|b=1 4"},

    {"--nodes of hosts", {.hosts = "a,b,me", .nodes = 2}, BOOT_RSH, -1, "a=0|b=1"},
    {"self first", {.hosts = "me,a"}, BOOT_RSH, 0, "me=0|a=1"},
    {"self in the middle", {.hosts = "a,me,b,localhost"}, BOOT_RSH, 1, "a=0|me=1|b=2|localhost=3"},
    {"self without a task", {.hosts = "a,me", .ntasks = 1}, BOOT_RSH, -1, "a=0"},
    {"self last", {.hosts = "a:1,b:1,me:1", .ntasks = 3, .nodes = 3}, BOOT_RSH, 2, "a=0|b=1|me=2"},
    {"manual with hosts", {.hosts = "a,me", .method = BOOT_MANUAL}, BOOT_MANUAL, 1, "a=0|me=1"},
    {"manual without", {.nodes = 3, .method = BOOT_MANUAL}, BOOT_MANUAL, 0, "myself=0|node1=1|node2=2"},
    {"pods", {.nodes = 3, .method = BOOT_K8S, .pod_base = "sim"}, BOOT_K8S, 0, "myself=0|sim-1=1|sim-2=2"},
    {"pods of whose names nothing is known",
     {.nodes = 2, .method = BOOT_K8S, .ppn = 2},
     BOOT_K8S,
     0,
     "myself=0 1|pod1=2 3"},
    {"local said", {.method = BOOT_LOCAL, .nodes = 2}, BOOT_LOCAL, 0, "myself=0|myself=1"},

    {"Slurm", {.hosts = "a:2,me:1", .alloc = ALLOC_SLURM}, BOOT_SLURM, -1, "a=0 1|me=2"},
    {"Slurm by ssh", {.hosts = "a,me", .alloc = ALLOC_SLURM, .method = BOOT_RSH}, BOOT_RSH, 1, "a=0|me=1"},
    {"Slurm --nodes",
     {.hosts = "a:3,b", .alloc = ALLOC_SLURM, .method = BOOT_SLURM, .nodes = 1},
     BOOT_SLURM,
     -1,
     "a=0 1 2"},

    {"parts", {.hosts = "a,b", .apps = "12"}, BOOT_RSH, -1, "a=0 1|b=2"},
    {"parts without -n", {.hosts = "a,b", .apps = "--"}, BOOT_RSH, -1, "a=0|b=1"},
    {"parts and slots", {.hosts = "a:1,b:2", .apps = "2-"}, BOOT_RSH, -1, "a=0|b=1 2"},
    {"parts and --ppn", {.hosts = "a,b,c", .apps = "31", .ppn = 2}, BOOT_RSH, -1, "a=0 1|b=2 3"},
    {"parts here", {.apps = "2-1"}, BOOT_LOCAL, 0, "myself=0 1 2 3"},
};

Test(plan, table)
{
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct plan *p = NULL;
        struct err err = {0};
        uint32_t tasks = 0;
        int rc = make(&cases[i].g, &p, &err);

        cr_assert_eq(rc, 0, "%s: %s", cases[i].name, err.text);
        cr_expect_eq(p->method, cases[i].method, "%s: method %d", cases[i].name, (int)p->method);
        cr_expect_eq(p->self, cases[i].self, "%s: self %d", cases[i].name, p->self);
        cr_expect_str_eq(flat(p), cases[i].flat, "%s: %s", cases[i].name, flat(p));
        for (uint32_t n = 0; n < p->node_count; n++)
            for (uint32_t k = 0; k < p->node[n].ntasks; k++, tasks++)
                cr_expect_eq(p->node_of[p->node[n].ranks[k]], n, "%s", cases[i].name);
        cr_expect_eq(tasks, p->size, "%s", cases[i].name);
        done(&cases[i].g, p);
    }
}

static const struct {
    const char *name;
    struct given g;
    const char *says;
} bad[] = {
    {"rsh without hosts", {.method = BOOT_RSH}, "--bootstrap=rsh needs hosts"},
    {"rsh with --nodes alone", {.method = BOOT_RSH, .nodes = 3}, "--bootstrap=rsh needs hosts"},
    {"manual with nothing", {.method = BOOT_MANUAL}, "--bootstrap=manual needs"},
    {"local with hosts", {.method = BOOT_LOCAL, .hosts = "a"}, "takes no hosts"},
    {"no host left", {.hosts = ""}, "no host is left"},
    {"--nodes over hosts", {.hosts = "a,b,c", .nodes = 5}, "--nodes=5, but the host list has only 3 hosts"},
    {"--nodes over one host", {.hosts = "a", .nodes = 2}, "only 1 host"},
    {"a pod without a task", {.nodes = 3, .method = BOOT_K8S, .ntasks = 2}, "only 2 of 3 pods get a task"},
    {"too many nodes", {.nodes = NODES_MAX + 1}, "--nodes=1048577"},
    {"too many tasks", {.ntasks = TASKS_MAX + 1}, "16777217 tasks"},
    {"too many by --ppn", {.nodes = 1024, .ppn = TASKS_MAX}, "tasks in all: at most"},
    {"a part of none", {.apps = "10"}, "--ntasks=0"},
};

Test(plan, refuses)
{
    for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
        struct plan *p = NULL;
        struct err err = {0};

        cr_expect_eq(make(&bad[i].g, &p, &err), -EINVAL, "%s", bad[i].name);
        cr_expect(strstr(err.text, bad[i].says), "%s: %s", bad[i].name, err.text);
        cr_expect_null(p, "%s", bad[i].name);
    }
}

Test(plan, the_user_is_for_the_login_alone)
{
    struct conf_app app = {.ntasks = -1};
    struct conf conf = {
        .bootstrap = BOOT_RSH, .ntasks = -1, .ppn = -1, .app = &app, .app_count = 1, .hosts = hostlist_new()};
    struct plan *p;

    cr_assert_eq(hostlist_add(conf.hosts, span_of("u@a,b"), NULL, NULL, NULL), 0);
    cr_assert_eq(plan_make(&conf, is_me, "myself", &p, NULL), 0);
    cr_expect_str_eq(p->node[0].login, "u@a");
    cr_expect_str_eq(p->node[0].host, "a");
    cr_expect_str_eq(p->node[1].login, "b");
    cr_expect_str_eq(p->node[1].host, "b");
    plan_free(p);
    hostlist_free(conf.hosts);
}

Test(plan, ranks_go_to_parts_in_order)
{
    static const uint32_t want[] = {0, 0, 1, 2, 2, 2};
    struct given g = {.hosts = "a,b", .apps = "2-3", .map = MAP_CYCLIC};
    struct plan *p = NULL;

    cr_assert_eq(make(&g, &p, NULL), 0);
    cr_expect_eq(p->size, 6);
    cr_expect_arr_eq(p->app_of, want, sizeof(want));
    cr_expect_str_eq(flat(p), "a=0 2 4|b=1 3 5");
    done(&g, p);
}

static const struct {
    enum boot_method method;
    bool with_command;
    enum attach_mode attach;
    int32_t self;
} logins[] = {
    {BOOT_RSH, false, ATTACH_AUTO, 0}, {BOOT_RSH, false, ATTACH_YES, 0}, {BOOT_RSH, true, ATTACH_AUTO, 0},
    {BOOT_RSH, true, ATTACH_NO, 0},    {BOOT_RSH, true, ATTACH_YES, -1}, {BOOT_MANUAL, true, ATTACH_YES, 0},
};

Test(plan, own_script_that_keeps_logins_gets_every_host)
{
    char command[] = "/bin/script";

    for (size_t i = 0; i < ARRAY_SIZE(logins); i++) {
        struct conf conf = {.bootstrap = logins[i].method, .rsh_attach = logins[i].attach, .ntasks = -1, .ppn = -1};
        struct plan *p = NULL;

        conf.hosts = hostlist_new();
        hostlist_add(conf.hosts, span_of("me,a"), NULL, NULL, NULL);
        conf.rsh_command = logins[i].with_command ? command : NULL;
        cr_assert_eq(plan_make(&conf, is_me, "myself", &p, NULL), 0);
        cr_expect_eq(p->self, logins[i].self, "%zu: self %d", i, p->self);
        cr_expect_eq(p->node_count, 2);
        plan_free(p);
        hostlist_free(conf.hosts);
    }
}

Test(plan, as_large_as_it_gets)
{
    struct given g = {.hosts = "n[0-1048574],x:1024", .map = MAP_CYCLIC};
    struct plan *p = NULL;

    cr_assert_eq(make(&g, &p, NULL), 0);
    cr_expect_eq(p->size, NODES_MAX + 1023);
    cr_expect_eq(p->node[NODES_MAX - 1].ntasks, 1024);
    done(&g, p);
}
