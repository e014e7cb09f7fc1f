/* SPDX-License-Identifier: BSD-3-Clause */
#include <criterion/criterion.h>
#include <stdio.h>
#include "session_rig.h"

#define X10(s) s s s s s s s s s s
#define X60 X10("123456")
#define X63 X60 "abc"
#define X64 X60 "abcd"
#define X1000 X10(X10("1234567890"))
#define X1023 X1000 "12345678901234567890123"
#define X1024 X1000 "123456789012345678901234"

static const struct {
    const char *name, *in, *out;
} rows[] = {
    {"init", "cmd=init pmi_version=1 pmi_subversion=1\n", "cmd=response_to_init rc=0 pmi_version=1 pmi_subversion=1\n"},
    {"init 1.0", "cmd=init pmi_version=1 pmi_subversion=0\n",
     "cmd=response_to_init rc=0 pmi_version=1 pmi_subversion=1\n"},
    {"init 1.2", "cmd=init pmi_version=1 pmi_subversion=2\n",
     "cmd=response_to_init rc=0 pmi_version=1 pmi_subversion=1\n"},
    {"init 0.9", "cmd=init pmi_version=0 pmi_subversion=9\n",
     "cmd=response_to_init rc=-1 pmi_version=1 pmi_subversion=1\n"},
    {"init without version", "cmd=init\n", "cmd=response_to_init rc=-1 pmi_version=1 pmi_subversion=1\n"},
    {"init of no number", "cmd=init pmi_version=one\n", "cmd=response_to_init rc=-1 pmi_version=1 pmi_subversion=1\n"},
    {"maxes", "cmd=get_maxes\n", "cmd=maxes rc=0 kvsname_max=64 keylen_max=64 vallen_max=1024\n"},
    {"appnum", "cmd=get_appnum\n", "cmd=appnum rc=0 appnum=0\n"},
    {"universe", "cmd=get_universe_size\n", "cmd=universe_size rc=0 size=1\n"},
    {"kvsname", "cmd=get_my_kvsname\n", "cmd=my_kvsname rc=0 kvsname=kvs-1\n"},
    {"mapping", "cmd=get kvsname=kvs-1 key=PMI_process_mapping\n", "cmd=get_result rc=0 value=(vector,(0,1,4))\n"},
    {"put, get", "cmd=put kvsname=k key=a value=b\ncmd=get kvsname=k key=a\n",
     "cmd=put_result rc=0\ncmd=get_result rc=0 value=b\n"},
    {"value kept byte for byte", "cmd=put key=a value= x  y=z rc=7 \r\ncmd=get key=a\n",
     "cmd=put_result rc=0\ncmd=get_result rc=0 value= x  y=z rc=7 \r\n"},
    {"put twice", "cmd=put key=a value=1\ncmd=put key=a value=2\ncmd=get key=a\n",
     "cmd=put_result rc=0\ncmd=put_result rc=0\ncmd=get_result rc=0 value=2\n"},
    {"unknown key", "cmd=get kvsname=k key=nope\n", "cmd=get_result rc=4 msg=no_such_key\n"},
    {"flux.* unknown", "cmd=get kvsname=k key=flux.instance-level\n", "cmd=get_result rc=4 msg=no_such_key\n"},
    {"kvsname 63", "cmd=put kvsname=" X63 " key=a value=b\n", "cmd=put_result rc=0\n"},
    {"kvsname 64", "cmd=put kvsname=" X64 " key=a value=b\ncmd=get key=a\n",
     "cmd=put_result rc=8 msg=too_long\ncmd=get_result rc=4 msg=no_such_key\n"},
    {"get kvsname 64", "cmd=get kvsname=" X64 " key=a\n", "cmd=get_result rc=8 msg=too_long\n"},
    {"key 63", "cmd=put kvsname=k key=" X63 " value=b\ncmd=get key=" X63 "\n",
     "cmd=put_result rc=0\ncmd=get_result rc=0 value=b\n"},
    {"key 64", "cmd=put kvsname=k key=" X64 " value=b\n", "cmd=put_result rc=5 msg=too_long\n"},
    {"get key 64", "cmd=get kvsname=k key=" X64 "\n", "cmd=get_result rc=5 msg=too_long\n"},
    {"value 1023", "cmd=put kvsname=k key=a value=" X1023 "\ncmd=get key=a\n",
     "cmd=put_result rc=0\ncmd=get_result rc=0 value=" X1023 "\n"},
    {"value 1024", "cmd=put kvsname=k key=a value=" X1024 "\ncmd=get key=a\n",
     "cmd=put_result rc=7 msg=too_long\ncmd=get_result rc=4 msg=no_such_key\n"},
    {"put without key", "cmd=put kvsname=k value=a\n", "cmd=put_result rc=-1 msg=no_key\n"},
    {"put without value", "cmd=put kvsname=k key=a\n", "cmd=put_result rc=-1 msg=no_value\n"},
    {"put of nothing", "cmd=put kvsname=k key=a value=\ncmd=get key=a\n",
     "cmd=put_result rc=0\ncmd=get_result rc=0 value=\n"},
    {"get without key", "cmd=get kvsname=k\n", "cmd=get_result rc=-1 msg=no_key\n"},
    {"barrier of one", "cmd=barrier_in\n", "cmd=barrier_out rc=0\n"},
    {"barriers back to back", "cmd=barrier_in\ncmd=barrier_in\n", "cmd=barrier_out rc=0\ncmd=barrier_out rc=0\n"},
    {"group barrier", "cmd=barrier_in group=NODE:0\n", "cmd=barrier_out rc=0 tag=0\n"},
    {"finalize", "cmd=finalize\n", "cmd=finalize_ack rc=0\n"},
    {"served after finalize", "cmd=finalize\ncmd=get_appnum\n", "cmd=finalize_ack rc=0\ncmd=appnum rc=0 appnum=0\n"},
    {"mapping of the keys", "cmd=map_kvs\n", "cmd=kvs_map rc=0 slot=0\n"},
    {"bell without having one", "cmd=barrier_in answer=bell\n", "cmd=barrier_out rc=0\n"},
    {"bell", "cmd=map_kvs what=bell\ncmd=barrier_in answer=bell\ncmd=get_appnum\n",
     "cmd=kvs_map rc=0 slot=0\ncmd=appnum rc=0 appnum=0\n"},
    {"no bell for a group", "cmd=map_kvs what=bell\ncmd=barrier_in group=NODE answer=bell\n",
     "cmd=kvs_map rc=0 slot=0\ncmd=barrier_out rc=0 tag=0\n"},
    {"create_kvs", "cmd=create_kvs\n", "cmd=newkvs rc=-1 msg=not_served\n"},
    {"destroy_kvs", "cmd=destroy_kvs kvsname=k\n", "cmd=kvs_destroyed rc=-1 msg=not_served\n"},
    {"getbyidx", "cmd=getbyidx kvsname=k idx=0\n", "cmd=getbyidx_results rc=-1 msg=not_served\n"},
    {"unknown command, and on", "cmd=dance\ncmd=get_appnum\n",
     "cmd=dance_result rc=-1 msg=unknown_command\ncmd=appnum rc=0 appnum=0\n"},
    {"very long command", "cmd=" X64 "\n", "cmd=unknown_result rc=-1 msg=unknown_command\n"},
    {"no prefix of a command", "cmd=get_max\n", "cmd=get_max_result rc=-1 msg=unknown_command\n"},
    {"blanks, order, unknown attributes", "   key=a  \t kvsname=k  color=red plain cmd=get  \n",
     "cmd=get_result rc=4 msg=no_such_key\n"},
    {"cmd not first in a put", "key=a cmd=put value=1\n", "cmd=put_result rc=0\n"},
    {"empty lines", "\n  \n\r\ncmd=get_appnum\n", "cmd=appnum rc=0 appnum=0\n"},
    {"local key", "cmd=put key=local::a value=1\ncmd=get key=local::a\n",
     "cmd=put_result rc=0\ncmd=get_result rc=0 value=1\n"},
};

