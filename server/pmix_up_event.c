/* SPDX-License-Identifier: BSD-3-Clause */
/* pmix_up_event.c - events that ranks send each other: those for ranks of other nodes come here, and from there
 *
 * The library itself tells the ranks of this node, and keeps the list of who has asked for what: so who registers is
 * content with any answer. What is for this node, or for its own process, does not come here at all.
 */
#include "config.h"
#ifdef HAVE_PMIX
#include <errno.h>
#include <pthread.h>
#include <time.h>
#include "common/limits.h"
#include "server/pmix_priv.h"

pmix_status_t pmix_up_register(pmix_status_t *codes, size_t ncodes, const pmix_info_t info[], size_t n,
                               pmix_op_cbfunc_t cb, void *arg)
{
    (void)codes;
    (void)ncodes;
    (void)info;
    (void)n;
    (void)cb;
    (void)arg;
    return PMIX_OPERATION_SUCCEEDED;
}

pmix_status_t pmix_up_deregister(pmix_status_t *codes, size_t ncodes, pmix_op_cbfunc_t cb, void *arg)
{
    return pmix_up_register(codes, ncodes, NULL, 0, cb, arg);
}

/* What the events take that have been posted and not ended, and who waits until some have. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t room = PTHREAD_COND_INITIALIZER;
static size_t waiting;

void pmix_up_event_over(const struct pmix_up *u)
{
    if (!u->counted)
        return;
    pthread_mutex_lock(&lock);
    waiting -= pmix_up_size(u);
    pthread_cond_signal(&room);
    pthread_mutex_unlock(&lock);
}

/* Clients of 4.2 are not told that an event was refused. So the library's thread waits until there is room, and thereby
 * they do: the loop, which makes room, does not wait for that thread. */
static int await_room(struct pmix_up *u)
{
    struct timespec until;
    int rc = 0;

    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec += PMIX_EVENT_WAIT_MS / 1000;
    pthread_mutex_lock(&lock);
    while (rc == 0 && waiting > 0 && waiting + pmix_up_size(u) > PMIX_EVENTS_MAX)
        rc = pthread_cond_clockwait(&room, &lock, CLOCK_MONOTONIC, &until);
    u->counted = rc == 0;
    waiting += rc == 0 ? pmix_up_size(u) : 0;
    pthread_mutex_unlock(&lock);
    return rc == 0 ? 0 : -ENOSPC;
}

/* It is under way, and that is all the answer: 4.2 takes a plain success here for an end, and frees what a later answer
 * would be about. Infos that have a meaning in one process alone, as pointers have, are left out. */
pmix_status_t pmix_up_notify(pmix_status_t code, const pmix_proc_t *source, pmix_data_range_t range, pmix_info_t info[],
                             size_t n, pmix_op_cbfunc_t cb, void *arg)
{
    struct pmix_up *u;
    pmix_status_t status;
    int rc = 0;

    (void)cb;
    (void)arg;
    if (range == PMIX_RANGE_RM || range == PMIX_RANGE_LOCAL || range == PMIX_RANGE_PROC_LOCAL)
        return PMIX_OPERATION_SUCCEEDED; /* PMIX_RANGE_RM is for us, whom no event concerns so far */
    u = pmix_up_new(PMIX_UP_EVENT, source);
    if (u != NULL)
        buf_init(&u->data, PMIX_BLOB_MAX);
    for (size_t i = 0; u != NULL && rc == 0 && i < n; i++) {
        rc = pmix_up_pair(&u->data, info[i].key, sizeof(info[i].key), &info[i].value);
        rc = rc == -ENOSYS ? 0 : rc;
    }
    if (u != NULL) {
        u->status = code;
        u->range = range;
        u->own_job = range == PMIX_RANGE_NAMESPACE;
        u->rc = rc == 0 ? await_room(u) : rc;
    }
    status = pmix_up_post(u, 0);
    return status == PMIX_SUCCESS ? PMIX_OPERATION_SUCCEEDED : status;
}
#endif
