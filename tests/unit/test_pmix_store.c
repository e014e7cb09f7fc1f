/* SPDX-License-Identifier: BSD-3-Clause */
#include "server/pmix_store.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <stdio.h>
#include "server/pmix_pair.h"

struct rig {
    struct pmix_store *s;
    char said[400];
};

static void answer(const struct pmix_asker *who, int rc, struct span pairs, void *arg)
{
    struct rig *r = arg;
    size_t n = strlen(r->said);
    struct pmix_pair p;

    n += (size_t)snprintf(r->said + n, sizeof(r->said) - n, "%u/%u %d", who->place, who->req, rc);
    while (pmix_pair_next(&pairs, &p) == 1)
        n += (size_t)snprintf(r->said + n, sizeof(r->said) - n, " %u.%u:%.*s=%.*s", p.job, p.rank, SPAN_FMT(p.key),
                              SPAN_FMT(p.value));
    snprintf(r->said + n, sizeof(r->said) - n, ";");
}

static void rig_open(struct rig *r)
{
    *r = (struct rig){0};
    r->s = pmix_store_new(answer, r);
    cr_assert_not_null(r->s);
}

/* "a=1 b=2", each of rank 7 of job 1. */
static struct span pairs(struct buf *b, const char *text)
{
    b->len = 0;
    while (*text != '\0') {
        size_t n = strcspn(text, " "), key = strcspn(text, "= ");
        struct pmix_pair p = {1, 7, {text, key}, {text + key, 0}};

        if (key < n)
            p.value = (struct span){text + key + 1, n - key - 1};
        cr_assert_eq(pmix_pair_add(b, &p), 0);
        text += n + (text[n] == ' ');
    }
    return buf_span(b);
}

static int publish(struct rig *r, const char *text, bool once)
{
    struct buf b = {0};
    int rc = pmix_store_publish(r->s, pairs(&b, text), once);

    buf_done(&b);
    return rc;
}

static int lookup(struct rig *r, uint32_t req, const char *text, bool wait, uint64_t deadline)
{
    const struct pmix_asker who = {3, req};
    struct buf b = {0};
    int rc = pmix_store_lookup(r->s, &who, pairs(&b, text), wait, deadline);

    buf_done(&b);
    return rc;
}

Test(pmix_store, found_until_taken_back)
{
    struct rig r;
    struct buf b = {0};

    rig_open(&r);
    cr_expect_eq(publish(&r, "a=1 b=2", false), 0);
    cr_expect_eq(lookup(&r, 1, "a", false, 0), 0);
    cr_expect_eq(lookup(&r, 2, "b c a", false, 0), 0);
    cr_expect_eq(lookup(&r, 3, "c", false, 0), 0);
    cr_expect_str_eq(r.said, "3/1 0 1.7:a=1;3/2 0 1.7:b=2 1.7:a=1;3/3 -2;");
    cr_expect_eq(pmix_store_unpublish(r.s, pairs(&b, "a")), 0);
    cr_expect_eq(pmix_store_unpublish(r.s, pairs(&b, "a")), 0);
    r.said[0] = '\0';
    cr_expect_eq(lookup(&r, 4, "a", false, 0), 0);
    cr_expect_str_eq(r.said, "3/4 -2;");
    buf_done(&b);
    pmix_store_free(r.s);
}

Test(pmix_store, a_lookup_that_waits_is_answered_by_what_is_published_later)
{
    struct rig r;

    rig_open(&r);
    cr_expect_eq(lookup(&r, 1, "a b", true, 0), 0);
    cr_expect_eq(publish(&r, "a=1", false), 0);
    cr_expect_str_eq(r.said, "");
    cr_expect_eq(publish(&r, "b=2", false), 0);
    cr_expect_str_eq(r.said, "3/1 0 1.7:a=1 1.7:b=2;");
    pmix_store_free(r.s);
}

Test(pmix_store, what_is_for_one_reader_goes_with_the_first)
{
    struct rig r;

    rig_open(&r);
    cr_expect_eq(lookup(&r, 1, "a", true, 0), 0);
    cr_expect_eq(lookup(&r, 2, "a", true, 0), 0);
    cr_expect_eq(publish(&r, "a=1", true), 0);
    cr_expect_str_eq(r.said, "3/1 0 1.7:a=1;");
    cr_expect_eq(publish(&r, "a=2", true), 0);
    cr_expect_str_eq(r.said, "3/1 0 1.7:a=1;3/2 0 1.7:a=2;");
    cr_expect_eq(lookup(&r, 3, "a", false, 0), 0);
    cr_expect_str_eq(r.said, "3/1 0 1.7:a=1;3/2 0 1.7:a=2;3/3 -2;");
    pmix_store_free(r.s);
}

Test(pmix_store, all_of_a_publication_or_nothing)
{
    struct rig r;

    rig_open(&r);
    cr_expect_eq(publish(&r, "b=1", true), 0);
    cr_expect_eq(publish(&r, "a=1 b=2 c=3", false), -EEXIST);
    cr_expect_eq(lookup(&r, 1, "a b c", false, 0), 0);
    cr_expect_str_eq(r.said, "3/1 0 1.7:b=1;");
    cr_expect_eq(pmix_store_publish(r.s, span_of("rubbish of more than sixteen bytes"), false), -EPROTO);
    pmix_store_free(r.s);
}

Test(pmix_store, what_the_same_job_publishes_again_takes_the_place_of_the_old)
{
    struct rig r;

    rig_open(&r);
    cr_expect_eq(publish(&r, "a=1 b=1", false), 0);
    cr_expect_eq(publish(&r, "a=2 c=1 c=2", false), 0);
    cr_expect_eq(publish(&r, "a=3", true), -EEXIST, "a reader would find one value of two");
    cr_expect_eq(lookup(&r, 1, "a b c", false, 0), 0);
    cr_expect_str_eq(r.said, "3/1 0 1.7:a=2 1.7:b=1 1.7:c=2;");
    pmix_store_free(r.s);
}

Test(pmix_store, who_has_waited_long_enough_is_told)
{
    struct rig r;

    rig_open(&r);
    cr_expect_eq(lookup(&r, 1, "a", true, 500), 0);
    cr_expect_eq(lookup(&r, 2, "a", true, 300), 0);
    cr_expect_eq(lookup(&r, 3, "a", true, 0), 0);
    cr_expect_eq(pmix_store_expire(r.s, 100), 300);
    cr_expect_eq(pmix_store_expire(r.s, 300), 500);
    cr_expect_str_eq(r.said, "3/2 -110;");
    cr_expect_eq(pmix_store_expire(r.s, 600), 0);
    cr_expect_str_eq(r.said, "3/2 -110;3/1 -110;");
    pmix_store_free(r.s);
}

Test(pmix_store, another_jobs_keys_stay)
{
    struct rig r;
    struct buf b = {0};
    struct pmix_pair p = {2, 0, {"a", 1}, {"", 0}};

    rig_open(&r);
    cr_expect_eq(publish(&r, "a=1", false), 0);
    cr_assert_eq(pmix_pair_add(&b, &p), 0);
    cr_expect_eq(pmix_store_unpublish(r.s, buf_span(&b)), 0);
    cr_expect_eq(pmix_store_publish(r.s, buf_span(&b), false), -EEXIST);
    cr_expect_eq(lookup(&r, 1, "a", false, 0), 0);
    cr_expect_str_eq(r.said, "3/1 0 1.7:a=1;");
    buf_done(&b);
    pmix_store_free(r.s);
}