Test(session, rows)
{
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        struct rig r;

        rig_init(&r, 1);
        cr_expect_eq(feed(&r, 0, rows[i].in), 0, "%s", rows[i].name);
        cr_expect_str_eq(take(&r, 0), rows[i].out, "%s", rows[i].name);
        rig_done(&r);
    }
}

/* The same, a byte at a time: fragments change nothing. */
Test(session, rows_in_fragments)
{
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        struct rig r;

        rig_init(&r, 1);
        for (const char *p = rows[i].in; *p != '\0'; p++)
            cr_expect_eq(session_feed(r.end[0].s, (struct span){p, 1}, NULL), 0, "%s", rows[i].name);
        cr_expect_str_eq(take(&r, 0), rows[i].out, "%s", rows[i].name);
        rig_done(&r);
    }
}

/* What MPICH 4.0.2 reads a reply into has 1024 bytes; only a get of a value over 866 bytes, which it never puts, is
 * longer. */
Test(session, replies_are_short_and_begin_with_cmd_and_rc)
{
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        const char *p = rows[i].out;

        while (*p != '\0') {
            size_t len = strcspn(p, "\n") + 1;
            char cmd[80];
            int rc;

            cr_expect_eq(sscanf(p, "cmd=%79s rc=%d", cmd, &rc), 2, "%s", rows[i].name);
            cr_expect(len <= PMI_REPLY_MAX || span_starts((struct span){p, len}, "cmd=get_result rc=0 value="));
            p += len;
        }
    }
}

