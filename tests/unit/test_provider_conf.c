/* SPDX-License-Identifier: BSD-3-Clause */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "common/strv.h"
#include "common/util.h"
#include "conf/provider_conf.h"

static int parse(const char *line, struct provider_conf **out, struct err *err)
{
    char copy[512], *argv[17] = {NULL}, *save = NULL;
    int argc = 0;

    snprintf(copy, sizeof(copy), "%s", line);
    for (char *w = strtok_r(copy, " ", &save); w != NULL && argc < 16; w = strtok_r(NULL, " ", &save))
        argv[argc++] = w;
    return provider_conf_parse(argc, argv, out, err);
}

#define GOOD "pmi-start --pmi-port=10.0.0.1:4000 --pmi-size=3 --pmi-key=abc "

Test(provider_conf, every_word_lands_in_its_field)
{
    struct provider_conf *c = NULL;
    struct err err = {0};

    cr_assert_eq(
        parse("pmi-start --pmi-port=10.0.0.1:4000,fd00::2:4001,[fe80::1%eth0]:4002,host.x:1 --pmi-rank=1 --pmi-size=3 "
              "--pmi-run=2 --pmi-key=0a:1b --pmi-interface=eth0 --pmi-ports=5-6 --pmi-attach=no "
              "--pmi-start-timeout=10s --pmi-secret-file=/s",
              &c, &err),
        0, "%s", err.text);
    cr_assert_eq(strv_count(c->addrs), 4);
    cr_expect_str_eq(c->addrs[0], "10.0.0.1:4000");
    cr_expect_str_eq(c->addrs[1], "fd00::2:4001");
    cr_expect_str_eq(c->addrs[2], "fe80::1%eth0:4002");
    cr_expect_eq(c->rank, 1);
    cr_expect_eq(c->size, 3);
    cr_expect_eq(c->run, 2);
    cr_expect_str_eq(c->key, "0a:1b");
    cr_expect_str_eq(c->secret_file, "/s");
    cr_expect_str_eq(c->interface, "eth0");
    cr_expect(c->port.range && c->port.low == 5 && c->port.high == 6);
    cr_expect_eq(c->attach, ATTACH_NO);
    cr_expect_eq(c->start_timeout_ms, 10000);
    provider_conf_free(c);
}

Test(provider_conf, defaults_and_words_of_another_version)
{
    struct provider_conf *c = NULL;

    cr_assert_eq(parse(GOOD "--pmi-rank=0 --pmi-from-the-future=7 --pmi-flag", &c, NULL), 0);
    cr_expect_eq(c->run, 1);
    cr_expect_eq(c->attach, ATTACH_AUTO);
    cr_expect_eq(c->start_timeout_ms, 60000);
    cr_expect_not(c->port.given);
    provider_conf_free(c);
}

static const struct {
    const char *line, *fragment;
} bad[] = {
    {"pmi-start --pmi-rank=0", "--pmi-port"},
    {GOOD, "--pmi-rank=N is missing"},
    {"pmi-start --pmi-port=a:1 --pmi-rank=0 --pmi-key=x", "--pmi-size"},
    {"pmi-start --pmi-port=a:1 --pmi-rank=0 --pmi-size=2", "--pmi-key"},
    {GOOD "--pmi-rank=2", "--pmi-rank=2"},
    {GOOD "--pmi-rank=x", "'--pmi-rank=x'"},
    {GOOD "--pmi-rank=%n", "'--pmi-rank=%n'"},
    {GOOD "--pmi-rank", "'--pmi-rank'"},
    {GOOD "--pmi-rank=0 true", "'true'"},
    {GOOD "--pmi-rank=0 -v", "'-v'"},
    {GOOD "--pmi-rank=0 --label", "'--label'"},
    {GOOD "--pmi-size=1", "'--pmi-size=1'"},
    {GOOD "--pmi-run=0", "'--pmi-run=0'"},
    {GOOD "--pmi-ports=5", "LOW-HIGH"},
    {GOOD "--pmi-attach=maybe", "auto, yes or no"},
    {GOOD "--pmi-start-timeout=x", "'--pmi-start-timeout=x'"},
    {GOOD "--pmi-key=", "fingerprint"},
    {"pmi-start --pmi-port=", "ADDR:PORT"},
    {"pmi-start --pmi-port=a", "'--pmi-port=a'"},
    {"pmi-start --pmi-port=:1", "ADDR:PORT"},
    {"pmi-start --pmi-port=a:0", "ADDR:PORT"},
    {"pmi-start --pmi-port=a:65536", "ADDR:PORT"},
    {"pmi-start --pmi-port=a:1,", "ADDR:PORT"},
    {"pmi-start --pmi-port=a$b:1", "ADDR:PORT"},
    {"pmi-start --pmi-port=a:1,a:2,a:3,a:4,a:5,a:6,a:7,a:8,a:9", "ADDR:PORT"},
};

Test(provider_conf, bad_words_are_quoted)
{
    for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
        struct provider_conf *c = NULL;
        struct err err = {0};

        cr_expect_eq(parse(bad[i].line, &c, &err), -EINVAL, "%s", bad[i].line);
        cr_expect_null(c);
        cr_expect(strstr(err.text, bad[i].fragment), "%s: %s", bad[i].line, err.text);
    }
}

Test(provider_conf, only_leading_words_make_a_provider)
{
    static const struct {
        char *argv[4];
        bool is;
    } cases[] = {
        {{(char *)"x", (char *)"--pmi-port=a:1"}, true},
        {{(char *)"x", (char *)"--pmi-size=2", (char *)"--pmi-port=a:1"}, true},
        {{(char *)"x", (char *)"--pmi-port"}, true},
        {{(char *)"x", (char *)"--pmi-ports=1-2"}, false},
        {{(char *)"x", (char *)"true", (char *)"--pmi-port=a:1"}, false},
        {{(char *)"x"}, false},
    };

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
        cr_expect_eq(provider_conf_is((int)strv_count(cases[i].argv), cases[i].argv), cases[i].is, "row %zu", i);
}

Test(provider_conf, a_task_of_sruns_finds_its_place_by_the_name_of_its_node)
{
    struct provider_conf *c = NULL;
    struct err err = {0};

    setenv("SLURMD_NODENAME", "h2", 1);
    cr_assert_eq(parse(GOOD "--pmi-hosts=h[3,2]", &c, &err), 0, "%s", err.text);
    cr_expect_eq(c->rank, 1);
    cr_expect_str_eq(c->name, "h2");
    provider_conf_free(c);
    cr_assert_eq(parse(GOOD "--pmi-hosts=h[3,1]", &c, &err), -EINVAL);
    cr_expect(strstr(err.text, "'h2'") != NULL && strstr(err.text, "'h[3,1]'") != NULL, "%s", err.text);
    unsetenv("SLURMD_NODENAME");
    cr_assert_eq(parse(GOOD "--pmi-hosts=h[3,2]", &c, &err), -EINVAL);
    cr_expect_not_null(strstr(err.text, "SLURMD_NODENAME is not set"), "%s", err.text);
}
