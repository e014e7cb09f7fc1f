/* SPDX-License-Identifier: BSD-3-Clause */
#include "bootstrap/plan.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include "common/limits.h"

#define NODE_NAME_SIZE (HOST_NAME_MAX_LEN + sizeof("-4294967295"))

/* What is known before ranks are placed. A place is a host of the list or a played node, with or without tasks. */
struct draft {
    const struct conf *conf;
    enum boot_method method;
    uint32_t places;
    uint32_t *room;   /* [places] tasks it takes before the next turn begins */
    uint32_t *left;   /* [places] of that, in this turn */
    uint32_t *active; /* [places] those with something left, in order */
    uint32_t *node;   /* [places] the place's node number, once known */
    uint64_t size;    /* tasks in all; 0: every place's room once */
};

static bool has_hosts(const struct conf *conf)
{
    return conf->hosts != NULL;
}

static int decide_method(struct draft *d, struct err *err)
{
    const struct conf *conf = d->conf;

    d->method = conf->bootstrap;
    if (d->method == BOOT_AUTO)
        d->method = conf->alloc == ALLOC_SLURM ? BOOT_SLURM : has_hosts(conf) ? BOOT_RSH : BOOT_LOCAL;
    if (has_hosts(conf) && d->method == BOOT_LOCAL)
        return err_set(err, -EINVAL,
                       "--bootstrap=local plays its nodes on this machine and takes no hosts: "
                       "leave out --hostlist and --hostfile, and say --nodes=N");
    if (!has_hosts(conf) && d->method == BOOT_RSH)
        return err_set(err, -EINVAL, "--bootstrap=rsh needs hosts: give --hostlist=HOSTS or --hostfile=FILE");
    if (!has_hosts(conf) && d->method == BOOT_MANUAL && conf->nodes == 0)
        return err_set(err, -EINVAL, "--bootstrap=manual needs --hostlist=HOSTS, --hostfile=FILE or --nodes=N");
    return 0;
}

static int count_places(struct draft *d, struct err *err)
{
    const struct conf *conf = d->conf;
    size_t hosts = has_hosts(conf) ? hostlist_count(conf->hosts) : 0;

    if (!has_hosts(conf)) {
        if (conf->nodes > NODES_MAX)
            return err_set(err, -EINVAL, "--nodes=%u: at most %u", conf->nodes, NODES_MAX);
        d->places = conf->nodes > 0 ? conf->nodes : 1;
        return 0;
    }
    if (hosts == 0)
        return err_set(err, -EINVAL, "no host is left in the host list");
    if (conf->nodes > hosts)
        return err_set(err, -EINVAL, "--nodes=%u, but the host list has only %zu host%s", conf->nodes, hosts,
                       hosts == 1 ? "" : "s");
    d->places = conf->nodes > 0 ? conf->nodes : (uint32_t)hosts;
    return 0;
}

/* -n of one part, or -1. */
static int app_ntasks(const struct conf *conf, size_t app)
{
    if (conf->app_count > 1)
        return conf->app[app].ntasks >= 0 ? conf->app[app].ntasks : 1;
    return conf->app_count == 1 && conf->app[0].ntasks >= 0 ? conf->app[0].ntasks : conf->ntasks;
}

static int too_many(uint64_t tasks, struct err *err)
{
    return err_set(err, -EINVAL, "%" PRIu64 " tasks in all: at most %u", tasks, TASKS_MAX);
}

/* d->size where -n decides it, else 0. */
static int count_wanted(struct draft *d, struct err *err)
{
    size_t apps = d->conf->app_count > 1 ? d->conf->app_count : 1;

    for (size_t i = 0; i < apps; i++) {
        int n = app_ntasks(d->conf, i);

        if (n == 0)
            return err_set(err, -EINVAL, "--ntasks=0: at least 1");
        d->size += n > 0 ? (uint64_t)n : 0;
    }
    return d->size > TASKS_MAX ? too_many(d->size, err) : 0;
}

static unsigned slots_of(const struct draft *d, uint32_t place)
{
    return has_hosts(d->conf) ? hostlist_get(d->conf->hosts, place).slots : 0;
}

