/* SPDX-License-Identifier: BSD-3-Clause */
#include <criterion/criterion.h>
#include <stdio.h>
#include "session_rig.h"

#define INIT "cmd=init pmi_version=2 pmi_subversion=0\n"
#define JUNK "\0;val="

static void rig_init2(struct rig *r, unsigned n)
{
    rig_init(r, n);
    for (unsigned i = 0; i < n; i++) {
        cr_assert_eq(feed(r, i, INIT), 0);
        cr_assert_str_eq(take(r, i), "cmd=response_to_init pmi_version=2 pmi_subversion=0 rc=0\n");
    }
}

#define X10(s) s s s s s s s s s s
#define X63 X10("123456") "abc"
#define X1023 X10(X10("1234567890")) "12345678901234567890123"

static const struct {
    const char *in, *out; /* one frame in; out without length */
} rows[] = {
    {"cmd=fullinit;pmirank=0;threaded=FALSE;",
     "cmd=fullinit-response;pmi-version=2;pmi-subversion=0;rank=0;size=1;appnum=0;debugged=FALSE;pmiverbose=FALSE;rc=0;"
     "\n"},
    {"cmd=fullinit;", "cmd=fullinit-response;pmi-version=2;pmi-subversion=0;rank=0;size=1;appnum=0;debugged=FALSE;"
                      "pmiverbose=FALSE;rc=0;\n"},
    {"cmd=job-getid;", "cmd=job-getid-response;jobid=kvs-1;rc=0;\n"},
    {"cmd=job-getid;thrid=0x7ffc12d00ff0;", "cmd=job-getid-response;thrid=0x7ffc12d00ff0;jobid=kvs-1;rc=0;\n"},
    {"cmd=job-getid;thrid=a;;b;", "cmd=job-getid-response;thrid=a;;b;jobid=kvs-1;rc=0;\n"},
    {"cmd=info-getjobattr;key=PMI_process_mapping;",
     "cmd=info-getjobattr-response;found=TRUE;value=(vector,(0,1,4));rc=0;\n"},
    {"cmd=info-getjobattr;key=universeSize;", "cmd=info-getjobattr-response;found=TRUE;value=1;rc=0;\n"},
    {"cmd=info-getjobattr;key=hasNameServ;", "cmd=info-getjobattr-response;found=TRUE;value=TRUE;rc=0;\n"},
    {"cmd=info-getjobattr;key=PMI_netinfo_of_task;", "cmd=info-getjobattr-response;found=FALSE;rc=0;\n"},
    {"cmd=info-getjobattr;", "cmd=info-getjobattr-response;found=FALSE;rc=-1;errmsg=no_key;\n"},
    {"cmd=info-putnodeattr;key=-bcast-1-0;value=2F64;", "cmd=info-putnodeattr-response;rc=0;\n"},
    {"cmd=info-putnodeattr;key=k;", "cmd=info-putnodeattr-response;rc=-1;errmsg=no_value;\n"},
    {"cmd=info-putnodeattr;value=v;", "cmd=info-putnodeattr-response;rc=-1;errmsg=no_key;\n"},
    {"cmd=info-getnodeattr;key=k;", "cmd=info-getnodeattr-response;found=FALSE;rc=0;\n"},
    {"cmd=info-getnodeattr;key=k;wait=FALSE;", "cmd=info-getnodeattr-response;found=FALSE;rc=0;\n"},
    {"cmd=info-getnodeattr;key=k;wait=TRUE;", ""},
    {"cmd=info-getnodeattr;wait=TRUE;", "cmd=info-getnodeattr-response;found=FALSE;rc=-1;errmsg=no_key;\n"},
    {"cmd=kvs-put;key=k;value=v;", "cmd=kvs-put-response;rc=0;\n"},
    {"cmd=kvs-put;key=k;value=;", "cmd=kvs-put-response;rc=0;\n"},
    {"cmd=kvs-put;key=k;", "cmd=kvs-put-response;rc=-1;errmsg=no_value;\n"},
    {"cmd=kvs-put;thrid=1;value=k;", "cmd=kvs-put-response;thrid=1;rc=-1;errmsg=no_key;\n"},
    {"cmd=kvs-put;key=" X63 ";value=" X1023 ";", "cmd=kvs-put-response;rc=0;\n"},
    {"cmd=kvs-put;key=" X63 "d;value=v;", "cmd=kvs-put-response;rc=5;errmsg=too_long;\n"},
    {"cmd=kvs-put;key=k;value=" X1023 "4;", "cmd=kvs-put-response;rc=7;errmsg=too_long;\n"},
    {"cmd=map-kvs;thrid=3;", "cmd=map-kvs-response;thrid=3;slot=0;rc=0;\n"},
    {"cmd=kvs-fence;", "cmd=kvs-fence-response;rc=0;\n"},
    {"cmd=kvs-fence;answer=bell;", "cmd=kvs-fence-response;rc=0;\n"},
    {"cmd=kvs-fence;thrid=0x1;", "cmd=kvs-fence-response;thrid=0x1;rc=0;\n"},
    {"cmd=kvs-get;key=-NONEXIST-KEY;", "cmd=kvs-get-response;found=FALSE;rc=0;\n"},
    {"cmd=kvs-get;jobid=kvs-1;srcid=0;key=PMI_process_mapping;",
     "cmd=kvs-get-response;found=TRUE;value=(vector,(0,1,4));rc=0;\n"},
    {"cmd=kvs-get;jobid=;key=PMI_process_mapping;", "cmd=kvs-get-response;found=TRUE;value=(vector,(0,1,4));rc=0;\n"},
    {"cmd=kvs-get;", "cmd=kvs-get-response;found=FALSE;rc=-1;errmsg=no_key;\n"},
    {"cmd=name-publish;name=my-svc;port=tag#0$..$;infokeycount=0;", "cmd=name-publish-response;rc=0;\n"},
    {"cmd=name-publish;name=my-svc;", "cmd=name-publish-response;rc=-1;errmsg=malformed;\n"},
    {"cmd=name-publish;name=a\nb;port=x;", "cmd=name-publish-response;rc=-1;errmsg=malformed;\n"},
    {"cmd=name-lookup;name=my-svc;", "cmd=name-lookup-response;found=FALSE;rc=1;\n"},
    {"cmd=name-lookup;", "cmd=name-lookup-response;found=FALSE;rc=-1;errmsg=malformed;\n"},
    {"cmd=name-unpublish;name=a;;b;", "cmd=name-unpublish-response;rc=1;errmsg=service_a;;b_not_found;\n"},
    {"cmd=job-connect;jobid=kvs-2;", "cmd=job-connect-response;kvscopy=FALSE;rc=1;errmsg=not_served;\n"},
    {"cmd=job-disconnect;jobid=kvs-2;", "cmd=job-disconnect-response;rc=1;errmsg=not_served;\n"},
    {"cmd=ring;count=1;left=a;right=b;", "cmd=ring-response;rc=-1;errmsg=not_served;\n"},
    {"cmd=dance;thrid=7;", "cmd=dance-response;thrid=7;rc=-1;errmsg=unknown_command;\n"},
    {"cmd=" X63 "d;", "cmd=unknown-response;rc=-1;errmsg=unknown_command;\n"},
    {"cmd=kvs-getx;", "cmd=kvs-getx-response;rc=-1;errmsg=unknown_command;\n"},
    {"cmd=finalize;", "cmd=finalize-response;rc=0;\n"},
};

