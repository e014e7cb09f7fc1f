/* SPDX-License-Identifier: BSD-3-Clause */
/* The finder of key lines: the first byte says where the rest is cut; whole and in pieces the same must be found. */
#include <assert.h>
#include <stdint.h>
#include <string.h>
#include "bootstrap/keyline.h"
#include "common/util.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* A sum over what was found, so that two runs can be compared. */
static uint64_t feed(const char *text, size_t len, size_t piece)
{
    struct keyline k = {0};
    struct keyline_found found;
    uint64_t sum = 0;

    for (size_t at = 0; at < len; at += piece) {
        struct span in = {text + at, MIN(piece, len - at)};

        while (keyline_next(&k, &in, &found) == 1) {
            assert(strlen(found.key) == KEYLINE_KEY_LEN);
            sum = sum * 31 + found.run * 7u + found.index * 3u + (unsigned char)found.key[0] + 1;
        }
        assert(in.n == 0 && k.len < sizeof(k.hold));
    }
    return sum;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 1)
        return 0;
    assert(feed((const char *)data + 1, size - 1, size) == feed((const char *)data + 1, size - 1, 1u + data[0]));
    return 0;
}
