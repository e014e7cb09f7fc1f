/* SPDX-License-Identifier: BSD-3-Clause */
/* logins_below.c - what children say, and what is done when one is lost */
#include <errno.h>
#include "common/io/log.h"
#include "server/logins_priv.h"

#define LOSSES_MAX 3 /* children that are lost while others go on */

/* Of `ranges` and `one` those that had joined have not. */
static void unjoin(struct logins *l, const struct logins_note *note)
{
    if (!logins_at_launcher(l)) {
        logins_tell_joined(l);
        logins_send_note(l, MSG_UNJOINED, note);
        return;
    }
    l->ops.on_unjoined(note->one, l->ops.arg);
    for (uint32_t i = 0; i < note->ranges.count; i++)
        for (uint32_t k = 0; k < note->ranges.v[i].count; k++)
            l->ops.on_unjoined(note->ranges.v[i].first + k, l->ops.arg);
}

bool logins_child_lost(struct logins *l, uint32_t child, const struct err *why)
{
    const char *text = why->code < 0 ? why->text : "it closed the connection";
    struct logins_note note = {.one = child, .text = (char *)text};
    struct share_range range;
    uint32_t behind = 0;
    int rc = 0;

    if (l->all_in || l->closing)
        return false;
    while (rc == 0 && share_lost(l->share, child, &range)) {
        behind += range.count;
        rc = ranges_add(&note.ranges, range);
        if (rc == 0)
            rc = share_add(l->share, range);
    }
    if (rc == 0)
        rc = share_add(l->share, (struct share_range){child, 1});
    brood_forget(l->brood, child);
    l->ops.cancel(child, l->ops.arg);
    if (rc < 0 || ++l->losses > LOSSES_MAX) {
        ranges_done(&note.ranges);
        l->ops.on_lost(child, why, l->ops.arg);
        return true;
    }
    log_warn("%s: lost while hosts were logged in to from it (%s), trying again there and for %u behind it",
             logins_label(l, child), text, behind);
    unjoin(l, &note);
    ranges_done(&note.ranges);
    logins_pump(l);
    return true;
}

/* Is `place` the child, or one that it was handed? Nobody else's is it to speak of. */
static bool is_its(const struct logins *l, uint32_t child, uint32_t place)
{
    return share_child_of(l->share, place) == child;
}

static int have_joined(struct logins *l, uint32_t child, const struct logins_note *note)
{
    for (uint32_t i = 0; i < note->count; i++) {
        if (note->place[i] == child || !is_its(l, child, note->place[i]) || !is_its(l, child, note->parent[i]))
            return -EPROTO;
        if (logins_gather(l, note->place[i], note->parent[i]) < 0)
            return -ENOMEM;
    }
    return 0;
}

static int has_failed(struct logins *l, uint32_t child, const struct logins_note *note)
{
    int rc = is_its(l, child, note->from) ? share_drop(l->share, child, note->one) : -ENOENT;

    if (rc < 0)
        return rc == -ENOENT ? -EPROTO : rc;
    if (!logins_at_launcher(l)) {
        logins_send_note(l, MSG_LOGIN_FAILED, note);
        return 0;
    }
    rc = share_keep(l->share, note->one);
    if (rc == 0)
        l->ops.on_failed_from(note, l->ops.arg);
    return rc;
}

static int is_back(struct logins *l, uint32_t child, const struct logins_note *note)
{
    int rc = note->closed ? share_close(l->share, child) : 0;

    for (uint32_t i = 0; rc == 0 && i < note->ranges.count; i++)
        rc = share_back(l->share, child, note->ranges.v[i]);
    return rc == -ENOENT || rc == -EEXIST ? -EPROTO : rc;
}

static int are_gone(struct logins *l, uint32_t child, const struct logins_note *note)
{
    if (!is_its(l, child, note->one) || note->one == child)
        return -EPROTO;
    for (uint32_t i = 0; i < note->ranges.count; i++)
        if (!share_dealt(l->share, child, note->ranges.v[i]))
            return -EPROTO;
    unjoin(l, note);
    return 0;
}

static int act_on(struct logins *l, uint32_t child, unsigned type, const struct logins_note *note)
{
    switch (type) {
    case MSG_JOINED:
        return have_joined(l, child, note);
    case MSG_UNJOINED:
        return are_gone(l, child, note);
    case MSG_BACK:
        return is_back(l, child, note);
    case MSG_WANT:
        return share_wanted(l->share, child) < 0 ? -EPROTO : 0;
    default:
        return has_failed(l, child, note);
    }
}

bool logins_is_msg(unsigned type)
{
    return type >= MSG_JOINED && type <= MSG_LOGIN_FAILED;
}

int logins_msg(struct logins *l, uint32_t child, unsigned type, struct span body, struct err *err)
{
    struct logins_note note;
    int rc;

    if (l->closing || (l->all_in && type == MSG_WANT))
        return 0;
    rc = logins_note_get(body, type, l->conf.how->places, &note, err);
    if (rc < 0)
        return rc;
    rc = act_on(l, child, type, &note);
    logins_note_done(&note);
    if (rc < 0)
        return err_set(err, rc, rc == -ENOMEM ? "out of memory" : "it speaks of hosts that it was not given");
    logins_pump(l);
    return 0;
}
