/* SPDX-License-Identifier: BSD-3-Clause */
/* scale_clock.c - the schedule of a tree of logins (bootstrap/share.h) under a clock of its own: for more hosts than a
 * machine can play
 *
 *     scale_clock [--login=US] [--gap=US] [--hop=US] [--width=K] [--logins=N] HOSTS...
 *
 * Callers begin one login after the other, each of which keeps them for --gap; --login after its begin a host is up and
 * known to its caller. Words from one node to another (hosts that are dealt, requests for more) take --hop. Prints a
 * row of a table for each number of hosts: when the last is up, the bound N(t) = N(t - gap) + N(t - login), what a flat
 * start would take, and how wide and deep the tree is.
 */
#include <assert.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "bootstrap/share.h"

#define NONE UINT32_MAX

enum kind { UP, DEALT, WANTED };

struct event {
    uint64_t at, seq; /* those of one moment in the order in which they were made */
    enum kind kind;
    uint32_t to, from; /* UP: `from` has come up by a login of `to` */
    struct share_range range;
};

struct node {
    struct share *share; /* NULL: not up */
    uint32_t parent, depth, children;
    uint64_t busy_until;
};

struct world {
    uint32_t hosts, width, logins;
    uint64_t login_us, gap_us, hop_us;
    struct node *node; /* [hosts + 1]: 0 is the launcher */
    struct event *heap;
    size_t events, room;
    uint64_t seq, words; /* sent from node to node */
    uint64_t end_us;
    uint32_t up, deepest, widest;
};

static void *must(void *p)
{
    if (p == NULL) {
        fputs("scale_clock: out of memory\n", stderr);
        exit(1);
    }
    return p;
}

static bool is_before(const struct event *a, const struct event *b)
{
    return a->at != b->at ? a->at < b->at : a->seq < b->seq;
}

static void swap(struct event *a, struct event *b)
{
    struct event t = *a;

    *a = *b;
    *b = t;
}

static void push(struct world *w, struct event e)
{
    size_t i = w->events++;

    if (i == w->room) {
        w->room = w->room == 0 ? 1024 : 2 * w->room;
        w->heap = must(realloc(w->heap, w->room * sizeof(*w->heap)));
    }
    e.seq = w->seq++;
    w->heap[i] = e;
    for (; i > 0 && is_before(&w->heap[i], &w->heap[(i - 1) / 2]); i = (i - 1) / 2)
        swap(&w->heap[i], &w->heap[(i - 1) / 2]);
}

static struct event pop(struct world *w)
{
    struct event top = w->heap[0];
    size_t i = 0;

    w->heap[0] = w->heap[--w->events];
    for (;;) {
        size_t least = i;

        for (size_t k = 2 * i + 1; k <= 2 * i + 2 && k < w->events; k++)
            if (is_before(&w->heap[k], &w->heap[least]))
                least = k;
        if (least == i)
            return top;
        swap(&w->heap[i], &w->heap[least]);
        i = least;
    }
}

static void boot(struct world *w, uint32_t id, uint32_t parent, struct share_times times)
{
    struct share_conf conf = {
        .width = w->width, .logins = w->logins, .login_us = times.login_us, .gap_us = times.gap_us, .is_root = id == 0};
    struct node *n = &w->node[id];

    n->share = must(share_new(&conf));
    n->parent = parent;
    n->depth = parent == NONE ? 0 : w->node[parent].depth + 1;
    if (n->depth > w->deepest)
        w->deepest = n->depth;
}

static void log_in(struct world *w, uint32_t id, uint32_t host, uint64_t now)
{
    struct node *n = &w->node[id];
    uint64_t begin = n->busy_until > now ? n->busy_until : now;

    n->busy_until = begin + w->gap_us;
    push(w, (struct event){.at = begin + w->login_us, .kind = UP, .to = id, .from = host});
}

static void act(struct world *w, uint32_t id, uint64_t now)
{
    struct node *n = &w->node[id];
    struct share_range range;
    uint32_t child, host;

    while (share_deal(n->share, now, &child, &range)) {
        w->words++;
        push(w, (struct event){.at = now + w->hop_us, .kind = DEALT, .to = child, .range = range});
    }
    while (share_next(n->share, now, &host))
        log_in(w, id, host, now);
    if (share_wants(n->share, now)) {
        w->words++;
        push(w, (struct event){.at = now + w->hop_us, .kind = WANTED, .to = n->parent, .from = id});
    }
}

