/* SPDX-License-Identifier: BSD-3-Clause */
/* bench_opts.h - the command line of pmi-bench */
#ifndef CLIENT_BENCH_OPTS_H
#define CLIENT_BENCH_OPTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "common/err.h"

enum bench_command {
    BENCH_HELP,
    BENCH_VERSION,
    BENCH_INFO,
    BENCH_GET,
    BENCH_BARRIER,
    BENCH_EXCHANGE,
    BENCH_PUT_GET,
    BENCH_SPAWN,
    BENCH_SPAWNED, /* what `spawn` starts; not for people */
};

enum bench_wire { BENCH_WIRE_AUTO, BENCH_WIRE_FD, BENCH_WIRE_PORT };

#define BENCH_READ_ALL UINT32_MAX

struct bench_opts {
    enum bench_command command;
    const char *key; /* of `get`; NULL: our own */
    enum bench_wire wire;
    int version;         /* of PMI: 1, 2; 0: not said */
    const char *library; /* NULL: none */
    uint64_t count;
    uint32_t reads, sessions, copies;
    size_t key_size, value_size;
    uint64_t timeout_ms;
    bool is_verbose, is_json;
};

/* -EINVAL: bad use, and the text says which. All strings are argv's. */
int bench_opts_parse(int argc, char **argv, struct bench_opts *out, struct err *err);

extern const char bench_help[];

#endif
