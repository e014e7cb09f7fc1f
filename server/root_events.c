/* SPDX-License-Identifier: BSD-3-Clause */
/* root_events.c - what nodes report: ends of tasks, failures, lost nodes, their words */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include "common/hostlist.h"
#include "common/io/log.h"
#include "server/barrier_msg.h"
#include "server/exits.h"
#include "server/root_priv.h"

void root_blame_rank(struct root_job *j, uint32_t rank, enum blame_kind kind, int status, const char *text)
{
    /* As a rank of --serve one program may come after the other. */
    if (kind == BLAME_UNFINALIZED && j->blamed[rank] && j != j->root->served)
        return;
    j->blamed[rank] = true;
    root_blame(j->root, kind, status, text);
}

/* The end of one rank as a failure, where it is one. */
static void judge(struct root_job *j, uint32_t rank, uint32_t pid, int status)
{
    char text[ERR_TEXT_MAX], name[300];

    root_who(j, rank, pid, name, sizeof(name));
    if (WIFSIGNALED(status)) {
        snprintf(text, sizeof(text), "%s was killed by signal %d (%s)", name, WTERMSIG(status),
                 strsignal(WTERMSIG(status)));
        root_blame_rank(j, rank, BLAME_SIGNAL, 128 + WTERMSIG(status), text);
    } else if (WIFEXITED(status) && WEXITSTATUS(status) != 0) {
        snprintf(text, sizeof(text), "%s exited with status %d", name, WEXITSTATUS(status));
        root_blame_rank(j, rank, BLAME_STATUS, WEXITSTATUS(status), text);
    }
}

/* Some rank is gone: others may wait for it. */
static void spread_gone(struct root_job *j)
{
    if (j->gone_sent || j->ended_count == j->size || j->root->phase != ROOT_RUNNING)
        return;
    j->gone_sent = true;
    root_send_map(j->root, MSG_RANK_GONE, root_job_map(j), false);
}

static int rank_exited(struct root_job *j, const struct exit_one *e)
{
    if (e->rank >= j->size)
        return -EPROTO;
    if (j->ended[e->rank])
        return 0;
    if (!j->failed) /* else we have ended it ourselves */
        judge(j, e->rank, e->pid, (int)e->status);
    root_mark_ended(j, e->rank);
    spread_gone(j);
    return 0;
}

int root_exited(struct root_job *j, const struct msg_in *m, struct err *err)
{
    struct exits e = {0};
    int rc = exits_read(&e, m, err);

    if (rc < 0)
        return rc;
    for (uint32_t i = 0; rc == 0 && i < e.count; i++)
        rc = rank_exited(j, &e.one[i]);
    exits_done(&e);
    root_pmix_exited(j, m);
    return rc < 0 ? err_set(err, rc, "it tells of a rank that there is not") : 0;
}

void root_break_barriers(struct root_job *j)
{
    if (j->broken_sent)
        return;
    j->broken_sent = true;
    root_send_map(j->root, MSG_BROKEN, root_job_map(j), false);
}

int root_failed(struct root_job *j, const struct msg_in *m, struct err *err)
{
    char line[ERR_TEXT_MAX], name[300], *text = NULL;
    uint64_t rank, pid, kind, code;
    int rc;

    if (j->failed)
        return 0;
    if ((rc = msg_get_u64(m, "rank", 0, j->size - 1, &rank, err)) < 0 ||
        (rc = msg_get_u64(m, "pid", 0, UINT32_MAX, &pid, err)) < 0 ||
        (rc = msg_get_u64(m, "kind", BLAME_UNFINALIZED, BLAME_ABORT, &kind, err)) < 0 ||
        (rc = msg_get_u64(m, "code", 1, 255, &code, err)) < 0 || (rc = msg_get_str(m, "text", &text, err)) < 0)
        return rc;
    if (kind == BLAME_ABORT) {
        root_who(j, (uint32_t)rank, 0, name, sizeof(name));
        snprintf(line, sizeof(line), "%s aborted (%u)%s%s", name, (unsigned)code, *text ? ": " : "", text);
    } else {
        root_who(j, (uint32_t)rank, kind == BLAME_UNFINALIZED ? 0 : (uint32_t)pid, name, sizeof(name));
        snprintf(line, sizeof(line), "%s %s", name, text);
    }
    free(text);
    root_blame_rank(j, (uint32_t)rank, (enum blame_kind)kind, (int)code, line);
    if (j == j->root->served && j->root->conf->keep_going) /* no exit of it will tell that it is lost */
        root_break_barriers(j);
    return 0;
}

static void add_lost(struct root *r, const char *host, const char *why)
{
    const char **h;
    char **w;

    for (uint32_t i = 0; i < r->lost_count; i++)
        if (r->lost[i] == host) /* the node itself said why, before its parent noticed */
            return;
    h = realloc(r->lost, (r->lost_count + 1u) * sizeof(*h));
    if (h == NULL)
        return;
    r->lost = h;
    w = realloc(r->lost_why, (r->lost_count + 1u) * sizeof(*w));
    if (w == NULL)
        return;
    r->lost_why = w;
    w[r->lost_count] = strdup(why);
    if (w[r->lost_count] == NULL)
        return;
    h[r->lost_count++] = host;
}

