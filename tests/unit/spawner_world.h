/* SPDX-License-Identifier: BSD-3-Clause */
/* spawner_world.h - a worker with a loop, a keeper and a record of what was reported, for tests */
#ifndef TESTS_UNIT_SPAWNER_WORLD_H
#define TESTS_UNIT_SPAWNER_WORLD_H

#include <stdbool.h>
#include "server/spawner.h"

/* No wait is longer. */
#define LIMIT_MS 15000
#define IDS 512

/* What happened to one id. */
struct seen {
    int started, failed, exited;
    pid_t pid;
    enum spawn_stage stage;
    int err_no, wstatus;
};

extern struct world {
    uv_loop_t loop;
    uv_timer_t limit;
    struct spawner *s;
    int fd;
    pid_t keeper;
    struct seen seen[IDS];
    unsigned ended; /* exited or failed */
    bool lost, late;
} w;

#define ARGV(...) ((char *const *)(const void *)(const char *const[]){__VA_ARGS__, NULL})
#define SH(script) ARGV("/bin/sh", "-c", script)

/* Of the bootstrap's ids, those from SPAWN_ID_KEPT on have a place too. */
struct seen *seen(uint32_t id);

void setup(void);
/* Ends the keeper and waits until it has gone; nothing may be left. */
void teardown(void);

/* Run the loop until `done`; fails the test when that takes too long. */
void run_until(bool (*done)(void));
/* Until so many, in all, have exited or failed. */
void wait_ended(unsigned n);

/* A request without descriptors, with PATH alone in its environment. */
struct spawn_req request(uint32_t id, char *const *argv);
void spawn(const struct spawn_req *req);
void spawn_sh(uint32_t id, const char *script);

/* Run `req` to its end with its output in a pipe; returns that, valid until the next call. */
char *output_of(struct spawn_req req);

#endif
