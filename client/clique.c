/* SPDX-License-Identifier: BSD-3-Clause */
#include "client/clique.h"

#include <errno.h>
#include <stdlib.h>
#include "common/mapping.h"

static int gather(const uint32_t *node_of, int rank, int size, int *ranks)
{
    int n = 0;

    for (int r = 0; r < size; r++)
        if (node_of[r] == node_of[rank])
            ranks[n++] = r;
    return n;
}

int clique_read(struct span mapping, int rank, int size, int **ranks, int *count)
{
    uint32_t *node_of;
    int *list = malloc((size_t)size * sizeof(*list)), rc = 0, n = 1;

    if (list == NULL)
        return -ENOMEM;
    list[0] = rank;
    if (mapping.n > 0) {
        node_of = malloc((size_t)size * sizeof(*node_of));
        rc = node_of == NULL ? -ENOMEM : mapping_read_repeated(mapping, node_of, (uint32_t)size);
        if (rc == 0)
            n = gather(node_of, rank, size, list);
        free(node_of);
    }
    if (rc < 0) {
        free(list);
        return rc;
    }
    *ranks = list;
    *count = n;
    return 0;
}