static bool same_reason_before(const struct root *r, uint32_t i)
{
    for (uint32_t k = 0; k < i; k++)
        if (strcmp(r->lost_why[k], r->lost_why[i]) == 0)
            return true;
    return false;
}

void root_say_lost(struct root *r)
{
    const char **same = calloc(r->lost_count + 1u, sizeof(*same));

    for (uint32_t i = 0; same != NULL && i < r->lost_count; i++) {
        struct buf names;
        size_t n = 0;

        if (same_reason_before(r, i))
            continue;
        for (uint32_t k = i; k < r->lost_count; k++)
            if (strcmp(r->lost_why[k], r->lost_why[i]) == 0)
                same[n++] = r->lost[k];
        buf_init(&names, 0);
        if (hostnames_fold(same, n, 300, &names) == 0)
            log_error("%s: %s", buf_str(&names), r->lost_why[i]);
        buf_done(&names);
    }
    free(same);
}

/* Is `place` at or below `top`? */
static bool below(const struct job *j, uint32_t place, uint32_t top)
{
    while (place != top && place != 0)
        place = j->parent[place];
    return place == top;
}

void root_lose_ranks(struct root_job *j, uint32_t place)
{
    const struct root *r = j->root;
    bool spawned = j->id > 0 && j != r->served;

    for (uint32_t rank = 0; rank < j->size; rank++) {
        if (j->ended[rank] || !below(r->first->job, r->place_of[j->node_of[rank]], place))
            continue;
        if (r->conf->keep_going && r->phase == ROOT_RUNNING)
            root_break_barriers(j);
        if (spawned)
            root_spawn_lost(j, rank);
        else
            root_mark_ended(j, rank);
    }
}

static void lose(struct root *r, const char *host, const char *text)
{
    char line[ERR_TEXT_MAX];

    /* While it ends, a host may fall out of it as a consequence. What is lost when all went well may be output. */
    if (r->phase >= ROOT_ENDING && (r->phase != ROOT_DRAINING || r->final || r->blame.kind != BLAME_NONE))
        return;
    snprintf(line, sizeof(line), "%s: %s", host, text);
    add_lost(r, host, text);
    root_blame(r, BLAME_LOST, EXIT_HOST, line);
}

int root_place_lost(struct root *r, const struct msg_in *m, struct err *err)
{
    char *text = NULL, why[ERR_TEXT_MAX];
    const struct job *j = r->first->job;
    uint64_t place;
    int rc;

    if ((rc = msg_get_u64(m, "place", 1, j->parent != NULL ? j->places - 1 : NODES_MAX, &place, err)) < 0 ||
        (rc = msg_get_str(m, "text", &text, err)) < 0)
        return rc;
    if (j->parent == NULL) { /* before all were in */
        int64_t node = r->ops->node_at((uint32_t)place, r->arg);

        if (node >= 0)
            root_node_lost(r, (uint32_t)node, text);
        free(text);
        return 0;
    }
    snprintf(why, sizeof(why), "lost: %s", text);
    free(text);
    if (!r->place_lost[place])
        lose(r, r->plan->node[j->node_at[place]].host, why);
    r->place_lost[place] = true; /* a provider may announce itself what its parent sees then */
    for (struct root_job *rj = r->jobs; rj != NULL; rj = rj->next)
        root_lose_ranks(rj, (uint32_t)place);
    return 0;
}

/* It was told to end, by its user or as its pod is evicted. It is still there, and ends with the run. */
int root_place_leaves(struct root *r, const struct msg_in *m, struct err *err)
{
    const struct job *j = r->first->job;
    char why[ERR_TEXT_MAX];
    uint64_t place, sig;
    int64_t node;
    int rc;

    if ((rc = msg_get_u64(m, "place", 1, j->parent != NULL ? j->places - 1 : NODES_MAX, &place, err)) < 0 ||
        (rc = msg_get_u64(m, "signal", 1, 64, &sig, err)) < 0)
        return rc;
    node = j->parent != NULL ? (int64_t)j->node_at[place] : r->ops->node_at((uint32_t)place, r->arg);
    if (node < 0)
        return 0;
    snprintf(why, sizeof(why), "it was told to end: signal %u (%s)", (unsigned)sig, strsignal((int)sig));
    lose(r, r->plan->node[node].host, why);
    return 0;
}

void root_node_lost(struct root *r, uint32_t node, const char *text)
{
    char why[ERR_TEXT_MAX];

    snprintf(why, sizeof(why), "lost: %s", text);
    lose(r, r->plan->node[node].host, why);
}

