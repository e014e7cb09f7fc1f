/* SPDX-License-Identifier: BSD-3-Clause */
/* mpi_check.c - an MPI program whose result depends on the launcher: does everybody reach everybody, and does MPI see
 * the same nodes as the launcher?
 *
 * Runs an allreduce, passes a token round a ring, splits by shared memory, and compares the split with PMI_NODE, which
 * pmi-start gives each task (under other launchers that comparison is left out). `mpi_check -v` has every rank
 * introduce itself. Exits 1 where something is wrong.
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int world_rank, world_size, failures;

static void expect(int good, const char *what)
{
    if (good)
        return;
    failures++;
    fprintf(stderr, "mpi_check: rank %d: wrong %s\n", world_rank, what);
}

static int env_int(const char *name, int fallback)
{
    const char *text = getenv(name);

    return text != NULL ? (int)strtol(text, NULL, 10) : fallback;
}

static void check_allreduce(void)
{
    long mine[64], sum[64];

    for (int i = 0; i < 64; i++)
        mine[i] = (long)world_rank * (i + 1);
    MPI_Allreduce(mine, sum, 64, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
    for (int i = 0; i < 64; i++)
        expect(sum[i] == (long)world_size * (world_size - 1) / 2 * (i + 1), "sum of an allreduce");
}

/* A token goes round once in each direction; every rank adds itself. */
static void check_ring(int step)
{
    int next = (world_rank + step + world_size) % world_size;
    int last = (world_rank - step + world_size) % world_size;
    int token = 0;

    if (world_size == 1) /* a blocking send to oneself may wait for a receive that never comes */
        return;
    if (world_rank != 0)
        MPI_Recv(&token, 1, MPI_INT, last, 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    token += world_rank;
    MPI_Send(&token, 1, MPI_INT, next, 7, MPI_COMM_WORLD);
    if (world_rank == 0) {
        MPI_Recv(&token, 1, MPI_INT, last, 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        expect(token == world_size * (world_size - 1) / 2, "token of the ring");
    }
}

/* How many ranks share memory with this one; checked against the launcher's nodes where those are known. */
static int check_split(void)
{
    int *nodes = calloc((size_t)world_size, sizeof(*nodes));
    int node = env_int("PMI_NODE", -1), mates = 0, size;
    MPI_Comm shared;

    if (nodes == NULL)
        MPI_Abort(MPI_COMM_WORLD, 2);
    MPI_Allgather(&node, 1, MPI_INT, nodes, 1, MPI_INT, MPI_COMM_WORLD);
    MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &shared);
    MPI_Comm_size(shared, &size);
    for (int i = 0; i < world_size; i++)
        mates += nodes[i] == node;
    if (node >= 0) {
        int least, most;

        MPI_Allreduce(&node, &least, 1, MPI_INT, MPI_MIN, shared);
        MPI_Allreduce(&node, &most, 1, MPI_INT, MPI_MAX, shared);
        expect(size == mates && least == most, "split by shared memory: it is not the launcher's nodes");
    }
    MPI_Comm_free(&shared);
    free(nodes);
    return size;
}

/* Rank 0 prints the sizes of the split in the order of the ranks, each followed by how often it comes. */
static void print_summary(int shared_size)
{
    int *sizes = calloc((size_t)world_size, sizeof(*sizes)), all = 0;
    const char *gap = "";

    if (sizes == NULL)
        MPI_Abort(MPI_COMM_WORLD, 2);
    MPI_Allreduce(&failures, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    MPI_Gather(&shared_size, 1, MPI_INT, sizes, 1, MPI_INT, 0, MPI_COMM_WORLD);
    failures = all;
    if (world_rank == 0) {
        printf("mpi_check: %d ranks, allreduce, ring and split %s; ranks a node:", world_size, all ? "WRONG" : "right");
        for (int i = 0, run; i < world_size; i += run, gap = ",") {
            for (run = 1; i + run < world_size && sizes[i + run] == sizes[i]; run++)
                ;
            printf("%s %d (%d ranks)", gap, sizes[i], run);
        }
        printf("\n");
    }
    free(sizes);
}

int main(int argc, char **argv)
{
    char host[256] = "";
    int shared_size;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &world_rank);
    MPI_Comm_size(MPI_COMM_WORLD, &world_size);
    check_allreduce();
    check_ring(1);
    check_ring(-1);
    shared_size = check_split();
    gethostname(host, sizeof(host) - 1);
    if (argc > 1 && strcmp(argv[1], "-v") == 0)
        printf("rank %d of %d on %s, node %d\n", world_rank, world_size, host, env_int("PMI_NODE", -1));
    print_summary(shared_size);
    MPI_Finalize();
    return failures ? 1 : 0;
}
