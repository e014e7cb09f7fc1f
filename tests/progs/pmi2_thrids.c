/* SPDX-License-Identifier: BSD-3-Clause */
/* pmi2_thrids ROUNDS - two threads of each rank over one PMI-2 connection, told apart by thrid alone
 *
 * In each round one thread waits for a node attribute (info-getnodeattr, wait=TRUE). Only once it has asked the other
 * begins: kvs-put, kvs-fence, kvs-get, a second fence; then it puts what the waiting thread of the next rank of its
 * node is after. So no rank's attribute can be there before every rank is in the second fence: an answer that comes
 * sooner, an answer that is held up by the request that waits, or one that goes to the wrong thread is seen.
 */
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define FD 3
#define LIMIT 60 /* seconds without a round */
#define FRAME_MAX 2048

enum who { WAITER, WORKER };
static const char *const thrid[] = {"7", "70"}; /* one is the beginning of the other */

static int rank, size, local_rank, local_size, rounds;

/* A thread at a time writes, and whoever is at it reads for both. */
static struct {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool is_read, has_reply[2];
    char reply[2][FRAME_MAX];
    int asked; /* rounds in which the waiting thread has asked */
} pmi = {.lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};

static void die(const char *what, const char *got)
{
    fprintf(stderr, "pmi2_thrids: rank %d: %s: '%s'\n", rank, what, got);
    _exit(1);
}

static void on_alarm(int sig)
{
    static const char text[] = "pmi2_thrids: no answer\n";

    (void)sig;
    (void)!write(2, text, sizeof(text) - 1);
    _exit(3);
}

static int number(const char *text)
{
    char *end;
    long v = text == NULL ? -1 : strtol(text, &end, 10);

    if (v < 0 || v > 1000000 || *end != '\0') {
        fprintf(stderr, "usage: pmi2_thrids ROUNDS, as a task with PMI_FD=%d\n", FD);
        exit(2);
    }
    return (int)v;
}

static void read_bytes(char *to, size_t n)
{
    while (n > 0) {
        ssize_t got = recv(FD, to, n, 0);

        if (got <= 0)
            die("the connection has ended", "");
        to += got;
        n -= (size_t)got;
    }
}

static void send_text(const char *text)
{
    if (send(FD, text, strlen(text), MSG_NOSIGNAL) != (ssize_t)strlen(text))
        die("cannot send", text);
}

/* Held: read one answer and give it to the one whose thrid is in it. */
static void read_one(void)
{
    char text[FRAME_MAX], length[7] = "", own[40];
    size_t n;

    pmi.is_read = true;
    pthread_mutex_unlock(&pmi.lock);
    read_bytes(length, 6);
    n = strtoul(length, NULL, 10);
    if (n == 0 || n >= sizeof(text))
        die("length of an answer", length);
    read_bytes(text, n);
    text[n] = '\0';
    pthread_mutex_lock(&pmi.lock);
    pmi.is_read = false;
    for (int i = 0; i < 2; i++) {
        snprintf(own, sizeof(own), ";thrid=%s;", thrid[i]);
        if (strstr(text, own) == NULL)
            continue;
        if (pmi.has_reply[i])
            die("a second answer", text);
        memcpy(pmi.reply[i], text, n + 1);
        pmi.has_reply[i] = true;
        pthread_cond_broadcast(&pmi.changed);
        return;
    }
    die("an answer to nobody", text);
}

/* Ask for `cmd`, with more fields, and hear `want` behind the thrid. */
static void ask(enum who me, const char *cmd, const char *want, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));

