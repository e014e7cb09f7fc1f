/* SPDX-License-Identifier: BSD-3-Clause */
#include <criterion/criterion.h>
#include <fcntl.h>
#include <pty.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <unistd.h>
#include "common/buf.h"
#include "common/io/stdfd.h"

#define BIG (10u << 20)

static void no_sigpipe(void)
{
    signal(SIGPIPE, SIG_IGN);
}

TestSuite(stdfd, .init = no_sigpipe);

/* Both ends of a test: what came in, what was reported as written, and when to let the loop end. */
struct rec {
    uv_loop_t loop;
    struct stdfd_in *in;
    struct stdfd_out *out;
    struct buf got;
    ssize_t end; /* what ended reading: 0 or an errno; 1 before */
    size_t written;
    int failure;
    size_t pause_at; /* pause when so much has come, 0: never */
    size_t want_out; /* close `out` when so much was reported */
};

static void rec_init(struct rec *r)
{
    memset(r, 0, sizeof(*r));
    r->end = 1;
    cr_assert_eq(uv_loop_init(&r->loop), 0);
}

static void rec_done(struct rec *r)
{
    stdfd_in_close(r->in);
    stdfd_out_close(r->out);
    uv_run(&r->loop, UV_RUN_DEFAULT);
    cr_expect_eq(uv_loop_close(&r->loop), 0);
    buf_done(&r->got);
}

static void on_in(ssize_t n, const char *data, void *arg)
{
    struct rec *r = arg;

    if (n <= 0) {
        r->end = n;
        stdfd_in_close(r->in);
        r->in = NULL;
        return;
    }
    cr_assert_eq(buf_add(&r->got, data, (size_t)n), 0);
    if (r->pause_at != 0 && r->got.len >= r->pause_at) {
        stdfd_in_pause(r->in, true);
        uv_stop(&r->loop);
    }
}

static void on_out(ssize_t n, void *arg)
{
    struct rec *r = arg;

    if (n < 0) {
        cr_expect_eq(r->failure, 0, "told twice");
        r->failure = (int)n;
    } else {
        r->written += (size_t)n;
    }
    if (r->written == r->want_out) {
        stdfd_out_close(r->out);
        r->out = NULL;
    }
}

static void open_in(struct rec *r, int fd)
{
    struct err err = {0};

    cr_assert_eq(stdfd_in_open(&r->loop, fd, on_in, r, &r->in, &err), 0, "%s", err.text);
}

static void open_out(struct rec *r, int fd, size_t want)
{
    struct err err = {0};

    r->want_out = want;
    cr_assert_eq(stdfd_out_open(&r->loop, fd, on_out, r, &r->out, &err), 0, "%s", err.text);
}

/* Bytes that show every loss and swap, NULs among them. */
static char *pattern(size_t n)
{
    char *p = malloc(n);
    uint32_t x = 1;

    cr_assert(p != NULL);
    for (size_t i = 0; i < n; i++) {
        x = x * 1664525 + 1013904223;
        p[i] = (char)(x >> 24);
    }
    return p;
}

static int temp_file(void)
{
    char path[] = "/tmp/test_stdfd.XXXXXX";
    int fd = mkstemp(path);

    cr_assert(fd >= 0);
    unlink(path);
    return fd;
}

Test(stdfd, ten_mib_through_a_pipe_both_ways_and_flags_untouched)
{
    char *data = pattern(BIG);
    struct rec r;
    int p[2];

    rec_init(&r);
    cr_assert_eq(pipe(p), 0);
    open_in(&r, p[0]);
    open_out(&r, p[1], BIG);
    cr_assert_eq(stdfd_out_write(r.out, (struct span){data, BIG}), 0);
    cr_expect_eq(stdfd_out_queued(r.out), BIG);
    while (r.out != NULL)
        uv_run(&r.loop, UV_RUN_ONCE);
    cr_expect_eq(fcntl(p[0], F_GETFL) & O_NONBLOCK, 0);
    cr_expect_eq(fcntl(p[1], F_GETFL) & O_NONBLOCK, 0);
    close(p[1]);
    uv_run(&r.loop, UV_RUN_DEFAULT);
    cr_expect_eq(r.end, 0);
    cr_expect_eq(r.written, BIG);
    cr_assert_eq(r.got.len, BIG);
    cr_expect(memcmp(r.got.p, data, BIG) == 0);
    close(p[0]);
    free(data);
    rec_done(&r);
}

