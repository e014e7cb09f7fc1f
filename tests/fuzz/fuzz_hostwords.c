/* SPDX-License-Identifier: BSD-3-Clause */
/* Lines of a login's output: the first byte says where the rest is cut; whole and in pieces the same must come out. */
#include <assert.h>
#include <stdint.h>
#include "bootstrap/hostwords.h"
#include "common/util.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void add(const struct hostwords_line *line, void *arg)
{
    uint64_t *sum = arg;

    assert(line->whole.n > 0 && line->whole.n <= HOSTWORDS_LINE_MAX && line->exit_code >= -1 && line->exit_code <= 255);
    assert(line->host.p == NULL || (line->host.n > 0 && line->host.n + line->text.n + 2 <= line->whole.n));
    for (size_t i = 0; i < line->text.n; i++)
        *sum = *sum * 31 + (unsigned char)line->text.p[i];
    *sum = *sum * 31 + line->host.n + (uint64_t)(line->exit_code + 1) * 7;
}

static uint64_t feed(const char *text, size_t len, size_t piece)
{
    struct hostwords w = {0};
    uint64_t sum = 0;

    for (size_t at = 0; at < len; at += piece)
        hostwords_feed(&w, (struct span){text + at, MIN(piece, len - at)}, add, &sum);
    hostwords_end(&w, add, &sum);
    return sum;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 1)
        return 0;
    assert(feed((const char *)data + 1, size - 1, size) == feed((const char *)data + 1, size - 1, 1u + data[0]));
    return 0;
}
