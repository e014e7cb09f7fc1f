/* SPDX-License-Identifier: BSD-3-Clause */
/* node_pmix.c - the PMIx server of this node: from the first job that has it to the end, and what its clients tell */
#include "server/node_pmix.h"

#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include "common/io/log.h"
#include "common/strv.h"
#include "server/blame.h"
#include "server/scratch.h"

struct node_job *node_pmix_job(const struct node *n, const char *nspace)
{
    for (struct node_job *j = n->jobs; j != NULL; j = j->next)
        if (j->job->nspace != NULL && strcmp(j->job->nspace, nspace) == 0)
            return j;
    return NULL;
}

struct node_job *node_job_numbered(const struct node *n, uint64_t id)
{
    struct node_job *j = n->jobs;

    while (j != NULL && j->job->id != id)
        j = j->next;
    return j;
}

/* --- what clients tell ------------------------------------------------------------------------------------------ */

static struct task *find_task(const struct node *n, const struct pmix_id *who)
{
    struct node_job *j = who->nspace == NULL ? NULL : node_pmix_job(n, who->nspace);

    return j == NULL ? NULL : node_task_of_rank(j, who->rank);
}

static void on_connected(struct task *t)
{
    struct node_job *j = t->job;

    t->pmix = TASK_PMIX_IN;
    if (j->pmix->came)
        return;
    j->pmix->came = true;
    node_send_map(j->node, MSG_PMIX_CAME, node_job_map(j), false);
}

static void on_abort(struct task *t, const struct pmix_up *u)
{
    struct span text = buf_span(&u->data);
    int code = u->status & 255;

    if (span_is(text, "N/A")) /* Open MPI's, which says more over the log */
        text = span_of("");
    node_task_failure(t, BLAME_ABORT, code == 0 ? 1 : code, log_escape(text));
}

static void on_told(const struct node_pmix *p, struct pmix_up *u)
{
    struct task *t = find_task(p->node, &u->who);

    if (t != NULL && t->state != TASK_ENDED) {
        if (u->kind == PMIX_UP_CONNECTED)
            on_connected(t);
        else if (u->kind == PMIX_UP_FINALIZED)
            t->pmix = TASK_PMIX_OUT;
        else
            on_abort(t, u);
    }
    pmix_up_done(u, 0, SPAN_NONE);
}

static void on_log(struct node_pmix *p, struct pmix_up *u)
{
    struct task *t = find_task(p->node, &u->who);
    int rc = u->rc;

    if (rc == 0 && t != NULL && t->state != TASK_ENDED && (rc = task_stdio_say(t, u)) == 0)
        return;
    pmix_up_done(u, rc, SPAN_NONE);
}

static void on_up(struct pmix_up *u, void *arg)
{
    struct node_pmix *p = arg;

    switch (u->kind) {
    case PMIX_UP_CONNECTED:
    case PMIX_UP_FINALIZED:
    case PMIX_UP_ABORT:
        on_told(p, u);
        break;
    case PMIX_UP_LOG:
        on_log(p, u);
        break;
    case PMIX_UP_FENCE:
    case PMIX_UP_CONNECT:
    case PMIX_UP_DISCONNECT:
    case PMIX_UP_GROUP:
    case PMIX_UP_UNGROUP:
        node_pmix_enter(p, u);
        break;
    case PMIX_UP_EVENT:
        node_pmix_event(p, u);
        break;
    case PMIX_UP_QUERY:
        node_pmix_query(p, u);
        break;
    case PMIX_UP_GOT:
        node_pmix_got(p, u);
        break;
    default:
        node_pmix_ask(p, u);
        break;
    }
}

/* --- the end of a task ------------------------------------------------------------------------------------------ */

void node_pmix_ended(struct task *t)
{
    struct node_pmix *p = t->job->node->pmix;

    if (t->job->job->nspace == NULL || p == NULL || p->host == NULL)
        return;
    pmix_host_drain(p->host); /* what it has told before it ended */
    p->unclean = p->unclean || t->pmix != TASK_PMIX_OUT;
    if (t->pmix == TASK_PMIX_IN && WIFEXITED(t->wstatus) && WEXITSTATUS(t->wstatus) == 0)
        node_task_failure(t, BLAME_UNFINALIZED, 1, "exited before PMIx finalize");
}

