/* SPDX-License-Identifier: BSD-3-Clause */
/* rsh_run.c - one run of the rsh script: its environment, and what comes back from it */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include "bootstrap/command.h"
#include "bootstrap/rsh.h"
#include "common/io/log.h"
#include "common/strv.h"
#include "common/util.h"

/* --- hosts by the label that the script gives them --- */

struct sort_key {
    const struct bootstrap *boot;
    const struct rsh_run *run;
    bool is_short;
};

static struct span label_at(const struct sort_key *k, uint32_t index)
{
    const char *label = boot_host(k->boot, k->run->node[index]);

    return k->is_short ? (struct span){label, strcspn(label, ".")} : span_of(label);
}

static int label_cmp(struct span a, struct span b)
{
    int rc = memcmp(a.p, b.p, MIN(a.n, b.n));

    return rc != 0 ? rc : (a.n > b.n) - (a.n < b.n);
}

static int index_cmp(const void *a, const void *b, void *arg)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    int rc = label_cmp(label_at(arg, x), label_at(arg, y));

    return rc != 0 ? rc : (x > y) - (x < y);
}

/* First place in `sorted` whose label is not below `label`. */
static uint32_t lower_bound(const struct sort_key *k, const uint32_t *sorted, struct span label)
{
    uint32_t low = 0, high = k->run->count;

    while (low < high) {
        uint32_t mid = low + (high - low) / 2;

        if (label_cmp(label_at(k, sorted[mid]), label) < 0)
            low = mid + 1;
        else
            high = mid;
    }
    return low;
}

/* The indexes of a label: a part of one of the sorted arrays. */
struct range {
    const uint32_t *index;
    uint32_t count;
};

static struct range find_in(const struct sort_key *k, const uint32_t *sorted, struct span label)
{
    uint32_t low = lower_bound(k, sorted, label), n = 0;

    while (low + n < k->run->count && label_cmp(label_at(k, sorted[low + n]), label) == 0)
        n++;
    return (struct range){sorted + low, n};
}

/* pdsh cuts the domain off where all hosts share it. Then the short name stands for one host alone, though maybe one
 * that is listed more than once. */
static struct range find_label(const struct bootstrap *b, const struct rsh_run *run, struct span label)
{
    struct sort_key k = {b, run, false};
    struct range r = find_in(&k, run->by_label, label);

    if (r.count > 0)
        return r;
    k.is_short = true;
    r = find_in(&k, run->by_short, label);
    k.is_short = false;
    for (uint32_t i = 1; i < r.count; i++)
        if (!span_eq(label_at(&k, r.index[0]), label_at(&k, r.index[i])))
            return (struct range){r.index, 0};
    return r;
}

/* --- what comes back --- */

static struct rsh_run *of_proc(struct proc *p)
{
    return CONTAINER_OF(p, struct rsh_run, proc);
}

static bool is_under_way(const struct rsh_run *run, const struct boot_node *n)
{
    return n->run == run->number && n->logging_in && (n->state == NODE_WAITING || n->state == NODE_KEYED);
}

/* The login of `node` has ended before it joined. */
static void login_ended(struct bootstrap *b, struct rsh_run *run, uint32_t node)
{
    struct boot_node *n = &b->node[node];

    n->logging_in = false;
    run->open--;
    if (n->state == NODE_WAITING)
        rsh_login_failed(b, node);
    else if (n->exit_code > 0)
        boot_node_failed(b, node);
}

static void on_key(struct proc *p, const struct keyline_found *found)
{
    struct bootstrap *b = p->boot;
    struct rsh_run *run = of_proc(p);
    struct boot_node *n;

    if (found->run != run->number || found->index >= run->count) {
        log_debug("key line of run %" PRIu32 " index %" PRIu32 " is none of this run, ignoring", found->run,
                  found->index);
        return;
    }
    if (run->key[found->index] != NULL) {
        if (strcmp(run->key[found->index], found->key) != 0)
            boot_fail_two_keys(b, run->node[found->index], run->key[found->index], found);
        return;
    }
    n = &b->node[run->node[found->index]];
    run->key[found->index] = strdup(found->key);
    if (run->key[found->index] == NULL || n->state == NODE_JOINED)
        return; /* it is repeated every 2 s */
    boot_node_key(b, run->node[found->index], found);
    if (n->run == run->number && !n->logging_in && n->exit_code > 0)
        boot_node_failed(b, run->node[found->index]); /* the end of its login came first */
}