Test(session2, rows)
{
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        struct rig r;

        rig_init2(&r, 1);
        cr_expect_eq(feed_frame(&r, 0, rows[i].in), 0, "%s", rows[i].in);
        cr_expect_str_eq(take_frames(&r, 0), rows[i].out, "%s", rows[i].in);
        rig_done(&r);
    }
}

/* Everything above in one read, and a byte at a time. */
Test(session2, pipelines_and_fragments_change_nothing)
{
    struct buf in = {0}, want = {0};
    struct rig r;

    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        /* Where one request does not change what another is answered. */
        if (strstr(rows[i].in, "my-svc") == NULL) {
            buf_printf(&in, "%6zu%s", strlen(rows[i].in), rows[i].in);
            buf_add_str(&want, rows[i].out);
        }
    }
    rig_init2(&r, 1);
    cr_expect_eq(session_feed(r.end[0].s, buf_span(&in), NULL), 0);
    cr_expect_str_eq(take_frames(&r, 0), buf_str(&want));
    rig_done(&r);
    rig_init2(&r, 1);
    for (size_t i = 0; i < in.len; i++)
        cr_assert_eq(session_feed(r.end[0].s, (struct span){in.p + i, 1}, NULL), 0);
    cr_expect_str_eq(take_frames(&r, 0), buf_str(&want));
    rig_done(&r);
    buf_done(&in);
    buf_done(&want);
}

