/* SPDX-License-Identifier: BSD-3-Clause */
/* slurm.c - providers started by srun as one step of the job that we are in, one task a node
 *
 * A host that is listed more than once has a step for each time. Which place of the list a provider has it finds by the
 * name that slurmd has given its node: the numbers of a step follow Slurm's own order of nodes.
 */
#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include "bootstrap/boot.h"
#include "bootstrap/command.h"
#include "common/io/log.h"
#include "common/strv.h"
#include "common/util.h"

#define EXITS_MS 200
#define LIST_MAX (100u << 10) /* bytes of a list of nodes: one argument may have 128 KiB on Linux */

struct slurm_step {
    struct proc proc;
    uint32_t number; /* 1 .. */
    uint32_t count;
    uint32_t *node; /* by index; a part of slurm.node */
    char (*key)[KEYLINE_KEY_LEN + 1];
    char *words; /* the first error that names no host, else what srun said last; or NULL */
    bool is_error, ended;
    bool cancelled; /* and that was said */
};

struct slurm {
    uint32_t *node; /* those that are not our own, by step and then in list order */
    struct slurm_step *step;
    uint32_t step_count;
    uv_timer_t exits; /* since srun has told of an end whose reason comes on another way, perhaps later */
};

static struct slurm_step *of_proc(struct proc *p)
{
    return CONTAINER_OF(p, struct slurm_step, proc);
}

/* --- what comes back --- */

static void on_key(struct proc *p, const struct keyline_found *found)
{
    struct slurm_step *s = of_proc(p);

    if (found->run != s->number || found->index >= s->count)
        return;
    if (s->key[found->index][0] == '\0') {
        memcpy(s->key[found->index], found->key, sizeof(s->key[0]));
        boot_node_key(p->boot, s->node[found->index], found);
    } else if (strcmp(s->key[found->index], found->key) != 0) {
        boot_fail_two_keys(p->boot, s->node[found->index], s->key[found->index], found);
    }
}

/* The node of this step that has the name, or -1. */
static int64_t node_named(const struct slurm_step *s, struct span name)
{
    for (uint32_t i = 0; i < s->count; i++)
        if (span_is(name, boot_host(s->proc.boot, s->node[i])))
            return s->node[i];
    return -1;
}

static void keep_words(struct slurm_step *s, struct span words, bool is_error)
{
    char *copy;

    if (s->is_error || (copy = strdup(log_escape(words))) == NULL)
        return;
    free(s->words);
    s->words = copy;
    s->is_error = is_error;
}

static void on_exits(uv_timer_t *t)
{
    struct bootstrap *b = t->data;

    for (uint32_t i = 0; i < b->conf->plan->node_count && !b->over; i++)
        if (b->node[i].exit_code >= 0)
            boot_node_failed(b, i); /* but for those that have joined */
}

/* Tasks of these hosts have ended, or the hosts have. */
static void hosts_ended(struct slurm_step *s, struct span list, struct span words)
{
    struct bootstrap *b = s->proc.boot;
    struct slurm *sl = b->method_data;
    struct hostlist *hl = hostlist_new();

    if (hl == NULL || hostlist_add(hl, list, NULL, NULL, NULL) < 0) {
        hostlist_free(hl);
        return;
    }
    for (size_t i = 0; i < hostlist_count(hl); i++) {
        int64_t node = node_named(s, span_of(hostlist_get(hl, i).name));

        if (node < 0)
            continue;
        b->node[node].exit_code = 1; /* which it was the words may say */
        if (b->node[node].words == NULL)
            boot_node_words(&b->node[node], words);
    }
    hostlist_free(hl);
    uv_timer_start(&sl->exits, on_exits, EXITS_MS, 0);
}

static struct span after(struct span s, const char *start)
{
    size_t n = strlen(start);

    return (struct span){s.p + n, s.n - n};
}

/* "h[1-3]: tasks 1-3: Exited with exit code 2", "Node failure on h1", and what has to do with no host. */
static void on_srun_error(struct slurm_step *s, struct span text, struct span whole)
{
    static const char failure[] = "Node failure on ";
    const char *task = memmem(text.p, text.n, ": task", 6), *words;

    if (span_starts(text, failure)) {
        hosts_ended(s, after(text, failure), text);
    } else if (task != NULL && (words = memmem(task + 1, text.n - (size_t)(task + 1 - text.p), ": ", 2)) != NULL) {
        words += 2;
        hosts_ended(s, (struct span){text.p, (size_t)(task - text.p)},
                    (struct span){words, text.n - (size_t)(words - text.p)});
    } else {
        keep_words(s, whole, true);
    }
}

