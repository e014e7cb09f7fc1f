/* SPDX-License-Identifier: BSD-3-Clause */
#include "boot_rig.h"
#include <criterion/criterion.h>
#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include "common/util.h"

static void become(char *const *argv, char *const *envp, const int out[2], const int err[2])
{
    int null = open("/dev/null", O_RDONLY);

    setsid();
    dup2(null, 0);
    dup2(out[1], 1);
    dup2(err[1], 2);
    execve(argv[0], argv, envp);
    _exit(127);
}

static int spawn(uint32_t id, char *const *argv, char *const *envp, int *out_fd, int *err_fd, void *arg,
                 struct err *err)
{
    struct rig *r = arg;
    int out[2], error[2];
    pid_t pid;

    if (access(argv[0], X_OK) < 0)
        return err_set(err, -errno, "%s: %s", argv[0], strerror(errno));
    cr_assert(pipe2(out, O_CLOEXEC) == 0 && pipe2(error, O_CLOEXEC) == 0);
    pid = fork();
    cr_assert(pid >= 0);
    if (pid == 0)
        become(argv, envp, out, error);
    close(out[1]);
    close(error[1]);
    r->pid[id - BOOT_ID_BASE] = pid;
    r->spawned++;
    *out_fd = out[0];
    *err_fd = error[0];
    return 0;
}

static void on_child(uv_signal_t *s, int signum)
{
    struct rig *r = s->data;

    (void)signum;
    for (uint32_t i = 0; i < r->spawned; i++) {
        int status;

        if (r->pid[i] == 0 || waitpid(r->pid[i], &status, WNOHANG) != r->pid[i])
            continue;
        r->pid[i] = 0;
        if (r->boot != NULL)
            boot_exited(r->boot, BOOT_ID_BASE + i, status);
    }
}

static void kill_one(uint32_t id, int sig, void *arg)
{
    struct rig *r = arg;

    r->killed++;
    if (r->pid[id - BOOT_ID_BASE] > 0)
        kill(-r->pid[id - BOOT_ID_BASE], sig);
}

static void on_key(uint32_t node, uint32_t run, uint32_t index, const char *key, void *arg)
{
    struct rig *r = arg;

    cr_assert_eq(strlen(key), 64);
    buf_printf(&r->keys, "node=%u run=%u index=%u ", node, run, index);
    if (r->join) {
        cr_expect_eq(boot_node_of(r->boot, run, index), node);
        boot_joined(r->boot, node, r->attached);
        if (boot_waiting(r->boot) == 0)
            uv_stop(&r->loop);
    }
}

static void on_failed(const char *text, void *arg)
{
    struct rig *r = arg;

    r->failed++;
    buf_add_str(&r->said, text);
    uv_stop(&r->loop);
}

static void on_limit(uv_timer_t *t)
{
    uv_stop(t->loop);
}

static const struct boot_ops ops = {.spawn = spawn, .kill = kill_one, .on_key = on_key, .on_failed = on_failed};

static char *const addrs[] = {(char[]){"10.0.0.1"}, (char[]){"fd00::1"}, NULL};

static void name_node(struct plan_node *n, const char *word)
{
    const char *at;

    n->login = strdup(word);
    cr_assert(n->login != NULL);
    at = strrchr(n->login, '@');
    n->host = at != NULL ? at + 1 : n->login;
}

struct rig *rig_new(enum boot_method method, const char *hosts)
{
    struct rig *r = calloc(1, sizeof(*r));
    char *copy = strdup(hosts), *word, *state = NULL;

