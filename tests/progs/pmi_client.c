/* SPDX-License-Identifier: BSD-3-Clause */
/* pmi_client.c - a task that does what it is told: PMI-1 without any MPI, good and bad behaviour, and ways to end
 *
 *     pmi_client [--style=mpich402|mpich|flux] [--pmi2] STEP [ARG...] [, STEP [ARG...]]...
 *
 * Steps run in order; at the end it exits 0. In arguments %r is the rank, %s the size. For example, a job of which
 * rank 1 leaves after PMI's init: `pmi_client init , on 1 , exit 0 , all , barrier , finalize`. A table below lists the
 * steps.
 * `pmi_client check STYLE REPLY LINE` only says whether that client takes LINE for a good REPLY (0), a failure (1), or
 * would not have it (90).
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/progs/pmi_acts.h"

#define ARGS_MAX 5

static void do_init(struct pmi *p, char **arg)
{
    (void)arg;
    pmi_dial(p);
    (p->two ? pmi2_init : pmi_init)(p);
}

static void do_finalize(struct pmi *p, char **arg)
{
    (void)arg;
    if ((p->two ? pmi2_ask(p, "finalize", "%s", "") : pmi_ask(p, "finalize_ack", "cmd=finalize")) != 0)
        pmi_die(p, STATUS_REFUSED, "finalize: '%s'", p->line);
}

static void do_close(struct pmi *p, char **arg)
{
    (void)arg;
    pmi_close(p);
}

static void do_barrier(struct pmi *p, char **arg)
{
    (void)arg;
    if ((p->two ? pmi2_ask(p, "kvs-fence", "%s", "") : pmi_ask(p, "barrier_out", "cmd=barrier_in")) == 0)
        return;
    if (!p->lenient)
        pmi_die(p, STATUS_WRONG, "barrier: '%s'", p->line);
    printf("broken\n");
    do_finalize(p, NULL);
    exit(0);
}

/* group RANKS:TAG, of PMI-1.2. Whether it can be complete says nothing of later barriers, so that we go on. */
static void do_group(struct pmi *p, char **arg)
{
    if (pmi_ask(p, "barrier_out", "cmd=barrier_in group=%s", arg[0]) != 0 && !p->lenient)
        pmi_die(p, STATUS_WRONG, "barrier of %s: '%s'", arg[0], p->line);
}

/* From here on a barrier that cannot be complete is nothing unheard of: say `broken`, finalize, and end well. */
static void do_lenient(struct pmi *p, char **arg)
{
    (void)arg;
    p->lenient = true;
}

static void do_put(struct pmi *p, char **arg)
{
    int rc = p->two ? pmi2_ask(p, "kvs-put", "key=%s;value=%s;", arg[0], arg[1])
                    : pmi_ask(p, "put_result", "cmd=put kvsname=%s key=%s value=%s", p->kvsname, arg[0], arg[1]);

    if (rc != 0)
        pmi_die(p, STATUS_WRONG, "put %s: '%s'", arg[0], p->line);
}

static int get(struct pmi *p, const char *key, char *value)
{
    int rc;

    if (p->two)
        return pmi2_ask(p, "kvs-get", "key=%s;", key) != 0 || !pmi2_field(p, "value", value);
    rc = pmi_ask(p, "get_result", "cmd=get kvsname=%s key=%s", p->kvsname, key);

    if (rc == 0)
        pmi_field(p, "value", value);
    return rc;
}

static void do_get(struct pmi *p, char **arg)
{
    char value[READER_LINE_MAX];

    if (get(p, arg[0], value) == 0)
        printf("%s=%s\n", arg[0], value);
    else
        printf("%s: %s\n", arg[0], p->line);
}

static void want(struct pmi *p, const char *key, const char *expected)
{
    char value[READER_LINE_MAX];

    if (get(p, key, value) != 0)
        pmi_die(p, STATUS_WRONG, "get %s: '%s'", key, p->line);
    if (strcmp(value, expected) != 0)
        pmi_die(p, STATUS_WRONG, "get %s: got '%.80s', not '%.80s'", key, value, expected);
}

static void do_want(struct pmi *p, char **arg)
{
    want(p, arg[0], arg[1]);
}

