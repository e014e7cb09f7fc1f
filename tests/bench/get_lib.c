/* SPDX-License-Identifier: BSD-3-Clause */
/* get_lib.c - one get through libpmi, from the mapping of the node's keys and over the wire
 *
 *   get_lib N [LEN]   each task puts KEYS values of LEN bytes (64); behind a barrier rank 0 gets those of all in turn,
 *                     N times from the mapping and N / 50 times over the wire
 *
 * Prints "map MEDIAN_NS MIN_NS P99_NS" and the same for "wire". A clock costs as much as a get from the mapping, so
 * that those are timed in runs of RUN.
 */
#include <pmi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define KEYS 64
#define RUN 20

static char name[256], value[1024], key[64];
static int size;

static void must(int rc, const char *what)
{
    if (rc == PMI_SUCCESS)
        return;
    fprintf(stderr, "get_lib: %s: %d\n", what, rc);
    exit(1);
}

static double now_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static int by_size(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return x < y ? -1 : x > y;
}

static void make_key(unsigned i)
{
    snprintf(key, sizeof(key), "card-%u-%u", i / KEYS % (unsigned)size, i % KEYS);
}

static void measure(const char *what, size_t runs, unsigned run)
{
    double *ns = calloc(runs, sizeof(*ns));
    char keys[RUN][64], got[1024];
    unsigned next = 0;

    for (size_t i = 0; ns != NULL && i < runs; i++) {
        for (unsigned k = 0; k < run; k++) {
            make_key(next++);
            memcpy(keys[k], key, sizeof(key));
        }
        ns[i] = now_ns();
        for (unsigned k = 0; k < run; k++)
            must(PMI_KVS_Get(name, keys[k], got, sizeof(got)), keys[k]);
        ns[i] = (now_ns() - ns[i]) / run;
        if (strcmp(got, value) != 0)
            must(PMI_FAIL, "another value");
    }
    if (ns == NULL)
        must(PMI_ERR_NOMEM, what);
    qsort(ns, runs, sizeof(*ns), by_size);
    printf("%s %.0f %.0f %.0f\n", what, ns[runs / 2], ns[0], ns[runs - 1 - runs / 100]);
    free(ns);
}

static void begin(int *rank)
{
    int spawned;

    must(PMI_Init(&spawned), "init");
    must(PMI_Get_rank(rank), "rank");
    must(PMI_Get_size(&size), "size");
    must(PMI_KVS_Get_my_name(name, sizeof(name)), "name");
}

int main(int argc, char **argv)
{
    size_t count = argc > 1 ? strtoul(argv[1], NULL, 10) : 0, len = argc > 2 ? strtoul(argv[2], NULL, 10) : 64;
    int rank;

    if (count < 1000 || len == 0 || len >= sizeof(value)) {
        fprintf(stderr, "usage: get_lib N [LEN]\n");
        return 2;
    }
    memset(value, 'v', len);
    begin(&rank);
    for (unsigned i = 0; i < KEYS; i++) {
        make_key((unsigned)rank * KEYS + i);
        must(PMI_KVS_Put(name, key, value), "put");
    }
    must(PMI_KVS_Commit(name), "commit");
    must(PMI_Barrier(), "barrier");
    if (rank == 0)
        measure("map", count / RUN, RUN);
    must(PMI_Finalize(), "finalize");
    unsetenv("PMI_KVS_MAP");
    begin(&rank);
    if (rank == 0)
        measure("wire", count / 50, 1);
    must(PMI_Barrier(), "barrier");
    must(PMI_Finalize(), "finalize");
    return 0;
}