static const struct {
    const char *name, *in;
    size_t len;
} rubbish[] = {
    {"text", "hello\n", 0},
    {"http", "GET / HTTP/1.1\r\n", 0},
    {"empty command", "cmd=\n", 0},
    {"cmd without equals", "cmd\n", 0},
    {"equals first", "cmd=get =x\n", 0},
    {"nul", "cmd=get\0 key=a\n", 15},
    {"nul in a spawn", "mcmd=spawn\na\0b\n", 15},
    {"tls", "\x16\x03\x01\x02\x00\n", 6},
    {"odd command", "cmd=\x01\x02\n", 0},
    {"PMI-2 frame", "    23cmd=fullinit;pmirank=1;\n", 0},
};

Test(session, rubbish_ends_it_and_is_quoted)
{
    for (size_t i = 0; i < ARRAY_SIZE(rubbish); i++) {
        struct rig r;
        struct err err = {0};
        size_t len = rubbish[i].len ? rubbish[i].len : strlen(rubbish[i].in);

        rig_init(&r, 1);
        cr_expect_eq(session_feed(r.end[0].s, (struct span){rubbish[i].in, len}, &err), -EPROTO, "%s", rubbish[i].name);
        cr_expect_not_null(strchr(err.text, '\''), "%s: %s", rubbish[i].name, err.text);
        cr_expect_eq(r.end[0].out.len, 0, "%s was answered", rubbish[i].name);
        cr_expect_eq(feed(&r, 0, "cmd=get_appnum\n"), -EPROTO);
        cr_expect_eq(r.end[0].out.len, 0);
        rig_done(&r);
    }
}

Test(session, endless_line)
{
    static char big[PMI_LINE_MAX + 2];
    struct rig r;

    memset(big, 'a', sizeof(big));
    memcpy(big, "cmd=put key=a value=", 20);
    /* The longest line that is read, in pieces and whole. */
    big[PMI_LINE_MAX] = '\n';
    rig_init(&r, 2);
    cr_expect_eq(session_feed(r.end[0].s, (struct span){big, 1000}, NULL), 0);
    cr_expect_eq(session_feed(r.end[0].s, (struct span){big + 1000, PMI_LINE_MAX - 1000}, NULL), 0);
    cr_expect_eq(session_feed(r.end[0].s, (struct span){"\n", 1}, NULL), 0);
    cr_expect_str_eq(take(&r, 0), "cmd=put_result rc=7 msg=too_long\n");
    cr_expect_eq(session_feed(r.end[1].s, (struct span){big, PMI_LINE_MAX + 1}, NULL), 0);
    cr_expect_str_eq(take(&r, 1), "cmd=put_result rc=7 msg=too_long\n");
    big[PMI_LINE_MAX] = 'a';
    cr_expect_eq(session_feed(r.end[0].s, (struct span){big, PMI_LINE_MAX}, NULL), 0);
    cr_expect_eq(session_feed(r.end[0].s, (struct span){big, 1}, NULL), -E2BIG);
    big[PMI_LINE_MAX + 1] = '\n';
    cr_expect_eq(session_feed(r.end[1].s, (struct span){big, PMI_LINE_MAX + 2}, NULL), -E2BIG);
    rig_done(&r);
}

