/* SPDX-License-Identifier: BSD-3-Clause */
/* node_pmix_fence.c - fences, connects, disconnects and groups over the tree: what ranks bring goes up merged, and to
 * all
 */
#include <stdlib.h>
#include <string.h>
#include "common/util.h"
#include "server/node_pmix.h"
#include "server/pmix_sig.h"

static void release(struct node_pmix *p, struct span sig, struct span data, bool more, struct span body);

/* --- who is in it ----------------------------------------------------------------------------------------------- */

static void count_all(const struct node_job *j, bool *here, bool *kid)
{
    *here = *here || j->task_count > 0;
    for (uint32_t i = 0; i < j->node->kid_count; i++)
        kid[i] = kid[i] || j->kid_ranks[i] > 0;
}

static int count_some(struct node_job *j, const struct pmix_member *m, bool *here, bool *kid)
{
    const struct node *n = j->node;
    int rc = node_find_places(j);

    for (uint32_t rank = m->first; rc == 0 && rank <= m->last && rank < j->job->size; rank++) {
        uint32_t hop;

        if (j->place_of[rank] == n->conf.place) {
            *here = true;
            continue;
        }
        hop = tree_next_hop(j->tree, n->conf.place, j->place_of[rank]);
        if (hop != TREE_NONE)
            kid[node_kid_index(n, hop)] = true;
    }
    return rc;
}

static int on_need(struct span sig, bool *here, bool *kid, void *arg)
{
    const struct node_pmix *p = arg;
    struct pmix_member m;
    int rc;

    while ((rc = pmix_sig_next(&sig, &m)) == 1) {
        struct node_job *j = node_job_numbered(p->node, m.job);

        if (j == NULL) /* it is over */
            continue;
        if (m.last == PMIX_SIG_ALL)
            count_all(j, here, kid);
        else if ((rc = count_some(j, &m, here, kid)) < 0)
            break;
    }
    return rc;
}

/* --- pieces ----------------------------------------------------------------------------------------------------- */

static struct msg_out *piece_map(struct span sig, struct span data, bool more)
{
    struct msg_out *m = msg_out_new();

    if (m != NULL) {
        msg_put_bin(m, "sig", sig);
        msg_put_bool(m, "more", more);
        if (data.n > 0)
            msg_put_bin(m, "data", data);
    }
    return m;
}

struct piece {
    struct span sig, data;
    bool more;
};

static int piece_read(const struct msg_in *m, struct piece *out, struct err *err)
{
    int rc;

    *out = (struct piece){.data = SPAN_NONE};
    if ((rc = msg_get_bin(m, "sig", &out->sig, err)) < 0 || (rc = msg_get_bool(m, "more", &out->more, err)) < 0)
        return rc;
    (void)msg_get_bin(m, "data", &out->data, NULL);
    return 0;
}

/* All of this subtree is in: on with it. */
static void pass_on(struct node_pmix *p, struct span sig, struct span data)
{
    struct node *n = p->node;
    bool more = true;

    while (more) {
        struct span part = {data.p, MIN(data.n, (size_t)PMIX_PIECE_MAX)};
        struct msg_out *m;
        struct span body;

        data = (struct span){data.p + part.n, data.n - part.n};
        more = data.n > 0;
        m = piece_map(sig, part, more);
        if (n->conf.place != 0) {
            node_send_map(n, MSG_PMIX_FENCE, m, false);
            continue;
        }
        if (m != NULL && msg_out_done(m, &body) == 0)
            release(p, sig, part, more, body);
        else
            node_send_map(n, MSG_PMIX_FENCE, NULL, false); /* says that there is no memory */
        msg_out_free(m);
    }
}

/* A group gets its number ahead of all else, where the last of its members is seen to be in: at the root. */
static void on_all_in(struct span sig, struct span data, void *arg)
{
    struct node_pmix *p = arg;
    struct buf whole = {0};

    if (p->node->conf.place != 0 || *sig.p != PMIX_SIG_GROUP) {
        pass_on(p, sig, data);
        return;
    }
    p->contexts++;
    if (buf_add(&whole, &p->contexts, sizeof(p->contexts)) < 0 || buf_add(&whole, data.p, data.n) < 0)
        node_send_map(p->node, MSG_PMIX_FENCE, NULL, false); /* says that there is no memory */
    else
        pass_on(p, sig, buf_span(&whole));
    buf_done(&whole);
}

static void on_over(void *entry, int rc, struct span data, void *arg)
{
    struct pmix_up *u = entry;

    if (rc == 0 && u->kind == PMIX_UP_GROUP) {
        if (data.n < sizeof(u->context)) {
            rc = -EPROTO;
        } else {
            memcpy(&u->context, data.p, sizeof(u->context));
            data = (struct span){data.p + sizeof(u->context), data.n - sizeof(u->context)};
        }
    }
    node_pmix_done(arg, u, rc, data);
}

const struct pmix_fence_ops node_pmix_fence_ops = {.need = on_need, .up = on_all_in, .done = on_over};

static void refuse(struct node *n, uint32_t from, unsigned type, int rc)
{
    struct err err = {0};

    err_set(&err, rc, "%s",
            rc == -E2BIG    ? "a PMIx collective of more than 256 MiB"
            : rc == -ENOMEM ? "out of memory"
            : rc == -ENOSPC ? "too many PMIx collectives at once"
                            : "of a PMIx collective that it cannot be in");
    node_refuse(n, from, type, &err);
}

