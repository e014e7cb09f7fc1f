/* SPDX-License-Identifier: BSD-3-Clause */
/* pm1.c - the process manager over PMI-1's wire
 *
 * PMI-2's node attributes do not exist there. As Flux's libpmi2 does, they are keys "local::NAME": its server shows
 * those to a node's tasks at once.
 */
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "client/pm.h"
#include "common/limits.h"
#include "common/num.h"

#define NODE_WAIT_MS 15000 /* for an attribute that another task may put yet; as long as Flux's libpmi2 */
#define NODE_WAIT_STEP_MS 20

/* Where the next request is put together. */
static struct buf *fresh(struct pm *pm)
{
    pm->out.len = 0;
    return &pm->out;
}

/* PM_OK with the reply in `line`, or what the server answered. */
static int take_reply(struct pm *pm, const char *reply, struct pmi_line *line, struct err *err)
{
    struct span msg;
    int rc = 0;

    if (wire_reply(&pm->wire, reply, line, &rc, err) < 0)
        return PM_FAIL;
    if (rc == 0)
        return PM_OK;
    msg = pmi_line_get(line, "msg");
    return pm_fail(err, pm_code(rc), "the PMI server answers cmd=%s rc=%d%s%.*s", reply, rc, msg.n > 0 ? " msg=" : "",
                   (int)(msg.n < 80 ? msg.n : 80), msg.p != NULL ? msg.p : "");
}

/* Send what is in pm->out, and take the reply; `built` is what putting it there came to. */
static int ask(struct pm *pm, int built, const char *reply, struct pmi_line *line, struct err *err)
{
    if (built < 0)
        return pm_fail(err, PM_NOMEM, "no memory");
    return wire_send(&pm->wire, buf_span(&pm->out), err) < 0 ? PM_FAIL : take_reply(pm, reply, line, err);
}

/* A reply that lacks what was asked for. */
static int missing(struct pm *pm, const char *reply, const char *key, struct err *err)
{
    pm->wire.is_broken = true;
    return pm_fail(err, PM_FAIL, "the PMI server sent a %s without a good %s", reply, key);
}

static int ask_int(struct pm *pm, const char *request, const char *reply, const char *key, int min, int *out,
                   struct err *err)
{
    struct pmi_line line;
    int64_t v;
    int rc = ask(pm, buf_printf(fresh(pm), "cmd=%s\n", request), reply, &line, err);

    if (rc != PM_OK)
        return rc;
    if (num_i64(pmi_line_get(&line, key), min, INT_MAX, &v) < 0)
        return missing(pm, reply, key, err);
    *out = (int)v;
    return PM_OK;
}

static int get_name(struct pm *pm, struct err *err)
{
    struct pmi_line line;
    struct span name;
    int rc = ask(pm, buf_add_str(fresh(pm), "cmd=get_my_kvsname\n"), "my_kvsname", &line, err);

    if (rc != PM_OK)
        return rc;
    name = pmi_line_get(&line, "kvsname");
    if (name.n == 0 || name.n >= (size_t)pm->name_max)
        return missing(pm, "my_kvsname", "kvsname", err);
    pm->name = strndup(name.p, name.n);
    return pm->name != NULL ? PM_OK : pm_fail(err, PM_NOMEM, "no memory");
}

/* `*name` is our own where none is given. */
static int prepare(struct pm *pm, const char **name, const char *key, struct err *err)
{
    if (!pm_is_word(key))
        return pm_fail(err, PM_INVALID_KEY, "the key '%.80s' is not one word, or has a '=', which PMI-1 cannot carry",
                       key);
    if (*name == NULL)
        return pm_name(pm, name, err);
    return pm_is_word(*name) ? PM_OK : pm_fail(err, PM_INVALID_ARG, "the name '%.80s' is not one word", *name);
}

