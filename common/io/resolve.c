/* SPDX-License-Identifier: BSD-3-Clause */
#include "common/io/resolve.h"

#include <assert.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

struct lookup {
    struct lookup_all *all;
    char *name;
    struct addrinfo *ai; /* NULL: not resolved, or not yet */
};

struct lookup_all {
    pthread_mutex_t lock;
    pthread_cond_t done;
    unsigned running; /* threads that have not answered */
    unsigned refs;    /* those, and the caller */
    struct lookup item[RESOLVE_MAX];
};

static struct lookup_all *all_new(void)
{
    struct lookup_all *all = calloc(1, sizeof(*all));
    pthread_condattr_t attr;

    if (all == NULL)
        return NULL;
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(&all->done, &attr);
    pthread_condattr_destroy(&attr);
    pthread_mutex_init(&all->lock, NULL);
    all->refs = 1;
    return all;
}

/* With the lock held, which is given back. */
static void unref(struct lookup_all *all)
{
    bool last = --all->refs == 0;

    pthread_mutex_unlock(&all->lock);
    if (!last)
        return;
    for (size_t i = 0; i < RESOLVE_MAX; i++) {
        free(all->item[i].name);
        if (all->item[i].ai != NULL)
            freeaddrinfo(all->item[i].ai);
    }
    pthread_cond_destroy(&all->done);
    pthread_mutex_destroy(&all->lock);
    free(all);
}

static void *run(void *arg)
{
    struct addrinfo hints = {.ai_socktype = SOCK_DGRAM}, *ai = NULL;
    struct lookup *l = arg;
    struct lookup_all *all = l->all;

    if (getaddrinfo(l->name, NULL, &hints, &ai) != 0)
        ai = NULL;
    pthread_mutex_lock(&all->lock);
    l->ai = ai;
    all->running--;
    pthread_cond_signal(&all->done);
    unref(all);
    return NULL;
}

/* A name for which there is no memory or no thread is as good as one that does not resolve. */
static void start(struct lookup_all *all, struct lookup *l, const char *name, const pthread_attr_t *attr)
{
    pthread_t thread;

    l->all = all;
    l->name = strdup(name);
    if (l->name == NULL)
        return;
    pthread_mutex_lock(&all->lock);
    if (pthread_create(&thread, attr, run, l) == 0) {
        all->running++;
        all->refs++;
    }
    pthread_mutex_unlock(&all->lock);
}

/* The threads take no signals: those belong to the loop of the main thread. */
static void start_all(struct lookup_all *all, char *const *names, size_t count)
{
    pthread_attr_t attr;
    sigset_t every, old;

    sigfillset(&every);
    pthread_sigmask(SIG_SETMASK, &every, &old);
    pthread_attr_init(&attr);
    pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
    for (size_t i = 0; i < count; i++)
        start(all, &all->item[i], names[i], &attr);
    pthread_attr_destroy(&attr);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
}

static struct timespec in_ms(uint64_t ms)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    t.tv_sec += (time_t)(ms / 1000);
    t.tv_nsec += (long)(ms % 1000) * 1000000;
    if (t.tv_nsec >= 1000000000) {
        t.tv_sec++;
        t.tv_nsec -= 1000000000;
    }
    return t;
}

void resolve_names(char *const *names, size_t count, uint64_t limit_ms, resolve_fn fn, void *arg)
{
    struct timespec limit = in_ms(limit_ms);
    struct lookup_all *all = all_new();

    assert(count <= RESOLVE_MAX);
    if (all == NULL)
        return;
    start_all(all, names, count);
    pthread_mutex_lock(&all->lock);
    while (all->running > 0 && pthread_cond_timedwait(&all->done, &all->lock, &limit) == 0)
        ;
    for (size_t i = 0; i < count; i++)
        if (all->item[i].ai != NULL)
            fn(i, all->item[i].ai, arg);
    unref(all);
}
