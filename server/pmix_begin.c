/* SPDX-License-Identifier: BSD-3-Clause */
#include "config.h"
#ifdef HAVE_PMIX
#include "server/pmix_begin.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "server/pmix_priv.h"
#include "server/pmix_value.h"

/* What an outer launcher has told this process is not for its own server. PMIX_MCA_* is the user's tuning. */
void pmix_begin_clean(void)
{
    extern char **environ;
    char name[128];

    for (size_t i = 0; environ[i] != NULL;) {
        size_t n = strcspn(environ[i], "=");

        if (strncmp(environ[i], "PMIX_", 5) != 0 || strncmp(environ[i], "PMIX_MCA_", 9) == 0 || n >= sizeof(name)) {
            i++;
            continue;
        }
        memcpy(name, environ[i], n);
        name[n] = '\0';
        (void)unsetenv(name);
    }
}

int pmix_begin_settings(const char *but, struct buf *out)
{
    extern char **environ;
    int rc = 0;

    for (size_t i = 0; rc == 0 && environ[i] != NULL; i++) {
        size_t n = strcspn(environ[i], "=");
        bool left_out = but != NULL && strlen(but) == n && strncmp(environ[i], but, n) == 0;

        if (strncmp(environ[i], "PMIX_MCA_", 9) == 0 && !left_out)
            rc = buf_printf(out, "%s%s", out->len > 0 ? ", " : "", environ[i]);
    }
    return rc;
}

static pmix_status_t start_server(const struct pmix_lib *lib, const struct pmix_space *s)
{
    const char *tmp = s->tmp == NULL ? "/tmp" : s->tmp;
    struct pmix_infos l = {0};
    pmix_status_t rc;

    pmix_infos_str(&l, PMIX_SERVER_NSPACE, "pmi-start");
    pmix_infos_rank(&l, PMIX_SERVER_RANK, s->node);
    pmix_infos_str(&l, PMIX_HOSTNAME, s->host);
    pmix_infos_str(&l, PMIX_SERVER_TMPDIR, tmp);
    pmix_infos_str(&l, PMIX_SYSTEM_TMPDIR, tmp);
    pmix_infos_bool(&l, PMIX_SERVER_TOOL_SUPPORT, false);
    rc = l.failed < 0 ? PMIX_ERR_NOMEM : lib->server_init(&pmix_up_module.m, l.v, l.count);
    pmix_infos_done(&l);
    return rc;
}

static int join_ranks(const struct pmix_space *s, struct buf *out)
{
    int rc = 0;

    for (uint32_t i = 0; rc == 0 && i < s->local_size; i++)
        rc = buf_printf(out, "%s%u", i > 0 ? "," : "", s->local[i]);
    return rc;
}

void pmix_begin_name(char *out, const char *name)
{
    memset(out, 0, sizeof(pmix_nspace_t));
    strncpy(out, name, PMIX_MAX_NSLEN);
}

/* All that is told of one rank, as what is told of it in part is not worked out from the maps any more. */
static pmix_status_t put_rank(const struct pmix_space *s, uint32_t i, pmix_data_array_t *out)
{
    const struct pmix_rank *r = &s->rank[i];
    struct pmix_infos l = {0};

    pmix_infos_rank(&l, PMIX_RANK, i); /* it has to be the first */
    pmix_infos_u32(&l, PMIX_APPNUM, r->app);
    pmix_infos_rank(&l, PMIX_APP_RANK, r->app_rank);
    pmix_infos_rank(&l, PMIX_GLOBAL_RANK, i);
    pmix_infos_u32(&l, PMIX_NODEID, r->node);
    pmix_infos_u16(&l, PMIX_LOCAL_RANK, r->local);
    pmix_infos_u16(&l, PMIX_NODE_RANK, r->local);
    *out = (pmix_data_array_t){.type = PMIX_INFO, .size = l.count, .array = l.v};
    return l.failed < 0 ? PMIX_ERR_NOMEM : PMIX_SUCCESS;
}

