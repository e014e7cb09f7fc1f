/* SPDX-License-Identifier: BSD-3-Clause */
/* spawn_check [--pmi2] CASE - does over libpmi, or libpmi2, what MPI_Comm_spawn and connect/accept do
 *
 * Rank 0 of the parents opens a TCP port, gives its address to the children in the key PARENT_ROOT_PORT_NAME, spawns
 * this program as `spawn_check [--pmi2] child ...`, and accepts a connection from the root of the children. Each child
 * puts a digest of what it was started with (command number, arguments, host, directory); the root sends all of them
 * to the parent, which knows what they must be. CASE is one of the table below.
 */
#include <arpa/inet.h>
#include <inttypes.h>
#include <netdb.h>
#include <pmi.h>
#include <pmi2.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define PORT_KEY "PARENT_ROOT_PORT_NAME"
#define LINE_LEN 2048
#define CMDS_MAX 4
#define ARGS_MAX 512
#define WAIT_MS 60000

static bool pmi2;
static int rank, size, appnum, spawned;
static char kvsname[256];

static void die(const char *what, const char *detail)
{
    fprintf(stderr, "spawn_check: rank %d: %s: %s\n", rank, what, detail);
    exit(1);
}

static void need(int rc, const char *what)
{
    char text[32];

    snprintf(text, sizeof(text), "rc %d", rc);
    if (rc != 0)
        die(what, text);
}

/* --- both libraries --------------------------------------------------------------------------------------------- */

static void begin(void)
{
    if (pmi2) {
        need(PMI2_Init(&spawned, &size, &rank, &appnum), "PMI2_Init");
        need(PMI2_Job_GetId(kvsname, sizeof(kvsname)), "PMI2_Job_GetId");
        return;
    }
    need(PMI_Init(&spawned), "PMI_Init");
    need(PMI_Get_size(&size), "PMI_Get_size");
    need(PMI_Get_rank(&rank), "PMI_Get_rank");
    need(PMI_Get_appnum(&appnum), "PMI_Get_appnum");
    need(PMI_KVS_Get_my_name(kvsname, sizeof(kvsname)), "PMI_KVS_Get_my_name");
}

static void finish(void)
{
    need(pmi2 ? PMI2_Finalize() : PMI_Finalize(), "finalize");
}

static void put(const char *key, const char *value)
{
    need(pmi2 ? PMI2_KVS_Put(key, value) : PMI_KVS_Put(kvsname, key, value), key);
}

static void get(const char *key, char *value)
{
    int len;

    need(pmi2 ? PMI2_KVS_Get(NULL, -1, key, value, LINE_LEN, &len) : PMI_KVS_Get(kvsname, key, value, LINE_LEN), key);
}

static void barrier(void)
{
    if (!pmi2)
        need(PMI_KVS_Commit(kvsname), "commit");
    need(pmi2 ? PMI2_KVS_Fence() : PMI_Barrier(), "barrier");
}

/* --- sockets ---------------------------------------------------------------------------------------------------- */

static int listen_here(char *port, size_t len)
{
    struct sockaddr_in at = {.sin_family = AF_INET};
    struct addrinfo hints = {.ai_family = AF_INET}, *found = NULL;
    char host[256] = "", addr[INET_ADDRSTRLEN];
    socklen_t n = sizeof(at);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    gethostname(host, sizeof(host) - 1);
    if (getaddrinfo(host, NULL, &hints, &found) == 0)
        at.sin_addr = ((const struct sockaddr_in *)(const void *)found->ai_addr)->sin_addr;
    else
        at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (found != NULL)
        freeaddrinfo(found);
    if (fd < 0 || bind(fd, (const struct sockaddr *)&at, sizeof(at)) < 0 || listen(fd, 8) < 0 ||
        getsockname(fd, (struct sockaddr *)&at, &n) < 0)
        die("cannot listen on", host);
    inet_ntop(AF_INET, &at.sin_addr, addr, sizeof(addr));
    /* As MPICH spells a port, with what a PMI value may hold. */
    snprintf(port, len, "tag#0$description#%s$port#%d$ifname#%s$", host, ntohs(at.sin_port), addr);
    return fd;
}

static FILE *connect_to(const char *port)
{
    const char *number = strstr(port, "$port#"), *addr = strstr(port, "$ifname#");
    struct sockaddr_in at = {.sin_family = AF_INET};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    char text[64];

    if (number == NULL || addr == NULL)
        die("no port", port);
    snprintf(text, sizeof(text), "%.*s", (int)strcspn(addr + 8, "$"), addr + 8);
    at.sin_port = htons((uint16_t)strtol(number + 6, NULL, 10));
    if (inet_pton(AF_INET, text, &at.sin_addr) != 1 || connect(fd, (const struct sockaddr *)&at, sizeof(at)) < 0)
        die("cannot connect to", port);
    return fdopen(fd, "r+");
}

static FILE *accept_one(int fd)
{
    struct pollfd p = {.fd = fd, .events = POLLIN};

    if (poll(&p, 1, WAIT_MS) != 1)
        die("accept", "no child has come");
    return fdopen(accept(fd, NULL, NULL), "r+");
}