static void do_missing(struct pmi *p, char **arg)
{
    char value[READER_LINE_MAX];

    if (get(p, arg[0], value) == 0)
        pmi_die(p, STATUS_WRONG, "get %s: got '%s', although nobody has put it", arg[0], value);
    if (strncmp(p->line, "cmd=get_result rc=4", 19) != 0)
        pmi_die(p, STATUS_WRONG, "get %s: '%s' and not rc=4", arg[0], p->line);
}

/* Send a line of the caller's own and print the answer. */
static void do_raw(struct pmi *p, char **arg)
{
    if (p->two) {
        pmi2_raw(p, arg[0]);
    } else {
        pmi_send(p, arg[0], strlen(arg[0]));
        pmi_send(p, "\n", 1);
        pmi_read_line(p);
    }
    printf("%s\n", p->line);
}

/* MPICH 4.0.2 waits for an answer, and where one comes (or an end) the program goes on as if nothing had been: that is
 * the server's fault. The others leave by themselves.
 */
static void do_abort(struct pmi *p, char **arg)
{
    int code = number(p, arg[0]);
    char line[READER_LINE_MAX];
    const char *name = p->reader->value_has_blanks ? "error_msg" : "message";

    if (p->two) {
        snprintf(line, sizeof(line), "cmd=abort;exitcode=%d;message=%.1000s;", code, arg[1]);
        pmi2_raw(p, line);
        pmi_die(p, STATUS_WRONG, "abort was answered: '%s'", p->line);
    }
    if (p->reader->string_rc)
        snprintf(line, sizeof(line), "cmd=abort exitcode=%d\n", code);
    else
        snprintf(line, sizeof(line), "cmd=abort exitcode=%d %s=%.1000s\n", code, name, arg[1]);
    pmi_send(p, line, strlen(line));
    if (!p->reader->string_rc)
        exit(code);
    pmi_read_line(p);
    pmi_die(p, STATUS_WRONG, "abort was answered: '%s'", p->line);
}

static void do_exit(struct pmi *p, char **arg)
{
    exit(number(p, arg[0]));
}

static void do_sleep(struct pmi *p, char **arg)
{
    fflush(NULL);
    sleep_ms(number(p, arg[0]));
}

static void do_hold(struct pmi *p, char **arg)
{
    fflush(NULL);
    pmi_hold(p, number(p, arg[0]));
}

static void do_nap(struct pmi *p, char **arg)
{
    sleep_ms((int)(random() % (number(p, arg[0]) + 1)));
}

static void do_print(struct pmi *p, char **arg)
{
    (void)p;
    printf("%s\n", arg[0]);
    fflush(stdout); /* what comes next may wait for whoever reads this */
}

/* Bytes that are no PMI at all, in a line of their own. */
static void do_rubbish(struct pmi *p, char **arg)
{
    char bytes[256];

    (void)arg;
    for (int i = 0; i < 255; i++)
        bytes[i] = i == '\n' ? 1 : (char)i;
    bytes[255] = '\n';
    pmi_send(p, bytes, sizeof(bytes));
}

static void do_longline(struct pmi *p, char **arg)
{
    for (int left = number(p, arg[0]); left > 0; left -= 10)
        pmi_send(p, "cmd=xxxxxx", 10);
}

/* A value that no two (rank, round) share; what the client at hand could put. */
static void make_value(const struct pmi *p, int rank, int round, int size, char *out)
{
    static const char plain[] = "0123456789abcdef#$=,()[]/+:-.<>";
    static const char blanks[] = "0123 56789abcdef#$=,( [ /+:-\"{}";
    const char *set = p->reader->value_has_blanks ? blanks : plain;
    unsigned seed = (unsigned)rank * 2654435761U + (unsigned)round * 40503U + 1;
    int used = snprintf(out, READER_LINE_MAX, "%d.%d.", rank, round);

    for (; used < size; used++) {
        seed = seed * 1103515245U + 12345U;
        out[used] = used == size - 1 ? 'e' : set[(seed >> 16) % (sizeof(plain) - 1)];
    }
    out[used] = '\0';
}

/* exchange ROUNDS SIZE DELAY fresh|again: each round every rank puts its key and, behind a barrier, reads everybody's,
 * each after up to DELAY ms. `fresh` takes a new key each round and goes straight on to the next one's barrier;
 * `again` puts the same key each time, so that a second barrier must part the reads from the next round's put.
 */
