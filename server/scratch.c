/* SPDX-License-Identifier: BSD-3-Clause */
#include "server/scratch.h"

#include <errno.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include "common/io/log.h"

#define PATH_LEN 2000
#define FALLBACK "/tmp"

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

static int make_below(enum scratch_kind kind, const char *base)
{
    char path[PATH_LEN];
    int n = snprintf(path, sizeof(path), "%s/pmi-start.XXXXXX", base);

    if (n < 0 || (size_t)n >= sizeof(path))
        return -ENAMETOOLONG;
    if (mkdtemp(path) == NULL)
        return -errno;
    memcpy(page->path[kind], path, (size_t)n + 1);
    return 0;
}

/* Whoever is given none makes one of its own where it likes, or does not begin and hardly says why. */
const char *scratch_make(enum scratch_kind kind, const char *base)
{
    char why[PATH_LEN];
    int rc;

    if (page == NULL)
        return NULL;
    rc = make_below(kind, base);
    if (rc == 0)
        return page->path[kind];
    snprintf(why, sizeof(why), "cannot make a folder in %s (%s)", log_escape(span_of(base)), strerror(-rc));
    if (strcmp(base, FALLBACK) != 0 && make_below(kind, FALLBACK) == 0) {
        log_warn("%s: " FALLBACK " is used instead", why);
        return page->path[kind];
    }
    log_warn("%s%s: let TMPDIR name one where that is possible", why,
             strcmp(base, FALLBACK) == 0 ? "" : " nor in " FALLBACK);
    return NULL;
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