Test(session2, values_keep_semicolons_blanks_and_newlines)
{
    struct rig r;

    rig_init2(&r, 2);
    feed_frame(&r, 0, "cmd=kvs-put;key=a;;b;value=semi;;colon=x y\n;;;");
    feed_frame(&r, 0, "cmd=kvs-get;key=a;;b;");
    cr_expect_str_eq(take_frames(&r, 0), "cmd=kvs-put-response;rc=0;\n"
                                         "cmd=kvs-get-response;found=TRUE;value=semi;;colon=x y\n;;;rc=0;\n");
    /* PMI-1 gets the same bytes, or is told that they are none for a line. */
    feed_frame(&r, 0, "cmd=kvs-put;key=c;value=semi;;colon=x y;");
    feed_frame(&r, 0, "cmd=kvs-fence;");
    feed(&r, 1, "cmd=init pmi_version=1 pmi_subversion=1\n");
    feed(&r, 1, "cmd=barrier_in\n");
    take(&r, 1);
    feed(&r, 1, "cmd=get key=c\ncmd=get key=a;b\n");
    cr_expect_str_eq(take(&r, 1), "cmd=get_result rc=0 value=semi;colon=x y\ncmd=get_result rc=-1 msg=not_one_line\n");
    rig_done(&r);
}

Test(session2, a_fence_is_answered_when_all_are_in_and_brings_the_keys)
{
    struct rig r;

    rig_init2(&r, 2);
    feed_frame(&r, 0, "cmd=kvs-put;key=bc-0;value=with=eq:x;");
    feed_frame(&r, 0, "cmd=kvs-fence;");
    cr_expect_str_eq(take_frames(&r, 0), "cmd=kvs-put-response;rc=0;\n");
    cr_expect(session_is_waiting(r.end[0].s));
    feed_frame(&r, 1, "cmd=kvs-fence;");
    cr_expect_str_eq(take_frames(&r, 0), "cmd=kvs-fence-response;rc=0;\n");
    feed_frame(&r, 1, "cmd=kvs-get;jobid=kvs-1;srcid=0;key=bc-0;");
    cr_expect_str_eq(take_frames(&r, 1),
                     "cmd=kvs-fence-response;rc=0;\ncmd=kvs-get-response;found=TRUE;value=with=eq:x;rc=0;\n");
    r.refuse_barrier = -EPIPE;
    feed_frame(&r, 1, "cmd=kvs-fence;");
    cr_expect_str_eq(take_frames(&r, 1), "cmd=kvs-fence-response;rc=-1;\n");
    rig_done(&r);
}

Test(session2, threads_wait_side_by_side)
{
    struct rig r;

    rig_init2(&r, 2);
    feed_frame(&r, 0, "cmd=kvs-fence;thrid=0xa;");
    feed_frame(&r, 0, "cmd=info-getnodeattr;thrid=0xb;key=k;wait=TRUE;");
    feed_frame(&r, 0, "cmd=kvs-fence;thrid=0xc;");
    feed_frame(&r, 0, "cmd=job-getid;thrid=0xd;");
    cr_expect_str_eq(take_frames(&r, 0), "cmd=job-getid-response;thrid=0xd;jobid=kvs-1;rc=0;\n");
    feed_frame(&r, 1, "cmd=info-putnodeattr;key=k;value=v;");
    cr_expect_str_eq(take_frames(&r, 0), "cmd=info-getnodeattr-response;thrid=0xb;found=TRUE;value=v;rc=0;\n");
    cr_expect_str_eq(take_frames(&r, 1), "cmd=info-putnodeattr-response;rc=0;\n");
    feed_frame(&r, 1, "cmd=kvs-fence;");
    cr_expect_str_eq(take_frames(&r, 0), "cmd=kvs-fence-response;thrid=0xa;rc=0;\n");
    feed_frame(&r, 1, "cmd=kvs-fence;");
    cr_expect_str_eq(take_frames(&r, 0), "cmd=kvs-fence-response;thrid=0xc;rc=0;\n");
    rig_done(&r);
}