/* `body` is lent, and goes on as it is. At the root it may be that of which it is made, so that the signature must not
 * be used behind the last piece. */
static void release(struct node_pmix *p, struct span sig, struct span data, bool more, struct span body)
{
    struct node *n = p->node;
    struct buf copy = {0};
    int rc = buf_add(&copy, sig.p, sig.n);

    if (rc == 0) {
        bool *kids = calloc(n->kid_count + 1u, sizeof(*kids));

        rc = kids == NULL ? -ENOMEM : 0;
        if (rc == 0) {
            pmix_fences_kids(p->fences, sig, kids);
            for (uint32_t i = 0; i < n->kid_count; i++)
                if (kids[i])
                    (void)links_send(n->conf.links, n->kid_place[i], MSG_PMIX_RELEASE, body, false);
            rc = pmix_fences_release(p->fences, buf_span(&copy), data, more);
        }
        free(kids);
    }
    buf_done(&copy);
    if (rc < 0)
        refuse(n, FAULT_PARENT, MSG_PMIX_RELEASE, rc);
}

void node_pmix_fence_from_child(struct node *n, uint32_t place, struct span body)
{
    int kid = node_kid_index(n, place), rc;
    struct err err = {0};
    struct msg_in *m = NULL;
    struct piece piece;

    if (n->pmix == NULL || n->pmix->ending || n->pmix->broken)
        return;
    rc = msg_in_new(&m, body, &err);
    if (rc == 0)
        rc = piece_read(m, &piece, &err);
    if (rc < 0) {
        node_refuse(n, place, MSG_PMIX_FENCE, &err);
    } else {
        rc =
            pmix_fences_child(n->pmix->fences, piece.sig, kid < 0 ? UINT32_MAX : (uint32_t)kid, piece.data, piece.more);
        if (rc < 0)
            refuse(n, place, MSG_PMIX_FENCE, rc);
        else
            node_pmix_watch(n);
    }
    msg_in_free(m);
}

bool node_pmix_down(struct node *n, unsigned type, struct span body)
{
    struct err err = {0};
    struct msg_in *m = NULL;
    struct piece piece;
    int rc;

    if (type != MSG_PMIX_RELEASE && type != MSG_PMIX_CHECK)
        return false;
    if (n->pmix == NULL || n->pmix->ending || n->pmix->broken)
        return true;
    rc = msg_in_new(&m, body, &err);
    if (rc == 0)
        rc = piece_read(m, &piece, &err);
    if (rc < 0)
        node_refuse(n, FAULT_PARENT, type, &err);
    else if (type == MSG_PMIX_CHECK)
        node_pmix_check(n->pmix, piece.sig);
    else
        release(n->pmix, piece.sig, piece.data, piece.more, body);
    msg_in_free(m);
    return true;
}

/* --- from the library ------------------------------------------------------------------------------------------- */

static int members(const struct node_pmix *p, const struct pmix_up *u, struct pmix_member *v)
{
    for (size_t i = 0; i < u->count; i++) {
        const struct node_job *j = node_pmix_job(p->node, u->member[i].nspace);

        if (j == NULL || (u->member[i].rank != PMIX_UP_ALL && u->member[i].rank >= j->job->size))
            return -ENOENT;
        v[i] = (struct pmix_member){j->job->id, 0, PMIX_SIG_ALL};
        if (u->member[i].rank != PMIX_UP_ALL)
            v[i].first = v[i].last = u->member[i].rank;
    }
    return 0;
}

static int name_it(const struct pmix_up *u, struct pmix_member *v, struct buf *sig)
{
    enum pmix_sig_kind kind = u->kind == PMIX_UP_FENCE     ? PMIX_SIG_FENCE
                              : u->kind == PMIX_UP_CONNECT ? PMIX_SIG_CONNECT
                              : u->kind == PMIX_UP_GROUP   ? PMIX_SIG_GROUP
                              : u->kind == PMIX_UP_UNGROUP ? PMIX_SIG_UNGROUP
                                                           : PMIX_SIG_DISCONNECT;
    int rc = pmix_sig_make(kind, v, u->count, sig);

    return rc < 0 || u->name == NULL ? rc : pmix_sig_add_name(sig, u->name);
}

void node_pmix_enter(struct node_pmix *p, struct pmix_up *u)
{
    struct pmix_member *v = calloc(u->count + 1u, sizeof(*v));
    struct buf sig = {0};
    int rc = v == NULL ? -ENOMEM : members(p, u, v);

    if (rc == 0)
        rc = p->broken || p->ending ? -EIO : name_it(u, v, &sig);
    if (rc == 0 && u->partial) {
        rc = pmix_fences_hold(p->fences, buf_span(&sig), u);
        if (rc == 0) /* else its end is about to be known */
            (void)node_pmix_say_gone(p, buf_span(&sig), true);
    } else if (rc == 0) {
        rc = pmix_fences_enter(p->fences, buf_span(&sig), buf_span(&u->data), u);
    }
    node_pmix_watch(p->node);
    if (rc == -E2BIG || rc == -ENOMEM || rc == -ENOSPC)
        refuse(p->node, FAULT_OWN, MSG_PMIX_FENCE, rc);
    if (rc < 0)
        pmix_up_done(u, rc, SPAN_NONE);
    buf_done(&sig);
    free(v);
}
