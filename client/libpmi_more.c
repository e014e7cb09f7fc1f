/* SPDX-License-Identifier: BSD-3-Clause */
/* libpmi_more.c - pmi.h over client/pm.h: names, new processes, options */
#include <stdlib.h>
#include "client/lib.h"
#include "client/pmi.h"
#include "client/spawn.h"

int PMI_Publish_name(const char service_name[], const char port[])
{
    struct err err = {0};
    struct pm *pm;
    int rc = lib_enter(&pm);

    if (rc != PMI_SUCCESS)
        return rc;
    if (service_name == NULL || port == NULL)
        return lib_leave(PMI_ERR_INVALID_ARG, NULL);
    return lib_leave(pm->ops->publish(pm, service_name, port, &err), &err);
}

int PMI_Unpublish_name(const char service_name[])
{
    struct err err = {0};
    struct pm *pm;
    int rc = lib_enter(&pm);

    if (rc != PMI_SUCCESS)
        return rc;
    if (service_name == NULL)
        return lib_leave(PMI_ERR_INVALID_ARG, NULL);
    return lib_leave(pm->ops->unpublish(pm, service_name, &err), &err);
}

int PMI_Lookup_name(const char service_name[], char port[])
{
    struct err err = {0};
    struct span got;
    struct pm *pm;
    int rc = lib_enter(&pm);

    if (rc != PMI_SUCCESS)
        return rc;
    if (service_name == NULL || port == NULL)
        return lib_leave(PMI_ERR_INVALID_ARG, NULL);
    rc = pm->ops->lookup(pm, service_name, &got, &err);
    if (rc == PMI_SUCCESS)
        rc = lib_copy(got, port, pm->value_max, &err);
    return lib_leave(rc, &err);
}

static struct pm_pair pair_at(const void *pairs, size_t i)
{
    const PMI_keyval_t *p = pairs;

    return (struct pm_pair){p[i].key, p[i].val};
}

int PMI_Spawn_multiple(int count, const char *cmds[], const char **argvs[], const int maxprocs[],
                       const int info_keyval_sizesp[], const PMI_keyval_t *info_keyval_vectors[],
                       int preput_keyval_size, const PMI_keyval_t preput_keyval_vector[], int errors[])
{
    const struct spawn_args args = {
        .count = count,
        .cmds = cmds,
        .argvs = argvs,
        .maxprocs = maxprocs,
        .ninfo = info_keyval_sizesp,
        .info = (const void *const *)info_keyval_vectors,
        .npreput = preput_keyval_size,
        .preput = preput_keyval_vector,
        .info_at = pair_at,
        .preput_at = pair_at,
    };

    return spawn_call(&args, NULL, 0, errors);
}

/* There are no options of ours on anybody's command line: none is found, and none is taken away. */
int PMI_Parse_option(int num_args, char *args[], int *num_parsed, PMI_keyval_t **keyvalp, int *size)
{
    if (num_args < 0)
        return PMI_ERR_INVALID_NUM_ARGS;
    if (args == NULL)
        return PMI_ERR_INVALID_ARGS;
    if (num_parsed == NULL)
        return PMI_ERR_INVALID_NUM_PARSED;
    if (keyvalp == NULL)
        return PMI_ERR_INVALID_KEYVALP;
    if (size == NULL)
        return PMI_ERR_INVALID_SIZE;
    *num_parsed = 0;
    *keyvalp = NULL;
    *size = 0;
    return PMI_SUCCESS;
}

int PMI_Args_to_keyval(int *argcp, char *((*argvp)[]), PMI_keyval_t **keyvalp, int *size)
{
    if (argcp == NULL || argvp == NULL || keyvalp == NULL || size == NULL)
        return PMI_ERR_INVALID_ARG;
    *keyvalp = NULL;
    *size = 0;
    return PMI_SUCCESS;
}

int PMI_Free_keyvals(PMI_keyval_t keyvalp[], int size)
{
    return size < 0 || (size > 0 && keyvalp == NULL) ? PMI_ERR_INVALID_ARG : PMI_SUCCESS;
}

int PMI_Get_options(char *str, int *length)
{
    if (str == NULL || length == NULL)
        return PMI_ERR_INVALID_ARG;
    if (*length < 1)
        return PMI_ERR_INVALID_LENGTH;
    *str = '\0';
    *length = 1;
    return PMI_SUCCESS;
}
