/* SPDX-License-Identifier: BSD-3-Clause */
/* node_serve.c - --serve: ranks that something else starts, over plain TCP from the ranges named
 *
 * A rank is no process here. It has come when its session 0 has said who it is, and is away when that has closed; a
 * further program may come as the same rank. Only COMMAND's end makes an end of it: then the ranks of the job have
 * ended once each of them has finalized or gone.
 */
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include "common/hostlist.h"
#include "common/io/log.h"
#include "common/util.h"
#include "server/barrier_msg.h"
#include "server/blame.h"
#include "server/node_attrs.h"
#include "server/node_priv.h"

#define BACKLOG 4096
#define MISSING_MS 10000 /* COMMAND has ended, so that who has not come now probably never will */
#define KEEPALIVE_IDLE_S 10
#define KEEPALIVE_EVERY_S 5

/* An address from where somebody was refused. */
struct warned {
    UT_hash_handle hh;
    uint32_t addr;
    unsigned said;
};

struct serve {
    const struct serve_conf *conf; /* lent */
    uint32_t *addr;                /* [ranks] from where each came last; 0: it has not */
    uint32_t came;
    struct warned *warned;
    uv_timer_t patience; /* since a rank came or went last */
    bool ending;         /* the run is being ended: once COMMAND is over nobody is waited for */
    bool over;
};

/* --- who is refused --------------------------------------------------------------------------------------------- */

/* Nobody fills the log: each address is told of so often, and so many addresses. */
static bool may_warn(struct serve *s, uint32_t addr, unsigned limit)
{
    struct warned *w;

    HASH_FIND(hh, s->warned, &addr, sizeof(addr), w);
    if (w == NULL) {
        w = HASH_COUNT(s->warned) >= SERVE_WARNED_MAX ? NULL : calloc(1, sizeof(*w));
        if (w == NULL)
            return false;
        w->addr = addr;
        HASH_ADD(hh, s->warned, addr, sizeof(w->addr), w);
        if (w->hh.tbl == NULL) {
            free(w);
            return false;
        }
    }
    return w->said < limit && ++w->said > 0;
}

static void refused(struct node_job *j, uint32_t addr, unsigned limit, const char *why)
{
    char text[IPV4_TEXT_MAX];

    if (may_warn(j->serve, addr, limit))
        log_warn("a connection from %s is refused: %s", ipv4_text(addr, text), why);
}

void node_serve_refused(struct node_job *j, uint32_t addr, const char *why)
{
    refused(j, addr, SERVE_WARNINGS_MAX, why);
}

/* --- connections ------------------------------------------------------------------------------------------------ */

/* A host that is gone without a word is noticed as soon as a silent link between nodes is. */
static void set_options(int fd)
{
    const int on = 1, idle = KEEPALIVE_IDLE_S, every = KEEPALIVE_EVERY_S;
    const unsigned lost = LINK_LOST_MS;

    (void)setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof(on));
    (void)setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle, sizeof(idle));
    (void)setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &every, sizeof(every));
    (void)setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &lost, sizeof(lost));
}

bool node_serve_lets_in(struct node_job *j, int fd, uint32_t addr)
{
    const struct serve_conf *conf = j->serve->conf;

    if (!serve_has(conf->range, conf->count, addr)) {
        refused(j, addr, 1, "it is in no range of --serve");
        return false;
    }
    set_options(fd);
    node_port_make_room(j);
    return true;
}

static int listen_at(const struct serve_conf *conf, uint16_t port)
{
    return node_port_listen(conf->listen_all ? INADDR_ANY : conf->addr, port, BACKLOG);
}

static int listen_in_range(const struct serve_conf *conf)
{
    int fd = listen_at(conf, conf->low);

    for (unsigned port = conf->low + 1u; fd == -EADDRINUSE && port <= conf->high; port++)
        fd = listen_at(conf, (uint16_t)port);
    return fd;
}

static void announce(const struct node_job *j)
{
    const struct serve_conf *conf = j->serve->conf;
    struct buf ranges = {0};
    char addr[IPV4_TEXT_MAX];

    for (size_t i = 0; i < conf->count; i++)
        (void)buf_printf(&ranges, "%s%s/%d", i == 0 ? "" : ",", ipv4_text(conf->range[i].base, addr),
                         __builtin_popcount(conf->range[i].mask));
    log_warn("serving %u rank%s at %s:%u, open to everybody in %s", j->job->size, j->job->size == 1 ? "" : "s",
             ipv4_text(conf->addr, addr), node_port_number(j), buf_str(&ranges) == NULL ? "?" : ranges.p);
    buf_done(&ranges);
}

/* --- life ------------------------------------------------------------------------------------------------------- */

static void on_patience(uv_timer_t *h);

