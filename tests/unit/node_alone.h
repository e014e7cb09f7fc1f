/* SPDX-License-Identifier: BSD-3-Clause */
/* node_alone.h - what surrounds a node in a test in which nobody else is there: nothing is full, nothing comes */
#ifndef TESTS_UNIT_NODE_ALONE_H
#define TESTS_UNIT_NODE_ALONE_H

#include <stdbool.h>
#include <stdint.h>
#include "common/err.h"
#include "common/span.h"
#include "server/links.h"

static inline bool alone_never_full(void *arg)
{
    (void)arg;
    return false;
}

static inline void alone_nothing(void *arg)
{
    (void)arg;
}

static inline void alone_on_msg(uint32_t place, unsigned type, struct span body, void *arg)
{
    (void)place, (void)type, (void)body, (void)arg;
}

static inline void alone_on_drain(uint32_t place, void *arg)
{
    (void)place, (void)arg;
}

static inline void alone_on_lost(uint32_t place, const struct err *why, void *arg)
{
    (void)place, (void)why, (void)arg;
}

static const struct links_ops alone_links = {
    .on_msg = alone_on_msg, .on_lost = alone_on_lost, .on_drain = alone_on_drain, .on_closed = alone_nothing};

#endif
