/* SPDX-License-Identifier: BSD-3-Clause */
#include <criterion/criterion.h>
#include <errno.h>
#include <stdlib.h>
#include "server/logins_msg.h"
#include "server/tree.h"

Test(logins_msg, places_are_the_other_nodes_in_order)
{
    struct logins_how amid = {.places = 5, .self = 2}, none = {.places = 5, .self = TREE_NONE};
    static const uint32_t want[] = {0, 1, 3, 4};

    for (uint32_t place = 1; place < 5; place++) {
        cr_expect_eq(logins_how_node(&amid, place), want[place - 1], "place %u", place);
        cr_expect_eq(logins_how_node(&none, place), place - 1);
    }
}

Test(logins_msg, how_logins_are_done_comes_back)
{
    struct logins_how how = {9, TREE_NONE, 4, 32, 2, 1, (char *)"/opt/pmi-start", NULL}, got;
    struct msg_out *m = msg_out_new(), *empty = msg_out_new();
    struct msg_in *in;
    struct span body;

    logins_how_put(&how, m);
    cr_assert(msg_out_done(m, &body) == 0 && msg_in_new(&in, body, NULL) == 0);
    cr_assert_eq(logins_how_get(in, &got, NULL), 0);
    cr_expect(got.places == 9 && got.self == TREE_NONE && got.width == 4 && got.logins == 32 && got.attach == 1);
    cr_expect_eq(got.level, 2);
    cr_expect_str_eq(got.program, "/opt/pmi-start");
    cr_expect_null(got.script);
    logins_how_done(&got);
    msg_in_free(in);
    cr_assert(msg_out_done(empty, &body) == 0 && msg_in_new(&in, body, NULL) == 0);
    cr_expect_eq(logins_how_get(in, &got, NULL), -ENOENT);
    msg_in_free(in);
    msg_out_free(m);
    msg_out_free(empty);
}

Test(logins_msg, a_width_or_number_of_logins_beyond_all_hosts_is_refused)
{
    for (int which = 0; which < 2; which++) {
        struct logins_how got, how = {9, TREE_NONE, which == 0 ? UINT32_MAX : 4, which == 1 ? UINT32_MAX : 4,
                                      0, 0,         (char *)"/opt/pmi-start",    NULL};
        struct msg_out *m = msg_out_new();
        struct msg_in *in;
        struct span body;

        logins_how_put(&how, m);
        cr_assert(msg_out_done(m, &body) == 0 && msg_in_new(&in, body, NULL) == 0);
        cr_expect_eq(logins_how_get(in, &got, NULL), -EPROTO);
        msg_in_free(in);
        msg_out_free(m);
    }
}

static int share(uint32_t first, uint32_t count, const char *hosts, struct logins_share *out, struct err *err)
{
    struct msg_out *m = msg_out_new();
    struct span body;
    int rc;

    msg_put_u64(m, "first", first);
    msg_put_u64(m, "count", count);
    msg_put_u64(m, "login_us", 250000);
    msg_put_u64(m, "gap_us", 0);
    msg_put_str(m, "hosts", hosts);
    cr_assert_eq(msg_out_done(m, &body), 0);
    rc = logins_share_get(body, 10, out, err);
    msg_out_free(m);
    return rc;
}

Test(logins_msg, a_share_has_a_name_for_each_of_its_places)
{
    struct logins_share got;
    struct err err = {0};

    cr_assert_eq(share(3, 4, "h[1-2],u@x,fd00::1", &got, NULL), 0);
    cr_expect(got.range.first == 3 && got.range.count == 4 && got.times.login_us == 250000);
    cr_expect_str_eq(hostlist_get(got.hosts, 2).name, "u@x");
    cr_expect_str_eq(hostlist_get(got.hosts, 3).name, "fd00::1");
    hostlist_free(got.hosts);
    cr_expect_eq(share(3, 3, "h[1-2]", &got, &err), -EPROTO);
    cr_expect_str_eq(err.text, "2 hosts for 3 places");
    cr_expect_eq(share(0, 1, "h", &got, NULL), -EPROTO);
    cr_expect_eq(share(7, 4, "h[1-4]", &got, NULL), -EPROTO);
    cr_expect_eq(share(1, 1, "-oProxyCommand=x", &got, NULL), -EINVAL);
    cr_expect_eq(share(1, 1, "h[1-1000000000]", &got, NULL), -E2BIG);
}

static int back(const struct logins_note *note, unsigned type, struct logins_note *got)
{
    struct msg_out *m = msg_out_new();
    struct span body;
    int rc;

    cr_assert_eq(logins_note_put(note, type, m), 0);
    cr_assert_eq(msg_out_done(m, &body), 0);
    rc = logins_note_get(body, type, 10, got, NULL);
    msg_out_free(m);
    return rc;
}

Test(logins_msg, what_goes_up_comes_back_or_is_refused)
{
    uint32_t place[] = {1, 9}, parent[] = {0, 1}, none[] = {0, 1}, itself[] = {1, 2}, beyond[] = {1, 10};
    struct share_range v[] = {{2, 3}, {8, 2}}, over[] = {{8, 3}}, twice[] = {{2, 3}, {4, 1}};
    struct logins_note got, n = {.place = place, .parent = parent, .count = 2};

    cr_assert_eq(back(&n, MSG_JOINED, &got), 0);
    cr_expect(got.count == 2 && got.place[1] == 9 && got.parent[1] == 1);
    logins_note_done(&got);
    n.place = none;
    cr_expect_eq(back(&n, MSG_JOINED, &got), -EPROTO, "the launcher joins nobody");
    n.place = beyond;
    cr_expect_eq(back(&n, MSG_JOINED, &got), -EPROTO);
    n.place = itself;
    n.parent = itself;
    cr_expect_eq(back(&n, MSG_JOINED, &got), -EPROTO);
    n = (struct logins_note){.ranges = {v, 2, 2, 5}, .closed = true};
    cr_assert_eq(back(&n, MSG_BACK, &got), 0);
    cr_expect(got.closed && got.ranges.total == 5 && ranges_has(&got.ranges, 9) && !ranges_has(&got.ranges, 5));
    logins_note_done(&got);
    n.ranges = (struct ranges){over, 1, 1, 3};
    cr_expect_eq(back(&n, MSG_BACK, &got), -EPROTO);
    n.ranges = (struct ranges){twice, 2, 2, 4};
    cr_expect_eq(back(&n, MSG_BACK, &got), -EPROTO);
    n = (struct logins_note){.one = 4, .from = 2, .left = 7, .text = (char *)"no route"};
    cr_assert_eq(back(&n, MSG_LOGIN_FAILED, &got), 0);
    cr_expect(got.one == 4 && got.from == 2 && got.left == 7);
    cr_expect_str_eq(got.text, "no route");
    logins_note_done(&got);
    cr_expect_eq(back(&n, MSG_UNJOINED, &got), 0);
    logins_note_done(&got);
    n.from = 0;
    cr_expect_eq(back(&n, MSG_LOGIN_FAILED, &got), -EPROTO);
}
