/* SPDX-License-Identifier: BSD-3-Clause */
/* launcher_serve.c - --serve: at which address and port ranks from elsewhere are served */
#include "common/io/addrs.h"
#include "common/strv.h"
#include "server/launcher_priv.h"

#define LOOPBACK 0x7f000001u

/* An address of each range, so that the routes to them can be looked up. */
static struct hostlist *probes(const struct conf *conf)
{
    struct hostlist *hl = hostlist_new();
    char text[IPV4_TEXT_MAX];

    for (size_t i = 0; hl != NULL && i < conf->serve_count; i++) {
        const struct cidr *c = &conf->serve[i];

        (void)hostlist_add_host(hl, span_of(ipv4_text(c->base | (~c->mask & 1), text)), 0);
    }
    return hl;
}

static int choose_loopback(const struct conf *conf, uint32_t *addr, struct err *err)
{
    if (conf->interface != NULL && !conf_is_loopback(conf->interface))
        return err_set(err, -EINVAL, "--serve has loopback addresses alone, which cannot reach --interface=%s",
                       conf->interface);
    if (!serve_has(conf->serve, conf->serve_count, LOOPBACK))
        return err_set(err, -EINVAL, "no range of --serve holds 127.0.0.1, from where loopback's connections come");
    *addr = LOOPBACK;
    return 0;
}

static int choose_global(const struct conf *conf, uint32_t *addr, struct err *err)
{
    struct hostlist *hl = probes(conf);
    char **given = NULL;
    int rc = addrs_to_give(conf->interface, hl, &given, err);

    hostlist_free(hl);
    if (rc < 0 && (rc != -EINVAL || conf->interface != NULL))
        return rc;
    if (serve_choose(given, conf->serve, conf->serve_count, addr) == 0 &&
        (*addr != LOOPBACK || conf->interface == NULL))
        rc = 0;
    else if (rc == 0)
        rc = err_set(err, -EINVAL, "--serve: there is no IPv4 address here at which ranks could be served");
    strv_free(given);
    return rc;
}

int launcher_serve(struct launcher *l, struct err *err)
{
    const struct conf *conf = l->conf;
    bool local = serve_is_loopback(conf->serve, conf->serve_count) ||
                 (conf->interface != NULL && conf_is_loopback(conf->interface));

    l->serve = (struct serve_conf){
        .range = conf->serve,
        .count = conf->serve_count,
        .listen_all = !local && conf->interface == NULL,
        .low = conf->port.low,
        .high = conf->port.high,
        .patience_ms = conf->start_timeout_ms,
    };
    return local ? choose_loopback(conf, &l->serve.addr, err) : choose_global(conf, &l->serve.addr, err);
}
