/* SPDX-License-Identifier: BSD-3-Clause */
#include <criterion/criterion.h>
#include <stdlib.h>
#include "client/bench_plan.h"
#include "common/util.h"

/* The whole plan as letters: p put, b barrier, g get; capital where it is counted. */
static const char *letters(const struct plan *p)
{
    static char text[4096];
    struct plan_step s;
    size_t n = 0;

    for (; n < sizeof(text) - 1 && plan_step(p, n, &s); n++) {
        static const char small[] = {[PLAN_OP_PUT] = 'p', [PLAN_OP_GET] = 'g', [PLAN_OP_BARRIER] = 'b'};

        text[n] = (char)(s.measure == MEASURE_NONE ? small[s.op] : small[s.op] - 'a' + 'A');
        cr_assert_lt(s.owner, p->size);
        cr_assert(s.op != PLAN_OP_PUT || s.owner == p->rank, "puts of its own only");
    }
    text[n] = '\0';
    cr_expect_not(plan_step(p, n + 1, &s), "what ended stays so");
    return text;
}

Test(bench_plan, barriers_begin_together_and_warm_up)
{
    struct plan p = {.kind = PLAN_BARRIER, .size = 4, .count = 3};

    cr_expect_str_eq(letters(&p), "bBBB");
    p.count = 20;
    cr_expect_str_eq(letters(&p), "bbbBBBBBBBBBBBBBBBBBBBB");
}

Test(bench_plan, get_is_of_the_next_ranks_value)
{
    struct plan p = {.kind = PLAN_GET, .rank = 3, .size = 4, .count = 10};
    struct plan_step s;

    cr_expect_str_eq(letters(&p), "pbgGGGGGGGGGG");
    cr_assert(plan_step(&p, 5, &s));
    cr_expect_eq(s.owner, 0u);
    p.key = "k";
    cr_expect_str_eq(letters(&p), "gGGGGGGGGGG");
}

Test(bench_plan, put_get_reads_what_the_next_rank_has_put)
{
    struct plan p = {.kind = PLAN_PUT_GET, .rank = 0, .size = 2, .count = 2};
    struct plan_step s;

    cr_expect_str_eq(letters(&p), "bPPBGG");
    cr_assert(plan_step(&p, 5, &s));
    cr_expect(s.owner == 1 && s.number == 1);
}

Test(bench_plan, a_round_is_put_barrier_and_all_gets)
{
    struct plan p = {.kind = PLAN_EXCHANGE, .rank = 1, .size = 3, .count = 2, .reads = 3};
    struct plan_step s;

    cr_expect_str_eq(letters(&p), "bPBGGGbPBGGG");
    cr_assert(plan_step(&p, 1, &s));
    cr_expect(s.begins_round && !s.ends_round);
    cr_assert(plan_step(&p, 11, &s));
    cr_expect(s.ends_round && s.number == 1);
    p.reads = 0;
    cr_expect_str_eq(letters(&p), "bPBbPB");
    cr_assert(plan_step(&p, 2, &s));
    cr_expect(s.ends_round);
}

Test(bench_plan, a_sample_reads_each_rank_at_most_once_a_round)
{
    for (uint32_t size = 1; size <= 17; size++)
        for (uint32_t reads = 1; reads <= size; reads++) {
            const struct plan p = {.kind = PLAN_EXCHANGE, .rank = size / 2, .size = size, .count = 3, .reads = reads};
            struct plan_step s;
            uint32_t seen = 0;

            for (uint64_t i = 0; plan_step(&p, i, &s); i++) {
                if (s.begins_round)
                    seen = 0;
                if (s.op != PLAN_OP_GET)
                    continue;
                cr_assert_eq(seen & (1u << s.owner), 0u, "%u of %u", reads, size);
                seen |= 1u << s.owner;
            }
            cr_expect_eq((uint32_t)__builtin_popcount(seen), reads);
        }
}

Test(bench_plan, first_and_last_tenth_of_many_rounds)
{
    struct plan p = {.kind = PLAN_EXCHANGE, .size = 1, .count = 20, .reads = 0};
    unsigned first = 0, last = 0;
    struct plan_step s;

    for (uint64_t i = 0; plan_step(&p, i, &s); i++) {
        first += s.ends_round && s.round == MEASURE_ROUND_FIRST;
        last += s.ends_round && s.round == MEASURE_ROUND_LAST;
    }
    cr_expect(first == 2 && last == 2);
    p.count = 19;
    for (uint64_t i = 0; plan_step(&p, i, &s); i++)
        cr_expect_eq(s.round, MEASURE_NONE);
}

Test(bench_plan, keys_name_owner_session_and_number_and_have_the_wished_length)
{
    struct plan p = {.kind = PLAN_EXCHANGE, .size = 20};
    struct plan_step s = {.owner = 12, .number = 345};
    char key[PMI_KEY_MAX];

    plan_key(&p, 6, &s, key);
    cr_expect_str_eq(key, "b345.6.12");
    p.key_size = 12;
    plan_key(&p, 6, &s, key);
    cr_expect_str_eq(key, "b345.6.12---");
    p.key_size = PMI_KEY_MAX - 1;
    s = (struct plan_step){.owner = UINT32_MAX, .number = UINT64_MAX};
    plan_key(&p, UINT32_MAX, &s, key);
    cr_expect_eq(strlen(key), p.key_size);
    p.key = "PMI_process_mapping";
    plan_key(&p, 0, &s, key);
    cr_expect_str_eq(key, p.key);
}

Test(bench_plan, a_value_is_its_owners_sessions_and_numbers_alone)
{
    static char a[BENCH_VALUE_MAX], b[BENCH_VALUE_MAX];
    struct plan p = {.kind = PLAN_EXCHANGE, .size = 20, .value_size = 40};
    struct plan_step s = {.owner = 12, .number = 345};
    struct span v = plan_value(&p, 6, &s, a);

    cr_expect_eq(v.n, 40u);
    cr_expect(span_starts(v, "rank12.6.345="));
    for (size_t i = 0; i < v.n; i++)
        cr_expect(v.p[i] > ' ' && v.p[i] < 0x7f && v.p[i] != ';');
    cr_expect(span_eq(plan_value(&p, 6, &s, b), v), "the same again");
    for (size_t size = 8; size <= 64; size *= 2) {
        struct plan_step other[3] = {s, s, s};

        p.value_size = size;
        v = plan_value(&p, 6, &s, a);
        other[0].owner++;
        other[1].number++;
        for (size_t i = 0; i < ARRAY_SIZE(other); i++)
            cr_expect_not(span_eq(plan_value(&p, i == 2 ? 7 : 6, &other[i], b), v), "%zu bytes", size);
    }
}

Test(bench_plan, values_of_any_size)
{
    static char room[BENCH_VALUE_MAX];
    struct plan p = {.kind = PLAN_EXCHANGE, .size = 1};
    struct plan_step s = {0};

    for (size_t n = 1; n <= BENCH_VALUE_MAX; n = n * 2 - (n > 2)) {
        p.value_size = n;
        memset(room, 0, sizeof(room));
        cr_expect_eq(plan_value(&p, 0, &s, room).n, n);
        cr_expect_eq(strnlen(room, sizeof(room)), n);
    }
}
