/* SPDX-License-Identifier: BSD-3-Clause */
#include "server/provider_logins.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "bootstrap/bootstrap.h"
#include "common/io/addrs.h"
#include "common/io/log.h"
#include "common/strv.h"
#include "common/util.h"
#include "server/boot_process.h"
#include "server/process.h"

/* A part of the list whose names came from the parent. */
struct names {
    struct share_range range;
    struct hostlist *hosts;
};

struct provider_logins {
    uv_loop_t *loop;
    struct provider_logins_conf conf;
    struct names *names;
    size_t names_count;
    struct logins *logins;
    struct tls_ctx *ctx; /* with which children are let in */
    char **addrs, *script, *self_path;
    /* The bootstrap's view: a node for each login that was ever started here. */
    struct conf boot_options;
    struct plan plan;
    struct boot_conf boot_conf;
    struct bootstrap *boot;
    uint32_t *place_of, started; /* [plan.node_count], by node of the bootstrap */
    bool failed;                 /* to open; it was said */
};

/* --- names ------------------------------------------------------------------------------------------------------ */

static const char *host(uint32_t place, void *arg)
{
    const struct provider_logins *p = arg;

    for (size_t i = p->names_count; i > 0; i--) { /* of a place that came twice the latest */
        const struct names *n = &p->names[i - 1];

        if (place >= n->range.first && place - n->range.first < n->range.count)
            return hostlist_get(n->hosts, place - n->range.first).name;
    }
    return "?";
}

static int learn(struct provider_logins *p, struct logins_share *share)
{
    struct names *more = realloc(p->names, (p->names_count + 1) * sizeof(*more));

    if (more == NULL)
        return -ENOMEM;
    p->names = more;
    p->names[p->names_count++] = (struct names){share->range, share->hosts};
    share->hosts = NULL;
    return 0;
}

static void forget_names(struct provider_logins *p)
{
    for (size_t i = 0; i < p->names_count; i++)
        hostlist_free(p->names[i].hosts);
    free(p->names);
    p->names = NULL;
    p->names_count = 0;
}

/* --- the bootstrap ---------------------------------------------------------------------------------------------- */

static int boot_spawn(uint32_t id, char *const *argv, char *const *envp, int *out_fd, int *err_fd, void *arg,
                      struct err *err)
{
    struct provider_logins *p = arg;
    struct spawn_req what = {.id = id, .argv = argv, .envp = envp};

    return boot_process_spawn(p->conf.spawner, p->conf.limits, &what, out_fd, err_fd, err);
}

static void boot_kill(uint32_t id, int sig, void *arg)
{
    (void)spawner_kill(((struct provider_logins *)arg)->conf.spawner, id, sig);
}

static void boot_on_key(uint32_t node, uint32_t run, uint32_t index, const char *key, void *arg)
{
    struct provider_logins *p = arg;

    (void)run;
    (void)index;
    if (logins_key(p->logins, p->place_of[node], key) < 0)
        log_error("out of memory");
}

static void boot_on_failed(const char *text, void *arg)
{
    logins_give_up(((struct provider_logins *)arg)->logins, text);
}

static void boot_on_login_failed(uint32_t node, const char *text, void *arg)
{
    struct provider_logins *p = arg;

    logins_login_failed(p->logins, p->place_of[node], text);
}

/* As much of a configuration as a bootstrap asks for. */
static void make_options(struct provider_logins *p)
{
    const struct provider_conf *pc = p->conf.conf;

    p->boot_options = (struct conf){
        .bootstrap = BOOT_RSH,
        .rsh_command = p->conf.how->script,
        .rsh_fanout = p->conf.how->logins,
        .rsh_attach = (enum attach_mode)p->conf.how->attach,
        .remote_path = p->conf.how->program,
        .start_timeout_ms = pc->start_timeout_ms,
        .interface = pc->interface,
        .port = pc->port,
    };
}

/* A host that fails is not tried again here, so that twice the width is more than will be asked for. */
static int make_plan(struct provider_logins *p)
{
    uint32_t width = MIN(p->conf.how->width, p->conf.how->places), count = 2 * width + p->conf.how->logins;

    p->plan = (struct plan){.method = BOOT_RSH, .node_count = MIN(count, 2 * p->conf.how->places), .self = -1};
    p->plan.node = calloc(p->plan.node_count, sizeof(*p->plan.node));
    p->place_of = calloc(p->plan.node_count, sizeof(*p->place_of));
    return p->plan.node == NULL || p->place_of == NULL ? -ENOMEM : 0;
}

