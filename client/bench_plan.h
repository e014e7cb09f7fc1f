/* SPDX-License-Identifier: BSD-3-Clause */
/* bench_plan.h - what each PMI session of a measurement does, step by step, and which keys and values it does it with
 *
 * Every rank and session follows the same plan, and a value can be told from who put it, so each reader knows what it
 * has to find. Pure.
 */
#ifndef CLIENT_BENCH_PLAN_H
#define CLIENT_BENCH_PLAN_H

#include <stdbool.h>
#include <stdint.h>
#include "common/limits.h"
#include "common/span.h"

/* What a time counts as. */
enum measure {
    MEASURE_NONE,
    MEASURE_OPEN, /* connect, initack, init */
    MEASURE_PUT,
    MEASURE_BARRIER,
    MEASURE_GET,
    MEASURE_ROUND, /* from a put to the last value that was read after it */
    MEASURE_ROUND_FIRST,
    MEASURE_ROUND_LAST, /* rounds of the first and of the last tenth */
    MEASURE_SPAWN,
    MEASURE_ANSWER, /* from a spawn to the last new task's word */
    MEASURES
};

enum plan_kind { PLAN_GET, PLAN_BARRIER, PLAN_EXCHANGE, PLAN_PUT_GET };

struct plan {
    enum plan_kind kind;
    uint32_t rank, size; /* rank < size */
    uint64_t count;      /* gets, barriers, rounds, or keys a rank; at least 1 */
    uint32_t reads;      /* PLAN_EXCHANGE: keys that a rank reads in a round, at most `size` */
    size_t key_size;     /* keys are made that long where they would be shorter, at most PMI_KEY_MAX - 1 */
    size_t value_size;   /* 1..BENCH_VALUE_MAX */
    const char *key;     /* PLAN_GET: read this key, which somebody else has put; NULL: the next rank's */
};

enum plan_op { PLAN_OP_PUT, PLAN_OP_GET, PLAN_OP_BARRIER };

struct plan_step {
    enum plan_op op;
    uint32_t owner;  /* the rank that puts what is put or read */
    uint64_t number; /* of its values, which one */
    enum measure measure;
    bool begins_round, ends_round;
    enum measure round; /* at its end: what the round counts as besides MEASURE_ROUND */
};

const char *measure_name(enum measure m);

/* Step `i` of the plan; false: it ended before. */
bool plan_step(const struct plan *p, uint64_t i, struct plan_step *step);

/* The key of a put or get, terminated. */
void plan_key(const struct plan *p, uint32_t session, const struct plan_step *step, char key[PMI_KEY_MAX]);

/* The value that belongs to it: p->value_size visible characters into `room`, which has BENCH_VALUE_MAX. Values of
 * other owners, sessions or numbers differ, unless they are very short. */
struct span plan_value(const struct plan *p, uint32_t session, const struct plan_step *step, char *room);

#endif
