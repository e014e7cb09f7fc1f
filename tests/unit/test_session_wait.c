/* SPDX-License-Identifier: BSD-3-Clause */
/* What a PMI-1 session asks and is answered later: group barriers and names. */
#include <criterion/criterion.h>
#include <stdio.h>
#include "session_rig.h"

/* As newest MPICH sends them. */
Test(session_wait, group_barriers_are_known_by_group_and_tag)
{
    struct rig r;

    rig_init(&r, 4);
    feed(&r, 0, "cmd=barrier_in group=0,2:434711146\n");
    feed(&r, 0, "cmd=barrier_in group=WORLD:451488765\n");
    feed(&r, 0, "cmd=get_appnum\n");
    cr_expect_str_eq(take(&r, 0), "cmd=appnum rc=0 appnum=0\n");
    feed(&r, 2, "cmd=barrier_in group=0,2:1\n");
    cr_expect_str_eq(take(&r, 2), "");
    feed(&r, 2, "cmd=barrier_in group=2,0 tag=434711146\n");
    cr_expect_str_eq(take(&r, 2), "cmd=barrier_out rc=0 tag=434711146\n");
    cr_expect_str_eq(take(&r, 0), "cmd=barrier_out rc=0 tag=434711146\n");
    for (unsigned i = 1; i < 4; i++)
        feed(&r, i, "cmd=barrier_in group=WORLD:451488765\n");
    for (unsigned i = 0; i < 4; i++)
        cr_expect_str_eq(take(&r, i), "cmd=barrier_out rc=0 tag=451488765\n");
    rig_done(&r);
}

Test(session_wait, the_same_barrier_again_is_queued)
{
    struct rig r;

    rig_init(&r, 2);
    feed(&r, 0, "cmd=barrier_in group=NODE:0\ncmd=barrier_in group=NODE:0\ncmd=barrier_in group=NODE:7\n");
    cr_expect_eq(r.entered, 2);
    feed(&r, 1, "cmd=barrier_in group=NODE:7\n");
    cr_expect_str_eq(take(&r, 0), "cmd=barrier_out rc=0 tag=7\n");
    feed(&r, 1, "cmd=barrier_in group=NODE:0\n");
    cr_expect_str_eq(take(&r, 0), "cmd=barrier_out rc=0 tag=0\n");
    cr_expect_str_eq(take(&r, 1), "cmd=barrier_out rc=0 tag=7\ncmd=barrier_out rc=0 tag=0\n");
    feed(&r, 1, "cmd=barrier_in group=NODE:0\n");
    cr_expect_str_eq(take(&r, 0), "cmd=barrier_out rc=0 tag=0\n");
    cr_expect_str_eq(take(&r, 1), "cmd=barrier_out rc=0 tag=0\n");
    rig_done(&r);
}

/* --serve: whom it is made of is known when all have come. */
Test(session_wait, a_get_of_the_mapping_waits_until_it_is_known)
{
    struct rig r;

    rig_init(&r, 3);
    r.job.mapping_later = true;
    feed(&r, 0, "cmd=get kvsname=kvs-1 key=PMI_process_mapping\ncmd=get_appnum\n");
    feed(&r, 1, "cmd=get kvsname=kvs-1 key=PMI_process_mapping\n");
    feed(&r, 1, "cmd=get kvsname=kvs-1 key=other\n");
    feed(&r, 2, "cmd=init pmi_version=2 pmi_subversion=0\n");
    take(&r, 2);
    feed_frame(&r, 2, "cmd=info-getjobattr;thrid=7;key=PMI_process_mapping;");
    feed_frame(&r, 2, "cmd=kvs-get;thrid=8;jobid=kvs-1;key=PMI_process_mapping;");
    feed_frame(&r, 2, "cmd=info-getjobattr;key=universeSize;");
    cr_expect_str_eq(take(&r, 0), "cmd=appnum rc=0 appnum=0\n");
    cr_expect_str_eq(take(&r, 1), "cmd=get_result rc=4 msg=no_such_key\n");
    cr_expect_str_eq(take_frames(&r, 2), "cmd=info-getjobattr-response;found=TRUE;value=3;rc=0;\n");
    for (unsigned i = 0; i < 3; i++)
        cr_expect(session_is_waiting(r.end[i].s));
    r.job.mapping_later = false;
    for (unsigned i = 0; i < 2; i++) {
        session_mapping_known(r.end[i].s);
        cr_expect_str_eq(take(&r, i), "cmd=get_result rc=0 value=(vector,(0,1,4))\n");
        session_mapping_known(r.end[i].s);
        cr_expect_str_eq(take(&r, i), "", "answered once");
        cr_expect_not(session_is_waiting(r.end[i].s));
    }
    session_mapping_known(r.end[2].s);
    cr_expect_str_eq(take_frames(&r, 2),
                     "cmd=info-getjobattr-response;thrid=7;found=TRUE;value=(vector,(0,1,4));rc=0;\n"
                     "cmd=kvs-get-response;thrid=8;found=TRUE;value=(vector,(0,1,4));rc=0;\n");
    feed(&r, 0, "cmd=get kvsname=kvs-1 key=PMI_process_mapping\n");
    cr_expect_str_eq(take(&r, 0), "cmd=get_result rc=0 value=(vector,(0,1,4))\n");
    rig_done(&r);
}

