/* SPDX-License-Identifier: BSD-3-Clause */
#include "client/where.h"

#include <limits.h>
#include <string.h>
#include "common/num.h"
#include "common/strv.h"

static const char *get(char *const *env, const char *name)
{
    const char *value = env_get(env, name);

    return value != NULL && *value != '\0' ? value : NULL;
}

/* `*out` stays as it is where the variable is not set. */
static int number(char *const *env, const char *name, int64_t min, int64_t max, int64_t *out, struct err *err)
{
    const char *text = get(env, name);

    if (text == NULL || num_i64(span_of(text), min, max, out) == 0)
        return 0;
    return err_set(err, -EINVAL, "%s=%.80s: not a number of %lld or more", name, text, (long long)min);
}

/* Any variable that only a launcher sets. */
static const char *trace_of_launcher(char *const *env)
{
    for (; env != NULL && *env != NULL; env++)
        if (strncmp(*env, "PMI_", 4) == 0 && strncmp(*env, "PMI_DEBUG=", 10) != 0)
            return *env;
    return NULL;
}

static int no_server(char *const *env, struct err *err)
{
    const char *trace = trace_of_launcher(env);

    if (trace == NULL)
        return 0;
    return err_set(err, -EINVAL,
                   "%.*s is set but neither PMI_FD nor PMI_PORT: there is no PMI server to talk to. Start this program "
                   "with a PMI launcher, or without any PMI_ variable to have it run alone",
                   (int)strcspn(trace, "="), trace);
}

static int check_complete(const struct where *w, struct err *err)
{
    const char *via = w->fd >= 0 ? "PMI_FD" : "PMI_PORT";

    if (w->id >= 0)
        return 1;
    if (w->rank < 0 || w->size < 0)
        return err_set(err, -EINVAL, "%s is set but not %s%s", via, w->rank < 0 ? "PMI_RANK" : "PMI_SIZE",
                       w->fd >= 0 ? "" : ", nor PMI_ID");
    if (w->rank >= w->size)
        return err_set(err, -EINVAL, "PMI_RANK=%d is not below PMI_SIZE=%d", w->rank, w->size);
    return 1;
}

int where_read(char *const *env, struct where *w, struct err *err)
{
    int64_t fd = -1, id = -1, rank = -1, size = -1, spawned = 0, map = 0;
    int rc;

    if (number(env, "PMI_FD", 0, INT_MAX, &fd, err) < 0 || number(env, "PMI_ID", 0, UINT32_MAX, &id, err) < 0 ||
        number(env, "PMI_RANK", 0, INT_MAX, &rank, err) < 0 || number(env, "PMI_SIZE", 1, INT_MAX, &size, err) < 0 ||
        number(env, "PMI_SPAWNED", 0, INT_MAX, &spawned, err) < 0)
        return -EINVAL;
    /* It is only a hint: whatever else it may be, it is nothing to fail of. */
    (void)number(env, "PMI_KVS_MAP", 0, INT64_MAX, &map, NULL);
    struct where new = {
        .fd = (int)fd,
        .port = fd < 0 ? get(env, "PMI_PORT") : NULL,
        .job = get(env, "PMI_JOBID"),
        .id = fd < 0 ? id : -1,
        .rank = (int)rank,
        .size = (int)size,
        .spawned = spawned != 0,
        .map = fd >= 0 ? map : 0,
    };
    rc = new.fd < 0 && new.port == NULL ? no_server(env, err) : check_complete(&new, err);
    if (rc == 0)
        new = (struct where){.fd = -1, .id = -1, .rank = 0, .size = 1};
    if (rc >= 0)
        *w = new;
    return rc;
}