static void do_exchange(struct pmi *p, char **arg)
{
    int rounds = number(p, arg[0]), size = number(p, arg[1]), again = strcmp(arg[3], "again") == 0;
    char value[READER_LINE_MAX], key[64];

    if (size >= p->vallen_max)
        pmi_die(p, 2, "no room for values of %d bytes: the limit is %d", size, p->vallen_max - 1);
    for (int round = 0; round < rounds; round++) {
        char *put_arg[] = {key, value};

        do_nap(p, arg + 2);
        snprintf(key, sizeof(key), "card-%d-%d", again ? 0 : round, p->rank);
        make_value(p, p->rank, round, size, value);
        do_put(p, put_arg);
        do_barrier(p, NULL);
        for (int i = 0; i < p->size; i++) {
            int rank = (p->rank + i) % p->size;

            snprintf(key, sizeof(key), "card-%d-%d", again ? 0 : round, rank);
            make_value(p, rank, round, size, value);
            want(p, key, value);
        }
        if (again)
            do_barrier(p, NULL);
    }
    do_barrier(p, NULL);
    if (p->rank == 0)
        printf("exchange: %d ranks, %d rounds, all right\n", p->size, rounds);
}

/* One "(first node,nodes,ranks a node)" of a mapping; `*rank` counts on. Returns what is behind it; NULL: it is none */
static const char *take_triplet(const struct pmi *p, const char *text, int *rank, int *node)
{
    int first, nodes, ranks, len = 0;

    if (sscanf(text, ",(%d,%d,%d)%n", &first, &nodes, &ranks, &len) != 3 || len == 0)
        return NULL;
    for (int i = 0; i < nodes * ranks; i++, ++*rank) {
        if (*rank == p->rank)
            *node = first + i / ranks;
    }
    return text + len;
}

/* The process mapping must cover all ranks exactly, and put this one on the node that its environment says. */
static void do_mapping(struct pmi *p, char **arg)
{
    char value[READER_LINE_MAX];
    const char *text = value + strlen("(vector"), *env = getenv("PMI_NODE");
    int rank = 0, node = -1;

    (void)arg;
    if (get(p, "PMI_process_mapping", value) != 0)
        pmi_die(p, STATUS_WRONG, "no process mapping: '%s'", p->line);
    if (strncmp(value, "(vector", strlen("(vector")) != 0)
        pmi_die(p, STATUS_WRONG, "mapping '%s'", value);
    while (text != NULL && *text == ',')
        text = take_triplet(p, text, &rank, &node);
    if (text == NULL || strcmp(text, ")") != 0 || rank != p->size)
        pmi_die(p, STATUS_WRONG, "mapping '%s' for %d ranks", value, p->size);
    if (env != NULL && number(p, env) != node)
        pmi_die(p, STATUS_WRONG, "mapping '%s' has us on node %d, PMI_NODE is %s", value, node, env);
    if (p->rank == 0)
        printf("mapping: %s\n", value);
}

/* The numbers that the server gives everybody, on one line. */
static void do_info(struct pmi *p, char **arg)
{
    char universe[READER_LINE_MAX], appnum[READER_LINE_MAX];

    (void)arg;
    if (pmi_ask(p, "universe_size", "cmd=get_universe_size") != 0)
        pmi_die(p, STATUS_WRONG, "get_universe_size: '%s'", p->line);
    pmi_field(p, "size", universe);
    if (pmi_ask(p, "appnum", "cmd=get_appnum") != 0)
        pmi_die(p, STATUS_WRONG, "get_appnum: '%s'", p->line);
    pmi_field(p, "appnum", appnum);
    printf("rank=%d size=%d universe=%s appnum=%s kvsname_max=%d keylen_max=%d vallen_max=%d\n", p->rank, p->size,
           universe, appnum, p->kvsname_max, p->keylen_max, p->vallen_max);
}

