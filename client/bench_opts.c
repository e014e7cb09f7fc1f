/* SPDX-License-Identifier: BSD-3-Clause */
#include "client/bench_opts.h"

#include <errno.h>
#include <getopt.h>
#include <string.h>
#include "common/limits.h"
#include "common/num.h"
#include "common/util.h"

#define TIMEOUT_MS 60000
#define TIMEOUT_MS_MAX (24u * 3600 * 1000)

const char bench_help[] =
    "usage: pmi-bench [OPTION]... COMMAND\n"
    "Measure the PMI server that this task was started under, and check every value.\n"
    "\n"
    "  info              what the server says of itself and of this task\n"
    "  get [KEY]         get one value again and again: KEY's, or one that the next rank has put\n"
    "  barrier           one barrier after another\n"
    "  exchange          rounds: put, barrier, read what the others have put\n"
    "  put-get           put many keys, one barrier, get as many\n"
    "  spawn             start copies of this program as new jobs, and wait for their answers\n"
    "\n"
    "  -w, --wire=fd|port|auto  use PMI_FD or PMI_PORT (default: auto, PMI_FD where it is set)\n"
    "  -p, --pmi=1|2            version of PMI (default: 1; with --library what it has)\n"
    "  -L, --library=PATH       speak through this libpmi or libpmi2 instead\n"
    "  -c, --count=N            how many gets, barriers, rounds, keys a rank, or spawns\n"
    "  -k, --key-size=N         make keys N bytes long, where they would be shorter\n"
    "  -s, --value-size=N       bytes of a value (default: 64)\n"
    "  -r, --read=all|N         exchange: how many ranks' values each rank reads (default: all)\n"
    "  -S, --sessions=N         sessions a process, over PMI_PORT only (default: 1)\n"
    "  -n, --copies=N           tasks of a spawned job (default: 2)\n"
    "  -t, --timeout=DUR        no wait may be longer (default: 60s)\n"
    "  -v, --verbose            every rank prints its own figures as well\n"
    "  -j, --json               print one JSON object a line\n"
    "  -h, --help, -V, --version\n";

static const struct {
    const char *name;
    enum bench_command command;
    uint64_t count; /* where --count does not say */
} commands[] = {
    {"info", BENCH_INFO, 1},          {"get", BENCH_GET, 10000},       {"barrier", BENCH_BARRIER, 1000},
    {"exchange", BENCH_EXCHANGE, 20}, {"put-get", BENCH_PUT_GET, 100}, {"spawn", BENCH_SPAWN, 1},
    {"spawned", BENCH_SPAWNED, 1},
};

static const struct option options[] = {
    {"wire", required_argument, NULL, 'w'},
    {"pmi", required_argument, NULL, 'p'},
    {"library", required_argument, NULL, 'L'},
    {"count", required_argument, NULL, 'c'},
    {"key-size", required_argument, NULL, 'k'},
    {"value-size", required_argument, NULL, 's'},
    {"read", required_argument, NULL, 'r'},
    {"sessions", required_argument, NULL, 'S'},
    {"copies", required_argument, NULL, 'n'},
    {"timeout", required_argument, NULL, 't'},
    {"verbose", no_argument, NULL, 'v'},
    {"json", no_argument, NULL, 'j'},
    {"help", no_argument, NULL, 'h'},
    {"version", no_argument, NULL, 'V'},
    {NULL, 0, NULL, 0},
};

static const char *long_name(int letter)
{
    for (const struct option *o = options; o->name != NULL; o++)
        if (o->val == letter)
            return o->name;
    return "?";
}

static int bad_value(int letter, const char *text, const char *wanted, struct err *err)
{
    return err_set(err, -EINVAL, "--%s=%.100s: not %s", long_name(letter), text, wanted);
}

static int take_number(int letter, const char *text, uint64_t max, uint64_t *out, struct err *err)
{
    if (num_u64(span_of(text), 1, max, out) == 0)
        return 0;
    return err_set(err, -EINVAL, "--%s=%.100s: not a number from 1 to %llu", long_name(letter), text,
                   (unsigned long long)max);
}

static int take_wire(const char *text, enum bench_wire *out, struct err *err)
{
    static const char *const names[] = {"auto", "fd", "port"};

    for (size_t i = 0; i < ARRAY_SIZE(names); i++)
        if (strcmp(text, names[i]) == 0) {
            *out = (enum bench_wire)i;
            return 0;
        }
    return bad_value('w', text, "fd, port or auto", err);
}

static int take_reads(const char *text, uint32_t *out, struct err *err)
{
    uint64_t v = BENCH_READ_ALL;

    if (strcmp(text, "all") != 0 && num_u64(span_of(text), 0, TASKS_MAX, &v) < 0)
        return bad_value('r', text, "all or a number", err);
    *out = (uint32_t)v;
    return 0;
}

