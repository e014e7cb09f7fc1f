/* SPDX-License-Identifier: BSD-3-Clause */
#include "client/bench_team.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <unistd.h>
#include "client/bench_watch.h"
#include "common/util.h"

#define FAULTS_TOLD 5
#define SHOWN_MAX 100 /* bytes of a value in a message */
#define READY_MAX 256 /* sessions that one look at the descriptors brings */
#define LOOK_MS 500   /* between looks for a session that waits too long */

struct seat {
    struct talk talk;
    uint64_t next; /* step of the plan */
    struct plan_step step;
    uint64_t sent_ns, round_ns;
    bool is_waiting;
};

/* Keys that belong to the server are attributes in PMI-2. */
static enum talk_op get_op(const struct plan *p)
{
    return p->key != NULL && strncmp(p->key, "PMI_", 4) == 0 ? TALK_ATTR : TALK_GET;
}

static enum talk_op op_of(const struct plan *p, const struct seat *s)
{
    if (s->step.op == PLAN_OP_GET)
        return get_op(p);
    return s->step.op == PLAN_OP_PUT ? TALK_PUT : TALK_BARRIER;
}

void team_fault(struct team *t, const char *fmt, ...)
{
    va_list ap;

    t->faults++;
    if (t->faults > FAULTS_TOLD)
        return;
    fprintf(stderr, "pmi-bench: rank %d: ", t->job.rank);
    va_start(ap, fmt);
    vfprintf(stderr, fmt, ap);
    va_end(ap);
    fprintf(stderr, "%s\n", t->faults == FAULTS_TOLD ? " (more of this is only counted)" : "");
}

/* Room for as many descriptors as sessions, where the system allows it. */
static void more_descriptors(uint32_t sessions)
{
    struct rlimit r;

    if (getrlimit(RLIMIT_NOFILE, &r) < 0 || r.rlim_cur >= (rlim_t)sessions + 64)
        return;
    if (r.rlim_max < (rlim_t)sessions + 64 && geteuid() == 0)
        r.rlim_max = (rlim_t)sessions + 64;
    r.rlim_cur = MIN(r.rlim_max, (rlim_t)sessions + 64);
    (void)setrlimit(RLIMIT_NOFILE, &r);
}

static int watch_seat(struct team *t, uint32_t i, struct err *err)
{
    struct epoll_event e = {.events = EPOLLIN, .data.u32 = i};

    if (t->epoll < 0 || epoll_ctl(t->epoll, EPOLL_CTL_ADD, t->seats[i].talk.wire.fd, &e) == 0)
        return 0;
    return err_set(err, -errno, "cannot watch a connection: %s", strerror(errno));
}

int team_open(struct team *t, const struct where *w, uint32_t sessions, uint64_t timeout_ms, struct err *err)
{
    int rc = 0;

    t->timeout_ms = timeout_ms;
    t->epoll = -1;
    t->seats = calloc(sessions, sizeof(*t->seats));
    if (t->seats == NULL)
        return err_set(err, -ENOMEM, "no room for %" PRIu32 " sessions", sessions);
    if (sessions > 1) {
        more_descriptors(sessions);
        t->epoll = epoll_create1(EPOLL_CLOEXEC);
        if (t->epoll < 0)
            return err_set(err, -errno, "epoll: %s", strerror(errno));
    }
    while (rc == 0 && t->count < sessions) {
        uint64_t start = now_ns();

        rc = talk_open(&t->seats[t->count].talk, &t->job, w, t->count, err);
        t->count++; /* to be closed in any case */
        if (rc == 0)
            rc = watch_seat(t, t->count - 1, err);
        stats_add(&t->stats[MEASURE_OPEN], now_ns() - start);
        watch_rank(t->job.rank);
    }
    return rc;
}

struct talk *team_first(struct team *t)
{
    return &t->seats[0].talk;
}

void team_close(struct team *t)
{
    for (uint32_t i = 0; i < t->count; i++)
        talk_close(&t->seats[i].talk);
    if (t->epoll >= 0)
        close(t->epoll);
    free(t->seats);
    t->seats = NULL;
    t->count = 0;
    t->epoll = -1;
    talk_job_done(&t->job);
}

/* Take the next step, if there is one. A key that stays readable for watch.h is in `key`. */
static int go_on(struct team *t, const struct plan *p, struct seat *s, struct err *err)
{
    static char key[PMI_KEY_MAX], value[BENCH_VALUE_MAX];
    struct talk_request r = {.key = key};
    int rc;

    if (!plan_step(p, s->next, &s->step))
        return 0;
    s->next++;
    r.op = op_of(p, s);
    if (r.op != TALK_BARRIER)
        plan_key(p, s->talk.session, &s->step, key);
    if (r.op == TALK_PUT)
        r.value = plan_value(p, s->talk.session, &s->step, value);
    s->is_waiting = true;
    s->sent_ns = now_ns();
    if (s->step.begins_round)
        s->round_ns = s->sent_ns;
    watch_begin(talk_awaits(r.op), r.op == TALK_BARRIER ? NULL : key, s->talk.session, s->sent_ns);
    rc = talk_ask(&s->talk, &r, err);
    if (t->epoll >= 0)
        watch_end();
    return rc;
}