/* A line that is no host's: shown once. */
static void on_noise(struct bootstrap *b, struct rsh_run *run, struct span line)
{
    struct rsh *r = b->method_data;
    uint64_t hash = 14695981039346656037u; /* FNV-1a */

    free(run->last_noise);
    run->last_noise = strdup(log_escape(line));
    for (size_t i = 0; i < line.n; i++)
        hash = (hash ^ (unsigned char)line.p[i]) * 1099511628211u;
    for (uint32_t i = 0; i < r->noise_count; i++)
        if (r->noise[i] == hash)
            return;
    if (r->noise_count == RSH_NOISE_MAX)
        return;
    r->noise[r->noise_count++] = hash;
    log_warn("%s", log_escape(line));
    if (r->noise_count == RSH_NOISE_MAX)
        log_warn("further words of the bootstrap script are not shown");
}

/* Of several logins with one label, which have ended shows when the others have joined. */
static void settle_exits(struct bootstrap *b, struct rsh_run *run, struct range r)
{
    struct rsh_exits *exits = &run->exits[r.index[0]];
    uint32_t open = 0;

    for (uint32_t i = 0; i < r.count; i++)
        open += is_under_way(run, &b->node[run->node[r.index[i]]]);
    if (open == 0 || exits->count < open)
        return;
    exits->count = 0;
    for (uint32_t i = 0; i < r.count; i++) {
        uint32_t node = run->node[r.index[i]];

        if (!is_under_way(run, &b->node[node]))
            continue;
        b->node[node].exit_code = exits->code;
        login_ended(b, run, node);
    }
}

static void on_exit_report(struct bootstrap *b, struct rsh_run *run, struct range r, int code)
{
    run->exits[r.index[0]].count++;
    run->exits[r.index[0]].code = code;
    settle_exits(b, run, r);
}

void rsh_run_joined(struct bootstrap *b, struct rsh_run *run, uint32_t node)
{
    struct range r = find_label(b, run, span_of(boot_host(b, node)));

    if (r.count > 1)
        settle_exits(b, run, r);
}

static void on_host_words(struct bootstrap *b, struct rsh_run *run, struct range r, struct span text)
{
    for (uint32_t i = 0; i < r.count; i++) {
        struct boot_node *n = &b->node[run->node[r.index[i]]];

        if (!is_under_way(run, n) || n->decisive)
            continue;
        boot_node_words(n, text);
        n->decisive = rsh_words_decisive(text);
        n->crowded = rsh_words_crowded(text);
    }
}

static void on_line(struct proc *p, bool is_err, const struct hostwords_line *line)
{
    struct bootstrap *b = p->boot;
    struct rsh_run *run = of_proc(p);
    struct range r = {NULL, 0};

    if (line->host.p != NULL)
        r = find_label(b, run, line->host);
    if (r.count == 0) {
        if (is_err)
            on_noise(b, run, line->whole);
    } else if (line->exit_code >= 0) {
        on_exit_report(b, run, r, line->exit_code);
    } else if ((is_err || span_starts(line->text, "pmi-start: ")) && line->text.n > 0) {
        on_host_words(b, run, r, line->text); /* other words on standard output are start-up files' */
    }
    if (run->open == 0)
        rsh_run_ended(b);
}

/* No login is left: those without a key have failed. */
static void on_end(struct proc *p, int wstatus)
{
    struct bootstrap *b = p->boot;
    struct rsh_run *run = of_proc(p);

    run->ended = true;
    for (uint32_t i = 0; i < run->count && !b->over; i++) {
        struct boot_node *n = &b->node[run->node[i]];

        if (!is_under_way(run, n))
            continue;
        /* The script itself could not run: so it would again. */
        if (n->words == NULL && WIFEXITED(wstatus) && (WEXITSTATUS(wstatus) == 126 || WEXITSTATUS(wstatus) == 127))
            n->decisive = true;
        login_ended(b, run, run->node[i]);
    }
    rsh_run_ended(b);
}

