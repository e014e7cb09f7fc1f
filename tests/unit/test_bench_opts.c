/* SPDX-License-Identifier: BSD-3-Clause */
#include <criterion/criterion.h>
#include <errno.h>
#include <stdlib.h>
#include "client/bench_opts.h"
#include "common/strv.h"
#include "common/util.h"

/* Words with one blank between, behind the program's name. */
static int parse(const char *words, struct bench_opts *o, struct err *err)
{
    static char **argv; /* what `o` points into */
    const char *p = words;

    strv_free(argv);
    argv = NULL;
    cr_assert_eq(strv_add(&argv, "pmi-bench"), 0);
    while (*p != '\0') {
        size_t n = strcspn(p, " ");

        cr_assert_eq(strv_add_len(&argv, p, n), 0);
        p += n + (p[n] == ' ');
    }
    return bench_opts_parse((int)strv_count(argv), argv, o, err);
}

Test(bench_opts, defaults_of_a_command)
{
    struct bench_opts o;

    cr_assert_eq(parse("exchange", &o, NULL), 0);
    cr_expect(o.command == BENCH_EXCHANGE && o.wire == BENCH_WIRE_AUTO && o.version == 0 && o.library == NULL);
    cr_expect(o.count == 20 && o.reads == BENCH_READ_ALL && o.sessions == 1 && o.value_size == 64 && o.key_size == 0);
    cr_expect(o.timeout_ms == 60000 && !o.is_verbose && !o.is_json && o.key == NULL);
    cr_assert_eq(parse("get", &o, NULL), 0);
    cr_expect_eq(o.count, 10000u);
}

Test(bench_opts, everything_said_before_or_behind_the_command)
{
    struct bench_opts o;

    cr_assert_eq(
        parse("-w port --pmi=2 -c 7 get -k 20 some-key -s 1000 -S 12500 -t 500ms -v -j --read=3 -n 5", &o, NULL), 0);
    cr_expect(o.command == BENCH_GET && o.wire == BENCH_WIRE_PORT && o.version == 2 && o.count == 7);
    cr_expect(o.key_size == 20 && o.value_size == 1000 && o.sessions == 12500 && o.timeout_ms == 500);
    cr_expect(o.is_verbose && o.is_json && o.reads == 3 && o.copies == 5);
    cr_expect_str_eq(o.key, "some-key");
}

Test(bench_opts, help_and_version_need_no_command)
{
    struct bench_opts o;

    cr_assert_eq(parse("-h", &o, NULL), 0);
    cr_expect_eq(o.command, BENCH_HELP);
    cr_assert_eq(parse("--version", &o, NULL), 0);
    cr_expect_eq(o.command, BENCH_VERSION);
}

Test(bench_opts, bad_use_is_named)
{
    static const struct {
        const char *words, *says;
    } cases[] = {
        {"", "no command"},
        {"dance", "dance: no such command"},
        {"barrier 3", "3: one argument too many"},
        {"get a b", "b: one argument too many"},
        {"get a=b", "'a=b': not a key"},
        {"get 0123456789012345678901234567890123456789012345678901234567890123", "not a key"},
        {"--frobnicate get", "--frobnicate: no such option"},
        {"-q get", "-q: no such option"},
        {"get -c", "-c needs a value"},
        {"get --count", "--count needs a value"},
        {"get --count=", "--count=: not a number from 1"},
        {"get -c 0", "--count=0: not a number from 1 to"},
        {"get -c 5x", "--count=5x: not a number"},
        {"get -s -1", "--value-size=-1: not a number"},
        {"get -s 65537", "not a number from 1 to 65536"},
        {"get -k 64", "not a number from 1 to 63"},
        {"get -p 3", "--pmi=3: not a number from 1 to 2"},
        {"get -S 99999999", "--sessions=99999999: not a number"},
        {"get -w udp", "--wire=udp: not fd, port or auto"},
        {"exchange -r some", "--read=some: not all or a number"},
        {"get -t 0", "--timeout=0: not a time"},
        {"get -t soon", "--timeout=soon: not a time"},
        {"get -t 25h", "--timeout=25h: not a time"},
        {"-L libpmi.so spawn", "not with --library"},
        {"-L libpmi.so -S 2 get", "cannot go with --library"},
        {"-w fd -S 2 get", "cannot go with --wire=fd"},
    };

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct bench_opts o = {.count = 77};
        struct err err = {0};

        cr_expect_eq(parse(cases[i].words, &o, &err), -EINVAL, "%s", cases[i].words);
        cr_expect(strstr(err.text, cases[i].says) != NULL, "%s: '%s'", cases[i].words, err.text);
        cr_expect_eq(o.count, 77u, "%s", cases[i].words);
    }
}
