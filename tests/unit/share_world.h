/* SPDX-License-Identifier: BSD-3-Clause */
/* share_world.h - many nodes that share in a list of hosts, under a clock of their own
 *
 * A caller begins one login after the other, each of which keeps it for gap_us; login_us after its begin a host is up.
 * Words from one node to another (hosts that are dealt, requests for more) take hop_us; those of a login that failed
 * take no time. What cannot be aborts.
 */
#ifndef TESTS_UNIT_SHARE_WORLD_H
#define TESTS_UNIT_SHARE_WORLD_H

#include <stdbool.h>
#include <stdint.h>
#include "bootstrap/share.h"

struct world;

struct world_conf {
    uint32_t hosts; /* 1 .. hosts; 0 is the launcher */
    uint32_t width, logins;
    uint64_t login_us, gap_us, hop_us;
    /* Logins from `from` to `to` that fail; NULL: none. Not together with hop_us: what is under way to a node that
     * gives up is not handed back here. */
    bool (*fails)(uint32_t from, uint32_t to);
};

struct world_result {
    uint32_t up, deepest, widest, warnings;
    uint64_t end_us; /* when the last one came up */
    uint64_t words;  /* sent from node to node */
};

struct world_result world_run(const struct world_conf *conf);
/* N(t) = N(t - gap) + N(t - login): when there are `hosts` beside the launcher. */
uint64_t world_bound_us(uint32_t hosts, uint64_t login_us, uint64_t gap_us);

#endif
