/* SPDX-License-Identifier: BSD-3-Clause */
/* advice.c - questions about a finished configuration that its owner asks when more is known */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include "common/limits.h"
#include "conf/option.h"

/* A name with each run of digits made one '#': h12.example and h7.example are of one kind. False: no digits, too long.
 * */
static bool kind_of(const char *name, char out[HOST_NAME_MAX_LEN + 1])
{
    bool digits = false;
    size_t n = 0;

    for (; *name != '\0'; name++) {
        bool digit = isdigit((unsigned char)*name);

        if (digit && n > 0 && out[n - 1] == '#')
            continue;
        if (n == HOST_NAME_MAX_LEN || *name == '#')
            return false;
        out[n++] = digit ? '#' : *name;
        digits = digits || digit;
    }
    out[n] = '\0';
    return digits;
}

bool conf_looks_like_unquoted_hosts(const struct conf *conf)
{
    const struct conf_values *list = conf_values(conf, "hostlist");
    char command[HOST_NAME_MAX_LEN + 1], host[HOST_NAME_MAX_LEN + 1];

    if (list->count == 0 || list->v[0].layer != LAYER_CMDLINE || conf->app_count == 0 || conf->hosts == NULL)
        return false;
    if (!kind_of(conf->app[0].argv[0], command))
        return false;
    for (size_t i = 0; i < hostlist_count(conf->hosts); i++)
        if (kind_of(hostlist_get(conf->hosts, i).name, host) && strcmp(host, command) == 0)
            return true;
    return false;
}

bool conf_is_loopback(const char *which)
{
    return strcmp(which, "localhost") == 0 || strcmp(which, "lo") == 0 || strncmp(which, "127.", 4) == 0 ||
           strcmp(which, "::1") == 0 || strcmp(which, "::1/128") == 0;
}

int conf_check_interface(const struct conf *conf, bool (*is_self)(const char *name), struct err *err)
{
    if (conf->interface == NULL || conf->hosts == NULL || !conf_is_loopback(conf->interface))
        return 0;
    for (size_t i = 0; i < hostlist_count(conf->hosts); i++) {
        const char *name = hostlist_get(conf->hosts, i).name;

        if (!is_self(name))
            return err_set(err, -EINVAL, "%s: '%s' is this machine's own loopback, host '%s' cannot reach it",
                           conf_values(conf, "interface")->v[0].where, quoted(span_of(conf->interface)).text,
                           quoted(span_of(name)).text);
    }
    return 0;
}
