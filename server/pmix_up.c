/* SPDX-License-Identifier: BSD-3-Clause */
/* pmix_up.c - what libpmix asks of us, on its own thread: copied whole, posted to the loop, and nothing else
 *
 * Nothing here may block, call the library, or answer: inside of an upcall each of these hangs every client of some
 * version. So every answer comes from the loop, also where it is known at once.
 */
#include "config.h"
#ifdef HAVE_PMIX
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "common/limits.h"
#include "common/strv.h"
#include "server/pmix_lib.h"
#include "server/pmix_pair.h"
#include "server/pmix_priv.h"
#include "server/pmix_value.h"

/* --- copies ----------------------------------------------------------------------------------------------------- */

static void up_free(struct pmix_up *u)
{
    if (u->kind == PMIX_UP_EVENT)
        pmix_up_event_over(u);
    free(u->who.nspace);
    free(u->name);
    for (size_t i = 0; i < u->count; i++)
        free(u->member[i].nspace);
    free(u->member);
    buf_done(&u->data);
    spawn_want_done(&u->want);
    free(u);
}

void pmix_up_done(struct pmix_up *u, int rc, struct span data)
{
    if (u->answer != NULL && u->call != NULL)
        u->answer(u, rc, data);
    up_free(u);
}

int pmix_up_copy_id(const pmix_proc_t *p, struct pmix_id *out)
{
    out->nspace = strndup(p->nspace, sizeof(p->nspace));
    out->rank = p->rank == PMIX_RANK_WILDCARD ? PMIX_UP_ALL : p->rank;
    return out->nspace == NULL ? -ENOMEM : 0;
}

struct pmix_up *pmix_up_new(enum pmix_up_kind kind, const pmix_proc_t *who)
{
    struct pmix_up *u = calloc(1, sizeof(*u));

    if (u == NULL)
        return NULL;
    u->kind = kind;
    buf_init(&u->data, PMIX_FENCE_BYTES_MAX);
    if (who == NULL || pmix_up_copy_id(who, &u->who) == 0)
        return u;
    up_free(u);
    return NULL;
}

int pmix_up_members(struct pmix_up *u, const pmix_proc_t *procs, size_t n)
{
    u->member = calloc(n + 1, sizeof(*u->member));
    if (u->member == NULL)
        return -ENOMEM;
    for (; u->count < n; u->count++)
        if (pmix_up_copy_id(&procs[u->count], &u->member[u->count]) < 0)
            return -ENOMEM;
    return 0;
}

/* Post it, or say why not. */
pmix_status_t pmix_up_post(struct pmix_up *u, int rc)
{
    if (u == NULL)
        return PMIX_ERR_NOMEM;
    if (rc < 0) {
        up_free(u);
        return pmix_lib_status(rc);
    }
    pmix_host_post(u);
    return PMIX_SUCCESS;
}

/* --- answers ---------------------------------------------------------------------------------------------------- */

static void answer_op(struct pmix_up *u, int rc, struct span data)
{
    (void)data;
    ((pmix_op_cbfunc_t)u->call)(pmix_lib_status(rc), u->call_arg);
}

void pmix_up_set_op(struct pmix_up *u, pmix_op_cbfunc_t cb, void *arg)
{
    if (u == NULL)
        return;
    u->answer = answer_op;
    u->call = (void (*)(void))cb;
    u->call_arg = arg;
}

/* The library may use the bytes until it frees them. */
static void answer_modex(struct pmix_up *u, int rc, struct span data)
{
    char *copy = rc == 0 && data.n > 0 ? malloc(data.n) : NULL;

    if (copy != NULL)
        memcpy(copy, data.p, data.n);
    else if (rc == 0 && data.n > 0)
        rc = -ENOMEM;
    ((pmix_modex_cbfunc_t)u->call)(pmix_lib_status(rc), copy, copy == NULL ? 0 : data.n, u->call_arg, free, copy);
}

static void set_modex(struct pmix_up *u, pmix_modex_cbfunc_t cb, void *arg)
{
    if (u == NULL)
        return;
    u->answer = answer_modex;
    u->call = (void (*)(void))cb;
    u->call_arg = arg;
}

static int fill_found(pmix_pdata_t *d, const struct pmix_pair *p, const struct pmix_id *owner)
{
    memset(d, 0, sizeof(*d));
    if (owner->nspace != NULL)
        strncpy(d->proc.nspace, owner->nspace, sizeof(d->proc.nspace) - 1);
    d->proc.rank = owner->rank;
    if (p->key.n >= sizeof(d->key))
        return -EPROTO;
    memcpy(d->key, p->key.p, p->key.n);
    return pmix_value_unpack(p->value, &d->value);
}

