/* SPDX-License-Identifier: BSD-3-Clause */
/* PMI-1 on a task's own descriptor. No reply without a request line, every reply whole lines of which the first begins
 * with cmd= and is short enough for MPICH 4.0.2. */
#include <stdint.h>
#include "session_peer.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(struct peer *p, struct span reply)
{
    (void)p;
    assert(reply.p[reply.n - 1] == '\n' && span_starts(reply, "cmd="));
    if (span_starts(reply, "cmd=initack\n"))
        return;
    /* Behind an init of version 2 come frames, which are fuzz_session2's. */
    assert(memchr(reply.p, '\n', reply.n) == reply.p + reply.n - 1 && memchr(reply.p, '\0', reply.n) == NULL);
    assert(reply.n <= PMI_REPLY_MAX || span_starts(reply, "cmd=get_result rc=0 value="));
}

static void check_frames(struct peer *p, struct span reply)
{
    if (reply.p[reply.n - 1] == '\n')
        check(p, reply);
    else
        assert(reply.p[reply.n - 1] == ';');
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct peer whole, cut;

    peer_init(&whole, true, check_frames);
    peer_init(&cut, true, check_frames);
    feed_both(&whole, &cut, (struct span){(const char *)data, size});
    peer_done(&whole);
    peer_done(&cut);
    return 0;
}
