/* SPDX-License-Identifier: BSD-3-Clause */
#include "client/bench_spawn.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include "client/bench_watch.h"
#include "common/num.h"
#include "common/util.h"

#define PREPUT_KEY "bench-spawner"
#define TOKEN_MAX 96
#define NAME_MAX_LEN (TOKEN_MAX + 24)
#define ASK_AGAIN_MS 5

/* The answer of a copy: its name and what is published under it. */
static void answer_of(const char *token, int rank, int size, char name[NAME_MAX_LEN], char port[NAME_MAX_LEN])
{
    snprintf(name, NAME_MAX_LEN, "%s.%d", token, rank);
    snprintf(port, NAME_MAX_LEN, "rank%d-of-%d.%s", rank, size, token);
}

static int ask_name(struct team *t, enum talk_op op, const char *name, const char *port, struct talk_answer *a,
                    struct err *err)
{
    const struct talk_request r = {.op = op, .key = name, .value = span_of(port)};

    return talk_do(team_first(t), &r, a, err);
}

/* Whether there is a name service at all; 1, 0. */
static int has_names(struct team *t, const char *token, struct err *err)
{
    struct talk_answer a;
    int rc = ask_name(t, TALK_PUBLISH, token, "probe", &a, err), served = a.rc == 0;

    if (rc < 0)
        return rc;
    if (!served) {
        fprintf(stderr,
                "pmi-bench: the PMI server publishes no names (rc=%d): whether spawned tasks run is not checked\n",
                a.rc);
        return 0;
    }
    rc = ask_name(t, TALK_UNPUBLISH, token, "", &a, err);
    return rc < 0 ? rc : 1;
}

/* "0,0,1", one for each task that was asked for; a server may leave it out where all is well. */
static void check_codes(struct team *t, struct span codes, uint32_t copies)
{
    uint32_t n = 0;

    if (codes.p == NULL)
        return;
    while (codes.n > 0) {
        const char *comma = memchr(codes.p, ',', codes.n);
        struct span one = {codes.p, comma != NULL ? (size_t)(comma - codes.p) : codes.n};
        int64_t code = -1;

        if (num_i64(one, INT32_MIN, INT32_MAX, &code) < 0 || code != 0)
            team_fault(t, "spawned rank %" PRIu32 " was not started: error code %.*s", n, SPAN_FMT(one));
        n++;
        codes.n -= comma != NULL ? one.n + 1 : one.n;
        codes.p += comma != NULL ? one.n + 1 : one.n;
    }
    if (n != copies)
        team_fault(t, "spawn of %" PRIu32 " tasks brought %" PRIu32 " error codes", copies, n);
}

static int spawn_once(struct team *t, const struct bench_opts *o, const char *token, struct err *err)
{
    char path[4096], version[16], timeout[40];
    char *args[] = {version, timeout, (char[]){"spawned"}, NULL};
    const struct talk_spawn s = {.program = path, .args = args, .copies = o->copies, .key = PREPUT_KEY, .value = token};
    const struct talk_request r = {.op = TALK_SPAWN, .spawn = &s};
    ssize_t n = readlink("/proc/self/exe", path, sizeof(path) - 1);
    uint64_t start;
    struct talk_answer a;
    int rc;

    if (n < 0)
        return err_set(err, -errno, "cannot find my own program: %s", strerror(errno));
    path[n] = '\0';
    snprintf(version, sizeof(version), "--pmi=%d", t->job.kind == &talk_pmi2 ? 2 : 1);
    snprintf(timeout, sizeof(timeout), "--timeout=%" PRIu64 "ms", o->timeout_ms);
    start = now_ns();
    rc = talk_do(team_first(t), &r, &a, err);
    if (rc < 0)
        return err_prefix(err, "spawn");
    if (a.rc != 0)
        return err_set(err, -EOPNOTSUPP, "the PMI server refuses to spawn: rc=%d%s%.*s", a.rc, a.msg.n > 0 ? " " : "",
                       (int)MIN(a.msg.n, 100), a.msg.n > 0 ? a.msg.p : "");
    stats_add(&t->stats[MEASURE_SPAWN], now_ns() - start);
    check_codes(t, a.value, o->copies);
    return 0;
}

/* Until the copy with that rank has published its answer, or the time is over. */
static int await_answer(struct team *t, const struct bench_opts *o, const char *token, uint32_t rank, struct err *err)
{
    static const struct timespec pause = {0, ASK_AGAIN_MS * 1000000};
    uint64_t end = now_ns() + o->timeout_ms * 1000000;
    char name[NAME_MAX_LEN], port[NAME_MAX_LEN];
    struct talk_answer a;
    int rc;

    answer_of(token, (int)rank, (int)o->copies, name, port);
    /* Slurm's rc is 0 for a name that is not there. */
    while ((rc = ask_name(t, TALK_LOOKUP, name, "", &a, err)) == 0 && (a.rc != 0 || a.value.n == 0)) {
        if (now_ns() > end)
            return err_set(err, -ETIMEDOUT, "no answer of spawned rank %" PRIu32 " within %" PRIu64 " ms", rank,
                           o->timeout_ms);
        nanosleep(&pause, NULL);
    }
    if (rc < 0)
        return rc;
    if (!span_is(a.value, port))
        team_fault(t, "name %s of spawned rank %" PRIu32 ": wanted '%s', got '%.*s'", name, rank, port,
                   (int)MIN(a.value.n, 100), a.value.n > 0 ? a.value.p : "");
    return ask_name(t, TALK_UNPUBLISH, name, "", &a, err);
}

static int rounds(struct team *t, const struct bench_opts *o, struct err *err)
{
    uint64_t id = now_ns();
    char token[TOKEN_MAX];
    int rc, names;

    snprintf(token, sizeof(token), "bench.%ld.%" PRIu64, (long)getpid(), id);
    names = has_names(t, token, err);
    rc = names < 0 ? names : 0;
    for (uint64_t i = 0; rc == 0 && i < o->count; i++) {
        uint64_t start = now_ns();

        snprintf(token, sizeof(token), "bench.%ld.%" PRIu64 ".%" PRIu64, (long)getpid(), id, i);
        rc = spawn_once(t, o, token, err);
        for (uint32_t r = 0; rc == 0 && names > 0 && r < o->copies; r++)
            rc = await_answer(t, o, token, r, err);
        if (rc == 0 && names > 0)
            stats_add(&t->stats[MEASURE_ANSWER], now_ns() - start);
    }
    return rc;
}

int spawn_run(struct team *t, const struct bench_opts *o, struct err *err)
{
    return t->job.rank == 0 ? rounds(t, o, err) : 0;
}

int spawned_run(struct team *t, struct err *err)
{
    const struct talk_request get = {.op = TALK_GET, .key = PREPUT_KEY};
    char token[TOKEN_MAX], name[NAME_MAX_LEN], port[NAME_MAX_LEN];
    struct talk_answer a;
    int rc = talk_do(team_first(t), &get, &a, err);

    if (rc < 0)
        return rc;
    if (a.rc != 0 || a.value.n == 0 || a.value.n >= sizeof(token)) {
        team_fault(t, "key " PREPUT_KEY ", which the spawning job gave along: got nothing (rc=%d)", a.rc);
        return 0;
    }
    snprintf(token, sizeof(token), "%.*s", SPAN_FMT(a.value));
    answer_of(token, t->job.rank, t->job.size, name, port);
    /* A server without names refuses, which the spawning job has told already. */
    return ask_name(t, TALK_PUBLISH, name, port, &a, err);
}
