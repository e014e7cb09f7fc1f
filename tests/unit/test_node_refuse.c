/* SPDX-License-Identifier: BSD-3-Clause */
/* What a node tells the root of messages that it has to refuse, and what it does not mind. */
#include <criterion/criterion.h>
#include "common/util.h"
#include "server/fault.h"
#include "server/node.h"
#include "tests/unit/node_alone.h"

/* The node at place 3, without a job. */
struct rig {
    uv_loop_t loop;
    struct links *links;
    struct node *node;
    char told[200]; /* the last fault, as people read it */
    unsigned faults, others;
};

static void on_up(unsigned type, struct span body, bool data, void *arg)
{
    struct rig *r = arg;
    struct msg_in *m;
    struct fault f;
    uint64_t place;

    (void)data;
    if (type != MSG_FAULT) {
        r->others++;
        return;
    }
    r->faults++;
    cr_assert_eq(msg_in_new(&m, body, NULL), 0);
    cr_assert_eq(msg_get_u64(m, "place", 3, 3, &place, NULL), 0);
    cr_assert_eq(fault_read(m, &f, NULL), 0);
    fault_text(&f, "here", f.from == 7 ? "kid" : f.from == FAULT_PARENT ? "parent" : "?", r->told, sizeof(r->told));
    msg_in_free(m);
}

static const struct node_ops node_ops = {.send_up = on_up, .up_full = alone_never_full, .on_finished = alone_nothing};

static void begin(struct rig *r)
{
    struct node_conf conf = {.place = 3, .stdin_fd = -1};

    *r = (struct rig){.faults = 0};
    cr_assert_eq(uv_loop_init(&r->loop), 0);
    conf.links = r->links = links_new(&alone_links, r);
    r->node = node_new(&r->loop, &conf, &node_ops, r);
    cr_assert_not_null(r->node);
}

static void end(struct rig *r)
{
    node_close(r->node);
    uv_run(&r->loop, UV_RUN_DEFAULT);
    links_free(r->links);
    cr_expect_eq(uv_loop_close(&r->loop), 0);
}

/* A message about job `job`, and nothing else. */
static void about(struct rig *r, unsigned type, uint64_t job)
{
    struct msg_out *m = msg_out_new();
    struct span body;

    msg_put_u64(m, "job", job);
    cr_assert_eq(msg_out_done(m, &body), 0);
    if (type >= MSG_WELCOME)
        node_down(r->node, type, body);
    else
        node_up(r->node, 7, type, body);
    msg_out_free(m);
}

Test(node_refuse, what_is_no_message_ends_the_run_where_somebody_waits_for_it)
{
    static const struct {
        unsigned type;
        const char *told;
    } cases[] = {
        {MSG_JOB, "here: refused 'job' from parent: *"},
        {MSG_GO, "here: refused 'go' from parent: *"},
        {MSG_RELEASE, "here: refused 'release' from parent: *"},
        {MSG_CHECK, "here: refused 'check' from parent: *"},
        {MSG_INPUT, "here: refused 'input' from parent: *"},
        {MSG_BARRIER, "here: refused 'barrier' from kid: *"},
        {MSG_READY, "here: refused 'ready' from kid: *"},
        {MSG_WAITS, "here: refused 'waits' from kid: *"},
        {MSG_LEFT, "here: refused 'left' from kid: *"},
        {MSG_EXITED, "here: refused 'exited' from kid: *"},
        {MSG_ASK, NULL},
        {99, NULL}, /* of a later version */
    };

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        static const struct span rubbish = {"\x81\x01", 2};
        const char *want = cases[i].told;
        struct rig r;

        begin(&r);
        if (cases[i].type >= MSG_WELCOME)
            node_down(r.node, cases[i].type, rubbish);
        else
            node_up(r.node, 7, cases[i].type, rubbish);
        cr_expect_eq(r.faults, want != NULL, "%s: %u faults", msg_name(cases[i].type), r.faults);
        cr_expect(want == NULL || strncmp(r.told, want, strlen(want) - 1) == 0, "'%s' instead of '%s'", r.told, want);
        cr_expect_eq(r.others, 0);
        end(&r);
    }
}

Test(node_refuse, a_job_that_is_over_is_no_fault)
{
    static const unsigned types[] = {MSG_BARRIER,  MSG_RELEASE, MSG_GO,    MSG_RANK_GONE,
                                     MSG_JOB_OVER, MSG_BROKEN,  MSG_CHECK, MSG_SPAWNED};

    for (size_t i = 0; i < ARRAY_SIZE(types); i++) {
        struct rig r;

        begin(&r);
        about(&r, types[i], 5);
        cr_expect_eq(r.faults, 0, "%s: %s", msg_name(types[i]), r.told);
        end(&r);
    }
}

Test(node_refuse, what_is_only_passed_on_is_not_looked_at)
{
    struct rig r;

    begin(&r);
    node_up(r.node, 7, MSG_FAILED, (struct span){"?", 1});
    cr_expect_eq(r.others, 1);
    cr_expect_eq(r.faults, 0);
    end(&r);
}
