/* SPDX-License-Identifier: BSD-3-Clause */
/* What nodes tell each other while they log in to others. The first byte says which message the rest is. What is
 * accepted speaks of places that there are, and says the same when it is written and read again. */
#include <assert.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include "server/logins_msg.h"

#define PLACES 1000

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_ranges(const struct ranges *r)
{
    uint32_t total = 0, end = 0;

    for (uint32_t i = 0; i < r->count; i++) {
        assert(r->v[i].first > end || (i == 0 && r->v[i].first > 0));
        assert(r->v[i].count > 0 && r->v[i].count <= PLACES - r->v[i].first);
        end = r->v[i].first + r->v[i].count;
        total += r->v[i].count;
    }
    assert(total == r->total);
}

static void check_note(const struct logins_note *n, unsigned type)
{
    struct msg_out *m = msg_out_new();
    struct logins_note again;
    struct span body;

    check_ranges(&n->ranges);
    assert(n->one < PLACES && n->from < PLACES && n->left < PLACES);
    for (uint32_t i = 0; i < n->count; i++)
        assert(n->place[i] > 0 && n->place[i] < PLACES && n->parent[i] < PLACES);
    assert(m != NULL);
    assert(logins_note_put(n, type, m) == 0);
    assert(msg_out_done(m, &body) == 0);
    assert(logins_note_get(body, type, PLACES, &again, NULL) == 0);
    assert(again.count == n->count && again.ranges.total == n->ranges.total && again.one == n->one);
    assert(again.from == n->from && again.left == n->left && again.closed == n->closed &&
           (again.text == NULL) == (n->text == NULL));
    logins_note_done(&again);
    msg_out_free(m);
}

static void check_how(struct span body)
{
    struct logins_how how, again;
    struct msg_in *m;
    struct msg_out *out = msg_out_new();

    assert(out != NULL);
    if (msg_in_new(&m, body, NULL) == 0) {
        if (logins_how_get(m, &how, NULL) == 0) {
            struct msg_in *m2;

            assert(how.places >= 2 && how.width > 0 && how.logins > 0 && how.program != NULL);
            logins_how_put(&how, out);
            assert(msg_out_done(out, &body) == 0 && msg_in_new(&m2, body, NULL) == 0);
            assert(logins_how_get(m2, &again, NULL) == 0 && strcmp(how.program, again.program) == 0);
            logins_how_done(&again);
            msg_in_free(m2);
            logins_how_done(&how);
        }
        msg_in_free(m);
    }
    msg_out_free(out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const unsigned types[] = {MSG_JOINED, MSG_UNJOINED, MSG_WANT, MSG_BACK, MSG_LOGIN_FAILED};
    struct span body = {(const char *)data + 1, size - 1};
    struct logins_share share;
    struct logins_note note;

    if (size == 0)
        return 0;
    if (data[0] % 7 < 5) {
        if (logins_note_get(body, types[data[0] % 7], PLACES, &note, NULL) == 0) {
            check_note(&note, types[data[0] % 7]);
            logins_note_done(&note);
        }
    } else if (data[0] % 7 == 5) {
        if (logins_share_get(body, PLACES, &share, NULL) == 0) {
            assert(share.range.first > 0 && share.range.count <= PLACES - share.range.first);
            assert(hostlist_count(share.hosts) == share.range.count);
            hostlist_free(share.hosts);
        }
    } else {
        check_how(body);
    }
    return 0;
}
