/* SPDX-License-Identifier: BSD-3-Clause */
#include "server/logins_priv.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "common/io/log.h"

#define GATHER_MS 5    /* who has joined below is told in one message, this long after the first */
#define TICK_MS 500    /* how often logins under way are looked at */
#define FAILURES_MAX 4 /* without a success: then nothing more is begun */

static uint64_t now_us(const struct logins *l)
{
    uv_update_time(l->loop);
    return uv_now(l->loop) * 1000;
}

const char *logins_label(const struct logins *l, uint32_t place)
{
    const char *host = l->ops.host(place, l->ops.arg), *at = strrchr(host, '@');

    return at != NULL ? at + 1 : host;
}

/* --- to the parent ---------------------------------------------------------------------------------------------- */

static void no_memory_for(struct logins *l, uint32_t place)
{
    l->ops.on_lost(place, &(struct err){.code = -ENOMEM, .text = "out of memory"}, l->ops.arg);
}

/* A node that cannot say what it has to is lost. */
void logins_send_note(struct logins *l, unsigned type, const struct logins_note *note)
{
    struct msg_out *m = msg_out_new();
    struct span body;

    if (m != NULL && logins_note_put(note, type, m) == 0 && msg_out_done(m, &body) == 0)
        l->ops.send_up(type, body, l->ops.arg);
    else
        no_memory_for(l, l->conf.place);
    msg_out_free(m);
}

void logins_tell_joined(struct logins *l)
{
    uv_timer_stop(&l->gather);
    if (l->joined.count > 0)
        logins_send_note(l, MSG_JOINED, &l->joined);
    l->joined.count = 0;
}

static void on_gather(uv_timer_t *t)
{
    logins_tell_joined(t->data);
}

int logins_gather(struct logins *l, uint32_t place, uint32_t parent)
{
    if (logins_at_launcher(l)) {
        l->ops.on_joined(place, parent, l->ops.arg);
        return 0;
    }
    if (l->joined.count == l->joined_cap) {
        uint32_t cap = l->joined_cap == 0 ? 16 : l->joined_cap * 2;
        uint32_t *places = realloc(l->joined.place, cap * sizeof(*places)), *parents;

        if (places == NULL)
            return -ENOMEM;
        l->joined.place = places;
        parents = realloc(l->joined.parent, cap * sizeof(*parents));
        if (parents == NULL)
            return -ENOMEM;
        l->joined.parent = parents;
        l->joined_cap = cap;
    }
    l->joined.place[l->joined.count] = place;
    l->joined.parent[l->joined.count++] = parent;
    if (!uv_is_active((uv_handle_t *)&l->gather))
        uv_timer_start(&l->gather, on_gather, GATHER_MS, 0);
    return 0;
}

/* --- giving up -------------------------------------------------------------------------------------------------- */

/* What nobody has begun with goes back to the parent; more than once where children hand back to us. */
static void hand_back(struct logins *l)
{
    struct logins_note note = {.closed = true};
    struct share_range range;
    int rc = 0;

    while (rc == 0 && share_give_up(l->share, &range))
        rc = ranges_add(&note.ranges, range);
    if (rc < 0)
        no_memory_for(l, l->conf.place);
    else
        logins_send_note(l, MSG_BACK, &note);
    ranges_done(&note.ranges);
}

void logins_give_up(struct logins *l, const char *text)
{
    uint32_t count;

    if (l->gave_up || l->all_in || l->closing || logins_at_launcher(l))
        return;
    l->gave_up = true;
    count = share_left(l->share) + l->failures;
    log_warn("logins from here fail (%s), %u host%s left to others", text, count, count == 1 ? " is" : "s are");
    hand_back(l);
}

/* The launcher is to try it: here it cannot be done. Whether that is for this host or for that one will show there. */
static void pass_on(struct logins *l, uint32_t place, const char *text, uint32_t left)
{
    struct logins_note note = {.one = place, .from = l->conf.place, .left = left, .text = (char *)text};

    logins_send_note(l, MSG_LOGIN_FAILED, &note);
}

static void no_longer_under_way(struct logins *l, uint32_t place)
{
    for (uint32_t i = 0; i < l->under_way_count; i++)
        if (l->under_way[i].place == place) {
            l->under_way[i] = l->under_way[--l->under_way_count];
            break;
        }
}

