/* SPDX-License-Identifier: BSD-3-Clause */
#include "bootstrap/share.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "bootstrap/growth.h"
#include "common/util.h"

/* Before anything was measured: a login keeps its caller busy for a 16th of its time, as OpenSSH with a cheap key
 * exchange does. */
#define RATIO_FIRST 16
#define RATIO_MAX 512
#define FIRST_MIN 4
/* Children that could not log in to others, for it to be thought that none can. */
#define CLOSED_MANY 4

struct login {
    uint32_t host;
    uint64_t began_us;
};

struct child {
    uint32_t host;
    bool hungry, closed;
    struct ranges dealt; /* what it has, less what it handed back */
};

struct share {
    struct share_conf conf;
    struct ranges own;   /* for this node alone, whatever its width */
    struct ranges left;  /* nobody has begun with them */
    uint32_t total;      /* that were ever here to be logged in to: for the first guess */
    struct login *login; /* under way, in the order in which they were started */
    uint32_t login_count, login_cap;
    struct child *child;
    uint32_t child_count, child_cap;
    bool given_up, asked, measured;
    bool alone;               /* of the children most could not: no more are asked to */
    struct share_times times; /* in use: measured, or the parent's */
    uint64_t busy_until_us;   /* the caller is, with the logins that it has begun */
    uint64_t first_up_us, least_us, prior_us;
    uint32_t ups; /* since the caller was idle last */
    struct growth growth;
};

struct share *share_new(const struct share_conf *conf)
{
    struct share *s = calloc(1, sizeof(*s));

    if (s == NULL)
        return NULL;
    s->conf = *conf;
    s->conf.width = MAX(1, conf->width);
    s->conf.logins = MAX(1, conf->logins);
    s->measured = conf->login_us > 0 && conf->gap_us > 0;
    s->times.login_us = conf->login_us;
    s->times.gap_us = s->measured ? conf->gap_us : conf->login_us / RATIO_FIRST;
    s->asked = true; /* it begins with nothing, and its parent knows that */
    return s;
}

void share_free(struct share *s)
{
    if (s == NULL)
        return;
    for (uint32_t i = 0; i < s->child_count; i++)
        ranges_done(&s->child[i].dealt);
    ranges_done(&s->left);
    ranges_done(&s->own);
    free(s->child);
    free(s->login);
    growth_done(&s->growth);
    free(s);
}

int share_add(struct share *s, struct share_range range)
{
    int rc = ranges_add(&s->left, range);

    if (rc < 0)
        return rc;
    s->total += range.count;
    s->asked = false;
    return 0;
}

int share_keep(struct share *s, uint32_t host)
{
    return ranges_add(&s->own, (struct share_range){host, 1});
}

/* --- what can be done in which time ----------------------------------------------------------------------------- */

/* Of the gap, how long a login lasts. */
static double ratio(const struct share *s)
{
    double r = s->times.gap_us > 0 ? (double)s->times.login_us / (double)s->times.gap_us : RATIO_FIRST;

    return MIN(MAX(r, 1.0), RATIO_MAX);
}

static uint32_t login_units(const struct share *s)
{
    return (uint32_t)(ratio(s) * GROWTH_GAP + 0.5);
}

static uint32_t units_of(const struct share *s, uint64_t us)
{
    double units = s->times.gap_us > 0 ? (double)us * GROWTH_GAP / (double)s->times.gap_us : 0;

    return units > GROWTH_MAX ? GROWTH_MAX : (uint32_t)(units + 0.5);
}

/* By one that can begin in `delay` units and has `t` until the end. */
static uint32_t by_one(const struct share *s, uint32_t t, uint32_t delay)
{
    return t < delay ? 0 : s->growth.in[t - delay];
}

static uint32_t width_left(const struct share *s)
{
    uint32_t used = s->child_count + s->login_count;

    return used < s->conf.width ? s->conf.width - used : 0;
}