Test(session2, node_attributes_are_waited_for)
{
    struct rig r;

    rig_init2(&r, 3);
    feed_frame(&r, 0, "cmd=info-getnodeattr;key=-bcast-1-0;wait=TRUE;");
    feed_frame(&r, 1, "cmd=info-getnodeattr;key=-bcast-1-0;wait=TRUE;");
    feed_frame(&r, 1, "cmd=info-getnodeattr;thrid=1;key=never;wait=TRUE;");
    /* One that waits for itself, in another thread. */
    feed_frame(&r, 2, "cmd=info-getnodeattr;thrid=1;key=-bcast-1-0;wait=TRUE;");
    session_free(r.end[1].s);
    r.end[1].s = NULL;
    feed_frame(&r, 2, "cmd=info-putnodeattr;thrid=2;key=-bcast-1-0;value=2F;");
    cr_expect_str_eq(take_frames(&r, 0), "cmd=info-getnodeattr-response;found=TRUE;value=2F;rc=0;\n");
    cr_expect_str_eq(take_frames(&r, 2), "cmd=info-getnodeattr-response;thrid=1;found=TRUE;value=2F;rc=0;\n"
                                         "cmd=info-putnodeattr-response;thrid=2;rc=0;\n");
    feed_frame(&r, 0, "cmd=info-getnodeattr;key=-bcast-1-0;wait=TRUE;");
    cr_expect_str_eq(take_frames(&r, 0), "cmd=info-getnodeattr-response;found=TRUE;value=2F;rc=0;\n");
    rig_done(&r);
}

/* "KEY", or "KEY?" where another thread of the client may put it. */
static const char *awaits(const struct rig *r, unsigned i)
{
    static char text[100];
    bool threaded;
    struct span key = session_awaits_attr(r->end[i].s, &threaded);

    snprintf(text, sizeof(text), "%.*s%s", SPAN_FMT(key), key.p != NULL && threaded ? "?" : "");
    return text;
}

Test(session2, it_is_known_who_can_do_nothing_but_wait_for_a_node_attribute)
{
    struct rig r;

    rig_init2(&r, 3);
    cr_expect_str_eq(awaits(&r, 0), "");
    feed_frame(&r, 0, "cmd=info-getnodeattr;key=k;wait=TRUE;");
    cr_expect_str_eq(awaits(&r, 0), "k");
    feed_frame(&r, 1, "cmd=info-getnodeattr;thrid=1;key=k;wait=TRUE;");
    cr_expect_str_eq(awaits(&r, 1), "k?");
    feed_frame(&r, 1, "cmd=kvs-fence;thrid=2;");
    cr_expect_str_eq(awaits(&r, 1), "");
    feed_frame(&r, 2, "cmd=fullinit;pmirank=2;threaded=TRUE;");
    feed_frame(&r, 2, "cmd=info-getnodeattr;key=k;wait=TRUE;");
    cr_expect_str_eq(awaits(&r, 2), "k?");
    take_frames(&r, 2);
    attrs_give_up(r.job.attrs);
    cr_expect_str_eq(take_frames(&r, 0), "cmd=info-getnodeattr-response;found=FALSE;rc=-1;errmsg=nobody_left;\n");
    cr_expect_str_eq(take_frames(&r, 1),
                     "cmd=info-getnodeattr-response;thrid=1;found=FALSE;rc=-1;errmsg=nobody_left;\n");
    cr_expect_str_eq(awaits(&r, 0), "");
    rig_done(&r);
}

