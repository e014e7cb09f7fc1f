/* SPDX-License-Identifier: BSD-3-Clause */
/* bench_main.c - pmi-bench: options, where the server is, one command, exit status */
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include "client/bench_opts.h"
#include "client/bench_report.h"
#include "client/bench_spawn.h"
#include "client/bench_team.h"
#include "client/bench_watch.h"
#include "client/where.h"
#include "common/strv.h"
#include "common/util.h"
#include "config.h"

#define EXIT_FAULT 1
#define EXIT_USAGE 2

static struct team team; /* large, and zeroed */

static int fault(const struct err *err)
{
    if (team.count > 0 && team.job.size > 0)
        fprintf(stderr, "pmi-bench: rank %d: %s\n", team.job.rank, err->text);
    else
        fprintf(stderr, "pmi-bench: %s\n", err->text);
    return EXIT_FAULT;
}

static bool is_set(char **env, const char *name)
{
    const char *value = env_get(env, name);

    return value != NULL && *value != '\0';
}

/* `env` is our own copy of the environment, from which the way that is not wanted is taken. */
static int find_server(const struct bench_opts *o, char **env, struct where *w, struct err *err)
{
    const char *wanted = o->wire == BENCH_WIRE_FD ? "PMI_FD" : "PMI_PORT";
    int rc;

    if (o->wire == BENCH_WIRE_PORT || o->sessions > 1)
        env_unset(env, "PMI_FD");
    if ((o->wire != BENCH_WIRE_AUTO || o->sessions > 1) && !is_set(env, wanted))
        return err_set(err, -ENOENT, "%s is not set, so there is no PMI server to reach that way", wanted);
    rc = where_read(env, w, err);
    if (rc == 0)
        return err_set(err, -ENOENT,
                       "there is no PMI server: neither PMI_FD nor PMI_PORT is set. Start this program with a PMI "
                       "launcher, as in: pmi-start -n 4 pmi-bench exchange");
    if (rc > 0 && o->sessions > 1 && w->id < 0)
        return err_set(err, -ENOENT, "--sessions needs PMI_ID, which is not set");
    return rc < 0 ? rc : 0;
}

/* What can be said of the sizes only when the server has told its own. */
static int check_sizes(const struct bench_opts *o, struct err *err)
{
    if (o->value_size > team.job.value_most)
        return err_set(err, -E2BIG, "values of %zu bytes: this PMI server takes at most %u", o->value_size,
                       team.job.value_most);
    if (o->key_size > team.job.key_most)
        return err_set(err, -E2BIG, "keys of %zu bytes: this PMI server takes at most %u", o->key_size,
                       team.job.key_most);
    return 0;
}

static int measure(const struct bench_opts *o, struct err *err)
{
    static const enum plan_kind kinds[] = {
        [BENCH_GET] = PLAN_GET,
        [BENCH_BARRIER] = PLAN_BARRIER,
        [BENCH_EXCHANGE] = PLAN_EXCHANGE,
        [BENCH_PUT_GET] = PLAN_PUT_GET,
    };
    const struct plan plan = {
        .kind = kinds[o->command],
        .rank = (uint32_t)team.job.rank,
        .size = (uint32_t)team.job.size,
        .count = o->count,
        .reads = MIN(o->reads, (uint32_t)team.job.size),
        .key_size = o->key_size,
        .value_size = o->value_size,
        .key = o->key,
    };
    int rc = check_sizes(o, err);

    return rc == 0 ? team_run(&team, &plan, err) : rc;
}

static int run_command(const struct bench_opts *o, struct err *err)
{
    int rc;

    switch (o->command) {
    case BENCH_INFO:
        return report_info(&team, o, err);
    case BENCH_SPAWNED:
        return spawned_run(&team, err);
    case BENCH_SPAWN:
        rc = spawn_run(&team, o, err);
        break;
    default:
        rc = measure(o, err);
    }
    return rc == 0 ? report(&team, o, err) : rc;
}

static int open_server(const struct bench_opts *o, char **env, struct err *err)
{
    struct where w = {.fd = -1, .id = -1, .rank = -1};
    int rc = watch_start(o->timeout_ms, err);

    if (rc == 0 && o->library != NULL)
        rc = talk_load(&team.job, o->library, o->version, err);
    else if (rc == 0)
        rc = find_server(o, env, &w, err);
    if (rc < 0)
        return rc;
    if (o->library == NULL)
        team.job.kind = o->version == 2 ? &talk_pmi2 : &talk_pmi1;
    if (w.rank >= 0 && w.size > 0) {
        team.job.rank = w.rank; /* for messages, until the server says it */
        team.job.size = w.size;
    }
    return team_open(&team, &w, o->sessions, o->timeout_ms, err);
}

static int run(const struct bench_opts *o, char **env)
{
    struct err err = {0};
    int rc = open_server(o, env, &err);

    if (rc == 0)
        rc = run_command(o, &err);
    if (rc == 0)
        rc = team_finalize(&team, &err);
    if (rc < 0)
        return fault(&err);
    if (fflush(stdout) != 0 || ferror(stdout)) {
        fprintf(stderr, "pmi-bench: cannot write to standard output\n");
        return EXIT_FAULT;
    }
    if (team.faults > 0)
        fprintf(stderr, "pmi-bench: rank %d: %llu faults in all\n", team.job.rank, (unsigned long long)team.faults);
    return team.faults > 0 ? EXIT_FAULT : 0;
}

int main(int argc, char **argv)
{
    struct bench_opts o;
    struct err err = {0};
    char **env;
    int status;

    if (bench_opts_parse(argc, argv, &o, &err) < 0) {
        fprintf(stderr, "pmi-bench: %s\n%s", err.text, "pmi-bench: --help says more\n");
        return EXIT_USAGE;
    }
    if (o.command == BENCH_HELP || o.command == BENCH_VERSION) {
        if (o.command == BENCH_HELP)
            fputs(bench_help, stdout);
        else
            printf("pmi-bench %s\n", PACKAGE_VERSION);
        return fflush(stdout) == 0 ? 0 : EXIT_FAULT;
    }
    env = strv_dup(environ);
    if (env == NULL) {
        fprintf(stderr, "pmi-bench: out of memory\n");
        return EXIT_FAULT;
    }
    status = run(&o, env);
    team_close(&team);
    strv_free(env);
    return status;
}
