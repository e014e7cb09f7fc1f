/* SPDX-License-Identifier: BSD-3-Clause */
/* pmi_groups FILE ROUNDS THREADS [node] - PMI-1.2 group barriers of several threads over one connection
 *
 * Each thread of each rank goes through ROUNDS barriers of the groups it is in, chosen by a generator that all ranks
 * seed alike: overlapping lists of ranks, in any order, WORLD and NODE; the tag is the thread's number, so that the
 * same group is under way with several tags, and the same tag in several groups. With `node` the groups are of ranks of
 * one node alone.
 *
 * The model is FILE, mapped by all ranks (they run on one machine): who enters a round of a barrier counts itself
 * there before it says so, and who is let out finds all members counted, or the barrier was none. What a member put
 * before must be readable then.
 */
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#define THREADS_MAX 16
#define ROUNDS_MAX 2000
#define RANKS_MAX 64
#define LIMIT 60 /* seconds without a barrier */

static int rank, size, local_size, node, rounds, threads;
static bool node_only;
static atomic_int (*counted)[ROUNDS_MAX]; /* [thread * RANKS_MAX + first member] */

/* The one connection: a thread at a time writes, and whoever is at it reads for all. */
static struct {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    FILE *in;
    bool is_read;
    bool is_out[THREADS_MAX]; /* the barrier of this tag is over */
    char reply[2048];         /* to the request that is not a barrier */
    bool is_replied;
} pmi = {.lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};

/* What each thread waits for, for the message when it takes too long. */
static char waits[THREADS_MAX][600];

static void on_alarm(int sig)
{
    (void)sig;
    for (int i = 0; i < threads; i++)
        dprintf(2, "pmi_groups: rank %d thread %d waits for %s\n", rank, i, waits[i]);
    _exit(3);
}

static void die(const char *what, const char *got)
{
    fprintf(stderr, "pmi_groups: rank %d: %s: '%s'\n", rank, what, got);
    exit(1);
}

static int number(const char *text, int max)
{
    char *end;
    long v = text == NULL ? -1 : strtol(text, &end, 10);

    if (v < 0 || v > max || *end != '\0') {
        fprintf(stderr, "usage: pmi_groups FILE ROUNDS THREADS [node]\n");
        exit(2);
    }
    return (int)v;
}

/* --- the connection --------------------------------------------------------------------------------------------- */

/* Held: read one reply and note whose it is. */
static void read_one(void)
{
    char line[2048];
    const char *tag;

    pmi.is_read = true;
    pthread_mutex_unlock(&pmi.lock);
    if (fgets(line, sizeof(line), pmi.in) == NULL)
        die("no reply", "");
    line[strcspn(line, "\n")] = '\0';
    pthread_mutex_lock(&pmi.lock);
    pmi.is_read = false;
    tag = strstr(line, " tag=");
    if (strncmp(line, "cmd=barrier_out ", 16) != 0) {
        snprintf(pmi.reply, sizeof(pmi.reply), "%s", line);
        pmi.is_replied = true;
    } else if (strncmp(line, "cmd=barrier_out rc=0", 20) != 0 || tag == NULL) {
        die("barrier", line);
    } else {
        pmi.is_out[number(tag + 5, THREADS_MAX - 1)] = true;
    }
    pthread_cond_broadcast(&pmi.changed);
}

static void wait_for(const bool *what)
{
    while (!*what) {
        if (pmi.is_read)
            pthread_cond_wait(&pmi.changed, &pmi.lock);
        else
            read_one();
    }
}

static void say(const char *text)
{
    if (send(3, text, strlen(text), MSG_NOSIGNAL) != (ssize_t)strlen(text))
        die("cannot send", text);
}

/* One request that is no barrier is under way at a time. */
static void ask(const char *request, const char *want)
{
    static pthread_mutex_t one = PTHREAD_MUTEX_INITIALIZER;

    pthread_mutex_lock(&one);
    pthread_mutex_lock(&pmi.lock);
    pmi.is_replied = false;
    say(request);
    wait_for(&pmi.is_replied);
    if (strncmp(pmi.reply, want, strlen(want)) != 0)
        die(request, pmi.reply);
    pthread_mutex_unlock(&pmi.lock);
    pthread_mutex_unlock(&one);
}

static void barrier(const char *group, int tag)
{
    char text[1024];

    snprintf(text, sizeof(text), "cmd=barrier_in group=%s:%d\n", group, tag);
    pthread_mutex_lock(&pmi.lock);
    pmi.is_out[tag] = false;
    say(text);
    snprintf(waits[tag], sizeof(waits[tag]), "%s", group);
    wait_for(&pmi.is_out[tag]);
    alarm(LIMIT);
    snprintf(waits[tag], sizeof(waits[tag]), "nothing");
    pthread_mutex_unlock(&pmi.lock);
}

