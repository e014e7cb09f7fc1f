/* SPDX-License-Identifier: BSD-3-Clause */
/* A job message. What is accepted fits together: a tree can be made of it and every rank has a node; written again it
 * is accepted again, and is the same then. */
#include <assert.h>
#include <stdint.h>
#include <stdlib.h>
#include "server/job.h"
#include "server/tree.h"

#define RANKS_MAX 100000 /* more only cost time */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_places(const struct job *j)
{
    uint32_t *place_of = job_place_of_node(j), *node_of = job_node_of(j), *ranks = calloc(j->places, sizeof(*ranks));
    struct tree *t = NULL;

    assert(place_of != NULL && node_of != NULL && ranks != NULL);
    for (uint32_t r = 0; r < j->size; r++)
        assert(node_of[r] < j->nodes);
    for (uint32_t n = 0; n < j->nodes; n++)
        assert(place_of[n] == TREE_NONE || place_of[n] < j->places);
    if (tree_make(j->parent, j->node_at, ranks, j->places, &t, NULL) == 0)
        assert(t->count == j->places);
    tree_free(t);
    free(place_of);
    free(node_of);
    free(ranks);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct span body = {(const char *)data, size};
    struct job *j, *again;
    struct buf first, second;

    if (job_unpack(body, &j, NULL) < 0)
        return 0;
    if (j->size <= RANKS_MAX) {
        check_places(j);
        for (uint32_t r = 0; r < j->size; r++)
            assert(job_app_of(j, r) < j->app_count);
    }
    buf_init(&first, 0);
    buf_init(&second, 0);
    assert(job_pack(j, &first) == 0);
    assert(job_unpack(buf_span(&first), &again, NULL) == 0);
    assert(job_pack(again, &second) == 0 && span_eq(buf_span(&first), buf_span(&second)));
    buf_done(&first);
    buf_done(&second);
    job_free(again);
    job_free(j);
    return 0;
}
