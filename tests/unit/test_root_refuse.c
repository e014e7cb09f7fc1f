/* SPDX-License-Identifier: BSD-3-Clause */
/* What the root makes of messages that it cannot read, and of what a node says that it had to refuse. */
#include <signal.h>
#include "common/io/log.h"
#include "common/util.h"
#include "server/fault.h"
#include "server/job_make.h"
#include "server/root.h"
#include "server/tree.h"
#include "tests/unit/conf_helpers.h"

/* A run of two ranks, on hosta, which is the launcher's, and hostb. */
struct rig {
    uv_loop_t loop;
    struct conf *conf;
    struct plan *plan;
    struct root *root;
    char said[400]; /* lines, each with a newline */
    unsigned signals, broken;
    int status; /* -1: it is not over */
};

static bool is_hosta(const char *name)
{
    return strcmp(name, "hosta") == 0;
}

static void on_line(enum log_level level, const char *line, void *arg)
{
    struct rig *r = arg;
    size_t n = strlen(r->said);

    if (level <= LOG_WARN)
        snprintf(r->said + n, sizeof(r->said) - n, "%s\n", line);
}

static void on_send(unsigned type, struct span body, bool data, void *arg)
{
    struct rig *r = arg;

    (void)body, (void)data;
    r->signals += type == MSG_SIGNAL;
    r->broken += type == MSG_BROKEN;
    if (type == MSG_SIGNAL || type == MSG_BROKEN)
        uv_stop(&r->loop);
}

static void on_done(int status, void *arg)
{
    ((struct rig *)arg)->status = status;
}

static void waiting(struct buf *names, uint32_t *joined, uint32_t *total, void *arg)
{
    (void)names, (void)arg;
    *joined = *total = 2;
}

static int64_t node_at(uint32_t place, void *arg)
{
    (void)place, (void)arg;
    return -1;
}

static void start_over(void *arg)
{
    (void)arg;
}

static const struct root_ops root_ops = {
    .send = on_send, .on_done = on_done, .waiting = waiting, .node_at = node_at, .start_over = start_over};

/* Ends with the finished message; `m` is freed. */
static void up(struct rig *r, unsigned type, struct msg_out *m)
{
    struct span body;

    cr_assert_eq(msg_out_done(m, &body), 0);
    root_up(r->root, type, body);
    msg_out_free(m);
}

static struct msg_out *of_job(uint64_t job)
{
    struct msg_out *m = msg_out_new();

    msg_put_u64(m, "job", job);
    return m;
}

static void begin(struct rig *r, const char *line)
{
    static const uint32_t parents[] = {TREE_NONE, 0}, nodes[] = {0, 1};
    static const struct task_limits limits;
    struct job_world world = {.envp = no_env, .limits = &limits};
    struct root_conf rc = {0};
    struct err err = {0};

    *r = (struct rig){.status = -1};
    cr_assert_eq(uv_loop_init(&r->loop), 0);
    log_set_sink(on_line, r);
    rc.conf = r->conf = good(line);
    cr_assert_eq(plan_make(r->conf, is_hosta, "hosta", &r->plan, &err), 0, "%s", err.text);
    rc.plan = r->plan;
    cr_assert_eq(job_make(r->conf, r->plan, &world, &rc.job, &err), 0, "%s", err.text);
    cr_assert_eq(root_open(&r->loop, &rc, &root_ops, r, &r->root, &err), 0, "%s", err.text);
    root_wired(r->root, parents, nodes, 2);
    up(r, MSG_READY, of_job(0));
}

/* All tasks end as they should; the run is over then. */
static void end(struct rig *r, int status, const char *said)
{
    static const uint32_t ranks[] = {0, 1}, pids[] = {11, 12}, zeros[] = {0, 0};
    struct msg_out *m = of_job(0);

    msg_put_u32v(m, "rank", ranks, 2);
    msg_put_u32v(m, "pid", pids, 2);
    msg_put_u32v(m, "status", zeros, 2);
    up(r, MSG_EXITED, m);
    root_finished(r->root);
    cr_expect_eq(r->status, status, "status %d for '%s'", r->status, said);
    cr_expect_str_eq(r->said, said);
    root_close(r->root);
    uv_run(&r->loop, UV_RUN_DEFAULT);
    log_set_sink(NULL, NULL);
    plan_free(r->plan);
    conf_free(r->conf);
    cr_expect_eq(uv_loop_close(&r->loop), 0);
}

