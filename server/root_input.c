/* SPDX-License-Identifier: BSD-3-Clause */
#include "server/root_input.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "common/io/log.h"
#include "common/io/stdfd.h"
#include "conf/conf.h"
#include "server/root_priv.h"
#include "server/terminal.h"

#define READ_AHEAD 65536 /* stdfd hands over at most this much at once */

struct root_input {
    uv_loop_t *loop;
    struct root *root; /* lent */
    struct stdfd_in *in;
    struct terminal *terminal; /* lent, or NULL */
    uint32_t first, count;     /* ranks first .. first + count - 1 read it */
    uint32_t readers;          /* of them not ended */
    size_t *credit;            /* [count] */
    bool *ended;               /* [count] */
};

int root_input_open(uv_loop_t *loop, const struct root_input_conf *conf, struct root_input **out, struct err *err)
{
    struct root_input *in;

    if (conf->input == INPUT_NONE)
        return 0;
    in = calloc(1, sizeof(*in));
    if (in == NULL)
        return err_set(err, -ENOMEM, "out of memory");
    in->loop = loop;
    in->root = conf->root;
    in->terminal = conf->terminal;
    in->first = conf->input == INPUT_ALL ? 0 : (uint32_t)conf->input;
    in->count = in->readers = conf->input == INPUT_ALL ? conf->size : 1;
    in->credit = calloc(in->count, sizeof(*in->credit));
    in->ended = calloc(in->count, sizeof(*in->ended));
    if (in->credit == NULL || in->ended == NULL) {
        root_input_close(in);
        return err_set(err, -ENOMEM, "out of memory");
    }
    for (uint32_t i = 0; i < in->count; i++)
        in->credit[i] = STDIO_CREDIT;
    *out = in;
    return 0;
}

static struct msg_out *map_for(const struct root_input *in, uint32_t i)
{
    const struct root *r = in->root;
    uint32_t rank = in->first + i;
    struct msg_out *m = root_job_map(r->first);

    if (m != NULL) {
        msg_put_u64(m, "place", r->place_of[r->plan->node_of[rank]]);
        msg_put_u64(m, "rank", rank);
    }
    return m;
}

static void send_input(struct root_input *in, uint32_t i, struct span data)
{
    struct msg_out *m = map_for(in, i);

    if (m != NULL && data.n > 0)
        msg_put_bin(m, "data", data);
    else if (m != NULL)
        msg_put_bool(m, "eof", true);
    root_send_map(in->root, MSG_INPUT, m, true);
}

static void stop_reading(struct root_input *in)
{
    if (in->in != NULL)
        stdfd_in_close(in->in);
    in->in = NULL;
}

static void close_reader(struct root_input *in)
{
    stop_reading(in);
    terminal_set_raw(in->terminal, false);
}

void root_input_window(const struct root_input *in)
{
    struct msg_out *m;
    uint16_t rows, cols;

    if (in == NULL || in->in == NULL || in->terminal == NULL)
        return;
    terminal_size(in->terminal, &rows, &cols);
    m = map_for(in, 0);
    if (m != NULL) {
        msg_put_u64(m, "rows", rows);
        msg_put_u64(m, "cols", cols);
    }
    root_send_map(in->root, MSG_WINDOW, m, false);
}

void root_input_terminal(struct root_input *in, bool raw)
{
    if (in != NULL && (in->in != NULL || !raw))
        terminal_set_raw(in->terminal, raw);
}

/* Read only while every reader can take a whole piece. */
static void watch(struct root_input *in)
{
    bool room = true;

    for (uint32_t i = 0; i < in->count; i++)
        if (!in->ended[i] && in->credit[i] < READ_AHEAD)
            room = false;
    if (in->in != NULL)
        stdfd_in_pause(in->in, !room);
}

static void fail(struct root_input *in, int err_no)
{
    char why[120];

    close_reader(in);
    snprintf(why, sizeof(why), "cannot read standard input: %s", strerror(err_no));
    root_decide(in->root, 1, why);
    root_end(in->root, SIGTERM);
}

static void on_input(ssize_t n, const char *data, void *arg)
{
    struct root_input *in = arg;
    struct span piece = {data, n > 0 ? (size_t)n : 0};

    if (n < 0 && !(n == -EIO && isatty(0) == 1)) { /* a terminal that has gone away is at its end */
        fail(in, (int)-n);
        return;
    }
    for (uint32_t i = 0; i < in->count; i++) {
        if (in->ended[i])
            continue;
        send_input(in, i, piece);
        in->credit[i] -= piece.n < in->credit[i] ? piece.n : in->credit[i];
    }
    if (n > 0) {
        watch(in);
        return;
    }
    close_reader(in);
    if (in->terminal != NULL && in->root->first->job->limits.ignore_hup)
        root_signal(in->root, SIGHUP); /* it is gone, and the kernel's word of that is ignored */
}

void root_input_start(struct root_input *in)
{
    struct err err = {0};

    if (in == NULL || in->readers == 0)
        return;
    if (stdfd_in_open(in->loop, 0, on_input, in, &in->in, &err) < 0) {
        log_warn("cannot read standard input (%s), the tasks get none", err.text);
        on_input(0, NULL, in);
    }
    root_input_terminal(in, true);
    root_input_window(in); /* it may have changed since the job was made */
}

int root_input_credit(struct root_input *in, const struct msg_in *m, struct err *err)
{
    uint64_t rank, bytes;
    int rc;

    if (in == NULL)
        return 0;
    if ((rc = msg_get_u64(m, "rank", in->first, in->first + in->count - 1, &rank, err)) < 0 ||
        (rc = msg_get_u64(m, "bytes", 1, 4 * STDIO_CREDIT, &bytes, err)) < 0)
        return rc;
    in->credit[rank - in->first] += (size_t)bytes;
    watch(in);
    return 0;
}

void root_input_rank_ended(struct root_input *in, uint32_t rank)
{
    if (in == NULL || rank < in->first || rank - in->first >= in->count || in->ended[rank - in->first])
        return;
    in->ended[rank - in->first] = true;
    if (--in->readers > 0)
        watch(in);
    else
        root_input_stop(in);
}

void root_input_stop(struct root_input *in)
{
    if (in == NULL)
        return;
    stop_reading(in);
    if (in->terminal != NULL)
        root_last_words(in->root);
}

void root_input_close(struct root_input *in)
{
    if (in == NULL)
        return;
    close_reader(in);
    free(in->credit);
    free(in->ended);
    free(in);
}
