/* SPDX-License-Identifier: BSD-3-Clause */
/* What resource managers say of an allocation. The first byte chooses the format. What is accepted are hosts with
 * slots, each once but for Slurm's; what is refused has one plain line that says why.
 */
#include <assert.h>
#include <stdint.h>
#include <string.h>
#include "common/limits.h"
#include "conf/alloc.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define COMPARED_MAX 300

static void expect_plain(const struct err *err)
{
    assert(err->code < 0 && err->text[0] != '\0');
    for (const char *p = err->text; *p != '\0'; p++)
        assert(*p >= ' ' && *p <= '~');
}

static void expect_hosts(const struct hostlist *hl, bool once)
{
    assert(hostlist_count(hl) > 0);
    for (size_t i = 0; i < hostlist_count(hl); i++) {
        assert(hostlist_get(hl, i).slots >= 1 && hostlist_get(hl, i).slots <= SLOTS_MAX);
        for (size_t k = 0; once && k < i && i < COMPARED_MAX; k++)
            assert(strcmp(hostlist_get(hl, i).name, hostlist_get(hl, k).name) != 0);
    }
}

/* "LIST\nCOUNTS", as in SLURM_JOB_NODELIST and SLURM_TASKS_PER_NODE. */
static int slurm(struct span text, struct hostlist *out, struct err *err)
{
    const char *nl = memchr(text.p, '\n', text.n);
    struct hostlist *names = hostlist_new();
    int rc = -EINVAL;

    if (nl != NULL)
        rc = hostlist_add(names, (struct span){text.p, (size_t)(nl - text.p)}, NULL, NULL, err);
    else
        err_set(err, -EINVAL, "one line");
    if (rc == 0)
        rc = alloc_slurm_slots(names, (struct span){nl + 1, text.n - (size_t)(nl + 1 - text.p)}, 1, out, err);
    assert(rc < 0 || hostlist_count(out) == hostlist_count(names));
    hostlist_free(names);
    return rc;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const enum alloc_format formats[] = {ALLOC_REPEATED, ALLOC_PAIRS, ALLOC_QUEUES};
    struct hostlist *hl = hostlist_new();
    struct err err = {0};
    struct span text;
    int rc;

    if (size > 0) {
        text = (struct span){(const char *)data + 1, size - 1};
        rc = data[0] % 4 == 3 ? slurm(text, hl, &err) : alloc_hosts(text, formats[data[0] % 4], hl, &err);
        if (rc == 0)
            expect_hosts(hl, data[0] % 4 != 3);
        else
            expect_plain(&err);
    }
    hostlist_free(hl);
    return 0;
}
