/* SPDX-License-Identifier: BSD-3-Clause */
/* pm_map.c - keys that are read from a mapping of what the server has, where it is our own and offers one */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "client/pm.h"
#include "client/pm_shared.h"
#include "common/kvmap.h"

struct pm_map {
    struct kvmap view;
    struct pm_shared file;
    char value[KVTAB_VALUE_MAX];
};

void pm_unmap(struct pm *pm)
{
    if (pm->map != NULL)
        pm_shared_close(&pm->map->file);
    free(pm->map);
    pm->map = NULL;
}

/* Where that fails it is not tried again. */
static bool ask(struct pm *pm)
{
    struct pm_map *m = calloc(1, sizeof(*m));
    uint32_t slot = 0;

    pm->may_map = m != NULL && pm_shared_ask(pm, NULL, &m->file, &slot);
    if (pm->may_map && kvmap_open(&m->view, m->file.base, m->file.size, slot) < 0) {
        pm_shared_close(&m->file);
        pm->may_map = false;
    }
    if (pm->may_map)
        pm->map = m;
    else
        free(m);
    return pm->may_map;
}

/* Is it our own? The server knows what any other name stands for. */
static bool is_ours(struct pm *pm, const char *name)
{
    const char *own;

    return name == NULL || (pm_name(pm, &own, NULL) == PM_OK && strcmp(name, own) == 0);
}

bool pm_mapped(struct pm *pm, const char *name, const char *key, struct span *value)
{
    int rc = -ESTALE;
    size_t n = 0;

    if (!pm->may_map || pm->wire.is_broken || !is_ours(pm, name))
        return false;
    /* Twice: in place of one that is stale there is another. */
    for (int i = 0; i < 2 && rc == -ESTALE && (pm->map != NULL || ask(pm)); i++) {
        rc = kvmap_get(&pm->map->view, span_of(key), pm->map->value, &n);
        if (rc == 0)
            *value = (struct span){pm->map->value, n};
        else if (rc == -ESTALE)
            pm_unmap(pm);
    }
    return rc == 0;
}
