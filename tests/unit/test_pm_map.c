/* SPDX-License-Identifier: BSD-3-Clause */
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include "common/kvmap.h"
#include "server/kvs.h"
#include "tests/unit/pm_server.h"

#define OVER_WIRE "cmd=get_result rc=0 value=over the wire\n"

/* A server whose part is written in advance, and its keys. */
struct world {
    struct pm pm;
    struct kvs *kvs;
    int server;
};

static void say(const struct world *w, const char *text)
{
    server_say(w->server, text);
}

static void hand(const struct world *w, const char *text, const int *fd, size_t count)
{
    server_hand(w->server, text, fd, count);
}

static void want_requests(struct world *w, const char *text)
{
    char got[4096];
    ssize_t n = recv(w->server, got, sizeof(got) - 1, MSG_DONTWAIT);

    got[n > 0 ? n : 0] = '\0';
    cr_expect_str_eq(got, text);
}

/* Connected over PMI-1, the first get to come; `off` as of server_open(). */
static void begin(struct world *w, int off)
{
    struct server_env env;

    w->server = server_open(&env, off);
    w->kvs = kvs_new(2, 1, false);
    say(w, "cmd=response_to_init rc=0 pmi_version=1 pmi_subversion=1\n" MAXES "\n");
    cr_assert_eq(pm_open(&w->pm, env.v, false, NULL), PM_OK);
    want_requests(w, "cmd=init pmi_version=1 pmi_subversion=1\ncmd=get_maxes\n");
    say(w, "cmd=my_kvsname rc=0 kvsname=job\n");
    cr_assert_eq(pm_name(&w->pm, &(const char *){NULL}, NULL), PM_OK);
    want_requests(w, "cmd=get_my_kvsname\n");
}

static void end(struct world *w)
{
    server_close(&w->pm, w->server);
    kvs_free(w->kvs);
}

static void put(struct world *w, const char *key, const char *value)
{
    cr_assert_eq(kvs_put(w->kvs, 0, span_of(key), span_of(value)), 0);
    cr_assert_eq(kvs_commit(w->kvs, 0, 0, 0), 0);
    cr_assert_eq(kvs_install(w->kvs), 0);
}

static void want(struct world *w, const char *name, const char *key, const char *value)
{
    struct span got = SPAN_NONE;

    cr_expect_eq(pm_get(&w->pm, name, key, &got, NULL), PM_OK, "%s", key);
    cr_expect(span_is(got, value), "%s is '%.*s'", key, SPAN_FMT(got));
}

Test(pm_map, asked_for_once_and_read_without_a_word)
{
    struct world w;
    int fd;

    begin(&w, 0);
    put(&w, "a", "1");
    fd = kvs_map(w.kvs);
    hand(&w, "cmd=kvs_map rc=0 slot=1\n", &fd, 1);
    want(&w, NULL, "a", "1");
    want_requests(&w, "cmd=map_kvs\n");
    want(&w, "job", "a", "1");
    put(&w, "a", "2 found=TRUE");
    want(&w, NULL, "a", "2 found=TRUE");
    want_requests(&w, "");
    end(&w);
}

Test(pm_map, the_server_is_asked_for_anything_else)
{
    struct world w;
    int fd;

    begin(&w, 0);
    put(&w, "a", "1");
    put(&w, "two", "lines\nof it");
    fd = kvs_map(w.kvs);
    hand(&w, "cmd=kvs_map rc=0 slot=1\n", &fd, 1);
    want(&w, NULL, "a", "1");
    want_requests(&w, "cmd=map_kvs\n");
    say(&w, OVER_WIRE OVER_WIRE OVER_WIRE "cmd=get_result rc=4 msg=no_such_key\n");
    want(&w, "other", "a", "over the wire");
    want(&w, NULL, "two", "over the wire");
    cr_assert_eq(kvs_put(w.kvs, 1, span_of("a"), span_of("mine")), 0);
    want(&w, NULL, "a", "over the wire");
    cr_expect_eq(pm_get(&w.pm, NULL, "b", &(struct span){NULL, 0}, NULL), PM_INVALID_KEY);
    want_requests(&w, "cmd=get kvsname=other key=a\ncmd=get kvsname=job key=two\ncmd=get kvsname=job key=a\n"
                      "cmd=get kvsname=job key=b\n");
    end(&w);
}

