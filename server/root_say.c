/* SPDX-License-Identifier: BSD-3-Clause */
/* root_say.c - who is awaited, in words: at the time limit, at a signal that ends the run, where a barrier is slow, and
 * at QUIT with all else that is known of the run
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "common/hostlist.h"
#include "common/io/log.h"
#include "server/group.h"
#include "server/pmix_sig.h"
#include "server/root_report.h"

#define FOLDED_MAX 120 /* bytes of folded ranks or hosts in a line */
#define QUEUES_MAX 400 /* bytes of what is said of queues */
#define LIVING_MAX 400 /* and of tasks that are given up */

/* --- names ------------------------------------------------------------------------------------------------------ */

/* " on hosta,hostb", or " at 10.0.0.1,10.0.0.2" of ranks from elsewhere. */
static void say_where(const struct root_job *j, const uint32_t *ranks, uint32_t count, struct buf *out)
{
    const char **hosts = calloc(count + 1u, sizeof(*hosts));
    char(*addr)[IPV4_TEXT_MAX] = calloc(count + 1u, sizeof(*addr));
    size_t n = 0;

    for (uint32_t i = 0; hosts != NULL && addr != NULL && i < count; i++) {
        const char *host = j->addr == NULL ? root_host(j, ranks[i]) : ipv4_text(j->addr[ranks[i]], addr[i]);

        if ((j->addr == NULL || j->addr[ranks[i]] != 0) && (n == 0 || strcmp(hosts[n - 1], host) != 0))
            hosts[n++] = host;
    }
    if (n > 0) {
        (void)buf_add_str(out, j->addr == NULL ? " on " : " at ");
        (void)hostnames_fold(hosts, n, FOLDED_MAX, out);
    }
    free(hosts);
    free(addr);
}

/* "rank 1", "ranks 1-2 on h[0-1]"; `ranks` are ascending. */
static void say_ranks(const struct root_job *j, const uint32_t *ranks, uint32_t count, bool where, struct buf *out)
{
    (void)buf_add_str(out, count == 1 ? "rank " : "ranks ");
    (void)numbers_fold(ranks, count, FOLDED_MAX, out);
    if (where)
        say_where(j, ranks, count, out);
}

static void say_job(const struct root_job *j, struct buf *out)
{
    if (j->id > 0 && j != j->root->served)
        (void)buf_printf(out, " of job %u", j->id);
}

static uint32_t place_of_rank(const struct root_job *j, uint32_t rank)
{
    return j->root->place_of[j->node_of[rank]];
}

/* Has the node of this rank answered? Where ranks come from elsewhere, they are at the launcher. */
static bool is_known(const struct root_job *j, uint32_t rank)
{
    return j->addr != NULL || j->root->asked->answered[place_of_rank(j, rank)];
}

static void add_pmix_members(const struct wait *w, bool *member)
{
    struct span rest = buf_span(&w->group);
    struct pmix_member m;

    while (pmix_sig_next(&rest, &m) == 1)
        for (uint32_t i = m.first; m.job == w->job->id && i <= m.last && i < w->job->size; i++)
            member[i] = true;
}

static void add_members(const struct wait *w, bool *member)
{
    struct span rest = buf_span(&w->group);
    struct group_part part;

    if (w->pmix) {
        add_pmix_members(w, member);
        return;
    }
    if (span_is(rest, "WORLD") || span_is(rest, "NODE")) {
        for (uint32_t i = 0; i < w->job->size; i++)
            member[i] = w->node == TREE_NONE || w->job->node_of[i] == w->node;
        return;
    }
    while (group_next(&rest, &part) == 1 && part.last < w->job->size)
        for (uint32_t i = part.first; i <= part.last; i += part.step)
            member[i] = true;
}

/* The members that are awaited, ascending, fresh; NULL: out of memory. Of those at nodes that have not answered nothing
 * is known. */
static uint32_t *awaited(const struct wait *w, uint32_t *count)
{
    bool *member = calloc(w->job->size, sizeof(*member));
    uint32_t *ranks = calloc(w->job->size, sizeof(*ranks));

    *count = 0;
    if (member != NULL && ranks != NULL) {
        add_members(w, member);
        for (uint32_t i = 0; i < w->job->size; i++)
            if (member[i] && !w->in[i] && !w->ended[i] && is_known(w->job, i))
                ranks[(*count)++] = i;
    }
    free(member);
    return ranks;
}

