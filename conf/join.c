/* SPDX-License-Identifier: BSD-3-Clause */
/* join.c - to be a node of a run that was launched elsewhere: --join by hand, and the pods of --bootstrap=k8s
 *
 * By hand all that is said is where the launcher is and who we are; what is run is the launcher's to say. Pods are all
 * given one command line, and learn from Kubernetes which of them they are: pod 0 is the launcher.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "common/num.h"
#include "common/strv.h"
#include "common/util.h"
#include "conf/provider_conf.h"
#include "conf/set.h"

#define INDEX_VARIABLE "JOB_COMPLETION_INDEX"
#define K8S_PORT "7647"
#define K8S_START_TIMEOUT "10m"

static bool is_name(struct span s)
{
    for (size_t i = 0; i < s.n; i++) {
        char c = s.p[i];
        bool alnum = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');

        if (!alnum && c != '-' && c != '.' && c != '_')
            return false;
    }
    return s.n > 0 && s.n <= HOST_NAME_MAX_LEN && s.p[0] != '-';
}

static bool is_ipv6(struct span s)
{
    for (size_t i = 0; i < s.n; i++)
        if (s.p[i] == '\0' || strchr("0123456789abcdefABCDEF:.", s.p[i]) == NULL)
            return false;
    return s.n > 1 && s.n <= HOST_NAME_MAX_LEN;
}

int conf_join_parse(struct span text, char name[HOST_NAME_MAX_LEN + 1], uint16_t *port)
{
    const char *colon = text.n > 0 ? memrchr(text.p, ':', text.n) : NULL;
    struct span host, number;
    bool bracketed;
    uint64_t v;

    if (colon == NULL)
        return -EINVAL;
    host = (struct span){text.p, (size_t)(colon - text.p)};
    number = (struct span){colon + 1, text.n - host.n - 1};
    bracketed = host.n > 2 && host.p[0] == '[' && host.p[host.n - 1] == ']';
    if (bracketed)
        host = (struct span){host.p + 1, host.n - 2};
    if (num_u64(number, 1, UINT16_MAX, &v) < 0 || !(bracketed ? is_ipv6(host) : is_name(host)))
        return -EINVAL;
    memcpy(name, host.p, host.n);
    name[host.n] = '\0';
    *port = (uint16_t)v;
    return 0;
}

int set_join(struct loader *ld, const struct option *o, struct span text, struct err *err)
{
    char name[HOST_NAME_MAX_LEN + 1];
    uint16_t port;

    if (text.p != NULL && conf_join_parse(text, name, &port) < 0)
        return err_set(err, -EINVAL, "'%s' is not ADDR:PORT, such as hosta:7700, 10.1.2.3:7700 or [fd00::1]:7700",
                       quoted(text).text);
    return set_text(ld, o, text, err);
}

bool conf_joins(const struct conf *conf)
{
    return conf->action == ACTION_RUN && (conf->bootstrap == BOOT_K8S ? conf->node > 0 : conf->join != NULL);
}

static struct span base_of(struct span host, unsigned index)
{
    char end[16];
    size_t tail = (size_t)snprintf(end, sizeof(end), "-%u", index);

    if (host.n <= tail || !span_ends(host, end) || !is_name(host))
        return SPAN_NONE;
    return (struct span){host.p, host.n - tail};
}

struct span pod_base(const char *host, unsigned index)
{
    struct span base = base_of(span_of(host), index);
    const char *dot = strchr(host, '.');

    if (base.p != NULL || dot == NULL)
        return base;
    /* setHostnameAsFQDN: BASE-INDEX.SERVICE..., where we look for no other service than BASE */
    base = base_of((struct span){host, (size_t)(dot - host)}, index);
    if (base.p != NULL && (strncmp(dot + 1, base.p, base.n) != 0 || dot[1 + base.n] != '.'))
        return SPAN_NONE;
    return base;
}

/* --- by hand ---------------------------------------------------------------------------------------------------- */

/* What a node may say for itself; anything else typed would be thought to count. */
static int only_own(const struct conf *conf, struct err *err)
{
    static const char *const own[] = {"join",      "node",          "nodes",   "secret-file", "bootstrap",
                                      "interface", "start-timeout", "verbose", "quiet",       "port"};

    for (size_t i = 0; i < option_count; i++) {
        bool is_own = (options[i].flags & OPTION_LATER) != 0;

        for (size_t k = 0; k < ARRAY_SIZE(own); k++)
            is_own = is_own || strcmp(options[i].name, own[k]) == 0;
        if (is_own || !conf_is_typed(conf, options[i].name))
            continue;
        return err_set(err, -EINVAL, "%s and --join do not go together: the launcher says what is run, and how",
                       options[i].flags & OPTION_WORDS ? "COMMAND" : conf_values(conf, options[i].name)->v[0].where);
    }
    return 0;
}

