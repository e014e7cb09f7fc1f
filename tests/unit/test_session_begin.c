/* SPDX-License-Identifier: BSD-3-Clause */
/* How a session begins: initack, versions, connections of which nobody knows yet whose they are. */
#include <criterion/criterion.h>
#include "session_rig.h"

#define INIT1 "cmd=init pmi_version=1 pmi_subversion=1\n"
#define INIT2 "cmd=init pmi_version=2 pmi_subversion=0\n"
#define INIT2_ANSWER "cmd=response_to_init pmi_version=2 pmi_subversion=0 rc=0\n"

/* MPICH 4.0.2 on PMI_PORT, whose rank is not its id. */
Test(session_begin, initack_then_init)
{
    struct rig r;
    unsigned c;

    rig_init(&r, 2);
    c = rig_open(&r);
    cr_expect_not(session_is_bound(r.end[c].s));
    cr_expect_eq(feed(&r, c, "cmd=initack pmiid=3\n"), 0);
    cr_expect_str_eq(take(&r, c), "cmd=initack\ncmd=set size=2\ncmd=set rank=1\ncmd=set debug=0\n");
    cr_expect(session_is_bound(r.end[c].s));
    cr_expect_eq(session_who(r.end[c].s)->set, 1);
    cr_expect_eq(session_phase(r.end[c].s), SESSION_NEW);
    cr_expect_eq(feed(&r, c, INIT1 "cmd=get_maxes\n"), 0);
    cr_expect_str_eq(take(&r, c), "cmd=response_to_init rc=0 pmi_version=1 pmi_subversion=1\n"
                                  "cmd=maxes rc=0 kvsname_max=64 keylen_max=64 vallen_max=1024\n");
    cr_expect_eq(session_phase(r.end[c].s), SESSION_READY);
    rig_done(&r);
}

Test(session_begin, initack_tells_an_owner_who_it_is)
{
    struct rig r;

    rig_init(&r, 4);
    cr_expect_eq(feed(&r, 2, "cmd=initack pmiid=0\n" INIT1), 0);
    cr_expect_str_eq(take(&r, 2), "cmd=initack\ncmd=set size=4\ncmd=set rank=2\ncmd=set debug=0\n"
                                  "cmd=response_to_init rc=0 pmi_version=1 pmi_subversion=1\n");
    rig_done(&r);
}

static const struct {
    const char *in;
    int rc;
    const char *text; /* part of what is said */
} refused[] = {
    {INIT1, -EPROTO, "PMI_ID is not set"},
    {"cmd=get_maxes\n", -EPROTO, "get_maxes"},
    {"cmd=barrier_in\n", -EPROTO, "barrier_in"},
    {"cmd=dance\n", -EPROTO, "dance"},
    {"cmd=abort exitcode=3\n", -EPROTO, "abort"},
    {"mcmd=spawn\n", -EPROTO, "spawn"},
    {"GET / HTTP/1.1\r\n", -EPROTO, "GET"},
    {"cmd=initack\n", -EPROTO, "pmiid"},
    {"cmd=initack pmiid=-1\n", -EPROTO, "-1"},
    {"cmd=initack pmiid=one\n", -EPROTO, "one"},
    {"cmd=initack pmiid=4294967296\n", -EPROTO, "4294967296"},
    {"cmd=initack pmiid=99\n", -EPERM, "id 99 is nobody's"},
    {INIT2 "14    cmd=kvs-fence;", -EPROTO, "kvs-fence"},
    {INIT2 "13    cmd=fullinit;", -EPROTO, "PMI_ID is not set"},
    {INIT2 "24    cmd=fullinit;pmirank=-1;", -EPROTO, "PMI_ID is not set"},
    {INIT2 "24    cmd=fullinit;pmirank=-7;", -EPROTO, "-7"},
    {INIT2 "24    cmd=fullinit;pmirank=99;", -EPERM, "id 99 is nobody's"},
    {INIT2 "  1025", -E2BIG, "1025"},
    {INIT2 "cmd=initack pmiid=0\n", -EPROTO, "PMI-2"},
};