bool node_pmix_is_apart(const struct task *t)
{
    bool well = WIFEXITED(t->wstatus) && WEXITSTATUS(t->wstatus) == 0;

    return t->job->job->nspace != NULL && t->pmix == TASK_PMIX_NEVER && !t->no_start &&
           (well || t->job->job->keep_going);
}

/* --- versions --------------------------------------------------------------------------------------------------- */

void node_pmix_seen(struct node_job *j, const char *version, uint32_t node)
{
    for (unsigned i = 0; j->pmix != NULL && i < 2; i++) {
        if (j->pmix->version[i] != NULL && strcmp(j->pmix->version[i], version) == 0)
            return;
        if (j->pmix->version[i] != NULL)
            continue;
        j->pmix->version[i] = strdup(version);
        j->pmix->node[i] = node;
        return;
    }
}

void node_pmix_seen_put(const struct node_job *j, struct msg_out *m)
{
    unsigned n = 0;

    if (j->pmix == NULL)
        return;
    while (n < 2 && j->pmix->version[n] != NULL)
        n++;
    if (n == 0)
        return;
    msg_put_strv(m, "pmix", j->pmix->version, n);
    msg_put_u32v(m, "pmix_node", j->pmix->node, n);
}

void node_pmix_seen_read(struct node_job *j, const struct msg_in *m)
{
    char **v = NULL;
    uint32_t *node = NULL;
    size_t n = 0, k = 0;

    if (msg_get_strv(m, "pmix", 2, &v, &n, NULL) == 0 && msg_get_u32v(m, "pmix_node", 2, &node, &k, NULL) == 0)
        for (size_t i = 0; i < n && i < k; i++)
            node_pmix_seen(j, v[i], node[i]);
    strv_free(v);
    free(node);
}

/* --- begin ------------------------------------------------------------------------------------------------------ */

static void on_added(const char *nspace, int rc, const char *text, void *arg)
{
    struct node_pmix *p = arg;
    struct node_job *j = node_pmix_job(p->node, nspace);

    uv_timer_stop(&p->late);
    if (j == NULL || j->pmix == NULL || !j->pmix->begun)
        return;
    j->pmix->begun = false;
    if (rc < 0)
        node_job_refused(j, text);
    else
        node_job_prepared(j);
}

/* The library is stuck in its own begin. */
static void on_late(uv_timer_t *t)
{
    struct node_pmix *p = t->data;

    for (struct node_job *j = p->node->jobs; j != NULL; j = j->next)
        if (j->pmix != NULL && j->pmix->begun)
            node_job_refused(j, "PMIx: the library has not begun within 30 s");
}

static const struct pmix_host_ops host_ops = {.up = on_up, .added = on_added};

static void unref(void *arg)
{
    struct node_pmix *p = arg;
    struct node *n = p->node;

    if (--p->handles > 0)
        return;
    pmix_fences_free(p->fences);
    free(p);
    n->pmix = NULL;
    node_unref(n);
}

static struct node_pmix *pmix_new(struct node *n)
{
    struct node_pmix *p = calloc(1, sizeof(*p));

    if (p == NULL)
        return NULL;
    p->node = n;
    p->fences = pmix_fences_new(n->kid_count, &node_pmix_fence_ops, p);
    if (p->fences == NULL) {
        free(p);
        return NULL;
    }
    uv_timer_init(n->loop, &p->late);
    uv_timer_init(n->loop, &p->check);
    p->late.data = p->check.data = p;
    p->handles = 2;
    n->handles++;
    return p;
}

/* A job that this node's ranks may have to do with. */
static int add_job(struct node_pmix *p, struct node_job *j)
{
    struct pmix_space s;
    uint32_t node = j->tree->node[p->node->conf.place];

    if (j->pmix->added)
        return 0;
    j->pmix->added = true;
    return pmix_space_make(j->job, node, scratch_path(SCRATCH_TMP), &s) < 0 ? -ENOMEM : pmix_host_add(p->host, &s);
}

