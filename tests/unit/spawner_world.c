/* SPDX-License-Identifier: BSD-3-Clause */
#include "tests/unit/spawner_world.h"

#include <criterion/criterion.h>
#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

struct world w;

/* Ids of the bootstrap land in the upper half. */
struct seen *seen(uint32_t id)
{
    uint32_t i = id >= SPAWN_ID_KEPT ? IDS / 2 + id - SPAWN_ID_KEPT : id;

    cr_assert_lt(i, IDS);
    return &w.seen[i];
}

static void on_started(uint32_t id, pid_t pid, void *arg)
{
    cr_assert_eq(arg, &w);
    seen(id)->started++;
    seen(id)->pid = pid;
}

static void on_failed(uint32_t id, enum spawn_stage stage, int err_no, void *arg)
{
    cr_assert_eq(arg, &w);
    seen(id)->failed++;
    seen(id)->stage = stage;
    seen(id)->err_no = err_no;
    w.ended++;
}

static void on_exited(uint32_t id, pid_t pid, int wstatus, void *arg)
{
    cr_assert_eq(arg, &w);
    cr_expect_eq(seen(id)->started, 1, "id %u exited before it started", id);
    cr_expect_eq(seen(id)->pid, pid);
    seen(id)->exited++;
    seen(id)->wstatus = wstatus;
    w.ended++;
}

static void on_lost(void *arg)
{
    cr_assert_eq(arg, &w);
    w.lost = true;
}

static void on_late(uv_timer_t *t)
{
    (void)t;
    w.late = true;
}

static const struct spawn_ops ops = {on_started, on_failed, on_exited, on_lost};

void setup(void)
{
    struct err err = {0};

    cr_assert_eq(keeper_fork(NULL, &w.fd, &w.keeper, &err), 0, "%s", err.text);
    cr_assert_eq(uv_loop_init(&w.loop), 0);
    cr_assert_eq(uv_timer_init(&w.loop, &w.limit), 0);
    cr_assert_eq(spawner_open(&w.loop, w.fd, w.keeper, &ops, &w, &w.s, &err), 0, "%s", err.text);
}

void run_until(bool (*done)(void))
{
    uv_timer_start(&w.limit, on_late, LIMIT_MS, 0);
    while (!done() && !w.late)
        uv_run(&w.loop, UV_RUN_ONCE);
    cr_assert(done(), "nothing more came within %d ms", LIMIT_MS);
    uv_timer_stop(&w.limit);
}

static unsigned want_ended;
static bool enough_ended(void)
{
    return w.ended >= want_ended;
}

void wait_ended(unsigned n)
{
    want_ended = n;
    run_until(enough_ended);
}

void teardown(void)
{
    int wstatus = 0;

    spawner_close(w.s);
    uv_close((uv_handle_t *)&w.limit, NULL);
    uv_run(&w.loop, UV_RUN_DEFAULT);
    cr_expect_eq(uv_loop_close(&w.loop), 0);
    cr_expect_eq(waitpid(w.keeper, &wstatus, 0), w.keeper);
    cr_expect_eq(wstatus, 0);
    cr_expect_eq(waitpid(-1, NULL, WNOHANG), -1, "the keeper left something behind");
}

static char *const plain_env[] = {(char *)(uintptr_t) "PATH=/bin:/usr/bin", NULL};

struct spawn_req request(uint32_t id, char *const *argv)
{
    return (struct spawn_req){
        .id = id, .program = argv[0], .argv = argv, .envp = plain_env, .fd = {-1, -1, -1}, .pmi_fd = -1};
}

void spawn(const struct spawn_req *req)
{
    struct err err = {0};

    cr_assert_eq(spawner_spawn(w.s, req, &err), 0, "%s", err.text);
}

void spawn_sh(uint32_t id, const char *script)
{
    struct spawn_req req = request(id, SH(script));

    spawn(&req);
}

char *output_of(struct spawn_req req)
{
    static char text[1 << 16];
    size_t len = 0;
    ssize_t n;
    int p[2];

    cr_assert_eq(pipe2(p, O_CLOEXEC), 0);
    req.fd[1] = p[1];
    spawn(&req);
    close(p[1]);
    wait_ended(w.ended + 1);
    while ((n = read(p[0], text + len, sizeof(text) - 1 - len)) > 0)
        len += (size_t)n;
    cr_expect_eq(n, 0);
    close(p[0]);
    text[len] = '\0';
    return text;
}