/* How late may a login be until it is no longer counted upon? */
static bool is_late(const struct share *s, const struct login *l, uint64_t now)
{
    uint64_t due = s->times.login_us + s->login_count * s->times.gap_us;

    return s->times.login_us > 0 && now - l->began_us > 3 * due;
}

/* In how many units login number `i` will be up: they come a gap apart, and none before its time. */
static uint32_t up_in(const struct share *s, uint32_t i, uint64_t now)
{
    uint64_t due = s->login[i].began_us + s->times.login_us;
    uint32_t by_time = due > now ? units_of(s, due - now) : 0, by_order = (i + 1) * GROWTH_GAP;

    return MAX(by_time, by_order);
}

/* By ourselves, who may have less logins before us than a newcomer, and others to be through with first. */
static uint64_t by_us(const struct share *s, uint32_t t, uint64_t now)
{
    uint64_t begin = s->busy_until_us > now ? units_of(s, s->busy_until_us - now) : 0, at = begin + s->growth.login;
    uint64_t sum = 0;

    if (s->login_count > 0)
        at = MAX(at, up_in(s, s->login_count - 1, now) + GROWTH_GAP);
    for (uint32_t n = width_left(s); n > 0 && at <= t; at += GROWTH_GAP, n--)
        sum += 1u + s->growth.in[t - at];
    return sum;
}

/* What all who are to share in what is left bring up in `t`. */
static uint64_t by_all(const struct share *s, uint32_t t, uint64_t now)
{
    uint64_t sum = by_us(s, t, now);

    for (uint32_t i = 0; i < s->child_count; i++)
        if (s->child[i].hungry && !s->child[i].closed)
            sum += s->growth.in[t];
    for (uint32_t i = 0; i < s->login_count; i++)
        if (!is_late(s, &s->login[i], now))
            sum += by_one(s, t, up_in(s, i, now));
    return sum;
}

/* The part of a hungry child. */
static uint32_t part(struct share *s, uint64_t now)
{
    uint32_t low = 0, high;
    uint64_t all;

    if (growth_make(&s->growth, login_units(s), s->conf.width, s->left.total) < 0)
        return s->left.total; /* a bad schedule is better than none */
    high = s->growth.len - 1;
    while (low < high) {
        uint32_t mid = low + (high - low) / 2;

        if (by_all(s, mid, now) >= s->left.total)
            high = mid;
        else
            low = mid + 1;
    }
    all = by_all(s, low, now);
    if (all == 0)
        return 0;
    return (uint32_t)MIN(s->left.total, (uint64_t)s->growth.in[low] * s->left.total / all);
}

/* --- times ------------------------------------------------------------------------------------------------------ */

/* A caller that is never idle brings one up every gap. What is known already, or guessed, counts like one of them: the
 * first few say little. */
static void measure(struct share *s, const struct login *l, uint64_t now)
{
    uint64_t took = MAX(1, now - l->began_us);

    if (s->ups++ == 0) {
        s->first_up_us = now;
        s->least_us = took;
        s->prior_us = s->times.gap_us;
    }
    s->least_us = MIN(s->least_us, took);
    if (s->times.login_us == 0 || s->ups > 1)
        s->times.login_us = s->least_us;
    if (s->prior_us == 0)
        s->prior_us = s->least_us / RATIO_FIRST;
    s->measured |= s->ups > 1;
    s->times.gap_us = MAX(1, (s->prior_us + now - s->first_up_us) / s->ups);
}

struct share_times share_times(const struct share *s)
{
    return (struct share_times){s->times.login_us, s->measured ? s->times.gap_us : 0};
}

/* How many logins keep the caller busy: one a gap, and each lasts for a login; more would only be taken from others. A
 * few more even so, that it shows when it could do with them. Of a short list the launcher begins with a part only,
 * until it knows what a login costs. */
