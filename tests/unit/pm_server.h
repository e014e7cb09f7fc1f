/* SPDX-License-Identifier: BSD-3-Clause */
/* pm_server.h - the other end of a struct pm, for tests: a task's socket pair, and a server whose part is written in
 * advance
 */
#ifndef TESTS_UNIT_PM_SERVER_H
#define TESTS_UNIT_PM_SERVER_H

#include <criterion/criterion.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>
#include "client/pm.h"

#define FDS_MAX 3 /* of one message */
#define MAXES "cmd=maxes rc=0 kvsname_max=64 keylen_max=64 vallen_max=1024"

static inline void server_say(int server, const char *bytes)
{
    cr_assert_eq(write(server, bytes, strlen(bytes)), (ssize_t)strlen(bytes));
}

/* With descriptors. */
static inline void server_hand(int server, const char *bytes, const int *fd, size_t count)
{
    union {
        struct cmsghdr head;
        char room[CMSG_SPACE(FDS_MAX * sizeof(int))];
    } control = {.room = {0}};
    struct iovec text = {(void *)(uintptr_t)bytes, strlen(bytes)};
    struct msghdr m = {.msg_iov = &text,
                       .msg_iovlen = 1,
                       .msg_control = control.room,
                       .msg_controllen = CMSG_SPACE(count * sizeof(int))};

    control.head.cmsg_level = SOL_SOCKET;
    control.head.cmsg_type = SCM_RIGHTS;
    control.head.cmsg_len = CMSG_LEN(count * sizeof(int));
    memcpy(CMSG_DATA(&control.head), fd, count * sizeof(int));
    cr_assert_eq(sendmsg(server, &m, 0), (ssize_t)strlen(bytes));
}

/* A task's environment, as rank 1 of 2. */
struct server_env {
    char fd[32], map[48];
    char *v[5];
};

/* Its connection; returns the server's end. `off`: PMI_KVS_MAP names a socket so far from the one that it is. */
static inline int server_open(struct server_env *env, int off)
{
    static char rank[] = "PMI_RANK=1", size[] = "PMI_SIZE=2";
    struct stat st;
    int fd[2];

    cr_assert_eq(socketpair(AF_UNIX, SOCK_STREAM, 0, fd), 0);
    cr_assert_eq(fstat(fd[0], &st), 0);
    snprintf(env->fd, sizeof(env->fd), "PMI_FD=%d", fd[0]);
    snprintf(env->map, sizeof(env->map), "PMI_KVS_MAP=%lld", (long long)st.st_ino + off);
    env->v[0] = env->fd;
    env->v[1] = rank;
    env->v[2] = size;
    env->v[3] = env->map;
    env->v[4] = NULL;
    return fd[1];
}

/* Both ends, of which the server's (-1) may be closed already. */
static inline void server_close(struct pm *pm, int server)
{
    int fd = pm->wire.fd;

    pm_close(pm);
    if (server >= 0)
        close(server);
    close(fd);
}

#endif