/* rc and msg of a request that failed. */
static const char *why(const struct talk_answer *a, char room[SHOWN_MAX + 32])
{
    snprintf(room, SHOWN_MAX + 32, "rc=%d%s%.*s", a->rc, a->msg.n > 0 ? " " : "", (int)MIN(a->msg.n, SHOWN_MAX),
             a->msg.n > 0 ? a->msg.p : "");
    return room;
}

static void tell_failed(struct team *t, const struct plan *p, const struct seat *s, const struct talk_answer *a)
{
    char key[PMI_KEY_MAX], room[SHOWN_MAX + 32];

    plan_key(p, s->talk.session, &s->step, key);
    if (s->step.op == PLAN_OP_BARRIER)
        team_fault(t, "session %" PRIu32 ": barrier failed: %s", s->talk.session, why(a, room));
    else
        team_fault(t, "session %" PRIu32 ": put of key %s failed: %s", s->talk.session, key, why(a, room));
}

/* What a get brought, against what it had to. */
static void check_value(struct team *t, const struct plan *p, const struct seat *s, const struct talk_answer *a)
{
    static char room[BENCH_VALUE_MAX];
    struct span got = a->value.p != NULL ? a->value : span_of(""), wanted = {t->known, t->known_len};
    char key[PMI_KEY_MAX], text[SHOWN_MAX + 32], shown[SHOWN_MAX + 8];
    struct buf b = {0};

    if (p->key == NULL)
        wanted = plan_value(p, s->talk.session, &s->step, room);
    if (a->rc == 0 && span_eq(got, wanted))
        return;
    plan_key(p, s->talk.session, &s->step, key);
    snprintf(shown, sizeof(shown), "%.*s%s", (int)MIN(wanted.n, SHOWN_MAX), wanted.p,
             wanted.n > SHOWN_MAX ? "..." : "");
    (void)buf_add_escaped(&b, (struct span){got.p, MIN(got.n, SHOWN_MAX)});
    if (a->rc != 0)
        team_fault(t, "session %" PRIu32 ": key %s: wanted %zu bytes '%s', got nothing: %s", s->talk.session, key,
                   wanted.n, shown, why(a, text));
    else
        team_fault(t, "session %" PRIu32 ": key %s: wanted %zu bytes '%s', got %zu bytes '%.*s%s'", s->talk.session,
                   key, wanted.n, shown, got.n, SPAN_FMT(buf_span(&b)), got.n > SHOWN_MAX ? "..." : "");
    buf_done(&b);
}

static int take_answer(struct team *t, const struct plan *p, struct seat *s, struct err *err)
{
    struct talk_answer a;
    uint64_t now;
    int rc;

    if (t->epoll >= 0)
        watch_begin(talk_awaits(op_of(p, s)), NULL, s->talk.session, now_ns());
    rc = talk_answer(&s->talk, op_of(p, s), &a, err);
    now = now_ns();
    watch_end();
    if (rc < 0)
        return rc;
    s->is_waiting = false;
    if (s->step.measure != MEASURE_NONE)
        stats_add(&t->stats[s->step.measure], now - s->sent_ns);
    if (s->step.ends_round) {
        stats_add(&t->stats[MEASURE_ROUND], now - s->round_ns);
        if (s->step.round != MEASURE_NONE)
            stats_add(&t->stats[s->step.round], now - s->round_ns);
    }
    if (s->step.op == PLAN_OP_GET)
        check_value(t, p, s, &a);
    else if (a.rc != 0)
        tell_failed(t, p, s, &a);
    return 0;
}

/* "session 5: waiting for the reply to get of key b0.5.1: ..." */
static int blame(const struct plan *p, const struct seat *s, struct err *err)
{
    char key[PMI_KEY_MAX] = "";

    if (s->step.op != PLAN_OP_BARRIER)
        plan_key(p, s->talk.session, &s->step, key);
    return err_prefix(err, "session %" PRIu32 ": %s%s%s", s->talk.session, talk_awaits(op_of(p, s)),
                      *key != '\0' ? " of key " : "", key);
}

static int run_one(struct team *t, const struct plan *p, struct err *err)
{
    struct seat *s = &t->seats[0];
    int rc = go_on(t, p, s, err);

    while (rc == 0 && s->is_waiting) {
        rc = take_answer(t, p, s, err);
        if (rc == 0)
            rc = go_on(t, p, s, err);
    }
    return rc < 0 ? blame(p, s, err) : 0;
}

