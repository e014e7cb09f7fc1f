/* SPDX-License-Identifier: BSD-3-Clause */
/* One line cut into attributes: every span lies in the line, words are whole, and a lookup finds the first. */
#include <assert.h>
#include <stdint.h>
#include "common/pmi1.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static bool is_inside(struct span part, struct span whole)
{
    return part.p >= whole.p && part.p + part.n <= whole.p + whole.n;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct span text = {(const char *)data, size};
    struct pmi_line line;

    if (pmi_line_split(&line, text) < 0)
        return 0;
    assert(line.count <= PMI_LINE_FIELDS_MAX);
    for (unsigned i = 0; i < line.count; i++) {
        const struct pmi_attr *a = &line.attr[i];

        assert(a->key.n > 0 && is_inside(a->key, text));
        assert(memchr(a->key.p, '=', a->key.n) == NULL && memchr(a->key.p, ' ', a->key.n) == NULL);
        assert(a->val.p == NULL || (is_inside(a->val, text) && a->val.p == a->key.p + a->key.n + 1));
        assert(i == 0 || a->key.p > line.attr[i - 1].key.p);
    }
    for (unsigned i = 0; i < line.count; i++)
        if (span_is(line.attr[i].key, "key")) {
            assert(pmi_line_get(&line, "key").p == line.attr[i].val.p);
            break;
        }
    return 0;
}
