/* SPDX-License-Identifier: BSD-3-Clause */
#include "server/pmix_space.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "common/buf.h"

void pmix_space_done(struct pmix_space *s)
{
    free(s->name);
    free(s->host);
    free(s->nodes);
    free(s->procs);
    free(s->mapping);
    free(s->tmp);
    free(s->parent);
    free(s->local);
    free(s->rank);
    *s = (struct pmix_space){0};
}

static char *copy(const char *s)
{
    return s == NULL ? NULL : strdup(s);
}

/* The ranks of each node as text. */
static int list_ranks(const struct job *j, struct buf *ranks)
{
    uint32_t rank = 0;
    int rc = 0;

    for (uint32_t i = 0; rc == 0 && i < j->runs; i++)
        for (uint32_t k = 0; rc == 0 && k < j->run_len[i]; k++, rank++) {
            struct buf *b = &ranks[j->run_node[i]];

            rc = buf_printf(b, "%s%u", b->len > 0 ? "," : "", rank);
        }
    return rc;
}

/* Nodes without a rank are left out. */
static int join(const struct job *j, struct buf *ranks, struct pmix_space *s)
{
    struct buf nodes = {0}, procs = {0};
    int rc = 0;

    for (uint32_t i = 0; rc == 0 && i < j->nodes; i++) {
        if (ranks[i].len == 0)
            continue;
        rc = buf_printf(&nodes, "%s%s", nodes.len > 0 ? "," : "", j->hosts[i]);
        if (rc == 0)
            rc = buf_printf(&procs, "%s%s", procs.len > 0 ? ";" : "", buf_str(&ranks[i]));
    }
    if (rc == 0) {
        s->nodes = copy(buf_str(&nodes));
        s->procs = copy(buf_str(&procs));
    }
    buf_done(&nodes);
    buf_done(&procs);
    return rc < 0 || s->nodes == NULL || s->procs == NULL ? -ENOMEM : 0;
}

static int set_maps(const struct job *j, struct pmix_space *s)
{
    struct buf *ranks = calloc(j->nodes, sizeof(*ranks));
    int rc = ranks == NULL ? -ENOMEM : list_ranks(j, ranks);

    if (rc == 0)
        rc = join(j, ranks, s);
    for (uint32_t i = 0; ranks != NULL && i < j->nodes; i++)
        buf_done(&ranks[i]);
    free(ranks);
    return rc;
}

static int set_local(const struct job *j, uint32_t node, struct pmix_space *s)
{
    uint32_t rank = 0;

    for (uint32_t i = 0; i < j->runs; i++)
        s->local_size += j->run_node[i] == node ? j->run_len[i] : 0;
    s->local = calloc(s->local_size + 1u, sizeof(*s->local));
    if (s->local == NULL)
        return -ENOMEM;
    s->local_size = 0;
    for (uint32_t i = 0; i < j->runs; i++)
        for (uint32_t k = 0; k < j->run_len[i]; k++, rank++)
            if (j->run_node[i] == node)
                s->local[s->local_size++] = rank;
    return 0;
}

/* As the library counts the nodes of the maps, where those without ranks are left out; from 1. */
static void number_nodes(const struct job *j, uint32_t *number)
{
    uint32_t n = 0;

    for (uint32_t i = 0; i < j->runs; i++)
        number[j->run_node[i]] = 1;
    for (uint32_t i = 0; i < j->nodes; i++)
        if (number[i] != 0)
            number[i] = ++n;
}

static void fill_ranks(const struct job *j, const uint32_t *number, uint32_t *seen, struct pmix_rank *out)
{
    uint32_t app = 0, nth = 0;

    for (uint32_t i = 0; i < j->runs; i++)
        for (uint32_t k = 0; k < j->run_len[i]; k++, nth++) {
            uint32_t node = j->run_node[i];

            if (app + 1 < j->app_count && nth >= j->app[app].ntasks) {
                app++;
                nth = 0;
            }
            *out++ = (struct pmix_rank){app, nth, number[node] - 1, seen[node]++};
        }
}

static int set_ranks(const struct job *j, struct pmix_space *s)
{
    uint32_t *number = calloc(j->nodes + 1u, sizeof(*number)), *seen = calloc(j->nodes + 1u, sizeof(*seen));
    int rc;

    s->rank = calloc(j->size + 1u, sizeof(*s->rank));
    rc = number == NULL || seen == NULL || s->rank == NULL ? -ENOMEM : 0;
    if (rc == 0) {
        number_nodes(j, number);
        fill_ranks(j, number, seen, s->rank);
    }
    free(number);
    free(seen);
    return rc;
}

int pmix_space_make(const struct job *j, uint32_t node, const char *tmp, struct pmix_space *out)
{
    struct pmix_space s = {.node = node, .size = j->size, .apps = j->app_count, .parent_rank = j->parent_rank};

    s.name = copy(j->nspace);
    s.host = copy(node < j->nodes ? j->hosts[node] : "");
    s.mapping = copy(j->mapping);
    s.tmp = copy(tmp);
    s.parent = copy(j->parent_nspace);
    if (s.name == NULL || s.host == NULL || (j->mapping != NULL && s.mapping == NULL) ||
        (j->parent_nspace != NULL && s.parent == NULL) || set_maps(j, &s) < 0 || set_local(j, node, &s) < 0 ||
        (j->app_count > 1 && set_ranks(j, &s) < 0)) {
        pmix_space_done(&s);
        return -ENOMEM;
    }
    *out = s;
    return 0;
}