Test(stdfd, ten_mib_to_a_file_and_back)
{
    char *data = pattern(BIG);
    int fd = temp_file();
    struct rec r;

    rec_init(&r);
    open_out(&r, fd, BIG);
    for (size_t at = 0; at < BIG; at += BIG / 4)
        cr_assert_eq(stdfd_out_write(r.out, (struct span){data + at, BIG / 4}), 0);
    cr_expect_eq(r.written, 0, "written from inside the call");
    uv_run(&r.loop, UV_RUN_DEFAULT);
    cr_expect_eq(r.written, BIG);
    cr_expect_eq(lseek(fd, 0, SEEK_SET), 0);
    open_in(&r, fd);
    uv_run(&r.loop, UV_RUN_DEFAULT);
    cr_expect_eq(r.end, 0);
    cr_assert_eq(r.got.len, BIG);
    cr_expect(memcmp(r.got.p, data, BIG) == 0);
    close(fd);
    free(data);
    rec_done(&r);
}

static void count_turn(uv_check_t *c)
{
    (*(unsigned *)c->data)++;
}

Test(stdfd, a_file_leaves_the_loop_its_turns)
{
    int fd = temp_file();
    unsigned turns = 0;
    uv_check_t check;
    struct rec r;

    rec_init(&r);
    cr_assert_eq(ftruncate(fd, 1 << 20), 0);
    uv_check_init(&r.loop, &check);
    check.data = &turns;
    uv_check_start(&check, count_turn);
    uv_unref((uv_handle_t *)&check);
    open_in(&r, fd);
    uv_run(&r.loop, UV_RUN_DEFAULT);
    cr_expect_eq(r.got.len, 1u << 20);
    cr_expect_geq(turns, 16);
    uv_close((uv_handle_t *)&check, NULL);
    close(fd);
    rec_done(&r);
}

/* What is paused stays in the pipe, or the file; nothing is lost or read. */
static void pause_and_go_on(struct rec *r, int fd)
{
    r->pause_at = 1;
    open_in(r, fd);
    uv_run(&r->loop, UV_RUN_DEFAULT);
    size_t had = r->got.len;
    cr_expect_gt(had, 0);
    for (int i = 0; i < 5; i++)
        uv_run(&r->loop, UV_RUN_NOWAIT);
    cr_expect_eq(r->got.len, had);
    r->pause_at = 0;
    stdfd_in_pause(r->in, false);
    uv_run(&r->loop, UV_RUN_DEFAULT);
    cr_expect_eq(r->end, 0);
}

Test(stdfd, paused_reader_of_a_pipe)
{
    struct rec r;
    int p[2];

    rec_init(&r);
    cr_assert_eq(pipe(p), 0);
    cr_assert_eq(write(p[1], "a\0b", 3), 3);
    r.pause_at = 1;
    open_in(&r, p[0]);
    uv_run(&r.loop, UV_RUN_DEFAULT);
    cr_assert_eq(write(p[1], "more", 4), 4);
    close(p[1]);
    for (int i = 0; i < 5; i++)
        uv_run(&r.loop, UV_RUN_NOWAIT);
    cr_expect(span_eq(buf_span(&r.got), (struct span){"a\0b", 3}));
    cr_expect_eq(r.end, 1);
    r.pause_at = 0;
    stdfd_in_pause(r.in, false);
    uv_run(&r.loop, UV_RUN_DEFAULT);
    cr_expect(span_eq(buf_span(&r.got), (struct span){"a\0bmore", 7}));
    cr_expect_eq(r.end, 0);
    close(p[0]);
    rec_done(&r);
}