/* --- the start --- */

static int set_number(char ***env, const char *name, uint64_t value)
{
    char text[24];

    snprintf(text, sizeof(text), "%" PRIu64, value);
    return env_set(env, name, text);
}

static int set_provider(struct bootstrap *b, uint32_t number, char ***env, struct err *err)
{
    const struct conf *conf = b->conf->conf;
    const struct rsh *r = b->method_data;
    enum attach_mode attach = conf->rsh_attach;
    const char *program = conf->remote_path != NULL ? conf->remote_path : b->conf->self_path;
    struct buf line = {0};
    char **words = NULL;
    int rc;

    if (attach == ATTACH_AUTO && !rsh_is_ssh(b->conf))
        attach = ATTACH_YES;
    rc = command_argv(b->conf, program, r->total + 1, number, attach, &words);
    if (rc < 0)
        err_set(err, rc, "out of memory");
    else
        rc = command_line(words, &line, err);
    if (rc == 0 && (buf_str(&line) == NULL || env_set(env, "PMI_PROVIDER", line.p) < 0))
        rc = err_set(err, -ENOMEM, "out of memory");
    strv_free(words);
    buf_done(&line);
    return rc;
}

int rsh_check_provider(struct bootstrap *b, struct err *err)
{
    char **env = NULL;
    int rc = set_provider(b, 1, &env, err);

    strv_free(env);
    return rc;
}

static int make_env(struct bootstrap *b, const struct rsh_run *run, const char *list, char ***env, struct err *err)
{
    static const char *const not_for_it[] = {"PMI_FD", "PMI_RANK", "PMI_ID", "PMI_SPAWNED", "PMI_LOGIN_AGENT"};
    const struct boot_conf *c = b->conf;
    uint64_t timeout_ms = c->conf->start_timeout_ms;
    int rc = set_provider(b, run->number, env, err);

    if (rc < 0)
        return rc;
    for (size_t i = 0; i < ARRAY_SIZE(not_for_it); i++)
        env_unset(*env, not_for_it[i]);
    if (c->agent != NULL && env_set(env, "PMI_LOGIN_AGENT", c->agent) < 0)
        return err_set(err, -ENOMEM, "out of memory");
    /* A host that does not answer shall leave time for another try. */
    if (env_set(env, "PMI_HOST", c->addrs[0]) < 0 || set_number(env, "PMI_PORT", c->port) < 0 ||
        set_number(env, "PMI_SIZE", (uint64_t)run->count + 1) < 0 || env_set(env, "PMI_HOSTLIST", list) < 0 ||
        env_set(env, "PMI_KEY", c->key) < 0 || set_number(env, "PMI_LOGIN_FANOUT", run->fanout) < 0 ||
        set_number(env, "PMI_LOGIN_TIMEOUT", MAX(1, (timeout_ms + 2999) / 3000)) < 0)
        return err_set(err, -ENOMEM, "out of memory");
    return 0;
}

void rsh_run_free(struct rsh_run *run)
{
    if (run == NULL)
        return;
    for (uint32_t i = 0; run->key != NULL && i < run->count; i++)
        free(run->key[i]);
    free(run->key);
    free(run->node);
    free(run->by_label);
    free(run->by_short);
    free(run->exits);
    free(run->last_noise);
    free(run);
}

static void sort_labels(const struct bootstrap *b, struct rsh_run *run)
{
    struct sort_key k = {b, run, false};

    for (uint32_t i = 0; i < run->count; i++)
        run->by_label[i] = run->by_short[i] = i;
    qsort_r(run->by_label, run->count, sizeof(uint32_t), index_cmp, &k);
    k.is_short = true;
    qsort_r(run->by_short, run->count, sizeof(uint32_t), index_cmp, &k);
}