Test(session_begin, nobody_gets_nothing)
{
    for (size_t i = 0; i < ARRAY_SIZE(refused); i++) {
        struct rig r;
        struct err err = {0};
        unsigned c;
        int rc;

        rig_init(&r, 2);
        c = rig_open(&r);
        rc = session_feed(r.end[c].s, span_of(refused[i].in), &err);
        cr_expect_eq(rc, refused[i].rc, "%s: %d", refused[i].in, rc);
        cr_expect_not_null(strstr(err.text, refused[i].text), "%s: %s", refused[i].in, err.text);
        cr_expect_str_eq(take(&r, c), span_starts(span_of(refused[i].in), INIT2) ? INIT2_ANSWER : "");
        cr_expect_eq(r.aborts, 0);
        cr_expect_not(session_is_bound(r.end[c].s));
        cr_expect_lt(feed(&r, c, "cmd=initack pmiid=0\n"), 0, "refused for good");
        rig_done(&r);
    }
}

Test(session_begin, a_stranger_gets_little_room)
{
    static char big[2000];
    struct rig r;
    unsigned c;

    memset(big, 'a', sizeof(big));
    rig_init(&r, 1);
    c = rig_open(&r);
    cr_expect_eq(session_feed(r.end[c].s, (struct span){big, 1024}, NULL), 0);
    cr_expect_eq(session_feed(r.end[c].s, (struct span){big, 1}, NULL), -E2BIG);
    rig_done(&r);
}

Test(session_begin, pmi2_on_a_port_says_who_it_is_in_fullinit)
{
    struct rig r;
    unsigned c, slurm;

    rig_init(&r, 2);
    c = rig_open(&r);
    slurm = rig_open(&r);
    feed(&r, c, INIT2);
    cr_expect_str_eq(take(&r, c), INIT2_ANSWER);
    feed_frame(&r, c, "cmd=fullinit;pmirank=1;");
    cr_expect_str_eq(take_frames(&r, c), "cmd=fullinit-response;pmi-version=2;pmi-subversion=0;rank=1;size=2;appnum=0;"
                                         "debugged=FALSE;pmiverbose=FALSE;rc=0;\n");
    /* Slurm's client does not call it a rank when it comes from PMI_ID. */
    feed(&r, slurm, INIT2);
    take(&r, slurm);
    feed_frame(&r, slurm, "cmd=fullinit;srcid=2;threaded=FALSE;");
    cr_expect_not_null(strstr(take_frames(&r, slurm), "rank=0;size=2;"));
    cr_expect_eq(session_who(r.end[slurm].s)->set, 1);
    rig_done(&r);
}

/* As in sh -c 'a; b' on one descriptor. */
Test(session_begin, a_second_program_may_speak_the_other_wire)
{
    struct rig r;

    rig_init(&r, 1);
    feed(&r, 0, INIT2);
    take(&r, 0);
    cr_expect_eq(session_phase(r.end[0].s), SESSION_NEW);
    feed_frame(&r, 0, "cmd=fullinit;pmirank=0;threaded=FALSE;");
    cr_expect_eq(session_phase(r.end[0].s), SESSION_READY);
    feed_frame(&r, 0, "cmd=finalize;");
    cr_expect_eq(session_phase(r.end[0].s), SESSION_FINALIZED);
    take_frames(&r, 0);
    cr_expect_eq(feed(&r, 0, INIT1 "cmd=get_appnum\n"), 0);
    cr_expect_str_eq(take(&r, 0), "cmd=response_to_init rc=0 pmi_version=1 pmi_subversion=1\n"
                                  "cmd=appnum rc=0 appnum=0\n");
    cr_expect_eq(feed(&r, 0, "cmd=finalize\n" INIT2), 0);
    take(&r, 0);
    feed_frame(&r, 0, "cmd=job-getid;");
    cr_expect_str_eq(take_frames(&r, 0), "cmd=job-getid-response;jobid=kvs-1;rc=0;\n");
    rig_done(&r);
}

Test(session_begin, subversion_2_where_it_was_wished_for)
{
    struct rig r;

    rig_init(&r, 1);
    r.job.subversion2 = true;
    feed(&r, 0, INIT1 "cmd=barrier_in\ncmd=init pmi_version=3\n");
    cr_expect_str_eq(take(&r, 0), "cmd=response_to_init rc=0 pmi_version=1 pmi_subversion=2\n"
                                  "cmd=barrier_out rc=0 tag=0\n"
                                  "cmd=response_to_init rc=-1 pmi_version=1 pmi_subversion=2\n");
    rig_done(&r);
}
