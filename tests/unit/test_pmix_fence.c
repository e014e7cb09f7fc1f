/* SPDX-License-Identifier: BSD-3-Clause */
#include "server/pmix_fence.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

/* Members: 'h' in the signature: here, '0' and '1': at or below that child. */
struct rig {
    struct pmix_fences *f;
    char said[300];
    bool at_once; /* this is the root: what is whole is released */
};

static int need(struct span sig, bool *here, bool *kid, void *arg)
{
    (void)arg;
    if (memchr(sig.p, '!', sig.n) != NULL)
        return -EPROTO;
    *here = memchr(sig.p, 'h', sig.n) != NULL;
    kid[0] = memchr(sig.p, '0', sig.n) != NULL;
    kid[1] = memchr(sig.p, '1', sig.n) != NULL;
    return 0;
}

static void say(struct rig *r, const char *what, struct span a, struct span b)
{
    size_t n = strlen(r->said);

    snprintf(r->said + n, sizeof(r->said) - n, "%s %.*s=%.*s;", what, SPAN_FMT(a), SPAN_FMT(b));
}

static void up(struct span sig, struct span data, void *arg)
{
    struct rig *r = arg;

    say(r, "up", sig, data);
    if (r->at_once)
        cr_expect_eq(pmix_fences_release(r->f, sig, data, false), 0);
}

static void done(void *entry, int rc, struct span data, void *arg)
{
    char text[40];

    snprintf(text, sizeof(text), "%s(%d)", (const char *)entry, rc);
    say(arg, "done", span_of(text), data);
}

static const struct pmix_fence_ops ops = {.need = need, .up = up, .done = done};

static void rig_open(struct rig *r)
{
    *r = (struct rig){0};
    r->f = pmix_fences_new(2, &ops, r);
    cr_assert_not_null(r->f);
}

static int enter(struct rig *r, const char *sig, const char *data, const char *who)
{
    return pmix_fences_enter(r->f, span_of(sig), span_of(data), (void *)(uintptr_t)who);
}

static int child(struct rig *r, const char *sig, uint32_t kid, const char *data, bool more)
{
    return pmix_fences_child(r->f, span_of(sig), kid, span_of(data), more);
}

static int release(struct rig *r, const char *sig, const char *data, bool more)
{
    return pmix_fences_release(r->f, span_of(sig), span_of(data), more);
}

Test(pmix_fence, up_once_all_below_are_in_and_over_when_the_last_piece_has_come)
{
    struct rig r;
    bool kid[2];

    rig_open(&r);
    cr_expect_eq(child(&r, "h01", 0, "a", true), 0);
    cr_expect_eq(child(&r, "h01", 0, "b", false), 0);
    cr_expect_eq(enter(&r, "h01", "c", "me"), 0);
    cr_expect_str_eq(r.said, "");
    cr_expect_eq(child(&r, "h01", 1, "d", false), 0);
    cr_expect_str_eq(r.said, "up h01=abcd;");
    pmix_fences_kids(r.f, span_of("h01"), kid);
    cr_expect(kid[0] && kid[1]);
    cr_expect_eq(release(&r, "h01", "abc", true), 0);
    cr_expect_eq(release(&r, "h01", "d", false), 0);
    cr_expect_str_eq(r.said, "up h01=abcd;done me(0)=abcd;");
    pmix_fences_kids(r.f, span_of("h01"), kid);
    cr_expect(!kid[0] && !kid[1]);
    pmix_fences_free(r.f);
}

Test(pmix_fence, the_next_of_the_same_name_begins_anew)
{
    struct rig r;

    rig_open(&r);
    r.at_once = true;
    for (int i = 0; i < 3; i++) {
        cr_expect_eq(enter(&r, "h0", "x", "me"), 0);
        cr_expect_eq(child(&r, "h0", 0, NULL, false), 0);
    }
    cr_expect_str_eq(r.said, "up h0=x;done me(0)=x;up h0=x;done me(0)=x;up h0=x;done me(0)=x;");
    pmix_fences_free(r.f);
}

Test(pmix_fence, several_at_once_do_not_mix)
{
    struct rig r;

    rig_open(&r);
    cr_expect_eq(enter(&r, "h0", "1", "a"), 0);
    cr_expect_eq(enter(&r, "h1", "2", "b"), 0);
    cr_expect_eq(enter(&r, "h", "3", "c"), 0);
    cr_expect_eq(child(&r, "h1", 1, "4", false), 0);
    cr_expect_str_eq(r.said, "up h=3;up h1=24;");
    pmix_fences_free(r.f);
}

Test(pmix_fence, a_node_without_members_hands_on)
{
    struct rig r;

    rig_open(&r);
    cr_expect_eq(child(&r, "01", 1, "x", false), 0);
    cr_expect_eq(child(&r, "01", 0, "y", false), 0);
    cr_expect_eq(release(&r, "01", "xy", false), 0);
    cr_expect_str_eq(r.said, "up 01=xy;");
    pmix_fences_free(r.f);
}