Test(session_wait, gets_of_the_mapping_that_wait_are_limited_and_go_with_their_session)
{
    struct rig r;

    rig_init(&r, 1);
    r.job.mapping_later = true;
    for (unsigned i = 0; i < PMI_WAITING_MAX; i++)
        feed(&r, 0, "cmd=get kvsname=kvs-1 key=PMI_process_mapping\n");
    cr_expect_str_eq(take(&r, 0), "");
    feed(&r, 0, "cmd=get kvsname=kvs-1 key=PMI_process_mapping\n");
    cr_expect_str_eq(take(&r, 0), "cmd=get_result rc=-1 msg=too_many\n");
    rig_done(&r);
}

Test(session_wait, sessions_of_one_rank_do_not_mix)
{
    struct rig r;
    unsigned c[2];

    rig_init(&r, 2);
    for (unsigned i = 0; i < 2; i++) {
        c[i] = rig_open(&r);
        feed(&r, c[i], i == 0 ? "cmd=initack pmiid=2\n" : "cmd=initack pmiid=3\n");
        take(&r, c[i]);
    }
    feed(&r, 0, "cmd=barrier_in\n");
    feed(&r, c[1], "cmd=barrier_in\n");
    cr_expect_str_eq(take(&r, 0), "");
    cr_expect(session_is_waiting(r.end[c[1]].s));
    feed(&r, c[0], "cmd=barrier_in\n");
    cr_expect_str_eq(take(&r, c[0]), "cmd=barrier_out rc=0\n");
    cr_expect_str_eq(take(&r, c[1]), "cmd=barrier_out rc=0\n");
    cr_expect_str_eq(take(&r, 0), "");
    rig_done(&r);
}

static const struct {
    const char *in, *out;
} bad_groups[] = {
    {"cmd=barrier_in group=ROOTS:3\n", "cmd=barrier_out rc=-1 tag=3 msg=no_such_group\n"},
    {"cmd=barrier_in group=\n", "cmd=barrier_out rc=-1 tag=0 msg=no_such_group\n"},
    {"cmd=barrier_in group=:\n", "cmd=barrier_out rc=-1 tag=0 msg=no_such_tag\n"},
    {"cmd=barrier_in group=NODE:x\n", "cmd=barrier_out rc=-1 tag=0 msg=no_such_tag\n"},
    {"cmd=barrier_in tag=\n", "cmd=barrier_out rc=-1 tag=0 msg=no_such_tag\n"},
    {"cmd=barrier_in group=0,2:5\n", "cmd=barrier_out rc=-1 tag=5 msg=no_such_group\n"},
    {"cmd=barrier_in group=1:5\n", "cmd=barrier_out rc=-1 tag=5 msg=not_a_member\n"},
    {"cmd=barrier_in group=0:5\n", "cmd=barrier_out rc=0 tag=5\n"},
    {"cmd=barrier_in group=0: tag=-5\n", "cmd=barrier_out rc=0 tag=-5\n"},
};

Test(session_wait, odd_groups)
{
    for (size_t i = 0; i < ARRAY_SIZE(bad_groups); i++) {
        struct rig r;

        rig_init(&r, 2);
        cr_expect_eq(feed(&r, 0, bad_groups[i].in), 0);
        cr_expect_str_eq(take(&r, 0), bad_groups[i].out, "%s", bad_groups[i].in);
        rig_done(&r);
    }
}

Test(session_wait, a_client_can_wait_for_so_many_and_no_more)
{
    struct rig r;
    char line[64];

    rig_init(&r, 2);
    for (unsigned i = 0; i < PMI_WAITING_MAX; i++) {
        snprintf(line, sizeof(line), "cmd=barrier_in group=WORLD:%u\n", i / 2);
        feed(&r, 0, line);
    }
    cr_expect_str_eq(take(&r, 0), "");
    feed(&r, 0, "cmd=barrier_in group=WORLD:9999\n");
    cr_expect_str_eq(take(&r, 0), "cmd=barrier_out rc=-1 tag=9999 msg=too_many\n");
    feed(&r, 0, "cmd=lookup_name service=x\n");
    cr_expect_str_eq(take(&r, 0), "cmd=lookup_result rc=-1 msg=too_many\n");
    rig_done(&r);
}

