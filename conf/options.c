/* SPDX-License-Identifier: BSD-3-Clause */
/* options.c - the table of options, and how one is found in it */
#include "conf/option.h"

#include <stddef.h>
#include "common/limits.h"
#include "common/util.h"
#include "conf/set.h"

#define ANY (OPTION_CMDLINE | OPTION_FILE)
#define FLAG ANY | OPTION_BARE
#define AT(field) .at = offsetof(struct conf, field)

static const struct option_choice bootstraps[] = {
    {"auto", BOOT_AUTO},   {"local", BOOT_LOCAL}, {"rsh", BOOT_RSH}, {"manual", BOOT_MANUAL},
    {"slurm", BOOT_SLURM}, {"k8s", BOOT_K8S},     {NULL, 0},
};
static const struct option_choice maps[] = {{"block", MAP_BLOCK}, {"cyclic", MAP_CYCLIC}, {NULL, 0}};
static const struct option_choice attaches[] = {
    {"auto", ATTACH_AUTO}, {"yes", ATTACH_YES}, {"no", ATTACH_NO}, {NULL, 0}};

static const struct option_choice connects[] = {
    {"fd", CONNECT_FD}, {"port", CONNECT_PORT}, {"both", CONNECT_BOTH}, {NULL, 0}};

static const struct option_choice pmixes[] = {
    {"auto", PMIX_MODE_AUTO}, {"yes", PMIX_MODE_YES}, {"no", PMIX_MODE_NO}, {NULL, 0}};

/* clang-format off */
const struct option options[] = {
    /* Where */
    {"bootstrap", 'b', ANY, "METHOD", .initial = "auto", .set = set_choice, AT(bootstrap), .choices = bootstraps,
     .help = "how providers get to the nodes: auto, local, rsh, manual, slurm, k8s"},
    {"hostlist", 'H', ANY, "HOSTS", .set = set_nothing, .help = "hosts, as foo[0-12],bar; host:N gives slots"},
    {"hostfile", 'f', ANY, "FILE", .set = set_nothing, .help = "a file of hosts: host, host:N or host slots=N a line"},
    {"exclude", 'x', ANY, "HOSTS", .set = set_nothing, .help = "hosts to leave out"},
    {"nodes", 0, ANY, "N", .set = set_unsigned, AT(nodes), .min = 1, .max = NODES_MAX,
     .help = "play N nodes on this machine; with hosts: take the first N"},
    {"join", 0, ANY, "ADDR:PORT", .set = set_join, AT(join),
     .help = "be a node of the run whose launcher is there; with k8s: where pod 0 is"},
    {"node", 0, ANY, "N", .set = set_int, AT(node), .max = NODES_MAX - 1, .help = "with --join: which node, from 0"},
    /* How many */
    {"ntasks", 'n', ANY | OPTION_PART, "N", .set = set_ntasks, .min = 1, .max = TASKS_MAX,
     .help = "tasks in all (of this part, where there are several)"},
    {"ppn", 0, ANY, "N", .set = set_int, AT(ppn), .min = 1, .max = TASKS_MAX, .help = "tasks a node"},
    {"map", 'm', ANY, "ORDER", .initial = "block", .set = set_choice, AT(map), .choices = maps,
     .help = "how ranks fall on nodes: block or cyclic"},
    /* Logging in */
    {"rsh-command", 0, ANY, "PATH", .set = set_text, AT(rsh_command), .help = "a bootstrap script of your own"},
    {"rsh-fanout", 0, ANY, "N", .initial = "32", .set = set_unsigned, AT(rsh_fanout), .min = 1, .max = 4096,
     .help = "logins under way at once"},
    {"rsh-attach", 0, ANY, "WHEN", .initial = "auto", .set = set_choice, AT(rsh_attach), .choices = attaches,
     .help = "keep logins open for the run: auto, yes or no"},
    {"rsh-tree", 0, FLAG, "K", "yes", "no", .set = set_rsh_tree, .min = 1, .max = 65536,
     .help = "hosts that are up log in to further ones, to K each at most (--fanout)"},
    {"remote-path", 0, ANY, "PATH", .set = set_word, AT(remote_path), .help = "where pmi-start is on the other hosts"},
    {"secret-file", 0, ANY, "FILE", .set = set_text, AT(secret_file),
     .help = "pre-shared key, for manual, k8s and --join"},
    {"new-secret", 0, OPTION_CMDLINE, "FILE", .set = set_new_secret, .help = "write a new pre-shared key and exit"},
    /* Limits of time */
    {"start-timeout", 0, ANY, "DUR", .initial = "60s", .set = set_ms, AT(start_timeout_ms), .min = 1,
     .help = "longest time without another host joining"},
    {"timeout", 0, ANY, "DUR", .set = set_ms, AT(timeout_ms), .help = "limit for the whole run; 0: none"},
    {"kill-grace", 0, ANY, "DUR", .initial = "2s", .set = set_ms, AT(kill_grace_ms),
     .help = "time between the polite signal and KILL"},
    {"keep-going", 'k', FLAG, NULL, "yes", "no", .set = set_flag, AT(keep_going),
     .help = "a task that fails does not end the others"},
    /* The tasks' world */
    {"chdir", 'C', ANY, "DIR", .set = set_text, AT(chdir), .help = "working directory on every node"},
    {"env", 'E', ANY | OPTION_LIST | OPTION_PART, "NAME[=VALUE]", .set = set_env,
     .help = "set a variable, or take the launcher's own"},
    {"env-none", 0, FLAG | OPTION_PART, NULL, "yes", "no", .set = set_env_none,
     .help = "no variables but those of -E and pmi-start's own"},
    {"preput", 0, ANY | OPTION_LIST, "KEY=VALUE", .set = set_preput, .help = "put in the KVS before any task starts"},
    {"command", 0, OPTION_FILE | OPTION_WORDS, .set = set_word_of_command},
    /* Input and output */
    {"input", 'i', ANY, "RANK", .initial = "0", .set = set_input,
     .help = "who reads standard input: a rank, all, none"},
    {"label", 'l', FLAG, NULL, "yes", "no", .set = set_flag, AT(label), .help = "put \"RANK: \" before each line"},
    {"output", 'o', ANY, "FILE", .set = set_pattern, AT(output),
     .help = "a file for each task's output: %r rank, %h host, %n node"},
    {"error", 'e', ANY, "FILE", .set = set_pattern, AT(error), .help = "the same for standard error"},
    {"pty", 0, FLAG, NULL, "yes", "no", .set = set_flag, AT(pty),
     .help = "a terminal of its own for the rank that reads standard input"},
    /* Network */
    {"interface", 0, ANY, "WHICH", .set = set_text, AT(interface),
     .help = "addresses to use: an interface, an address or a CIDR range"},
    {"port", 0, ANY, "PORT", .set = set_port, .help = "the launcher's port; LOW-HIGH: for every listener"},
    {"fanout", 0, ANY, "K", .initial = "32", .set = set_unsigned, AT(fanout), .min = 1, .max = 65536,
     .help = "width of the tree of providers"},
    {"pmi-connect", 0, ANY, "HOW", .initial = "fd", .set = set_choice, AT(pmi_connect), .choices = connects,
     .help = "how tasks reach their provider: fd, port or both"},
    {"serve", 0, OPTION_CMDLINE, "RANGES", .set = set_serve,
     .help = "serve N ranks (-n) that COMMAND starts, from these IPv4 ranges"},
    {"pmi-subversion", 0, ANY, "N", .initial = "1", .set = set_unsigned, AT(pmi_subversion), .min = 1, .max = 2,
     .help = "the version 1.N of PMI that a client is answered"},
    {"pmix", 0, ANY, "WHEN", .initial = "auto", .set = set_choice, AT(pmix), .choices = pmixes,
     .help = "a PMIx server on each node, for Open MPI: auto, yes or no"},
    /* Looking on */
    {"pmi-trace", 0, FLAG, "FILE", "yes", "no", .set = set_trace,
     .help = "every PMI request and reply (to standard error)"},
    {"barrier-warn", 0, ANY, "DUR", .initial = "60s", .set = set_ms, AT(barrier_warn_ms),
     .help = "say who is awaited in a barrier that lasts longer; 0: never"},
    {"verbose", 'v', FLAG, NULL, "more", "0", .set = set_verbose, .min = -1, .max = 2,
     .help = "say more; -vv: the bootstrap command and the tree too"},
    {"quiet", 'q', FLAG | OPTION_UNPRINTED, NULL, "yes", .set = set_quiet, .help = "say less"},
    {"print-hosts", 0, OPTION_CMDLINE | OPTION_BARE, "folded", "plain", .set = set_print_hosts,
     .help = "print the host list and exit"},
    {"print-config", 0, OPTION_CMDLINE | OPTION_BARE, NULL, "", .set = set_action, .min = ACTION_PRINT_CONFIG,
     .help = "print the configuration, and where it came from, and exit"},
    {"help", 'h', OPTION_CMDLINE | OPTION_BARE | OPTION_ENDS, NULL, "", .set = set_action, .min = ACTION_HELP,
     .help = "print this and exit"},
    {"version", 0, OPTION_CMDLINE | OPTION_BARE | OPTION_ENDS, NULL, "", .set = set_action, .min = ACTION_VERSION,
     .help = "print the version and exit"},
};
/* clang-format on */
const size_t option_count = ARRAY_SIZE(options);