/* A line of a provider's, or of the slurmstepd that was to execute it. */
static int64_t node_of_line(const struct slurm_step *s, const struct hostwords_line *line)
{
    static const char stepd[] = "slurmstepd-";

    if (line->host.p == NULL)
        return -1;
    return node_named(s, span_starts(line->host, stepd) ? after(line->host, stepd) : line->host);
}

static void on_line(struct proc *p, bool is_err, const struct hostwords_line *line)
{
    static const char error[] = "error: ";
    struct slurm_step *s = of_proc(p);
    bool is_error = line->host.p != NULL && span_starts(line->text, error);
    struct span text = is_error ? after(line->text, error) : line->text;
    int64_t node = node_of_line(s, line);

    if (!is_err)
        return;
    if (node >= 0)
        boot_node_words(&p->boot->node[node], text);
    else if (is_error && span_is(line->host, "srun"))
        on_srun_error(s, text, line->whole);
    else
        keep_words(s, line->whole, is_error);
}

/* The step or the job is being ended, perhaps at its time limit: hosts that are lost are a consequence. */
static void on_late_line(struct proc *p, bool is_err, const struct hostwords_line *line)
{
    static const char cancelled[] = " CANCELLED ";
    struct slurm_step *s = of_proc(p);

    if (!is_err || s->cancelled || memmem(line->whole.p, line->whole.n, cancelled, sizeof(cancelled) - 1) == NULL)
        return;
    s->cancelled = true;
    log_warn("%s", log_escape(line->whole));
}

static void on_end(struct proc *p, int wstatus)
{
    struct slurm_step *s = of_proc(p);

    (void)wstatus;
    s->ended = true;
    for (uint32_t i = 0; i < s->count && !p->boot->over; i++)
        boot_node_failed(p->boot, s->node[i]); /* but for those that have joined */
}

/* --- the start --- */

/* Variables that would steer our srun as if they were its options are the user's for his own, and most of an
 * allocation's do; --jobid says all that it has to know. */
static bool is_for_srun(const char *entry)
{
    static const char *const keep[] = {"SLURM_CONF=", "SLURM_CONF_SERVER=", "SLURM_JWT=", "SLURM_WORKING_CLUSTER="};
    static const char *const drop[] = {"SLURM_", "SRUN_", "SLURMD_", "PMI_", "PMIX_"};

    for (size_t i = 0; i < ARRAY_SIZE(keep); i++)
        if (strncmp(entry, keep[i], strlen(keep[i])) == 0)
            return true;
    for (size_t i = 0; i < ARRAY_SIZE(drop); i++)
        if (strncmp(entry, drop[i], strlen(drop[i])) == 0)
            return false;
    return true;
}

static int srun_env(char *const *own, char ***env)
{
    int rc = 0;

    *env = strv_dup(NULL);
    for (size_t i = 0; *env != NULL && rc == 0 && own[i] != NULL; i++)
        if (is_for_srun(own[i]))
            rc = strv_add(env, own[i]);
    return *env == NULL ? -ENOMEM : rc;
}

static int add_word(char ***argv, const char *name, const char *value)
{
    struct buf word = {0};
    int rc = buf_printf(&word, "%s=%s", name, value);

    if (rc == 0)
        rc = buf_str(&word) != NULL ? strv_add(argv, word.p) : -ENOMEM;
    buf_done(&word);
    return rc;
}

/* All of the job's CPUs and memory on the node, shared with whatever other steps it has; a node or a task that fails is
 * ours to judge, so that Slurm must not end the others. Output comes by lines, as it does by default: those of several
 * providers do not mix. */