static struct rsh_run *run_new(struct bootstrap *b, const uint32_t *node, uint32_t count, uint32_t fanout)
{
    struct rsh *r = b->method_data;
    struct rsh_run *run;

    if (r->run_count == r->run_cap) {
        uint32_t cap = r->run_cap == 0 ? 8 : r->run_cap * 2;
        struct rsh_run **more = realloc(r->run, cap * sizeof(*more));

        if (more == NULL)
            return NULL;
        r->run = more;
        r->run_cap = cap;
    }
    run = calloc(1, sizeof(*run));
    if (run == NULL)
        return NULL;
    run->count = run->open = count;
    run->fanout = fanout;
    run->node = calloc(count, sizeof(*run->node));
    run->by_label = calloc(count, sizeof(*run->by_label));
    run->by_short = calloc(count, sizeof(*run->by_short));
    run->exits = calloc(count, sizeof(*run->exits));
    run->key = calloc(count, sizeof(*run->key));
    if (run->node == NULL || run->by_label == NULL || run->by_short == NULL || run->exits == NULL || run->key == NULL) {
        rsh_run_free(run);
        return NULL;
    }
    memcpy(run->node, node, count * sizeof(*node));
    sort_labels(b, run);
    r->run[r->run_count++] = run;
    run->number = r->run_count;
    return run;
}

/* As many of the nodes as fit into one folded list: how many, or -ENOMEM. */
static int64_t fold_piece(const struct bootstrap *b, const uint32_t *node, uint32_t count, struct buf *list)
{
    const char **names = calloc(count, sizeof(*names));
    int rc = names == NULL ? -ENOMEM : 0;

    for (uint32_t i = 0; rc == 0 && i < count; i++)
        names[i] = b->conf->plan->node[node[i]].login;
    while (rc == 0) {
        list->len = 0;
        rc = hostnames_fold(names, count, 0, list);
        if (rc < 0 || list->len <= RSH_LIST_MAX || count == 1)
            break;
        count = (count + 1) / 2;
    }
    free(names);
    return rc < 0 || buf_str(list) == NULL ? -ENOMEM : (int64_t)count;
}

static int run_script(struct bootstrap *b, struct rsh_run *run, const char *list, struct err *err)
{
    static const struct proc_ops ops = {.on_key = on_key, .on_line = on_line, .on_end = on_end};
    const char *script = b->conf->script;
    char **env = strv_dup(b->conf->envp), **argv = NULL;
    int rc = env == NULL || strv_add(&argv, script) < 0 ? err_set(err, -ENOMEM, "out of memory") : 0;

    if (rc == 0)
        rc = make_env(b, run, list, &env, err);
    if (rc == 0) {
        log_debug("run %" PRIu32 ": PMI_HOSTLIST=%s PMI_PROVIDER='%s' %s", run->number, list,
                  env_get(env, "PMI_PROVIDER"), script);
        rc = proc_start(&run->proc, b, &ops, argv, env, err);
    }
    strv_free(argv);
    strv_free(env);
    return rc;
}

int64_t rsh_run_start(struct bootstrap *b, const uint32_t *node, uint32_t count, uint32_t fanout, struct err *err)
{
    struct buf list = {0};
    int64_t n = fold_piece(b, node, count, &list);
    struct rsh_run *run = n > 0 ? run_new(b, node, (uint32_t)n, (uint32_t)MIN(n, fanout)) : NULL;
    int rc = run == NULL ? err_set(err, -ENOMEM, "out of memory") : 0;

    for (uint32_t i = 0; rc == 0 && i < run->count; i++) {
        struct boot_node *bn = &b->node[run->node[i]];

        bn->run = run->number;
        bn->index = i;
        bn->tries++;
        bn->logging_in = true;
        bn->decisive = bn->crowded = false;
        bn->exit_code = -1;
    }
    if (rc == 0)
        rc = run_script(b, run, list.p, err);
    if (rc < 0 && run != NULL)
        run->ended = true;
    buf_done(&list);
    return rc < 0 ? rc : n;
}
