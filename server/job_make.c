/* SPDX-License-Identifier: BSD-3-Clause */
#include "server/job_make.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "common/io/log.h"
#include "common/strv.h"
#include "server/env.h"
#include "server/pmix_want.h"

/* The directory as the shell spells it, where that is where we are. */
static char *working_dir(const char *pwd)
{
    struct stat a, b;

    if (pwd != NULL && pwd[0] == '/' && stat(pwd, &a) == 0 && stat(".", &b) == 0 && a.st_dev == b.st_dev &&
        a.st_ino == b.st_ino)
        return strdup(pwd);
    return getcwd(NULL, 0);
}

/* --chdir, absolute; a relative one counts from the launcher's directory. */
static int set_dir(struct job *j, const struct conf *conf, const char *pwd, struct err *err)
{
    char *here;
    int rc = 0;

    if (conf->chdir != NULL && conf->chdir[0] == '/') {
        j->dir = strdup(conf->chdir);
        return j->dir == NULL ? err_set(err, -ENOMEM, "out of memory") : 0;
    }
    here = working_dir(pwd);
    if (here == NULL)
        return err_set(err, -errno, "cannot tell the working directory: %s (use --chdir)", strerror(errno));
    if (conf->chdir == NULL) {
        j->dir = here;
        return 0;
    }
    if (asprintf(&j->dir, "%s/%s", here, conf->chdir) < 0) {
        j->dir = NULL;
        rc = err_set(err, -ENOMEM, "out of memory");
    }
    free(here);
    return rc;
}

static int set_apps(struct job *j, const struct conf *conf, const struct plan *plan, char *const *envp, struct err *err)
{
    j->app = calloc(conf->app_count, sizeof(*j->app));
    if (j->app == NULL)
        return err_set(err, -ENOMEM, "out of memory");
    j->app_count = (uint32_t)conf->app_count;
    for (uint32_t i = 0; i < j->app_count; i++) {
        int rc = env_for_app(envp, &conf->app[i], &j->app[i].env);

        j->app[i].argv = strv_dup(conf->app[i].argv);
        if (rc < 0 || j->app[i].argv == NULL)
            return err_set(err, -ENOMEM, "out of memory");
    }
    for (uint32_t r = 0; r < plan->size; r++)
        j->app[plan->app_of[r]].ntasks++;
    return 0;
}

static int set_preputs(struct job *j, const struct conf *conf)
{
    int rc = 0;

    for (size_t i = 0; rc == 0 && i < conf->preput_count; i++) {
        rc = strv_add(&j->preput, conf->preput[i].key);
        if (rc == 0)
            rc = strv_add(&j->preput, conf->preput[i].value);
    }
    return rc;
}

static int set_keys(struct job *j, const struct conf *conf, const struct plan *plan, struct err *err)
{
    char host[HOST_NAME_MAX + 1] = "", name[64];
    int rc = job_place(j, plan->node_of);

    if (rc == 0 && j->mapping == NULL)
        log_info("the process mapping is too long for PMI clients and is left out");
    (void)gethostname(host, sizeof(host) - 1);
    snprintf(name, sizeof(name), "pmi-start.%.40s.%d", host, (int)getpid());
    j->kvsname = strdup(name);
    if (j->kvsname == NULL)
        rc = -ENOMEM;
    if (rc == 0)
        rc = set_preputs(j, conf);
    return rc < 0 ? err_set(err, rc, "out of memory") : 0;
}

/* A file or pipe is handed to a local reader as it is; a terminal never, and not to several. */
static bool hand_input(const struct conf *conf, const struct plan *plan, bool terminal)
{
    return conf->input >= 0 && !terminal && plan->self >= 0 && plan->node_of[conf->input] == (uint32_t)plan->self;
}