static int check_waits(const struct team *t, const struct plan *p, struct err *err)
{
    uint64_t now = now_ns(), limit = t->timeout_ms * 1000000;
    const struct seat *first = NULL;
    uint32_t late = 0;

    for (uint32_t i = 0; i < t->count; i++) {
        const struct seat *s = &t->seats[i];

        if (!s->is_waiting || now < s->sent_ns || now - s->sent_ns <= limit)
            continue;
        late++;
        if (first == NULL || s->sent_ns < first->sent_ns)
            first = s;
    }
    if (first == NULL)
        return 0;
    err_set(err, -ETIMEDOUT, "not within %" PRIu64 " ms (%" PRIu32 " of %" PRIu32 " sessions wait that long)",
            t->timeout_ms, late, t->count);
    return blame(p, first, err);
}

/* Something to read for a session that is through. */
static int unasked(const struct plan *p, const struct seat *s, struct err *err)
{
    return err_set(err, -EPROTO,
                   "the PMI server closed the connection, or spoke without being asked, after the last %s",
                   talk_awaits(op_of(p, s)));
}

/* Sessions that have something to read: each takes its answer and its next step. `*at_work` counts those that are not
 * through yet. */
static int serve_ready(struct team *t, const struct plan *p, int look_ms, uint32_t *at_work, struct err *err)
{
    struct epoll_event ready[READY_MAX];
    int n = epoll_wait(t->epoll, ready, READY_MAX, look_ms);

    if (n < 0 && errno != EINTR)
        return err_set(err, -errno, "epoll: %s", strerror(errno));
    for (int i = 0; i < n; i++) {
        struct seat *s = &t->seats[ready[i].data.u32];
        int rc = s->is_waiting ? take_answer(t, p, s, err) : unasked(p, s, err);

        if (rc == 0)
            rc = go_on(t, p, s, err);
        if (rc < 0)
            return blame(p, s, err);
        *at_work -= !s->is_waiting;
    }
    return 0;
}

static int run_many(struct team *t, const struct plan *p, struct err *err)
{
    int look_ms = (int)MIN(t->timeout_ms / 4 + 1, LOOK_MS), rc = 0;
    uint32_t at_work = 0;
    uint64_t looked;

    for (uint32_t i = 0; i < t->count; i++) {
        rc = go_on(t, p, &t->seats[i], err);
        if (rc < 0)
            return blame(p, &t->seats[i], err);
        at_work += t->seats[i].is_waiting;
    }
    looked = now_ns();
    while (rc == 0 && at_work > 0) {
        rc = serve_ready(t, p, look_ms, &at_work, err);
        if (rc == 0 && now_ns() - looked > (uint64_t)look_ms * 1000000) {
            rc = check_waits(t, p, err);
            looked = now_ns();
        }
    }
    return rc;
}

/* The first session reads the key; what it finds then is what all have to find always. */
static int learn_value(struct team *t, const struct plan *p, struct err *err)
{
    struct talk_request r = {.op = get_op(p), .key = p->key};
    struct talk_answer a;
    int rc = talk_do(team_first(t), &r, &a, err);

    if (rc < 0)
        return rc;
    if (a.rc != 0)
        return err_set(err, -ENOENT, "there is no key %s (rc=%d)", p->key, a.rc);
    t->known_len = MIN(a.value.n, sizeof(t->known));
    if (t->known_len > 0)
        memcpy(t->known, a.value.p, t->known_len);
    return 0;
}

static uint64_t us_of(struct timeval t)
{
    return (uint64_t)t.tv_sec * 1000000 + (uint64_t)t.tv_usec;
}

int team_run(struct team *t, const struct plan *p, struct err *err)
{
    struct rusage before, after;
    int rc = p->key != NULL ? learn_value(t, p, err) : 0;

    for (uint32_t i = 0; i < t->count; i++)
        t->seats[i].next = 0;
    getrusage(RUSAGE_SELF, &before);
    if (rc == 0)
        rc = t->epoll < 0 ? run_one(t, p, err) : run_many(t, p, err);
    getrusage(RUSAGE_SELF, &after);
    t->cpu_user_us += us_of(after.ru_utime) - us_of(before.ru_utime);
    t->cpu_sys_us += us_of(after.ru_stime) - us_of(before.ru_stime);
    return rc;
}

int team_finalize(struct team *t, struct err *err)
{
    static const struct talk_request finalize = {.op = TALK_FINALIZE};
    struct talk_answer a;

    for (uint32_t i = 0; i < t->count; i++) {
        int rc = talk_do(&t->seats[i].talk, &finalize, &a, err);

        if (rc < 0)
            return err_prefix(err, "session %" PRIu32 ": finalize", t->seats[i].talk.session);
        if (a.rc != 0)
            team_fault(t, "session %" PRIu32 ": finalize failed: rc=%d", t->seats[i].talk.session, a.rc);
    }
    return 0;
}
