/* SPDX-License-Identifier: BSD-3-Clause */
/* root_trace.c - --pmi-trace: what the nodes report of each request and reply, as lines */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include "common/io/log.h"
#include "server/root_priv.h"

/* Of a pipe, somebody must read it already: to open it would wait for that, beyond every limit. */
static FILE *open_no_wait(const char *path)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_NONBLOCK | O_NOCTTY | O_CLOEXEC, 0666);
    FILE *f = fd < 0 || fcntl(fd, F_SETFL, 0) < 0 ? NULL : fdopen(fd, "w");
    int why = errno;

    if (f == NULL && fd >= 0)
        close(fd);
    errno = why;
    return f;
}

int root_trace_open(struct root *r, struct err *err)
{
    const char *path = r->conf->pmi_trace_file;
    struct stat st;
    int why;

    if (!r->conf->pmi_trace)
        return 0;
    r->trace = path == NULL ? stderr : open_no_wait(path);
    if (r->trace != NULL)
        return 0;
    why = errno;
    return err_set(err, -why, "cannot open %s: %s", path,
                   why == ENXIO && stat(path, &st) == 0 && S_ISFIFO(st.st_mode) ? "it is a pipe, and nobody reads it"
                                                                                : strerror(why));
}

void root_trace(struct root_job *j, const struct msg_in *m)
{
    const struct root *r = j->root;
    char name[32];
    uint64_t rank, us;
    struct span line;
    struct tm tm;
    time_t sec;
    bool request;

    if (r->trace == NULL || msg_get_u64(m, "rank", 0, j->size - 1, &rank, NULL) < 0 ||
        msg_get_u64(m, "us", 0, UINT64_MAX / 2, &us, NULL) < 0 || msg_get_bool(m, "request", &request, NULL) < 0 ||
        msg_get_bin(m, "line", &line, NULL) < 0)
        return;
    sec = (time_t)(us / 1000000);
    localtime_r(&sec, &tm);
    root_rank_name(j, (uint32_t)rank, name, sizeof(name));
    struct buf text;
    buf_init(&text, 0);
    if (buf_add_escaped(&text, line) == 0)
        fprintf(r->trace, "%s%02d:%02d:%02d.%06u %s %c %s\n", r->trace == stderr ? "pmi-start: " : "", tm.tm_hour,
                tm.tm_min, tm.tm_sec, (unsigned)(us % 1000000), name, request ? 'C' : 'S', buf_str(&text));
    buf_done(&text);
    if (fflush(r->trace) == 0 || r->trace == stderr)
        return;
    log_warn("cannot write the trace to %s: %s; it ends here", r->conf->pmi_trace_file, strerror(errno));
    fclose(r->trace);
    j->root->trace = NULL;
}