Test(session2, a_spawned_job_knows_its_spawner_and_has_none_of_its_keys)
{
    struct rig r;

    rig_init2(&r, 1);
    r.job.spawner = "kvs-0";
    feed_frame(&r, 0, "cmd=fullinit;pmirank=0;");
    cr_expect_not_null(strstr(take_frames(&r, 0), ";spawner-jobid=kvs-0;debugged="));
    feed_frame(&r, 0, "cmd=kvs-get;jobid=kvs-0;key=PMI_process_mapping;");
    cr_expect_str_eq(take_frames(&r, 0), "cmd=kvs-get-response;found=FALSE;rc=0;\n");
    rig_done(&r);
}

Test(session2, a_mapping_may_be_refused)
{
    struct rig r;

    rig_init2(&r, 1);
    r.refuse_map = -EOPNOTSUPP;
    cr_expect_eq(feed_frame(&r, 0, "cmd=map-kvs;"), 0);
    cr_expect_str_eq(take_frames(&r, 0), "cmd=map-kvs-response;rc=-1;errmsg=refused;\n");
    rig_done(&r);
}

Test(session2, a_fence_by_the_bell_has_no_reply)
{
    struct rig r;

    rig_init2(&r, 1);
    feed_frame(&r, 0, "cmd=map-kvs;what=bell;");
    cr_expect_str_eq(take_frames(&r, 0), "cmd=map-kvs-response;slot=0;rc=0;\n");
    cr_expect_eq(feed_frame(&r, 0, "cmd=kvs-fence;answer=bell;"), 0);
    cr_expect_str_eq(take_frames(&r, 0), "");
    rig_done(&r);
}

Test(session2, names)
{
    struct rig r;

    rig_init2(&r, 1);
    feed_frame(&r, 0, "cmd=name-publish;name=s;port=tag#0$a;;b$;infokeycount=0;");
    feed_frame(&r, 0, "cmd=name-publish;name=s;port=q;");
    feed_frame(&r, 0, "cmd=name-lookup;thrid=9;name=s;");
    feed_frame(&r, 0, "cmd=name-unpublish;name=s;");
    feed_frame(&r, 0, "cmd=name-unpublish;name=s;");
    cr_expect_str_eq(take_frames(&r, 0),
                     "cmd=name-publish-response;rc=0;\n"
                     "cmd=name-publish-response;rc=1;errmsg=duplicate_service_s;\n"
                     "cmd=name-lookup-response;thrid=9;port=tag#0$a;;b$;value=tag#0$a;;b$;found=TRUE;rc=0;\n"
                     "cmd=name-unpublish-response;rc=0;\n"
                     "cmd=name-unpublish-response;rc=1;errmsg=service_s_not_found;\n");
    r.hold_names = true;
    feed_frame(&r, 0, "cmd=name-lookup;thrid=1;name=s;");
    feed_frame(&r, 0, "cmd=name-lookup;thrid=2;name=s;");
    session_name_done(r.end[0].s, r.name_req, 0, span_of("2"));
    session_name_done(r.end[0].s, r.name_req - 1, -ETIMEDOUT, SPAN_NONE);
    cr_expect_str_eq(take_frames(&r, 0), "cmd=name-lookup-response;thrid=2;port=2;value=2;found=TRUE;rc=0;\n"
                                         "cmd=name-lookup-response;thrid=1;found=FALSE;rc=-1;errmsg=refused;\n");
    rig_done(&r);
}

static const struct {
    const char *in;
    int code;
    const char *text;
} aborts[] = {
    {"cmd=abort;isworld=TRUE;msg=application called MPI_Abort(MPI_COMM_WORLD, 42) - process 1;", 1,
     "application called MPI_Abort(MPI_COMM_WORLD, 42) - process"},
    {"cmd=abort;exitcode=-1;message=bye now;", 255, "bye now"},
    {"cmd=abort;exitcode=3;message=a;;b;", 3, "a;b"},
    {"cmd=abort;", 1, ""},
};

Test(session2, abort_has_no_reply)
{
    for (size_t i = 0; i < ARRAY_SIZE(aborts); i++) {
        struct rig r;

        rig_init2(&r, 1);
        cr_expect_eq(feed_frame(&r, 0, aborts[i].in), 0);
        cr_expect_eq(r.aborts, 1);
        cr_expect_eq(r.abort_code, aborts[i].code);
        cr_expect(span_starts(span_of(r.abort_text), aborts[i].text), "%s", r.abort_text);
        cr_expect_str_eq(take_frames(&r, 0), "");
        feed_frame(&r, 0, "cmd=job-getid;");
        cr_expect_str_eq(take_frames(&r, 0), "cmd=job-getid-response;jobid=kvs-1;rc=0;\n");
        rig_done(&r);
    }
}