static void ask(enum who me, const char *cmd, const char *want, const char *fmt, ...)
{
    char fields[512], frame[700], text[800];
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(fields, sizeof(fields), fmt, ap);
    va_end(ap);
    snprintf(frame, sizeof(frame), "cmd=%s;thrid=%s;%s", cmd, thrid[me], fields);
    snprintf(text, sizeof(text), "%6zu%s", strlen(frame), frame);
    pthread_mutex_lock(&pmi.lock);
    send_text(text);
    if (me == WAITER) {
        pmi.asked++;
        pthread_cond_broadcast(&pmi.changed);
    }
    while (!pmi.has_reply[me]) {
        if (pmi.is_read)
            pthread_cond_wait(&pmi.changed, &pmi.lock);
        else
            read_one();
    }
    pmi.has_reply[me] = false;
    snprintf(text, sizeof(text), "cmd=%s-response;thrid=%s;%s", cmd, thrid[me], want);
    if (strncmp(pmi.reply[me], text, strlen(text)) != 0)
        die(text, pmi.reply[me]);
    pthread_mutex_unlock(&pmi.lock);
}

static void *waiter(void *arg)
{
    char want[64];
    int from = rank - local_rank + (local_rank + local_size - 1) % local_size; /* block placement */

    (void)arg;
    for (int round = 0; round < rounds; round++) {
        snprintf(want, sizeof(want), "found=TRUE;value=%d %d;rc=0;", from, round);
        ask(WAITER, "info-getnodeattr", want, "key=go-%d-%d;wait=TRUE;", local_rank, round);
    }
    return NULL;
}

static void await_waiter(int round)
{
    pthread_mutex_lock(&pmi.lock);
    while (pmi.asked <= round)
        pthread_cond_wait(&pmi.changed, &pmi.lock);
    pthread_mutex_unlock(&pmi.lock);
}

static void still_waits(int round)
{
    pthread_mutex_lock(&pmi.lock);
    if (pmi.asked != round + 1 || pmi.has_reply[WAITER])
        die("answered ahead of the put", pmi.reply[WAITER]);
    pthread_mutex_unlock(&pmi.lock);
}

static void *worker(void *arg)
{
    char want[64];

    (void)arg;
    for (int round = 0; round < rounds; round++) {
        int peer = (rank + 1 + round) % size;

        alarm(LIMIT);
        await_waiter(round);
        ask(WORKER, "kvs-put", "rc=0;", "key=k-%d-%d;value=%d of %d;", rank, round, rank, round);
        ask(WORKER, "kvs-fence", "rc=0;", "%s", "");
        snprintf(want, sizeof(want), "found=TRUE;value=%d of %d;rc=0;", peer, round);
        ask(WORKER, "kvs-get", want, "jobid=x;srcid=-1;key=k-%d-%d;", peer, round);
        still_waits(round);
        ask(WORKER, "kvs-fence", "rc=0;", "%s", "");
        ask(WORKER, "info-putnodeattr", "rc=0;", "key=go-%d-%d;value=%d %d;", (local_rank + 1) % local_size, round,
            rank, round);
    }
    return NULL;
}

/* Its answer is a line, and no frame. */
static void begin(void)
{
    static const char answer[] = "cmd=response_to_init pmi_version=2 pmi_subversion=0 rc=0\n";
    char line[sizeof(answer)] = "";

    send_text("cmd=init pmi_version=2 pmi_subversion=0\n");
    read_bytes(line, sizeof(answer) - 1);
    if (strcmp(line, answer) != 0)
        die("init", line);
    ask(WORKER, "fullinit", "", "pmijobid=x;pmirank=%d;threaded=TRUE;", rank);
}

int main(int argc, char **argv)
{
    pthread_t id[2];

    rounds = number(argc < 2 ? NULL : argv[1]);
    rank = number(getenv("PMI_RANK"));
    size = number(getenv("PMI_SIZE"));
    local_rank = number(getenv("PMI_LOCAL_RANK"));
    local_size = number(getenv("PMI_LOCAL_SIZE"));
    signal(SIGALRM, on_alarm);
    alarm(LIMIT);
    begin();
    if (pthread_create(&id[WAITER], NULL, waiter, NULL) != 0 || pthread_create(&id[WORKER], NULL, worker, NULL) != 0)
        return 2;
    for (int i = 0; i < 2; i++)
        pthread_join(id[i], NULL);
    ask(WORKER, "finalize", "rc=0;", "%s", "");
    printf("pmi2_thrids: rank %d: %d rounds, all right\n", rank, rounds);
    return 0;
}