Test(stdfd, paused_reader_of_a_file)
{
    int fd = temp_file();
    struct rec r;

    rec_init(&r);
    cr_assert_eq(ftruncate(fd, 300000), 0);
    pause_and_go_on(&r, fd);
    cr_expect_eq(r.got.len, 300000);
    close(fd);
    rec_done(&r);
}

Test(stdfd, blocked_writer_goes_on)
{
    size_t n = 1 << 20, total = 0;
    char *data = pattern(n), *got = malloc(n);
    struct rec r;
    int p[2];

    rec_init(&r);
    cr_assert_eq(pipe(p), 0);
    open_out(&r, p[1], n);
    cr_assert_eq(stdfd_out_write(r.out, (struct span){data, n}), 0);
    for (int i = 0; i < 50; i++) /* nobody reads: the pipe fills, and the loop does not hang */
        uv_run(&r.loop, UV_RUN_NOWAIT);
    cr_expect_gt(r.written, 0);
    cr_expect_lt(r.written, n);
    cr_expect_eq(stdfd_out_queued(r.out), n - r.written);
    while (total < n) {
        ssize_t k = read(p[0], got + total, n - total);

        cr_assert_gt(k, 0);
        total += (size_t)k;
        uv_run(&r.loop, UV_RUN_NOWAIT);
    }
    cr_expect(memcmp(got, data, n) == 0);
    cr_expect_eq(r.written, n);
    close(p[0]);
    close(p[1]);
    free(data);
    free(got);
    rec_done(&r);
}

/* The whole is reported as written although nothing is, and the failure once. */
static void write_fails(int fd, int want)
{
    struct rec r;

    rec_init(&r);
    open_out(&r, fd, 300000);
    char *data = pattern(100000);
    cr_assert_eq(stdfd_out_write(r.out, (struct span){data, 100000}), 0);
    while (r.failure == 0)
        uv_run(&r.loop, UV_RUN_ONCE);
    cr_expect_eq(r.failure, want);
    cr_assert_eq(stdfd_out_write(r.out, (struct span){data, 100000}), 0);
    cr_assert_eq(stdfd_out_write(r.out, (struct span){data, 100000}), 0);
    uv_run(&r.loop, UV_RUN_DEFAULT);
    cr_expect_eq(r.written, 300000);
    free(data);
    rec_done(&r);
}

Test(stdfd, reader_gone)
{
    int p[2];

    cr_assert_eq(pipe(p), 0);
    close(p[0]);
    write_fails(p[1], -EPIPE);
    close(p[1]);
}

Test(stdfd, disk_full)
{
    int fd = open("/dev/full", O_WRONLY);

    cr_assert(fd >= 0);
    write_fails(fd, -ENOSPC);
    close(fd);
}

Test(stdfd, null_device)
{
    int fd = open("/dev/null", O_RDWR);
    struct rec r;

    rec_init(&r);
    open_in(&r, fd);
    open_out(&r, fd, 4);
    cr_assert_eq(stdfd_out_write(r.out, (struct span){"abcd", 4}), 0);
    uv_run(&r.loop, UV_RUN_DEFAULT);
    cr_expect(r.end == 0 && r.written == 4 && r.failure == 0);
    close(fd);
    rec_done(&r);
}

Test(stdfd, what_cannot_be_used)
{
    int fd = open("/", O_RDONLY | O_DIRECTORY), closed;
    struct err err = {0};
    struct rec r;

    rec_init(&r);
    closed = dup(fd);
    close(closed);
    cr_expect_eq(stdfd_in_open(&r.loop, closed, on_in, &r, &r.in, &err), -EBADF);
    cr_expect_eq(err.code, -EBADF);
    cr_expect_eq(stdfd_out_open(&r.loop, closed, on_out, &r, &r.out, NULL), -EBADF);
    open_in(&r, fd);
    uv_run(&r.loop, UV_RUN_DEFAULT);
    cr_expect_eq(r.end, -EISDIR);
    close(fd);
    rec_done(&r);
}

