/* SPDX-License-Identifier: BSD-3-Clause */
/* provider_tree.c - a provider that may have to log in to others: what it hands to those who do it */
#include "common/io/log.h"
#include "common/util.h"
#include "server/provider_priv.h"

static void logins_send_up(unsigned type, struct span body, void *arg)
{
    (void)links_send(((struct provider *)arg)->links, LINKS_PARENT, type, body, false);
}

static void on_child_lost(uint32_t place, const struct err *why, void *arg)
{
    struct provider *p = arg;

    if (place != p->place)
        node_child_lost(p->node, place, why);
    else
        provider_end(p, 1);
}

int provider_make_logins(struct provider *p)
{
    struct provider_logins_conf lc = {
        .how = join_node_how(p->join),
        .conf = p->conf,
        .limits = &p->limits,
        .interface = join_node_interface(p->join),
        .spawner = p->spawner,
        .links = p->links,
        .place = p->place,
        .send_up = logins_send_up,
        .on_lost = on_child_lost,
        .arg = p,
    };

    if (lc.how == NULL)
        return 0;
    log_set_level((enum log_level)MIN(lc.how->level, LOG_DEBUG));
    p->logins = provider_logins_new(&p->loop, &lc);
    return p->logins == NULL ? -ENOMEM : 0;
}