static int srun_words(const struct bootstrap *b, const struct slurm_step *s, const char *list, char ***argv)
{
    static const char *const fixed[] = {"--ntasks-per-node=1",  "--overlap", "--mpi=none",           "--cpu-bind=none",
                                        "--mem-bind=none",      "--mem=0",   "--input=none",         "--no-kill",
                                        "--kill-on-bad-exit=0", "--wait=0",  "--job-name=pmi-start", "--chdir=/"};
    char count[16];
    int rc = strv_add(argv, b->conf->srun);

    snprintf(count, sizeof(count), "%" PRIu32, s->count);
    if (rc == 0)
        rc = add_word(argv, "--jobid", b->conf->conf->alloc_job);
    if (rc == 0)
        rc = add_word(argv, "--nodes", count);
    if (rc == 0)
        rc = add_word(argv, "--ntasks", count);
    if (rc == 0)
        rc = add_word(argv, "--nodelist", list);
    for (size_t i = 0; rc == 0 && i < ARRAY_SIZE(fixed); i++)
        rc = strv_add(argv, fixed[i]);
    return rc;
}

static int step_words(const struct bootstrap *b, const struct slurm_step *s, const char *list, char ***argv)
{
    const char *program = b->conf->conf->remote_path != NULL ? b->conf->conf->remote_path : b->conf->self_path;
    char **words = NULL;
    int rc = srun_words(b, s, list, argv);

    if (rc == 0)
        rc = command_argv(b->conf, program, b->awaited + 1, s->number, ATTACH_YES, &words);
    for (size_t i = 0; rc == 0 && words[i] != NULL; i++)
        rc = strv_add(argv, words[i]);
    if (rc == 0)
        rc = add_word(argv, "--pmi-hosts", list);
    strv_free(words);
    return rc;
}

static int fold_step(const struct bootstrap *b, const struct slurm_step *s, struct buf *list)
{
    const char **names = calloc(s->count, sizeof(*names));
    int rc = names == NULL ? -ENOMEM : 0;

    for (uint32_t i = 0; rc == 0 && i < s->count; i++)
        names[i] = boot_host(b, s->node[i]);
    if (rc == 0)
        rc = hostnames_fold(names, s->count, 0, list);
    free(names);
    return rc == 0 && buf_str(list) == NULL ? -ENOMEM : rc;
}

static int start_step(struct bootstrap *b, struct slurm_step *s, struct err *err)
{
    static const struct proc_ops ops = {
        .on_key = on_key, .on_line = on_line, .on_late_line = on_late_line, .on_end = on_end};
    struct buf list = {0};
    char **argv = NULL, **env = NULL;
    int rc = fold_step(b, s, &list);

    for (uint32_t i = 0; i < s->count; i++) {
        b->node[s->node[i]].run = s->number;
        b->node[s->node[i]].index = i;
    }
    if (rc == 0)
        rc = step_words(b, s, list.p, &argv);
    if (rc == 0)
        rc = srun_env(b->conf->envp, &env);
    if (rc < 0) {
        err_set(err, rc, "out of memory");
    } else if (list.len > LIST_MAX) {
        rc = err_set(err, -EINVAL, "--bootstrap=slurm: the list of nodes is too long for srun; use --bootstrap=rsh");
    } else {
        log_debug("step %" PRIu32 ": %s of job %s on %s", s->number, b->conf->srun, b->conf->conf->alloc_job, list.p);
        rc = proc_start(&s->proc, b, &ops, argv, env, err);
    }
    strv_free(argv);
    strv_free(env);
    buf_done(&list);
    return rc;
}

static int by_host(const void *x, const void *y, void *arg)
{
    uint32_t i = *(const uint32_t *)x, k = *(const uint32_t *)y;
    int rc = strcmp(boot_host(arg, i), boot_host(arg, k));

    return rc != 0 ? rc : (i > k) - (i < k);
}

static int by_turn(const void *x, const void *y, void *arg)
{
    const uint32_t *turn = arg;
    uint32_t i = *(const uint32_t *)x, k = *(const uint32_t *)y;

    return turn[i] != turn[k] ? (turn[i] > turn[k]) - (turn[i] < turn[k]) : (i > k) - (i < k);
}

/* Put the nodes in the order of steps: those whose host comes for the first time, for the second, ... Returns how many
 * steps there are, or -ENOMEM. */
