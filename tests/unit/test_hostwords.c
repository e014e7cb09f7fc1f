/* SPDX-License-Identifier: BSD-3-Clause */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include "bootstrap/hostwords.h"
#include "common/buf.h"
#include "common/util.h"

/* Each line as "[HOST|TEXT|CODE]". */
static void record(const struct hostwords_line *line, void *arg)
{
    cr_assert_eq(buf_printf(arg, "[%.*s|%.*s|%d]", SPAN_FMT(line->host), SPAN_FMT(line->text), line->exit_code), 0);
}

static void expect(const char *name, const char *text, size_t len, size_t piece, const char *want)
{
    struct hostwords w = {0};
    struct buf got = {0};

    for (size_t at = 0; at < len; at += piece)
        hostwords_feed(&w, (struct span){text + at, MIN(piece, len - at)}, record, &got);
    hostwords_end(&w, record, &got);
    cr_expect_str_eq(buf_str(&got), want, "%s, pieces of %zu: %s", name, piece, got.p);
    buf_done(&got);
}

static const struct {
    const char *name, *text, *want;
} cases[] = {
    {"a host's words", "foo3: hello there\n", "[foo3|hello there|-1]"},
    {"from pdsh itself", "pdsh@login: foo3: ssh exited with exit code 255\n",
     "[foo3|ssh exited with exit code 255|255]"},
    {"from the script", "fd00::1: ssh exited with exit code 1\n", "[fd00::1|ssh exited with exit code 1|1]"},
    {"pdsh without a host", "pdsh@login: no remote hosts\n", "[|pdsh@login: no remote hosts|-1]"},
    {"a blank in the label", "no such: thing\n", "[|no such: thing|-1]"},
    {"ssh without a label", "ssh: connect to host x\n", "[ssh|connect to host x|-1]"},
    {"nothing behind the label", "foo3: \n", "[foo3||-1]"},
    {"empty lines, CR", "\n\r\n\r\nfoo: a\r\n", "[foo|a|-1]"},
    {"no newline at the end", "foo: a\nfoo: b", "[foo|a|-1][foo|b|-1]"},
    {"code out of range", "foo: ssh exited with exit code 256\n", "[foo|ssh exited with exit code 256|-1]"},
    {"label with a colon and no blank", "foo:bar\n", "[|foo:bar|-1]"},
    {"empty label", ": x\n", "[|: x|-1]"},
};

Test(hostwords, table_in_any_pieces)
{
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
        for (size_t piece = 1; piece <= strlen(cases[i].text); piece++)
            expect(cases[i].name, cases[i].text, strlen(cases[i].text), piece, cases[i].want);
}

Test(hostwords, long_lines_are_cut)
{
    size_t len = 1u << 20;
    char *text = malloc(len);
    struct hostwords w = {0};
    struct buf got = {0};

    cr_assert(text != NULL);
    memset(text, 'x', len);
    text[len - 2] = '\n';
    hostwords_feed(&w, (struct span){text, len}, record, &got);
    cr_expect_eq(got.len, HOSTWORDS_LINE_MAX + strlen("[||-1]"));
    cr_expect_eq(w.len, 1);
    buf_done(&got);
    free(text);
}
