/* SPDX-License-Identifier: BSD-3-Clause */
#include <criterion/criterion.h>
#include <arpa/inet.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>
#include "client/wire.h"
#include "common/limits.h"
#include "common/util.h"

/* Our end as a connection, the server's as a descriptor. */
static struct wire pair(int *server)
{
    struct wire w;
    int fd[2];

    cr_assert_eq(socketpair(AF_UNIX, SOCK_STREAM, 0, fd), 0);
    cr_assert_eq(wire_open_fd(&w, fd[0], NULL), 0);
    *server = fd[1];
    return w;
}

static void done(struct wire *w, int server)
{
    int fd = w->fd;

    wire_close(w);
    close(fd);
    if (server >= 0)
        close(server);
}

static void say(int fd, const char *text)
{
    cr_assert_eq(write(fd, text, strlen(text)), (ssize_t)strlen(text));
}

static void want_request(int fd, const char *text)
{
    char got[256];
    ssize_t n = read(fd, got, sizeof(got) - 1);

    cr_assert(n >= 0);
    got[n] = '\0';
    cr_expect_str_eq(got, text);
}

Test(wire, one_question_one_answer)
{
    struct pmi_line line;
    int server, rc = -7;
    struct wire w = pair(&server);

    say(server, "cmd=get_result rc=0 value=a b =c \n");
    cr_assert_eq(wire_ask(&w, span_of("cmd=get key=k\n"), "get_result", &line, &rc, NULL), 0);
    cr_expect_eq(rc, 0);
    cr_expect(span_is(pmi_line_get(&line, "value"), "a b =c "));
    want_request(server, "cmd=get key=k\n");
    say(server, "cmd=get_result rc=4\n");
    cr_assert_eq(wire_ask(&w, span_of("cmd=get key=l\n"), "get_result", &line, &rc, NULL), 0);
    cr_expect_eq(rc, 4);
    done(&w, server);
}

struct talk {
    int fd;
    const char *bytes;
    size_t len, step;
};

static void *talk(void *arg)
{
    const struct talk *t = arg;

    for (size_t i = 0; i < t->len; i += t->step) {
        size_t n = MIN(t->step, t->len - i);

        cr_assert_eq(write(t->fd, t->bytes + i, n), (ssize_t)n);
    }
    return NULL;
}

Test(wire, lines_however_long_and_however_cut)
{
    static const size_t lens[] = {0, 1, 511, 512, 513, 1023, 1024, 70000};
    static const size_t steps[] = {1, 7, 4096};

    for (size_t i = 0; i < ARRAY_SIZE(lens) * ARRAY_SIZE(steps); i++) {
        size_t len = lens[i % ARRAY_SIZE(lens)];
        struct talk t = {.len = 2 * (len + 1), .step = steps[i / ARRAY_SIZE(lens)]};
        char *bytes = malloc(t.len);
        struct span line;
        pthread_t thread;
        struct wire w = pair(&t.fd);

        memset(bytes, 'x', t.len);
        bytes[len] = bytes[2 * len + 1] = '\n';
        t.bytes = bytes;
        pthread_create(&thread, NULL, talk, &t);
        for (int k = 0; k < 2; k++) {
            cr_assert_eq(wire_line(&w, &line, NULL), 0);
            cr_expect_eq(line.n, len);
            cr_expect(len == 0 || (line.p[0] == 'x' && line.p[len - 1] == 'x'));
        }
        pthread_join(thread, NULL);
        free(bytes);
        done(&w, t.fd);
    }
}

Test(wire, an_endless_line_is_refused)
{
    struct talk t = {.len = WIRE_LINE_MAX + 1, .step = 4096};
    struct wire w = pair(&t.fd);
    struct err err = {0};
    struct span line;
    pthread_t thread;
    char *bytes;

    bytes = malloc(t.len);
    memset(bytes, 'x', t.len);
    t.bytes = bytes;
    t.len = WIRE_LINE_MAX;
    pthread_create(&thread, NULL, talk, &t);
    cr_expect_eq(wire_line(&w, &line, &err), -E2BIG, "%s", err.text);
    cr_expect_eq(wire_line(&w, &line, &err), -ENOTCONN);
    pthread_join(thread, NULL);
    free(bytes);
    done(&w, t.fd);
}

Test(wire, frames_with_blanks_on_either_side_of_the_length)
{
    struct span body;
    int server;
    struct wire w = pair(&server);

    say(server, "     4a;b;6     c=d;e;");
    cr_assert_eq(wire_frame(&w, &body, NULL), 0);
    cr_expect(span_is(body, "a;b;"));
    cr_assert_eq(wire_frame(&w, &body, NULL), 0);
    cr_expect(span_is(body, "c=d;e;"));
    done(&w, server);
}

