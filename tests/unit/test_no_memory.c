/* SPDX-License-Identifier: BSD-3-Clause */
/* Every allocation of the pure modules fails once, and then also all that follow: nobody crashes, nothing is left, the
 * caller is told, and what was there before is as it was. */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>
#include "bootstrap/plan.h"
#include "common/buf.h"
#include "common/hostlist.h"
#include "common/msg.h"
#include "common/outq.h"
#include "common/reasm.h"
#include "common/strv.h"
#include "common/util.h"
#include "conf/option.h"
#include "server/attrs.h"
#include "server/barrier.h"
#include "server/expected.h"
#include "server/group.h"
#include "server/job_make.h"
#include "server/kvs.h"
#include "server/names.h"
#include "server/tree.h"
#include "tests/fuzz/session_peer.h"
#include "tests/unit/alloc_fail.h"

#define FIRST_MAX 100000

static unsigned nth;
static bool on;

/* What is made ready in a scenario before this is none of it. */
static void go(void)
{
    alloc_fail_at(nth, on);
}

/* `run` calls go(), and gives 0 where all went well, or the negative errno that it was told. */
static void sweep(int (*run)(void))
{
    for (on = false;; on = true) {
        for (nth = 1; nth < FIRST_MAX; nth++) {
            long before = alloc_blocks();
            int rc = run();
            bool hit = alloc_has_failed();

            alloc_fail_at(0, false);
            cr_assert_eq(alloc_blocks(), before, "%ld left behind where allocation %u fails%s", alloc_blocks() - before,
                         nth, on ? ", and all that follow" : "");
            cr_assert(rc == 0 || (hit && rc == -ENOMEM), "%d where allocation %u fails", rc, nth);
            if (!hit)
                break;
        }
        cr_assert(nth > 1 && nth < FIRST_MAX);
        if (on)
            return;
    }
}