static const struct step {
    const char *name;
    int nargs;
    void (*run)(struct pmi *p, char **arg);
} steps[] = {
    {"init", 0, do_init},         {"finalize", 0, do_finalize},
    {"close", 0, do_close},       {"barrier", 0, do_barrier},
    {"put", 2, do_put},           {"get", 1, do_get},
    {"want", 2, do_want},         {"missing", 1, do_missing},
    {"raw", 1, do_raw},           {"abort", 2, do_abort},
    {"exit", 1, do_exit},         {"signal", 1, do_signal},
    {"sleep", 1, do_sleep},       {"nap", 1, do_nap},
    {"print", 1, do_print},       {"rubbish", 0, do_rubbish},
    {"longline", 1, do_longline}, {"deaf", 0, do_deaf},
    {"exchange", 4, do_exchange}, {"daemonize", 2, do_daemonize},
    {"mapping", 0, do_mapping},   {"info", 0, do_info},
    {"trap", 3, do_trap},         {"group", 1, do_group},
    {"lenient", 0, do_lenient},   {"hold", 1, do_hold},
};

/* %r and %s in place of rank and size; to be freed. */
static char *expand(const struct pmi *p, const char *text)
{
    size_t room = strlen(text) * 12 + 1, used = 0;
    char *out = malloc(room);

    if (out == NULL)
        pmi_die(p, 2, "out of memory");
    for (; *text != '\0'; text++) {
        if (text[0] == '%' && (text[1] == 'r' || text[1] == 's'))
            used += (size_t)snprintf(out + used, room - used, "%d", *++text == 'r' ? p->rank : p->size);
        else
            out[used++] = *text;
    }
    out[used] = '\0';
    return out;
}

/* Is this rank in a list such as 0,3,7? */
static int listed(const struct pmi *p, const char *list)
{
    for (;; list++) {
        char *end;

        if (strtol(list, &end, 10) == p->rank && end != list)
            return 1;
        list = end;
        if (*list != ',')
            return 0;
    }
}

/* One step of `argc` words; `*active` says whether this rank takes part at present. */
static void run_step(struct pmi *p, int argc, char **argv, int *active)
{
    char *arg[ARGS_MAX] = {NULL};

    if (strcmp(argv[0], "all") == 0 && argc == 1) {
        *active = 1;
        return;
    }
    if ((strcmp(argv[0], "on") == 0 || strcmp(argv[0], "not") == 0) && argc == 2) {
        *active = listed(p, argv[1]) == (argv[0][0] == 'o');
        return;
    }
    for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]); i++) {
        if (strcmp(argv[0], steps[i].name) != 0 || steps[i].nargs != argc - 1)
            continue;
        for (int k = 1; k < argc && *active; k++)
            arg[k - 1] = expand(p, argv[k]);
        if (*active)
            steps[i].run(p, arg);
        for (int k = 0; k < ARGS_MAX; k++)
            free(arg[k]);
        return;
    }
    pmi_die(p, 2, "no step '%s' with %d arguments", argv[0], argc - 1);
}

static int check_line(const char *style, const char *reply, const char *line)
{
    const struct reader *r = reader_find(style);
    const char *why = "";
    int rc;

    if (r == NULL || strlen(line) >= READER_LINE_MAX)
        return 2;
    rc = reader_check(r, line, reply, &why);
    if (rc < 0)
        printf("%s\n", why);
    return rc < 0 ? STATUS_REFUSED : rc;
}

int main(int argc, char **argv)
{
    const struct reader *reader = reader_find("mpich402");
    bool two = false;
    struct pmi p;
    int active = 1, first = 1;

    if (argc == 5 && strcmp(argv[1], "check") == 0)
        return check_line(argv[2], argv[3], argv[4]);
    if (argc > 1 && strncmp(argv[1], "--style=", 8) == 0)
        reader = reader_find(argv[first++] + 8);
    if (argc > first && strcmp(argv[first], "--pmi2") == 0)
        two = ++first > 0;
    if (reader == NULL || first == argc) {
        fprintf(stderr, "usage: pmi_client [--style=mpich402|mpich|flux] [--pmi2] STEP [ARG...] [, STEP...]...\n");
        return 2;
    }
    pmi_open(&p, reader);
    p.two = two;
    srandom((unsigned)getpid());
    while (first < argc) {
        int end = first;

        while (end < argc && strcmp(argv[end], ",") != 0)
            end++;
        if (end > first)
            run_step(&p, end - first, argv + first, &active);
        first = end + 1;
    }
    return 0;
}
