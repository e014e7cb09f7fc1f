/* SPDX-License-Identifier: BSD-3-Clause */
/* provider_conf.h - what a node other than the launcher's is told: on its command line, or by --join */
#ifndef CONF_PROVIDER_CONF_H
#define CONF_PROVIDER_CONF_H

#include <stdbool.h>
#include <stdint.h>
#include "common/err.h"
#include "common/limits.h"
#include "common/span.h"
#include "conf/conf.h"

/* What a provider is told on its command line (--pmi-...); it reads no file and no environment. */
struct provider_conf {
    char **addrs;  /* "ADDR:PORT", NULL-terminated, at least one; IPv6 without brackets */
    uint32_t rank; /* index within this run of the bootstrap, zero-origin */
    char *hosts;   /* by srun: the run's nodes, folded; the place of ours among them is `rank`. Or NULL */
    char *name;    /* by srun: ours. Or NULL */
    uint32_t size; /* providers plus one */
    uint32_t run;  /* 1 .. */
    char *key;     /* the launcher's fingerprint, or NULL with secret_file */
    char *secret_file;
    char *join; /* "NAME:PORT" in the place of `addrs`: then `rank` is the node's number, and `size` counts nodes */
    bool is_pod;
    char *interface;
    struct conf_ports port;
    enum attach_mode attach;
    uint64_t start_timeout_ms; /* default 60 s */
};

/* True where one of the leading --pmi- words is --pmi-port. (A COMMAND's own arguments do not make a provider.) */
bool provider_conf_is(int argc, char *const *argv);
/* Unknown --pmi-* options are skipped; anything else unknown is an error. Options: --pmi- with port, rank (or hosts
 * and SLURMD_NODENAME of the environment), size, run, key, secret-file, interface, ports, attach, start-timeout. */
int provider_conf_parse(int argc, char *const *argv, struct provider_conf **out, struct err *err);
void provider_conf_free(struct provider_conf *conf);
/* What a node that joins by itself is told by its own user. -ENOMEM. */
int provider_conf_join(const struct conf *conf, struct provider_conf **out, struct err *err);

/* "NAME:PORT" or "ADDR:PORT", IPv6 in brackets; 0, or -EINVAL and nothing is set. `name` has no brackets. */
int conf_join_parse(struct span text, char name[HOST_NAME_MAX_LEN + 1], uint16_t *port);

#endif
