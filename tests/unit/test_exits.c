/* SPDX-License-Identifier: BSD-3-Clause */
/* Ends of tasks on their way up: the list and its message, and when a node in the middle of the tree sends it on. */
#include <criterion/criterion.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>
#include "common/util.h"
#include "conf/conf.h"
#include "server/exits.h"
#include "server/job.h"
#include "server/node.h"
#include "server/tree.h"
#include "tests/unit/node_alone.h"

#define FAILED_1 0x100 /* exit status 1, as wait() says it */

/* The node at place 1 without tasks; 3 ranks at its child at place 2, one at place 3. */
struct rig {
    uv_loop_t loop;
    struct spawner *spawner;
    struct links *links;
    struct node *node;
    int keeper;
    char up[200]; /* what was sent up: "exited 0 1; failed; " */
};

static void note(struct rig *r, const char *text)
{
    strncat(r->up, text, sizeof(r->up) - strlen(r->up) - 1);
}

static void on_up(unsigned type, struct span body, bool data, void *arg)
{
    struct rig *r = arg;
    struct exits e = {0};
    struct msg_in *m;
    char rank[20];

    (void)data;
    if (type == MSG_READY)
        return;
    note(r, msg_name(type));
    if (type == MSG_EXITED) {
        cr_assert_eq(msg_in_new(&m, body, NULL), 0);
        cr_assert_eq(exits_read(&e, m, NULL), 0);
        for (uint32_t i = 0; i < e.count; i++) {
            snprintf(rank, sizeof(rank), " %u", e.one[i].rank);
            note(r, rank);
            cr_expect_eq(e.one[i].pid, 1000 + e.one[i].rank);
        }
        msg_in_free(m);
        exits_done(&e);
    }
    note(r, "; ");
}

static uint64_t all_in(void *arg)
{
    (void)arg;
    return 0;
}

static const struct node_ops node_ops = {on_up, alone_never_full, all_in, alone_nothing};
static const struct spawn_ops spawn_ops = {.on_lost = alone_nothing};

static void give_job(struct node *n)
{
    uint32_t parent[] = {TREE_NONE, 0, 1, 1}, node_at[] = {TREE_NONE, 0, 1, 2}, run_node[] = {1, 2}, run_len[] = {3, 1};
    char *words[] = {(char *)"true", NULL}, *none[] = {NULL}, dir[] = "/", name[] = "job";
    struct job_app app = {.argv = words, .env = none, .ntasks = 4};
    struct job j = {.size = 4,
                    .nodes = 3,
                    .places = 4,
                    .parent = parent,
                    .node_at = node_at,
                    .runs = 2,
                    .run_node = run_node,
                    .run_len = run_len,
                    .app_count = 1,
                    .app = &app,
                    .dir = dir,
                    .kvsname = name,
                    .preput = none,
                    .input = INPUT_NONE,
                    .connect = CONNECT_FD};
    struct buf body;

    buf_init(&body, 0);
    cr_assert_eq(job_pack(&j, &body), 0);
    node_down(n, MSG_JOB, buf_span(&body));
    buf_done(&body);
}

static void begin(struct rig *r)
{
    struct node_conf conf = {.place = 1, .stdin_fd = -1};
    int fd[2];

    *r = (struct rig){.keeper = -1};
    cr_assert_eq(uv_loop_init(&r->loop), 0);
    cr_assert_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, fd), 0);
    r->keeper = fd[1];
    cr_assert_eq(spawner_open(&r->loop, fd[0], getpid(), &spawn_ops, r, &r->spawner, NULL), 0);
    conf.spawner = r->spawner;
    conf.links = r->links = links_new(&alone_links, r);
    r->node = node_new(&r->loop, &conf, &node_ops, r);
    cr_assert_not_null(r->node);
    give_job(r->node);
}

static void end(struct rig *r)
{
    node_close(r->node);
    spawner_close(r->spawner);
    uv_run(&r->loop, UV_RUN_DEFAULT);
    links_free(r->links);
    cr_expect_eq(uv_loop_close(&r->loop), 0);
    close(r->keeper);
}

/* A message about the job; `m` is freed. */
static void give(struct rig *r, uint32_t child, unsigned type, struct msg_out *m)
{
    struct span body;

    msg_put_u64(m, "job", 0);
    cr_assert_eq(msg_out_done(m, &body), 0);
    if (type >= MSG_WELCOME)
        node_down(r->node, type, body);
    else
        node_up(r->node, child, type, body);
    msg_out_free(m);
}

static void ended(struct rig *r, uint32_t child, uint32_t rank, uint32_t status)
{
    const struct exit_one one = {rank, 1000 + rank, status};
    struct msg_out *m = msg_out_new();
    struct exits e = {0};

    cr_assert_eq(exits_add(&e, &one), 0);
    cr_assert_eq(exits_put(&e, m), 0);
    exits_done(&e);
    give(r, child, MSG_EXITED, m);
}

