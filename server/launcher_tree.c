/* SPDX-License-Identifier: BSD-3-Clause */
/* launcher_tree.c - the launcher's side of --rsh-tree: who has joined, below whom, and who is to log in to whom */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "common/io/log.h"
#include "server/fault.h"
#include "server/launcher_priv.h"
#include "server/tree.h"

/* No login from `from` has worked, nor that to `place`, which is tried from here: which of them it is will show. */
struct doubt {
    struct doubt *next;
    uint32_t place, from, left;
    char *text;
};

struct launcher_tree {
    struct logins_how how;
    struct logins *logins;
    uint32_t *parent, *node; /* [how.places] */
    bool *joined;
    uint32_t in; /* joined, the launcher among them */
    struct doubt *doubts;
    bool wired;
};

static uint32_t place_of(const struct launcher *l, uint32_t node)
{
    uint32_t self = l->tree->how.self;

    return self != TREE_NONE && node > self ? node : node + 1;
}

/* --- what the logins ask for ------------------------------------------------------------------------------------ */

static int start(uint32_t place, void *arg, struct err *err)
{
    struct launcher *l = arg;

    if (l->boot == NULL)
        return 0;
    if (boot_login(l->boot, l->tree->node[place], err) < 0)
        root_start_failed(l->root, err->text);
    return 0;
}

static void cancel(uint32_t place, void *arg)
{
    struct launcher *l = arg;

    if (l->boot != NULL)
        boot_cancel(l->boot, l->tree->node[place]);
}

static void check_wired(struct launcher *l)
{
    struct launcher_tree *t = l->tree;

    if (t->in < t->how.places || t->wired)
        return;
    t->wired = true;
    root_wired(l->root, t->parent, t->node, t->how.places);
}

static void on_up(uint32_t place, bool attached, void *arg)
{
    struct launcher *l = arg;

    if (l->boot != NULL)
        boot_joined(l->boot, l->tree->node[place], attached);
    check_wired(l); /* behind that: the last login must not be taken for one that is still awaited */
}

static const char *host(uint32_t place, void *arg)
{
    const struct launcher *l = arg;

    return l->plan->node[l->tree->node[place]].login;
}

static void doubt_free(struct doubt *d)
{
    free(d->text);
    free(d);
}

static void warn_of_from(const struct launcher *l, const struct doubt *d)
{
    const struct plan_node *to = &l->plan->node[l->tree->node[d->place]], *at = &l->plan->node[l->tree->node[d->from]];

    log_warn("%s: logins from here fail (%s: %s), %u host%s left to others", at->host, to->host,
             log_escape(span_of(d->text)), d->left, d->left == 1 ? " is" : "s are");
}

/* It is up after all: it was not for it that the login from elsewhere failed. */
static void settle_doubts(struct launcher *l, uint32_t place)
{
    for (struct doubt **p = &l->tree->doubts, *d; (d = *p) != NULL;) {
        if (d->place != place) {
            p = &d->next;
            continue;
        }
        *p = d->next;
        warn_of_from(l, d);
        doubt_free(d);
    }
}

static int add_doubt(struct launcher *l, const struct logins_note *failed)
{
    struct doubt *d = calloc(1, sizeof(*d));

    if (d == NULL)
        return -ENOMEM;
    *d = (struct doubt){l->tree->doubts, failed->one, failed->from, failed->left, strdup(failed->text)};
    if (d->text == NULL) {
        free(d);
        return -ENOMEM;
    }
    l->tree->doubts = d;
    return 0;
}

static void on_joined(uint32_t place, uint32_t parent, void *arg)
{
    struct launcher *l = arg;
    struct launcher_tree *t = l->tree;

    if (t->joined[place])
        return;
    t->joined[place] = true;
    t->parent[place] = parent;
    t->in++;
    settle_doubts(l, place);
    if (parent != 0) {
        log_debug("node %u joined below node %u", t->node[place], t->node[parent]);
        on_up(place, false, l);
    }
}

static void on_unjoined(uint32_t place, void *arg)
{
    struct launcher *l = arg;
    struct launcher_tree *t = l->tree;

    if (!t->joined[place])
        return;
    if (t->wired) { /* it was lost while the job was on its way to it */
        root_node_lost(l->root, t->node[place], "lost at the end of the start");
        return;
    }
    t->joined[place] = false;
    t->in--;
    if (l->boot != NULL)
        boot_unjoined(l->boot, t->node[place]);
}

static void on_failed_from(const struct logins_note *failed, void *arg)
{
    struct launcher *l = arg;
    uint32_t node = l->tree->node[failed->one];
    const char *at = l->plan->node[l->tree->node[failed->from]].host;
    char words[ERR_TEXT_MAX];

    snprintf(words, sizeof(words), "from %s: %s", at, failed->text);
    log_info("%s: login from %s failed: %s; trying from the launcher", l->plan->node[node].host, at,
             log_escape(span_of(failed->text)));
    if (l->boot != NULL)
        boot_words(l->boot, node, words);
    if (failed->left > 0 && add_doubt(l, failed) < 0)
        log_warn("%s: logins from here fail", at);
}

static void on_lost(uint32_t place, const struct err *why, void *arg)
{
    struct launcher *l = arg;

    if (place == 0) {
        root_start_failed(l->root, why->text);
        return;
    }
    root_node_lost(l->root, l->tree->node[place], why->code < 0 ? why->text : "it closed the connection");
}

