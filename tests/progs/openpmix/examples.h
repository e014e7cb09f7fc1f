/* SPDX-License-Identifier: BSD-3-Clause */
/* examples.h - what OpenPMIx's example clients include by this name, and Debian does not ship with them
 *
 * Only the names are theirs: a lock that one thread waits at until a callback on another one opens it, in three sizes.
 */
#ifndef TESTS_PROGS_OPENPMIX_EXAMPLES_H
#define TESTS_PROGS_OPENPMIX_EXAMPLES_H

#include <pmix.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

typedef struct {
    pthread_mutex_t mutex;
    pthread_cond_t opened;
    bool is_open;
    pmix_status_t status;
    size_t evhandler_ref;
} mylock_t;

typedef struct {
    mylock_t lock;
    pmix_info_t *info;
    size_t ninfo;
} myquery_data_t;

typedef struct {
    mylock_t lock;
    char *nspace;
    int exit_code;
    bool exit_code_given;
} myrel_t;

static inline void examples_lock_init(mylock_t *l)
{
    memset(l, 0, sizeof(*l));
    (void)pthread_mutex_init(&l->mutex, NULL);
    (void)pthread_cond_init(&l->opened, NULL);
}

static inline void examples_lock_wait(mylock_t *l)
{
    (void)pthread_mutex_lock(&l->mutex);
    while (!l->is_open)
        (void)pthread_cond_wait(&l->opened, &l->mutex);
    (void)pthread_mutex_unlock(&l->mutex);
}

static inline void examples_lock_open(mylock_t *l)
{
    (void)pthread_mutex_lock(&l->mutex);
    l->is_open = true;
    (void)pthread_cond_broadcast(&l->opened);
    (void)pthread_mutex_unlock(&l->mutex);
}

/* What a lock holds is little, and a callback may still be in it: so it stays. */
static inline void examples_lock_done(const mylock_t *l)
{
    (void)l;
}

static inline void examples_unused(int first, ...)
{
    (void)first;
}

#define DEBUG_CONSTRUCT_LOCK(l) examples_lock_init(l)
#define DEBUG_DESTRUCT_LOCK(l) examples_lock_done(l)
#define DEBUG_WAIT_THREAD(l) examples_lock_wait(l)
#define DEBUG_WAKEUP_THREAD(l) examples_lock_open(l)
#define DEBUG_CONSTRUCT_MYQUERY(q) (memset(q, 0, sizeof(*(q))), examples_lock_init(&(q)->lock))
#define DEBUG_DESTRUCT_MYQUERY(q) examples_lock_done(&(q)->lock)
#define DEBUG_CONSTRUCT_MYREL(r) (memset(r, 0, sizeof(*(r))), examples_lock_init(&(r)->lock))
#define DEBUG_DESTRUCT_MYREL(r) examples_lock_done(&(r)->lock)
#define EXAMPLES_HIDE_UNUSED_PARAMS(...) examples_unused(0, __VA_ARGS__)

#endif