Test(wire, a_frame_without_a_length_is_refused)
{
    struct err err = {0};
    struct span body;
    int server;
    struct wire w = pair(&server);

    say(server, "cmd=response_to_init\n");
    cr_expect_eq(wire_frame(&w, &body, &err), -EPROTO);
    cr_expect_str_eq(err.text, "the PMI server sent 'cmd=response_to_init\\n' instead of a PMI-2 message");
    done(&w, server);
}

static const struct {
    const char *reply, *text;
} bad[] = {
    {"cmd=put_result rc=0\n", "the PMI server sent 'cmd=put_result rc=0' instead of cmd=get_result"},
    {"rc=0\n", "the PMI server sent 'rc=0' instead of cmd=get_result"},
    {"\n", "the PMI server sent '' instead of cmd=get_result"},
    {"cmd=get_result rc=x\n", "the PMI server sent 'cmd=get_result rc=x' instead of cmd=get_result"},
};

Test(wire, a_server_that_never_answers_is_given_up)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof(at);
    int server = socket(AF_INET, SOCK_STREAM, 0);
    struct err err = {0};
    struct wire w;
    char port[40], want[80];

    cr_assert_eq(bind(server, (struct sockaddr *)&at, len), 0);
    cr_assert_eq(listen(server, 1), 0);
    cr_assert_eq(getsockname(server, (struct sockaddr *)&at, &len), 0);
    snprintf(port, sizeof(port), "127.0.0.1:%u", ntohs(at.sin_port));
    cr_assert_eq(wire_connect(&w, port, &err), 0, "%s", err.text);
    cr_expect_eq(w.first_ms, WIRE_FIRST_MS);
    w.first_ms = 1000;
    cr_expect_eq(wire_init1(&w, &err), -ETIMEDOUT);
    snprintf(want, sizeof(want), "the PMI server at 127.0.0.1 port %u has not answered within 1 s", ntohs(at.sin_port));
    cr_expect_str_eq(err.text, want);
    cr_expect_eq(wire_init1(&w, &err), -ENOTCONN);
    wire_close(&w);
    close(server);
}

Test(wire, the_limit_is_for_the_first_answer_alone)
{
    int server;
    struct wire w = pair(&server);
    struct span line;

    say(server, "cmd=one\n");
    cr_assert_eq(wire_line(&w, &line, NULL), 0);
    cr_expect_eq(w.first_ms, 0);
    done(&w, server);
}

Test(wire, a_wrong_reply_breaks_the_connection)
{
    for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
        struct pmi_line line;
        struct err err = {0};
        int server, rc;
        struct wire w = pair(&server);

        say(server, bad[i].reply);
        cr_expect_eq(wire_reply(&w, "get_result", &line, &rc, &err), -EPROTO);
        cr_expect_str_eq(err.text, bad[i].text);
        cr_expect_eq(wire_send(&w, span_of("x"), &err), -ENOTCONN);
        done(&w, server);
    }
}

/* SIGPIPE has its default here: a signal would end the test. */
Test(wire, no_signal_when_the_server_is_gone)
{
    struct err err = {0};
    struct wire w;
    int fd[2], server;

    w = pair(&server);
    close(server);
    cr_expect_eq(wire_send(&w, span_of("cmd=get\n"), &err), -EPIPE);
    cr_expect_str_eq(err.text, "the PMI server has closed the connection");
    done(&w, -1);

    cr_assert_eq(pipe(fd), 0);
    close(fd[0]);
    cr_assert_eq(wire_open_fd(&w, fd[1], NULL), 0);
    cr_expect_eq(wire_send(&w, span_of("cmd=get\n"), &err), -EPIPE);
    done(&w, -1);
}

Test(wire, a_signal_that_was_pending_before_stays)
{
    sigset_t set, now;
    struct wire w;
    int fd[2];

    sigemptyset(&set);
    sigaddset(&set, SIGPIPE);
    cr_assert_eq(pthread_sigmask(SIG_BLOCK, &set, NULL), 0);
    raise(SIGPIPE);
    cr_assert_eq(pipe(fd), 0);
    close(fd[0]);
    cr_assert_eq(wire_open_fd(&w, fd[1], NULL), 0);
    cr_expect_eq(wire_send(&w, span_of("x"), NULL), -EPIPE);
    sigpending(&now);
    cr_expect_eq(sigismember(&now, SIGPIPE), 1);
    done(&w, -1);
}

Test(wire, a_descriptor_is_lent_and_stays_out_of_other_programs)
{
    int server, fd;
    struct wire w = pair(&server);

    fd = w.fd;
    cr_expect_eq(fcntl(fd, F_GETFD), FD_CLOEXEC);
    wire_close(&w);
    wire_close(&w);
    cr_expect_eq(fcntl(fd, F_GETFD), 0);
    cr_expect_eq(wire_send(&w, span_of("x"), NULL), -ENOTCONN);
    close(fd);
    close(server);
    cr_expect_eq(wire_open_fd(&w, fd, NULL), -EBADF);
}