static uint32_t window(const struct share *s)
{
    uint32_t n = s->measured ? (uint32_t)(ratio(s) * 1.25) + 1 : RATIO_FIRST;

    if (!s->measured && s->conf.is_root)
        n = MIN(n, MAX(FIRST_MIN, s->total / 3));
    return MIN(n, s->conf.logins);
}

/* --- logins ----------------------------------------------------------------------------------------------------- */

static uint32_t open_children(const struct share *s, bool hungry)
{
    uint32_t n = 0;

    for (uint32_t i = 0; i < s->child_count; i++)
        n += !s->child[i].closed && (s->child[i].hungry || !hungry);
    return n;
}

static bool has_takers(const struct share *s)
{
    return !s->alone && open_children(s, false) > 0;
}

static uint32_t counted_logins(const struct share *s, uint64_t now)
{
    uint32_t n = 0;

    for (uint32_t i = 0; i < s->login_count; i++)
        n += !is_late(s, &s->login[i], now);
    return n;
}

/* May there be more children than the width allows? Where those that are there are of no use, and what is under way
 * will hardly be of more. */
static bool may_be_wider(const struct share *s)
{
    return !has_takers(s) && (s->login_count == 0 || s->alone);
}

static bool may_begin(const struct share *s, uint64_t now)
{
    return !s->given_up && counted_logins(s, now) < window(s) && (width_left(s) > 0 || may_be_wider(s));
}

bool share_next(struct share *s, uint64_t now_us, uint32_t *host)
{
    struct ranges *from = s->own.total > 0 ? &s->own : &s->left;

    if (from->total == 0 || s->login_count >= s->conf.logins || (from == &s->left && !may_begin(s, now_us)))
        return false;
    if (s->login_count == s->login_cap) {
        uint32_t cap = s->login_cap == 0 ? 8 : s->login_cap * 2;
        struct login *more = realloc(s->login, cap * sizeof(*more));

        if (more == NULL)
            return false; /* it is tried again at the next event */
        s->login = more;
        s->login_cap = cap;
    }
    if (s->login_count == 0)
        s->ups = 0;
    *host = ranges_take_first(from);
    s->login[s->login_count++] = (struct login){*host, now_us};
    s->busy_until_us = MAX(s->busy_until_us, now_us) + s->times.gap_us;
    return true;
}

static struct login *find_login(struct share *s, uint32_t host)
{
    for (uint32_t i = 0; i < s->login_count; i++)
        if (s->login[i].host == host)
            return &s->login[i];
    return NULL;
}

static void end_login(struct share *s, struct login *l)
{
    uint32_t behind = (uint32_t)(s->login + s->login_count - (l + 1));

    memmove(l, l + 1, behind * sizeof(*l));
    s->login_count--;
}

int share_failed(struct share *s, uint32_t host)
{
    struct login *l = find_login(s, host);

    if (l == NULL)
        return -ENOENT;
    end_login(s, l);
    return 0;
}

int share_up(struct share *s, uint32_t host, uint64_t now_us)
{
    struct login *l = find_login(s, host);

    if (l == NULL)
        return -ENOENT;
    if (s->child_count == s->child_cap) {
        uint32_t cap = s->child_cap == 0 ? 8 : s->child_cap * 2;
        struct child *more = realloc(s->child, cap * sizeof(*more));

        if (more == NULL)
            return -ENOMEM;
        s->child = more;
        s->child_cap = cap;
    }
    measure(s, l, now_us);
    end_login(s, l);
    s->child[s->child_count++] = (struct child){.host = host, .hungry = true};
    return 0;
}

bool share_give_up(struct share *s, struct share_range *range)
{
    s->given_up = true;
    if (s->left.total == 0)
        return false;
    *range = ranges_take_last(&s->left, UINT32_MAX);
    return true;
}

/* --- children --------------------------------------------------------------------------------------------------- */

static struct child *find_child(const struct share *s, uint32_t host)
{
    for (uint32_t i = 0; i < s->child_count; i++)
        if (s->child[i].host == host)
            return &s->child[i];
    return NULL;
}

