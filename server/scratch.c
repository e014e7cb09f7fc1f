/* SPDX-License-Identifier: BSD-3-Clause */
#include "server/scratch.h"

#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define PATH_LEN 2000

struct page {
    char path[SCRATCH_KINDS][PATH_LEN];
};

static struct page *page;

void scratch_share(void)
{
    void *p;

    if (page != NULL)
        return;
    p = mmap(NULL, sizeof(*page), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    page = p == MAP_FAILED ? NULL : p;
}

const char *scratch_make(enum scratch_kind kind, const char *base)
{
    char path[PATH_LEN];
    int n = snprintf(path, sizeof(path), "%s/pmi-start.XXXXXX", base);

    if (page == NULL || n < 0 || (size_t)n >= sizeof(path) || mkdtemp(path) == NULL)
        return NULL;
    memcpy(page->path[kind], path, (size_t)n + 1);
    return page->path[kind];
}

const char *scratch_path(enum scratch_kind kind)
{
    return page == NULL || page->path[kind][0] == '\0' ? NULL : page->path[kind];
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *at)
{
    (void)st;
    (void)at;
    if (type == FTW_DP)
        (void)rmdir(path);
    else
        (void)unlink(path);
    return 0;
}

void scratch_remove(void)
{
    for (int i = 0; page != NULL && i < SCRATCH_KINDS; i++) {
        if (page->path[i][0] != '\0')
            (void)nftw(page->path[i], remove_one, 16, FTW_DEPTH | FTW_PHYS);
        page->path[i][0] = '\0';
    }
}