void logins_login_failed(struct logins *l, uint32_t place, const char *text)
{
    uint32_t left = 0;

    if (l->closing || l->all_in || logins_at_launcher(l) || share_failed(l->share, place) < 0)
        return;
    if (strncmp(text, "login: ", 7) == 0) /* that it was one will be said */
        text += 7;
    l->failures++;
    no_longer_under_way(l, place);
    brood_forget(l->brood, place);
    if (!l->gave_up && l->ups == 0 && (share_under_way(l->share) == 0 || l->failures >= FAILURES_MAX))
        left = share_left(l->share) + l->failures;
    pass_on(l, place, text, left);
    if (left > 0) {
        l->gave_up = true;
        hand_back(l);
    }
    logins_pump(l);
}

/* --- the schedule ----------------------------------------------------------------------------------------------- */

static int add_hosts(const struct logins *l, struct share_range range, struct buf *out)
{
    const char **names = calloc(range.count, sizeof(*names));
    int rc = names == NULL ? -ENOMEM : 0;

    for (uint32_t i = 0; rc == 0 && i < range.count; i++)
        names[i] = l->ops.host(range.first + i, l->ops.arg);
    if (rc == 0)
        rc = hostnames_fold(names, range.count, 0, out);
    free(names);
    return rc;
}

/* An edge that cannot take it ends, and all that its child was dealt comes back. */
static void hand_over(struct logins *l, uint32_t child, struct share_range range)
{
    struct share_times times = share_times(l->share);
    struct msg_out *m = msg_out_new();
    struct buf hosts = {0};
    struct span body;
    int rc = m == NULL ? -ENOMEM : add_hosts(l, range, &hosts);

    if (rc == 0 && buf_str(&hosts) != NULL) {
        msg_put_u64(m, "first", range.first);
        msg_put_u64(m, "count", range.count);
        msg_put_u64(m, "login_us", times.login_us);
        msg_put_u64(m, "gap_us", times.gap_us);
        msg_put_str(m, "hosts", hosts.p);
    }
    if (rc == 0)
        rc = msg_out_done(m, &body);
    if (rc == 0)
        rc = links_send(l->conf.brood.links, child, MSG_SHARE, body, false);
    if (rc == 0)
        log_debug("%s is to have %s logged in to", logins_label(l, child), hosts.p);
    if (rc < 0 && share_back(l->share, child, range) < 0)
        no_memory_for(l, l->conf.place);
    else if (rc < 0)
        (void)share_close(l->share, child);
    msg_out_free(m);
    buf_done(&hosts);
}

static int remember(struct logins *l, uint32_t place)
{
    if (logins_at_launcher(l))
        return 0;
    if (l->under_way_count == l->under_way_cap) {
        uint32_t cap = l->under_way_cap == 0 ? 8 : l->under_way_cap * 2;
        struct under_way *more = realloc(l->under_way, cap * sizeof(*more));

        if (more == NULL)
            return -ENOMEM;
        l->under_way = more;
        l->under_way_cap = cap;
    }
    l->under_way[l->under_way_count++] = (struct under_way){place, uv_now(l->loop)};
    return 0;
}

static void start(struct logins *l, uint32_t place)
{
    struct err err = {0};
    int rc = remember(l, place);

    if (rc < 0)
        err_set(&err, rc, "out of memory");
    else
        rc = l->ops.start(place, l->ops.arg, &err);
    if (rc < 0)
        logins_login_failed(l, place, err.text);
}

/* Nothing more is begun here after a failure until there was a success. */
static bool may_begin(const struct logins *l)
{
    return !l->all_in && !l->closing && (logins_at_launcher(l) || l->failures == 0 || l->ups > 0);
}

/* All that is to be done now. What it calls may come back here. */
void logins_pump(struct logins *l)
{
    struct share_range range;
    uint32_t child, place;
    bool again;

    if (l->pumping)
        return;
    l->pumping = true;
    do {
        again = false;
        while (!l->all_in && share_deal(l->share, now_us(l), &child, &range))
            hand_over(l, child, range);
        while (may_begin(l) && share_next(l->share, now_us(l), &place)) {
            start(l, place);
            again = true;
        }
    } while (again && share_left(l->share) > 0);
    l->pumping = false;
    if (l->all_in || l->closing)
        return;
    if (l->gave_up && share_left(l->share) > 0)
        hand_back(l);
    if (share_wants(l->share, now_us(l)))
        logins_send_note(l, MSG_WANT, &(struct logins_note){0});
}

