/* SPDX-License-Identifier: BSD-3-Clause */
#include "common/io/log.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>
#include "common/buf.h"
#include "common/util.h"

#define LINE_MAX_BYTES 4096
#define HELD_MAX 65536
#define WAIT_MS 1000

static enum log_level max_level = LOG_WARN;
static bool is_raw;
static log_sink_fn sink_fn;
static void *sink_arg;

void log_set_level(enum log_level level)
{
    max_level = level;
}

void log_set_raw(bool raw)
{
    is_raw = raw;
}

void log_set_sink(log_sink_fn sink, void *arg)
{
    sink_fn = sink;
    sink_arg = arg;
}

/* What nobody has read yet. A pipe or terminal that is not read must not hold us up: whoever waits in write(2)
 * answers no ping and ends nothing. */
static struct buf held;

/* Write what is held, waiting up to `ms` for room each time. A pipe that is writable takes PIPE_BUF at once. */
static void write_held(int ms)
{
    struct pollfd pfd = {.fd = STDERR_FILENO, .events = POLLOUT};

    while (held.len > 0 && poll(&pfd, 1, ms) > 0) {
        ssize_t put = write(STDERR_FILENO, held.p, MIN(held.len, (size_t)PIPE_BUF));

        if (put < 0 && errno != EINTR && errno != EAGAIN)
            put = (ssize_t)held.len; /* nobody will ever read it */
        if (put > 0)
            buf_drop(&held, (size_t)put);
    }
}

static void say(struct span line)
{
    int ms = held.len > 0 ? 0 : WAIT_MS; /* once in vain is enough */

    if (held.len + line.n > HELD_MAX)
        return;
    if (buf_add(&held, line.p, line.n) < 0)
        (void)!write(STDERR_FILENO, line.p, line.n);
    write_held(ms);
}

void log_flush(void)
{
    write_held(WAIT_MS);
    buf_done(&held);
}

__attribute__((format(printf, 2, 0))) static void vlog(enum log_level level, const char *fmt, va_list ap)
{
    static const char prefix[] = "pmi-start: ";
    char line[LINE_MAX_BYTES];
    size_t head = sizeof(prefix) - 1, len;
    int n;

    if (level > max_level)
        return;
    memcpy(line, prefix, head);
    n = vsnprintf(line + head, sizeof(line) - head - 2, fmt, ap);
    if (n < 0)
        return;
    len = strlen(line);
    if (sink_fn != NULL) {
        sink_fn(level, line + head, sink_arg);
        return;
    }
    if (is_raw)
        line[len++] = '\r';
    line[len++] = '\n';
    say((struct span){line, len});
}

#define LOG_CALL(name, level)                                                                                          \
    void name(const char *fmt, ...)                                                                                    \
    {                                                                                                                  \
        va_list ap;                                                                                                    \
        va_start(ap, fmt);                                                                                             \
        vlog(level, fmt, ap);                                                                                          \
        va_end(ap);                                                                                                    \
    }

LOG_CALL(log_error, LOG_ERROR)
LOG_CALL(log_warn, LOG_WARN)
LOG_CALL(log_info, LOG_INFO)
LOG_CALL(log_debug, LOG_DEBUG)

const char *log_escape(struct span s)
{
    static char slots[4][832];
    static unsigned next;
    char *out = slots[next++ % 4];
    struct buf b;
    bool cut = s.n > 200;

    buf_init(&b, 0);
    if (cut)
        s.n = 200;
    if (s.p == NULL || buf_add_escaped(&b, s) < 0)
        snprintf(out, sizeof(slots[0]), "(nothing)");
    else
        snprintf(out, sizeof(slots[0]), "%.*s%s", (int)b.len, b.p ? b.p : "", cut ? "..." : "");
    buf_done(&b);
    return out;
}
