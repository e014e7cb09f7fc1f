/* SPDX-License-Identifier: BSD-3-Clause */
/* pmix_up_info.c - upcalls that are answered by a list of infos: process groups, and questions about the run */
#include "config.h"
#ifdef HAVE_PMIX
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "common/limits.h"
#include "common/util.h"
#include "server/pmix_lib.h"
#include "server/pmix_priv.h"
#include "server/pmix_value.h"

/* What is handed to the library until it calls given_free(). Texts and bytes are its own. */
struct given {
    size_t count, room;
    pmix_info_t v[];
};

static struct given *given_new(size_t room)
{
    struct given *g = calloc(1, sizeof(*g) + room * sizeof(g->v[0]));

    if (g != NULL)
        g->room = room;
    return g;
}

/* The library may have taken over the bytes of a value, and left NULL (4.2 does so with a group's). */
static void given_free(void *arg)
{
    struct given *g = arg;

    for (size_t i = 0; i < g->count; i++) {
        if (g->v[i].value.type == PMIX_STRING)
            free(g->v[i].value.data.string);
        else if (g->v[i].value.type == PMIX_BYTE_OBJECT)
            free(g->v[i].value.data.bo.bytes);
    }
    free(g);
}

static pmix_value_t *add(struct given *g, const char *key, pmix_data_type_t type)
{
    pmix_info_t *i = &g->v[g->count++];

    strncpy(i->key, key, sizeof(i->key) - 1);
    i->value.type = type;
    return &i->value;
}

static int add_size(struct given *g, const char *key, size_t value)
{
    add(g, key, PMIX_SIZE)->data.size = value;
    return 0;
}

static int add_text(struct given *g, const char *key, struct span text)
{
    char *copy = strndup(text.n == 0 ? "" : text.p, text.n);

    if (copy == NULL)
        return -ENOMEM;
    add(g, key, PMIX_STRING)->data.string = copy;
    return 0;
}

static int add_bytes(struct given *g, const char *key, struct span bytes)
{
    char *copy = malloc(bytes.n);
    pmix_value_t *v;

    if (copy == NULL)
        return -ENOMEM;
    memcpy(copy, bytes.p, bytes.n);
    v = add(g, key, PMIX_BYTE_OBJECT);
    v->data.bo.bytes = copy;
    v->data.bo.size = bytes.n;
    return 0;
}

/* Takes `g` over, which may be NULL. */
static void give(const struct pmix_up *u, int rc, struct given *g)
{
    bool empty = rc < 0 || g == NULL;

    ((pmix_info_cbfunc_t)u->call)(pmix_lib_status(rc), empty ? NULL : g->v, empty ? 0 : g->count, u->call_arg,
                                  g == NULL ? NULL : given_free, g);
}

static void set_answer(struct pmix_up *u, void (*answer)(struct pmix_up *, int, struct span), pmix_info_cbfunc_t cb,
                       void *arg)
{
    u->answer = answer;
    u->call = (void (*)(void))cb;
    u->call_arg = arg;
}

/* --- groups ----------------------------------------------------------------------------------------------------- */

static void answer_group(struct pmix_up *u, int rc, struct span data)
{
    struct given *g = NULL;

    if (rc == 0 && u->kind == PMIX_UP_GROUP) {
        g = given_new(2);
        rc = g == NULL ? -ENOMEM : 0;
        if (rc == 0 && u->wants_context)
            rc = add_size(g, PMIX_GROUP_CONTEXT_ID, u->context);
        if (rc == 0 && data.n > 0)
            rc = add_bytes(g, PMIX_GROUP_ENDPT_DATA, data);
    }
    give(u, rc, g);
}

/* Library 4 brings a node's endpoints and what its ranks say of the group as one blob of bytes; put one behind the
 * other they are the whole. Groups whose members are not all known ahead, as 6 has them, are not made. */
pmix_status_t pmix_up_group(pmix_group_operation_t op, char name[], const pmix_proc_t procs[], size_t n,
                            const pmix_info_t info[], size_t ninfo, pmix_info_cbfunc_t cb, void *arg)
{
    const pmix_info_t *data = pmix_infos_find(info, ninfo, PMIX_GROUP_ENDPT_DATA);
    struct pmix_up *u;
    int rc;

    if ((op != PMIX_GROUP_CONSTRUCT && op != PMIX_GROUP_DESTRUCT) || name == NULL || n == 0)
        return PMIX_ERR_NOT_SUPPORTED;
    u = pmix_up_new(op == PMIX_GROUP_CONSTRUCT ? PMIX_UP_GROUP : PMIX_UP_UNGROUP, NULL);
    if (u == NULL)
        return PMIX_ERR_NOMEM;
    set_answer(u, answer_group, cb, arg);
    pmix_up_look_partial(u, info, ninfo);
    u->wants_context = pmix_infos_flag(info, ninfo, PMIX_GROUP_ASSIGN_CONTEXT_ID);
    u->name = strdup(name);
    rc = u->name == NULL ? -ENOMEM : pmix_up_members(u, procs, n);
    if (rc == 0 && data != NULL && data->value.type == PMIX_BYTE_OBJECT && data->value.data.bo.size > 0)
        rc = buf_add(&u->data, data->value.data.bo.bytes, data->value.data.bo.size);
    return pmix_up_post(u, rc);
}

/* --- questions -------------------------------------------------------------------------------------------------- */

static const char *const known[] = {PMIX_QUERY_NAMESPACES, PMIX_QUERY_NUM_PSETS, PMIX_QUERY_PSET_NAMES};

/* The keys asked for that are known are in data, each with its terminator. There are no sets of processes: those are
 * named on a command line of PRRTE. */
static void answer_query(struct pmix_up *u, int rc, struct span nspaces)
{
    const char *end = u->data.p + u->data.len;
    struct given *g = given_new(u->data.len);

    rc = g == NULL ? -ENOMEM : rc;
    for (const char *key = u->data.p; rc == 0 && key < end; key += strlen(key) + 1) {
        if (strcmp(key, PMIX_QUERY_NUM_PSETS) == 0)
            rc = add_size(g, key, 0);
        else
            rc = add_text(g, key, strcmp(key, PMIX_QUERY_NAMESPACES) == 0 ? nspaces : SPAN_NONE);
    }
    give(u, rc, g);
}

static int add_known(struct pmix_up *u, const char *key)
{
    for (size_t i = 0; i < ARRAY_SIZE(known); i++)
        if (strcmp(key, known[i]) == 0)
            return buf_add(&u->data, key, strlen(key) + 1);
    return 0;
}

/* All that is not known is not found, and the whole question where nothing is. */
pmix_status_t pmix_up_query(pmix_proc_t *who, pmix_query_t *queries, size_t n, pmix_info_cbfunc_t cb, void *arg)
{
    struct pmix_up *u = pmix_up_new(PMIX_UP_QUERY, NULL);
    int rc = 0;

    (void)who;
    if (u == NULL)
        return PMIX_ERR_NOMEM;
    set_answer(u, answer_query, cb, arg);
    buf_init(&u->data, PMIX_QUERY_BYTES_MAX);
    for (size_t i = 0; rc == 0 && i < n; i++)
        for (size_t k = 0; rc == 0 && queries[i].keys != NULL && queries[i].keys[k] != NULL; k++)
            rc = add_known(u, queries[i].keys[k]);
    return pmix_up_post(u, rc == 0 && u->data.len == 0 ? -ENOENT : rc);
}
#endif