#define SWEEP(name)                                                                                                    \
    static int run_##name(void);                                                                                       \
    Test(no_memory, name)                                                                                              \
    {                                                                                                                  \
        sweep(run_##name);                                                                                             \
    }                                                                                                                  \
    static int run_##name(void)

SWEEP(buf)
{
    static const char text[] = "0123456789\n\t\x01";
    struct buf b = {0};
    size_t len = 0;
    int rc = 0;

    go();
    for (unsigned i = 0; i < 40 && rc == 0; i++) {
        len = b.len;
        rc = i % 4 == 0   ? buf_add(&b, text, sizeof(text))
             : i % 4 == 1 ? buf_printf(&b, "%s %u", text, i)
             : i % 4 == 2 ? buf_add_escaped(&b, (struct span){text, sizeof(text)})
                          : (buf_str(&b) == NULL ? -ENOMEM : 0);
    }
    cr_assert(rc == 0 || b.len == len);
    buf_done(&b);
    return rc;
}

SWEEP(hostlist)
{
    struct hostlist *hl, *gone;
    struct err err = {0};
    struct buf text = {0};
    size_t count = 0;
    int rc = -ENOMEM;

    go();
    hl = hostlist_new();
    gone = hostlist_new();
    if (hl != NULL && gone != NULL && (rc = hostlist_add(hl, span_of("a[1-90]x[1-3],u@h:3"), NULL, NULL, &err)) == 0) {
        count = hostlist_count(hl);
        cr_assert_eq(count, 271);
        rc = hostlist_add_line(hl, span_of("b slots=3"), 1, &err);
        cr_assert_eq(hostlist_count(hl), count + (rc == 0));
    }
    if (rc == 0 && (rc = hostlist_add(gone, span_of("a[1-50]x2"), NULL, NULL, &err)) == 0)
        (void)hostlist_exclude(hl, gone);
    if (rc == 0)
        rc = hostlist_fold(hl, true, &text);
    cr_assert(rc == 0 || text.len == 0);
    buf_done(&text);
    hostlist_free(gone);
    hostlist_free(hl);
    return rc;
}

static bool is_nobody(const char *name)
{
    (void)name;
    return false;
}

static int read_msg(struct span body)
{
    struct err err = {0};
    struct msg_in *m = NULL;
    char *text = NULL, **v = NULL;
    uint32_t *numbers = NULL;
    size_t count = 77;
    int rc = msg_in_new(&m, body, &err);

    if (rc == 0 && (rc = msg_get_str(m, "text", &text, &err)) == 0 &&
        (rc = msg_get_strv(m, "words", 9, &v, &count, &err)) == 0)
        rc = msg_get_u32v(m, "numbers", 9, &numbers, &count, &err);
    cr_assert(rc == 0 ? count == 2 : err.code == rc);
    free(text);
    strv_free(v);
    free(numbers);
    msg_in_free(m);
    return rc;
}

SWEEP(msg)
{
    char word[] = "word", *words[] = {word, word, word, NULL};
    uint32_t numbers[] = {1, 70000};
    struct msg_out *m;
    struct span body;
    int rc;

    go();
    m = msg_out_new();
    if (m == NULL)
        return -ENOMEM;
    msg_put_str(m, "text", "some");
    msg_put_strv(m, "words", words, 3);
    for (unsigned i = 0; i < 3000; i++) /* so that it grows */
        msg_put_u64(m, "n", i);
    msg_put_secret(m, "key", span_of("secret"));
    msg_put_u32v(m, "numbers", numbers, 2);
    rc = msg_out_done(m, &body);
    if (rc == 0)
        rc = read_msg(body);
    msg_out_free(m);
    return rc;
}

/* From a command line to a job. */
SWEEP(conf_and_plan)
{
    char *argv[] = {(char *)"pmi-start",
                    (char *)"--bootstrap=rsh",
                    (char *)"-Hn[1-5]:2,u@m",
                    (char *)"--env=A=1",
                    (char *)"--preput=k=v",
                    (char *)"--chdir=/",
                    (char *)"prog",
                    (char *)"x",
                    (char *)":",
                    (char *)"-n",
                    (char *)"3",
                    (char *)"other",
                    NULL};
    char *env[] = {(char *)"HOME=/root", (char *)"PATH=/bin", NULL};
    struct task_limits limits = {0};
    struct job_world world = {.envp = env, .limits = &limits};
    struct conf *conf = NULL;
    struct plan *plan = NULL;
    struct job *job = NULL;
    struct err err = {0};
    int rc;

    go();
    rc = conf_load_with(NULL, (int)ARRAY_SIZE(argv) - 1, argv, env, &conf, &err);
    cr_assert((rc == 0) == (conf != NULL));
    if (rc == 0)
        rc = plan_make(conf, is_nobody, "here", &plan, &err);
    if (rc == 0)
        rc = job_make(conf, plan, &world, &job, &err);
    cr_assert(rc == 0 || (err.code == rc && err.text[0] != '\0'), "%d, %s", rc, err.text);
    job_free(job);
    plan_free(plan);
    conf_free(conf);
    return rc;
}

SWEEP(job)
{
    static uint32_t parent[] = {TREE_NONE, 0, 0}, node_at[] = {0, 2, 1}, run_node[] = {0, 1, 2}, run_len[] = {2, 2, 1};
    static char *words[] = {(char *)"prog", (char *)"a b", NULL}, *pair[] = {(char *)"k", (char *)"v", NULL};
    static const uint32_t where[] = {0, 0, 1, 1, 2};
    struct job_app app = {.argv = words, .env = words, .dir = (char *)"/d", .ntasks = 5};
    struct job j = {.size = 5, .nodes = 3, .places = 3, .parent = parent, .node_at = node_at, .runs = 3}, *k = NULL;
    struct err err = {0};
    struct tree *t = NULL;
    struct buf body = {0};
    uint32_t *nodes = NULL, ranks[] = {2, 2, 1};
    int rc;

    j.run_node = run_node;
    j.run_len = run_len;
    j.app = &app;
    j.app_count = 1;
    j.dir = j.kvsname = (char *)"/";
    j.preput = pair;
    go();
    rc = job_pack(&j, &body);
    if (rc == 0)
        rc = job_unpack(buf_span(&body), &k, &err);
    cr_assert((rc == 0) == (k != NULL) && (rc == 0 || k != NULL || body.len == 0 || err.code == rc));
    if (rc == 0 && (nodes = job_node_of(k)) == NULL)
        rc = -ENOMEM;
    if (rc == 0) {
        free(k->run_node); /* as of a job that has not been placed */
        free(k->run_len);
        k->runs = 0;
        rc = job_place(k, where);
    }
    if (rc == 0)
        rc = tree_make(k->parent, k->node_at, ranks, k->places, &t, &err);
    tree_free(t);
    free(nodes);
    job_free(k);
    buf_done(&body);
    return rc;
}

/* One node's keys, put in a barrier and sent on, and a block that comes. */
SWEEP(kvs)
{
    struct kvs *k, *above;
    struct err err = {0};
    struct span block, value = SPAN_NONE;
    char key[20];
    int rc;

    go();
    k = kvs_new(2, 1, true);
    above = kvs_new(1, 2, false);
    rc = k == NULL || above == NULL ? -ENOMEM : kvs_preput(k, span_of("first"), span_of("1"));
    for (unsigned i = 0; i < 200 && rc == 0; i++) {
        snprintf(key, sizeof(key), "key-%u", i);
        rc = kvs_put(k, i % 2, span_of(key), span_of("some value"));
        if (rc < 0)
            cr_assert_eq(kvs_get(k, i % 2, span_of(key), &value), -ENOENT);
    }
    if (rc == 0)
        rc = kvs_put(k, 0, span_of("local::x"), span_of("here"));
    for (unsigned slot = 0; slot < 2 && rc == 0; slot++)
        rc = kvs_commit(k, slot, slot, 1);
    while (rc == 0 && (block = kvs_unsent(k, 0, 2048)).n > 0)
        rc = kvs_append(above, 1, block, &err);
    if (rc == 0 && (rc = kvs_install(k)) == 0 && (rc = kvs_install(above)) == 0)
        cr_assert(kvs_get(above, 0, span_of("key-199"), &value) == 0 && span_is(value, "some value"));
    kvs_free(k);
    kvs_free(above);
    return rc;
}

static int need(const struct barrier_id *id, struct barrier_need *out, void *arg)
{
    static const uint32_t kids[] = {1};

    (void)id, (void)arg;
    *out = (struct barrier_need){.local = 2, .kids = kids, .total = 4};
    return 0;
}

static void on_up(const struct barrier_id *id, uint64_t round, uint32_t count, void *arg)
{
    (void)id, (void)round;
    ((unsigned *)arg)[0] += count;
}

static void on_release(const struct barrier_id *id, const struct barrier_done *done, void *arg)
{
    (void)id;
    ((unsigned *)arg)[1] += done->nslots;
}

SWEEP(barrier)
{
    static const struct barrier_ops barrier_ops = {need, on_up, on_release};
    struct barrier_id id[] = {{0, span_of("WORLD"), 0}, {1, span_of("0-3"), 5}};
    unsigned seen[2] = {0};
    struct err err = {0};
    struct barriers *b;
    int rc = 0;

    go();
    b = barriers_new(2, 1, &barrier_ops, seen);
    if (b == NULL)
        return -ENOMEM;
    for (unsigned i = 0; i < 2 && rc == 0; i++) {
        rc = barriers_enter(b, &id[i], 1, &err);
        if (rc == 0)
            rc = barriers_enter(b, &id[i], 0, &err);
        if (rc == 0)
            rc = barriers_child(b, &id[i], 0, 0, 1, &err);
        if (rc == 0)
            rc = barriers_release(b, &id[i], 0, 0, &err);
        cr_assert(rc < 0 || (seen[0] == 3 * (i + 1) && seen[1] == 2 * (i + 1)));
    }
    cr_assert(rc == 0 || err.code == rc);
    barriers_break(b, -EPIPE);
    barriers_free(b);
    return rc;
}

/* Messages of one frame and of several, control and data, cut anywhere. */
SWEEP(frames)
{
    static char body[150000];
    struct outq q;
    struct reasm r;
    struct span got;
    struct err err = {0};
    char room[5000];
    unsigned type, seen = 0;
    size_t n;
    int rc = 0;

    outq_init(&q);
    reasm_init(&r, FRAME_BODY_MAX);
    go();
    for (uint16_t i = 0; i < 6 && rc == 0; i++)
        rc = outq_add(&q, i, (struct span){body, i * 29000u}, i % 2 != 0);
    while (rc == 0 && (n = outq_fill(&q, room, sizeof(room))) > 0) {
        rc = buf_add(&r.bytes, room, n);
        while (rc == 0 && (rc = reasm_next(&r, &type, &got, &err)) > 0) {
            cr_assert(got.n == type * 29000u);
            seen++;
            rc = 0;
        }
    }
    cr_assert(rc < 0 || seen == 6);
    outq_done(&q);
    reasm_done(&r);
    return rc;
}

static void check_nothing(struct peer *p, struct span reply)
{
    (void)p, (void)reply;
}

/* A client is answered, if only that it went wrong, or its session ends: nobody waits for ever. */
static int talk(const char *const *said, size_t count)
{
    struct peer p;
    struct err err = {0};
    char frame[200];
    int rc = 0;

    peer_init(&p, true, check_nothing);
    if (buf_reserve(&p.out, 1 << 16) < 0) /* what is ours shall not fail */
        abort();
    go();
    for (size_t i = 0; i < count && rc == 0; i++) {
        size_t len = strlen(said[i]);
        bool is_line = said[i][len - 1] == '\n';

        snprintf(frame, sizeof(frame), is_line ? "%.0zu%s" : "%6zu%s", is_line ? 0 : len, said[i]);
        rc = session_feed(p.s, span_of(frame), &err);
        cr_assert(rc < 0 || p.replies + p.aborts == p.requests, "no answer to '%s'", said[i]);
    }
    peer_done(&p);
    return rc;
}

static int run_pmi1(void)
{
    static const char *const said[] = {"cmd=init pmi_version=1 pmi_subversion=1\n",
                                       "cmd=get_maxes\n",
                                       "cmd=put kvsname=kvs-1 key=a value=b c\n",
                                       "cmd=get kvsname=kvs-1 key=a\n",
                                       "cmd=barrier_in\n",
                                       "cmd=publish_name service=s port=p\n",
                                       "cmd=lookup_name service=s\n",
                                       "cmd=get kvsname=kvs-1 key=a\n",
                                       "cmd=nonsense\n",
                                       "cmd=finalize\n"};

    return talk(said, ARRAY_SIZE(said));
}

Test(no_memory, pmi1)
{
    sweep(run_pmi1);
}

static int run_pmi2(void)
{
    static const char *const said[] = {"cmd=init pmi_version=2 pmi_subversion=0\n",
                                       "cmd=fullinit;pmijobid=;pmirank=0;",
                                       "cmd=kvs-put;key=a;value=b;thrid=none;",
                                       "cmd=kvs-fence;",
                                       "cmd=kvs-get;jobid=kvs-1;key=a;",
                                       "cmd=info-putnodeattr;key=n;value=here;",
                                       "cmd=finalize;"};

    return talk(said, ARRAY_SIZE(said));
}

Test(no_memory, pmi2)
{
    sweep(run_pmi2);
}

static void on_got(struct span value, void *arg)
{
    (void)value, (void)arg;
}

SWEEP(tables)
{
    struct names *names;
    struct attrs *attrs;
    struct expected expected = {0};
    struct buf name = {0};
    struct span got;
    char **v = NULL, **copy = NULL, text[20];
    int rc;

    go();
    names = names_new();
    attrs = attrs_new();
    rc = names == NULL || attrs == NULL ? -ENOMEM : 0;
    for (unsigned i = 0; i < 100 && rc == 0; i++) {
        snprintf(text, sizeof(text), "x%u", i);
        rc = names_publish(names, span_of(text), span_of("port"));
        cr_assert_eq(rc, names_lookup(names, span_of(text), &got) == 0 ? 0 : -ENOMEM);
        if (rc == 0)
            rc = attrs_put(attrs, span_of(text), span_of("value"));
        if (rc == 0)
            rc = expected_add(&expected, i, text);
        if (rc == 0)
            rc = strv_add(&v, text);
        if (rc == 0)
            rc = env_set(&v, "A", text);
    }
    if (rc == 0)
        rc = attrs_wait(attrs, span_of("absent"), on_got, &got);
    if (rc == 0 && (copy = strv_dup(v)) == NULL)
        rc = -ENOMEM;
    if (rc == 0)
        rc = group_name(span_of("1,3,5,0"), 8, &name);
    cr_assert(rc < 0 || (strv_count(copy) == 101 && expected_find(&expected, "x99") == 99));
    strv_free(v);
    strv_free(copy);
    buf_done(&name);
    expected_done(&expected);
    attrs_free(attrs);
    names_free(names);
    return rc;
}
