/* SPDX-License-Identifier: BSD-3-Clause */
#include <criterion/criterion.h>
#include <errno.h>
#include "client/where.h"
#include "common/util.h"

#define VARS_MAX 6

static const struct {
    const char *name;
    const char *env[VARS_MAX];
    int rc;
    const char *says; /* part of the text where rc is negative */
} cases[] = {
    {"nothing at all", {"HOME=/", "PMIX_RANK=1"}, 0, NULL},
    {"a variable that only asks for a trace", {"PMI_DEBUG=1"}, 0, NULL},
    {"a rank without a server", {"PMI_RANK=0", "PMI_SIZE=2"}, -EINVAL, "neither PMI_FD nor PMI_PORT"},
    {"the variable is named", {"PMI_LOCAL_RANK=0"}, -EINVAL, "PMI_LOCAL_RANK is set but"},
    {"an empty PMI_FD is none", {"PMI_FD="}, -EINVAL, "neither PMI_FD nor PMI_PORT"},
    {"descriptor", {"PMI_FD=3", "PMI_RANK=0", "PMI_SIZE=2"}, 1, NULL},
    {"descriptor without a rank", {"PMI_FD=3", "PMI_SIZE=2"}, -EINVAL, "PMI_FD is set but not PMI_RANK"},
    {"descriptor without a size", {"PMI_FD=3", "PMI_RANK=1"}, -EINVAL, "PMI_FD is set but not PMI_SIZE"},
    {"a rank too high", {"PMI_FD=3", "PMI_RANK=2", "PMI_SIZE=2"}, -EINVAL, "PMI_RANK=2 is not below PMI_SIZE=2"},
    {"no number", {"PMI_FD=three", "PMI_RANK=0", "PMI_SIZE=2"}, -EINVAL, "PMI_FD=three: not a number"},
    {"a negative rank", {"PMI_FD=3", "PMI_RANK=-1", "PMI_SIZE=2"}, -EINVAL, "PMI_RANK=-1: not a number"},
    {"size 0", {"PMI_FD=3", "PMI_RANK=0", "PMI_SIZE=0"}, -EINVAL, "PMI_SIZE=0: not a number of 1 or more"},
    {"port and id", {"PMI_PORT=127.0.0.1:4000", "PMI_ID=7"}, 1, NULL},
    {"port and neither id nor rank", {"PMI_PORT=127.0.0.1:4000"}, -EINVAL, "not PMI_RANK, nor PMI_ID"},
    {"port and rank", {"PMI_PORT=127.0.0.1:4000", "PMI_RANK=1", "PMI_SIZE=2"}, 1, NULL},
    {"an id out of range", {"PMI_PORT=127.0.0.1:4000", "PMI_ID=4294967296"}, -EINVAL, "PMI_ID="},
};

Test(where, complete_or_said_what_is_missing)
{
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        char *env[VARS_MAX + 1] = {NULL};
        struct err err = {0};
        struct where w;

        for (size_t k = 0; k < VARS_MAX && cases[i].env[k] != NULL; k++)
            env[k] = (char *)(uintptr_t)cases[i].env[k];
        cr_expect_eq(where_read(env, &w, &err), cases[i].rc, "%s: %s", cases[i].name, err.text);
        if (cases[i].says != NULL)
            cr_expect_not_null(strstr(err.text, cases[i].says), "%s: %s", cases[i].name, err.text);
    }
}

static struct where read_ok(const char *const *vars)
{
    struct where w;

    cr_assert(where_read((char *const *)(uintptr_t)vars, &w, NULL) >= 0);
    return w;
}

Test(where, alone_is_rank_0_of_1)
{
    static const char *const vars[] = {NULL};
    struct where w = read_ok(vars);

    cr_expect(w.fd == -1 && w.port == NULL && w.id == -1 && w.rank == 0 && w.size == 1 && !w.spawned);
}

Test(where, the_descriptor_wins_over_the_port)
{
    static const char *const vars[] = {"PMI_FD=5",   "PMI_PORT=host:1", "PMI_ID=3", "PMI_RANK=1",
                                       "PMI_SIZE=4", "PMI_SPAWNED=1",   NULL};
    struct where w = read_ok(vars);

    cr_expect(w.fd == 5 && w.port == NULL && w.id == -1 && w.rank == 1 && w.size == 4 && w.spawned);
}

/* Of a socket of its own: none of anything else, and nothing that an init could fail of. */
Test(where, keys_to_map)
{
    static const char *const vars[] = {"PMI_FD=5", "PMI_RANK=1", "PMI_SIZE=4", "PMI_KVS_MAP=123456789012", NULL};
    static const char *const odd[] = {"PMI_FD=5", "PMI_RANK=1", "PMI_SIZE=4", "PMI_KVS_MAP=yes", NULL};
    static const char *const port[] = {"PMI_PORT=host:1", "PMI_ID=1", "PMI_KVS_MAP=12", NULL};

    cr_expect_eq(read_ok(vars).map, 123456789012);
    cr_expect_eq(read_ok(odd).map, 0);
    cr_expect_eq(read_ok(port).map, 0);
}

Test(where, the_port_comes_with_an_id)
{
    static const char *const vars[] = {"PMI_PORT=host:1", "PMI_ID=4294967295", NULL};
    struct where w = read_ok(vars);

    cr_expect(w.fd == -1 && strcmp(w.port, "host:1") == 0 && w.id == UINT32_MAX && w.rank == -1 && w.size == -1);
}