static int check_pty(const struct conf *conf, const struct job_world *world, struct err *err)
{
    const char *what = NULL;

    if (!conf->pty)
        return 0;
    if (!world->input_is_terminal)
        return err_set(err, -EINVAL, "--pty: standard input is no terminal");
    if (conf->label)
        what = "--label";
    else if (conf->output != NULL)
        what = "--output";
    else if (conf->error != NULL)
        what = "--error";
    if (what != NULL)
        return err_set(err, -EINVAL, "--pty and %s: the output of a terminal is shown as it is", what);
    if (conf->input < 0)
        return err_set(err, -EINVAL, "--pty and --input=%s: a terminal is for one rank",
                       conf->input == INPUT_ALL ? "all" : "none");
    return 0;
}

static void set_switches(struct job *j, const struct conf *conf)
{
    j->subversion2 = conf->pmi_subversion == 2;
    j->trace = conf->pmi_trace;
    j->keep_going = conf->keep_going;
    j->barrier_warn_ms = conf->barrier_warn_ms;
    j->log_level = (unsigned)(conf->verbose + 1);
}

int job_make(const struct conf *conf, const struct plan *plan, const struct job_world *world, struct job **out,
             struct err *err)
{
    struct job *j = calloc(1, sizeof(*j));
    int rc;

    if (j == NULL)
        return err_set(err, -ENOMEM, "out of memory");
    if (conf->input >= 0 && (uint32_t)conf->input >= plan->size) {
        free(j);
        return err_set(err, -EINVAL, "--input=%d: there are only ranks 0 to %u", conf->input, plan->size - 1);
    }
    rc = check_pty(conf, world, err);
    if (rc == 0)
        rc = set_dir(j, conf, env_get(world->envp, "PWD"), err);
    if (rc == 0)
        rc = set_apps(j, conf, plan, world->envp, err);
    j->size = plan->size;
    j->nodes = plan->node_count;
    if (rc == 0)
        rc = set_keys(j, conf, plan, err);
    if (rc == 0)
        rc = pmix_want(conf, plan, j, err);
    if (rc < 0) {
        job_free(j);
        return rc;
    }
    j->limits = *world->limits;
    j->input = conf->input;
    j->input_handed = hand_input(conf, plan, world->input_is_terminal);
    j->connect = conf->pmi_connect;
    j->pty = conf->pty;
    j->rows = world->rows;
    j->cols = world->cols;
    set_switches(j, conf);
    *out = j;
    return 0;
}

/* All on the one node there is, as the first job is. */
static int set_served_placement(struct job *j, const struct job *first)
{
    j->nodes = j->places = j->runs = 1;
    j->parent = calloc(1, sizeof(*j->parent));
    j->node_at = calloc(1, sizeof(*j->node_at));
    j->run_node = calloc(1, sizeof(*j->run_node));
    j->run_len = calloc(1, sizeof(*j->run_len));
    j->app = calloc(1, sizeof(*j->app));
    if (j->parent == NULL || j->node_at == NULL || j->run_node == NULL || j->run_len == NULL || j->app == NULL)
        return -ENOMEM;
    j->parent[0] = first->parent[0];
    j->node_at[0] = first->node_at[0];
    j->run_len[0] = j->size;
    j->app_count = 1;
    j->app[0].ntasks = j->size;
    j->app[0].argv = strv_dup(first->app[0].argv); /* as far as is known here, it is what the ranks are of */
    j->app[0].env = strv_dup(NULL);
    return j->app[0].argv == NULL || j->app[0].env == NULL ? -ENOMEM : 0;
}

int job_make_served(const struct conf *conf, const struct job *first, struct job **out, struct err *err)
{
    struct job *j = calloc(1, sizeof(*j));

    if (j == NULL)
        return err_set(err, -ENOMEM, "out of memory");
    *j = (struct job){.size = conf->serve_size, .limits = first->limits, .input = INPUT_NONE, .connect = CONNECT_SERVE};
    set_switches(j, conf);
    j->dir = strdup(first->dir);
    j->kvsname = strdup(first->kvsname);
    if (j->dir == NULL || j->kvsname == NULL || set_served_placement(j, first) < 0 || set_preputs(j, conf) < 0) {
        job_free(j);
        return err_set(err, -ENOMEM, "out of memory");
    }
    *out = j;
    return 0;
}
