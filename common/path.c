/* SPDX-License-Identifier: BSD-3-Clause */
#include "common/path.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int path_absolute(const char *path, char **out)
{
    char *here;
    int rc = 0;

    *out = NULL;
    if (path[0] == '/') {
        *out = strdup(path);
        return *out == NULL ? -ENOMEM : 0;
    }
    here = getcwd(NULL, 0);
    if (here == NULL)
        return -errno;
    while (path[0] == '.' && path[1] == '/')
        path += 1 + strspn(path + 1, "/");
    if (asprintf(out, "%s%s%s", here, here[1] == '\0' ? "" : "/", path) < 0) {
        *out = NULL;
        rc = -ENOMEM;
    }
    free(here);
    return rc;
}
