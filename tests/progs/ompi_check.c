/* SPDX-License-Identifier: BSD-3-Clause */
/* ompi_check.c - an MPI program that ends as it is told, or talks to other jobs. For Open MPI, over PMIx
 *
 * ompi_check [abort | segv | exit | finalized | early | status N | connect | spawn N [PROGRAM] | appnum | sleep]
 *
 * abort, segv, exit and status are for the last rank alone, between init and finalize; early: it ends before init.
 * connect: the upper half of the ranks connects to the lower by a name that is published twice. spawn: N more of this,
 * or of PROGRAM, by all. appnum: each rank says of which program of the command line it is.
 */
#include <mpi.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int rank, size;

static void end_badly(const char *how, const char *number)
{
    if (rank != size - 1)
        return;
    if (strcmp(how, "abort") == 0)
        MPI_Abort(MPI_COMM_WORLD, 42);
    if (strcmp(how, "segv") == 0) {
        signal(SIGSEGV, SIG_DFL); /* without Open MPI's list of addresses */
        raise(SIGSEGV);
    }
    if (strcmp(how, "exit") == 0)
        _exit(0);
    if (strcmp(how, "status") == 0)
        _exit((int)strtol(number, NULL, 10));
}

/* The sum of all ranks of the other side is the same for each of ours. */
static void talk(MPI_Comm other, const char *who, int want)
{
    int mine = rank + 1, sum = 0;

    MPI_Allreduce(&mine, &sum, 1, MPI_INT, MPI_SUM, other);
    if (sum != want) {
        printf("%s: rank %d of %d got %d instead of %d\n", who, rank, size, sum, want);
        MPI_Abort(MPI_COMM_WORLD, 3);
    }
    MPI_Comm_disconnect(&other);
}

static int sum_of(int first, int last)
{
    return (first + last) * (last - first + 1) / 2;
}

static void say_appnum(void)
{
    int *app, found;

    MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_APPNUM, &app, &found);
    printf("rank %d: program %d\n", rank, found ? *app : -1);
}

static void connect_halves(void)
{
    char port[MPI_MAX_PORT_NAME] = "";
    int lower = rank < size / 2;
    MPI_Comm half, other;

    MPI_Comm_split(MPI_COMM_WORLD, lower, rank, &half);
    if (rank == 0) {
        MPI_Open_port(MPI_INFO_NULL, port);
        MPI_Publish_name("half", MPI_INFO_NULL, "of an earlier time");
        MPI_Publish_name("half", MPI_INFO_NULL, port);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == size / 2)
        MPI_Lookup_name("half", MPI_INFO_NULL, port);
    if (lower)
        MPI_Comm_accept(port, MPI_INFO_NULL, 0, half, &other);
    else
        MPI_Comm_connect(port, MPI_INFO_NULL, 0, half, &other);
    talk(other, "connect", lower ? sum_of(size / 2 + 1, size) : sum_of(1, size / 2));
    if (rank == 0) {
        MPI_Unpublish_name("half", MPI_INFO_NULL, port);
        MPI_Unpublish_name("half", MPI_INFO_NULL, port); /* no error, as it is none under mpirun */
        MPI_Close_port(port);
        printf("connected: %d ranks\n", size);
    }
    MPI_Comm_free(&half);
}

static void spawn(char **argv)
{
    char *args[] = {argv[1], argv[2], NULL};
    int n = (int)strtol(argv[2], NULL, 10), codes[64];
    MPI_Comm parent, other;

    MPI_Comm_get_parent(&parent);
    if (parent != MPI_COMM_NULL) {
        int parents;

        MPI_Comm_remote_size(parent, &parents);
        talk(parent, "child", sum_of(1, parents));
        if (rank == 0)
            printf("children: %d\n", size);
        return;
    }
    MPI_Comm_spawn(argv[3] != NULL ? argv[3] : argv[0], args, n, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &other, codes);
    talk(other, "parent", sum_of(1, n));
    if (rank == 0)
        printf("parents: %d\n", size);
}

int main(int argc, char **argv)
{
    const char *how = argc > 1 ? argv[1] : "", *mine = getenv("OMPI_COMM_WORLD_RANK");

    if (strcmp(how, "early") == 0 && mine != NULL && strcmp(mine, "1") == 0)
        return 0;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    end_badly(how, argc > 2 ? argv[2] : "0");
    if (strcmp(how, "connect") == 0)
        connect_halves();
    if (strcmp(how, "spawn") == 0 && argc > 2)
        spawn(argv);
    if (strcmp(how, "appnum") == 0)
        say_appnum();
    if (strcmp(how, "sleep") == 0) {
        printf("rank %d is in\n", rank);
        fflush(stdout);
        sleep(60);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0 && argc == 1)
        printf("hello from %d ranks\n", size);
    MPI_Finalize();
    return 0;
}