int node_serve_open(struct node_job *j, struct err *err)
{
    struct serve *s = calloc(1, sizeof(*s));
    int fd;

    j->serve = s;
    if (s == NULL || (s->addr = calloc(j->task_count, sizeof(*s->addr))) == NULL)
        return err_set(err, -ENOMEM, "out of memory");
    s->conf = j->node->conf.serve;
    uv_timer_init(j->node->loop, &s->patience);
    s->patience.data = j;
    j->handles++;
    j->node->served = j;
    j->sjob.mapping_later = true;
    fd = listen_in_range(s->conf);
    if (fd < 0)
        return err_set(err, fd, "cannot listen on port %u: %s", s->conf->low, strerror(-fd));
    fd = node_port_watch(j, fd);
    if (fd < 0)
        return err_set(err, fd, "cannot watch its port: %s", strerror(-fd));
    announce(j);
    return 0;
}

static void on_patience_closed(uv_handle_t *h)
{
    node_job_unref(h->data);
}

void node_serve_close(struct node_job *j)
{
    if (j->serve == NULL || j->node->served != j)
        return;
    j->node->served = NULL;
    uv_close((uv_handle_t *)&j->serve->patience, on_patience_closed);
}

void node_serve_free(struct serve *s)
{
    struct warned *w, *next;

    if (s == NULL)
        return;
    HASH_ITER(hh, s->warned, w, next)
    {
        HASH_DEL(s->warned, w);
        free(w);
    }
    free(s->addr);
    free(s);
}

void node_serve_address(const struct node *n, char *out, size_t size)
{
    char addr[IPV4_TEXT_MAX];

    snprintf(out, size, "%s:%u", ipv4_text(n->served->serve->conf->addr, addr), node_port_number(n->served));
}

/* --- ranks come and go ------------------------------------------------------------------------------------------ */

/* COMMAND is the only task of the first job. */
static bool command_is_over(const struct node *n)
{
    const struct node_job *j = n->jobs;

    while (j->next != NULL)
        j = j->next;
    return j->task_count > 0 && j->task[0].state == TASK_ENDED;
}

static void be_patient(struct node_job *j)
{
    uint64_t ms = j->serve->conf->patience_ms;

    if (j->closing || j->serve->over)
        return;
    if (command_is_over(j->node))
        ms = MIN(ms, (uint64_t)MISSING_MS);
    uv_timer_start(&j->serve->patience, on_patience, ms, ms);
}

void node_serve_start(struct node_job *j)
{
    j->running = j->task_count;
    be_patient(j);
}

/* Whatever it is by now: also, that there is none. */
static void mapping_known(struct node_job *j)
{
    j->sjob.mapping_later = false;
    for (uint32_t i = 0; i < j->task_count; i++)
        for (struct pmi_conn *c = j->task[i].conns; c != NULL; c = c->hh.next)
            session_mapping_known(c->session);
}

static void make_mapping(struct node_job *j)
{
    struct buf text = {0};
    int rc = serve_mapping(j->serve->addr, j->task_count, &text);

    if (rc == 0)
        rc = kvs_preput(j->kvs, span_of("PMI_process_mapping"), buf_span(&text));
    if (rc == -E2BIG)
        log_info("the process mapping is too long for PMI clients and is left out");
    else if (rc < 0)
        log_error("out of memory for the process mapping");
    buf_done(&text);
    mapping_known(j);
}

/* From where a rank has come; 0: it has not, after all. */
static void set_address(const struct task *t, uint32_t addr)
{
    struct serve *s = t->job->serve;
    struct msg_out *m;

    if (s->addr[t->slot] == addr)
        return;
    s->came -= s->addr[t->slot] != 0;
    s->came += addr != 0;
    s->addr[t->slot] = addr;
    m = node_job_map(t->job);
    if (m != NULL) {
        msg_put_u64(m, "rank", t->rank);
        msg_put_u64(m, "addr", addr);
    }
    node_send_map(t->job->node, MSG_CAME, m, false);
}

void node_serve_came(struct pmi_conn *c)
{
    struct node_job *j = c->job;

    if (c->set != 0)
        return;
    c->task->state = TASK_STARTED;
    set_address(c->task, c->addr);
    be_patient(j);
    if (j->sjob.mapping_later && j->serve->came == j->task_count)
        make_mapping(j);
}

void node_serve_left(struct pmi_conn *c)
{
    struct node_job *j = c->job;

    /* It took the place of a rank and never began: what it was is not for the mapping. */
    if (c->set == 0 && session_phase(c->session) == SESSION_NEW && j->sjob.mapping_later)
        set_address(c->task, 0);
    be_patient(j);
    node_serve_check(j->node);
}

void node_serve_broken(struct node_job *j)
{
    if (j->sjob.mapping_later)
        mapping_known(j);
}

