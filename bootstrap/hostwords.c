/* SPDX-License-Identifier: BSD-3-Clause */
/* hostwords.c - lines of a login's output, by host */
#include "bootstrap/hostwords.h"
#include "common/limits.h"
#include "common/num.h"

/* Cut "LABEL: rest" at the first ": "; a label is one word. IPv6 literals hold colons, but no colon with a blank
 * behind. */
static bool cut_label(struct span *line, struct span *label)
{
    for (size_t i = 0; i + 1 < line->n && i <= HOST_NAME_MAX_LEN; i++) {
        unsigned char c = (unsigned char)line->p[i];

        if (c <= ' ' || c >= 0x7f)
            return false;
        if (c == ':' && line->p[i + 1] == ' ') {
            *label = (struct span){line->p, i};
            *line = (struct span){line->p + i + 2, line->n - i - 2};
            return i > 0;
        }
    }
    return false;
}

static int exit_code_of(struct span text)
{
    static const char says[] = "ssh exited with exit code ";
    uint64_t code;

    if (!span_starts(text, says))
        return -1;
    text.p += sizeof(says) - 1;
    text.n -= sizeof(says) - 1;
    return num_u64(text, 0, 255, &code) < 0 ? -1 : (int)code;
}

static void give(struct hostwords *w, hostwords_fn fn, void *arg)
{
    struct hostwords_line line = {.whole = {w->line, w->len}, .exit_code = -1};
    struct span rest, label;

    while (line.whole.n > 0 && line.whole.p[line.whole.n - 1] == '\r')
        line.whole.n--;
    w->len = 0;
    if (line.whole.n == 0)
        return;
    line.text = rest = line.whole;
    if (cut_label(&rest, &label) && (!span_starts(label, "pdsh@") || cut_label(&rest, &label))) {
        line.host = label;
        line.text = rest;
        line.exit_code = exit_code_of(rest);
    }
    fn(&line, arg);
}

void hostwords_feed(struct hostwords *w, struct span in, hostwords_fn fn, void *arg)
{
    for (size_t i = 0; i < in.n; i++) {
        if (in.p[i] == '\n')
            give(w, fn, arg);
        else if (w->len < sizeof(w->line))
            w->line[w->len++] = in.p[i];
    }
}

void hostwords_end(struct hostwords *w, hostwords_fn fn, void *arg)
{
    if (w->len > 0)
        give(w, fn, arg);
}