static int put(struct pm *pm, const char *name, const char *key, const char *value, struct err *err)
{
    struct pmi_line line;
    int rc = prepare(pm, &name, key, err);

    if (rc == PM_OK && !pm_is_line(value))
        rc = pm_fail(err, PM_INVALID_VAL, "the value for '%s' has a newline, which PMI-1 cannot carry", key);
    if (rc != PM_OK)
        return rc;
    return ask(pm, buf_printf(fresh(pm), "cmd=put kvsname=%s key=%s value=%s\n", name, key, value), "put_result", &line,
               err);
}

/* MPICH's Hydra 4.1.1 to 4.2.0 writes this behind the value. */
static struct span without_found(struct span value)
{
    static const char tail[] = " found=TRUE";
    size_t n = sizeof(tail) - 1;

    if (value.n >= n && memcmp(value.p + value.n - n, tail, n) == 0)
        value.n -= n;
    return value;
}

static int get(struct pm *pm, const char *name, const char *key, struct span *value, struct err *err)
{
    struct pmi_line line;
    int rc = prepare(pm, &name, key, err);

    /* A value of several lines was put over PMI-2, and is the server's to refuse. */
    if (rc == PM_OK && pm_mapped(pm, name, key, value) && memchr(value->p, '\n', value->n) == NULL)
        return PM_OK;
    if (rc == PM_OK)
        rc = ask(pm, buf_printf(fresh(pm), "cmd=get kvsname=%s key=%s\n", name, key), "get_result", &line, err);
    if (rc != PM_OK)
        return rc;
    *value = pmi_line_get(&line, "value");
    if (value->p == NULL)
        return missing(pm, "get_result", "value", err);
    *value = without_found(*value);
    return PM_OK;
}

static int map(struct pm *pm, const char *what, uint32_t *slot, struct err *err)
{
    char request[32];
    int n, rc;

    snprintf(request, sizeof(request), "map_kvs%s%s", what != NULL ? " what=" : "", what != NULL ? what : "");
    rc = ask_int(pm, request, "kvs_map", "slot", 0, &n, err);

    if (rc == PM_OK)
        *slot = (uint32_t)n;
    return rc;
}

static int fence(struct pm *pm, struct err *err)
{
    bool by_bell = pm_bell_is_heard(pm);
    struct pmi_line line;
    int rc = buf_printf(fresh(pm), "cmd=barrier_in%s\n", by_bell ? " answer=bell" : "");

    if (rc < 0 || !by_bell)
        return ask(pm, rc, "barrier_out", &line, err);
    if (wire_send(&pm->wire, buf_span(&pm->out), err) < 0)
        return PM_FAIL;
    return pm_bell_wait(pm) ? PM_OK : take_reply(pm, "barrier_out", &line, err);
}

/* Slurm says -1. */
static int appnum(struct pm *pm, int *n, struct err *err)
{
    return ask_int(pm, "get_appnum", "appnum", "appnum", -1, n, err);
}

/* Hydra says -1 where it does not know. */
static int universe(struct pm *pm, int *n, struct err *err)
{
    return ask_int(pm, "get_universe_size", "universe_size", "size", -1, n, err);
}

static int node_key(char out[PMI_KEY_MAX], const char *key, struct err *err)
{
    if (snprintf(out, PMI_KEY_MAX, "local::%s", key) >= PMI_KEY_MAX)
        return pm_fail(err, PM_INVALID_KEY_LENGTH, "the attribute '%.80s' has too long a name for PMI-1", key);
    return PM_OK;
}

static int node_put(struct pm *pm, const char *key, const char *value, struct err *err)
{
    char local[PMI_KEY_MAX];
    int rc = node_key(local, key, err);

    return rc == PM_OK ? put(pm, NULL, local, value, err) : rc;
}

static int node_get(struct pm *pm, const char *key, bool wait, struct span *value, struct err *err)
{
    static const struct timespec step = {0, NODE_WAIT_STEP_MS * 1000000L};
    char local[PMI_KEY_MAX];
    int rc = node_key(local, key, err);

    if (rc != PM_OK)
        return rc;
    rc = get(pm, NULL, local, value, err);
    for (int left = wait ? NODE_WAIT_MS : 0; rc == PM_INVALID_KEY && left > 0; left -= NODE_WAIT_STEP_MS) {
        nanosleep(&step, NULL);
        rc = get(pm, NULL, local, value, err);
    }
    return wait && rc == PM_INVALID_KEY ? PM_FAIL : rc;
}