/* "; no word from h3" */
static void say_mute(const struct root *r, const char *before, struct buf *out)
{
    const char **hosts = calloc(r->plan->node_count + 1u, sizeof(*hosts));
    size_t n = 0;

    for (uint32_t i = 0; hosts != NULL && i < r->plan->node_count; i++)
        if (!r->asked->answered[r->place_of[i]] && !r->place_lost[r->place_of[i]])
            hosts[n++] = r->plan->node[i].host;
    if (n > 0) {
        (void)buf_printf(out, "%sno word from ", before);
        (void)hostnames_fold(hosts, n, FOLDED_MAX, out);
    }
    free(hosts);
}

/* Over PMIx it is known which nodes are awaited, and not for which of several ranks. */
static const char *not_in(const struct wait *w, const uint32_t *ranks, uint32_t count)
{
    if (w->pmix && w->group.len > 0 && *w->group.p == PMIX_SIG_KEYS)
        return ", not put by ";
    for (uint32_t i = 1; w->pmix && i < count; i++)
        if (w->job->node_of[ranks[i]] == w->job->node_of[ranks[i - 1]])
            return ", not entered by all of ";
    return ", not entered by ";
}

/* "barrier 2 of job 3", and who is awaited: ", not entered by rank 1 on h1; no word from h2" */
static void say_wait(const struct wait *w, const char *middle, struct buf *out)
{
    uint32_t count, *ranks = awaited(w, &count);

    (void)buf_add_str(out, w->text);
    say_job(w->job, out);
    (void)buf_add_str(out, middle);
    if (ranks != NULL && count > 0) {
        (void)buf_add_str(out, not_in(w, ranks, count));
        say_ranks(w->job, ranks, count, true, out);
    }
    free(ranks);
    say_mute(w->job->root, "; ", out);
}

/* Of --serve: those that have come, and from where, are known by the launcher. */
static void say_served(const struct root_job *j, struct buf *out)
{
    struct buf text = {0};

    if (root_serve_missing(j, &text) > 0 && buf_str(&text) != NULL)
        (void)buf_printf(out, "; %s", text.p);
    buf_done(&text);
}

/* "stopped by a signal: rank 1 on h1, ranks 0-2 of job 3 on h[0-1]", behind `before`. True: there are such. */
static bool say_stopped(const struct report *p, const char *before, struct buf *out)
{
    bool any = false;

    for (unsigned i = 0; p != NULL && i < p->job_count; i++) {
        const struct root_job *j = p->job[i].job;
        uint32_t *ranks = calloc(j->size, sizeof(*ranks)), n = 0;

        for (uint32_t k = 0; ranks != NULL && k < j->size; k++)
            if (p->job[i].stopped[k])
                ranks[n++] = k;
        if (n > 0) {
            (void)buf_printf(out, "%s", any ? ", " : before);
            (void)buf_add_str(out, any ? "" : "stopped by a signal: ");
            say_ranks(j, ranks, n, false, out);
            say_job(j, out);
            say_where(j, ranks, n, out);
            any = true;
        }
        free(ranks);
    }
    return any;
}

static void say_phase(const struct root *r, struct buf *out)
{
    uint32_t joined = 0, total = 0;

    if (r->phase == ROOT_STARTING) {
        (void)buf_add_str(out, " while hosts were started, waiting for ");
        r->ops->waiting(out, &joined, &total, r->arg);
    } else if (r->phase == ROOT_PREPARING) {
        (void)buf_add_str(out, " while the nodes got ready");
    } else if (r->phase == ROOT_DRAINING) {
        (void)buf_add_str(out, " while the last output was written");
    } else if (r->asked != NULL && r->asked->waits != NULL) {
        (void)buf_add_str(out, " in ");
        say_wait(r->asked->waits, "", out);
    } else {
        (void)buf_add_str(out, " while the tasks ran");
        if (r->asked != NULL)
            say_mute(r, "; ", out);
    }
    if (r->served != NULL)
        say_served(r->served, out);
    (void)say_stopped(r->asked, "; ", out);
}

/* --- the occasions ---------------------------------------------------------------------------------------------- */

static void say_line(struct buf *text)
{
    if (buf_str(text) != NULL)
        log_error("%s", text->p);
    buf_done(text);
}

