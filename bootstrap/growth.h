/* SPDX-License-Identifier: BSD-3-Clause */
/* growth.h - how many hosts one that is up can bring up in which time, together with those that it has brought up. Pure
 *
 * Time is counted in units, of which there are GROWTH_GAP from one login of a caller to its next. A login lasts for
 * `login` units, and nobody has more than `width` of them:
 *
 *      F(t) = sum over k < width of [1 + F(t - login - k * GROWTH_GAP)], where that is not before 0
 */
#ifndef BOOTSTRAP_GROWTH_H
#define BOOTSTRAP_GROWTH_H

#include <stdint.h>

#define GROWTH_GAP 2
#define GROWTH_MAX 8192 /* units that are looked at */

/* Zeroed: nothing is known yet. */
struct growth {
    uint32_t *in; /* [len], by units; never falls */
    uint32_t len, login, width;
};

void growth_done(struct growth *g);
/* Until the last entry is `count` or more, or GROWTH_MAX are there. `login` and `width` are 1 or more. 0 or -ENOMEM. */
int growth_make(struct growth *g, uint32_t login, uint32_t width, uint32_t count);

#endif