Test(stdfd, closing_drops_what_is_queued)
{
    struct rec r;
    int p[2];

    rec_init(&r);
    cr_assert_eq(pipe(p), 0);
    open_out(&r, p[1], 1);
    cr_assert_eq(stdfd_out_write(r.out, (struct span){"abc", 3}), 0);
    stdfd_out_close(r.out);
    stdfd_out_close(r.out);
    r.out = NULL;
    uv_run(&r.loop, UV_RUN_DEFAULT);
    cr_expect_eq(r.written, 0);
    close(p[0]);
    close(p[1]);
    rec_done(&r);
}

Test(stdfd, stopped_terminal_does_not_block)
{
    size_t n = 1 << 20, total = 0;
    char *data = malloc(n), buf[4096];
    struct termios raw;
    struct rec r;
    int master, slave;

    memset(data, 'x', n);
    cfmakeraw(memset(&raw, 0, sizeof(raw)));
    cr_assert_eq(openpty(&master, &slave, NULL, &raw, NULL), 0);
    rec_init(&r);
    open_out(&r, slave, n);
    cr_assert_eq(stdfd_out_write(r.out, (struct span){data, n}), 0);
    for (int i = 0; i < 50; i++)
        uv_run(&r.loop, UV_RUN_NOWAIT);
    cr_expect_lt(r.written, n);
    cr_expect_eq(fcntl(slave, F_GETFL) & O_NONBLOCK, 0);
    while (total < n) {
        uv_run(&r.loop, UV_RUN_NOWAIT);
        ssize_t k = read(master, buf, sizeof(buf));

        cr_assert_gt(k, 0);
        total += (size_t)k;
    }
    uv_run(&r.loop, UV_RUN_DEFAULT);
    cr_expect_eq(r.written, n);
    cr_expect_eq(total, n);
    close(master);
    close(slave);
    free(data);
    rec_done(&r);
}

/* In a session of its own with the terminal as the controlling one: read in the background, tell through `say` when
 * that has been tried, then wait for the line that comes once `leader` has put us into the foreground. */
static void background_reader(int slave, int say)
{
    struct rec r;

    rec_init(&r);
    open_in(&r, slave);
    r.pause_at = 1;
    while (tcgetpgrp(slave) != getpgrp()) {
        uv_run(&r.loop, UV_RUN_ONCE);
        if (write(say, "t", 1) != 1)
            _exit(9);
    }
    while (r.got.len == 0)
        uv_run(&r.loop, UV_RUN_ONCE);
    _exit(span_is(buf_span(&r.got), "line\n") ? 0 : 8);
}

static void session_leader(int slave)
{
    int say[2], status = 0;
    char c;

    if (setsid() < 0 || ioctl(slave, TIOCSCTTY, 0) < 0 || pipe(say) < 0)
        _exit(10);
    pid_t pid = fork();
    if (pid == 0) {
        setpgid(0, 0);
        background_reader(slave, say[1]);
    }
    setpgid(pid, pid);
    for (int i = 0; i < 2; i++)
        if (read(say[0], &c, 1) != 1)
            _exit(11);
    if (tcsetpgrp(slave, pid) < 0 || waitpid(pid, &status, WUNTRACED) != pid)
        _exit(12);
    _exit(WIFEXITED(status) ? WEXITSTATUS(status) : 13);
}

Test(stdfd, background_terminal_is_read_only_once_in_the_foreground)
{
    int master, slave, status = 0;

    cr_assert_eq(openpty(&master, &slave, NULL, NULL, NULL), 0);
    cr_assert_eq(write(master, "line\n", 5), 5);
    pid_t pid = fork();
    if (pid == 0)
        session_leader(slave);
    cr_assert_eq(waitpid(pid, &status, 0), pid);
    cr_expect(WIFEXITED(status) && WEXITSTATUS(status) == 0, "status %#x", (unsigned)status);
    close(master);
    close(slave);
}

Test(stdfd, hung_up_terminal_ends_reading)
{
    int master, slave;
    struct rec r;

    cr_assert_eq(openpty(&master, &slave, NULL, NULL, NULL), 0);
    rec_init(&r);
    open_in(&r, slave);
    close(master);
    uv_run(&r.loop, UV_RUN_DEFAULT);
    cr_expect(r.end == 0 || r.end == -EIO);
    close(slave);
    rec_done(&r);
}
