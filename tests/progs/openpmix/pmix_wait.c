/* SPDX-License-Identifier: BSD-3-Clause */
/* pmix_wait.c - a PMIx program whose ranks wait for one that does not come: pmix_wait WHAT RANK HOW
 *
 * All ranks fence. Then all but RANK enter WHAT (fence, group, connect, get: the keys of RANK, or lookup: a name that
 * nobody publishes), and say how that went. RANK finalizes and exits (ends), finalizes and sleeps (finalizes), or
 * sleeps (sleeps).
 */
#include <pmix.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define RANKS_MAX 64

static int look_up(void)
{
    pmix_pdata_t found;
    pmix_info_t info;
    int all = 0;

    PMIX_PDATA_CONSTRUCT(&found);
    PMIX_LOAD_KEY(found.key, "no-such-name");
    PMIX_INFO_LOAD(&info, PMIX_WAIT, &all, PMIX_INT);
    return PMIx_Lookup(&found, 1, &info, 1);
}

static int wait_in(const char *what, const pmix_proc_t *all, const pmix_proc_t *each, size_t size,
                   const pmix_proc_t *who)
{
    pmix_info_t *results;
    pmix_value_t *value;
    size_t count;

    if (strcmp(what, "group") == 0)
        return PMIx_Group_construct("mine", each, size, NULL, 0, &results, &count);
    if (strcmp(what, "connect") == 0)
        return PMIx_Connect(each, size, NULL, 0);
    if (strcmp(what, "get") == 0)
        return PMIx_Get(who, "no-such-key", NULL, 0, &value);
    if (strcmp(what, "lookup") == 0)
        return look_up();
    return PMIx_Fence(all, 1, NULL, 0);
}

static int leave(const char *how)
{
    if (strcmp(how, "sleeps") != 0 && PMIx_Finalize(NULL, 0) != PMIX_SUCCESS)
        return 1;
    if (strcmp(how, "ends") != 0)
        sleep(60);
    return 0;
}

int main(int argc, char **argv)
{
    pmix_proc_t me, all, each[RANKS_MAX];
    pmix_value_t *value;
    uint32_t size, who;
    int rc;

    if (argc != 4 || PMIx_Init(&me, NULL, 0) != PMIX_SUCCESS)
        return 2;
    who = (uint32_t)strtoul(argv[2], NULL, 10);
    PMIX_LOAD_PROCID(&all, me.nspace, PMIX_RANK_WILDCARD);
    if (PMIx_Get(&all, PMIX_JOB_SIZE, NULL, 0, &value) != PMIX_SUCCESS || value->data.uint32 > RANKS_MAX)
        return 2;
    size = value->data.uint32;
    for (uint32_t i = 0; i < size; i++)
        PMIX_LOAD_PROCID(&each[i], me.nspace, i);
    if (PMIx_Fence(&all, 1, NULL, 0) != PMIX_SUCCESS)
        return 2;
    if (me.rank == who)
        return leave(argv[3]);
    rc = wait_in(argv[1], &all, each, size, &each[who]);
    printf("%s: %s\n", argv[1], PMIx_Error_string(rc));
    return PMIx_Finalize(NULL, 0) == PMIX_SUCCESS ? 0 : 1;
}
