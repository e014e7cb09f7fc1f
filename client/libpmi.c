/* SPDX-License-Identifier: BSD-3-Clause */
/* libpmi.c - pmi.h over client/pm.h: the process itself, its rank, its keys */
#include <string.h>
#include "client/lib.h"
#include "client/pmi.h"

const char lib_name[] = "libpmi";

int PMI_Init(int *spawned)
{
    struct pm *pm;
    int rc;

    if (spawned == NULL)
        return PMI_ERR_INVALID_ARG;
    rc = lib_init(false, &pm);
    if (rc != PMI_SUCCESS)
        return rc;
    *spawned = pm->spawned ? PMI_TRUE : PMI_FALSE;
    return lib_leave(PMI_SUCCESS, NULL);
}

int PMI_Initialized(PMI_BOOL *initialized)
{
    if (initialized == NULL)
        return PMI_ERR_INVALID_ARG;
    *initialized = lib_is_initialized() ? PMI_TRUE : PMI_FALSE;
    return PMI_SUCCESS;
}

int PMI_Finalize(void)
{
    return lib_finalize();
}

int PMI_Abort(int exit_code, const char error_msg[])
{
    lib_abort("PMI_Abort", exit_code, error_msg);
}

/* What the struct has as it is, read under the lock. */
static int get_field(int *out, int (*field)(const struct pm *pm))
{
    struct pm *pm;
    int rc = lib_enter(&pm);

    if (rc != PMI_SUCCESS)
        return rc;
    if (out == NULL)
        return lib_leave(PMI_ERR_INVALID_ARG, NULL);
    *out = field(pm);
    return lib_leave(PMI_SUCCESS, NULL);
}

static int size_of(const struct pm *pm)
{
    return pm->size;
}

static int rank_of(const struct pm *pm)
{
    return pm->rank;
}

static int name_max_of(const struct pm *pm)
{
    return pm->name_max;
}

static int key_max_of(const struct pm *pm)
{
    return pm->key_max;
}

static int value_max_of(const struct pm *pm)
{
    return pm->value_max;
}

int PMI_Get_size(int *size)
{
    return get_field(size, size_of);
}

int PMI_Get_rank(int *rank)
{
    return get_field(rank, rank_of);
}

int PMI_Get_id_length_max(int *length)
{
    return get_field(length, name_max_of);
}

int PMI_KVS_Get_name_length_max(int *length)
{
    return get_field(length, name_max_of);
}

int PMI_KVS_Get_key_length_max(int *length)
{
    return get_field(length, key_max_of);
}

int PMI_KVS_Get_value_length_max(int *length)
{
    return get_field(length, value_max_of);
}

/* What may have to be asked for. */
static int ask_int(int *out, int (*call)(struct pm *pm, int *out, struct err *err))
{
    struct err err = {0};
    struct pm *pm;
    int rc = lib_enter(&pm);

    if (rc != PMI_SUCCESS)
        return rc;
    if (out == NULL)
        return lib_leave(PMI_ERR_INVALID_ARG, NULL);
    return lib_leave(call(pm, out, &err), &err);
}

static int universe(struct pm *pm, int *n, struct err *err)
{
    return pm->ops->universe(pm, n, err);
}

static int clique_size(struct pm *pm, int *n, struct err *err)
{
    const int *ranks;

    return pm_clique(pm, &ranks, n, err);
}

int PMI_Get_universe_size(int *size)
{
    return ask_int(size, universe);
}

int PMI_Get_appnum(int *appnum)
{
    return ask_int(appnum, pm_appnum);
}

int PMI_Get_clique_size(int *size)
{
    return ask_int(size, clique_size);
}

int PMI_Get_clique_ranks(int ranks[], int length)
{
    struct err err = {0};
    const int *list;
    struct pm *pm;
    int rc = lib_enter(&pm), n;

    if (rc != PMI_SUCCESS)
        return rc;
    if (ranks == NULL)
        return lib_leave(PMI_ERR_INVALID_ARG, NULL);
    rc = pm_clique(pm, &list, &n, &err);
    if (rc == PMI_SUCCESS && length < n)
        rc = pm_fail(&err, PMI_ERR_INVALID_LENGTH, "room for %d ranks, of %d in the clique", length, n);
    if (rc == PMI_SUCCESS)
        memcpy(ranks, list, (size_t)n * sizeof(*ranks));
    return lib_leave(rc, &err);
}