static void feed_junk(struct rig *r, const char *payload)
{
    struct buf b = {0};

    buf_printf(&b, "%-6zu%s", strlen(payload) + 6, payload);
    buf_add(&b, JUNK, 6);
    cr_expect_eq(session_feed(r->end[0].s, buf_span(&b), NULL), 0, "%s", payload);
    buf_done(&b);
}

/* MPICH 4.0.2's client counts 6 bytes too many, and sends them. */
Test(session2, six_bytes_of_junk_behind_every_frame)
{
    struct rig r;

    rig_init2(&r, 1);
    feed_junk(&r, "cmd=fullinit;pmirank=0;threaded=FALSE;");
    take_frames(&r, 0);
    feed_junk(&r, "cmd=job-getid;");
    feed_junk(&r, "cmd=info-putnodeattr;key=-bcast-1-0;value=2F64;");
    feed_junk(&r, "cmd=kvs-put;key=P0-businesscard;value=description#vm$port#57473$ifname#127.0.0.1$;");
    feed_junk(&r, "cmd=kvs-fence;");
    feed_junk(&r, "cmd=finalize;");
    cr_expect_str_eq(take_frames(&r, 0), "cmd=job-getid-response;jobid=kvs-1;rc=0;\n"
                                         "cmd=info-putnodeattr-response;rc=0;\n"
                                         "cmd=kvs-put-response;rc=0;\n"
                                         "cmd=kvs-fence-response;rc=0;\n"
                                         "cmd=finalize-response;rc=0;\n");
    /* The next program on the descriptor counts right. */
    feed(&r, 0, INIT);
    take(&r, 0);
    feed_frame(&r, 0, "cmd=fullinit;pmirank=0;threaded=TRUE;");
    feed_frame(&r, 0, "cmd=job-getid;");
    cr_expect_not_null(strstr(take_frames(&r, 0), "cmd=job-getid-response;jobid=kvs-1;rc=0;\n"));
    rig_done(&r);
}

static const struct {
    const char *in;
    size_t len; /* 0: as text */
} rubbish[] = {
    {"hello\n", 0},
    {"     0", 0},
    {"cmd=get_maxes\n", 0},
    {"cmd=barrier_in\n", 0},
    {"\x16\x03\x01\x02\x00\x01", 6},
    {"     4abcd", 0},
    {"    11cmd=job-get;", 0},
    {"    13key=a;cmd=b;c", 0},
    {"    12cmd=a;b=\0c;", 18},
    {"    90cmd=a;thrid=" X63 "123456789012345678;", 0},
};

Test(session2, rubbish_ends_it_and_is_quoted)
{
    for (size_t i = 0; i < ARRAY_SIZE(rubbish); i++) {
        struct rig r;
        struct err err = {0};
        size_t len = rubbish[i].len ? rubbish[i].len : strlen(rubbish[i].in);

        rig_init2(&r, 1);
        cr_expect_eq(session_feed(r.end[0].s, (struct span){rubbish[i].in, len}, &err), -EPROTO, "%s", rubbish[i].in);
        cr_expect_not_null(strchr(err.text, '\''), "%s: %s", rubbish[i].in, err.text);
        cr_expect_str_eq(take(&r, 0), "", "%s was answered", rubbish[i].in);
        cr_expect_eq(feed_frame(&r, 0, "cmd=job-getid;"), -EPROTO);
        rig_done(&r);
    }
}

Test(session2, trace_shows_payloads)
{
    struct rig r;

    rig_init2(&r, 1);
    feed_frame(&r, 0, "cmd=finalize;");
    cr_expect_str_eq(buf_str(&r.traced), "C cmd=init pmi_version=2 pmi_subversion=0\n"
                                         "S cmd=response_to_init pmi_version=2 pmi_subversion=0 rc=0\n"
                                         "C cmd=finalize;\nS cmd=finalize-response;rc=0;\n");
    rig_done(&r);
}
