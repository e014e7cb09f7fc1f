/* SPDX-License-Identifier: BSD-3-Clause */
#include "client/bench_watch.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include "common/util.h"

#define LOOK_MS_MIN 20
#define LOOK_MS_MAX 1000

static struct {
    uint64_t timeout_ms;
    _Atomic int rank;          /* -1: not known yet */
    _Atomic uint64_t since_ns; /* 0: nothing is waited for */
    const char *_Atomic what;
    const char *_Atomic key;
    _Atomic uint32_t session;
} watch = {.rank = -1};

uint64_t now_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static void __attribute__((noreturn)) give_up(void)
{
    const char *key = watch.key;
    char who[32] = "", text[ERR_TEXT_MAX];
    uint64_t ms = watch.timeout_ms;
    int n;

    if (watch.rank >= 0)
        snprintf(who, sizeof(who), "rank %d: ", watch.rank);
    n = snprintf(text, sizeof(text),
                 "pmi-bench: %sgave up after %llu.%03llu s of waiting for %s%s%.100s (session %u)\n", who,
                 (unsigned long long)(ms / 1000), (unsigned long long)(ms % 1000), watch.what, key != NULL ? " " : "",
                 key != NULL ? key : "", (unsigned)watch.session);
    if (write(STDERR_FILENO, text, MIN((size_t)n, sizeof(text) - 1)) < 0)
        _exit(1);
    _exit(1);
}

static void *look_on(void *arg)
{
    uint64_t look_ms = MIN(MAX(watch.timeout_ms / 10, LOOK_MS_MIN), LOOK_MS_MAX);
    const struct timespec pause = {(time_t)(look_ms / 1000), (long)(look_ms % 1000) * 1000000};

    (void)arg;
    for (;;) {
        uint64_t since = atomic_load(&watch.since_ns);

        if (since != 0 && now_ns() - since > watch.timeout_ms * 1000000 && atomic_load(&watch.since_ns) == since)
            give_up();
        nanosleep(&pause, NULL);
    }
    return NULL;
}

int watch_start(uint64_t timeout_ms, struct err *err)
{
    pthread_t thread;
    int rc;

    watch.timeout_ms = timeout_ms;
    rc = pthread_create(&thread, NULL, look_on, NULL);
    if (rc != 0)
        return err_set(err, -rc, "cannot start a thread: %s", strerror(rc));
    pthread_detach(thread);
    return 0;
}

void watch_rank(int rank)
{
    atomic_store(&watch.rank, rank);
}

void watch_begin(const char *what, const char *key, uint32_t session, uint64_t at_ns)
{
    atomic_store_explicit(&watch.what, what, memory_order_relaxed);
    atomic_store_explicit(&watch.key, key, memory_order_relaxed);
    atomic_store_explicit(&watch.session, session, memory_order_relaxed);
    atomic_store_explicit(&watch.since_ns, at_ns, memory_order_release);
}

void watch_end(void)
{
    atomic_store_explicit(&watch.since_ns, 0, memory_order_release);
}
