/* SPDX-License-Identifier: BSD-3-Clause */
/* pmix_fence.c - what a PMIx fence costs: every rank puts SIZE bytes, all are collected, a neighbour's are looked at
 *
 *     pmix_fence SIZE ROUNDS [hold]
 *
 * Rank 0 prints the mean time of a round in microseconds. hold: the job stays for ten minutes, to be looked at.
 */
#include <pmix.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define HELD_S 600

static pmix_proc_t self;

static void check(pmix_status_t rc, const char *what)
{
    if (rc == PMIX_SUCCESS)
        return;
    fprintf(stderr, "pmix_fence: rank %u: %s: %s\n", self.rank, what, PMIx_Error_string(rc));
    exit(1);
}

static double now_us(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

static uint32_t job_size(void)
{
    pmix_proc_t all;
    pmix_value_t *value = NULL;
    uint32_t size;

    PMIX_PROC_LOAD(&all, self.nspace, PMIX_RANK_WILDCARD);
    check(PMIx_Get(&all, PMIX_JOB_SIZE, NULL, 0, &value), "the size of the job");
    size = value->data.uint32;
    PMIX_VALUE_RELEASE(value);
    return size;
}

static void fence(void)
{
    pmix_info_t info;
    bool collect = true;

    PMIX_INFO_LOAD(&info, PMIX_COLLECT_DATA, &collect, PMIX_BOOL);
    check(PMIx_Fence(NULL, 0, &info, 1), "fence");
    PMIX_INFO_DESTRUCT(&info);
}

/* What a rank puts in a round begins with both numbers. */
static void put(unsigned round, char *bytes, size_t size)
{
    pmix_value_t value = {.type = PMIX_BYTE_OBJECT};
    char key[32];

    snprintf(key, sizeof(key), "bench.%u", round);
    snprintf(bytes, size, "%u %u", self.rank, round);
    value.data.bo.bytes = bytes;
    value.data.bo.size = size;
    check(PMIx_Put(PMIX_GLOBAL, key, &value), "put");
    check(PMIx_Commit(), "commit");
}

static void look_at(uint32_t rank, unsigned round, size_t size)
{
    pmix_proc_t other;
    pmix_value_t *value = NULL;
    char key[32], want[32];

    PMIX_PROC_LOAD(&other, self.nspace, rank);
    snprintf(key, sizeof(key), "bench.%u", round);
    snprintf(want, sizeof(want), "%u %u", rank, round);
    check(PMIx_Get(&other, key, NULL, 0, &value), "get");
    if (value->data.bo.size != size || strcmp(value->data.bo.bytes, want) != 0)
        check(PMIX_ERR_DATA_VALUE_NOT_FOUND, "another value");
    PMIX_VALUE_RELEASE(value);
}

int main(int argc, char **argv)
{
    size_t size = argc > 1 ? strtoul(argv[1], NULL, 10) : 0;
    unsigned rounds = argc > 2 ? (unsigned)strtoul(argv[2], NULL, 10) : 0;
    char *bytes = size >= 32 ? calloc(1, size) : NULL;
    double begun;
    uint32_t all;

    if (bytes == NULL || rounds == 0) {
        fputs("usage: pmix_fence SIZE ROUNDS [hold]; SIZE from 32\n", stderr);
        return 2;
    }
    check(PMIx_Init(&self, NULL, 0), "init");
    all = job_size();
    fence();
    begun = now_us();
    for (unsigned r = 0; r < rounds; r++) {
        put(r, bytes, size);
        fence();
    }
    if (self.rank == 0)
        printf("%.1f\n", (now_us() - begun) / rounds);
    fflush(stdout);
    look_at((self.rank + 1) % all, rounds - 1, size);
    if (argc > 3)
        sleep(HELD_S);
    fence();
    check(PMIx_Finalize(NULL, 0), "finalize");
    free(bytes);
    return 0;
}