Test(pmix_fence, what_is_out_of_turn_is_refused)
{
    struct rig r;

    rig_open(&r);
    cr_expect_eq(enter(&r, "0", "x", "me"), -EPROTO);
    cr_expect_eq(enter(&r, "!", "x", "me"), -EPROTO);
    cr_expect_eq(child(&r, "h0", 1, "x", false), -EPROTO);
    cr_expect_eq(child(&r, "h0", 2, "x", false), -EPROTO);
    cr_expect_eq(child(&r, "h0", 0, "x", false), 0);
    cr_expect_eq(child(&r, "h0", 0, "x", false), -EPROTO);
    cr_expect_eq(release(&r, "h0", "x", false), -EPROTO);
    cr_expect_eq(enter(&r, "h01", "x", "me"), 0);
    cr_expect_eq(enter(&r, "h01", "x", "me"), -EALREADY);
    cr_expect_eq(release(&r, "h", "x", false), 0);
    cr_expect_str_eq(r.said, "");
    pmix_fences_free(r.f);
}

Test(pmix_fence, all_that_wait_can_be_told_that_it_failed)
{
    struct rig r;

    rig_open(&r);
    cr_expect_eq(enter(&r, "h0", "x", "me"), 0);
    cr_expect_eq(child(&r, "01", 1, "x", false), 0);
    pmix_fences_fail(r.f, -EIO);
    cr_expect_str_eq(r.said, "done me(-5)=;");
    pmix_fences_free(r.f);
}

static void tell(struct span sig, void *arg)
{
    say(arg, "tell", sig, span_of(""));
}

Test(pmix_fence, who_is_awaited_below_is_told_once_and_who_is_in_is_not)
{
    struct rig r;
    bool kid[2] = {false, false};

    rig_open(&r);
    cr_expect_eq(child(&r, "h01", 0, NULL, false), 0);
    cr_expect(pmix_fences_note(r.f, span_of("h01"), kid));
    cr_expect(!kid[0] && kid[1]);
    kid[1] = false;
    cr_expect(pmix_fences_note(r.f, span_of("h01"), kid));
    cr_expect(!kid[0] && !kid[1]);
    pmix_fences_each_noted(r.f, tell, &r);
    cr_expect_eq(enter(&r, "h01", NULL, "me"), 0);
    pmix_fences_each_noted(r.f, tell, &r);
    pmix_fences_each_entered(r.f, tell, &r);
    cr_expect_str_eq(r.said, "tell h01=;tell h01=;");
    pmix_fences_free(r.f);
}

Test(pmix_fence, one_that_lasts_is_told_once_and_not_where_all_are_in)
{
    struct rig r;

    rig_open(&r);
    cr_expect_eq(enter(&r, "h0", NULL, "a"), 0);
    cr_expect_eq(enter(&r, "h", NULL, "b"), 0); /* all of this subtree */
    for (int i = 0; i < 6; i++)
        pmix_fences_tick(r.f, 3, tell, &r);
    pmix_fences_each_awaiting(r.f, tell, &r);
    cr_expect_str_eq(r.said, "up h=;tell h0=;tell h0=;");
    pmix_fences_free(r.f);
}

Test(pmix_fence, a_node_that_has_lost_a_member_waits_and_goes_no_further)
{
    struct rig r;

    rig_open(&r);
    cr_expect_eq(pmix_fences_hold(r.f, span_of("h"), (void *)(uintptr_t) "me"), 0);
    cr_expect_eq(enter(&r, "h", NULL, "again"), -EALREADY);
    pmix_fences_each_noted(r.f, tell, &r);
    pmix_fences_fail(r.f, -ECANCELED);
    cr_expect_str_eq(r.said, "tell h=;done me(-125)=;");
    pmix_fences_free(r.f);
}

Test(pmix_fence, what_is_broken_stays_so)
{
    struct rig r;
    bool kid[2] = {false, false};

    rig_open(&r);
    cr_expect_eq(enter(&r, "h0", "x", "me"), 0);
    pmix_fences_break(r.f, span_of("h0"), -EIO);
    pmix_fences_break(r.f, span_of("h0"), -EIO);
    cr_expect_eq(enter(&r, "h0", "x", "you"), -EIO);
    cr_expect_eq(child(&r, "h0", 0, "x", false), 0);
    cr_expect_eq(child(&r, "h0", 0, "x", false), 0);
    cr_expect_eq(release(&r, "h0", NULL, false), 0);
    cr_expect(!pmix_fences_note(r.f, span_of("h0"), kid));
    pmix_fences_each_awaiting(r.f, tell, &r);
    pmix_fences_fail(r.f, -ECANCELED);
    cr_expect_str_eq(r.said, "done me(-5)=;");
    pmix_fences_free(r.f);
}

Test(pmix_fence, what_comes_in_pieces_stays_together)
{
    struct rig r;

    rig_open(&r);
    cr_expect_eq(pmix_fences_child(r.f, span_of("01h"), 0, span_of("a1"), true), 0);
    cr_expect_eq(pmix_fences_child(r.f, span_of("01h"), 1, span_of("b1"), true), 0);
    cr_expect_eq(enter(&r, "01h", "h", "me"), 0);
    cr_expect_eq(pmix_fences_child(r.f, span_of("01h"), 0, span_of("a2"), true), 0);
    cr_expect_eq(pmix_fences_child(r.f, span_of("01h"), 1, span_of("b2"), false), 0);
    cr_expect_eq(pmix_fences_child(r.f, span_of("01h"), 1, span_of("b3"), false), -EPROTO, "it is in");
    cr_expect_eq(pmix_fences_child(r.f, span_of("01h"), 0, SPAN_NONE, false), 0);
    cr_expect_str_eq(r.said, "up 01h=hb1b2a1a2;");
    pmix_fences_free(r.f);
}
