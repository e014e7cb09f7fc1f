/* SPDX-License-Identifier: BSD-3-Clause */
/* libpmi2_more.c - pmi2.h over client/pm.h: attributes, names, new processes */
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include "client/lib.h"
#include "client/pmi2.h"
#include "client/spawn.h"
#include "common/num.h"

static int check_name(const char *name, struct err *err)
{
    if (*name == '\0')
        return pm_fail(err, PMI2_ERR_INVALID_KEY, "the attribute's name is empty");
    if (strlen(name) >= PMI2_MAX_KEYLEN)
        return pm_fail(err, PMI2_ERR_INVALID_KEY_LENGTH, "the attribute's name has more than %d bytes",
                       PMI2_MAX_KEYLEN - 1);
    return PMI2_SUCCESS;
}

/* Of the node or of the job. That there is none is no failure, but for a wait. */
static int get_attr(struct pm *pm, bool of_node, const char *name, bool wait, struct span *got, int *found,
                    struct err *err)
{
    int rc = check_name(name, err);

    if (rc != PMI2_SUCCESS)
        return rc;
    rc = of_node ? pm->ops->node_get(pm, name, wait, got, err) : pm->ops->job_get(pm, name, got, err);
    *found = rc == PMI2_SUCCESS;
    return rc == PMI2_ERR_INVALID_KEY && !wait ? PMI2_SUCCESS : rc;
}

static int attr_text(bool of_node, const char *name, char *value, int room, int *found, bool wait)
{
    struct err err = {0};
    struct span got;
    struct pm *pm;
    int rc = lib_enter(&pm), is_found = 0;

    if (rc != PMI2_SUCCESS)
        return rc;
    if (name == NULL || value == NULL)
        return lib_leave(PMI2_ERR_INVALID_ARG, NULL);
    rc = get_attr(pm, of_node, name, wait, &got, &is_found, &err);
    if (rc == PMI2_SUCCESS && is_found)
        rc = lib_copy(got, value, room, &err);
    if (rc == PMI2_SUCCESS && found != NULL)
        *found = is_found;
    return lib_leave(rc, &err);
}

/* "1,2,3"; at most `room` of them. */
static int parse_array(struct span list, int *array, int room, int *count)
{
    int n = 0;

    while (list.n > 0 && n < room) {
        const char *comma = memchr(list.p, ',', list.n);
        size_t len = comma != NULL ? (size_t)(comma - list.p) : list.n;
        int64_t v;

        if (num_i64((struct span){list.p, len}, INT_MIN, INT_MAX, &v) < 0)
            return -EINVAL;
        array[n++] = (int)v;
        len += comma != NULL;
        list = (struct span){list.p + len, list.n - len};
    }
    *count = n;
    return 0;
}

static int attr_array(bool of_node, const char *name, int *array, int room, int *count, int *found)
{
    struct err err = {0};
    struct span got;
    struct pm *pm;
    int rc = lib_enter(&pm), is_found = 0, n = 0;

    if (rc != PMI2_SUCCESS)
        return rc;
    if (name == NULL || array == NULL || room < 0)
        return lib_leave(PMI2_ERR_INVALID_ARG, NULL);
    rc = get_attr(pm, of_node, name, false, &got, &is_found, &err);
    if (rc == PMI2_SUCCESS && is_found && parse_array(got, array, room, &n) < 0)
        rc = pm_fail(&err, PMI2_FAIL, "the attribute '%s' is '%.*s', which is no list of numbers", name,
                     (int)(got.n < 80 ? got.n : 80), got.p);
    if (rc == PMI2_SUCCESS && count != NULL)
        *count = n;
    if (rc == PMI2_SUCCESS && found != NULL)
        *found = is_found;
    return lib_leave(rc, &err);
}

int PMI2_Info_GetNodeAttr(const char name[], char value[], int valuelen, int *found, int waitfor)
{
    return attr_text(true, name, value, valuelen, found, waitfor != 0);
}

int PMI2_Info_GetNodeAttrIntArray(const char name[], int array[], int arraylen, int *outlen, int *found)
{
    return attr_array(true, name, array, arraylen, outlen, found);
}