void root_say_time(struct root *r)
{
    struct buf text;

    buf_init(&text, 0);
    (void)buf_printf(&text, "the time limit of %g s is over", (double)r->conf->timeout_ms / 1000.0);
    say_phase(r, &text);
    root_decide(r, EXIT_TIMEOUT, buf_str(&text));
    buf_done(&text);
}

void root_say_limit(struct root *r)
{
    if (r->final || r->phase >= ROOT_ENDING)
        return;
    root_say_time(r);
    root_end(r, SIGTERM);
}

static const char *signal_name(int sig)
{
    return sig == SIGINT ? "INT" : sig == SIGTERM ? "TERM" : "HUP";
}

/* Nothing where the run just went on: but for a pod, as nobody sits there, and the others' logs refer to this one. */
static void tell_signal(const struct root *r)
{
    bool any = r->asked->waits != NULL;
    struct buf text;

    buf_init(&text, 0);
    (void)buf_printf(&text, "ended by %s", signal_name(r->asked->sig));
    if (any) {
        (void)buf_add_str(&text, " in ");
        say_wait(r->asked->waits, "", &text);
    } else if (r->conf->bootstrap == BOOT_K8S) {
        (void)buf_add_str(&text, ": this pod was told to end");
        any = true;
    }
    any = say_stopped(r->asked, "; ", &text) || any;
    if (any)
        say_line(&text);
    else
        buf_done(&text);
}

/* "; ranks 1-2 of job 3 on h[0-1]": those of a job that have not ended. */
static void say_living(const struct root_job *j, const char *before, struct buf *out)
{
    uint32_t *ranks = calloc(j->size, sizeof(*ranks)), n = 0;

    for (uint32_t i = 0; ranks != NULL && i < j->size; i++)
        if (!j->ended[i])
            ranks[n++] = i;
    (void)buf_add_str(out, before);
    if (n > 0 && j == j->root->first && j->root->served != NULL)
        (void)buf_add_str(out, "COMMAND");
    else if (n > 0) {
        (void)buf_add_str(out, n == 1 ? "rank " : "ranks ");
        (void)numbers_fold(ranks, n, FOLDED_MAX, out);
        say_job(j, out);
        say_where(j, ranks, n, out);
    }
    free(ranks);
}

void root_say_given_up(const struct root *r)
{
    uint32_t ended = 0;
    struct buf who;

    buf_init(&who, 0);
    for (const struct root_job *j = r->jobs; j != NULL; j = j->next) {
        if (j == r->served)
            continue;
        ended += j->ended_count;
        if (j->ended_count < j->size && who.len < LIVING_MAX) /* the counts tell that there are more */
            say_living(j, who.len > 0 ? "; " : ": ", &who);
    }
    log_warn("%u of %u tasks have not ended, giving them up%s", r->task_total - ended, r->task_total,
             buf_str(&who) != NULL ? who.p : "");
    buf_done(&who);
}

void root_say_start_ended(const struct root *r, int sig)
{
    struct buf text;

    buf_init(&text, 0);
    (void)buf_printf(&text, "ended by %s", signal_name(sig));
    say_phase(r, &text);
    say_line(&text);
}

static void tell_slow(const struct root *r, const struct slow_barrier *s)
{
    char lasts[64];

    snprintf(lasts, sizeof(lasts), " has lasted %g s", (double)r->conf->barrier_warn_ms / 1000.0);
    for (const struct wait *w = r->asked->waits; w != NULL; w = w->next)
        if (w->job->id == s->job && strcmp(w->text, s->text) == 0) {
            struct buf text;

            buf_init(&text, 0);
            say_wait(w, lasts, &text);
            (void)say_stopped(r->asked, "; ", &text);
            say_line(&text);
            return; /* where it is not found it is complete by now */
        }
}

static void tell_ranks(const struct root_job *j)
{
    uint32_t *ended = calloc(j->size, sizeof(*ended)), n = 0;
    struct buf text;

    for (uint32_t i = 0; ended != NULL && i < j->size; i++)
        if (j->ended[i])
            ended[n++] = i;
    buf_init(&text, 0);
    (void)buf_printf(&text, "state: %u rank%s", j->size, j->size == 1 ? "" : "s");
    say_job(j, &text);
    (void)buf_printf(&text, ", %u run%s", j->size - j->ended_count, j->size - j->ended_count == 1 ? "s" : "");
    if (n > 0) {
        (void)buf_add_str(&text, "; ended: ");
        say_ranks(j, ended, n, false, &text);
    }
    if (j == j->root->served)
        say_served(j, &text);
    free(ended);
    say_line(&text);
}