static bool any_slots(const struct draft *d)
{
    for (uint32_t i = 0; i < d->places; i++)
        if (slots_of(d, i) > 0)
            return true;
    return false;
}

/* How many tasks each place takes in a turn; and the size where -n did not say. */
static int measure_room(struct draft *d, struct err *err)
{
    bool even = d->size > 0 && d->conf->ppn < 0 && !any_slots(d);
    uint64_t sum = 0;

    if (d->conf->ppn == 0)
        return err_set(err, -EINVAL, "--ppn=0: at least 1");
    for (uint32_t i = 0; i < d->places; i++) {
        if (d->conf->ppn > 0)
            d->room[i] = (uint32_t)d->conf->ppn;
        else if (even)
            d->room[i] = (uint32_t)(d->size / d->places + (i < d->size % d->places ? 1 : 0));
        else
            d->room[i] = slots_of(d, i) > 0 ? slots_of(d, i) : 1;
        sum += d->room[i];
    }
    if (d->size == 0)
        d->size = sum;
    return d->size > TASKS_MAX ? too_many(d->size, err) : 0;
}

/* One turn: from `rank` on until no place has room. Returns the next rank. */
static uint32_t place_turn(struct draft *d, uint32_t rank, uint32_t size, uint32_t *place_of)
{
    uint32_t count = 0, kept;

    for (uint32_t i = 0; i < d->places; i++) {
        d->left[i] = d->room[i];
        if (d->left[i] > 0)
            d->active[count++] = i;
    }
    /* A pass gives each place one task (cyclic), or all it takes (block). */
    for (; count > 0 && rank < size; count = kept) {
        kept = 0;
        for (uint32_t i = 0; i < count && rank < size; i++) {
            uint32_t place = d->active[i];
            uint32_t n = d->conf->map == MAP_CYCLIC ? 1 : d->left[place];

            d->left[place] -= n;
            for (; n > 0 && rank < size; n--)
                place_of[rank++] = place;
            if (d->left[place] > 0)
                d->active[kept++] = place;
        }
    }
    return rank;
}

/* Number the places that got a task, in order. `node_of` holds places, and then nodes. Returns the number of nodes. */
static uint32_t number_nodes(struct draft *d, uint32_t size, uint32_t *node_of)
{
    uint32_t count = 0;

    memset(d->left, 0, d->places * sizeof(*d->left));
    for (uint32_t r = 0; r < size; r++)
        d->left[node_of[r]]++;
    for (uint32_t i = 0; i < d->places; i++)
        if (d->left[i] > 0)
            d->node[i] = count++;
    for (uint32_t r = 0; r < size; r++)
        node_of[r] = d->node[node_of[r]];
    return count;
}

/* The nodes' ranks, as slices of one array. d->left has each place's tasks. */
static void list_ranks(const struct draft *d, struct plan *p)
{
    uint32_t *at = p->ranks;

    for (uint32_t i = 0; i < d->places; i++) {
        if (d->left[i] == 0)
            continue;
        p->node[d->node[i]].ranks = at;
        at += d->left[i];
    }
    for (uint32_t r = 0; r < p->size; r++) {
        struct plan_node *node = &p->node[p->node_of[r]];

        node->ranks[node->ntasks++] = r;
    }
}

static void list_apps(const struct conf *conf, struct plan *p)
{
    uint32_t rank = 0;

    for (size_t app = 0; app < conf->app_count && conf->app_count > 1; app++)
        for (int n = app_ntasks(conf, app); n > 0; n--)
            p->app_of[rank++] = (uint32_t)app;
}

static void name_node(struct plan_node *n, const char *name)
{
    const char *at = strrchr(name, '@');

    n->login = name;
    n->host = at != NULL ? at + 1 : name;
}

/* Hosts of the list, of which the first that is us is `self`, where the launcher runs tasks. */
static void name_hosts(const struct draft *d, bool (*is_self)(const char *name), struct plan *p)
{
    bool log_in_to_all = d->method == BOOT_RSH && d->conf->rsh_command != NULL && d->conf->rsh_attach == ATTACH_YES;
    /* Tasks of our own would be in no step, or in ours: without Slurm's signals to the job, or with the step's CPUs. */
    bool elsewhere = log_in_to_all || d->method == BOOT_SLURM;

    for (uint32_t i = 0; i < d->places; i++) {
        const char *name = hostlist_get(d->conf->hosts, i).name;

        if (d->left[i] == 0)
            continue;
        name_node(&p->node[d->node[i]], name);
        if (p->self < 0 && !elsewhere && is_self(name))
            p->self = (int32_t)d->node[i];
    }
}

