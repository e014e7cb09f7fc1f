/* SPDX-License-Identifier: BSD-3-Clause */
/* provider_conf.c - a provider's command line: --pmi-NAME=VALUE words and nothing else
 *
 * A launcher of another version may give options that are not known here. They are skipped, so that the two get as far
 * as telling each other their versions.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "common/limits.h"
#include "common/num.h"
#include "common/strv.h"
#include "common/util.h"
#include "conf/provider_conf.h"
#include "conf/set.h"

#define START_TIMEOUT_MS 60000
#define PREFIX "--pmi-"

typedef int (*provider_set_fn)(struct provider_conf *c, struct span value);

/* "ADDR:PORT", the last ':' counts; brackets around ADDR are taken off. */
static int add_addr(struct provider_conf *c, struct span text)
{
    const char *colon = text.n > 0 ? memrchr(text.p, ':', text.n) : NULL;
    struct span addr = {text.p, colon ? (size_t)(colon - text.p) : 0};
    char whole[HOST_NAME_MAX_LEN + 8];
    uint64_t port;

    if (addr.n > 2 && addr.p[0] == '[' && addr.p[addr.n - 1] == ']')
        addr = (struct span){addr.p + 1, addr.n - 2};
    if (addr.n == 0 || addr.n > HOST_NAME_MAX_LEN || !word_is_safe(addr) || strv_count(c->addrs) == ADDRS_MAX)
        return -EINVAL;
    if (num_u64((struct span){colon + 1, text.n - (size_t)(colon + 1 - text.p)}, 1, UINT16_MAX, &port) < 0)
        return -EINVAL;
    snprintf(whole, sizeof(whole), "%.*s:%u", SPAN_FMT(addr), (unsigned)port);
    return strv_add(&c->addrs, whole);
}

static int set_addrs(struct provider_conf *c, struct span value)
{
    int rc = 0;

    strv_free(c->addrs);
    c->addrs = NULL;
    for (;;) {
        const char *comma = value.n > 0 ? memchr(value.p, ',', value.n) : NULL;
        size_t n = comma ? (size_t)(comma - value.p) : value.n;

        rc = add_addr(c, (struct span){value.p, n});
        if (rc < 0 || comma == NULL)
            return rc;
        value = (struct span){comma + 1, value.n - n - 1};
    }
}

static int set_number(struct span value, uint32_t min, uint32_t max, uint32_t *out)
{
    uint64_t v;

    if (num_u64(value, min, max, &v) < 0)
        return -EINVAL;
    *out = (uint32_t)v;
    return 0;
}

static int set_rank(struct provider_conf *c, struct span value)
{
    return set_number(value, 0, NODES_MAX - 1, &c->rank);
}

static int set_hosts(struct provider_conf *c, struct span value)
{
    return value.n > 0 ? text_replace(&c->hosts, value) : -EINVAL;
}

static int set_size(struct provider_conf *c, struct span value)
{
    return set_number(value, 2, NODES_MAX + 1, &c->size);
}

static int set_run(struct provider_conf *c, struct span value)
{
    return set_number(value, 1, UINT32_MAX, &c->run);
}

static int set_key(struct provider_conf *c, struct span value)
{
    return word_is_safe(value) && value.n <= 256 ? text_replace(&c->key, value) : -EINVAL;
}

static int set_secret(struct provider_conf *c, struct span value)
{
    return value.n > 0 ? text_replace(&c->secret_file, value) : -EINVAL;
}

static int set_interface(struct provider_conf *c, struct span value)
{
    return value.n > 0 ? text_replace(&c->interface, value) : -EINVAL;
}

static int set_ports(struct provider_conf *c, struct span value)
{
    struct conf_ports ports;

    if (ports_parse(value, &ports) < 0 || !ports.range)
        return -EINVAL;
    c->port = ports;
    return 0;
}

static int set_attach(struct provider_conf *c, struct span value)
{
    static const char *const names[] = {"auto", "yes", "no"};
    static const enum attach_mode modes[] = {ATTACH_AUTO, ATTACH_YES, ATTACH_NO};

    for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
        if (!span_is(value, names[i]))
            continue;
        c->attach = modes[i];
        return 0;
    }
    return -EINVAL;
}

static int set_start_timeout(struct provider_conf *c, struct span value)
{
    return num_duration_ms(value, &c->start_timeout_ms) < 0 ? -EINVAL : 0;
}

static const struct {
    const char *name, *wanted;
    provider_set_fn set;
} provider_options[] = {
    {"port", "ADDR:PORT[,ADDR:PORT...]", set_addrs},
    {"rank", "a number from 0", set_rank},
    {"hosts", "a list of hosts", set_hosts},
    {"size", "a number from 2", set_size},
    {"run", "a number from 1", set_run},
    {"key", "a fingerprint", set_key},
    {"secret-file", "a file", set_secret},
    {"interface", "NAME, ADDR or CIDR", set_interface},
    {"ports", "LOW-HIGH", set_ports},
    {"attach", "auto, yes or no", set_attach},
    {"start-timeout", "a time such as 60s", set_start_timeout},
};

bool provider_conf_is(int argc, char *const *argv)
{
    for (int i = 1; i < argc && strncmp(argv[i], PREFIX, strlen(PREFIX)) == 0; i++)
        if (strncmp(argv[i], PREFIX "port=", strlen(PREFIX "port=")) == 0 || strcmp(argv[i], PREFIX "port") == 0)
            return true;
    return false;
}