const struct option *option_by_name(struct span name)
{
    for (size_t i = 0; i < option_count; i++)
        if (span_is(name, options[i].name))
            return &options[i];
    return NULL;
}

const struct option *option_by_letter(char letter)
{
    for (size_t i = 0; letter != 0 && i < option_count; i++)
        if (options[i].letter == letter)
            return &options[i];
    return NULL;
}

/* Levenshtein's distance; names longer than any option's are far from all of them. */
static size_t distance(struct span a, struct span b)
{
    size_t row[32];

    if (b.n >= ARRAY_SIZE(row) || a.n >= ARRAY_SIZE(row))
        return ARRAY_SIZE(row);
    for (size_t j = 0; j <= b.n; j++)
        row[j] = j;
    for (size_t i = 1; i <= a.n; i++) {
        size_t diagonal = row[0];

        row[0] = i;
        for (size_t j = 1; j <= b.n; j++) {
            size_t above = row[j], swap = diagonal + (a.p[i - 1] != b.p[j - 1]);

            row[j] = MIN(MIN(above, row[j - 1]) + 1, swap);
            diagonal = above;
        }
    }
    return row[b.n];
}

const struct option *option_nearest(struct span name)
{
    const struct option *best = NULL;
    size_t least = 3; /* two slips of the finger at most */

    for (size_t i = 0; i < option_count; i++) {
        struct span other = span_of(options[i].name);
        size_t d = distance(name, other);

        if (name.n >= 3 && name.n < other.n && memcmp(name.p, other.p, name.n) == 0)
            d = MIN(d, 2); /* the beginning of it */
        if (options[i].help != NULL && d < least && d < other.n / 2 + 1) {
            least = d;
            best = &options[i];
        }
    }
    return best;
}