static int job_get(struct pm *pm, const char *key, struct span *value, struct err *err)
{
    int n, rc;

    if (strcmp(key, "universeSize") == 0) {
        rc = universe(pm, &n, err);
        pm->out.len = 0; /* the number is lent from there */
        if (rc == PM_OK && buf_printf(&pm->out, "%d", n) < 0)
            rc = pm_fail(err, PM_NOMEM, "no memory");
        if (rc == PM_OK)
            *value = buf_span(&pm->out);
        return rc;
    }
    if (strcmp(key, "PMI_process_mapping") == 0)
        return get(pm, NULL, key, value, err);
    return pm_fail(err, PM_INVALID_KEY, "there is no attribute '%.80s'", key);
}

static int check_words(const char *service, const char *port, struct err *err)
{
    if (!pm_is_word(service))
        return pm_fail(err, PM_INVALID_ARG, "the service '%.80s' is not one word, or has a '='", service);
    if (port != NULL && (*port == '\0' || strpbrk(port, " \t\n") != NULL))
        return pm_fail(err, PM_INVALID_ARG, "the port '%.80s' is not one word", port);
    return PM_OK;
}

static int publish(struct pm *pm, const char *service, const char *port, struct err *err)
{
    struct pmi_line line;
    int rc = check_words(service, port, err);

    return rc != PM_OK ? rc
                       : ask(pm, buf_printf(fresh(pm), "cmd=publish_name service=%s port=%s\n", service, port),
                             "publish_result", &line, err);
}

static int unpublish(struct pm *pm, const char *service, struct err *err)
{
    struct pmi_line line;
    int rc = check_words(service, NULL, err);

    return rc != PM_OK ? rc
                       : ask(pm, buf_printf(fresh(pm), "cmd=unpublish_name service=%s\n", service), "unpublish_result",
                             &line, err);
}

static int lookup(struct pm *pm, const char *service, struct span *port, struct err *err)
{
    struct pmi_line line;
    int rc = check_words(service, NULL, err);

    if (rc == PM_OK)
        rc = ask(pm, buf_printf(fresh(pm), "cmd=lookup_name service=%s\n", service), "lookup_result", &line, err);
    if (rc != PM_OK)
        return rc;
    *port = pmi_line_get(&line, "port");
    return port->n > 0 ? PM_OK : missing(pm, "lookup_result", "port", err);
}

/* "PREFIX_key_0=..", "PREFIX_val_0=.." and so on, behind "PREFIX_num=N". */
static int add_pairs(struct buf *out, const char *prefix, const struct pm_pair *pair, size_t count)
{
    int rc = buf_printf(out, "%s_num=%zu\n", prefix, count);

    for (size_t i = 0; rc == 0 && i < count; i++)
        rc = buf_printf(out, "%s_key_%zu=%s\n%s_val_%zu=%s\n", prefix, i, pair[i].key, prefix, i, pair[i].value);
    return rc;
}

static bool pairs_are_lines(const struct pm_pair *pair, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (!pm_is_word(pair[i].key) || !pm_is_line(pair[i].value))
            return false;
    return true;
}

static bool cmd_is_lines(const struct pm_cmd *cmd)
{
    for (size_t i = 0; i < cmd->nargs; i++)
        if (!pm_is_line(cmd->args[i]))
            return false;
    return *cmd->path != '\0' && pm_is_line(cmd->path) && pairs_are_lines(cmd->info, cmd->ninfo);
}

