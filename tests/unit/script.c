/* SPDX-License-Identifier: BSD-3-Clause */
#include "tests/unit/script.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

void script_alone(void)
{
    static const char *const names[] = {"PMI_FD",   "PMI_PORT",  "PMI_ID",      "PMI_RANK",
                                        "PMI_SIZE", "PMI_JOBID", "PMI_SPAWNED", "PMI_DEBUG"};

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        unsetenv(names[i]);
}

int script_start(const char *replies)
{
    char number[16];
    int fd[2];

    script_alone();
    cr_assert_eq(socketpair(AF_UNIX, SOCK_STREAM, 0, fd), 0);
    snprintf(number, sizeof(number), "%d", fd[0]);
    setenv("PMI_FD", number, 1);
    setenv("PMI_RANK", "1", 1);
    setenv("PMI_SIZE", "4", 1);
    script_say(fd[1], replies);
    return fd[1];
}

void script_say(int server, const char *replies)
{
    cr_assert_eq(write(server, replies, strlen(replies)), (ssize_t)strlen(replies));
}

void script_expect(int server, const char *requests)
{
    char got[4096];
    ssize_t n = recv(server, got, sizeof(got) - 1, MSG_DONTWAIT);

    got[n > 0 ? n : 0] = '\0';
    cr_expect_str_eq(got, requests);
}