static void came_up(struct world *w, const struct event *e)
{
    struct node *n = &w->node[e->to];
    int rc = share_up(n->share, e->from, e->at);

    assert(rc == 0 && w->node[e->from].share == NULL);
    boot(w, e->from, e->to, share_times(n->share));
    if (++n->children > w->widest)
        w->widest = n->children;
    w->up++;
    w->end_us = e->at;
}

static void run(struct world *w)
{
    int rc;

    w->node = must(calloc(w->hosts + 1u, sizeof(*w->node)));
    boot(w, 0, NONE, (struct share_times){0, 0});
    rc = share_add(w->node[0].share, (struct share_range){1, w->hosts});
    assert(rc == 0);
    act(w, 0, 0);
    while (w->events > 0) {
        struct event e = pop(w);

        if (e.kind == UP)
            came_up(w, &e);
        else if (e.kind == DEALT)
            rc = share_add(w->node[e.to].share, e.range);
        else
            rc = share_wanted(w->node[e.to].share, e.from);
        assert(rc == 0);
        act(w, e.to, e.at);
    }
    assert(w->up == w->hosts);
    for (uint32_t i = 0; i <= w->hosts; i++)
        share_free(w->node[i].share);
    free(w->node);
    free(w->heap);
}

/* Callers up at time t, the launcher among them, in steps of a sixteenth of a gap. */
static uint64_t bound_us(const struct world *w)
{
    uint64_t steps = 16, t = 0, login = (w->login_us * steps + w->gap_us - 1) / w->gap_us, room = 0;
    double *n = NULL;

    for (;; t++) {
        if (t == room) {
            room = room == 0 ? 4096 : 2 * room;
            n = must(realloc(n, room * sizeof(*n)));
        }
        n[t] = t < login ? 1 : n[t - steps] + n[t - login];
        if (n[t] >= w->hosts + 1.0)
            break;
    }
    free(n);
    return t * w->gap_us / steps;
}

static uint64_t number(const char *text)
{
    char *end;
    unsigned long long v = strtoull(text, &end, 10);

    if (*text == '\0' || *end != '\0' || v == 0 || v > UINT32_MAX) {
        fprintf(stderr, "scale_clock: '%s' is no number from 1 on\n", text);
        exit(2);
    }
    return v;
}

static void row(const struct world *conf, uint32_t hosts)
{
    struct world w = *conf;
    uint64_t bound, flat = (hosts - 1) * w.gap_us + w.login_us;

    w.hosts = hosts;
    bound = bound_us(&w);
    run(&w);
    printf("| %u | %.3f | %.3f | %.2f | %.1f | %u | %u | %.2f |\n", hosts, (double)w.end_us / 1e6, (double)bound / 1e6,
           (double)w.end_us / (double)bound, (double)flat / 1e6, w.widest, w.deepest, (double)w.words / hosts);
}

int main(int argc, char **argv)
{
    static const struct option options[] = {
        {"login", required_argument, NULL, 'l'},  {"gap", required_argument, NULL, 'g'},
        {"hop", required_argument, NULL, 'h'},    {"width", required_argument, NULL, 'w'},
        {"logins", required_argument, NULL, 'n'}, {NULL, 0, NULL, 0},
    };
    struct world w = {.width = 32, .logins = 32, .login_us = 250000, .gap_us = 16000, .hop_us = 200};
    int c;

    while ((c = getopt_long(argc, argv, "", options, NULL)) != -1) {
        if (c == 'l')
            w.login_us = number(optarg);
        else if (c == 'g')
            w.gap_us = number(optarg);
        else if (c == 'h')
            w.hop_us = number(optarg);
        else if (c == 'w')
            w.width = (uint32_t)number(optarg);
        else if (c == 'n')
            w.logins = (uint32_t)number(optarg);
        else
            return 2;
    }
    puts("| hosts | all up, s | bound, s | to the bound | flat, s | widest | deepest | words a host |");
    puts("|---|---|---|---|---|---|---|---|");
    for (int i = optind; i < argc; i++)
        row(&w, (uint32_t)number(argv[i]));
    return 0;
}
