/* SPDX-License-Identifier: BSD-3-Clause */
#include "common/pmi1.h"

#include <errno.h>
#include <inttypes.h>

static bool is_blank(char c)
{
    return c == ' ' || c == '\t';
}

static bool runs_to_end(struct span key)
{
    return span_is(key, "value") || span_is(key, "message") || span_is(key, "error_msg");
}

int pmi_line_split(struct pmi_line *line, struct span text)
{
    const char *p = text.p, *end = text.p + text.n;

    line->count = 0;
    if (text.n > 0 && memchr(text.p, '\0', text.n) != NULL)
        return -EPROTO;
    while (p < end) {
        const char *start = p, *eq;
        struct pmi_attr a = {SPAN_NONE, SPAN_NONE};

        if (is_blank(*p)) {
            p++;
            continue;
        }
        while (p < end && *p != '=' && !is_blank(*p))
            p++;
        if (p == start)
            return -EPROTO;
        a.key = (struct span){start, (size_t)(p - start)};
        if (p < end && *p == '=') {
            eq = p++;
            if (runs_to_end(a.key))
                p = end;
            while (p < end && !is_blank(*p))
                p++;
            a.val = (struct span){eq + 1, (size_t)(p - eq - 1)};
        }
        if (line->count == PMI_LINE_FIELDS_MAX)
            return -E2BIG;
        line->attr[line->count++] = a;
    }
    return 0;
}

struct span pmi_line_get(const struct pmi_line *line, const char *key)
{
    for (unsigned i = 0; i < line->count; i++)
        if (span_is(line->attr[i].key, key))
            return line->attr[i].val;
    return SPAN_NONE;
}

int pmi_reply_begin(struct buf *out, struct span cmd, int rc)
{
    /* Most replies are good news: no printf for them. */
    if (rc != 0)
        return buf_printf(out, "cmd=%.*s rc=%d", SPAN_FMT(cmd), rc);
    if (buf_add(out, "cmd=", 4) < 0 || buf_add(out, cmd.p, cmd.n) < 0)
        return -ENOMEM;
    return buf_add(out, " rc=0", 5);
}

int pmi_reply_word(struct buf *out, const char *key, const char *word)
{
    return buf_printf(out, " %s=%s", key, word);
}

int pmi_reply_int(struct buf *out, const char *key, int64_t v)
{
    return buf_printf(out, " %s=%" PRId64, key, v);
}

int pmi_reply_value(struct buf *out, struct span value)
{
    int rc = buf_add(out, " value=", 7);

    return rc < 0 ? rc : buf_add(out, value.p, value.n);
}

int pmi_reply_end(struct buf *out)
{
    return buf_add(out, "\n", 1);
}
