/* SPDX-License-Identifier: BSD-3-Clause */
#include "server/terminal.h"

#include <errno.h>
#include <string.h>
#include <sys/ioctl.h>
#include "common/io/log.h"

int terminal_open(struct terminal *t, int fd, struct err *err)
{
    *t = (struct terminal){.fd = fd};
    if (tcgetattr(fd, &t->before) < 0)
        return err_set(err, -errno, "cannot ask the terminal for its settings: %s", strerror(errno));
    return 0;
}

static struct termios raw_of(const struct termios *before)
{
    struct termios raw = *before;

    cfmakeraw(&raw);
    return raw;
}

void terminal_set_raw(struct terminal *t, bool raw)
{
    struct termios to;

    if (t == NULL || (!raw && !t->is_raw))
        return;
    to = raw ? raw_of(&t->before) : t->before;
    if (tcsetattr(t->fd, TCSADRAIN, &to) < 0)
        return;
    t->is_raw = raw;
    log_set_raw(raw);
}

void terminal_size(const struct terminal *t, uint16_t *rows, uint16_t *cols)
{
    struct winsize w = {0};

    (void)ioctl(t->fd, TIOCGWINSZ, &w);
    *rows = w.ws_row;
    *cols = w.ws_col;
}

void terminal_put_back(int fd, const struct termios *before)
{
    struct termios raw = raw_of(before), now;

    if (tcgetattr(fd, &now) == 0 && now.c_lflag == raw.c_lflag && now.c_oflag == raw.c_oflag &&
        now.c_iflag == raw.c_iflag)
        (void)tcsetattr(fd, TCSANOW, before);
}