/* "state: barrier 2: entered by ranks 0-1 on login, not entered by rank 2 on h1" */
static void tell_wait(const struct wait *w)
{
    uint32_t *in = calloc(w->job->size, sizeof(*in)), n = 0;
    struct buf middle, text;

    for (uint32_t i = 0; in != NULL && i < w->job->size; i++)
        if (w->in[i])
            in[n++] = i;
    buf_init(&middle, 0);
    if (w->pmix && w->group.len > 0 && *w->group.p == PMIX_SIG_LOOKUP) /* it says by whom */
        n = 0;
    else
        (void)buf_add_str(&middle, n > 0 ? ": entered by " : ": ");
    if (n > 0)
        say_ranks(w->job, in, n, true, &middle);
    free(in);
    buf_init(&text, 0);
    (void)buf_add_str(&text, "state: ");
    if (buf_str(&middle) != NULL)
        say_wait(w, middle.p, &text);
    buf_done(&middle);
    say_line(&text);
}

static void tell_queues(const struct root *r)
{
    struct buf text;

    buf_init(&text, 0);
    (void)buf_printf(&text, "state: bytes that wait: %zu of the tasks' output here", outmux_queued(r->out));
    for (uint32_t i = 0; i < r->plan->node_count; i++) {
        uint64_t queued = r->asked->queued[r->place_of[i]];

        if (queued > 0 && text.len < QUEUES_MAX)
            (void)buf_printf(&text, ", %llu at %s", (unsigned long long)queued, r->plan->node[i].host);
    }
    say_line(&text);
}

static const char *all_joined(uint32_t total, char *text, size_t size)
{
    if (total == 1)
        return "the only host has joined";
    snprintf(text, size, "all %u hosts have joined", total);
    return text;
}

void root_say_start(const struct root *r)
{
    uint32_t joined = 0, total = 0;
    char text[64];
    struct buf names;

    buf_init(&names, 0);
    r->ops->waiting(&names, &joined, &total, r->arg);
    if (r->phase == ROOT_STARTING && buf_str(&names) != NULL)
        log_error("state: %u of %u hosts have joined%s%s", joined, total, names.len > 0 ? ", waiting for " : "",
                  names.p);
    else
        log_error("state: %s; %s directories and programs", all_joined(total, text, sizeof(text)),
                  total == 1 ? "it looks at" : "they look at");
    buf_done(&names);
}

static void tell_traffic(const struct root *r)
{
    struct buf text;

    buf_init(&text, 0);
    (void)buf_add_str(&text, "state: the launcher's links: ");
    r->ops->traffic(&text, r->arg);
    say_line(&text);
}

static void tell_state(const struct root *r)
{
    char text[64];
    struct buf mute, stopped;

    log_error("state: %s%s", all_joined(r->plan->node_count, text, sizeof(text)),
              r->phase == ROOT_ENDING     ? "; the run is being ended"
              : r->phase == ROOT_DRAINING ? "; every rank has ended, the last output is written"
                                          : "");
    for (const struct root_job *j = r->jobs; j != NULL; j = j->next)
        if (j->ended_count < j->size || j == r->first)
            tell_ranks(j);
    for (const struct wait *w = r->asked->waits; w != NULL; w = w->next)
        tell_wait(w);
    if (r->asked->left_out > 0)
        log_error("state: and more barriers, %u times a node's", r->asked->left_out);
    buf_init(&stopped, 0);
    if (say_stopped(r->asked, "state: ", &stopped))
        say_line(&stopped);
    else
        buf_done(&stopped);
    tell_queues(r);
    tell_traffic(r);
    buf_init(&mute, 0);
    say_mute(r, "state: ", &mute);
    if (mute.len > 0)
        say_line(&mute);
    else
        buf_done(&mute);
}

void root_say_report(struct root *r)
{
    const struct report *p = r->asked;

    if (p->why & ASK_STATE)
        tell_state(r);
    for (unsigned i = 0; i < p->slow_count; i++)
        tell_slow(r, &p->slow[i]);
    if (p->why & ASK_SIGNAL)
        tell_signal(r);
    if (p->why & ASK_LIMIT)
        root_say_limit(r);
}
