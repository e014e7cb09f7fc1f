/* SPDX-License-Identifier: BSD-3-Clause */
#include <criterion/criterion.h>
#include <stdio.h>
#include "common/msg.h"
#include "session_rig.h"

#define PORT "tag#0$description#vm$port#55489$ifname#127.0.0.1$"

/* What was asked for, in one line. */
static const char *wanted(const struct spawn_want *w)
{
    static char text[4000];
    int n = 0;

    for (uint32_t i = 0; i < w->npreput; i++)
        n += snprintf(text + n, sizeof(text) - (size_t)n, "{%s=%s}", w->preput[2 * i], w->preput[2 * i + 1]);
    for (uint32_t i = 0; i < w->count; i++) {
        const struct spawn_cmd *c = &w->cmd[i];

        n += snprintf(text + n, sizeof(text) - (size_t)n, " %ux", c->nprocs);
        for (uint32_t k = 0; k < c->argc; k++)
            n += snprintf(text + n, sizeof(text) - (size_t)n, "[%s]", c->argv[k]);
        for (uint32_t k = 0; k < c->ninfo; k++)
            n += snprintf(text + n, sizeof(text) - (size_t)n, "{%s=%s}", c->info[2 * k], c->info[2 * k + 1]);
    }
    return text;
}

#define WANTED                                                                                                         \
    "{PARENT_ROOT_PORT_NAME=" PORT "} 2x[/path/c3_spawn][arg one][x=y]{wdir=/tmp}{foo=bar baz} 1x[/path/c3_spawn]"

static const struct {
    const char *name, *in;
} transcripts[] = {
    {"MPICH 4.0.2",
     "mcmd=spawn\nnprocs=2\nexecname=/path/c3_spawn\ntotspawns=2\nspawnssofar=1\narg1=arg one\narg2=x=y\nargcnt=2\n"
     "preput_num=1\npreput_key_0=PARENT_ROOT_PORT_NAME\npreput_val_0=" PORT "\ninfo_num=2\ninfo_key_0=wdir\n"
     "info_val_0=/tmp\ninfo_key_1=foo\ninfo_val_1=bar baz\nendcmd\n"
     "mcmd=spawn\nnprocs=1\nexecname=/path/c3_spawn\ntotspawns=2\nspawnssofar=2\nargcnt=0\npreput_num=1\n"
     "preput_key_0=PARENT_ROOT_PORT_NAME\npreput_val_0=" PORT "\ninfo_num=0\nendcmd\n"},
    {"newest MPICH",
     "mcmd=spawn\nnprocs=2\nexecname=/path/c3_spawn\ntotspawns=2\nspawnssofar=1\nargcnt=2\narg1=arg one\narg2=x=y\n"
     "preput_num=1\npreput_key_0=PARENT_ROOT_PORT_NAME\npreput_val_0=" PORT "\ninfo_num=2\ninfo_key_0=wdir\n"
     "info_val_0=/tmp\ninfo_key_1=foo\ninfo_val_1=bar baz\nendcmd\n"
     "mcmd=spawn\nnprocs=1\nexecname=/path/c3_spawn\ntotspawns=2\nspawnssofar=2\nargcnt=0\ninfo_num=0\nendcmd\n"},
};

Test(session_spawn, transcripts_of_pmi1)
{
    for (size_t i = 0; i < ARRAY_SIZE(transcripts); i++) {
        struct rig r;

        rig_init(&r, 1);
        for (const char *p = transcripts[i].in; *p != '\0'; p++)
            cr_assert_eq(session_feed(r.end[0].s, (struct span){p, 1}, NULL), 0);
        cr_expect_eq(r.spawns, 1);
        cr_expect_str_eq(wanted(&r.want), WANTED, "%s", transcripts[i].name);
        cr_expect_str_eq(take(&r, 0), "");
        session_spawn_done(r.end[0].s, r.spawn_req, 0, "kvs-2", (const int[]){0, 0, 0}, 3);
        cr_expect_str_eq(take(&r, 0), "cmd=spawn_result rc=0\n");
        rig_done(&r);
    }
}

#define FRAME                                                                                                          \
    "cmd=spawn;ncmds=2;preputcount=1;ppkey0=PARENT_ROOT_PORT_NAME;ppval0=" PORT                                        \
    ";subcmd=/path/c3_spawn;maxprocs=2;argc=2;argv0=arg one;argv1=x=y;infokeycount=2;infokey0=wdir;infoval0=/tmp;"     \
    "infokey1=foo;infoval1=bar baz;subcmd=/path/c3_spawn;maxprocs=1;argc=0;infokeycount=0;"