/* The pairs' owners are in member[], which the receiver has filled in. */
static void answer_lookup(struct pmix_up *u, int rc, struct span data)
{
    pmix_pdata_t *v = calloc(u->count + 1, sizeof(*v));
    struct pmix_pair p;
    size_t n = 0;

    if (v == NULL && rc == 0)
        rc = -ENOMEM;
    while (rc == 0 && n < u->count && (rc = pmix_pair_next(&data, &p)) == 1) {
        rc = fill_found(&v[n], &p, &u->member[n]);
        n += rc == 0;
    }
    ((pmix_lookup_cbfunc_t)u->call)(pmix_lib_status(rc), rc == 0 ? v : NULL, rc == 0 ? n : 0, u->call_arg);
    for (size_t i = 0; v != NULL && i < n; i++)
        pmix_value_drop(&v[i].value);
    free(v);
}

static void answer_spawn(struct pmix_up *u, int rc, struct span data)
{
    pmix_nspace_t name = {0};

    if (data.n < sizeof(name) && data.n > 0)
        memcpy(name, data.p, data.n);
    ((pmix_spawn_cbfunc_t)u->call)(pmix_lib_status(rc), name, u->call_arg);
}

/* --- clients come and go ---------------------------------------------------------------------------------------- */

/* 4.2.2 has no function to call back here, 5 and later wait for it. */
static pmix_status_t up_connected2(const pmix_proc_t *who, void *object, pmix_info_t info[], size_t n,
                                   pmix_op_cbfunc_t cb, void *arg)
{
    struct pmix_up *u = pmix_up_new(PMIX_UP_CONNECTED, who);

    (void)object;
    (void)info;
    (void)n;
    pmix_up_set_op(u, cb, arg);
    return pmix_up_post(u, 0);
}

static pmix_status_t up_connected(const pmix_proc_t *who, void *object, pmix_op_cbfunc_t cb, void *arg)
{
    return up_connected2(who, object, NULL, 0, cb, arg);
}

static pmix_status_t up_finalized(const pmix_proc_t *who, void *object, pmix_op_cbfunc_t cb, void *arg)
{
    struct pmix_up *u = pmix_up_new(PMIX_UP_FINALIZED, who);

    (void)object;
    pmix_up_set_op(u, cb, arg);
    return pmix_up_post(u, 0);
}

static pmix_status_t up_abort(const pmix_proc_t *who, void *object, int status, const char text[], pmix_proc_t procs[],
                              size_t n, pmix_op_cbfunc_t cb, void *arg)
{
    struct pmix_up *u = pmix_up_new(PMIX_UP_ABORT, who);

    (void)object;
    (void)procs; /* of a part of a job there is no use: it ends whole */
    (void)n;
    pmix_up_set_op(u, cb, arg);
    if (u != NULL)
        u->status = status;
    return pmix_up_post(u, u == NULL || text == NULL ? 0 : buf_add_str(&u->data, text));
}

/* --- the text that users are to see ----------------------------------------------------------------------------- */

static int add_text(struct buf *out, const pmix_value_t *v)
{
    if (v->type == PMIX_STRING && v->data.string != NULL)
        return buf_add_str(out, v->data.string);
    if (v->type == PMIX_BYTE_OBJECT && v->data.bo.bytes != NULL)
        return buf_add(out, v->data.bo.bytes, strnlen(v->data.bo.bytes, v->data.bo.size));
    return 0;
}

static void up_log(const pmix_proc_t *who, const pmix_info_t data[], size_t n, const pmix_info_t directives[],
                   size_t ndirectives, pmix_op_cbfunc_t cb, void *arg)
{
    struct pmix_up *u = pmix_up_new(PMIX_UP_LOG, who);
    int rc = 0;

    (void)directives;
    (void)ndirectives;
    pmix_up_set_op(u, cb, arg);
    if (u != NULL)
        buf_init(&u->data, PMIX_BLOB_MAX);
    for (size_t i = 0; u != NULL && rc == 0 && i < n; i++)
        rc = add_text(&u->data, &data[i].value);
    if (u != NULL) /* there is no other way to say so to who waits for the answer */
        u->rc = rc;
    (void)pmix_up_post(u, 0);
}

/* --- collectives and keys --------------------------------------------------------------------------------------- */

/* The library tells of one that has gone while it was awaited, and goes on without it. */
void pmix_up_look_partial(struct pmix_up *u, const pmix_info_t info[], size_t n)
{
    const pmix_info_t *i = pmix_infos_find(info, n, PMIX_LOCAL_COLLECTIVE_STATUS);

    u->partial = i != NULL && i->value.type == PMIX_STATUS && i->value.data.status != PMIX_SUCCESS;
}