/* --- children --------------------------------------------------------------------------------------------------- */

static uint64_t digest(int app, const char *const *argv)
{
    uint64_t h = 1469598103934665603u + (uint64_t)app;

    for (; *argv != NULL; argv++)
        for (const char *p = *argv;; p++) {
            h = (h ^ (unsigned char)*p) * 1099511628211u;
            if (*p == '\0')
                break;
        }
    return h;
}

static void report(FILE *to)
{
    for (int r = 0; r < size; r++) {
        char key[32], value[LINE_LEN];

        snprintf(key, sizeof(key), "child-%d", r);
        get(key, value);
        fprintf(to, "%s\n", value);
    }
    fflush(to);
}

static int spawn_case(const char *name);

static int child(const char *const *argv)
{
    char key[32], value[LINE_LEN], port[LINE_LEN], host[256] = "", here[1024] = "";

    if (!spawned)
        die("child", "it does not know that it was spawned");
    gethostname(host, sizeof(host) - 1);
    if (getcwd(here, sizeof(here)) == NULL)
        here[0] = '\0';
    get(PORT_KEY, port);
    snprintf(key, sizeof(key), "child-%d", rank);
    snprintf(value, sizeof(value), "%d %016" PRIx64 " %s %s", appnum, digest(appnum, argv), host, here);
    put(key, value);
    barrier();
    if (argv[0] != NULL && strcmp(argv[0], "nest") == 0)
        spawn_case("one");
    if (rank == 0) {
        FILE *to = connect_to(port);
        char line[16];

        fprintf(to, "%d\n", size);
        report(to);
        if (fgets(line, sizeof(line), to) == NULL || strcmp(line, "good\n") != 0)
            die("child", "the parent does not like what it has heard");
        fclose(to);
    }
    barrier();
    finish();
    return 0;
}

/* --- parents ---------------------------------------------------------------------------------------------------- */

struct cmd {
    const char *program; /* NULL: this one */
    const char *args[ARGS_MAX + 4];
    int n;
    const char *host, *wdir; /* info, or NULL */
    const char *on[4];       /* hosts that its ranks must be on, in turn; or none */
};

struct want {
    const char *name;
    int count;
    struct cmd cmd[CMDS_MAX];
    bool fails;
};

static const char *self;

static int total(const struct want *w)
{
    int sum = 0;

    for (int i = 0; i < w->count; i++)
        sum += w->cmd[i].n;
    return sum;
}

/* What a command is started with: [--pmi2] child ARGS. */
static int full_args(const struct cmd *c, const char **out)
{
    int k = 0;

    if (pmi2)
        out[k++] = "--pmi2";
    out[k++] = "child";
    for (int i = 0; c->args[i] != NULL; i++)
        out[k++] = c->args[i];
    out[k] = NULL;
    return k;
}

static int spawn(const struct want *w, const char *port, int *errors)
{
    static const char *args[CMDS_MAX][ARGS_MAX + 8];
    const char *cmds[CMDS_MAX], **argvs[CMDS_MAX];
    PMI_keyval_t info1[CMDS_MAX][2], preput1 = {(char *)PORT_KEY, (char *)port};
    const PMI_keyval_t *infos1[CMDS_MAX];
    struct MPID_Info info2[CMDS_MAX][2], preput2 = {.key = (char *)PORT_KEY, .value = (char *)port};
    const struct MPID_Info *infos2[CMDS_MAX], *preputs2[1] = {&preput2};
    int argcs[CMDS_MAX], procs[CMDS_MAX], sizes[CMDS_MAX];
    char job[256];

    for (int i = 0; i < w->count; i++) {
        const struct cmd *c = &w->cmd[i];
        const char *pairs[2][2] = {{"host", c->host}, {"wdir", c->wdir}};

        cmds[i] = c->program == NULL ? self : c->program;
        argcs[i] = full_args(c, args[i]);
        argvs[i] = args[i];
        procs[i] = c->n;
        sizes[i] = 0;
        for (int k = 0; k < 2; k++) {
            if (pairs[k][1] == NULL)
                continue;
            info1[i][sizes[i]] = (PMI_keyval_t){(char *)pairs[k][0], (char *)pairs[k][1]};
            info2[i][sizes[i]++] = (struct MPID_Info){.key = (char *)pairs[k][0], .value = (char *)pairs[k][1]};
        }
        infos1[i] = info1[i];
        infos2[i] = info2[i];
    }
    if (pmi2)
        return PMI2_Job_Spawn(w->count, cmds, argcs, argvs, procs, sizes, infos2, 1, preputs2, job, sizeof(job),
                              errors);
    return PMI_Spawn_multiple(w->count, cmds, argvs, procs, sizes, infos1, 1, &preput1, errors);
}

