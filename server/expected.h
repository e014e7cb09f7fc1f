/* SPDX-License-Identifier: BSD-3-Clause */
/* expected.h - the providers' keys that have come back over a login: who may join, and as which node */
#ifndef SERVER_EXPECTED_H
#define SERVER_EXPECTED_H

#include <stddef.h>
#include <stdint.h>

struct expected_key;

/* Zeroed: nobody is. */
struct expected {
    struct expected_key *v;
    size_t count, cap;
};

/* `key`: a fingerprint in hex. 0 or -ENOMEM. */
int expected_add(struct expected *e, uint32_t node, const char *key);
/* The node, or -1. */
int64_t expected_find(const struct expected *e, const char *key);
void expected_done(struct expected *e);

#endif