/* The transcript of MPICH 4.0.2, answered in our order. */
Test(session_wait, names)
{
    struct rig r;

    rig_init(&r, 1);
    feed(&r, 0, "cmd=publish_name service=my-svc port=\x02\n");
    cr_expect_str_eq(take(&r, 0), "cmd=publish_result rc=0\n");
    feed(&r, 0, "cmd=publish_name service=my-svc port=tag#0$description#vm$port#55489$ifname#127.0.0.1$\n");
    cr_expect_str_eq(take(&r, 0), "cmd=publish_result rc=1 msg=key_already_present\n");
    feed(&r, 0, "cmd=lookup_name service=my-svc\n");
    cr_expect_str_eq(take(&r, 0), "cmd=lookup_result rc=0 port=\x02\n");
    feed(&r, 0, "cmd=lookup_name service=nosuch\n");
    cr_expect_str_eq(take(&r, 0), "cmd=lookup_result rc=1 msg=service_not_found\n");
    feed(&r, 0, "cmd=unpublish_name service=my-svc\ncmd=unpublish_name service=my-svc\n");
    cr_expect_str_eq(take(&r, 0), "cmd=unpublish_result rc=0\ncmd=unpublish_result rc=1 msg=service_not_found\n");
    rig_done(&r);
}

Test(session_wait, odd_names)
{
    static char line[1400];
    struct rig r;

    rig_init(&r, 1);
    feed(&r, 0, "cmd=publish_name service=s port=a b  c=d\ncmd=lookup_name service=s\n");
    cr_expect_str_eq(take(&r, 0), "cmd=publish_result rc=0\ncmd=lookup_result rc=0 port=a b  c=d\n");
    feed(&r, 0, "cmd=publish_name port=p service=t\ncmd=lookup_name service=t\n");
    cr_expect_str_eq(take(&r, 0), "cmd=publish_result rc=0\ncmd=lookup_result rc=0 port=p\n");
    feed(&r, 0, "cmd=publish_name service=u\ncmd=publish_name port=x\ncmd=lookup_name\ncmd=unpublish_name\n");
    cr_expect_str_eq(take(&r, 0), "cmd=publish_result rc=-1 msg=malformed\ncmd=publish_result rc=-1 msg=malformed\n"
                                  "cmd=lookup_result rc=-1 msg=malformed\ncmd=unpublish_result rc=-1 msg=malformed\n");
    /* The longest port of which the answer fits a client's buffer, and one more. */
    snprintf(line, sizeof(line), "cmd=publish_name service=l port=%0994d\n", 7);
    feed(&r, 0, line);
    feed(&r, 0, "cmd=lookup_name service=l\n");
    cr_expect_eq(r.end[0].out.len, strlen("cmd=publish_result rc=0\n") + PMI_REPLY_MAX);
    take(&r, 0);
    snprintf(line, sizeof(line), "cmd=publish_name service=m port=%0995d\n", 7);
    feed(&r, 0, line);
    snprintf(line, sizeof(line), "cmd=lookup_name service=%0257d\n", 7);
    feed(&r, 0, line);
    cr_expect_str_eq(take(&r, 0), "cmd=publish_result rc=-1 msg=too_long\ncmd=lookup_result rc=-1 msg=too_long\n");
    rig_done(&r);
}

Test(session_wait, names_refused_or_answered_late)
{
    struct rig r;

    rig_init(&r, 1);
    r.refuse_name = -ENOSYS;
    feed(&r, 0, "cmd=lookup_name service=s\n");
    cr_expect_str_eq(take(&r, 0), "cmd=lookup_result rc=-1 msg=not_served\n");
    r.refuse_name = 0;
    r.hold_names = true;
    feed(&r, 0, "cmd=lookup_name service=s\ncmd=get_appnum\n");
    cr_expect_str_eq(take(&r, 0), "cmd=appnum rc=0 appnum=0\n");
    session_name_done(r.end[0].s, r.name_req + 1, 0, span_of("p"));
    session_spawn_done(r.end[0].s, r.name_req, 0, "kvs-2", NULL, 0);
    cr_expect_str_eq(take(&r, 0), "", "nobody asked that");
    session_name_done(r.end[0].s, r.name_req, 0, span_of("p"));
    session_name_done(r.end[0].s, r.name_req, 0, span_of("p"));
    cr_expect_str_eq(take(&r, 0), "cmd=lookup_result rc=0 port=p\n");
    feed(&r, 0, "cmd=unpublish_name service=s\n"); /* freed while it waits */
    rig_done(&r);
}