static void rig_init2(struct rig *r)
{
    rig_init(r, 1);
    feed(r, 0, "cmd=init pmi_version=2 pmi_subversion=0\n");
    take(r, 0);
}

Test(session_spawn, transcript_of_pmi2)
{
    struct rig r;

    rig_init2(&r);
    feed_frame(&r, 0, FRAME);
    cr_expect_str_eq(wanted(&r.want), WANTED);
    session_spawn_done(r.end[0].s, r.spawn_req, 0, "kvs-2", NULL, 0);
    cr_expect_str_eq(take_frames(&r, 0), "cmd=spawn-response;rc=0;jobid=kvs-2;nerrs=0;\n");
    rig_done(&r);
}

Test(session_spawn, which_did_not_start)
{
    static int many[600];
    struct rig r;

    rig_init(&r, 1);
    many[599] = 2;
    feed(&r, 0, "mcmd=spawn\nnprocs=3\nexecname=x\nendcmd\n");
    session_spawn_done(r.end[0].s, r.spawn_req, 0, "kvs-2", (const int[]){0, -7, 1}, 3);
    cr_expect_str_eq(take(&r, 0), "cmd=spawn_result rc=0 errcodes=0,-7,1\n");
    /* More than a reply line holds. */
    feed(&r, 0, "mcmd=spawn\nnprocs=600\nexecname=x\nendcmd\n");
    session_spawn_done(r.end[0].s, r.spawn_req, 0, "kvs-2", many, 600);
    cr_expect_str_eq(take(&r, 0), "cmd=spawn_result rc=-1 msg=not_all_started\n");
    rig_done(&r);
    rig_init2(&r);
    feed_frame(&r, 0, "cmd=spawn;thrid=5;ncmds=1;subcmd=x;maxprocs=3;");
    session_spawn_done(r.end[0].s, r.spawn_req, 0, "kvs-2", (const int[]){0, -7, 1}, 3);
    cr_expect_str_eq(take_frames(&r, 0), "cmd=spawn-response;thrid=5;rc=0;jobid=kvs-2;nerrs=2;errcodes=0,-7,1;\n");
    rig_done(&r);
}

Test(session_spawn, refused_at_once_or_later)
{
    struct rig r;

    rig_init(&r, 1);
    r.refuse_spawn = -ENOSYS;
    feed(&r, 0, "mcmd=spawn\nnprocs=1\nexecname=x\nendcmd\ncmd=get_appnum\n");
    cr_expect_str_eq(take(&r, 0), "cmd=spawn_result rc=-1 msg=not_served\ncmd=appnum rc=0 appnum=0\n");
    r.refuse_spawn = 0;
    feed(&r, 0, "mcmd=spawn\nnprocs=1\nexecname=x\nendcmd\n");
    session_spawn_done(r.end[0].s, r.spawn_req, -EHOSTUNREACH, NULL, NULL, 0);
    session_spawn_done(r.end[0].s, r.spawn_req, 0, "kvs-2", NULL, 0);
    cr_expect_str_eq(take(&r, 0), "cmd=spawn_result rc=-1 msg=refused\n");
    rig_done(&r);
}

static const struct {
    const char *in, *want; /* want NULL: refused */
} odd1[] = {
    {"arg1= Ss\narg2=\narg3=a b =c\n", " 1x[x][ Ss][][a b =c]"},
    {"argcnt=1\narg1=cmd=abort exitcode=1\n", " 1x[x][cmd=abort exitcode=1]"},
    {"color=red\nblue\n\narg1=a\n", " 1x[x][a]"},
    {"execname=y\nnprocs=3\n", " 3x[y]"},
    {"info_key_0=soft\ninfo_val_0=1:3\n", " 1x[x]{soft=1:3}"},
    {"arg2=a\n", NULL},
    {"arg0=a\n", NULL},
    {"arg1=a\narg1=b\n", NULL},
    {"argcnt=2\narg1=a\n", NULL},
    {"argcnt=many\n", NULL},
    {"info_key_0=a\n", NULL},
    {"info_val_0=a\n", NULL},
    {"info_key_0=a\ninfo_val_1=a\n", NULL},
    {"info_num=1\n", NULL},
    {"preput_num=1\n", NULL},
    {"preput_key_0=a\n", NULL},
    {"nprocs=0\n", NULL},
    {"nprocs=-1\n", NULL},
    {"nprocs=16777217\n", NULL},
    {"execname=\n", NULL},
};

