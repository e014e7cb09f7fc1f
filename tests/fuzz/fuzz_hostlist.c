/* SPDX-License-Identifier: BSD-3-Clause */
/* Host lists: the bytes as one list, and as the lines of a host file. What is accepted folds to text that expands to
 * the same list; what is refused leaves the list as it was, with one line that says why.
 */
#include <assert.h>
#include <stdint.h>
#include <string.h>
#include "common/hostlist.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Larger lists only cost time here. */
#define COUNT_MAX 5000

static void expect_same(const struct hostlist *a, const struct hostlist *b)
{
    assert(hostlist_count(a) == hostlist_count(b));
    for (size_t i = 0; i < hostlist_count(a); i++)
        assert(strcmp(hostlist_get(a, i).name, hostlist_get(b, i).name) == 0);
}

static void expect_plain(const struct err *err)
{
    assert(err->code < 0 && err->text[0] != '\0');
    for (const char *p = err->text; *p != '\0'; p++)
        assert(*p >= ' ' && *p <= '~');
}

static void fold_and_expand(const struct hostlist *hl, bool brackets_v6)
{
    struct hostlist *again = hostlist_new();
    struct buf text = {0};
    struct err err = {0};

    assert(hostlist_fold(hl, brackets_v6, &text) == 0);
    assert(hostlist_count(hl) == 0 || hostlist_add(again, buf_span(&text), NULL, NULL, &err) == 0);
    expect_same(hl, again);
    buf_done(&text);
    hostlist_free(again);
}

static void check(struct hostlist *hl, int rc, size_t before, const struct err *err)
{
    if (rc < 0) {
        assert(hostlist_count(hl) == before);
        expect_plain(err);
    }
    if (hostlist_count(hl) > COUNT_MAX)
        hostlist_truncate(hl, COUNT_MAX);
}

/* A file that always has the same two hosts. */
static int two_hosts(struct hostlist *hl, const char *path, void *arg, struct err *err)
{
    (void)arg;
    assert(path[0] != '\0');
    return hostlist_add(hl, span_of("x1,x2"), NULL, NULL, err);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *text = (const char *)data, *end = text + size;
    struct hostlist *hl = hostlist_new(), *lines = hostlist_new();
    unsigned lineno = 0;
    struct err err = {0};

    check(hl, hostlist_add(hl, (struct span){text, size}, two_hosts, NULL, &err), 0, &err);
    for (const char *p = text; p < end;) {
        const char *nl = memchr(p, '\n', (size_t)(end - p));
        const char *stop = nl ? nl : end;
        size_t before = hostlist_count(lines);

        check(lines, hostlist_add_line(lines, (struct span){p, (size_t)(stop - p)}, ++lineno, &err), before, &err);
        p = stop + 1;
    }
    fold_and_expand(hl, false);
    fold_and_expand(lines, true);
    hostlist_free(hl);
    hostlist_free(lines);
    return 0;
}