/* Where we may begin with none ourselves, and nobody is about to come up who could, all goes to those that are there.
 */
static bool is_all_for_children(const struct share *s)
{
    return s->login_count == 0 && (width_left(s) == 0 || s->given_up);
}

/* Whom what is left is for: a hungry child; where there is none and it cannot stay here, the one with the least. */
static struct child *choose(struct share *s)
{
    struct child *best = NULL;

    for (uint32_t i = 0; i < s->child_count; i++) {
        struct child *c = &s->child[i];

        if (c->closed)
            continue;
        if (best == NULL || (c->hungry && !best->hungry) ||
            (c->hungry == best->hungry && c->dealt.total < best->dealt.total))
            best = c;
    }
    return best != NULL && (best->hungry || is_all_for_children(s)) ? best : NULL;
}

bool share_deal(struct share *s, uint64_t now_us, uint32_t *child, struct share_range *range)
{
    struct child *c;
    uint32_t n;

    if (s->left.total == 0 || !has_takers(s) || (c = choose(s)) == NULL)
        return false;
    if (is_all_for_children(s)) {
        uint32_t takers = open_children(s, c->hungry);

        n = (s->left.total + takers - 1) / takers;
    } else {
        n = part(s, now_us);
    }
    if (n == 0)
        return false;
    *range = ranges_take_last(&s->left, n);
    if (ranges_add(&c->dealt, *range) < 0) {
        (void)ranges_add(&s->left, *range); /* it fits: it was there */
        return false;
    }
    if (range->count == n || is_all_for_children(s))
        c->hungry = false;
    *child = c->host;
    return true;
}

int share_wanted(struct share *s, uint32_t child)
{
    struct child *c = find_child(s, child);

    if (c == NULL)
        return -ENOENT;
    c->hungry = true;
    return 0;
}

int share_back(struct share *s, uint32_t child, struct share_range range)
{
    struct child *c = find_child(s, child);
    int rc = c == NULL ? -ENOENT : ranges_remove(&c->dealt, range);

    return rc < 0 ? rc : share_add(s, range);
}

int share_close(struct share *s, uint32_t child)
{
    struct child *c = find_child(s, child);
    uint32_t open;

    if (c == NULL)
        return -ENOENT;
    c->closed = true;
    open = open_children(s, false);
    s->alone |= s->child_count - open >= CLOSED_MANY && s->child_count - open > open;
    return 0;
}

int share_drop(struct share *s, uint32_t child, uint32_t host)
{
    struct child *c = find_child(s, child);

    return c == NULL ? -ENOENT : ranges_remove(&c->dealt, (struct share_range){host, 1});
}

bool share_lost(struct share *s, uint32_t child, struct share_range *range)
{
    struct child *c = find_child(s, child);

    if (c == NULL)
        return false;
    if (c->dealt.total > 0) {
        *range = ranges_take_last(&c->dealt, UINT32_MAX);
        return true;
    }
    ranges_done(&c->dealt);
    *c = s->child[--s->child_count];
    return false;
}

bool share_dealt(const struct share *s, uint32_t child, struct share_range range)
{
    const struct child *c = find_child(s, child);

    return c != NULL && ranges_has_all(&c->dealt, range);
}

int64_t share_child_of(const struct share *s, uint32_t host)
{
    for (uint32_t i = 0; i < s->child_count; i++)
        if (s->child[i].host == host || ranges_has(&s->child[i].dealt, host))
            return s->child[i].host;
    return -1;
}

bool share_wants(struct share *s, uint64_t now_us)
{
    if (s->conf.is_root || s->asked || s->given_up || s->left.total > 0 || now_us < s->busy_until_us)
        return false;
    s->asked = true;
    return true;
}

uint32_t share_left(const struct share *s)
{
    return s->left.total + s->own.total;
}

uint32_t share_under_way(const struct share *s)
{
    return s->login_count;
}

uint32_t share_children(const struct share *s)
{
    return s->child_count;
}
