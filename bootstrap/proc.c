/* SPDX-License-Identifier: BSD-3-Clause */
/* proc.c - a started process and its two pipes */
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include "bootstrap/boot.h"
#include "common/io/log.h"
#include "common/util.h"

static void on_line(const struct hostwords_line *line, void *arg)
{
    struct proc_pipe *pipe = arg;
    const struct proc_ops *ops = pipe->proc->ops;

    log_debug("login: %s", log_escape(line->whole));
    if (!pipe->proc->boot->over)
        ops->on_line(pipe->proc, pipe->is_err, line);
    else if (ops->on_late_line != NULL)
        ops->on_late_line(pipe->proc, pipe->is_err, line);
}

static void end_if_done(struct proc *p)
{
    if (!p->exited || p->out.open || p->err.open || p->ended)
        return;
    p->ended = true;
    p->ops->on_end(p, p->wstatus);
}

static void close_pipe(struct proc_pipe *pipe)
{
    if (!pipe->open)
        return;
    pipe->open = false;
    boot_handle_close(pipe->proc->boot, (uv_handle_t *)&pipe->handle);
}

static void on_alloc(uv_handle_t *h, size_t hint, uv_buf_t *buf)
{
    struct proc_pipe *pipe = CONTAINER_OF(h, struct proc_pipe, handle);
    struct bootstrap *b = pipe->proc->boot;

    (void)hint;
    *buf = uv_buf_init(b->read_buf, sizeof(b->read_buf));
}

static void find_keys(struct proc *p, struct span in)
{
    struct keyline_found found;

    while (keyline_next(&p->key, &in, &found) == 1 && !p->boot->over) {
        p->key_lines++;
        p->ops->on_key(p, &found);
    }
}

static void on_read(uv_stream_t *s, ssize_t nread, const uv_buf_t *buf)
{
    struct proc_pipe *pipe = CONTAINER_OF(s, struct proc_pipe, handle);
    struct span in = {buf->base, nread > 0 ? (size_t)nread : 0};

    if (nread == 0)
        return;
    if (nread < 0) { /* the end; of a pipe every error is one */
        hostwords_end(&pipe->words, on_line, pipe);
        close_pipe(pipe);
        end_if_done(pipe->proc);
        return;
    }
    if (!pipe->is_err)
        find_keys(pipe->proc, in);
    if (pipe->open) /* a key may have ended the start */
        hostwords_feed(&pipe->words, in, on_line, pipe);
}

/* `fd` is owned, also on failure. */
static int open_pipe(struct proc *p, struct proc_pipe *pipe, int fd, bool is_err)
{
    struct bootstrap *b = p->boot;
    int rc = uv_pipe_init(b->loop, &pipe->handle, 0);

    if (rc < 0) {
        close(fd);
        return rc;
    }
    b->handles++;
    pipe->handle.data = b;
    pipe->proc = p;
    pipe->is_err = is_err;
    pipe->open = true;
    rc = uv_pipe_open(&pipe->handle, fd);
    if (rc < 0)
        close(fd);
    else
        rc = uv_read_start((uv_stream_t *)&pipe->handle, on_alloc, on_read);
    if (rc < 0)
        close_pipe(pipe);
    return rc;
}

int proc_start(struct proc *p, struct bootstrap *b, const struct proc_ops *ops, char *const *argv, char *const *envp,
               struct err *err)
{
    int64_t id = boot_proc_add(b, p);
    int out_fd, err_fd, rc, rc2;

    p->boot = b;
    p->ops = ops;
    p->exited = p->ended = true;
    if (id < 0)
        return err_set(err, (int)id, "out of memory");
    p->id = (uint32_t)id;
    rc = b->ops.spawn(p->id, argv, envp, &out_fd, &err_fd, b->ops.arg, err);
    if (rc < 0)
        return rc;
    p->exited = p->ended = false;
    rc = open_pipe(p, &p->out, out_fd, false);
    rc2 = open_pipe(p, &p->err, err_fd, true);
    if (rc == 0 && rc2 == 0)
        return 0;
    proc_stop(p);
    return err_set(err, rc < 0 ? rc : rc2, "cannot read from %s: %s", argv[0], uv_strerror(rc < 0 ? rc : rc2));
}

void proc_exited(struct proc *p, int wstatus)
{
    if (p->exited)
        return;
    p->exited = true;
    p->wstatus = wstatus;
    end_if_done(p);
}

void proc_not_started(struct proc *p, int err_no)
{
    p->err_no = err_no;
    proc_exited(p, (err_no == ENOENT ? 127 : 126) << 8); /* as a shell has it */
}

void proc_end_text(const struct proc *p, struct buf *out)
{
    if (p->err_no != 0)
        buf_printf(out, "cannot be started: %s", strerror(p->err_no));
    else if (WIFSIGNALED(p->wstatus))
        buf_printf(out, "ended with signal %d (%s)", WTERMSIG(p->wstatus), strsignal(WTERMSIG(p->wstatus)));
    else
        buf_printf(out, "ended with exit status %d", WEXITSTATUS(p->wstatus));
}

void proc_stop(struct proc *p)
{
    /* What still writes to the pipes may be a child of what has exited: its group is signalled all the same, and only
     * where something is known to be left, as the number may belong to somebody else by now. */
    if (!p->exited)
        p->boot->ops.kill(p->id, SIGTERM, p->boot->ops.arg);
    p->exited = p->ended = true;
    close_pipe(&p->out);
    close_pipe(&p->err);
}