/* In the order of MPICH 4.0.2: the arguments before their count, and what is put in advance with every command. */
static int add_cmd(struct buf *out, const struct pm_spawn *s, size_t i)
{
    const struct pm_cmd *cmd = &s->cmd[i];
    int rc = buf_printf(out, "mcmd=spawn\nnprocs=%d\nexecname=%s\ntotspawns=%zu\nspawnssofar=%zu\n", cmd->nprocs,
                        cmd->path, s->count, i + 1);

    for (size_t k = 0; rc == 0 && k < cmd->nargs; k++)
        rc = buf_printf(out, "arg%zu=%s\n", k + 1, cmd->args[k]);
    if (rc == 0)
        rc = buf_printf(out, "argcnt=%zu\n", cmd->nargs);
    if (rc == 0)
        rc = add_pairs(out, "preput", s->preput, s->npreput);
    if (rc == 0)
        rc = add_pairs(out, "info", cmd->info, cmd->ninfo);
    return rc == 0 ? buf_add_str(out, "endcmd\n") : rc;
}

static int spawn(struct pm *pm, const struct pm_spawn *s, struct span *name, int *errors, struct err *err)
{
    struct pmi_line line;
    int rc = 0;

    pm->out.len = 0;
    for (size_t i = 0; i < s->count; i++)
        if (!cmd_is_lines(&s->cmd[i]) || !pairs_are_lines(s->preput, s->npreput))
            return pm_fail(err, PM_INVALID_ARG, "command %zu has a newline, or a key of several words", i + 1);
    for (size_t i = 0; rc == 0 && i < s->count; i++)
        rc = add_cmd(&pm->out, s, i);
    if (rc < 0)
        return pm_fail(err, PM_NOMEM, "no memory");
    rc = ask(pm, 0, "spawn_result", &line, err);
    if (rc != PM_OK)
        return rc;
    *name = pmi_line_get(&line, "kvsname");
    return pm_errors(pmi_line_get(&line, "errcodes"), errors, s->nprocs, err);
}

/* May be called while another thread waits for a reply: everything it uses is its own. */
static void give_up(struct pm *pm, int code, const char *text)
{
    struct buf b = {0};

    if (buf_printf(&b, "cmd=abort exitcode=%d error_msg=%s", code, *text != '\0' ? text : "aborted") < 0)
        return;
    for (size_t i = 0; i < b.len; i++)
        if ((unsigned char)b.p[i] < ' ')
            b.p[i] = ' ';
    if (buf_add(&b, "\n", 1) == 0)
        (void)wire_send(&pm->wire, buf_span(&b), NULL);
    buf_done(&b);
}

static int finalize(struct pm *pm, struct err *err)
{
    struct pmi_line line;

    return ask(pm, buf_add_str(fresh(pm), "cmd=finalize\n"), "finalize_ack", &line, err);
}

static const struct pm_ops ops = {
    .get_name = get_name,
    .put = put,
    .get = get,
    .fence = fence,
    .appnum = appnum,
    .universe = universe,
    .node_put = node_put,
    .node_get = node_get,
    .job_get = job_get,
    .publish = publish,
    .unpublish = unpublish,
    .lookup = lookup,
    .spawn = spawn,
    .map = map,
    .abort = give_up,
    .finalize = finalize,
};

static int take_maxes(struct pm *pm, struct err *err)
{
    static const char *const keys[] = {"kvsname_max", "keylen_max", "vallen_max"};
    int *const out[] = {&pm->name_max, &pm->key_max, &pm->value_max};
    struct pmi_line line;
    int64_t v;
    int rc = ask(pm, buf_add_str(fresh(pm), "cmd=get_maxes\n"), "maxes", &line, err);

    for (size_t i = 0; rc == PM_OK && i < 3; i++) {
        if (num_i64(pmi_line_get(&line, keys[i]), 2, PMI_MAXES_MAX, &v) < 0)
            rc = missing(pm, "maxes", keys[i], err);
        else
            *out[i] = (int)v;
    }
    return rc;
}

int pm1_begin(struct pm *pm, const struct where *where, struct err *err)
{
    int rc = where->id >= 0 ? wire_initack(&pm->wire, (uint32_t)where->id, &pm->rank, &pm->size, err) : 0;

    if (rc == 0)
        rc = wire_init1(&pm->wire, err);
    if (rc < 0)
        return rc;
    pm->ops = &ops;
    return take_maxes(pm, err) == PM_OK ? 0 : -EPROTO;
}