/* --- groups ----------------------------------------------------------------------------------------------------- */

struct group {
    char name[512];
    int member[RANKS_MAX], count;
    bool has_me;
};

static void add(struct group *g, int r)
{
    g->member[g->count++] = r;
    g->has_me = g->has_me || r == rank;
}

/* The groups of one thread's round: they share no rank, so that a rank is in one of them. The same on all ranks. */
static void choose(unsigned *seed, struct group *mine)
{
    int parts = 1 + rand_r(seed) % 4, how = rand_r(seed) % 4, of[RANKS_MAX];
    bool reversed = rand_r(seed) % 2;
    struct group g[4] = {{.count = 0}};

    for (int r = 0; r < size; r++)
        of[r] = rand_r(seed) % parts;
    for (int i = 0; i < size; i++) {
        int r = reversed ? size - 1 - i : i, first = r / local_size * local_size;

        if (node_only && r / local_size != node)
            continue;
        if (how == 0)
            add(&g[0], r);
        else if (how == 1 && first == node * local_size)
            add(&g[0], r);
        else if (how > 1)
            add(&g[of[r]], r);
    }
    for (int k = 0; k < 4; k++) {
        if (!g[k].has_me)
            continue;
        *mine = g[k];
        if (how == 0 && !node_only)
            snprintf(mine->name, sizeof(mine->name), "WORLD");
        else if (how == 1)
            snprintf(mine->name, sizeof(mine->name), "NODE");
        else
            for (int i = 0; i < mine->count; i++)
                snprintf(mine->name + strlen(mine->name), 8, i == 0 ? "%d" : ",%d", mine->member[i]);
    }
}

static int lowest(const struct group *g)
{
    int low = g->member[0];

    for (int i = 1; i < g->count; i++)
        low = g->member[i] < low ? g->member[i] : low;
    return low;
}

static void *run(void *arg)
{
    int me = (int)(size_t)arg;
    unsigned seed = (unsigned)me + 1, pause = (unsigned)(getpid() * 16 + me);
    char text[800], want[256];

    for (int round = 0; round < rounds; round++) {
        struct group g;
        atomic_int *count;
        int peer;

        choose(&seed, &g);
        count = &counted[me * RANKS_MAX + lowest(&g)][round];
        snprintf(text, sizeof(text), "cmd=put kvsname=x key=t%d.%d.%d value=%d\n", me, rank, round, round);
        ask(text, "cmd=put_result rc=0");
        if (rand_r(&pause) % 16 == 0)
            usleep((unsigned)rand_r(&pause) % 3000);
        atomic_fetch_add(count, 1);
        barrier(g.name, me);
        if (atomic_load(count) != g.count) {
            snprintf(text, sizeof(text), "group %s tag %d round %d: let out after %d of %d", g.name, me, round,
                     atomic_load(count), g.count);
            die("no barrier", text);
        }
        peer = g.member[rand_r(&pause) % g.count];
        snprintf(text, sizeof(text), "cmd=get kvsname=x key=t%d.%d.%d\n", me, peer, round);
        snprintf(want, sizeof(want), "cmd=get_result rc=0 value=%d", round);
        if (!node_only || peer / local_size == node)
            ask(text, want);
    }
    return NULL;
}

static void map_model(const char *file)
{
    size_t bytes = sizeof(*counted) * THREADS_MAX * RANKS_MAX;
    int fd = open(file, O_RDWR | O_CREAT, 0600);

    if (fd < 0 || ftruncate(fd, (off_t)bytes) < 0)
        die("cannot make", file);
    counted = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (counted == MAP_FAILED)
        die("cannot map", file);
}

int main(int argc, char **argv)
{
    pthread_t id[THREADS_MAX];

    rounds = number(argc < 4 ? NULL : argv[2], ROUNDS_MAX);
    threads = number(argv[3], THREADS_MAX);
    node_only = argc > 4;
    rank = number(getenv("PMI_RANK"), RANKS_MAX - 1);
    size = number(getenv("PMI_SIZE"), RANKS_MAX);
    local_size = number(getenv("PMI_LOCAL_SIZE"), RANKS_MAX);
    node = number(getenv("PMI_NODE"), RANKS_MAX);
    map_model(argv[1]);
    signal(SIGALRM, on_alarm);
    alarm(LIMIT);
    pmi.in = fdopen(dup(3), "r");
    ask("cmd=init pmi_version=1 pmi_subversion=1\n", "cmd=response_to_init rc=0 pmi_version=1 pmi_subversion=2");
    for (int i = 0; i < threads; i++)
        if (pthread_create(&id[i], NULL, run, (void *)(size_t)i) != 0)
            return 2;
    for (int i = 0; i < threads; i++)
        pthread_join(id[i], NULL);
    barrier("WORLD", 0);
    ask("cmd=finalize\n", "cmd=finalize_ack");
    return 0;
}