/* One for each rank, NULL where all of it follows from the maps. */
static pmix_data_array_t *put_ranks(const struct pmix_space *s, struct pmix_infos *l)
{
    pmix_data_array_t *v = s->rank == NULL ? NULL : calloc(s->size + 1u, sizeof(*v));

    if (v == NULL && s->rank != NULL)
        l->failed = -ENOMEM;
    for (uint32_t i = 0; v != NULL && i < s->size && l->failed == 0; i++) {
        if (put_rank(s, i, &v[i]) != PMIX_SUCCESS)
            l->failed = -ENOMEM;
        pmix_infos_array(l, PMIX_PROC_DATA, &v[i]);
    }
    return v;
}

static void drop_ranks(const struct pmix_space *s, pmix_data_array_t *v)
{
    for (uint32_t i = 0; v != NULL && i < s->size; i++)
        free(v[i].array);
    free(v);
}

static pmix_status_t register_space(const struct pmix_lib *lib, const struct pmix_space *s, const char *nodes,
                                    const char *procs, const char *peers)
{
    pmix_proc_t parent = {.rank = s->parent_rank};
    pmix_data_array_t *ranks;
    struct pmix_infos l = {0};
    pmix_nspace_t name;
    pmix_status_t rc;

    pmix_begin_name(name, s->name);
    pmix_infos_str(&l, PMIX_NODE_MAP, nodes);
    pmix_infos_str(&l, PMIX_PROC_MAP, procs);
    pmix_infos_str(&l, PMIX_ANL_MAP, s->mapping);
    pmix_infos_u32(&l, PMIX_JOB_SIZE, s->size);
    pmix_infos_u32(&l, PMIX_UNIV_SIZE, s->size);
    pmix_infos_u32(&l, PMIX_MAX_PROCS, s->size);
    pmix_infos_u32(&l, PMIX_JOB_NUM_APPS, s->apps);
    pmix_infos_u32(&l, PMIX_LOCAL_SIZE, s->local_size);
    if (s->local_size > 0)
        pmix_infos_str(&l, PMIX_LOCAL_PEERS, peers);
    if (s->parent != NULL) {
        pmix_begin_name(parent.nspace, s->parent);
        pmix_infos_bool(&l, PMIX_SPAWNED, true);
        pmix_infos_proc(&l, PMIX_PARENT_ID, &parent);
    }
    ranks = put_ranks(s, &l);
    rc = l.failed < 0 ? PMIX_ERR_NOMEM : lib->register_nspace(name, (int)s->local_size, l.v, l.count, NULL, NULL);
    drop_ranks(s, ranks);
    pmix_infos_done(&l);
    return rc;
}

static pmix_status_t add_space(const struct pmix_lib *lib, const struct pmix_space *s)
{
    struct buf peers = {0};
    char *nodes = NULL, *procs = NULL;
    pmix_status_t rc = lib->generate_regex(s->nodes, &nodes);

    if (rc == PMIX_SUCCESS)
        rc = lib->generate_ppn(s->procs, &procs);
    if (rc == PMIX_SUCCESS && (join_ranks(s, &peers) < 0 || buf_str(&peers) == NULL))
        rc = PMIX_ERR_NOMEM;
    if (rc == PMIX_SUCCESS)
        rc = register_space(lib, s, nodes, procs, peers.p);
    free(nodes);
    free(procs);
    buf_done(&peers);
    return rc;
}

pmix_status_t pmix_begin(const struct pmix_lib *lib, const struct pmix_space *s, bool *started, const char **what)
{
    pmix_proc_t p = {.rank = 0};
    pmix_status_t rc;

    if (!*started) {
        *what = "the server does not begin";
        rc = start_server(lib, s);
        if (rc != PMIX_SUCCESS)
            return rc;
        *started = true;
    }
    *what = "the namespace is refused";
    rc = add_space(lib, s);
    pmix_begin_name(p.nspace, s->name);
    for (uint32_t i = 0; pmix_lib_rc(rc) == 0 && i < s->local_size; i++) {
        *what = "a rank is refused";
        p.rank = s->local[i];
        rc = lib->register_client(&p, getuid(), getgid(), NULL, NULL, NULL);
    }
    return rc;
}
#endif
