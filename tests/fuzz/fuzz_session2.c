/* SPDX-License-Identifier: BSD-3-Clause */
/* PMI-2, and a connection of which nobody knows yet whose it is: the first byte says which of the two begins. A frame
 * that goes out can be taken apart again and has rc last but for a text; an unbound session tells nothing of the job
 * and asks its owner nothing but who it is. */
#include <stdint.h>
#include "common/pmi2.h"
#include "session_peer.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define INIT "cmd=init pmi_version=2 pmi_subversion=0\n"

static void check(struct peer *p, struct span reply)
{
    struct span payload = {reply.p + PMI2_HEADER, reply.n - PMI2_HEADER}, name;
    size_t len;

    if (reply.p[0] == 'c') {
        assert(reply.p[reply.n - 1] == '\n');
        assert(session_is_bound(p->s) || span_starts(reply, "cmd=response_to_init pmi_version=2"));
        return;
    }
    assert(session_is_bound(p->s));
    assert(pmi2_header(reply.p, &len) == 0 && len == payload.n);
    assert(pmi2_check(payload, &name) == 0);
    assert(name.n > 9 && memcmp(name.p + name.n - 9, "-response", 9) == 0);
    assert(pmi2_get(payload, "rc").n > 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct peer whole, cut;
    bool is_bound;

    if (size == 0)
        return 0;
    is_bound = data[0] % 2 != 0;
    peer_init(&whole, is_bound, check);
    peer_init(&cut, is_bound, check);
    if (is_bound) {
        assert(session_feed(whole.s, span_of(INIT), NULL) == 0);
        assert(session_feed(cut.s, span_of(INIT), NULL) == 0);
    }
    feed_both(&whole, &cut, (struct span){(const char *)data + 1, size - 1});
    peer_done(&whole);
    peer_done(&cut);
    return 0;
}