int root_start_refused(struct root_job *j, const struct msg_in *m, struct err *err)
{
    const struct root *r = j->root;
    char line[ERR_TEXT_MAX], *text = NULL;
    uint64_t place, rank, status;
    const char *host = "?";
    int rc;

    if (j->id > 0 && j != r->served)
        return root_spawn_refused(j, m, err);
    if (j->job->parent == NULL)
        return err_set(err, -EPROTO, "no node has the job yet");
    if ((rc = msg_get_u64(m, "place", 0, j->job->places - 1, &place, err)) < 0 ||
        (rc = msg_get_u64(m, "rank", 0, j->size - 1, &rank, err)) < 0 ||
        (rc = msg_get_u64(m, "status", 1, 255, &status, err)) < 0 || (rc = msg_get_str(m, "text", &text, err)) < 0)
        return rc;
    if (j->job->node_at[place] < r->plan->node_count)
        host = r->plan->node[j->job->node_at[place]].host;
    if (j == r->served)
        snprintf(line, sizeof(line), "--serve: %s", text);
    else if (r->conf->serve_count > 0)
        snprintf(line, sizeof(line), "COMMAND: %s", text);
    else
        snprintf(line, sizeof(line), "rank %u on %s: %s", (unsigned)rank, host, text);
    if (status == EXIT_NOT_FOUND && conf_looks_like_unquoted_hosts(r->conf))
        strncat(line, " (was the host list to be quoted?)", sizeof(line) - strlen(line) - 1);
    free(text);
    root_blame(j->root, BLAME_STATUS, (int)status, line);
    return 0;
}

void root_left(struct root_job *j)
{
    spread_gone(j);
}

/* Somebody waits in a barrier, and some rank is gone: every node is to look at those of its own. */
int root_waits(struct root_job *j, const struct msg_in *m, struct err *err)
{
    struct barrier_id id;
    struct msg_out *out;
    uint64_t round, pmi;
    int rc = barrier_read(m, &id, &round, err);

    if (rc < 0)
        return rc;
    out = root_job_map(j);
    if (out != NULL) {
        barrier_put(out, &id, round);
        if (msg_get_u64(m, "pmi", 0, j->size - 1, &pmi, NULL) == 0)
            msg_put_u64(out, "pmi", pmi);
    }
    root_send_map(j->root, MSG_CHECK, out, false);
    return 0;
}

/* The barrier alone, as others that this rank is no member of go on. */
static void break_barrier(struct root_job *j, const struct barrier_id *id, uint64_t round)
{
    struct msg_out *m = root_job_map(j);

    if (m != NULL)
        barrier_put(m, id, round);
    root_send_map(j->root, MSG_BROKEN, m, false);
}

/* Why `rank` does not come to it. */
static void say_stuck(const struct root_job *j, uint32_t rank, const struct barrier_id *id, uint64_t round,
                      const struct msg_in *m, bool left, struct err *out)
{
    char name[300], other[300], which[150];
    uint64_t pmi;

    barrier_text(id, round, which, sizeof(which));
    root_who(j, rank, 0, name, sizeof(name));
    if (msg_get_u64(m, "pmi", 0, j->size - 1, &pmi, NULL) == 0) {
        root_who(j, (uint32_t)pmi, 0, other, sizeof(other));
        err_set(out, -EPIPE,
                "%s uses PMIx, but %s waits for it in %s of PMI: they cannot meet, as of Open MPI and MPICH", name,
                other, which);
        return;
    }
    err_set(out, -EPIPE, "%s %s before %s", name,
            !left                         ? "exited"
            : id->set == BARRIER_SET_PMIX ? "finalized PMIx"
                                          : "closed PMI",
            which);
}

int root_stuck(struct root_job *j, const struct msg_in *m, struct err *err)
{
    struct barrier_id id;
    struct err line = {0};
    uint64_t rank, round;
    bool left;
    int rc;

    if ((rc = msg_get_u64(m, "rank", 0, j->size - 1, &rank, err)) < 0 ||
        (rc = msg_get_bool(m, "left", &left, err)) < 0 || (rc = barrier_read(m, &id, &round, err)) < 0)
        return rc;
    if (j->root->phase != ROOT_RUNNING)
        return 0;
    if (j->root->conf->keep_going)
        break_barrier(j, &id, round);
    say_stuck(j, (uint32_t)rank, &id, round, m, left, &line);
    root_blame_rank(j, (uint32_t)rank, BLAME_UNFINALIZED, 1, line.text);
    return 0;
}

#define LOGGED_MAX 2000 /* a login's whole command has room in it */

void root_log(struct root *r, const struct msg_in *m)
{
    uint64_t level, node;
    struct span line;
    struct buf text = {0};
    const char *host = "?";

    if (msg_get_u64(m, "level", LOG_ERROR, LOG_DEBUG, &level, NULL) < 0 ||
        msg_get_u64(m, "node", 0, UINT32_MAX, &node, NULL) < 0 || msg_get_bin(m, "line", &line, NULL) < 0)
        return;
    if (node < r->plan->node_count)
        host = r->plan->node[node].host;
    void (*const say[])(const char *fmt, ...) = {log_error, log_warn, log_info, log_debug};
    if (line.n > LOGGED_MAX)
        line.n = LOGGED_MAX;
    if (buf_add_escaped(&text, line) == 0 && buf_str(&text) != NULL)
        say[level]("%s: %s", host, text.p);
    else
        say[level]("%s: %s", host, log_escape(line));
    buf_done(&text);
}
