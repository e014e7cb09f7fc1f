/* SPDX-License-Identifier: BSD-3-Clause */
/* serve.c - --serve: its ranges, and what does not go together with it */
#include <stdlib.h>
#include <string.h>
#include "common/limits.h"
#include "conf/set.h"

static int add_range(struct conf *conf, struct span text)
{
    struct cidr one, *all;

    if (cidr_parse(text, &one) < 0)
        return -EINVAL;
    all = conf->serve_count == SERVE_RANGES_MAX ? NULL : realloc(conf->serve, (conf->serve_count + 1) * sizeof(*all));
    if (all == NULL)
        return -ENOMEM;
    conf->serve = all;
    all[conf->serve_count++] = one;
    return 0;
}

int set_serve(struct loader *ld, const struct option *o, struct span text, struct err *err)
{
    struct conf *conf = ld->conf;

    (void)o;
    conf->serve_count = 0;
    while (text.p != NULL) {
        const char *comma = text.n == 0 ? NULL : memchr(text.p, ',', text.n);
        struct span part = {text.p, comma == NULL ? text.n : (size_t)(comma - text.p)};
        int rc = add_range(conf, part);

        if (rc == -EINVAL)
            return err_set(err, rc, "'%s' is no IPv4 range; 10.1.0.0/16 or 10.1.2.3 would be one", quoted(part).text);
        if (rc < 0)
            return conf->serve_count < SERVE_RANGES_MAX
                       ? rc
                       : err_set(err, -EINVAL, "'%s' is one range too many", quoted(part).text);
        text = comma == NULL ? SPAN_NONE : (struct span){comma + 1, text.n - part.n - 1};
    }
    return 0;
}

/* What files and the environment say of where tasks run is for other runs: COMMAND is one task, and it runs here. */
static void stay_here(struct conf *conf)
{
    hostlist_free(conf->hosts);
    conf->hosts = NULL;
    conf->bootstrap = BOOT_LOCAL;
    conf->nodes = 0;
    conf->ppn = -1;
    conf->pmi_connect = CONNECT_NONE;
    conf->serve_size = (uint32_t)conf->ntasks;
    conf->ntasks = conf->app[0].ntasks = 1;
}

int serve_check(struct conf *conf, struct err *err)
{
    static const char *const others[] = {"hostlist", "hostfile", "exclude",     "nodes",
                                         "ppn",      "map",      "rsh-command", "pmi-connect"};

    if (conf->serve_count == 0 || conf->action != ACTION_RUN)
        return 0;
    for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
        if (conf_is_typed(conf, others[i]))
            return err_set(err, -EINVAL,
                           "--serve and --%s do not go together: COMMAND runs once, here, and starts the ranks itself",
                           others[i]);
    if (conf_is_typed(conf, "bootstrap") && conf->bootstrap != BOOT_AUTO && conf->bootstrap != BOOT_LOCAL)
        return err_set(err, -EINVAL, "--serve starts no providers: --bootstrap is for other runs");
    if (conf->app_count > 1)
        return err_set(err, -EINVAL, "--serve takes one COMMAND, not %zu with ':' between them", conf->app_count);
    if (conf->ntasks < 0)
        return err_set(err, -EINVAL, "--serve needs -n N: how many ranks will come");
    stay_here(conf);
    return 0;
}
