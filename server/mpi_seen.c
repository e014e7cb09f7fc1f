/* SPDX-License-Identifier: BSD-3-Clause */
#include "server/mpi_seen.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "common/span.h"
#include "server/descendants.h"

#define PROCESSES_MAX 256
#define LINES_MAX 20000 /* of a process's maps */

/* Whether `matches` is true of one of the file's pieces, which end with `mark`. */
static bool find(const char *proc, pid_t pid, const char *name, int mark, bool (*matches)(const char *piece))
{
    char path[64], *piece = NULL;
    size_t cap = 0;
    bool found = false;
    FILE *f;

    snprintf(path, sizeof(path), "%s/%d/%s", proc, (int)pid, name);
    f = fopen(path, "re");
    if (f == NULL)
        return false;
    for (unsigned i = 0; !found && i < LINES_MAX && getdelim(&piece, &cap, mark, f) > 0; i++)
        found = matches(piece);
    free(piece);
    fclose(f);
    return found;
}

/* A line of maps ends with the path of the library: libmpi.so.40.30.4 */
static bool is_library(const char *line)
{
    const char *slash = strrchr(line, '/');

    return slash != NULL && span_starts(span_of(slash), "/libmpi.so.40");
}

static bool is_pmix(const char *variable)
{
    return span_starts(span_of(variable), "PMIX_NAMESPACE=");
}

static bool is_alone(const char *proc, pid_t pid)
{
    return find(proc, pid, "maps", '\n', is_library) && !find(proc, pid, "environ", '\0', is_pmix);
}

bool mpi_is_alone(const char *proc, pid_t pid)
{
    struct descendants below = {0};
    bool found = is_alone(proc, pid);

    if (!found && descendants_list(&below, proc, pid, NULL, 0) == 0)
        for (size_t i = 0; !found && i < below.count && i < PROCESSES_MAX; i++)
            found = is_alone(proc, below.p[i].pid);
    descendants_done(&below);
    return found;
}