/* A login may hang without a word: then the launcher shall still have time for it. */
static void on_tick(uv_timer_t *t)
{
    struct logins *l = t->data;
    uint64_t now = uv_now(l->loop);

    for (uint32_t i = 0; i < l->under_way_count && !l->closing; i++) {
        uint32_t place = l->under_way[i].place;
        struct buf why = {0};

        if (now - l->under_way[i].began_ms < l->conf.limit_ms)
            continue;
        l->ops.why(place, &why, l->ops.arg);
        l->ops.cancel(place, l->ops.arg);
        logins_login_failed(l, place, buf_str(&why) != NULL ? why.p : "login: no answer");
        buf_done(&why);
        break; /* the others at the next tick: the table has changed */
    }
    if (!l->closing)
        logins_pump(l);
}

/* --- children --------------------------------------------------------------------------------------------------- */

static void on_welcome(uint32_t place, struct msg_out *m, void *arg)
{
    const struct logins *l = arg;

    msg_put_u64(m, "node", logins_how_node(l->conf.how, place));
    logins_how_put(l->conf.how, m);
}

static void on_child(uint32_t place, bool attached, void *arg)
{
    struct logins *l = arg;

    no_longer_under_way(l, place);
    l->ups++;
    if (share_up(l->share, place, now_us(l)) < 0 || logins_gather(l, place, l->conf.place) < 0) {
        no_memory_for(l, place);
        return;
    }
    l->ops.on_up(place, attached, l->ops.arg);
    logins_pump(l);
}

static void on_stranger(void *arg)
{
    struct logins *l = arg;

    l->ops.on_stranger(l->ops.arg);
}

/* --- life ------------------------------------------------------------------------------------------------------- */

static void free_parts(struct logins *l)
{
    share_free(l->share);
    logins_note_done(&l->joined);
    free(l->under_way);
    free(l);
}

static void on_timer_closed(uv_handle_t *h)
{
    struct logins *l = h->data;

    if (--l->handles == 0)
        free_parts(l);
}

int logins_open(uv_loop_t *loop, const struct logins_conf *conf, const struct logins_ops *ops, struct logins **out,
                struct err *err)
{
    struct share_conf sc = {
        .width = conf->how->width,
        .logins = conf->how->logins,
        .login_us = conf->times.login_us,
        .gap_us = conf->times.gap_us,
        .is_root = conf->place == 0,
    };
    struct logins *l = calloc(1, sizeof(*l));
    int rc;

    if (l != NULL)
        l->share = share_new(&sc);
    if (l == NULL || l->share == NULL) {
        free(l);
        return err_set(err, -ENOMEM, "out of memory");
    }
    l->loop = loop;
    l->conf = *conf;
    l->ops = *ops;
    struct brood_ops bo = {.welcome = on_welcome, .on_child = on_child, .on_stranger = on_stranger, .arg = l};
    rc = brood_open(loop, &conf->brood, &bo, &l->brood, err);
    if (rc < 0) {
        free_parts(l);
        return rc;
    }
    uv_timer_init(loop, &l->gather);
    uv_timer_init(loop, &l->tick);
    l->gather.data = l->tick.data = l;
    l->handles = 2;
    uv_timer_start(&l->tick, on_tick, TICK_MS, TICK_MS);
    *out = l;
    return 0;
}

uint16_t logins_port(const struct logins *l)
{
    return brood_port(l->brood);
}

int logins_add(struct logins *l, struct share_range range)
{
    int rc = share_add(l->share, range);

    if (rc < 0)
        return rc;
    logins_pump(l);
    return 0;
}

int64_t logins_child_of(const struct logins *l, uint32_t place)
{
    return share_child_of(l->share, place);
}

int logins_key(struct logins *l, uint32_t place, const char *key)
{
    return l->closing || l->all_in ? 0 : brood_expect(l->brood, place, key);
}

struct strangers logins_all_in(struct logins *l)
{
    l->all_in = true;
    uv_timer_stop(&l->tick);
    uv_timer_stop(&l->gather);
    return brood_stop(l->brood);
}

void logins_close(struct logins *l)
{
    if (l == NULL || l->closing)
        return;
    l->closing = true;
    brood_close(l->brood);
    uv_close((uv_handle_t *)&l->gather, on_timer_closed);
    uv_close((uv_handle_t *)&l->tick, on_timer_closed);
}