/* All that is due now. */
static void turn(struct rig *r)
{
    uv_run(&r->loop, UV_RUN_NOWAIT);
}

Test(exits, a_list_is_read_as_it_was_written_behind_what_is_there)
{
    struct msg_out *m = msg_out_new();
    struct exits a = {0}, b = {0};
    struct msg_in *in;
    struct span body;

    for (uint32_t i = 0; i < 100; i++) {
        const struct exit_one one = {i, 2 * i, UINT32_MAX - i};

        cr_assert_eq(exits_add(&a, &one), 0);
    }
    cr_assert_eq(exits_put(&a, m), 0);
    cr_assert_eq(msg_out_done(m, &body), 0);
    cr_assert_eq(msg_in_new(&in, body, NULL), 0);
    for (int i = 0; i < 2; i++)
        cr_assert_eq(exits_read(&b, in, NULL), 0);
    cr_assert_eq(b.count, 200);
    for (uint32_t i = 0; i < 200; i++) {
        cr_expect_eq(b.one[i].rank, i % 100);
        cr_expect_eq(b.one[i].pid, 2 * (i % 100));
        cr_expect_eq(b.one[i].status, UINT32_MAX - i % 100);
    }
    msg_in_free(in);
    msg_out_free(m);
    exits_done(&a);
    exits_done(&b);
}

Test(exits, lists_of_different_lengths_are_refused_and_nothing_is_added)
{
    struct msg_out *m = msg_out_new();
    const uint32_t three[] = {1, 2, 3};
    struct exits e = {0};
    struct msg_in *in;
    struct span body;
    struct err err;

    msg_put_u32v(m, "rank", three, 3);
    msg_put_u32v(m, "pid", three, 3);
    msg_put_u32v(m, "status", three, 2);
    cr_assert_eq(msg_out_done(m, &body), 0);
    cr_assert_eq(msg_in_new(&in, body, NULL), 0);
    cr_expect_eq(exits_read(&e, in, &err), -EPROTO);
    cr_expect_str_eq(err.text, "the lists of ranks, pids and statuses differ in length");
    cr_expect_eq(e.count, 0);
    msg_in_free(in);
    msg_out_free(m);
    exits_done(&e);
}

Test(exits, of_a_node_and_all_below_it_go_up_together)
{
    struct rig r;

    begin(&r);
    ended(&r, 2, 1, 0);
    ended(&r, 3, 3, 0);
    ended(&r, 2, 0, 0);
    turn(&r);
    cr_expect_str_eq(r.up, "");
    ended(&r, 2, 2, 0);
    turn(&r);
    cr_expect_str_eq(r.up, "exited 1 3 0 2; ");
    end(&r);
}

Test(exits, a_failure_goes_up_at_once_with_what_was_before_it)
{
    struct rig r;

    begin(&r);
    ended(&r, 2, 1, 0);
    ended(&r, 3, 3, FAILED_1);
    turn(&r);
    cr_expect_str_eq(r.up, "exited 1 3; ");
    end(&r);
}

Test(exits, when_the_run_is_being_ended_how_tasks_end_is_not_urgent)
{
    struct msg_out *m = msg_out_new();
    struct span body;
    struct rig r;

    begin(&r);
    msg_put_u64(m, "signal", SIGTERM);
    give(&r, 0, MSG_SIGNAL, m); /* with "job": to the tasks of one job, which is no end of the run */
    ended(&r, 2, 1, SIGTERM);
    turn(&r);
    cr_expect_str_eq(r.up, "exited 1; ");
    m = msg_out_new();
    msg_put_u64(m, "signal", SIGTERM);
    cr_assert_eq(msg_out_done(m, &body), 0);
    node_down(r.node, MSG_SIGNAL, body);
    msg_out_free(m);
    ended(&r, 2, 0, SIGTERM);
    ended(&r, 3, 3, SIGKILL);
    turn(&r);
    cr_expect_str_eq(r.up, "exited 1; ");
    ended(&r, 2, 2, SIGTERM);
    turn(&r);
    cr_expect_str_eq(r.up, "exited 1; exited 0 3 2; ");
    end(&r);
}

Test(exits, nothing_else_overtakes_them)
{
    struct rig r;

    begin(&r);
    ended(&r, 2, 1, 0);
    give(&r, 3, MSG_FAILED, msg_out_new());
    cr_expect_str_eq(r.up, "exited 1; failed; ");
    ended(&r, 2, 0, 0);
    node_child_lost(r.node, 3, &(const struct err){0});
    cr_expect_str_eq(r.up, "exited 1; failed; exited 0; node-lost; ");
    end(&r);
}

Test(exits, they_do_not_wait_for_ever)
{
    struct rig r;

    begin(&r);
    ended(&r, 2, 1, 0);
    while (r.up[0] == '\0')
        uv_run(&r.loop, UV_RUN_ONCE);
    cr_expect_str_eq(r.up, "exited 1; ");
    end(&r);
}
