/* SPDX-License-Identifier: BSD-3-Clause */
#include "server/job.h"

#include <stdlib.h>
#include <string.h>
#include "common/limits.h"
#include "common/mapping.h"
#include "common/msg.h"
#include "common/strv.h"
#include "conf/conf.h"
#include "server/program_find.h"
#include "server/tree.h"

void job_free(struct job *j)
{
    if (j == NULL)
        return;
    for (uint32_t i = 0; i < j->app_count; i++) {
        strv_free(j->app[i].argv);
        strv_free(j->app[i].env);
        free(j->app[i].dir);
        free(j->app[i].search);
    }
    free(j->app);
    free(j->parent);
    free(j->node_at);
    free(j->run_node);
    free(j->run_len);
    free(j->dir);
    free(j->kvsname);
    free(j->spawner);
    free(j->mapping);
    strv_free(j->preput);
    free(j->nspace);
    strv_free(j->hosts);
    free(j->parent_nspace);
    free(j);
}

/* Keys of one app: "argv.0", "env.0". */
static const char *app_key(char out[32], const char *what, uint32_t i)
{
    size_t n = strlen(what);

    memcpy(out, what, n);
    out[n++] = '.';
    out[n + 10] = '\0';
    for (int d = 9; d >= 0; d--, i /= 10)
        out[n + (size_t)d] = (char)('0' + i % 10);
    return out;
}

static void pack_limits(struct msg_out *m, const struct task_limits *l)
{
    uint32_t mask = 0;

    for (unsigned i = 0; i < TASK_LIMITS_MAX; i++) {
        char key[32];

        if (!l->set[i])
            continue;
        mask |= 1u << i;
        msg_put_u64(m, app_key(key, "limit", i), l->soft[i]);
    }
    msg_put_u64(m, "limits", mask);
    msg_put_u64(m, "umask", l->umask);
    msg_put_bool(m, "ignore_hup", l->ignore_hup);
    msg_put_bool(m, "ignore_int", l->ignore_int);
}

static void pack_pmix(struct msg_out *m, const struct job *j)
{
    if (j->nspace == NULL)
        return;
    msg_put_str(m, "nspace", j->nspace);
    msg_put_strv(m, "hosts", j->hosts, strv_count(j->hosts));
    msg_put_str(m, "parent_nspace", j->parent_nspace);
    msg_put_u64(m, "parent_rank", j->parent_rank);
}

int job_pack(const struct job *j, struct buf *out)
{
    struct msg_out *m = msg_out_new();
    struct span body;
    char key[32];
    int rc;

    if (m == NULL)
        return -ENOMEM;
    msg_put_u64(m, "job", j->id);
    msg_put_u64(m, "size", j->size);
    msg_put_u64(m, "nodes", j->nodes);
    msg_put_u32v(m, "parent", j->parent, j->places);
    msg_put_u32v(m, "node_at", j->node_at, j->places);
    msg_put_u32v(m, "run_node", j->run_node, j->runs);
    msg_put_u32v(m, "run_len", j->run_len, j->runs);
    msg_put_u64(m, "apps", j->app_count);
    for (uint32_t i = 0; i < j->app_count; i++) {
        msg_put_strv(m, app_key(key, "argv", i), j->app[i].argv, strv_count(j->app[i].argv));
        msg_put_strv(m, app_key(key, "env", i), j->app[i].env, strv_count(j->app[i].env));
        msg_put_str(m, app_key(key, "dir", i), j->app[i].dir);
        msg_put_str(m, app_key(key, "search", i), j->app[i].search);
        msg_put_u64(m, app_key(key, "ntasks", i), j->app[i].ntasks);
    }
    msg_put_str(m, "dir", j->dir);
    msg_put_str(m, "kvsname", j->kvsname);
    msg_put_str(m, "spawner", j->spawner);
    msg_put_str(m, "mapping", j->mapping);
    msg_put_strv(m, "preput", j->preput, strv_count(j->preput));
    pack_limits(m, &j->limits);
    pack_pmix(m, j);
    msg_put_i64(m, "input", j->input);
    msg_put_bool(m, "input_handed", j->input_handed);
    msg_put_bool(m, "pty", j->pty);
    msg_put_u64(m, "rows", j->rows);
    msg_put_u64(m, "cols", j->cols);
    msg_put_u64(m, "connect", j->connect);
    msg_put_bool(m, "subversion2", j->subversion2);
    msg_put_bool(m, "trace", j->trace);
    msg_put_bool(m, "keep_going", j->keep_going);
    msg_put_u64(m, "barrier_warn", j->barrier_warn_ms);
    msg_put_u64(m, "log_level", j->log_level);
    rc = msg_out_done(m, &body);
    if (rc == 0) {
        out->len = 0;
        rc = buf_add(out, body.p, body.n);
    }
    msg_out_free(m);
    return rc;
}

