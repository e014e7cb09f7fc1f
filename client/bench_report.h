/* SPDX-License-Identifier: BSD-3-Clause */
/* bench_report.h - the figures of all ranks, brought together through the KVS and printed by rank 0 */
#ifndef CLIENT_BENCH_REPORT_H
#define CLIENT_BENCH_REPORT_H

#include "client/bench_opts.h"
#include "client/bench_team.h"

/* A collective call: put, barrier, and rank 0 gets. Faults of others are added to t->faults at rank 0. */
int report(struct team *t, const struct bench_opts *o, struct err *err);

/* What is known of server and task, on standard output. */
int report_info(struct team *t, const struct bench_opts *o, struct err *err);

#endif