int PMI2_Info_GetJobAttr(const char name[], char value[], int valuelen, int *found)
{
    return attr_text(false, name, value, valuelen, found, false);
}

int PMI2_Info_GetJobAttrIntArray(const char name[], int array[], int arraylen, int *outlen, int *found)
{
    return attr_array(false, name, array, arraylen, outlen, found);
}

int PMI2_Info_PutNodeAttr(const char name[], const char value[])
{
    struct err err = {0};
    struct pm *pm;
    int rc = lib_enter(&pm);

    if (rc != PMI2_SUCCESS)
        return rc;
    if (name == NULL || value == NULL)
        return lib_leave(PMI2_ERR_INVALID_ARG, NULL);
    rc = check_name(name, &err);
    if (rc == PMI2_SUCCESS && strlen(value) >= PMI2_MAX_ATTRVALUE)
        rc = pm_fail(&err, PMI2_ERR_INVALID_VAL_LENGTH, "the attribute's value has more than %d bytes",
                     PMI2_MAX_ATTRVALUE - 1);
    if (rc == PMI2_SUCCESS)
        rc = pm->ops->node_put(pm, name, value, &err);
    return lib_leave(rc, &err);
}

int PMI2_Nameserv_publish(const char service_name[], const struct MPID_Info *info_ptr, const char port[])
{
    struct err err = {0};
    struct pm *pm;
    int rc = lib_enter(&pm);

    (void)info_ptr; /* no server wants it */
    if (rc != PMI2_SUCCESS)
        return rc;
    if (service_name == NULL || port == NULL)
        return lib_leave(PMI2_ERR_INVALID_ARG, NULL);
    return lib_leave(pm->ops->publish(pm, service_name, port, &err), &err);
}

int PMI2_Nameserv_lookup(const char service_name[], const struct MPID_Info *info_ptr, char port[], int portLen)
{
    struct err err = {0};
    struct span got;
    struct pm *pm;
    int rc = lib_enter(&pm);

    (void)info_ptr;
    if (rc != PMI2_SUCCESS)
        return rc;
    if (service_name == NULL || port == NULL)
        return lib_leave(PMI2_ERR_INVALID_ARG, NULL);
    rc = pm->ops->lookup(pm, service_name, &got, &err);
    if (rc == PMI2_SUCCESS)
        rc = lib_copy(got, port, portLen, &err);
    return lib_leave(rc, &err);
}

int PMI2_Nameserv_unpublish(const char service_name[], const struct MPID_Info *info_ptr)
{
    struct err err = {0};
    struct pm *pm;
    int rc = lib_enter(&pm);

    (void)info_ptr;
    if (rc != PMI2_SUCCESS)
        return rc;
    if (service_name == NULL)
        return lib_leave(PMI2_ERR_INVALID_ARG, NULL);
    return lib_leave(pm->ops->unpublish(pm, service_name, &err), &err);
}

static struct pm_pair info_at(const void *pairs, size_t i)
{
    const struct MPID_Info *p = pairs;

    return (struct pm_pair){p[i].key, p[i].value};
}

static struct pm_pair preput_at(const void *pairs, size_t i)
{
    const struct MPID_Info *const *p = pairs;

    return p[i] != NULL ? (struct pm_pair){p[i]->key, p[i]->value} : (struct pm_pair){NULL, NULL};
}

int PMI2_Job_Spawn(int count, const char *cmds[], int argcs[], const char **argvs[], const int maxprocs[],
                   const int info_keyval_sizes[], const struct MPID_Info *info_keyval_vectors[], int preput_keyval_size,
                   const struct MPID_Info *preput_keyval_vector[], char jobId[], int jobIdSize, int errors[])
{
    const struct spawn_args args = {
        .count = count,
        .cmds = cmds,
        .argcs = argcs,
        .argvs = argvs,
        .maxprocs = maxprocs,
        .ninfo = info_keyval_sizes,
        .info = (const void *const *)info_keyval_vectors,
        .npreput = preput_keyval_size,
        .preput = preput_keyval_vector,
        .info_at = info_at,
        .preput_at = preput_at,
    };

    return spawn_call(&args, jobId, jobIdSize, errors);
}