static void on_stranger(void *arg)
{
    struct launcher *l = arg;

    if (l->boot != NULL)
        boot_stranger(l->boot);
}

/* --- what the bootstrap says ------------------------------------------------------------------------------------ */

void launcher_tree_key(struct launcher *l, uint32_t node, const char *key)
{
    if (l->tree->logins != NULL && logins_key(l->tree->logins, place_of(l, node), key) < 0)
        root_start_failed(l->root, "out of memory");
}

const char *launcher_tree_login_from(uint32_t node, void *arg)
{
    const struct launcher *l = arg;
    int64_t child =
        l->tree != NULL && l->tree->logins != NULL ? logins_child_of(l->tree->logins, place_of(l, node)) : -1;

    return child < 0 ? NULL : l->plan->node[l->tree->node[child]].host;
}

/* --- messages and edges ----------------------------------------------------------------------------------------- */

bool launcher_tree_msg(struct launcher *l, uint32_t place, unsigned type, struct span body)
{
    struct err err = {0};

    if (l->tree == NULL || l->tree->logins == NULL || !logins_is_msg(type))
        return false;
    if (logins_msg(l->tree->logins, place, type, body, &err) < 0)
        node_refuse(l->node, place, type, &err);
    return true;
}

bool launcher_tree_lost(struct launcher *l, uint32_t place, const struct err *why)
{
    return l->tree != NULL && l->tree->logins != NULL && logins_child_lost(l->tree->logins, place, why);
}

int64_t launcher_tree_node_at(const struct launcher *l, uint32_t place)
{
    return place >= 1 && place < l->tree->how.places ? (int64_t)l->tree->node[place] : -1;
}

struct strangers launcher_tree_all_in(struct launcher *l)
{
    return l->tree->logins != NULL ? logins_all_in(l->tree->logins) : (struct strangers){0};
}

/* --- life ------------------------------------------------------------------------------------------------------- */

static int alloc_tables(struct launcher_tree *t, const uint32_t *others)
{
    t->parent = calloc(t->how.places, sizeof(*t->parent));
    t->node = calloc(t->how.places, sizeof(*t->node));
    t->joined = calloc(t->how.places, sizeof(*t->joined));
    if (t->parent == NULL || t->node == NULL || t->joined == NULL)
        return -ENOMEM;
    t->parent[0] = TREE_NONE;
    t->node[0] = t->how.self;
    memcpy(t->node + 1, others, (t->how.places - 1) * sizeof(*others));
    t->in = 1;
    return 0;
}

static int make_how(struct launcher *l, uint32_t count)
{
    struct logins_how *how = &l->tree->how;
    const char *program = l->conf->remote_path != NULL ? l->conf->remote_path : l->self_path;

    how->places = count + 1;
    how->self = l->plan->self >= 0 ? (uint32_t)l->plan->self : TREE_NONE;
    how->width = l->conf->rsh_tree > 0 ? (uint32_t)l->conf->rsh_tree : l->conf->fanout;
    how->logins = l->conf->rsh_fanout;
    how->level = (unsigned)(l->conf->verbose + 1);
    how->attach = l->conf->rsh_attach;
    how->program = strdup(program);
    if (l->conf->rsh_command != NULL)
        how->script = strdup(l->script);
    return how->program == NULL || (l->conf->rsh_command != NULL && how->script == NULL) ? -ENOMEM : 0;
}

int launcher_tree_open(struct launcher *l, const uint32_t *others, uint32_t count, struct err *err)
{
    const struct conf_ports *port = &l->conf->port;
    struct logins_ops ops = {
        .start = start,
        .cancel = cancel,
        .on_up = on_up,
        .host = host,
        .on_joined = on_joined,
        .on_unjoined = on_unjoined,
        .on_failed_from = on_failed_from,
        .on_lost = on_lost,
        .on_stranger = on_stranger,
        .arg = l,
    };
    struct logins_conf lc = {.place = 0};

    l->tree = calloc(1, sizeof(*l->tree));
    if (l->tree == NULL || make_how(l, count) < 0 || alloc_tables(l->tree, others) < 0)
        return err_set(err, -ENOMEM, "out of memory");
    lc.how = &l->tree->how;
    lc.brood = (struct brood_conf){
        .interface = l->conf->interface,
        .port_low = port->given ? port->low : 0,
        .port_high = port->given ? (port->range ? port->high : port->low) : 0,
        .loopback = true,
        .ctx = l->ctx,
        .links = l->links,
    };
    return logins_open(&l->loop, &lc, &ops, &l->tree->logins, err);
}

uint16_t launcher_tree_port(const struct launcher *l)
{
    return logins_port(l->tree->logins);
}

/* The bootstrap is there. */
int launcher_tree_begin(struct launcher *l, struct err *err)
{
    int rc = logins_add(l->tree->logins, (struct share_range){1, l->tree->how.places - 1});

    return rc < 0 ? err_set(err, rc, "out of memory") : 0;
}

void launcher_tree_close(struct launcher *l)
{
    if (l->tree == NULL)
        return;
    logins_close(l->tree->logins);
    l->tree->logins = NULL;
}

void launcher_tree_free(struct launcher *l)
{
    if (l->tree == NULL)
        return;
    logins_how_done(&l->tree->how);
    free(l->tree->parent);
    free(l->tree->node);
    free(l->tree->joined);
    for (struct doubt *d = l->tree->doubts, *next; d != NULL; d = next) {
        next = d->next;
        doubt_free(d);
    }
    free(l->tree);
}
