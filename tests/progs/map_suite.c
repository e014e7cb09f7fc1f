/* SPDX-License-Identifier: BSD-3-Clause */
/* map_suite.c - a task that reads what changes all the time, through libpmi or (compiled with SUITE_PMI2) libpmi2
 *
 *     map_suite MAPPED ROUNDS KEYS
 *
 * MAPPED is yes or no: whether the node's keys are to be mapped by the first get. Each round every rank puts a new
 * value for each of its 8 keys, sees its own at once and those of the others not before the barrier, and behind it
 * reads all of all. In the middle each puts its part of KEYS keys, and reads every 7th of the others'. Where the keys
 * are mapped the end of all but the first barriers comes from the node's bell. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#ifdef SUITE_PMI2
#include <pmi2.h>
#else
#include <pmi.h>
#endif

#include "tests/progs/suite.h"

#define PER_RANK 8

const char *suite_name = "map_suite";

static int size;
static char name[512];

#ifdef SUITE_PMI2
static void init(void)
{
    int spawned, appnum;

    GIVES(PMI2_SUCCESS, PMI2_Init(&spawned, &size, &suite_rank, &appnum));
    GIVES(PMI2_SUCCESS, PMI2_Job_GetId(name, sizeof(name)));
}

static void put(const char *key, const char *value)
{
    GIVES(PMI2_SUCCESS, PMI2_KVS_Put(key, value));
}

static void get(const char *key, char value[SUITE_VALUE_ROOM])
{
    int len;

    GIVES(PMI2_SUCCESS, PMI2_KVS_Get(name, PMI2_ID_NULL, key, value, SUITE_VALUE_ROOM, &len));
    CHECK(len == (int)strlen(value));
}

static void meet(void)
{
    GIVES(PMI2_SUCCESS, PMI2_KVS_Fence());
}

static void finalize(void)
{
    GIVES(PMI2_SUCCESS, PMI2_Finalize());
}
#else
static void init(void)
{
    int spawned;

    GIVES(PMI_SUCCESS, PMI_Init(&spawned));
    GIVES(PMI_SUCCESS, PMI_Get_rank(&suite_rank));
    GIVES(PMI_SUCCESS, PMI_Get_size(&size));
    GIVES(PMI_SUCCESS, PMI_KVS_Get_my_name(name, sizeof(name)));
}

static void put(const char *key, const char *value)
{
    GIVES(PMI_SUCCESS, PMI_KVS_Put(name, key, value));
}

static void get(const char *key, char value[SUITE_VALUE_ROOM])
{
    GIVES(PMI_SUCCESS, PMI_KVS_Get(name, key, value, SUITE_VALUE_ROOM));
}

static void meet(void)
{
    GIVES(PMI_SUCCESS, PMI_KVS_Commit(name));
    GIVES(PMI_SUCCESS, PMI_Barrier());
}

static void finalize(void)
{
    GIVES(PMI_SUCCESS, PMI_Finalize());
}
#endif

/* Where the file of this name is mapped, for reading; NULL: it is not. */
static void *mapping_of(const char *file)
{
    FILE *f = fopen("/proc/self/maps", "r");
    unsigned long at, found = 0;
    char line[512], flags[5];

    CHECK(f != NULL);
    while (fgets(line, sizeof(line), f) != NULL)
        if (strstr(line, file) != NULL && sscanf(line, "%lx-%*x %4s", &at, flags) == 2) {
            CHECK(strcmp(flags, "r--s") == 0);
            found = at;
        }
    fclose(f);
    return (void *)found; /* NOLINT: the address is text there */
}

static void *mapping(void)
{
    return mapping_of("/memfd:pmi-kvs");
}

static void *bell(void)
{
    return mapping_of("/memfd:pmi-bell");
}

static void want(const char *key, int rank, int i, int round)
{
    char value[SUITE_VALUE_ROOM], got[SUITE_VALUE_ROOM];

    suite_value(value, rank, i, round, 1024, "");
    get(key, got);
    if (strcmp(got, value) != 0)
        fprintf(stderr, "map_suite: %s of round %d is '%s' and not '%s'\n", key, round, got, value);
    CHECK(strcmp(got, value) == 0);
}

static void one_round(int round)
{
    char key[64], value[SUITE_VALUE_ROOM];
    int other = (suite_rank + 1 + round % size) % size;

    for (int i = 0; i < PER_RANK; i++) {
        snprintf(key, sizeof(key), "key-%d-%d", suite_rank, i);
        suite_value(value, suite_rank, i, round, 1024, "");
        put(key, value);
        want(key, suite_rank, i, round);
        snprintf(key, sizeof(key), "key-%d-%d", other, i);
        if (round > 0 && other != suite_rank)
            want(key, other, i, round - 1);
    }
    meet();
    for (int rank = 0; rank < size; rank++)
        for (int i = 0; i < PER_RANK; i++) {
            snprintf(key, sizeof(key), "key-%d-%d", rank, i);
            want(key, rank, i, round);
        }
}

static void many(int keys)
{
    char key[64], value[SUITE_VALUE_ROOM];

    for (int i = suite_rank; i < keys; i += size) {
        snprintf(key, sizeof(key), "many-%d", i);
        suite_value(value, suite_rank, i, 0, 1024, "");
        put(key, value);
    }
    meet();
    for (int i = suite_rank % 7; i < keys; i += 7) {
        snprintf(key, sizeof(key), "many-%d", i);
        want(key, i % size, i, 0);
    }
}

static int no_mapping(void)
{
    return mapping() != NULL || bell() != NULL;
}

int main(int argc, char **argv)
{
    int rounds, keys;
    bool mapped;

    CHECK(argc == 4);
    mapped = strcmp(argv[1], "yes") == 0;
    rounds = (int)strtol(argv[2], NULL, 10);
    keys = (int)strtol(argv[3], NULL, 10);
    init();
    CHECK(mapping() == NULL);
    for (int i = 0; i < rounds / 2; i++)
        one_round(i);
    CHECK((mapping() != NULL) == mapped);
    many(keys);
    for (int i = rounds / 2; i < rounds; i++)
        one_round(i);
    CHECK((mapping() != NULL) == mapped);
    if (mapped)
        CHECK(mprotect(mapping(), 4096, PROT_READ | PROT_WRITE) < 0);
    /* Not asked for in the first barriers, nor given to a task that is alone. */
    if (!mapped || rounds >= 10)
        CHECK((bell() != NULL) == (mapped && size > 1));
    if (bell() != NULL)
        CHECK(mprotect(bell(), 4096, PROT_READ | PROT_WRITE) < 0);
    suite_in_child(no_mapping);
    meet();
    finalize();
    CHECK(mapping() == NULL && bell() == NULL);
    if (suite_rank == 0)
        printf("map_suite: %d ranks, all right\n", size);
    return 0;
}
