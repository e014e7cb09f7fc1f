/* SPDX-License-Identifier: BSD-3-Clause */
/* A client whose server is the input: the first byte says which wire is tried first, the rest is all that it answers.
 * Every call comes back, with one of the API's codes, and what it gives out is there to be read. */
#include <assert.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>
#include "client/pm.h"
#include "common/limits.h"

#define PMI_CODE_MAX 14  /* of pmi.h: what a server says of its own is passed on, see pm_code() */
#define INPUT_MAX 100000 /* what a socket takes without being read */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static volatile unsigned sum;

static void check(int rc)
{
    assert(rc >= PM_FAIL && rc <= PMI_CODE_MAX);
}

static void read_it(int rc, struct span s)
{
    check(rc);
    for (size_t i = 0; rc == PM_OK && i < s.n; i++)
        sum += (unsigned char)s.p[i];
}

static void spawn(struct pm *pm)
{
    const struct pm_cmd cmd[] = {{.path = "a", .nprocs = 2}, {.path = "b", .nprocs = 1}};
    const struct pm_spawn s = {.cmd = cmd, .count = 2, .nprocs = 3};
    struct span name = SPAN_NONE;
    int errors[3];

    read_it(pm_spawn(pm, &s, &name, errors, NULL), name);
}

static void ask(struct pm *pm)
{
    struct span got = SPAN_NONE;
    const char *name = NULL;
    const int *ranks = NULL;
    int n = 0;

    check(pm_name(pm, &name, NULL));
    check(pm_put(pm, NULL, "k", "v", NULL));
    check(pm->ops->fence(pm, NULL));
    read_it(pm_get(pm, NULL, "k", &got, NULL), got);
    check(pm_appnum(pm, &n, NULL));
    check(pm->ops->universe(pm, &n, NULL));
    if (pm_clique(pm, &ranks, &n, NULL) == PM_OK)
        for (int i = 0; i < n; i++)
            assert(ranks[i] >= 0 && ranks[i] < pm->size && (i == 0 || ranks[i] > ranks[i - 1]));
    read_it(pm->ops->node_get(pm, "k", false, &got, NULL), got);
    read_it(pm->ops->job_get(pm, "k", &got, NULL), got);
    check(pm->ops->publish(pm, "s", "p", NULL));
    read_it(pm->ops->lookup(pm, "s", &got, NULL), got);
    check(pm->ops->unpublish(pm, "s", NULL));
    spawn(pm);
    read_it(pm_get(pm, "other", "k", &got, NULL), got);
    check(pm->ops->finalize(pm, NULL));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char fd_is[32], rank_is[] = "PMI_RANK=1", size_is[] = "PMI_SIZE=4";
    char *env[] = {fd_is, rank_is, size_is, NULL};
    struct pm pm;
    int fd[2];

    if (size < 1 || size > INPUT_MAX)
        return 0;
    assert(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fd) == 0);
    (void)!send(fd[1], data + 1, size - 1, MSG_NOSIGNAL);
    shutdown(fd[1], SHUT_WR);
    snprintf(fd_is, sizeof(fd_is), "PMI_FD=%d", fd[0]);
    if (pm_open(&pm, env, data[0] % 2 == 1, NULL) == PM_OK)
        ask(&pm);
    pm_close(&pm);
    close(fd[0]);
    close(fd[1]);
    return 0;
}