static const struct {
    const char *in;
    int code;
    const char *text;
} aborts[] = {
    {"cmd=abort\n", 1, ""},
    {"cmd=abort exitcode=42\n", 42, ""},
    {"cmd=abort exitcode=42 message=abort\n", 42, "abort"},
    {"cmd=abort exitcode=3 error_msg=out of luck = 5\n", 3, "out of luck = 5"},
    {"cmd=abort exit_code=3 error_msg=x\n", 3, "x"},
    {"cmd=abort exitcode=-1\n", 255, ""},
    {"cmd=abort exitcode=0\n", 1, ""},
    {"cmd=abort exitcode=256\n", 1, ""},
    {"cmd=abort exitcode=257\n", 1, ""},
    {"cmd=abort exitcode=511\n", 255, ""},
    {"cmd=abort exitcode=many message=a b\n", 1, "a b"},
    {"cmd=abort message=a b\n", 1, "a b"},
};

Test(session, abort_has_no_reply_and_a_code_that_is_never_0)
{
    for (size_t i = 0; i < ARRAY_SIZE(aborts); i++) {
        struct rig r;

        rig_init(&r, 1);
        cr_expect_eq(feed(&r, 0, aborts[i].in), 0);
        cr_expect_eq(r.aborts, 1);
        cr_expect_eq(r.abort_code, aborts[i].code, "%s: %d", aborts[i].in, r.abort_code);
        cr_expect_str_eq(r.abort_text, aborts[i].text);
        cr_expect_eq(r.end[0].out.len, 0);
        /* The connection stays served. */
        cr_expect_eq(feed(&r, 0, "cmd=get_appnum\n"), 0);
        cr_expect_str_eq(take(&r, 0), "cmd=appnum rc=0 appnum=0\n");
        rig_done(&r);
    }
}

Test(session, phases)
{
    struct rig r;

    rig_init(&r, 1);
    cr_expect_eq(session_phase(r.end[0].s), SESSION_NEW);
    feed(&r, 0, "cmd=get_maxes\ncmd=barrier_in\ncmd=put key=a value=b\ncmd=init pmi_version=3\n");
    cr_expect_eq(session_phase(r.end[0].s), SESSION_NEW);
    feed(&r, 0, "cmd=finalize\n");
    cr_expect_eq(session_phase(r.end[0].s), SESSION_NEW);
    feed(&r, 0, "cmd=init pmi_version=1 pmi_subversion=1\n");
    cr_expect_eq(session_phase(r.end[0].s), SESSION_READY);
    feed(&r, 0, "cmd=finalize\n");
    cr_expect_eq(session_phase(r.end[0].s), SESSION_FINALIZED);
    /* A second program on the same descriptor, as in sh -c 'a; a'. */
    feed(&r, 0, "cmd=init pmi_version=1 pmi_subversion=1\n");
    cr_expect_eq(session_phase(r.end[0].s), SESSION_READY);
    rig_done(&r);
}

/* Such a descriptor cannot go over every connection. */
Test(session, a_mapping_may_be_refused)
{
    struct rig r;

    rig_init(&r, 2);
    cr_expect_eq(feed(&r, 1, "cmd=map_kvs\n"), 0);
    cr_expect_str_eq(take(&r, 1), "cmd=kvs_map rc=0 slot=1\n");
    r.refuse_map = -EOPNOTSUPP;
    cr_expect_eq(feed(&r, 1, "cmd=map_kvs\ncmd=get_appnum\n"), 0);
    cr_expect_str_eq(take(&r, 1), "cmd=kvs_map rc=-1 msg=refused\ncmd=appnum rc=0 appnum=0\n");
    cr_expect_eq(r.maps, 2);
    rig_done(&r);
}

Test(session, a_barrier_that_fails_is_answered_in_spite_of_the_bell)
{
    struct rig r;

    rig_init(&r, 2);
    cr_expect_eq(feed(&r, 1, "cmd=map_kvs what=bell\ncmd=barrier_in answer=bell\n"), 0);
    cr_expect_str_eq(take(&r, 1), "cmd=kvs_map rc=0 slot=1\n");
    barriers_break(r.barriers, -EPIPE);
    cr_expect_str_eq(take(&r, 1), "cmd=barrier_out rc=-1\n");
    rig_done(&r);
}