static int64_t sort_nodes(struct bootstrap *b, struct slurm *sl)
{
    uint32_t *turn = calloc(b->conf->plan->node_count, sizeof(*turn)), count = 0, most = 0;

    if (turn == NULL)
        return -ENOMEM;
    for (uint32_t i = 0; i < b->conf->plan->node_count; i++)
        if (b->node[i].state == NODE_WAITING)
            sl->node[count++] = i;
    assert(count == b->awaited);
    qsort_r(sl->node, count, sizeof(*sl->node), by_host, b);
    for (uint32_t i = 1; i < count; i++)
        if (strcmp(boot_host(b, sl->node[i]), boot_host(b, sl->node[i - 1])) == 0) {
            turn[sl->node[i]] = turn[sl->node[i - 1]] + 1;
            most = MAX(most, turn[sl->node[i]]);
        }
    qsort_r(sl->node, count, sizeof(*sl->node), by_turn, turn);
    sl->step = calloc(most + 1, sizeof(*sl->step));
    for (uint32_t i = 0; sl->step != NULL && i < count; i++) {
        struct slurm_step *s = &sl->step[turn[sl->node[i]]];

        if (s->count++ == 0)
            s->node = &sl->node[i];
    }
    free(turn);
    return sl->step == NULL ? -ENOMEM : (int64_t)most + 1;
}

static int slurm_open(struct bootstrap *b, struct err *err)
{
    struct slurm *sl = calloc(1, sizeof(*sl));
    int64_t steps;
    int rc = 0;

    if (sl == NULL)
        return err_set(err, -ENOMEM, "out of memory");
    b->method_data = sl;
    boot_timer_init(b, &sl->exits);
    sl->node = calloc(b->awaited, sizeof(*sl->node));
    steps = sl->node != NULL ? sort_nodes(b, sl) : -ENOMEM;
    sl->step_count = steps > 0 ? (uint32_t)steps : 0;
    for (uint32_t i = 0; i < sl->step_count; i++) {
        struct slurm_step *s = &sl->step[i];

        s->number = i + 1;
        s->key = calloc(s->count, sizeof(*s->key));
        if (s->key == NULL)
            steps = -ENOMEM;
    }
    if (steps < 0)
        return err_set(err, -ENOMEM, "out of memory");
    for (uint32_t i = 0; rc == 0 && i < sl->step_count; i++)
        rc = start_step(b, &sl->step[i], err);
    return rc;
}

static int64_t slurm_node_of(const struct bootstrap *b, uint32_t run, uint32_t index)
{
    const struct slurm *sl = b->method_data;

    if (run < 1 || run > sl->step_count || index >= sl->step[run - 1].count)
        return -1;
    return sl->step[run - 1].node[index];
}

static void slurm_why(const struct bootstrap *b, uint32_t node, struct buf *out)
{
    const struct slurm *sl = b->method_data;
    const struct boot_node *n = &b->node[node];
    const struct slurm_step *s = &sl->step[n->run - 1];
    bool keyed = s->key[n->index][0] != '\0';

    if (keyed && (n->words != NULL || !s->ended)) {
        boot_why_no_connection(b, node, out);
        return;
    }
    buf_add_str(out, "start: ");
    if (n->words != NULL) {
        buf_add_str(out, n->words + (strncmp(n->words, "pmi-start: ", 11) == 0 ? 11 : 0));
        return;
    }
    if (s->words != NULL)
        buf_add_str(out, s->words);
    else if (s->ended) {
        buf_add_str(out, "srun ");
        proc_end_text(&s->proc, out);
    } else {
        buf_printf(out, "srun has started nothing here within %" PRIu64 " s", b->conf->conf->start_timeout_ms / 1000);
    }
    if (b->keys == 0)
        buf_add_str(out, " (--bootstrap=rsh logs in to the same hosts by ssh)");
}

static void slurm_close(struct bootstrap *b)
{
    struct slurm *sl = b->method_data;

    boot_handle_close(b, (uv_handle_t *)&sl->exits);
}

static void slurm_free(struct bootstrap *b)
{
    struct slurm *sl = b->method_data;

    for (uint32_t i = 0; i < sl->step_count; i++) {
        free(sl->step[i].key);
        free(sl->step[i].words);
    }
    free(sl->step);
    free(sl->node);
    free(sl);
}

const struct boot_method_ops boot_slurm = {
    .open = slurm_open,
    .node_of = slurm_node_of,
    .why = slurm_why,
    .close = slurm_close,
    .free = slurm_free,
};
