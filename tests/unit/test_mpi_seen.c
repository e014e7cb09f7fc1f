/* SPDX-License-Identifier: BSD-3-Clause */
#include "server/mpi_seen.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static char proc[] = "/tmp/mpi-seen.XXXXXX";

static void write_file(const char *name, const char *text, size_t n)
{
    char path[100];
    FILE *f;

    snprintf(path, sizeof(path), "%s/7/%s", proc, name);
    f = fopen(path, "w");
    cr_assert_not_null(f);
    cr_assert_eq(fwrite(text, 1, n, f), n);
    fclose(f);
}

static void remove_all(void)
{
    char path[100];

    snprintf(path, sizeof(path), "%s/7/maps", proc);
    unlink(path);
    snprintf(path, sizeof(path), "%s/7/environ", proc);
    unlink(path);
    snprintf(path, sizeof(path), "%s/7", proc);
    rmdir(path);
    rmdir(proc);
}

Test(mpi_seen, open_mpi_that_nobody_serves)
{
    static const char other[] = "7f00-7f01 r-xp 0 08:01 9 /usr/lib/libmpich.so.12\n7f01-7f02 rw-p 0 0:0 0 [stack]\n",
                      ours[] = "7f00-7f01 r--p 0 08:01 9 /opt/libmpi.so.40.d/x\n7f01-7f02 r--p 0 08:01 9 "
                               "/usr/lib/a b/libmpi.so.40.30.4\n",
                      alone[] = "A=PMIX_NAMESPACE=1\0B=2", served[] = "A=1\0PMIX_NAMESPACE=x.1\0B=2";
    char path[100];

    cr_assert_not_null(mkdtemp(proc));
    snprintf(path, sizeof(path), "%s/7", proc);
    cr_assert_eq(mkdir(path, 0700), 0);
    cr_expect_not(mpi_is_alone(proc, 7), "nothing can be read");
    write_file("maps", other, sizeof(other) - 1);
    write_file("environ", alone, sizeof(alone));
    cr_expect_not(mpi_is_alone(proc, 7));
    write_file("maps", ours, sizeof(ours) - 1);
    cr_expect(mpi_is_alone(proc, 7));
    write_file("environ", served, sizeof(served));
    cr_expect_not(mpi_is_alone(proc, 7), "it is of a run of its own");
    remove_all();
}