Test(session, a_later_version_is_refused_with_one_warning)
{
    struct rig r;

    rig_init(&r, 2);
    feed(&r, 1, "cmd=init pmi_version=3 pmi_subversion=0\n");
    cr_expect_str_eq(take(&r, 1), "cmd=response_to_init rc=-1 pmi_version=1 pmi_subversion=1\n");
    cr_expect_str_eq(r.warning, "rank 1 speaks PMI-3, which is not served here");
    feed(&r, 1, "cmd=init pmi_version=3 pmi_subversion=0\n");
    cr_expect_eq(r.warnings, 1);
    rig_done(&r);
}

Test(session, barrier_waits_for_all_and_brings_the_keys)
{
    struct rig r;

    rig_init(&r, 2);
    feed(&r, 0, "cmd=put kvsname=kvs-1 key=a value=1\ncmd=barrier_in\n");
    cr_expect_str_eq(take(&r, 0), "cmd=put_result rc=0\n");
    cr_expect(session_is_waiting(r.end[0].s));
    feed(&r, 1, "cmd=get kvsname=kvs-1 key=a\n");
    cr_expect_str_eq(take(&r, 1), "cmd=get_result rc=4 msg=no_such_key\n");
    feed(&r, 1, "cmd=barrier_in\n");
    cr_expect_str_eq(take(&r, 1), "cmd=barrier_out rc=0\n");
    cr_expect_str_eq(take(&r, 0), "cmd=barrier_out rc=0\n");
    cr_expect_not(session_is_waiting(r.end[0].s));
    feed(&r, 1, "cmd=get kvsname=kvs-1 key=a\n");
    cr_expect_str_eq(take(&r, 1), "cmd=get_result rc=0 value=1\n");
    rig_done(&r);
}

Test(session, barrier_refused_failed_or_entered_twice)
{
    static const struct barrier_id world = {.group = {"WORLD", 5}}, other = {.set = 1, .group = {"WORLD", 5}};
    struct rig r;

    rig_init(&r, 2);
    feed(&r, 0, "cmd=barrier_in\ncmd=barrier_in\n");
    cr_expect_str_eq(take(&r, 0), "");
    cr_expect_eq(r.entered, 1, "the second waits for the first to be over");
    session_barrier_out(r.end[0].s, &other, 0);
    cr_expect_str_eq(take(&r, 0), "", "not the one that it waits in");
    feed(&r, 1, "cmd=barrier_in\n");
    cr_expect_str_eq(take(&r, 0), "cmd=barrier_out rc=0\n");
    cr_expect_eq(r.entered, 3);
    session_barrier_out(r.end[0].s, &world, -EPIPE);
    cr_expect_str_eq(take(&r, 0), "cmd=barrier_out rc=-1\n");
    session_barrier_out(r.end[0].s, &world, 0);
    cr_expect_eq(r.end[0].out.len, 0, "nothing unsolicited");
    r.refuse_barrier = -EPIPE;
    feed(&r, 0, "cmd=barrier_in\n");
    cr_expect_str_eq(take(&r, 0), "cmd=barrier_out rc=-1\n");
    cr_expect_not(session_is_waiting(r.end[0].s));
    rig_done(&r);
}

Test(session, abort_is_heard_while_it_waits)
{
    struct rig r;

    rig_init(&r, 2);
    feed(&r, 0, "cmd=barrier_in\ncmd=abort exitcode=9\n");
    cr_expect_eq(r.abort_code, 9);
    rig_done(&r);
}

static void run_transcript(const char *const *requests, size_t count, const char *want)
{
    struct rig r;

    rig_init(&r, 1);
    for (size_t i = 0; i < count; i++)
        cr_assert_eq(feed(&r, 0, requests[i]), 0);
    cr_expect_str_eq(buf_str(&r.traced), want);
    cr_expect_eq(session_phase(r.end[0].s), SESSION_FINALIZED);
    rig_done(&r);
}