/* Hydra ends the job of a task that says what it does not know. */
Test(pm_map, nobody_but_the_one_who_offers_it_is_asked)
{
    struct world w;

    begin(&w, 1);
    say(&w, OVER_WIRE);
    want(&w, NULL, "a", "over the wire");
    want_requests(&w, "cmd=get kvsname=job key=a\n");
    end(&w);
}

static int unsealed(size_t size)
{
    int fd = memfd_create("unsealed", MFD_CLOEXEC);

    cr_assert_eq(ftruncate(fd, (off_t)size), 0);
    return fd;
}

static int sealed(size_t size, const void *bytes, size_t n)
{
    int fd = memfd_create("sealed", MFD_CLOEXEC | MFD_ALLOW_SEALING);

    cr_assert_eq(ftruncate(fd, (off_t)size), 0);
    cr_assert_eq(pwrite(fd, bytes, n, 0), (ssize_t)n);
    cr_assert_eq(fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK), 0);
    return fd;
}

static int pipe_end(void)
{
    int fd[2];

    cr_assert_eq(pipe(fd), 0);
    close(fd[1]);
    return fd[0];
}

Test(pm_map, without_a_good_file_all_goes_over_the_wire)
{
    struct kvmap_head no_tables = {.magic = KVMAP_MAGIC, .size = 8192, .slots = 1, .waiting = 4096};
    struct kvmap_head wrong_size = {.magic = KVMAP_MAGIC, .size = 1 << 20, .slots = 9, .waiting = 4096};
    int fds[] = {unsealed(1 << 20),
                 unsealed(0),
                 pipe_end(),
                 sealed(0, "", 0),
                 sealed(10, "", 0),
                 sealed(1 << 20, "nonsense", 8),
                 sealed(8192, &no_tables, sizeof(no_tables)), /* and no slot 1 */
                 sealed(8192, &wrong_size, sizeof(wrong_size))};

    for (size_t i = 0; i < sizeof(fds) / sizeof(fds[0]); i++) {
        struct world w;

        begin(&w, 0);
        hand(&w, "cmd=kvs_map rc=0 slot=1\n", &fds[i], 1);
        say(&w, OVER_WIRE OVER_WIRE);
        want(&w, NULL, "a", "over the wire");
        want(&w, NULL, "a", "over the wire");
        want_requests(&w, "cmd=map_kvs\ncmd=get kvsname=job key=a\ncmd=get kvsname=job key=a\n");
        end(&w);
        close(fds[i]);
    }
}

static int open_files(void)
{
    int n = 0;

    for (int fd = 0; fd < 256; fd++)
        n += fcntl(fd, F_GETFD) >= 0;
    return n;
}

/* A refusal, a reply without a descriptor, and one that is refused but has one, and one with several. */
Test(pm_map, odd_replies)
{
    struct world w;
    int before = open_files(), fd[3];

    begin(&w, 0);
    say(&w, "cmd=kvs_map rc=-1 msg=refused\n" OVER_WIRE OVER_WIRE);
    want(&w, NULL, "a", "over the wire");
    want(&w, NULL, "a", "over the wire");
    want_requests(&w, "cmd=map_kvs\ncmd=get kvsname=job key=a\ncmd=get kvsname=job key=a\n");
    end(&w);
    begin(&w, 0);
    say(&w, "cmd=kvs_map rc=0 slot=1\n" OVER_WIRE);
    want(&w, NULL, "a", "over the wire");
    end(&w);
    begin(&w, 0);
    fd[0] = fd[1] = fd[2] = kvs_map(w.kvs);
    hand(&w, "cmd=kvs_map rc=-1 msg=refused\n", fd, 1);
    say(&w, OVER_WIRE);
    want(&w, NULL, "a", "over the wire");
    end(&w);
    begin(&w, 0);
    put(&w, "a", "1");
    fd[0] = fd[1] = fd[2] = kvs_map(w.kvs);
    hand(&w, "cmd=kvs_map rc=0 slot=1\n", fd, 3);
    say(&w, OVER_WIRE);
    cr_expect_eq(pm_get(&w.pm, NULL, "a", &(struct span){NULL, 0}, NULL), PM_OK);
    end(&w);
    cr_expect_eq(open_files(), before, "%d descriptors are left", open_files() - before);
}