/* For the files of ranks, which are not to stay. */
static void make_scratch(void)
{
    const char *tmp = getenv("TMPDIR");

    if (scratch_path(SCRATCH_TMP) == NULL)
        (void)scratch_make(SCRATCH_TMP, tmp == NULL || tmp[0] != '/' ? "/tmp" : tmp);
    if (scratch_path(SCRATCH_SHM) == NULL)
        (void)scratch_make(SCRATCH_SHM, "/dev/shm");
}

/* Where every host's environment has it, one says so. */
static void say_overruled(const struct node_pmix *p)
{
    const char *setting = pmix_host_overruled(p->host);

    if (setting != NULL && node_task_of_rank(p->node->jobs, 0) != NULL)
        log_warn("%s is not used: a PMIx server of %s can hang for ever with that, and has hash instead",
                 log_escape(span_of(setting)), pmix_host_version(p->host));
}

static int open_host(struct node_pmix *p, struct err *err)
{
    bool is_new = p->host == NULL;
    int rc = p->host != NULL ? 0 : pmix_host_open(p->node->loop, &host_ops, p, &p->host, err);

    if (rc < 0)
        return rc;
    if (is_new)
        say_overruled(p);
    make_scratch();
    for (struct node_job *j = p->node->jobs; rc == 0 && j != NULL; j = j->next) /* ours is the newest: the first */
        if (j->pmix != NULL && j != p->node->jobs)
            rc = add_job(p, j);
    if (rc == 0)
        rc = add_job(p, p->node->jobs);
    return rc < 0 ? err_set(err, rc, "PMIx: out of memory") : 0;
}

bool node_pmix_begin(struct node_job *j)
{
    struct node *n = j->node;
    struct node_pmix *p = n->pmix;
    struct err err = {0};

    if (j->job->nspace == NULL)
        return false;
    j->pmix = calloc(1, sizeof(*j->pmix));
    if (p == NULL)
        p = n->pmix = pmix_new(n);
    if (p == NULL || j->pmix == NULL) {
        node_job_refused(j, "PMIx: out of memory");
        return true;
    }
    if (p->ending || (j->task_count == 0 && p->host == NULL))
        return false;
    j->pmix->begun = true;
    p->handles += p->host == NULL;
    if (open_host(p, &err) < 0) {
        p->handles -= p->host == NULL;
        j->pmix->begun = false;
        node_job_refused(j, err.text);
        return true;
    }
    node_pmix_seen(j, pmix_host_version(p->host), j->tree->node[n->conf.place]);
    uv_timer_start(&p->late, on_late, PMIX_START_MS, 0);
    return true;
}

/* --- end -------------------------------------------------------------------------------------------------------- */

static void on_timer_closed(uv_handle_t *h)
{
    unref(h->data);
}

void node_pmix_end(struct node *n)
{
    struct node_pmix *p = n->pmix;

    if (p == NULL || p->ending)
        return;
    p->ending = true;
    pmix_fences_fail(p->fences, -ECANCELED);
    node_pmix_give_up(p);
    for (struct node_job *j = n->jobs; j != NULL; j = j->next)
        if (j->pmix != NULL)
            node_pmix_events_drop(j); /* the library's thread may wait for that */
    node_words_answer(n);
    scratch_remove(); /* first of all: if the library crashes in its end, it does so without harm */
    if (p->host != NULL)
        pmix_host_close(p->host, !p->unclean, unref);
    node_pmix_given_up(p, NULL);
    uv_close((uv_handle_t *)&p->late, on_timer_closed);
    uv_close((uv_handle_t *)&p->check, on_timer_closed);
}

void node_pmix_forget(struct node_job *j)
{
    const struct node_pmix *p = j->node->pmix;

    if (p != NULL && p->host != NULL && !p->ending && j->pmix != NULL && j->pmix->added)
        pmix_host_remove(p->host, j->job->nspace);
}

void node_pmix_job_free(struct node_job *j)
{
    if (j->pmix == NULL)
        return;
    node_pmix_events_drop(j);
    for (unsigned i = 0; i < 2; i++)
        free(j->pmix->version[i]);
    free(j->pmix);
}

void node_pmix_broken(struct node *n)
{
    if (n->pmix == NULL)
        return;
    n->pmix->broken = true;
    pmix_fences_fail(n->pmix->fences, -EIO);
}
