/* SPDX-License-Identifier: BSD-3-Clause */
#include "bootstrap/growth.h"

#include <errno.h>
#include <stdlib.h>

void growth_done(struct growth *g)
{
    free(g->in);
    *g = (struct growth){0};
}

static uint32_t plus(uint32_t a, uint32_t b)
{
    return a + b < a ? UINT32_MAX : a + b;
}

/* F(t) = F(t - gap) + [1 + F(t - login)], which is one login more at the beginning; less the one that would be more
 * than the width. */
static uint32_t next_entry(const struct growth *g)
{
    uint64_t beyond = GROWTH_GAP * (uint64_t)g->width + g->login;
    uint32_t t = g->len, v = t >= GROWTH_GAP ? g->in[t - GROWTH_GAP] : 0;

    if (t < g->login)
        return 0;
    v = plus(v, plus(1, g->in[t - g->login]));
    return v < UINT32_MAX && t >= beyond ? v - 1 - g->in[t - beyond] : v;
}

int growth_make(struct growth *g, uint32_t login, uint32_t width, uint32_t count)
{
    if (g->in == NULL && (g->in = calloc(GROWTH_MAX, sizeof(*g->in))) == NULL)
        return -ENOMEM;
    if (g->login != login || g->width != width) {
        g->login = login;
        g->width = width;
        g->len = 0;
    }
    while (g->len < GROWTH_MAX && (g->len == 0 || g->in[g->len - 1] < count)) {
        g->in[g->len] = next_entry(g);
        g->len++;
    }
    return 0;
}
