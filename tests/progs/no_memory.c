/* SPDX-License-Identifier: BSD-3-Clause */
/* no_memory.c - a library to be loaded ahead of all others, under which a pmi-start finds no memory at a given moment
 *
 * NO_MEMORY=ROLE:FIRST:COUNT:LOW:HIGH:FILE in the environment: in processes of this role (launcher, worker, keeper, or
 * the process of a login) the allocations FIRST .. FIRST + COUNT - 1 fail, counted from the start of the program, in a
 * forked process on from its parent's. Only those count that the code from LOW to HIGH (hex, offsets into the program)
 * asks for, itself or by a function of the C library. What failed, and a signal that ends the process, are told in FILE
 * with the functions that led there, as offsets. Neither variable gets to programs that this one executes.
 */
#include <errno.h>
#include <execinfo.h>
#include <fcntl.h>
#include <link.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#define FRAMES 24

void *__libc_malloc(size_t size);
void *__libc_calloc(size_t count, size_t size);
void *__libc_realloc(void *p, size_t size);

static unsigned long first, last, now;
static char role[16], path[512];
static bool armed, busy;
static unsigned long base, end, low, high;
static pid_t login; /* the process that was started */

static void tell(const char *what)
{
    void *frame[FRAMES];
    char line[40 + FRAMES * 20];
    int fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600), n = backtrace(frame, FRAMES);
    int len = snprintf(line, sizeof(line), "%s %d", what, (int)getpid());

    for (int i = 1; i < n; i++)
        len += snprintf(line + len, sizeof(line) - (size_t)len, " %lx", (unsigned long)frame[i] - base);
    line[len++] = '\n';
    if (fd >= 0 && write(fd, line, (size_t)len) != len)
        abort();
    close(fd);
}

static bool is_role(void)
{
    char name[16] = "";

    prctl(PR_GET_NAME, name);
    if (strcmp(role, "keeper") == 0)
        return strcmp(name, "pmi-keeper") == 0;
    return strcmp(name, "pmi-keeper") != 0 &&
           (strcmp(role, "login") == 0 || strcmp(role, "launcher") == 0) == (getpid() == login);
}

/* Who asks for memory is in the program, or in a library that the program has called. */
static bool counts(const void *caller)
{
    unsigned long at = (unsigned long)caller - base;
    void *frame[8];

    if (at >= end && low > 0)
        for (int i = 2, n = backtrace(frame, 8); at >= end && i < n; i++)
            at = (unsigned long)frame[i] - base;
    return at >= low && at <= high;
}

/* Is this one to fail? */
static bool fails(const void *caller)
{
    bool fail;

    if (!armed || busy || now >= last)
        return false;
    busy = true; /* for what is allocated in here */
    fail = counts(caller) && (now + 1 < first || is_role()) && ++now >= first;
    if (fail)
        tell("failed");
    busy = false;
    if (fail)
        errno = ENOMEM;
    return fail;
}

void *malloc(size_t size)
{
    return fails(__builtin_return_address(0)) ? NULL : __libc_malloc(size);
}

void *calloc(size_t count, size_t size)
{
    return fails(__builtin_return_address(0)) ? NULL : __libc_calloc(count, size);
}

void *realloc(void *p, size_t size)
{
    return fails(__builtin_return_address(0)) ? NULL : __libc_realloc(p, size);
}

static void on_signal(int sig)
{
    armed = false;
    tell(sig == SIGABRT ? "aborted" : "crashed");
    signal(sig, SIG_DFL);
    raise(sig);
}

static int find_base(struct dl_phdr_info *info, size_t size, void *arg)
{
    (void)size;
    (void)arg;
    base = info->dlpi_addr; /* the program itself comes first */
    for (int i = 0; i < info->dlpi_phnum; i++)
        if (info->dlpi_phdr[i].p_type == PT_LOAD)
            end = info->dlpi_phdr[i].p_vaddr + info->dlpi_phdr[i].p_memsz;
    return 1;
}

__attribute__((constructor)) static void begin(void)
{
    const char *text = getenv("NO_MEMORY");
    unsigned long count;
    void *frame[2];

    if (text == NULL || strcmp(program_invocation_short_name, "pmi-start") != 0 ||
        sscanf(text, "%15[a-z]:%lu:%lu:%lx:%lx:%511s", role, &first, &count, &low, &high, path) != 6)
        return;
    last = first + count - 1;
    login = getpid();
    dl_iterate_phdr(find_base, NULL);
    backtrace(frame, 2); /* it loads a library at its first call */
    unsetenv("LD_PRELOAD");
    unsetenv("NO_MEMORY");
    signal(SIGSEGV, on_signal);
    signal(SIGBUS, on_signal);
    signal(SIGABRT, on_signal);
    armed = true;
}