static int unpack_limits(const struct msg_in *m, struct task_limits *l, struct err *err)
{
    uint64_t mask, v;
    int rc;

    if ((rc = msg_get_u64(m, "limits", 0, (1u << TASK_LIMITS_MAX) - 1, &mask, err)) < 0)
        return rc;
    for (unsigned i = 0; i < TASK_LIMITS_MAX; i++) {
        char key[32];

        if (!(mask & (1u << i)))
            continue;
        if ((rc = msg_get_u64(m, app_key(key, "limit", i), 0, UINT64_MAX, &l->soft[i], err)) < 0)
            return rc;
        l->set[i] = true;
    }
    if ((rc = msg_get_u64(m, "umask", 0, 0777, &v, err)) < 0)
        return rc;
    l->umask = (mode_t)v;
    if ((rc = msg_get_bool(m, "ignore_hup", &l->ignore_hup, err)) < 0)
        return rc;
    return msg_get_bool(m, "ignore_int", &l->ignore_int, err);
}

/* An optional value: absent is fine. */
static int optional(int rc)
{
    return rc == -ENOENT ? 0 : rc;
}

static int unpack_apps(const struct msg_in *m, struct job *j, struct err *err)
{
    uint64_t v, sum = 0;
    size_t n;
    char key[32];
    int rc;

    if ((rc = msg_get_u64(m, "apps", 1, JOB_APPS_MAX, &v, err)) < 0)
        return rc;
    j->app = calloc((size_t)v, sizeof(*j->app));
    if (j->app == NULL)
        return err_set(err, -ENOMEM, "out of memory");
    j->app_count = (uint32_t)v;
    for (uint32_t i = 0; i < j->app_count; i++) {
        struct job_app *a = &j->app[i];

        if ((rc = msg_get_strv(m, app_key(key, "argv", i), JOB_STRINGS_MAX, &a->argv, &n, err)) < 0)
            return rc;
        if (n == 0)
            return err_set(err, -EPROTO, "a command without words");
        if ((rc = msg_get_strv(m, app_key(key, "env", i), JOB_STRINGS_MAX, &a->env, &n, err)) < 0)
            return rc;
        if ((rc = optional(msg_get_str(m, app_key(key, "dir", i), &a->dir, err))) < 0 ||
            (rc = optional(msg_get_str(m, app_key(key, "search", i), &a->search, err))) < 0)
            return rc;
        if ((rc = msg_get_u64(m, app_key(key, "ntasks", i), 0, TASKS_MAX, &v, err)) < 0)
            return rc;
        a->ntasks = (uint32_t)v;
        sum += v;
    }
    if (sum != j->size)
        return err_set(err, -EPROTO, "%u ranks, but the commands have %llu", j->size, (unsigned long long)sum);
    return 0;
}

