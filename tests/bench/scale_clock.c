/* SPDX-License-Identifier: BSD-3-Clause */
/* scale_clock.c - the schedule of a tree of logins (bootstrap/share.h) under a clock of its own: for more hosts than a
 * machine can play
 *
 *     scale_clock [--login=US] [--gap=US] [--hop=US] [--width=K] [--logins=N] HOSTS...
 *
 * Callers begin one login after the other, each of which keeps them for --gap; --login after its begin a host is up and
 * known to its caller. Words from one node to another (hosts that are dealt, requests for more) take --hop. Prints a
 * row of a table for each number of hosts: when the last is up, the bound N(t) = N(t - gap) + N(t - login), what a flat
 * start would take, and how wide and deep the tree is.
 */
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include "tests/unit/share_world.h"

static uint64_t number(const char *text)
{
    char *end;
    unsigned long long v = strtoull(text, &end, 10);

    if (*text == '\0' || *end != '\0' || v == 0 || v > UINT32_MAX) {
        fprintf(stderr, "scale_clock: '%s' is no number from 1 on\n", text);
        exit(2);
    }
    return v;
}

static int row(const struct world_conf *all, uint32_t hosts)
{
    struct world_conf conf = *all;
    uint64_t bound = world_bound_us(hosts, conf.login_us, conf.gap_us),
             flat = (hosts - 1) * conf.gap_us + conf.login_us;
    struct world_result w;

    conf.hosts = hosts;
    w = world_run(&conf);
    if (w.up != hosts) {
        fprintf(stderr, "scale_clock: %u of %u hosts came up\n", w.up, hosts);
        return 1;
    }
    printf("| %u | %.3f | %.3f | %.2f | %.1f | %u | %u | %.2f |\n", hosts, (double)w.end_us / 1e6, (double)bound / 1e6,
           (double)w.end_us / (double)bound, (double)flat / 1e6, w.widest, w.deepest, (double)w.words / hosts);
    return 0;
}

int main(int argc, char **argv)
{
    static const struct option options[] = {
        {"login", required_argument, NULL, 'l'},  {"gap", required_argument, NULL, 'g'},
        {"hop", required_argument, NULL, 'h'},    {"width", required_argument, NULL, 'w'},
        {"logins", required_argument, NULL, 'n'}, {NULL, 0, NULL, 0},
    };
    struct world_conf w = {.width = 32, .logins = 32, .login_us = 250000, .gap_us = 16000, .hop_us = 200};
    int c, rc = 0;

    while ((c = getopt_long(argc, argv, "", options, NULL)) != -1) {
        if (c == 'l')
            w.login_us = number(optarg);
        else if (c == 'g')
            w.gap_us = number(optarg);
        else if (c == 'h')
            w.hop_us = number(optarg);
        else if (c == 'w')
            w.width = (uint32_t)number(optarg);
        else if (c == 'n')
            w.logins = (uint32_t)number(optarg);
        else
            return 2;
    }
    puts("| hosts | all up, s | bound, s | to the bound | flat, s | widest | deepest | words a host |");
    puts("|---|---|---|---|---|---|---|---|");
    for (int i = optind; i < argc; i++)
        rc |= row(&w, (uint32_t)number(argv[i]));
    return rc;
}
