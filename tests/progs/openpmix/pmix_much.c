/* SPDX-License-Identifier: BSD-3-Clause */
/* pmix_much.c - a program of PMIx that says or tells much at once
 *
 * pmix_much log BYTES COUNT: rank 0 says COUNT lines of BYTES by PMIx_Log().
 * pmix_much event BYTES COUNT: it sends so many events, which all count; another rank does where SENDER names it.
 */
#include <pmix.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define CODE (-3001)

static volatile long seen;

static void on_event(size_t id, pmix_status_t status, const pmix_proc_t *source, pmix_info_t info[], size_t n,
                     pmix_info_t *results, size_t nresults, pmix_event_notification_cbfunc_fn_t done, void *arg)
{
    (void)id;
    (void)status;
    (void)source;
    (void)info;
    (void)n;
    (void)results;
    (void)nresults;
    __sync_fetch_and_add(&seen, 1);
    done(PMIX_EVENT_ACTION_COMPLETE, NULL, 0, NULL, NULL, arg);
}

static int fence(const pmix_proc_t *me)
{
    pmix_proc_t all = *me;

    all.rank = PMIX_RANK_WILDCARD;
    return PMIx_Fence(&all, 1, NULL, 0);
}

/* How many were taken. */
static long send_all(const char *what, const pmix_proc_t *me, char *text, long count)
{
    pmix_info_t info;
    long taken = 0;

    memset(&info, 0, sizeof(info));
    strncpy(info.key, strcmp(what, "log") == 0 ? PMIX_LOG_STDERR : "much.data", PMIX_MAX_KEYLEN);
    info.value.type = PMIX_STRING;
    info.value.data.string = text;
    for (long i = 0; i < count; i++) {
        pmix_status_t rc = strcmp(what, "log") == 0
                               ? PMIx_Log(&info, 1, NULL, 0)
                               : PMIx_Notify_event(CODE, me, PMIX_RANGE_GLOBAL, &info, 1, NULL, NULL);

        taken += rc == PMIX_SUCCESS || rc == PMIX_OPERATION_SUCCEEDED;
    }
    return taken;
}

int main(int argc, char **argv)
{
    pmix_status_t code = CODE;
    size_t bytes = argc > 3 ? strtoul(argv[2], NULL, 10) : 0;
    long count = argc > 3 ? strtol(argv[3], NULL, 10) : 0;
    const char *named = getenv("SENDER");
    pmix_rank_t sender = named != NULL ? (pmix_rank_t)strtoul(named, NULL, 10) : 0;
    char *text = malloc(bytes + 2);
    pmix_proc_t me;

    if (argc < 4 || text == NULL || PMIx_Init(&me, NULL, 0) != PMIX_SUCCESS)
        return 2;
    memset(text, 'x', bytes);
    text[bytes] = '\n';
    text[bytes + 1] = '\0';
    (void)PMIx_Register_event_handler(&code, 1, NULL, 0, on_event, NULL, NULL);
    if (fence(&me) != PMIX_SUCCESS)
        return 1;
    if (me.rank == sender)
        printf("taken: %ld\n", send_all(argv[1], &me, text, count));
    for (int i = 0; i < 3000 && seen < count && strcmp(argv[1], "event") == 0; i++)
        usleep(10000);
    if (strcmp(argv[1], "event") == 0)
        printf("seen: %ld\n", seen);
    if (fence(&me) != PMIX_SUCCESS || PMIx_Finalize(NULL, 0) != PMIX_SUCCESS)
        return 1;
    return 0;
}
