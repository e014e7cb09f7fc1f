/* SPDX-License-Identifier: BSD-3-Clause */
/* tls_pair.h - a client and a server of TLS that talk to each other within one test */
#ifndef TESTS_UNIT_TLS_PAIR_H
#define TESTS_UNIT_TLS_PAIR_H

#include "common/io/tls.h"

struct side {
    struct tls_ctx *ctx;
    struct tls *tls;
    struct buf plain, wire;
    struct err err;
};

/* A server with a key of its own, and a client that accepts this one alone. */
void pinned_pair(struct side *c, struct side *s);
void pair_open(struct side *c, struct side *s);
void pair_done(struct side *c, struct side *s);

/* Carry what `from` has for the wire, `piece` bytes at a time. */
int carry(struct side *from, struct side *to, size_t piece);
/* 0, or the first failure; what the failing side still says is carried over, so that both have an error. */
int handshake(struct side *c, struct side *s, size_t piece);
/* `len` bytes arrive as they were sent. */
void talk(struct side *from, struct side *to, size_t len, size_t piece);
/* All of it, both ways. */
void expect_works(struct side *c, struct side *s, size_t piece);

#endif