static void on_alarm(int sig)
{
    (void)sig;
}

static void *reply_late(void *arg)
{
    usleep(50000);
    say(*(int *)arg, "cmd=barrier_out rc=0\n");
    return NULL;
}

Test(wire, signals_and_a_nonblocking_descriptor_do_not_disturb)
{
    struct sigaction act = {.sa_handler = on_alarm}; /* no SA_RESTART */
    struct itimerval often = {{0, 2000}, {0, 2000}}, never = {{0, 0}, {0, 0}};
    struct pmi_line line;
    int server, rc;
    pthread_t thread;
    struct wire w = pair(&server);

    cr_assert_eq(fcntl(w.fd, F_SETFL, O_NONBLOCK), 0);
    sigaction(SIGALRM, &act, NULL);
    setitimer(ITIMER_REAL, &often, NULL);
    pthread_create(&thread, NULL, reply_late, &server);
    cr_expect_eq(wire_ask(&w, span_of("cmd=barrier_in\n"), "barrier_out", &line, &rc, NULL), 0);
    setitimer(ITIMER_REAL, &never, NULL);
    pthread_join(thread, NULL);
    done(&w, server);
}

/* A listener on a free port of the loopback interface; `text` gets "host:port". */
static int listener(char text[32])
{
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof(a);
    int fd = socket(AF_INET, SOCK_STREAM, 0);

    cr_assert_eq(bind(fd, (struct sockaddr *)&a, len), 0);
    cr_assert_eq(listen(fd, 4), 0);
    cr_assert_eq(getsockname(fd, (struct sockaddr *)&a, &len), 0);
    snprintf(text, 32, "127.0.0.1:%d", ntohs(a.sin_port));
    return fd;
}

Test(wire, initack_says_who_we_are)
{
    char at[32];
    int listening = listener(at), server, rank = -1, size = -1;
    struct where where = {.fd = -1, .port = at, .id = 6, .rank = -1, .size = -1};
    struct wire w;

    cr_assert_eq(wire_open(&w, &where, NULL), 0);
    server = accept(listening, NULL, NULL);
    say(server, "cmd=initack\ncmd=set size=4\ncmd=set rank=2\ncmd=set debug=0\n"
                "cmd=response_to_init pmi_version=1 pmi_subversion=1 rc=0\n");
    cr_expect_eq(wire_initack(&w, 6, &rank, &size, NULL), 0);
    cr_expect(rank == 2 && size == 4);
    cr_expect_eq(wire_init1(&w, NULL), 0);
    want_request(server, "cmd=initack pmiid=6\ncmd=init pmi_version=1 pmi_subversion=1\n");
    wire_close(&w);
    close(server);
    close(listening);
}

static const struct {
    const char *reply;
    int rc;
    const char *text;
} acks[] = {
    {"cmd=initack rc=-1\n", -EACCES, "the PMI server refuses PMI_ID=6 (rc=-1)"},
    {"cmd=initack\ncmd=set rank=0\n", -EPROTO, "the PMI server does not say a size after initack"},
    {"cmd=initack\ncmd=set size=0\n", -EPROTO, "the PMI server does not say a size after initack"},
};

Test(wire, initack_refused)
{
    for (size_t i = 0; i < ARRAY_SIZE(acks); i++) {
        int server, rank = -1, size = -1;
        struct err err = {0};
        struct wire w = pair(&server);

        say(server, acks[i].reply);
        cr_expect_eq(wire_initack(&w, 6, &rank, &size, &err), acks[i].rc);
        cr_expect_str_eq(err.text, acks[i].text);
        cr_expect(rank == -1 && size == -1);
        done(&w, server);
    }
}

Test(wire, another_version_is_no_end)
{
    int server;
    struct wire w = pair(&server);

    say(server, "cmd=response_to_init rc=-1 pmi_version=1 pmi_subversion=1\n");
    cr_expect_eq(wire_init1(&w, NULL), -EPROTONOSUPPORT);
    cr_expect_eq(wire_send(&w, span_of("x"), NULL), 0);
    done(&w, server);
}

Test(wire, bad_ports)
{
    static const char *const ports[] = {"", "host", ":1", "host:", "host:0", "host:65536", "host:1x", "[]:1"};
    struct wire w;

    for (size_t i = 0; i < ARRAY_SIZE(ports); i++)
        cr_expect_eq(wire_connect(&w, ports[i], NULL), -EINVAL, "'%s'", ports[i]);
}

Test(wire, nobody_listens)
{
    struct err err = {0};
    char at[32];
    struct wire w;

    close(listener(at));
    cr_expect_eq(wire_connect(&w, at, &err), -ECONNREFUSED);
    cr_expect_not_null(strstr(err.text, at), "%s", err.text);
}