static int parse_one(struct provider_conf *c, const char *arg, struct err *err)
{
    const char *eq = strchr(arg, '=');
    struct span name;
    int rc;

    if (strncmp(arg, PREFIX, strlen(PREFIX)) != 0)
        return err_set(err, -EINVAL, "'%s' has no place among the --pmi-NAME=VALUE words of a provider",
                       quoted(span_of(arg)).text);
    name = (struct span){arg + strlen(PREFIX), eq ? (size_t)(eq - arg) - strlen(PREFIX) : strlen(arg) - strlen(PREFIX)};
    for (size_t i = 0; i < ARRAY_SIZE(provider_options); i++) {
        if (!span_is(name, provider_options[i].name))
            continue;
        rc = eq == NULL ? -EINVAL : provider_options[i].set(c, span_of(eq + 1));
        if (rc == -ENOMEM)
            return err_set(err, rc, "out of memory");
        if (rc < 0)
            return err_set(err, rc, "'%s': %s was expected behind '='", quoted(span_of(arg)).text,
                           provider_options[i].wanted);
        return 0;
    }
    return 0; /* of another version */
}

/* One command line is for all tasks of a step: which place of the list is ours, slurmd's name for our node says. */
static int find_place(struct provider_conf *c, struct err *err)
{
    const char *name = getenv("SLURMD_NODENAME");
    struct hostlist *hl = hostlist_new();
    int rc = hl == NULL ? err_set(err, -ENOMEM, "out of memory") : 0;

    if (rc == 0 && name == NULL)
        rc = err_set(err, -EINVAL, "SLURMD_NODENAME is not set: --pmi-hosts is for a task of srun's");
    if (rc == 0)
        rc = hostlist_add(hl, span_of(c->hosts), NULL, NULL, err);
    if (rc == 0 && text_replace(&c->name, span_of(name)) < 0)
        rc = err_set(err, -ENOMEM, "out of memory");
    for (size_t i = 0; rc == 0 && c->rank == UINT32_MAX && i < hostlist_count(hl); i++)
        if (strcmp(hostlist_get(hl, i).name, name) == 0)
            c->rank = (uint32_t)i;
    if (rc == 0 && c->rank == UINT32_MAX)
        rc = err_set(err, -EINVAL, "SLURMD_NODENAME is '%s', which is not among the hosts '%s'",
                     quoted(span_of(name)).text, quoted(span_of(c->hosts)).text);
    hostlist_free(hl);
    return rc;
}

static int check_provider(const struct provider_conf *c, bool has_rank, struct err *err)
{
    if (c->addrs == NULL)
        return err_set(err, -EINVAL, "--pmi-port=ADDR:PORT is missing");
    if (!has_rank)
        return err_set(err, -EINVAL, "--pmi-rank=N is missing: the bootstrap script adds it to $PMI_PROVIDER");
    if (c->size == 0)
        return err_set(err, -EINVAL, "--pmi-size=N is missing");
    if (c->rank >= c->size - 1)
        return err_set(err, -EINVAL, "--pmi-rank=%u is not below the number of providers, %u", c->rank, c->size - 1);
    if (c->key == NULL && c->secret_file == NULL)
        return err_set(err, -EINVAL, "neither --pmi-key= nor --pmi-secret-file= is given");
    return 0;
}

int provider_conf_parse(int argc, char *const *argv, struct provider_conf **out, struct err *err)
{
    struct provider_conf *c = calloc(1, sizeof(*c));
    int rc = 0;

    if (c == NULL)
        return err_set(err, -ENOMEM, "out of memory");
    c->rank = UINT32_MAX; /* not given */
    c->run = 1;
    c->start_timeout_ms = START_TIMEOUT_MS;
    for (int i = 1; rc == 0 && i < argc; i++)
        rc = parse_one(c, argv[i], err);
    if (rc == 0 && c->hosts != NULL && c->rank == UINT32_MAX)
        rc = find_place(c, err);
    if (rc == 0)
        rc = check_provider(c, c->rank != UINT32_MAX, err);
    if (rc == 0)
        *out = c;
    else
        provider_conf_free(c);
    return rc;
}

static int copy(char **field, const char *text)
{
    return text == NULL ? 0 : text_replace(field, span_of(text));
}

int provider_conf_join(const struct conf *conf, struct provider_conf **out, struct err *err)
{
    struct provider_conf *c = calloc(1, sizeof(*c));

    if (c == NULL)
        return err_set(err, -ENOMEM, "out of memory");
    c->rank = (uint32_t)conf->node;
    c->size = conf->nodes;
    c->run = 1;
    c->attach = ATTACH_YES;
    c->start_timeout_ms = conf->start_timeout_ms;
    c->port = conf->port;
    c->is_pod = conf->bootstrap == BOOT_K8S;
    if (copy(&c->join, conf->join) < 0 || copy(&c->secret_file, conf->secret_file) < 0 ||
        copy(&c->interface, conf->interface) < 0) {
        provider_conf_free(c);
        return err_set(err, -ENOMEM, "out of memory");
    }
    *out = c;
    return 0;
}

void provider_conf_free(struct provider_conf *c)
{
    if (c == NULL)
        return;
    strv_free(c->addrs);
    free(c->hosts);
    free(c->name);
    free(c->key);
    free(c->secret_file);
    free(c->join);
    free(c->interface);
    free(c);
}