Test(session_spawn, odd_requests_of_pmi1)
{
    for (size_t i = 0; i < ARRAY_SIZE(odd1); i++) {
        struct rig r;
        char text[400];

        rig_init(&r, 1);
        snprintf(text, sizeof(text), "mcmd=spawn\nnprocs=1\nexecname=x\ntotspawns=1\nspawnssofar=1\n%sendcmd\n",
                 odd1[i].in);
        cr_expect_eq(feed(&r, 0, text), 0);
        cr_expect_eq(r.spawns, odd1[i].want != NULL, "%s", odd1[i].in);
        if (odd1[i].want != NULL)
            cr_expect_str_eq(wanted(&r.want), odd1[i].want);
        else
            cr_expect(span_starts(span_of(take(&r, 0)), "cmd=spawn_result rc=-1 msg="), "%s", odd1[i].in);
        feed(&r, 0, "cmd=get_appnum\n");
        cr_expect_not_null(strstr(take(&r, 0), "cmd=appnum rc=0"), "it is served on");
        rig_done(&r);
    }
}

static const char *const odd2[] = {
    "cmd=spawn;",
    "cmd=spawn;ncmds=1;",
    "cmd=spawn;ncmds=2;subcmd=x;maxprocs=1;",
    "cmd=spawn;ncmds=1;subcmd=x;",
    "cmd=spawn;ncmds=1;subcmd=;maxprocs=1;",
    "cmd=spawn;ncmds=1;maxprocs=1;subcmd=x;",
    "cmd=spawn;ncmds=1;subcmd=x;maxprocs=1;argc=1;",
    "cmd=spawn;ncmds=1;subcmd=x;maxprocs=1;argc=1;argv1=a;",
    "cmd=spawn;ncmds=1;preputcount=1;subcmd=x;maxprocs=1;",
    "cmd=spawn;ncmds=1;subcmd=x;maxprocs=16777216;subcmd=x;maxprocs=1;",
};

Test(session_spawn, odd_requests_of_pmi2)
{
    for (size_t i = 0; i < ARRAY_SIZE(odd2); i++) {
        struct rig r;

        rig_init2(&r);
        cr_expect_eq(feed_frame(&r, 0, odd2[i]), 0);
        cr_expect_eq(r.spawns, 0, "%s", odd2[i]);
        cr_expect(span_starts(span_of(take_frames(&r, 0)), "cmd=spawn-response;rc=-1;errmsg="), "%s", odd2[i]);
        rig_done(&r);
    }
}

Test(session_spawn, segments_that_do_not_add_up)
{
    struct rig r;

    rig_init(&r, 1);
    feed(&r, 0,
         "mcmd=spawn\nnprocs=1\nexecname=x\ntotspawns=3\nspawnssofar=1\nendcmd\n"
         "mcmd=spawn\nnprocs=1\nexecname=x\ntotspawns=3\nspawnssofar=3\nendcmd\n");
    cr_expect_str_eq(take(&r, 0), "cmd=spawn_result rc=-1 msg=miscounted\n");
    /* Something else where a segment is due: there is no telling any more what belongs to what. */
    cr_expect_eq(feed(&r, 0, "mcmd=spawn\nnprocs=1\nexecname=x\ntotspawns=2\nspawnssofar=1\nendcmd\ncmd=get_maxes\n"),
                 -EPROTO);
    cr_expect_str_eq(take(&r, 0), "");
    rig_done(&r);
}