static int take_timeout(const char *text, uint64_t *out, struct err *err)
{
    uint64_t ms;

    if (num_duration_ms(span_of(text), &ms) < 0 || ms == 0 || ms > TIMEOUT_MS_MAX)
        return bad_value('t', text, "a time such as 500ms, 60s or 5m, of at most 24h", err);
    *out = ms;
    return 0;
}

/* The options that are numbers. */
static int take_size(int letter, const char *text, struct bench_opts *o, struct err *err)
{
    static const struct {
        int letter;
        uint64_t max;
    } limits[] = {
        {'p', 2},
        {'c', BENCH_COUNT_MAX},
        {'k', PMI_KEY_MAX - 1},
        {'s', BENCH_VALUE_MAX},
        {'S', BENCH_SESSIONS_MAX},
        {'n', BENCH_COPIES_MAX},
    };
    uint64_t v = 0, max = 0;

    for (size_t i = 0; i < ARRAY_SIZE(limits); i++)
        if (limits[i].letter == letter)
            max = limits[i].max;
    if (take_number(letter, text, max, &v, err) < 0)
        return -EINVAL;
    if (letter == 'p')
        o->version = (int)v;
    else if (letter == 'c')
        o->count = v;
    else if (letter == 'k')
        o->key_size = (size_t)v;
    else if (letter == 's')
        o->value_size = (size_t)v;
    else if (letter == 'S')
        o->sessions = (uint32_t)v;
    else
        o->copies = (uint32_t)v;
    return 0;
}

static int take_option(int letter, const char *value, char **argv, struct bench_opts *o, struct err *err)
{
    switch (letter) {
    case 'w':
        return take_wire(value, &o->wire, err);
    case 'r':
        return take_reads(value, &o->reads, err);
    case 't':
        return take_timeout(value, &o->timeout_ms, err);
    case 'L':
        o->library = value;
        return 0;
    case 'v':
        o->is_verbose = true;
        return 0;
    case 'j':
        o->is_json = true;
        return 0;
    case ':':
        return err_set(err, -EINVAL, "%.100s needs a value", argv[optind - 1]);
    case '?':
        return err_set(err, -EINVAL, "%.100s: no such option", argv[optind - 1]);
    default:
        return take_size(letter, value, o, err);
    }
}

/* What stands behind the options: the command, and its key. */
static int take_command(int argc, char **argv, struct bench_opts *o, struct err *err)
{
    int most = 1;

    if (argc == 0)
        return err_set(err, -EINVAL, "no command: info, get, barrier, exchange, put-get or spawn");
    for (size_t i = 0; i < ARRAY_SIZE(commands); i++)
        if (strcmp(argv[0], commands[i].name) == 0) {
            o->command = commands[i].command;
            o->count = o->count > 0 ? o->count : commands[i].count;
        }
    if (o->command == BENCH_HELP)
        return err_set(err, -EINVAL, "%.100s: no such command", argv[0]);
    if (o->command == BENCH_GET && argc > 1) {
        o->key = argv[1];
        most = 2;
        if (*o->key == '\0' || strlen(o->key) >= PMI_KEY_MAX || strpbrk(o->key, " =\n\t") != NULL)
            return err_set(err, -EINVAL, "'%.100s': not a key", o->key);
    }
    if (argc > most)
        return err_set(err, -EINVAL, "%.100s: one argument too many", argv[most]);
    return 0;
}

static int check_together(const struct bench_opts *o, struct err *err)
{
    if (o->library != NULL && (o->command == BENCH_SPAWN || o->command == BENCH_SPAWNED))
        return err_set(err, -EINVAL, "spawn is measured over the wire, not with --library");
    if (o->sessions > 1 && (o->library != NULL || o->wire == BENCH_WIRE_FD))
        return err_set(err, -EINVAL, "--sessions needs PMI_PORT, so it cannot go with %s",
                       o->library != NULL ? "--library" : "--wire=fd");
    return 0;
}

int bench_opts_parse(int argc, char **argv, struct bench_opts *out, struct err *err)
{
    struct bench_opts o = {
        .reads = BENCH_READ_ALL, .sessions = 1, .copies = 2, .value_size = 64, .timeout_ms = TIMEOUT_MS};
    int letter;

    optind = 0; /* begin anew, also where it was called before */
    while ((letter = getopt_long(argc, argv, ":w:p:L:c:k:s:r:S:n:t:vjhV", options, NULL)) != -1) {
        if (letter == 'h' || letter == 'V') {
            o.command = letter == 'h' ? BENCH_HELP : BENCH_VERSION;
            *out = o;
            return 0;
        }
        if (take_option(letter, optarg, argv, &o, err) < 0)
            return -EINVAL;
    }
    if (take_command(argc - optind, argv + optind, &o, err) < 0 || check_together(&o, err) < 0)
        return -EINVAL;
    *out = o;
    return 0;
}