/* MPI_Init to MPI_Finalize as MPICH 4.0.2 does it. */
Test(session, transcript_mpich)
{
    static const char *const requests[] = {"cmd=init pmi_version=1 pmi_subversion=1\n",
                                           "cmd=get_maxes\n",
                                           "cmd=get_appnum\n",
                                           "cmd=get_my_kvsname\n",
                                           "cmd=get kvsname=kvs-1 key=PMI_process_mapping\n",
                                           "cmd=barrier_in\n",
                                           "cmd=put kvsname=kvs-1 key=-bcast-1-0 value=2F6465762F73686D\n",
                                           "cmd=barrier_in\n",
                                           "cmd=get kvsname=kvs-1 key=-bcast-1-0\n",
                                           "cmd=get_universe_size\n",
                                           "cmd=barrier_in\n",
                                           "cmd=finalize\n"};

    run_transcript(requests, ARRAY_SIZE(requests),
                   "C cmd=init pmi_version=1 pmi_subversion=1\n"
                   "S cmd=response_to_init rc=0 pmi_version=1 pmi_subversion=1\n"
                   "C cmd=get_maxes\nS cmd=maxes rc=0 kvsname_max=64 keylen_max=64 vallen_max=1024\n"
                   "C cmd=get_appnum\nS cmd=appnum rc=0 appnum=0\n"
                   "C cmd=get_my_kvsname\nS cmd=my_kvsname rc=0 kvsname=kvs-1\n"
                   "C cmd=get kvsname=kvs-1 key=PMI_process_mapping\nS cmd=get_result rc=0 value=(vector,(0,1,4))\n"
                   "C cmd=barrier_in\nS cmd=barrier_out rc=0\n"
                   "C cmd=put kvsname=kvs-1 key=-bcast-1-0 value=2F6465762F73686D\nS cmd=put_result rc=0\n"
                   "C cmd=barrier_in\nS cmd=barrier_out rc=0\n"
                   "C cmd=get kvsname=kvs-1 key=-bcast-1-0\nS cmd=get_result rc=0 value=2F6465762F73686D\n"
                   "C cmd=get_universe_size\nS cmd=universe_size rc=0 size=1\n"
                   "C cmd=barrier_in\nS cmd=barrier_out rc=0\n"
                   "C cmd=finalize\nS cmd=finalize_ack rc=0\n");
}

/* A Flux broker's start: its card under its rank, two barriers, everybody's card. */
Test(session, transcript_flux)
{
#define CARD "{\"host\":\"a\",\"uri\":[\"tcp://[::ffff:10.0.0.1]:4711\"],\"pubkey\":\"x=<[#Z\"}"
    static const char *const requests[] = {"cmd=init pmi_version=1 pmi_subversion=1\n",
                                           "cmd=get_maxes\n",
                                           "cmd=get_my_kvsname\n",
                                           "cmd=get kvsname=kvs-1 key=flux.instance-level\n",
                                           "cmd=get kvsname=kvs-1 key=PMI_process_mapping\n",
                                           "cmd=put kvsname=kvs-1 key=0 value=" CARD "\n",
                                           "cmd=barrier_in\n",
                                           "cmd=barrier_in\n",
                                           "cmd=get kvsname=kvs-1 key=0\n",
                                           "cmd=finalize\n"};

    run_transcript(requests, ARRAY_SIZE(requests),
                   "C cmd=init pmi_version=1 pmi_subversion=1\n"
                   "S cmd=response_to_init rc=0 pmi_version=1 pmi_subversion=1\n"
                   "C cmd=get_maxes\nS cmd=maxes rc=0 kvsname_max=64 keylen_max=64 vallen_max=1024\n"
                   "C cmd=get_my_kvsname\nS cmd=my_kvsname rc=0 kvsname=kvs-1\n"
                   "C cmd=get kvsname=kvs-1 key=flux.instance-level\nS cmd=get_result rc=4 msg=no_such_key\n"
                   "C cmd=get kvsname=kvs-1 key=PMI_process_mapping\nS cmd=get_result rc=0 value=(vector,(0,1,4))\n"
                   "C cmd=put kvsname=kvs-1 key=0 value=" CARD "\nS cmd=put_result rc=0\n"
                   "C cmd=barrier_in\nS cmd=barrier_out rc=0\n"
                   "C cmd=barrier_in\nS cmd=barrier_out rc=0\n"
                   "C cmd=get kvsname=kvs-1 key=0\nS cmd=get_result rc=0 value=" CARD "\n"
                   "C cmd=finalize\nS cmd=finalize_ack rc=0\n");
}