static void check_child(const struct want *w, int r, const char *line)
{
    const struct cmd *c = w->cmd;
    const char *args[ARGS_MAX + 8];
    char want[LINE_LEN], host[256], here[1024];
    int app = 0, k = r;

    while (k >= c->n) {
        k -= c->n;
        c++;
        app++;
    }
    full_args(c, args);
    snprintf(want, sizeof(want), "%d %016" PRIx64 " ", app, digest(app, args + (pmi2 ? 2 : 1)));
    if (strncmp(line, want, strlen(want)) != 0 || sscanf(line + strlen(want), "%255s %1023s", host, here) != 2)
        die("a child was started with something else", line);
    if (c->on[0] != NULL) {
        int turn = 0;

        while (turn < 4 && c->on[turn] != NULL)
            turn++;
        if (strcmp(host, c->on[k % turn]) != 0)
            die("a child is on another host", line);
    }
    if (c->wdir != NULL && strcmp(here, c->wdir) != 0)
        die("a child is in another directory", line);
}

static void meet_children(const struct want *w, int fd)
{
    FILE *from = accept_one(fd);
    char line[LINE_LEN];

    if (fgets(line, sizeof(line), from) == NULL || strtol(line, NULL, 10) != total(w))
        die("the children are not as many as asked for", line);
    for (int r = 0; r < total(w); r++) {
        if (fgets(line, sizeof(line), from) == NULL)
            die("the children", "have gone");
        line[strcspn(line, "\n")] = '\0';
        check_child(w, r, line);
    }
    fprintf(from, "good\n");
    fclose(from);
}

static void fill_many(struct want *w)
{
    static char text[ARGS_MAX][16];

    for (int i = 0; i < 500; i++) {
        snprintf(text[i], sizeof(text[i]), "argument %d", i);
        w->cmd[0].args[i] = text[i];
    }
}

static struct want cases[] = {
    {"one", 1, {{.n = 1}}, false},
    {"several", 1, {{.args = {"a"}, .n = 6}}, false},
    {"commands",
     3,
     {{.args = {"arg one", "x=y", " leading", "tr ailing ", "a;b", "k=v;", "\\", "\"q\""}, .n = 2},
      {.n = 3},
      {.args = {"last"}, .n = 1}},
     false},
    {"many", 1, {{.n = 2}}, false},
    {"nest", 1, {{.args = {"nest"}, .n = 2}}, false},
    {"hosts",
     2,
     {{.n = 4, .host = "h1,login", .on = {"h1", "login"}},
      {.n = 3, .host = "h2:2,h0", .wdir = "/usr", .on = {"h2", "h2", "h0"}}},
     false},
    {"missing", 1, {{.program = "/no/such/program", .n = 3}}, true},
    {"half", 2, {{.n = 2}, {.program = "/no/such/program", .n = 1}}, true},
    {"badhost", 1, {{.n = 1, .host = "nowhere"}}, true},
    {"baddir", 1, {{.n = 1, .wdir = "/no/such/dir"}}, true},
    {"interpreter", 1, {{.program = "./no-interpreter", .n = 2}}, true},
};

static struct want *find_case(const char *name)
{
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        if (strcmp(cases[i].name, name) == 0)
            return &cases[i];
    die("no such case", name);
    return NULL;
}

static int spawn_case(const char *name)
{
    struct want *w = find_case(name);
    char port[512];
    int errors[64] = {0}, fd = listen_here(port, sizeof(port)), rc, bad = 0;

    if (strcmp(name, "many") == 0)
        fill_many(w);
    rc = spawn(w, port, errors);
    for (int i = 0; i < total(w); i++)
        bad += errors[i] != 0;
    if (w->fails) {
        if (rc == 0 && bad == 0)
            die(name, "spawned, although it cannot be");
        printf("%s: rc %s, errors in %d of %d\n", name, rc == 0 ? "0" : "not 0", bad, total(w));
    } else {
        if (rc != 0 || bad != 0)
            die(name, "cannot be spawned");
        meet_children(w, fd);
    }
    close(fd);
    return 0;
}

/* In the build tree we are started by libtool's script, which finds the libraries; the children must be, too. */
static const char *own_path(const char *path)
{
    static char out[1024];
    const char *libs = strstr(path, "/.libs/");

    if (libs == NULL)
        return path;
    snprintf(out, sizeof(out), "%.*s%s", (int)(libs - path), path, libs + 6);
    return out;
}

int main(int argc, char **argv)
{
    int first = 1;

    self = own_path(argv[0]);
    if (argc > 1 && strcmp(argv[1], "--pmi2") == 0) {
        pmi2 = true;
        first = 2;
    }
    if (first >= argc) {
        fprintf(stderr, "usage: spawn_check [--pmi2] CASE...\n");
        return 2;
    }
    begin();
    if (strcmp(argv[first], "child") == 0)
        return child((const char *const *)argv + first + 1);
    /* `all` before a case: every parent spawns at the same time; else the first one does. */
    for (int i = first; i < argc; i++) {
        bool everybody = strcmp(argv[i], "all") == 0 && i + 1 < argc;

        i += everybody;
        if (rank == 0 || everybody)
            spawn_case(argv[i]);
        barrier();
    }
    finish();
    return 0;
}