static pmix_status_t up_fence(const pmix_proc_t procs[], size_t n, const pmix_info_t info[], size_t ninfo, char *data,
                              size_t size, pmix_modex_cbfunc_t cb, void *arg)
{
    struct pmix_up *u = pmix_up_new(PMIX_UP_FENCE, NULL);
    int rc = u == NULL ? 0 : pmix_up_members(u, procs, n);

    set_modex(u, cb, arg);
    if (u != NULL)
        pmix_up_look_partial(u, info, ninfo);
    if (rc == 0 && u != NULL && data != NULL && size > 0)
        rc = buf_add(&u->data, data, size);
    return pmix_up_post(u, rc);
}

static pmix_status_t up_get(const pmix_proc_t *whose, const pmix_info_t info[], size_t n, pmix_modex_cbfunc_t cb,
                            void *arg)
{
    struct pmix_up *u = pmix_up_new(PMIX_UP_GET, NULL);
    int rc = u == NULL ? 0 : pmix_up_members(u, whose, 1);

    set_modex(u, cb, arg);
    if (u != NULL)
        u->timeout = (uint32_t)pmix_infos_number(info, n, PMIX_TIMEOUT, 0);
    return pmix_up_post(u, rc);
}

void pmix_up_got(pmix_status_t status, char *data, size_t n, void *arg)
{
    struct pmix_up *u = arg;

    u->rc = pmix_lib_rc(status);
    if (u->rc == 0 && data != NULL && n > 0)
        u->rc = buf_add(&u->data, data, n);
    pmix_host_post(u);
}

static pmix_status_t meet(struct pmix_up *u, const pmix_proc_t procs[], size_t n, const pmix_info_t info[],
                          size_t ninfo, pmix_op_cbfunc_t cb, void *arg)
{
    pmix_up_set_op(u, cb, arg);
    if (u != NULL)
        pmix_up_look_partial(u, info, ninfo);
    return pmix_up_post(u, u == NULL ? 0 : pmix_up_members(u, procs, n));
}

static pmix_status_t up_connect(const pmix_proc_t procs[], size_t n, const pmix_info_t info[], size_t ninfo,
                                pmix_op_cbfunc_t cb, void *arg)
{
    return meet(pmix_up_new(PMIX_UP_CONNECT, NULL), procs, n, info, ninfo, cb, arg);
}

static pmix_status_t up_disconnect(const pmix_proc_t procs[], size_t n, const pmix_info_t info[], size_t ninfo,
                                   pmix_op_cbfunc_t cb, void *arg)
{
    return meet(pmix_up_new(PMIX_UP_DISCONNECT, NULL), procs, n, info, ninfo, cb, arg);
}

/* --- publish, lookup, unpublish --------------------------------------------------------------------------------- */

int pmix_up_pair(struct buf *out, const char *key, size_t key_max, const pmix_value_t *v)
{
    struct buf bytes = {0};
    struct pmix_pair p = {.key = {key, strnlen(key, key_max)}};
    int rc = v == NULL ? 0 : pmix_value_pack(v, &bytes);

    p.value = buf_span(&bytes);
    if (rc == 0)
        rc = pmix_pair_add(out, &p);
    buf_done(&bytes);
    return rc;
}

static pmix_status_t up_publish(const pmix_proc_t *who, const pmix_info_t info[], size_t n, pmix_op_cbfunc_t cb,
                                void *arg)
{
    struct pmix_up *u = pmix_up_new(PMIX_UP_PUBLISH, who);
    int rc = 0;

    pmix_up_set_op(u, cb, arg);
    if (u != NULL)
        u->once = pmix_infos_number(info, n, PMIX_PERSISTENCE, PMIX_PERSIST_SESSION) == PMIX_PERSIST_FIRST_READ;
    for (size_t i = 0; u != NULL && rc == 0 && i < n; i++)
        if (strncmp(info[i].key, "pmix.", 5) != 0) /* those say how, not what */
            rc = pmix_up_pair(&u->data, info[i].key, sizeof(info[i].key), &info[i].value);
    return pmix_up_post(u, rc);
}

static struct pmix_up *about_keys(enum pmix_up_kind kind, const pmix_proc_t *who, char **keys, int *rc)
{
    struct pmix_up *u = pmix_up_new(kind, who);

    *rc = 0;
    for (size_t i = 0; u != NULL && *rc == 0 && keys != NULL && keys[i] != NULL; i++)
        *rc = pmix_up_pair(&u->data, keys[i], PMIX_MAX_KEYLEN, NULL);
    return u;
}