/* The key space's name is the job's id as well. */
int PMI_KVS_Get_my_name(char kvsname[], int length)
{
    struct err err = {0};
    const char *name;
    struct pm *pm;
    int rc = lib_enter(&pm);

    if (rc != PMI_SUCCESS)
        return rc;
    if (kvsname == NULL)
        return lib_leave(PMI_ERR_INVALID_ARG, NULL);
    rc = pm_name(pm, &name, &err);
    if (rc == PMI_SUCCESS)
        rc = lib_copy(span_of(name), kvsname, length, &err);
    return lib_leave(rc, &err);
}

int PMI_Get_id(char id_str[], int length)
{
    return PMI_KVS_Get_my_name(id_str, length);
}

int PMI_Get_kvs_domain_id(char id_str[], int length)
{
    return PMI_KVS_Get_my_name(id_str, length);
}

/* The wire's own limits hold for a singleton too: what works alone shall work with a launcher. */
static int check_put(const char *key, const char *value, struct err *err)
{
    if (!pm_is_word(key))
        return pm_fail(err, PMI_ERR_INVALID_KEY, "the key '%.80s' is not one word, or has a '='", key);
    if (!pm_is_line(value))
        return pm_fail(err, PMI_ERR_INVALID_VAL, "the value for '%.80s' has a newline", key);
    return PMI_SUCCESS;
}

int PMI_KVS_Put(const char kvsname[], const char key[], const char value[])
{
    struct err err = {0};
    struct pm *pm;
    int rc = lib_enter(&pm);

    if (rc != PMI_SUCCESS)
        return rc;
    if (kvsname == NULL || key == NULL || value == NULL)
        return lib_leave(PMI_ERR_INVALID_ARG, NULL);
    rc = check_put(key, value, &err);
    if (rc == PMI_SUCCESS)
        rc = pm_put(pm, kvsname, key, value, &err);
    return lib_leave(rc, &err);
}

/* Puts are at the server already; others see them behind the next barrier. */
int PMI_KVS_Commit(const char kvsname[])
{
    struct pm *pm;
    int rc = lib_enter(&pm);

    return rc != PMI_SUCCESS ? rc : lib_leave(kvsname == NULL ? PMI_ERR_INVALID_ARG : PMI_SUCCESS, NULL);
}

int PMI_KVS_Get(const char kvsname[], const char key[], char value[], int length)
{
    struct err err = {0};
    struct span got;
    struct pm *pm;
    int rc = lib_enter(&pm);

    if (rc != PMI_SUCCESS)
        return rc;
    if (kvsname == NULL || key == NULL || value == NULL)
        return lib_leave(PMI_ERR_INVALID_ARG, NULL);
    rc = pm_get(pm, kvsname, key, &got, &err);
    if (rc == PMI_SUCCESS)
        rc = lib_copy(got, value, length, &err);
    return lib_leave(rc, &err);
}

int PMI_Barrier(void)
{
    struct err err = {0};
    struct pm *pm;
    int rc = lib_enter(&pm);

    return rc != PMI_SUCCESS ? rc : lib_leave(pm->ops->fence(pm, &err), &err);
}

/* No launcher has more than one key space for a process, or lets it list the keys. */
static int not_supported(void)
{
    struct pm *pm;
    int rc = lib_enter(&pm);

    return rc != PMI_SUCCESS ? rc : lib_leave(PMI_FAIL, NULL);
}

int PMI_KVS_Create(char kvsname[], int length)
{
    (void)kvsname, (void)length;
    return not_supported();
}

int PMI_KVS_Destroy(const char kvsname[])
{
    (void)kvsname;
    return not_supported();
}

int PMI_KVS_Iter_first(const char kvsname[], char key[], int key_len, char val[], int val_len)
{
    (void)kvsname, (void)key, (void)key_len, (void)val, (void)val_len;
    return not_supported();
}

int PMI_KVS_Iter_next(const char kvsname[], char key[], int key_len, char val[], int val_len)
{
    (void)kvsname, (void)key, (void)key_len, (void)val, (void)val_len;
    return not_supported();
}