static int unpack_placement(const struct msg_in *m, struct job *j, struct err *err)
{
    uint64_t sum = 0, v;
    size_t n, n2;
    int rc;

    if ((rc = msg_get_u64(m, "size", 1, TASKS_MAX, &v, err)) < 0)
        return rc;
    j->size = (uint32_t)v;
    if ((rc = msg_get_u64(m, "nodes", 1, NODES_MAX, &v, err)) < 0)
        return rc;
    j->nodes = (uint32_t)v;
    if ((rc = msg_get_u32v(m, "parent", NODES_MAX + 1, &j->parent, &n, err)) < 0 ||
        (rc = msg_get_u32v(m, "node_at", NODES_MAX + 1, &j->node_at, &n2, err)) < 0)
        return rc;
    if (n != n2 || n == 0)
        return err_set(err, -EPROTO, "%zu parents for %zu places", n, n2);
    j->places = (uint32_t)n;
    if ((rc = msg_get_u32v(m, "run_node", TASKS_MAX, &j->run_node, &n, err)) < 0 ||
        (rc = msg_get_u32v(m, "run_len", TASKS_MAX, &j->run_len, &n2, err)) < 0)
        return rc;
    for (size_t i = 0; n == n2 && i < n; i++) {
        sum += j->run_len[i];
        if (j->run_node[i] >= j->nodes)
            return err_set(err, -EPROTO, "a rank on node %u of %u", j->run_node[i], j->nodes);
    }
    if (n != n2 || sum != j->size)
        return err_set(err, -EPROTO, "the placement does not cover %u ranks", j->size);
    j->runs = (uint32_t)n;
    return 0;
}

static int unpack_pty(const struct msg_in *m, struct job *j, struct err *err)
{
    uint64_t rows, cols;
    int rc;

    if ((rc = msg_get_bool(m, "pty", &j->pty, err)) < 0 ||
        (rc = msg_get_u64(m, "rows", 0, UINT16_MAX, &rows, err)) < 0 ||
        (rc = msg_get_u64(m, "cols", 0, UINT16_MAX, &cols, err)) < 0)
        return rc;
    j->rows = (uint16_t)rows;
    j->cols = (uint16_t)cols;
    return 0;
}

static int unpack_pmix(const struct msg_in *m, struct job *j, struct err *err)
{
    uint64_t v;
    size_t n;
    int rc = msg_get_str(m, "nspace", &j->nspace, err);

    if (rc < 0)
        return optional(rc);
    if ((rc = msg_get_strv(m, "hosts", NODES_MAX, &j->hosts, &n, err)) < 0 ||
        (rc = optional(msg_get_str(m, "parent_nspace", &j->parent_nspace, err))) < 0 ||
        (rc = msg_get_u64(m, "parent_rank", 0, TASKS_MAX, &v, err)) < 0)
        return rc;
    j->parent_rank = (uint32_t)v;
    return n == j->nodes ? 0 : err_set(err, -EPROTO, "%zu names of %u nodes", n, j->nodes);
}

static int unpack_rest(const struct msg_in *m, struct job *j, struct err *err)
{
    int64_t input;
    uint64_t v, connect;
    size_t n;
    int rc;

    if ((rc = msg_get_u64(m, "job", 0, UINT32_MAX, &v, err)) < 0)
        return rc;
    j->id = (uint32_t)v;
    if ((rc = msg_get_str(m, "dir", &j->dir, err)) < 0 || (rc = msg_get_str(m, "kvsname", &j->kvsname, err)) < 0 ||
        (rc = optional(msg_get_str(m, "spawner", &j->spawner, err))) < 0 ||
        (rc = optional(msg_get_str(m, "mapping", &j->mapping, err))) < 0 ||
        (rc = msg_get_strv(m, "preput", JOB_STRINGS_MAX, &j->preput, &n, err)) < 0)
        return rc;
    if (n % 2 != 0)
        return err_set(err, -EPROTO, "a preput without a value");
    if ((rc = unpack_limits(m, &j->limits, err)) < 0 || (rc = msg_get_i64(m, "input", &input, err)) < 0 ||
        (rc = msg_get_bool(m, "input_handed", &j->input_handed, err)) < 0 ||
        (rc = msg_get_bool(m, "trace", &j->trace, err)) < 0 ||
        (rc = msg_get_bool(m, "keep_going", &j->keep_going, err)) < 0 ||
        (rc = msg_get_u64(m, "barrier_warn", 0, UINT64_MAX, &j->barrier_warn_ms, err)) < 0 ||
        (rc = msg_get_u64(m, "log_level", 0, 3, &v, err)) < 0)
        return rc;
    if ((rc = msg_get_u64(m, "connect", CONNECT_NONE, CONNECT_SERVE, &connect, err)) < 0 ||
        (rc = msg_get_bool(m, "subversion2", &j->subversion2, err)) < 0)
        return rc;
    j->connect = (unsigned)connect;
    if ((rc = unpack_pty(m, j, err)) < 0 || (rc = unpack_pmix(m, j, err)) < 0)
        return rc;
    if (input < -2 || input >= (int64_t)j->size)
        return err_set(err, -EPROTO, "standard input for rank %lld", (long long)input);
    j->input = (int)input;
    j->log_level = (unsigned)v;
    return 0;
}