/* So that the launcher has as much time for it again. */
static uint64_t login_limit_ms(const struct provider_logins *p)
{
    return p->conf.conf->start_timeout_ms / 2;
}

static int find_script(struct provider_logins *p, struct err *err)
{
    int rc = process_self_path(&p->self_path, err);

    if (rc < 0)
        return rc;
    if (p->conf.how->script != NULL)
        p->script = strdup(p->conf.how->script);
    else
        (void)boot_process_script(p->self_path, &p->script);
    return p->script == NULL ? err_set(err, -ENOMEM, "out of memory") : 0;
}

static int open_boot(struct provider_logins *p, struct err *err)
{
    struct boot_ops ops = {
        .spawn = boot_spawn,
        .kill = boot_kill,
        .on_key = boot_on_key,
        .on_failed = boot_on_failed,
        .on_login_failed = boot_on_login_failed,
        .arg = p,
    };
    int rc = find_script(p, err);

    if (rc == 0 && make_plan(p) < 0)
        rc = err_set(err, -ENOMEM, "out of memory");
    if (rc < 0)
        return rc;
    make_options(p);
    p->boot_conf = (struct boot_conf){
        .conf = &p->boot_options,
        .plan = &p->plan,
        .addrs = p->addrs,
        .port = logins_port(p->logins),
        .key = tls_ctx_key(p->ctx),
        .self_path = p->self_path,
        .envp = environ,
        .script = p->script,
        .one_by_one = true,
        .limit_ms = login_limit_ms(p),
        .providers = p->conf.how->places - 1,
    };
    return boot_open(p->loop, &p->boot_conf, &ops, &p->boot, err);
}

/* --- logins ----------------------------------------------------------------------------------------------------- */

static int64_t node_of(const struct provider_logins *p, uint32_t place)
{
    for (uint32_t i = p->started; i > 0; i--)
        if (p->place_of[i - 1] == place)
            return i - 1;
    return -1;
}

static int start(uint32_t place, void *arg, struct err *err)
{
    struct provider_logins *p = arg;
    uint32_t node = p->started;
    char *login;
    const char *at;

    if (node == p->plan.node_count)
        return err_set(err, -EMFILE, "more logins than there is room for here");
    login = strdup(host(place, p));
    if (login == NULL)
        return err_set(err, -ENOMEM, "out of memory");
    at = strrchr(login, '@');
    p->plan.node[node].login = login;
    p->plan.node[node].host = at != NULL ? at + 1 : login;
    p->place_of[node] = place;
    p->started++;
    return boot_login(p->boot, node, err);
}

static void why(uint32_t place, struct buf *out, void *arg)
{
    struct provider_logins *p = arg;
    int64_t node = node_of(p, place);

    if (node >= 0)
        boot_why(p->boot, (uint32_t)node, out);
}

static void cancel(uint32_t place, void *arg)
{
    struct provider_logins *p = arg;
    int64_t node = node_of(p, place);

    if (node >= 0)
        boot_cancel(p->boot, (uint32_t)node);
}

static void on_up(uint32_t place, bool attached, void *arg)
{
    struct provider_logins *p = arg;
    int64_t node = node_of(p, place);

    if (node >= 0)
        boot_joined(p->boot, (uint32_t)node, attached);
}

static void send_up(unsigned type, struct span body, void *arg)
{
    struct provider_logins *p = arg;

    p->conf.send_up(type, body, p->conf.arg);
}

static void on_lost(uint32_t place, const struct err *why, void *arg)
{
    struct provider_logins *p = arg;

    p->conf.on_lost(place, why, p->conf.arg);
}

static void on_stranger(void *arg)
{
    boot_stranger(((struct provider_logins *)arg)->boot);
}

