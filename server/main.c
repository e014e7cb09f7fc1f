/* SPDX-License-Identifier: BSD-3-Clause */
/* main.c - the program's entry: options decide whether this is the launcher or a provider */
#include <fcntl.h>
#include <unistd.h>
#include "conf/provider_conf.h"
#include "server/launcher.h"
#include "server/provider.h"

extern char **environ;

/* New descriptors must never land on 0 to 2. */
static void fill_std_fds(void)
{
    int fd;

    do
        fd = open("/dev/null", O_RDWR);
    while (fd >= 0 && fd <= 2);
    if (fd > 2)
        close(fd);
}

/* Input that cannot be read is as good as none. nohup(1) leaves it like that where it was a terminal: /dev/null, open
 * for writing alone. */
static void close_unreadable_input(void)
{
    int flags = fcntl(STDIN_FILENO, F_GETFL);

    if (flags >= 0 && (flags & O_ACCMODE) == O_WRONLY)
        close(STDIN_FILENO);
}

int main(int argc, char **argv)
{
    close_unreadable_input();
    fill_std_fds();
    if (provider_conf_is(argc, argv))
        return provider_main(argc, argv);
    return launcher_main(argc, argv, environ);
}
