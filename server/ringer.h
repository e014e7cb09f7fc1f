/* SPDX-License-Identifier: BSD-3-Clause */
/* ringer.h - the bell of a job on this node (common/bell.h): made when a task first asks for it, and rung */
#ifndef SERVER_RINGER_H
#define SERVER_RINGER_H

#include <stdbool.h>

struct ringer;

/* 0 or a negative errno: there is none to be had. */
int ringer_new(struct ringer **out);
void ringer_free(struct ringer *r);
/* Lent. */
int ringer_fd(const struct ringer *r);
/* Wakes all who sleep. `is_round`: because a round is complete; else they find out for themselves why. NULL is fine. */
void ringer_ring(struct ringer *r, bool is_round);

#endif
