/* SPDX-License-Identifier: BSD-3-Clause */
/* A node in the middle of the tree, with a parent and a child that say anything. The input is a row of messages: type,
 * two bytes of length, body; types from MSG_WELCOME on come from above. An odd first byte stands for a good job ahead
 * of them. Whatever they are, the node closes in the end, and nothing of it is left. */
#include <assert.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include "common/io/log.h"
#include "common/limits.h"
#include "common/msg.h"
#include "conf/conf.h"
#include "server/job.h"
#include "server/node.h"
#include "server/tree.h"
#include "tests/unit/node_alone.h"

#define PLACE 1
#define CHILD 2
#define RANKS_MAX 64 /* more only cost time and memory, which the root may ask for */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void on_up(unsigned type, struct span body, bool data, void *arg)
{
    (void)type, (void)data, (void)arg;
    assert(body.n <= MESSAGE_MAX);
}

static uint64_t all_in(void *arg)
{
    (void)arg;
    return 1;
}

static void on_started(uint32_t id, pid_t pid, void *arg)
{
    (void)id, (void)pid, (void)arg;
}

static void on_failed(uint32_t id, enum spawn_stage stage, int err_no, void *arg)
{
    (void)id, (void)stage, (void)err_no, (void)arg;
}

static void on_exited(uint32_t id, pid_t pid, int wstatus, void *arg)
{
    (void)id, (void)pid, (void)wstatus, (void)arg;
}

static const struct node_ops node_ops = {on_up, alone_never_full, all_in, alone_nothing};
static const struct spawn_ops spawn_ops = {on_started, on_failed, on_exited, alone_nothing};

/* Two ranks here, one at the child. */
static void good_job(struct node *n)
{
    uint32_t parent[] = {TREE_NONE, 0, PLACE}, node_at[] = {TREE_NONE, 0, 1}, run_node[] = {0, 1}, run_len[] = {2, 1};
    char *words[] = {(char *)"true", NULL}, *none[] = {NULL}, dir[] = "/", name[] = "job";
    struct job_app app = {.argv = words, .env = none, .ntasks = 3};
    struct job j = {.size = 3, .nodes = 2, .places = 3, .parent = parent, .node_at = node_at, .runs = 2};
    struct buf body;

    j.run_node = run_node;
    j.run_len = run_len;
    j.app_count = 1;
    j.app = &app;
    j.dir = dir;
    j.kvsname = name;
    j.preput = none;
    j.input = INPUT_NONE;
    j.connect = CONNECT_FD;
    buf_init(&body, 0);
    assert(job_pack(&j, &body) == 0);
    node_down(n, MSG_JOB, buf_span(&body));
    buf_done(&body);
}

/* What costs too much, or what a provider is never asked for. */
static bool is_too_much(struct span body)
{
    struct job *j;
    bool much;

    if (job_unpack(body, &j, NULL) < 0)
        return false;
    much = j->size > RANKS_MAX || j->places > RANKS_MAX || j->nodes > RANKS_MAX || j->connect == CONNECT_NONE ||
           j->connect == CONNECT_SERVE;
    job_free(j);
    return much;
}

static void say_all(struct node *n, uv_loop_t *loop, const uint8_t *p, size_t left)
{
    while (left >= 3) {
        unsigned type = p[0];
        size_t len = (size_t)p[1] << 8 | p[2];
        struct span body = {(const char *)p + 3, len < left - 3 ? len : left - 3};

        p += 3 + body.n;
        left -= 3 + body.n;
        if (type == MSG_JOB && is_too_much(body))
            continue;
        if (type >= MSG_WELCOME)
            node_down(n, type, body);
        else
            node_up(n, CHILD, type, body);
        uv_run(loop, UV_RUN_NOWAIT);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct node_conf conf = {.place = PLACE, .stdin_fd = -1};
    uv_loop_t loop;
    struct node *n;
    int keeper[2];

    if (size < 1)
        return 0;
    log_set_level(LOG_ERROR);
    assert(uv_loop_init(&loop) == 0);
    assert(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, keeper) == 0);
    assert(spawner_open(&loop, keeper[0], getpid(), &spawn_ops, NULL, &conf.spawner, NULL) == 0);
    conf.links = links_new(&alone_links, NULL);
    n = conf.links ? node_new(&loop, &conf, &node_ops, NULL) : NULL;
    assert(n != NULL);
    if (data[0] % 2 == 1)
        good_job(n);
    say_all(n, &loop, data + 1, size - 1);
    node_close(n);
    spawner_close(conf.spawner);
    uv_run(&loop, UV_RUN_DEFAULT);
    assert(uv_loop_close(&loop) == 0);
    links_free(conf.links);
    close(keeper[1]);
    return 0;
}
