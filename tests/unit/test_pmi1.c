/* SPDX-License-Identifier: BSD-3-Clause */
#include <criterion/criterion.h>
#include <errno.h>
#include "common/pmi1.h"
#include "common/util.h"

static const struct {
    const char *name, *in;
    int rc;
    const char *key, *val; /* val NULL: the key must be absent */
} cases[] = {
    {"plain", "cmd=get kvsname=k key=a", 0, "key", "a"},
    {"whole key only", "cmd=put xkey=a", 0, "key", NULL},
    {"no prefix match", "cmd=put key2=a", 0, "key", NULL},
    {"any order", "key=a kvsname=k cmd=get", 0, "cmd", "get"},
    {"first of two", "cmd=get key=a key=b", 0, "key", "a"},
    {"first equals sign", "cmd=get key=a=b=c", 0, "key", "a=b=c"},
    {"value keeps blanks", "cmd=put key=k value= a  b=c\t ", 0, "value", " a  b=c\t "},
    {"value hides what follows", "cmd=put value=a key=k", 0, "key", NULL},
    {"empty value", "cmd=put key=k value=", 0, "value", ""},
    {"message to the end", "cmd=abort exitcode=3 message=oh no exit_code=5", 0, "message", "oh no exit_code=5"},
    {"error_msg to the end", "cmd=abort error_msg=oh no", 0, "error_msg", "oh no"},
    {"value of another word ends", "cmd=x msg=a b=c", 0, "msg", "a"},
    {"blanks around", "  cmd=get \t  key=a  ", 0, "key", "a"},
    {"word without equals", "cmd=get flag key=a", 0, "key", "a"},
    {"such a word is absent", "cmd=get flag key=a", 0, "flag", NULL},
    {"bytes over 127", "cmd=get kvsname=\xc6\x92uzz key=a", 0, "kvsname", "\xc6\x92uzz"},
    {"control bytes in a word", "cmd=publish_name service=s port=\x02", 0, "port", "\x02"},
    {"empty", "", 0, "cmd", NULL},
    {"begins with equals", "cmd=get =a", -EPROTO, NULL, NULL},
};

Test(pmi1, split)
{
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct pmi_line line;
        int rc = pmi_line_split(&line, span_of(cases[i].in));
        struct span got;

        cr_expect_eq(rc, cases[i].rc, "%s: rc %d", cases[i].name, rc);
        if (rc < 0)
            continue;
        got = pmi_line_get(&line, cases[i].key);
        cr_expect(cases[i].val ? span_is(got, cases[i].val) : got.p == NULL, "%s: got '%.*s'", cases[i].name,
                  SPAN_FMT(got));
    }
}

Test(pmi1, nul_and_too_many_words)
{
    struct pmi_line line;
    char many[PMI_LINE_FIELDS_MAX * 4 + 8] = "";

    cr_expect_eq(pmi_line_split(&line, (struct span){"cmd=get\0", 8}), -EPROTO);
    for (int i = 0; i < PMI_LINE_FIELDS_MAX; i++)
        memcpy(many + i * 4, "a=b ", 4);
    cr_expect_eq(pmi_line_split(&line, span_of(many)), 0);
    cr_expect_eq(line.count, PMI_LINE_FIELDS_MAX);
    memcpy(many + PMI_LINE_FIELDS_MAX * 4, "a=b", 3);
    cr_expect_eq(pmi_line_split(&line, span_of(many)), -E2BIG);
}

Test(pmi1, reply)
{
    struct buf b = {0};

    pmi_reply_begin(&b, span_of("get_result"), 0);
    pmi_reply_value(&b, span_of("a b"));
    pmi_reply_end(&b);
    pmi_reply_begin(&b, span_of("x"), -1);
    pmi_reply_word(&b, "msg", "no");
    pmi_reply_int(&b, "n", -7);
    pmi_reply_end(&b);
    cr_expect_str_eq(buf_str(&b), "cmd=get_result rc=0 value=a b\ncmd=x rc=-1 msg=no n=-7\n");
    buf_done(&b);
}