Test(pm_map, a_newer_file_is_asked_for)
{
    char key[32], value[1000];
    struct world w;
    int fd;

    begin(&w, 0);
    put(&w, "a", "1");
    fd = kvs_map(w.kvs);
    hand(&w, "cmd=kvs_map rc=0 slot=1\n", &fd, 1);
    want(&w, NULL, "a", "1");
    memset(value, 'v', sizeof(value));
    value[sizeof(value) - 1] = '\0';
    for (int i = 0; i < 3000; i++) {
        snprintf(key, sizeof(key), "k%d", i);
        cr_assert_eq(kvs_put(w.kvs, 0, span_of(key), span_of(value)), 0);
    }
    put(&w, "a", "2");
    fd = kvs_map(w.kvs);
    hand(&w, "cmd=kvs_map rc=0 slot=1\n", &fd, 1);
    want(&w, NULL, "a", "2");
    want(&w, NULL, "k2999", value);
    want_requests(&w, "cmd=map_kvs\ncmd=map_kvs\n");
    /* None is to be had any more. */
    kvs_free(w.kvs);
    w.kvs = NULL;
    say(&w, "cmd=kvs_map rc=-1 msg=no_memory\n" OVER_WIRE OVER_WIRE);
    want(&w, NULL, "a", "over the wire");
    want(&w, NULL, "a", "over the wire");
    want_requests(&w, "cmd=map_kvs\ncmd=get kvsname=job key=a\ncmd=get kvsname=job key=a\n");
    end(&w);
}

/* Text of /proc/self/maps, as far as it is about the mapping. */
static bool is_mapped(void)
{
    FILE *f = fopen("/proc/self/maps", "r");
    bool found = false;
    char line[512];

    cr_assert_not_null(f);
    while (fgets(line, sizeof(line), f) != NULL)
        if (strstr(line, "/memfd:pmi-kvs") != NULL && strstr(line, " r--s ") != NULL)
            found = true;
    fclose(f);
    return found;
}

Test(pm_map, a_child_has_none_and_does_not_unmap_what_it_has_instead)
{
    struct world w;
    int fd, status;
    pid_t pid;

    begin(&w, 0);
    put(&w, "a", "1");
    fd = kvs_map(w.kvs);
    hand(&w, "cmd=kvs_map rc=0 slot=1\n", &fd, 1);
    want(&w, NULL, "a", "1");
    cr_expect(is_mapped());
    pid = fork();
    cr_assert(pid >= 0);
    if (pid == 0) {
        void *at = (void *)(uintptr_t) * (const void *const *)(const void *)w.pm.map, *own;
        bool had = is_mapped();

        own = mmap(at, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
        pm_close(&w.pm);
        if (own != MAP_FAILED)
            *(volatile char *)own = 1;
        _exit(had || own == MAP_FAILED);
    }
    cr_assert_eq(waitpid(pid, &status, 0), pid);
    cr_expect(WIFEXITED(status) && WEXITSTATUS(status) == 0, "%#x", (unsigned)status);
    want(&w, NULL, "a", "1");
    pm_close(&w.pm);
    cr_expect(!is_mapped());
    kvs_free(w.kvs);
}