/* Nodes without a host list. The launcher is node 0. */
static int name_played(const struct draft *d, const char *self_name, struct plan *p)
{
    size_t self_len = strlen(self_name) + 1;
    char *next;

    p->names = malloc(self_len + (size_t)p->node_count * NODE_NAME_SIZE);
    if (p->names == NULL)
        return -ENOMEM;
    memcpy(p->names, self_name, self_len);
    next = p->names + self_len;
    name_node(&p->node[0], p->names);
    for (uint32_t i = 1; i < p->node_count; i++) {
        name_node(&p->node[i], p->names);
        if (d->method == BOOT_LOCAL)
            continue;
        if (d->conf->pod_base != NULL)
            snprintf(next, NODE_NAME_SIZE, "%s-%" PRIu32, d->conf->pod_base, i);
        else
            snprintf(next, NODE_NAME_SIZE, "%s%" PRIu32, d->method == BOOT_K8S ? "pod" : "node", i);
        name_node(&p->node[i], next);
        next += strlen(next) + 1;
    }
    p->self = 0;
    return 0;
}

static int draft_init(struct draft *d, const struct conf *conf, struct err *err)
{
    uint32_t *arrays;
    int rc;

    *d = (struct draft){.conf = conf};
    rc = decide_method(d, err);
    if (rc == 0)
        rc = count_places(d, err);
    if (rc == 0)
        rc = count_wanted(d, err);
    if (rc < 0)
        return rc;
    arrays = calloc(d->places, 4 * sizeof(*arrays));
    if (arrays == NULL)
        return err_set(err, -ENOMEM, "out of memory");
    d->room = arrays;
    d->left = arrays + d->places;
    d->active = d->left + d->places;
    d->node = d->active + d->places;
    return measure_room(d, err);
}

static int plan_fill(struct plan *p, struct draft *d, bool (*is_self)(const char *name), const char *self_name)
{
    p->method = d->method;
    p->self = -1;
    p->size = (uint32_t)d->size;
    p->node_of = calloc(p->size, sizeof(*p->node_of));
    p->app_of = calloc(p->size, sizeof(*p->app_of));
    p->ranks = calloc(p->size, sizeof(*p->ranks));
    if (p->node_of == NULL || p->app_of == NULL || p->ranks == NULL)
        return -ENOMEM;
    for (uint32_t rank = 0; rank < p->size;)
        rank = place_turn(d, rank, p->size, p->node_of);
    p->node_count = number_nodes(d, p->size, p->node_of);
    p->node = calloc(p->node_count, sizeof(*p->node));
    if (p->node == NULL)
        return -ENOMEM;
    list_ranks(d, p);
    list_apps(d->conf, p);
    if (!has_hosts(d->conf))
        return name_played(d, self_name, p);
    name_hosts(d, is_self, p);
    return 0;
}

int plan_make(const struct conf *conf, bool (*is_self)(const char *name), const char *self_name, struct plan **out,
              struct err *err)
{
    struct plan *p = NULL;
    struct draft d;
    int rc = draft_init(&d, conf, err);

    if (rc == 0) {
        p = calloc(1, sizeof(*p));
        rc = p != NULL ? plan_fill(p, &d, is_self, self_name) : -ENOMEM;
        if (rc < 0)
            err_set(err, rc, "out of memory");
    }
    free(d.room);
    if (rc == 0 && d.method == BOOT_K8S && p->node_count < d.places)
        rc =
            err_set(err, -EINVAL, "only %" PRIu32 " of %" PRIu32 " pods get a task, and each must have one (-n, --ppn)",
                    p->node_count, d.places);
    if (rc == 0)
        *out = p;
    else
        plan_free(p);
    return rc;
}

void plan_free(struct plan *p)
{
    if (p == NULL)
        return;
    free(p->node);
    free(p->node_of);
    free(p->app_of);
    free(p->ranks);
    free(p->names);
    free(p);
}
