/* SPDX-License-Identifier: BSD-3-Clause */
#include "server/expected.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "common/io/tls.h"

struct expected_key {
    uint32_t node;
    char key[TLS_KEY_TEXT + 1];
};

int expected_add(struct expected *e, uint32_t node, const char *key)
{
    if (e->count == e->cap) {
        size_t cap = e->cap ? e->cap * 2 : 64;
        struct expected_key *v = realloc(e->v, cap * sizeof(*v));

        if (v == NULL)
            return -ENOMEM;
        e->v = v;
        e->cap = cap;
    }
    e->v[e->count] = (struct expected_key){.node = node};
    memcpy(e->v[e->count++].key, key, strnlen(key, TLS_KEY_TEXT));
    return 0;
}

int64_t expected_find(const struct expected *e, const char *key)
{
    for (size_t i = 0; i < e->count; i++)
        if (strcmp(e->v[i].key, key) == 0)
            return e->v[i].node;
    return -1;
}

void expected_done(struct expected *e)
{
    free(e->v);
    *e = (struct expected){0};
}