int job_unpack(struct span body, struct job **out, struct err *err)
{
    struct job *j = calloc(1, sizeof(*j));
    struct msg_in *m = NULL;
    int rc;

    if (j == NULL)
        return err_set(err, -ENOMEM, "out of memory");
    rc = msg_in_new(&m, body, err);
    if (rc == 0)
        rc = unpack_placement(m, j, err);
    if (rc == 0)
        rc = unpack_apps(m, j, err);
    if (rc == 0)
        rc = unpack_rest(m, j, err);
    msg_in_free(m);
    if (rc < 0) {
        err_prefix(err, "job message");
        job_free(j);
        return rc;
    }
    *out = j;
    return 0;
}

static int set_mapping(struct job *j, const uint32_t *node_of)
{
    struct buf text;
    int rc;

    buf_init(&text, 0);
    rc = mapping_write(node_of, j->size, &text);
    if (rc == 0 && buf_str(&text) != NULL)
        j->mapping = strdup(buf_str(&text));
    buf_done(&text);
    return rc == -E2BIG || j->mapping != NULL ? 0 : -ENOMEM;
}

int job_place(struct job *j, const uint32_t *node_of)
{
    j->run_node = calloc(j->size, sizeof(*j->run_node));
    j->run_len = calloc(j->size, sizeof(*j->run_len));
    if (j->run_node == NULL || j->run_len == NULL)
        return -ENOMEM;
    for (uint32_t r = 0; r < j->size; r++) {
        if (j->runs == 0 || j->run_node[j->runs - 1] != node_of[r])
            j->run_node[j->runs++] = node_of[r];
        j->run_len[j->runs - 1]++;
    }
    return set_mapping(j, node_of);
}

uint32_t *job_place_of_node(const struct job *j)
{
    uint32_t *v = malloc(j->nodes * sizeof(*v));

    if (v == NULL)
        return NULL;
    for (uint32_t i = 0; i < j->nodes; i++)
        v[i] = TREE_NONE;
    for (uint32_t p = 0; p < j->places; p++)
        if (j->node_at[p] < j->nodes)
            v[j->node_at[p]] = p;
    return v;
}

uint32_t *job_node_of(const struct job *j)
{
    uint32_t *v = malloc(j->size * sizeof(*v)), rank = 0;

    if (v == NULL)
        return NULL;
    for (uint32_t i = 0; i < j->runs; i++)
        for (uint32_t k = 0; k < j->run_len[i]; k++)
            v[rank++] = j->run_node[i];
    return v;
}

const char *job_app_dir(const struct job *j, const struct job_app *a)
{
    return a->dir == NULL ? j->dir : a->dir;
}

static int find_in_search(const struct job *j, const struct job_app *a, char **path, struct err *err)
{
    char **env = NULL;
    int rc = env_set(&env, "PATH", a->search);

    if (rc == 0)
        rc = program_find(a->argv[0], job_app_dir(j, a), env, path, err);
    strv_free(env);
    return rc;
}

int job_app_program(const struct job *j, const struct job_app *a, char **path, struct err *err)
{
    if (a->search != NULL && strchr(a->argv[0], '/') == NULL && find_in_search(j, a, path, err) == 0)
        return 0;
    return program_find(a->argv[0], job_app_dir(j, a), a->env, path, err);
}

uint32_t job_app_of(const struct job *j, uint32_t rank)
{
    uint32_t i = 0;

    while (i + 1 < j->app_count && rank >= j->app[i].ntasks)
        rank -= j->app[i++].ntasks;
    return i;
}
