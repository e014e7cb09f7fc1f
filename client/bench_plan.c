/* SPDX-License-Identifier: BSD-3-Clause */
#include "client/bench_plan.h"

#include <inttypes.h>
#include <stdio.h>
#include "common/util.h"

#define WARM_MAX 100       /* steps that are done but not counted, at most, */
#define WARM_PART 10       /* or one in so many */
#define ROUND_EXTRA 3      /* of an exchange: a barrier so that all begin together, put, barrier */
#define TENTHS_MIN 20      /* rounds, for the first and the last tenth to mean something */
#define VALUE_LABEL_MAX 48 /* a value long enough begins with who put it, for people */

const char *measure_name(enum measure m)
{
    static const char *const names[MEASURES] = {
        [MEASURE_NONE] = "nothing",
        [MEASURE_OPEN] = "open",
        [MEASURE_PUT] = "put",
        [MEASURE_BARRIER] = "barrier",
        [MEASURE_GET] = "get",
        [MEASURE_ROUND] = "round",
        [MEASURE_ROUND_FIRST] = "round-first-tenth",
        [MEASURE_ROUND_LAST] = "round-last-tenth",
        [MEASURE_SPAWN] = "spawn",
        [MEASURE_ANSWER] = "answer",
    };

    return names[m];
}

static uint64_t warm_up(const struct plan *p)
{
    return MIN(p->count / WARM_PART, WARM_MAX);
}

static uint32_t next_rank(const struct plan *p)
{
    return (p->rank + 1) % p->size;
}

static bool barrier_step(const struct plan *p, uint64_t i, struct plan_step *step)
{
    uint64_t warm = 1 + warm_up(p);

    *step = (struct plan_step){.op = PLAN_OP_BARRIER, .measure = i < warm ? MEASURE_NONE : MEASURE_BARRIER};
    return i < warm + p->count;
}

static bool get_step(const struct plan *p, uint64_t i, struct plan_step *step)
{
    uint64_t before = p->key != NULL ? 0 : 2, warm = before + warm_up(p);

    *step = (struct plan_step){.op = PLAN_OP_GET, .owner = next_rank(p), .measure = MEASURE_GET};
    if (i < before)
        *step = (struct plan_step){.op = i == 0 ? PLAN_OP_PUT : PLAN_OP_BARRIER, .owner = p->rank};
    else if (i < warm)
        step->measure = MEASURE_NONE;
    return i < warm + p->count;
}

static bool put_get_step(const struct plan *p, uint64_t i, struct plan_step *step)
{
    if (i == 0 || i == 1 + p->count)
        *step = (struct plan_step){.op = PLAN_OP_BARRIER, .measure = i == 0 ? MEASURE_NONE : MEASURE_BARRIER};
    else if (i <= p->count)
        *step = (struct plan_step){.op = PLAN_OP_PUT, .owner = p->rank, .number = i - 1, .measure = MEASURE_PUT};
    else
        *step = (struct plan_step){
            .op = PLAN_OP_GET, .owner = next_rank(p), .number = i - 2 - p->count, .measure = MEASURE_GET};
    return i < 2 + 2 * p->count;
}

/* The j-th rank that is read in a round: all in turn from the next one on, or so many that lie evenly, others in the
 * next round. */
static uint32_t read_from(const struct plan *p, uint64_t round, uint64_t j)
{
    return (uint32_t)((p->rank + 1 + round % p->size + j * p->size / p->reads) % p->size);
}

static enum measure round_part(const struct plan *p, uint64_t round)
{
    if (p->count < TENTHS_MIN)
        return MEASURE_NONE;
    if (round < p->count / 10)
        return MEASURE_ROUND_FIRST;
    return round >= p->count - p->count / 10 ? MEASURE_ROUND_LAST : MEASURE_NONE;
}

static bool exchange_step(const struct plan *p, uint64_t i, struct plan_step *step)
{
    uint64_t steps = ROUND_EXTRA + p->reads, round = i / steps, at = i % steps;

    *step = (struct plan_step){.op = PLAN_OP_BARRIER, .owner = p->rank, .number = round};
    if (at == 1) {
        step->op = PLAN_OP_PUT;
        step->measure = MEASURE_PUT;
        step->begins_round = true;
    } else if (at == 2) {
        step->measure = MEASURE_BARRIER;
    } else if (at > 2) {
        step->op = PLAN_OP_GET;
        step->owner = read_from(p, round, at - ROUND_EXTRA);
        step->measure = MEASURE_GET;
    }
    step->ends_round = at == steps - 1;
    step->round = round_part(p, round);
    return round < p->count;
}

bool plan_step(const struct plan *p, uint64_t i, struct plan_step *step)
{
    switch (p->kind) {
    case PLAN_GET:
        return get_step(p, i, step);
    case PLAN_BARRIER:
        return barrier_step(p, i, step);
    case PLAN_EXCHANGE:
        return exchange_step(p, i, step);
    case PLAN_PUT_GET:
        return put_get_step(p, i, step);
    }
    return false;
}

void plan_key(const struct plan *p, uint32_t session, const struct plan_step *step, char key[PMI_KEY_MAX])
{
    int n;

    if (p->key != NULL) {
        snprintf(key, PMI_KEY_MAX, "%s", p->key);
        return;
    }
    n = snprintf(key, PMI_KEY_MAX, "b%" PRIu64 ".%" PRIu32 ".%" PRIu32, step->number, session, step->owner);
    for (; n < PMI_KEY_MAX - 1 && (size_t)n < p->key_size; n++)
        key[n] = '-';
    key[n] = '\0';
}

/* splitmix64, for values that nobody can press together. */
static uint64_t next_random(uint64_t *state)
{
    uint64_t z = (*state += 0x9e3779b97f4a7c15u);

    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

struct span plan_value(const struct plan *p, uint32_t session, const struct plan_step *step, char *room)
{
    static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    char label[VALUE_LABEL_MAX];
    int n =
        snprintf(label, sizeof(label), "rank%" PRIu32 ".%" PRIu32 ".%" PRIu64 "=", step->owner, session, step->number);
    size_t at = (size_t)n < p->value_size ? (size_t)n : 0;
    uint64_t state = ((uint64_t)step->owner << 32 | session), bits = 0;

    state = next_random(&state) ^ step->number;
    memcpy(room, label, at);
    for (unsigned left = 0; at < p->value_size; at++, left--, bits >>= 6) {
        if (left == 0) {
            bits = next_random(&state);
            left = 10;
        }
        room[at] = letters[bits & 63];
    }
    return (struct span){room, p->value_size};
}