static int by_hand(const struct conf *conf, struct err *err)
{
    if (conf->join == NULL)
        return conf->node < 0 ? 0 : err_set(err, -EINVAL, "--node is for --join=ADDR:PORT");
    if (conf->bootstrap != BOOT_AUTO && conf->bootstrap != BOOT_MANUAL)
        return err_set(err, -EINVAL,
                       "--join is for a launcher that was started with --bootstrap=manual, or for --bootstrap=k8s");
    if (conf->node < 0)
        return err_set(err, -EINVAL, "--join needs --node=N: which of the nodes this is, from 0");
    if (conf->nodes == 0)
        return err_set(err, -EINVAL, "--join needs --nodes=N: how many nodes the run has");
    if (conf->secret_file == NULL)
        return err_set(err, -EINVAL, "--join needs --secret-file=FILE, the same as the launcher's");
    if ((unsigned)conf->node >= conf->nodes)
        return err_set(err, -EINVAL, "--node=%d is not below --nodes=%u", conf->node, conf->nodes);
    return only_own(conf, err);
}

/* --- pods ------------------------------------------------------------------------------------------------------- */

/* Where nobody has said otherwise. */
static int set_default(struct loader *ld, const char *name, const char *text, const char *origin, struct err *err)
{
    const struct option *o = option_by_name(span_of(name));
    const struct conf_values *values = conf_values(ld->conf, name);
    struct source src = {LAYER_DEFAULT, origin, origin};

    if (values->count > 0 && values->v[values->count - 1].layer > LAYER_DEFAULT)
        return 0;
    return loader_set(ld, o, span_of(text), &src, err);
}

static int find_index(struct loader *ld, const char *text, struct err *err)
{
    const struct conf *conf = ld->conf;
    uint64_t index;

    if (conf->node >= 0)
        return err_set(err, -EINVAL, "--node is for --join by hand: a pod has its number in %s", INDEX_VARIABLE);
    if (text == NULL)
        return err_set(err, -EINVAL,
                       "--bootstrap=k8s is for the pods of an Indexed Job, and %s is not set "
                       "(completionMode: Indexed)",
                       INDEX_VARIABLE);
    if (num_u64(span_of(text), 0, NODES_MAX - 1, &index) < 0)
        return err_set(err, -EINVAL, "%s is '%s', which is no pod's number", INDEX_VARIABLE,
                       quoted(span_of(text)).text);
    if (index >= conf->nodes)
        return err_set(err, -EINVAL, "%s is %llu, but there are --nodes=%u: the Job's completions must be the same",
                       INDEX_VARIABLE, (unsigned long long)index, conf->nodes);
    return set_default(ld, "node", text, INDEX_VARIABLE, err);
}

/* Pods of an Indexed Job are called JOB-INDEX; the headless service that we look for has the Job's own name. */
static int find_launcher(struct loader *ld, struct err *err)
{
    struct conf *conf = ld->conf;
    char host[HOST_NAME_MAX_LEN + 1] = "", where[2 * HOST_NAME_MAX_LEN + 16];
    struct span base;

    (void)gethostname(host, sizeof(host) - 1);
    base = pod_base(host, (unsigned)conf->node);
    if (base.p != NULL && text_replace(&conf->pod_base, base) < 0)
        return err_set(err, -ENOMEM, "out of memory");
    if (base.p == NULL && conf->join == NULL && conf->node > 0)
        return err_set(err, -EINVAL,
                       "this pod's host name is '%s', which does not end in -%d (hostNetwork?): "
                       "say where pod 0 is with --join=NAME:PORT",
                       quoted(span_of(host)).text, conf->node);
    if (base.p == NULL)
        return 0;
    snprintf(where, sizeof(where), "%.*s-0.%.*s:%u", SPAN_FMT(base), SPAN_FMT(base), conf->port.low);
    return set_default(ld, "join", where, "the pod's host name", err);
}

static int as_pod(struct loader *ld, char *const *envp, struct err *err)
{
    struct conf *conf = ld->conf;
    int rc;

    if (conf_is_typed(conf, "hostlist") || conf_is_typed(conf, "hostfile"))
        return err_set(err, -EINVAL, "--bootstrap=k8s takes no hosts: its nodes are the pods of the Job");
    if (conf->secret_file == NULL)
        return err_set(err, -EINVAL,
                       "--bootstrap=k8s needs --secret-file=FILE, from a Secret that is mounted in every pod; "
                       "--new-secret=FILE makes one");
    if (conf->nodes == 0)
        return err_set(err, -EINVAL, "--bootstrap=k8s needs --nodes=N: the Job's completions");
    rc = find_index(ld, env_get(envp, INDEX_VARIABLE), err);
    return rc < 0 ? rc : find_launcher(ld, err);
}

int join_check(struct loader *ld, char *const *envp, struct err *err)
{
    struct conf *conf = ld->conf;
    int rc;

    if (conf->bootstrap != BOOT_K8S)
        return conf->action == ACTION_RUN ? by_hand(conf, err) : 0;
    rc = set_default(ld, "start-timeout", K8S_START_TIMEOUT, "default for k8s", err);
    if (rc == 0)
        rc = set_default(ld, "port", K8S_PORT, "default for k8s", err);
    return rc < 0 || conf->action != ACTION_RUN ? rc : as_pod(ld, envp, err);
}
