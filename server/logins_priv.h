/* SPDX-License-Identifier: BSD-3-Clause */
/* logins_priv.h - what the files logins*.c share */
#ifndef SERVER_LOGINS_PRIV_H
#define SERVER_LOGINS_PRIV_H

#include "server/logins.h"

struct under_way {
    uint32_t place;
    uint64_t began_ms;
};

struct logins {
    uv_loop_t *loop;
    struct logins_ops ops;
    struct logins_conf conf;
    struct share *share;
    struct brood *brood;
    uv_timer_t gather, tick;
    unsigned handles;
    struct under_way *under_way; /* providers alone */
    uint32_t under_way_count, under_way_cap;
    struct logins_note joined; /* to be told; room for joined_cap */
    uint32_t joined_cap;
    uint32_t ups, failures, losses;
    bool gave_up, all_in, pumping, closing;
};

static inline bool logins_at_launcher(const struct logins *l)
{
    return l->conf.place == 0;
}

/* What `place` is called in messages; lent. */
const char *logins_label(const struct logins *l, uint32_t place);
/* All that is to be done now: deal, start, ask. It may be called from within itself. */
void logins_pump(struct logins *l);
void logins_send_note(struct logins *l, unsigned type, const struct logins_note *note);
/* `place` is an edge of `parent` now: the launcher hears it, from here or through the parent. 0 or -ENOMEM. */
int logins_gather(struct logins *l, uint32_t place, uint32_t parent);
/* What was gathered, at once: what follows is about the same places. */
void logins_tell_joined(struct logins *l);

#endif