static const char plain[] = "pmi-start --input=none -H hosta,hostb prog",
                  keep[] = "pmi-start -k --input=none -H hosta,hostb prog";

Test(root_refuse, all_is_well)
{
    struct rig r;

    begin(&r, plain);
    end(&r, 0, "");
}

Test(root_refuse, what_it_cannot_read_ends_the_run_where_somebody_waits_for_it)
{
    static const unsigned types[] = {MSG_EXITED, MSG_FAILED,    MSG_OUTPUT,       MSG_STUCK, MSG_WAITS,
                                     MSG_NAME,   MSG_NODE_LOST, MSG_START_FAILED, MSG_SPAWN};

    for (size_t i = 0; i < 2 * ARRAY_SIZE(types); i++) {
        unsigned type = types[i / 2];
        bool of_run = type == MSG_NODE_LOST || type == MSG_NAME || type == MSG_SPAWN;
        char said[100];
        struct rig r;

        begin(&r, i % 2 ? keep : plain); /* either way */
        up(&r, type, msg_out_new());
        uv_run(&r.loop, UV_RUN_DEFAULT);
        cr_expect_eq(r.signals, 1, "%s", msg_name(type));
        root_up(r.root, type, (struct span){"?", 1}); /* and no further word */
        snprintf(said, sizeof(said), "hosta: refused '%s': %s\n", msg_name(type),
                 of_run ? "'place' is missing" : "it is of no job of this run");
        end(&r, 1, said);
    }
}

Test(root_refuse, what_nobody_waits_for_is_let_go_by)
{
    static const unsigned types[] = {MSG_TRACE, MSG_LOG, MSG_REPORT, MSG_SLOW, MSG_CAME, MSG_FINISHED, 60};
    struct rig r;

    begin(&r, plain);
    for (size_t i = 0; i < ARRAY_SIZE(types); i++) {
        up(&r, types[i], msg_out_new());
        up(&r, types[i], of_job(7));
    }
    end(&r, 0, "");
}

/* Node `place` has refused a release. */
static void fault(struct rig *r, uint32_t place)
{
    const struct fault f = {.from = FAULT_PARENT,
                            .type = MSG_RELEASE,
                            .has_barrier = true,
                            .id = {.group = {"WORLD", 5}},
                            .round = 2,
                            .text = {"no room", 7}};
    struct msg_out *m = msg_out_new();

    msg_put_u64(m, "place", place);
    fault_put(m, &f);
    up(r, MSG_FAULT, m);
}

#define NO_ROOM "hostb: refused the end of barrier 3 from hosta: no room\n"

Test(root_refuse, a_nodes_fault_ends_the_run)
{
    struct rig r;

    begin(&r, plain);
    fault(&r, 1);
    fault(&r, 1);
    uv_run(&r.loop, UV_RUN_DEFAULT);
    cr_expect(r.signals == 1 && r.broken == 0);
    end(&r, 1, NO_ROOM);
}

Test(root_refuse, with_keep_going_a_fault_in_a_barrier_breaks_all_of_them_once)
{
    struct rig r;

    begin(&r, keep);
    fault(&r, 1);
    cr_expect_eq(r.broken, 0, "not from within, where the node may be amidst it");
    fault(&r, 0);
    uv_run(&r.loop, UV_RUN_DEFAULT);
    fault(&r, 1);
    cr_expect(r.signals == 0 && r.broken == 1);
    end(&r, 1, NO_ROOM);
}

Test(root_refuse, a_fault_that_is_not_whole_is_one_all_the_same)
{
    struct rig r;

    begin(&r, plain);
    up(&r, MSG_FAULT, msg_out_new());
    uv_run(&r.loop, UV_RUN_DEFAULT);
    cr_expect_eq(r.signals, 1);
    end(&r, 1, "a node: it cannot go on\n");
}