static pmix_status_t up_lookup(const pmix_proc_t *who, char **keys, const pmix_info_t info[], size_t n,
                               pmix_lookup_cbfunc_t cb, void *arg)
{
    int rc;
    struct pmix_up *u = about_keys(PMIX_UP_LOOKUP, who, keys, &rc);

    if (u == NULL)
        return PMIX_ERR_NOMEM;
    u->answer = answer_lookup;
    u->call = (void (*)(void))cb;
    u->call_arg = arg;
    u->wait = pmix_infos_find(info, n, PMIX_WAIT) != NULL; /* a number of keys, 0 for all: we wait for all */
    u->timeout = (uint32_t)pmix_infos_number(info, n, PMIX_TIMEOUT, 0);
    return pmix_up_post(u, rc);
}

static pmix_status_t up_unpublish(const pmix_proc_t *who, char **keys, const pmix_info_t info[], size_t n,
                                  pmix_op_cbfunc_t cb, void *arg)
{
    int rc;
    struct pmix_up *u = about_keys(PMIX_UP_UNPUBLISH, who, keys, &rc);

    (void)info;
    (void)n;
    pmix_up_set_op(u, cb, arg);
    return pmix_up_post(u, rc);
}

/* --- spawn ------------------------------------------------------------------------------------------------------ */

static int add_info(struct spawn_cmd *c, const char *key, const char *value)
{
    int rc = strv_add(&c->info, key);

    if (rc == 0)
        rc = strv_add(&c->info, value);
    c->ninfo += rc == 0;
    return rc;
}

/* PMIx's keys that have a meaning here, as MPI names them. */
static int copy_infos(struct spawn_cmd *c, const pmix_info_t *v, size_t n)
{
    static const char *const keys[][2] = {{PMIX_HOST, "host"}, {PMIX_WDIR, "wdir"}};
    int rc = 0;

    for (size_t i = 0; rc == 0 && i < sizeof(keys) / sizeof(keys[0]); i++) {
        const pmix_info_t *info = pmix_infos_find(v, n, keys[i][0]);

        if (info != NULL && info->value.type == PMIX_STRING && info->value.data.string != NULL)
            rc = add_info(c, keys[i][1], info->value.data.string);
    }
    return rc;
}

static int copy_app(struct spawn_cmd *c, const pmix_app_t *a)
{
    int rc = 0;

    if (a->cmd == NULL || a->maxprocs < 1 || a->maxprocs > (int)TASKS_MAX)
        return -EINVAL;
    c->nprocs = (uint32_t)a->maxprocs;
    rc = strv_add(&c->argv, a->cmd);
    for (size_t i = 1; rc == 0 && a->argv != NULL && a->argv[0] != NULL && a->argv[i] != NULL; i++)
        rc = strv_add(&c->argv, a->argv[i]);
    c->argc = (uint32_t)strv_count(c->argv);
    if (rc == 0 && a->cwd != NULL)
        rc = add_info(c, "wdir", a->cwd);
    for (size_t i = 0; rc == 0 && a->env != NULL && a->env[i] != NULL; i++)
        rc = add_info(c, SPAWN_INFO_ENV, a->env[i]);
    return rc == 0 ? copy_infos(c, a->info, a->ninfo) : rc;
}

static pmix_status_t up_spawn(const pmix_proc_t *who, const pmix_info_t info[], size_t ninfo, const pmix_app_t apps[],
                              size_t n, pmix_spawn_cbfunc_t cb, void *arg)
{
    struct pmix_up *u = pmix_up_new(PMIX_UP_SPAWN, who);
    int rc = 0;

    (void)info;
    (void)ninfo;
    if (u == NULL)
        return PMIX_ERR_NOMEM;
    u->answer = answer_spawn;
    u->call = (void (*)(void))cb;
    u->call_arg = arg;
    u->want.cmd = n == 0 || n > SPAWN_CMDS_MAX ? NULL : calloc(n, sizeof(*u->want.cmd));
    if (u->want.cmd == NULL)
        rc = -EINVAL;
    for (size_t i = 0; rc == 0 && i < n; i++) {
        u->want.count++;
        rc = copy_app(&u->want.cmd[i], &apps[i]);
    }
    return pmix_up_post(u, rc);
}

union pmix_module pmix_up_module = {
    .m = {.client_connected = up_connected,
          .client_finalized = up_finalized,
          .abort = up_abort,
          .fence_nb = up_fence,
          .direct_modex = up_get,
          .publish = up_publish,
          .lookup = up_lookup,
          .unpublish = up_unpublish,
          .spawn = up_spawn,
          .connect = up_connect,
          .disconnect = up_disconnect,
          .register_events = pmix_up_register,
          .deregister_events = pmix_up_deregister,
          .notify_event = pmix_up_notify,
          .query = pmix_up_query,
          .group = pmix_up_group,
          .log = up_log,
          .client_connected2 = up_connected2},
};
#endif
