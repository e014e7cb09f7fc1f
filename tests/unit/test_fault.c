/* SPDX-License-Identifier: BSD-3-Clause */
#include <criterion/criterion.h>
#include "common/util.h"
#include "server/fault.h"

static const struct {
    struct fault f;
    const char *peer, *line;
} cases[] = {
    {{.from = 4,
      .type = MSG_BARRIER,
      .has_barrier = true,
      .id = {.group = {"0,3", 3}, .tag = 7},
      .round = 1,
      .text = {"too many", 8}},
     "hosta",
     "hostb: refused barrier 2 of ranks 0,3 with tag 7 from hosta: too many"},
    {{.from = FAULT_PARENT,
      .type = MSG_RELEASE,
      .has_barrier = true,
      .job = 3,
      .id = {.group = {"WORLD", 5}, .set = 2},
      .text = {"no room", 7}},
     "hosta",
     "hostb: refused the end of barrier 1 in session 2 of job 3 from hosta: no room"},
    {{.from = FAULT_PARENT,
      .type = MSG_BROKEN,
      .has_barrier = true,
      .id = {.group = {"NODE", 4}},
      .text = {"no room", 7}},
     "hosta",
     "hostb: refused 'broken' of barrier 1 of its node from hosta: no room"},
    {{.from = 0, .type = MSG_READY, .text = {"'job' is missing", 16}},
     "hosta",
     "hostb: refused 'ready' from hosta: 'job' is missing"},
    {{.from = FAULT_PARENT, .type = MSG_EXITED, .text = {"odd", 3}}, NULL, "hostb: refused 'exited': odd"},
    {{.from = FAULT_OWN, .type = MSG_EXITED, .text = {"out of memory", 13}},
     NULL,
     "hostb: could not send 'exited': out of memory"},
    {{.from = FAULT_OWN, .type = MSG_RELEASE, .has_barrier = true, .id = {.group = {"WORLD", 5}}, .text = {"odd", 3}},
     NULL,
     "hostb: could not send the end of barrier 1: odd"},
    {{.from = FAULT_OWN, .has_barrier = true, .id = {.group = {"WORLD", 5}}, .round = 8, .text = {"no keys", 7}},
     NULL,
     "hostb: could not end barrier 9: no keys"},
    {{.from = FAULT_OWN, .text = {"out of memory", 13}}, NULL, "hostb: out of memory"},
};

Test(fault, what_a_node_says_comes_to_the_root_and_is_told)
{
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        const struct fault *f = &cases[i].f;
        struct msg_out *out = msg_out_new();
        struct msg_in *in;
        struct span body;
        struct fault got;
        char line[200];

        fault_put(out, f);
        cr_assert_eq(msg_out_done(out, &body), 0);
        cr_assert_eq(msg_in_new(&in, body, NULL), 0);
        cr_assert_eq(fault_read(in, &got, NULL), 0, "%s", cases[i].line);
        cr_expect_eq(got.from, f->from, "%s", cases[i].line);
        cr_expect_eq(got.job, f->job, "%s", cases[i].line);
        fault_text(&got, "hostb", cases[i].peer, line, sizeof(line));
        cr_expect_str_eq(line, cases[i].line);
        msg_in_free(in);
        msg_out_free(out);
    }
}

Test(fault, one_that_is_not_whole_is_refused)
{
    struct msg_out *out = msg_out_new();
    struct fault got = {.type = 77};
    struct msg_in *in;
    struct span body;
    struct err err;

    msg_put_u64(out, "type", MSG_BARRIER);
    msg_put_bool(out, "own", false);
    msg_put_str(out, "text", "why");
    msg_put_u64(out, "job", 0); /* of a barrier, but which? */
    cr_assert_eq(msg_out_done(out, &body), 0);
    cr_assert_eq(msg_in_new(&in, body, NULL), 0);
    cr_expect_lt(fault_read(in, &got, &err), 0);
    cr_expect_str_eq(err.text, "'set' is missing");
    cr_expect_eq(got.type, 77);
    msg_in_free(in);
    msg_out_free(out);
}

Test(fault, what_nobody_waits_for_is_none)
{
    static const unsigned awaited[] = {
        MSG_READY,    MSG_BARRIER, MSG_EXITED, MSG_OUTPUT,       MSG_SPAWN, MSG_FAULT,      MSG_JOB,
        MSG_GO,       MSG_RELEASE, MSG_CHECK,  MSG_SIGNAL,       MSG_END,   MSG_LEAVING,    MSG_JOINED,
        MSG_UNJOINED, MSG_WANT,    MSG_BACK,   MSG_LOGIN_FAILED, MSG_SHARE, MSG_PMIX_EVENT, MSG_PMIX_NOTIFY};
    static const unsigned others[] = {MSG_TRACE, MSG_LOG, MSG_REPORT, MSG_SLOW, MSG_CAME, MSG_ASK,    MSG_HELLO,
                                      MSG_PING,  0,       60,         120,      65535,    MSG_WINDOW, MSG_STATUS};

    for (size_t i = 0; i < ARRAY_SIZE(awaited); i++)
        cr_expect(fault_is_awaited(awaited[i]), "%s", msg_name(awaited[i]));
    for (size_t i = 0; i < ARRAY_SIZE(others); i++)
        cr_expect(!fault_is_awaited(others[i]), "%s", msg_name(others[i]));
}
