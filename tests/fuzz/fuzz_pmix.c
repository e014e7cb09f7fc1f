/* SPDX-License-Identifier: BSD-3-Clause */
/* fuzz_pmix.c - what other nodes say of PMIx: the name of a collective, and what is published and looked up */
#include <assert.h>
#include <stdint.h>
#include <stdlib.h>
#include "server/pmix_pair.h"
#include "server/pmix_sig.h"
#include "server/pmix_store.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Members in order come out as they went in. */
static void sig(struct span text)
{
    struct pmix_member m, v[64];
    struct buf again = {0};
    size_t n = 0;
    int rc;

    while ((rc = pmix_sig_next(&text, &m)) == 1) {
        assert(m.first <= m.last);
        if (n < 64)
            v[n++] = m;
    }
    if (n > 0)
        assert(pmix_sig_make(PMIX_SIG_FENCE, v, n, &again) == 0 && again.len > 1);
    buf_done(&again);
}

static void answer(const struct pmix_asker *who, int rc, struct span pairs, void *arg)
{
    struct pmix_pair p;
    int more;

    (void)who;
    (void)rc;
    while ((more = pmix_pair_next(&pairs, &p)) == 1)
        ++*(unsigned *)arg;
    assert(more == 0);
}

static void store(struct span bytes)
{
    const struct pmix_asker who = {0, 0};
    unsigned found = 0;
    struct pmix_store *s = pmix_store_new(answer, &found);

    assert(s != NULL);
    (void)pmix_store_lookup(s, &who, bytes, true, 1);
    (void)pmix_store_publish(s, bytes, true);
    (void)pmix_store_lookup(s, &who, bytes, false, 0);
    (void)pmix_store_unpublish(s, bytes);
    (void)pmix_store_expire(s, 2);
    pmix_store_free(s);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct span all = {(const char *)data, size};

    if (size == 0)
        return 0;
    sig(all);
    store((struct span){all.p + 1, all.n - 1});
    return 0;
}
