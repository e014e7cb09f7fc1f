/* SPDX-License-Identifier: BSD-3-Clause */
/* pmi_threads ROUNDS [SESSIONS] - several threads of one rank, each with a PMI session of its own over PMI_PORT
 *
 * PMI_ID = rank + size x session. Each thread does put, barrier, get, ROUNDS times, with random delays, and checks
 * that what it reads is what the same session of another rank put in that very round: neither an earlier nor a later
 * one, and no other session's. So a barrier that mixes sessions is seen at once.
 */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define SESSIONS_MAX 64

static int rank, size, rounds, sessions;

struct thread {
    int session;
    FILE *in;
    int fd;
    unsigned seed;
    pthread_t id;
};

/* A number from 0 on, or the end. */
static int number(const char *text)
{
    char *end;
    long v = text == NULL ? -1 : strtol(text, &end, 10);

    if (v < 0 || v > 1 << 30 || *end != '\0') {
        fprintf(stderr, "usage: pmi_threads ROUNDS [SESSIONS], with PMI_PORT, PMI_RANK and PMI_SIZE\n");
        exit(2);
    }
    return (int)v;
}

static void die(const struct thread *t, const char *what, const char *got)
{
    fprintf(stderr, "pmi_threads: rank %d session %d: %s: '%s'\n", rank, t->session, what, got);
    exit(1);
}

static const char *read_line(struct thread *t, char line[2048])
{
    if (fgets(line, 2048, t->in) == NULL)
        die(t, "no reply", "");
    line[strcspn(line, "\n")] = '\0';
    return line;
}

/* Send a line; the reply must begin with `want`. */
static void ask(struct thread *t, const char *request, const char *want, char line[2048])
{
    if (send(t->fd, request, strlen(request), MSG_NOSIGNAL) != (ssize_t)strlen(request))
        die(t, "cannot send", request);
    read_line(t, line);
    if (strncmp(line, want, strlen(want)) != 0)
        die(t, request, line);
}

static void open_session(struct thread *t)
{
    const char *port = strrchr(getenv("PMI_PORT"), ':') + 1;
    struct sockaddr_in at = {
        .sin_family = AF_INET, .sin_port = htons((uint16_t)number(port)), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    char text[128], line[2048];
    int on = 1;

    t->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (t->fd < 0 || connect(t->fd, (const struct sockaddr *)&at, sizeof(at)) < 0)
        die(t, "cannot connect", port);
    setsockopt(t->fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    t->in = fdopen(t->fd, "r");
    snprintf(text, sizeof(text), "cmd=initack pmiid=%d\n", rank + size * t->session);
    ask(t, text, "cmd=initack", line);
    snprintf(text, sizeof(text), "cmd=set size=%d", size);
    if (strcmp(read_line(t, line), text) != 0)
        die(t, text, line);
    snprintf(text, sizeof(text), "cmd=set rank=%d", rank);
    if (strcmp(read_line(t, line), text) != 0)
        die(t, text, line);
    read_line(t, line); /* debug */
    ask(t, "cmd=init pmi_version=1 pmi_subversion=1\n", "cmd=response_to_init rc=0", line);
}

static void check_peer(struct thread *t, int peer, int round)
{
    char text[256], want[256], line[2048];

    snprintf(text, sizeof(text), "cmd=get kvsname=x key=k%d.%d.%d\n", t->session, peer, round % 2);
    snprintf(want, sizeof(want), "cmd=get_result rc=0 value=%d %d %d", t->session, peer, round);
    ask(t, text, want, line);
    if (strcmp(line, want) != 0)
        die(t, want, line);
}

static void *run(void *arg)
{
    struct thread *t = arg;
    char text[256], line[2048];

    open_session(t);
    for (int round = 0; round < rounds; round++) {
        /* Two keys in turn: the next round's put must not be seen before this round's readers are through. */
        snprintf(text, sizeof(text), "cmd=put kvsname=x key=k%d.%d.%d value=%d %d %d\n", t->session, rank, round % 2,
                 t->session, rank, round);
        ask(t, text, "cmd=put_result rc=0", line);
        if (rand_r(&t->seed) % 64 == 0)
            usleep((unsigned)rand_r(&t->seed) % 2000);
        ask(t, "cmd=barrier_in\n", "cmd=barrier_out rc=0", line);
        check_peer(t, (rank + 1) % size, round);
        check_peer(t, rand_r(&t->seed) % size, round);
    }
    ask(t, "cmd=finalize\n", "cmd=finalize_ack", line);
    fclose(t->in);
    return NULL;
}

int main(int argc, char **argv)
{
    struct thread t[SESSIONS_MAX] = {{0}};

    rounds = number(argc < 2 ? NULL : argv[1]);
    sessions = argc > 2 ? number(argv[2]) : 4;
    rank = number(getenv("PMI_RANK"));
    size = number(getenv("PMI_SIZE"));
    if (getenv("PMI_PORT") == NULL || sessions > SESSIONS_MAX)
        return 2;
    for (int i = 0; i < sessions; i++) {
        t[i].session = i;
        t[i].seed = (unsigned)(getpid() * 64 + i);
        if (pthread_create(&t[i].id, NULL, run, &t[i]) != 0)
            return 2;
    }
    for (int i = 0; i < sessions; i++)
        pthread_join(t[i].id, NULL);
    return 0;
}
