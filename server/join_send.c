/* SPDX-License-Identifier: BSD-3-Clause */
/* join_send.c - messages of the wire-up */
#include "server/join_send.h"

#include "common/io/tls.h"
#include "config.h"

int join_send(struct conn *c, unsigned type, struct msg_out *m)
{
    struct span body;
    int rc = m == NULL ? -ENOMEM : msg_out_done(m, &body);

    if (rc == 0)
        rc = conn_send(c, type, body, false);
    msg_out_free(m);
    if (rc == -ENOMEM)
        conn_out_of_memory(c);
    else if (rc < 0)
        conn_close(c);
    return rc;
}

struct msg_out *join_hello(const struct provider_conf *conf, bool attached)
{
    struct msg_out *m = msg_out_new();
    uint64_t instance;

    if (m == NULL)
        return NULL;
    tls_random(&instance, sizeof(instance));
    msg_put_u64(m, "run", conf->run);
    msg_put_u64(m, "index", conf->rank);
    if (conf->join != NULL) {
        msg_put_u64(m, "node", conf->rank);
        msg_put_u64(m, "nodes", conf->size);
    }
    msg_put_u64(m, "instance", instance);
    msg_put_bool(m, "attached", attached);
    msg_put_u64(m, "version_low", PROTO_VERSION_MIN);
    msg_put_u64(m, "version_high", PROTO_VERSION_MAX);
    msg_put_str(m, "release", PACKAGE_VERSION);
    return m;
}