/* --- ranks that do not come ------------------------------------------------------------------------------------- */

static bool anyone_waits(const struct node_job *j)
{
    for (uint32_t i = 0; i < j->task_count; i++)
        for (const struct pmi_conn *c = j->task[i].conns; c != NULL; c = c->hh.next)
            if (session_is_waiting(c->session))
                return true;
    return false;
}

/* Who is awaited and not there: ranks that have never come, or else members of a barrier that are away. One whose
 * session 0 is there may yet begin another. */
struct absent {
    const struct node_job *j;
    uint32_t *slots, count;
    char which[150]; /* the barrier; "" of those that have never come */
};

static void absent_from(const struct barrier_id *id, uint64_t round, void *arg)
{
    struct absent *a = arg;
    const struct node_job *j = a->j;

    if (a->count > 0) /* in one that was found before */
        return;
    for (uint32_t i = 0; i < j->task_count; i++)
        if (node_barrier_misses(&j->task[i], id, round) && node_pmi_find(j, i, 0) == NULL &&
            node_pmi_find(j, i, id->set) == NULL)
            a->slots[a->count++] = i;
    if (a->count > 0)
        barrier_text(id, round, a->which, sizeof(a->which));
}

static void find_absent(struct absent *a)
{
    const struct node_job *j = a->j;

    for (uint32_t i = 0; i < j->task_count; i++)
        if (j->serve->addr[i] == 0)
            a->slots[a->count++] = i;
    if (a->count == 0)
        barriers_each_awaiting(j->barriers, absent_from, a);
}

static void blame_absent(const struct absent *a)
{
    struct buf text = {0};
    bool came = a->which[0] != '\0';
    int rc = came ? buf_printf(&text, "left before %s", a->which) : buf_add_str(&text, "has not come");

    if (rc == 0 && a->count > 1) {
        const char *joint = came ? "as did" : a->count == 2 ? "nor has" : "nor have";

        (void)buf_printf(&text, ", %s rank%s ", joint, a->count == 2 ? "" : "s");
        (void)numbers_fold(a->slots + 1, a->count - 1, 120, &text); /* all ranks are on this node: slots are ranks */
    }
    if (buf_str(&text) != NULL)
        node_task_failure(&a->j->task[a->slots[0]], BLAME_UNFINALIZED, 1, text.p);
    buf_done(&text);
}

/* Said who it is, and nothing since: it is not to hold up the end. */
static void drop_idle(struct node_job *j)
{
    struct pmi_conn *c, *next;

    for (uint32_t i = 0; i < j->task_count; i++)
        HASH_ITER(hh, j->task[i].conns, c, next)
        {
            if (c->closing || session_phase(c->session) != SESSION_NEW)
                continue;
            node_serve_refused(j, c->addr, "it has said which rank it is and has not begun");
            pmi_conn_close(c);
        }
}

/* For a while nobody has come or gone. */
static void on_patience(uv_timer_t *h)
{
    struct node_job *j = h->data;
    struct absent a = {.j = j};

    if (j->serve->ending)
        return;
    if (command_is_over(j->node))
        drop_idle(j);
    if (j->serve->over || !anyone_waits(j))
        return;
    a.slots = calloc(j->task_count, sizeof(*a.slots));
    if (a.slots == NULL)
        return; /* it is tried again */
    find_absent(&a);
    if (a.count > 0)
        blame_absent(&a);
    else
        node_attrs_absent(j);
    free(a.slots);
}

/* --- the end ---------------------------------------------------------------------------------------------------- */

static bool all_are_through(const struct node_job *j)
{
    for (uint32_t i = 0; i < j->task_count; i++)
        for (const struct pmi_conn *c = j->task[i].conns; c != NULL; c = c->hh.next)
            if (session_phase(c->session) != SESSION_FINALIZED)
                return false;
    return true;
}

/* What is still connected is let go: a rank that waits for an answer notices that. */
static void finish(struct node_job *j)
{
    j->serve->over = true;
    uv_timer_stop(&j->serve->patience);
    node_port_close(j);
    for (uint32_t i = 0; i < j->task_count; i++) {
        task_pmi_close(&j->task[i]);
        node_task_over(&j->task[i], 0);
    }
}

void node_serve_check(struct node *n)
{
    struct node_job *j = n->served;

    if (j == NULL || j->closing || j->serve->over || j->running == 0 || !command_is_over(n))
        return;
    if (j->serve->ending || all_are_through(j))
        finish(j);
}

void node_serve_command_over(struct node *n)
{
    if (n->served != NULL && n->served->running > 0)
        be_patient(n->served);
    node_serve_check(n);
}

void node_serve_end(struct node *n)
{
    if (n->served == NULL)
        return;
    n->served->serve->ending = true;
    node_port_close(n->served);
    node_serve_check(n);
}
