/* SPDX-License-Identifier: BSD-3-Clause */
#include <pthread.h>
#include "server/ringer.h"
#include "tests/unit/pm_server.h"

#define WIRE_FIRST 4 /* barriers before a bell is asked for */

/* A task, connected over PMI-1 or PMI-2, and a server whose part is written in advance. */
struct world {
    struct pm pm;
    struct ringer *ringer;
    int server;
    bool pmi2;
};

/* As PMI-1 or PMI-2 has it. */
static const char *whole(const struct world *w, const char *text)
{
    static char out[1024];

    if (w->pmi2)
        snprintf(out, sizeof(out), "%6zu%s", strlen(text), text);
    else
        snprintf(out, sizeof(out), "%s\n", text);
    return out;
}

static void say(const struct world *w, const char *text)
{
    server_say(w->server, whole(w, text));
}

static void hand(const struct world *w, const char *text)
{
    int fd = ringer_fd(w->ringer);

    server_hand(w->server, whole(w, text), &fd, 1);
}

/* Waits for a request. */
static void want_request(struct world *w, const char *text)
{
    char got[1024];
    ssize_t n = recv(w->server, got, sizeof(got) - 1, 0);

    got[n > 0 ? n : 0] = '\0';
    cr_expect(strstr(got, text) != NULL, "'%s' instead of '%s'", got, text);
}

static void fence(struct world *w, int code)
{
    cr_expect_eq(w->pm.ops->fence(&w->pm, NULL), code);
}

static void begin(struct world *w, bool pmi2)
{
    struct server_env env;

    *w = (struct world){.server = server_open(&env, 0)};
    cr_assert_eq(ringer_new(&w->ringer), 0);
    if (pmi2) {
        say(w, "cmd=response_to_init pmi_version=2 pmi_subversion=0 rc=0");
        w->pmi2 = true;
        say(w, "cmd=fullinit-response;rank=1;size=2;appnum=0;rc=0;");
    } else {
        say(w, "cmd=response_to_init rc=0 pmi_version=1 pmi_subversion=1");
        say(w, MAXES);
    }
    cr_assert_eq(pm_open(&w->pm, env.v, pmi2, NULL), PM_OK);
    want_request(w, "cmd=init");
    for (int i = 0; i < WIRE_FIRST; i++) {
        say(w, pmi2 ? "cmd=kvs-fence-response;rc=0;" : "cmd=barrier_out rc=0");
        fence(w, PM_OK);
        want_request(w, pmi2 ? "cmd=kvs-fence;" : "cmd=barrier_in\n");
    }
}

static void end(struct world *w)
{
    server_close(&w->pm, w->server);
    ringer_free(w->ringer);
}

/* The other side of a barrier that is entered by its bell. */
enum end_kind { COMPLETE, RUNG_IN_VAIN, FAILED, SERVER_GONE };

struct ending {
    struct world *w;
    enum end_kind kind;
};

static void *other_side(void *arg)
{
    const struct ending *e = arg;

    want_request(e->w, e->w->pmi2 ? "answer=bell;" : "cmd=barrier_in answer=bell\n");
    if (e->kind == RUNG_IN_VAIN)
        ringer_ring(e->w->ringer, false);
    if (e->kind == COMPLETE || e->kind == RUNG_IN_VAIN) {
        ringer_ring(e->w->ringer, true);
    } else if (e->kind == FAILED) {
        say(e->w, "cmd=barrier_out rc=-1");
        ringer_ring(e->w->ringer, false);
    } else {
        close(e->w->server);
        e->w->server = -1;
    }
    return NULL;
}

static void fence_by_bell(struct world *w, enum end_kind kind, int code)
{
    struct ending e = {w, kind};
    pthread_t other;

    cr_assert_eq(pthread_create(&other, NULL, other_side, &e), 0);
    fence(w, code);
    pthread_join(other, NULL);
}

static void both(bool pmi2)
{
    struct world w;

    begin(&w, pmi2);
    hand(&w, pmi2 ? "cmd=map-kvs-response;slot=0;rc=0;" : "cmd=kvs_map rc=0 slot=0");
    cr_assert(pm_bell_is_heard(&w.pm));
    want_request(&w, pmi2 ? "what=bell;" : "cmd=map_kvs what=bell\n");
    for (int i = 0; i < 100; i++)
        fence_by_bell(&w, i % 2 ? COMPLETE : RUNG_IN_VAIN, PM_OK);
    end(&w);
}

Test(pm_bell, asked_for_after_some_barriers_and_heard_without_a_reply)
{
    both(false);
}

Test(pm_bell, asked_for_over_pmi2)
{
    both(true);
}

Test(pm_bell, a_barrier_that_fails_is_answered_and_so_are_those_behind_it)
{
    struct world w;

    begin(&w, false);
    hand(&w, "cmd=kvs_map rc=0 slot=0");
    cr_assert(pm_bell_is_heard(&w.pm));
    want_request(&w, "cmd=map_kvs what=bell\n");
    fence_by_bell(&w, FAILED, PM_FAIL);
    say(&w, "cmd=barrier_out rc=-1");
    fence(&w, PM_FAIL);
    want_request(&w, "cmd=barrier_in\n");
    end(&w);
}

Test(pm_bell, the_end_of_the_server_is_noticed)
{
    struct world w;

    begin(&w, false);
    hand(&w, "cmd=kvs_map rc=0 slot=0");
    cr_assert(pm_bell_is_heard(&w.pm));
    want_request(&w, "cmd=map_kvs what=bell\n");
    fence_by_bell(&w, SERVER_GONE, PM_FAIL);
    end(&w);
}

Test(pm_bell, without_one_all_goes_over_the_wire_and_it_is_not_asked_again)
{
    struct world w;

    begin(&w, false);
    say(&w, "cmd=kvs_map rc=-1 msg=not_served");
    cr_assert_not(pm_bell_is_heard(&w.pm));
    want_request(&w, "cmd=map_kvs what=bell\n");
    for (int i = 0; i < 10; i++) {
        say(&w, "cmd=barrier_out rc=0");
        fence(&w, PM_OK);
        want_request(&w, "cmd=barrier_in\n");
    }
    end(&w);
}