    cr_assert(r != NULL && copy != NULL);
    for (word = strtok_r(copy, " ", &state); word != NULL; word = strtok_r(NULL, " ", &state))
        name_node(&r->node[r->plan.node_count++], word);
    free(copy);
    snprintf(r->dir, sizeof(r->dir), "/tmp/boot-rig-XXXXXX");
    cr_assert(mkdtemp(r->dir) != NULL);
    r->plan.method = method;
    r->plan.node = r->node;
    r->plan.self = -1;
    r->conf.rsh_fanout = 32;
    r->conf.start_timeout_ms = 60000;
    r->conf.rsh_attach = ATTACH_AUTO;
    r->env[0] = strdup("PATH=/usr/bin:/bin");
    cr_assert(asprintf(&r->env[1], "DIR=%s", r->dir) > 0);
    r->env[2] = strdup("KEY=" RIG_KEY);
    r->env[3] = strdup("PMI_RANK=3");
    r->boot_conf = (struct boot_conf){.conf = &r->conf,
                                      .plan = &r->plan,
                                      .addrs = addrs,
                                      .port = 4321,
                                      .key = RIG_KEY,
                                      .self_path = "/opt/bin/pmi-start",
                                      .envp = r->env};
    uv_loop_init(&r->loop);
    uv_timer_init(&r->loop, &r->limit);
    uv_signal_init(&r->loop, &r->child);
    r->child.data = r;
    uv_signal_start(&r->child, on_child, SIGCHLD);
    return r;
}

static void remove_dir(const char *path)
{
    DIR *d = opendir(path);
    struct dirent *e;
    char name[512];

    while (d != NULL && (e = readdir(d)) != NULL) {
        snprintf(name, sizeof(name), "%s/%s", path, e->d_name);
        unlink(name);
    }
    if (d != NULL)
        closedir(d);
    rmdir(path);
}

void rig_done(struct rig *r)
{
    boot_close(r->boot);
    r->boot = NULL;
    uv_close((uv_handle_t *)&r->limit, NULL);
    uv_close((uv_handle_t *)&r->child, NULL);
    uv_run(&r->loop, UV_RUN_DEFAULT);
    cr_expect_eq(uv_loop_close(&r->loop), 0);
    for (uint32_t i = 0; i < r->spawned; i++)
        if (r->pid[i] > 0) {
            kill(-r->pid[i], SIGKILL);
            waitpid(r->pid[i], NULL, 0);
        }
    remove_dir(r->dir);
    for (uint32_t i = 0; i < r->plan.node_count; i++)
        free((char *)(uintptr_t)r->node[i].login);
    for (size_t i = 0; i < ARRAY_SIZE(r->env); i++)
        free(r->env[i]);
    buf_done(&r->keys);
    buf_done(&r->said);
    free(r);
}

const char *rig_script(struct rig *r, const char *name, const char *body)
{
    static char path[128];
    FILE *f;

    snprintf(path, sizeof(path), "%s/%s", r->dir, name);
    f = fopen(path, "we");
    cr_assert(f != NULL && fprintf(f, "#!/bin/sh\n%s\n", body) > 0 && fclose(f) == 0 && chmod(path, 0755) == 0);
    return path;
}

const char *rig_file(struct rig *r, const char *name)
{
    static char text[1 << 20];
    char path[128];
    size_t n = 0;
    FILE *f;

    snprintf(path, sizeof(path), "%s/%s", r->dir, name);
    f = fopen(path, "re");
    if (f != NULL) {
        n = fread(text, 1, sizeof(text) - 1, f);
        fclose(f);
    }
    text[n] = '\0';
    return text;
}

void rig_go_on(struct rig *r, unsigned ms)
{
    uv_timer_start(&r->limit, on_limit, ms, 0);
    uv_run(&r->loop, UV_RUN_DEFAULT);
    cr_assert(buf_str(&r->said) != NULL && buf_str(&r->keys) != NULL);
}

int rig_run(struct rig *r, unsigned ms, struct err *err)
{
    struct boot_ops mine = ops;
    int rc;

    mine.arg = r;
    rc = boot_open(&r->loop, &r->boot_conf, &mine, &r->boot, err);
    if (rc == 0)
        rig_go_on(r, ms);
    return rc;
}