static int open_logins(struct provider_logins *p, const struct share_times *times, struct err *err)
{
    const struct conf_ports *port = &p->conf.conf->port;
    struct logins_ops ops = {
        .start = start,
        .why = why,
        .cancel = cancel,
        .on_up = on_up,
        .host = host,
        .send_up = send_up,
        .on_lost = on_lost,
        .on_stranger = on_stranger,
        .arg = p,
    };
    struct logins_conf lc = {.how = p->conf.how, .place = p->conf.place, .times = *times};

    lc.limit_ms = login_limit_ms(p);
    lc.brood = (struct brood_conf){
        .interface = p->conf.interface,
        .port_low = port->range ? port->low : 0,
        .port_high = port->range ? port->high : 0,
        .ctx = p->ctx,
        .links = p->conf.links,
    };
    return logins_open(p->loop, &lc, &ops, &p->logins, err);
}

static int open_all(struct provider_logins *p, const struct share_times *times, struct err *err)
{
    int rc = tls_ctx_new_cert(&p->ctx, NULL, err);

    if (rc == 0)
        rc = addrs_to_give(p->conf.interface, NULL, &p->addrs, err);
    if (rc == 0)
        rc = open_logins(p, times, err);
    return rc < 0 ? rc : open_boot(p, err);
}

/* Nothing can be done with what was handed over, and nobody has business at our port. */
static void refuse(struct provider_logins *p, const struct share_range *range, const struct err *why)
{
    struct logins_note note = {.closed = true};
    struct msg_out *m = msg_out_new();
    struct span body;

    provider_logins_close(p);
    if (!p->failed)
        log_warn("cannot log in to others (%s), %u host%s left to others", why->text, range->count,
                 range->count == 1 ? " is" : "s are");
    p->failed = true;
    if (m != NULL && ranges_add(&note.ranges, *range) == 0 && logins_note_put(&note, MSG_BACK, m) == 0 &&
        msg_out_done(m, &body) == 0)
        send_up(MSG_BACK, body, p);
    else
        on_lost(p->conf.place, &(struct err){.code = -ENOMEM, .text = "out of memory"}, p);
    ranges_done(&note.ranges);
    msg_out_free(m);
}

int provider_logins_share(struct provider_logins *p, struct span body, struct err *err)
{
    struct logins_share share;
    struct err why = {0};
    int rc = logins_share_get(body, p->conf.how->places, &share, err);

    if (rc < 0)
        return rc;
    rc = learn(p, &share);
    hostlist_free(share.hosts);
    if (rc < 0)
        return err_set(err, rc, "out of memory");
    rc = p->failed ? -ECANCELED : 0;
    if (rc == 0 && p->boot == NULL)
        rc = open_all(p, &share.times, &why);
    if (rc < 0) {
        refuse(p, &share.range, &why);
        return 0;
    }
    rc = logins_add(p->logins, share.range);
    return rc < 0 ? err_set(err, rc, rc == -EEXIST ? "it was handed over before" : "out of memory") : 0;
}

/* --- life ------------------------------------------------------------------------------------------------------- */

struct provider_logins *provider_logins_new(uv_loop_t *loop, const struct provider_logins_conf *conf)
{
    struct provider_logins *p = calloc(1, sizeof(*p));

    if (p == NULL)
        return NULL;
    p->loop = loop;
    p->conf = *conf;
    return p;
}

struct logins *provider_logins_of(struct provider_logins *p)
{
    return p != NULL ? p->logins : NULL;
}

void provider_logins_exited(struct provider_logins *p, uint32_t id, int err_no, int wstatus)
{
    if (p == NULL || p->boot == NULL)
        return;
    if (err_no != 0)
        boot_not_started(p->boot, id, err_no);
    else
        boot_exited(p->boot, id, wstatus);
}

uint64_t provider_logins_all_in(struct provider_logins *p)
{
    struct strangers s = {0};

    if (p == NULL || p->logins == NULL)
        return 0;
    s = logins_all_in(p->logins);
    if (p->boot != NULL)
        boot_done(p->boot);
    forget_names(p);
    return s.crowded + s.rejected;
}

void provider_logins_close(struct provider_logins *p)
{
    if (p == NULL)
        return;
    boot_close(p->boot);
    p->boot = NULL;
    logins_close(p->logins);
    p->logins = NULL;
}

void provider_logins_free(struct provider_logins *p)
{
    if (p == NULL)
        return;
    forget_names(p);
    for (uint32_t i = 0; i < p->started; i++)
        free((char *)p->plan.node[i].login);
    free(p->plan.node);
    free(p->place_of);
    strv_free(p->addrs);
    free(p->script);
    free(p->self_path);
    tls_ctx_unref(p->ctx);
    free(p);
}