Test(session_spawn, five_hundred_arguments_and_what_is_too_much)
{
    struct buf in = {0};
    struct rig r;

    rig_init(&r, 1);
    buf_add_str(&in, "mcmd=spawn\nnprocs=1\nexecname=x\n");
    for (unsigned i = 1; i <= 500; i++)
        buf_printf(&in, "arg%u= %u = %u\n", i, i, i);
    buf_add_str(&in, "argcnt=500\nendcmd\n");
    cr_expect_eq(session_feed(r.end[0].s, buf_span(&in), NULL), 0);
    cr_expect_eq(r.want.cmd[0].argc, 501);
    cr_expect_str_eq(r.want.cmd[0].argv[500], " 500 = 500");
    session_spawn_done(r.end[0].s, r.spawn_req, 0, "k", NULL, 0);
    take(&r, 0);
    in.len = 0;
    buf_add_str(&in, "mcmd=spawn\nnprocs=1\nexecname=x\n");
    for (unsigned i = 1; i <= SPAWN_STRINGS_MAX; i++)
        buf_printf(&in, "arg%u=\n", i);
    buf_add_str(&in, "endcmd\ncmd=get_appnum\n");
    cr_expect_eq(session_feed(r.end[0].s, buf_span(&in), NULL), 0);
    cr_expect_str_eq(take(&r, 0), "cmd=spawn_result rc=-1 msg=too_big\ncmd=appnum rc=0 appnum=0\n");
    in.len = 0;
    buf_add_str(&in, "mcmd=spawn\nnprocs=1\nexecname=x\n");
    for (unsigned i = 1; i <= 70; i++)
        buf_printf(&in, "arg%u=%060000u\n", i, i);
    buf_add_str(&in, "endcmd\n");
    cr_expect_eq(session_feed(r.end[0].s, buf_span(&in), NULL), 0);
    cr_expect_str_eq(take(&r, 0), "cmd=spawn_result rc=-1 msg=too_big\n");
    in.len = 0;
    for (unsigned i = 1; i <= SPAWN_CMDS_MAX + 1; i++)
        buf_printf(&in, "mcmd=spawn\nnprocs=1\nexecname=x\ntotspawns=1025\nspawnssofar=%u\nendcmd\n", i);
    cr_expect_eq(session_feed(r.end[0].s, buf_span(&in), NULL), 0);
    cr_expect_str_eq(take(&r, 0), "cmd=spawn_result rc=-1 msg=too_many_commands\n");
    cr_expect_eq(r.spawns, 1);
    buf_done(&in);
    rig_done(&r);
}

/* A message that somebody else made: one number wrong at a time. */
static int unpack(const uint32_t *argc, size_t n, uint32_t ninfo, uint32_t nprocs, size_t nstrings)
{
    static char s[] = "s", *strings[] = {s, s, s, s, s, NULL};
    struct msg_out *m = msg_out_new();
    struct spawn_want w = {0};
    struct msg_in *in;
    struct span body;
    int rc;

    msg_put_u32v(m, "spawn_argc", argc, n);
    msg_put_u32v(m, "spawn_ninfo", &ninfo, 1);
    msg_put_u32v(m, "spawn_nprocs", &nprocs, 1);
    msg_put_strv(m, "spawn_argv", strings, nstrings);
    msg_put_strv(m, "spawn_info", strings, 2);
    msg_put_strv(m, "spawn_preput", strings, 2);
    cr_assert_eq(msg_out_done(m, &body), 0);
    cr_assert_eq(msg_in_new(&in, body, NULL), 0);
    rc = spawn_want_unpack(in, &w, NULL);
    cr_expect(rc == 0 || (w.count == 0 && w.cmd == NULL && w.preput == NULL));
    spawn_want_done(&w);
    msg_in_free(in);
    msg_out_free(m);
    return rc;
}

Test(session_spawn, a_message_whose_counts_do_not_fit_is_refused)
{
    cr_expect_eq(unpack((const uint32_t[]){3}, 1, 1, 1, 3), 0);
    cr_expect_eq(unpack((const uint32_t[]){3}, 1, 1, 1, 4), -EPROTO);
    cr_expect_eq(unpack((const uint32_t[]){4}, 1, 1, 1, 3), -EPROTO);
    cr_expect_eq(unpack((const uint32_t[]){3}, 1, 2, 1, 3), -EPROTO);
    cr_expect_eq(unpack((const uint32_t[]){3}, 1, UINT32_MAX, 1, 3), -EPROTO);
    cr_expect_eq(unpack((const uint32_t[]){3}, 1, 1, 0, 3), -EPROTO);
    cr_expect_eq(unpack((const uint32_t[]){3}, 1, 1, TASKS_MAX + 1, 3), -EPROTO);
    cr_expect_eq(unpack((const uint32_t[]){0}, 1, 1, 1, 0), -EPROTO);
    cr_expect_eq(unpack((const uint32_t[]){1, 2}, 2, 1, 1, 3), -EPROTO);
    cr_expect_eq(unpack((const uint32_t[]){1}, 0, 1, 1, 0), -EPROTO);
}
