/* SPDX-License-Identifier: BSD-3-Clause */
/* libpmi2.c - pmi2.h over client/pm.h: the process itself, its job, its keys */
#include "client/pmi2.h"

#include <stdio.h>
#include <string.h>
#include "client/lib.h"

const char lib_name[] = "libpmi2";

int PMI2_Init(int *spawned, int *size, int *rank, int *appnum)
{
    struct err err = {0};
    struct pm *pm;
    int rc;

    if (spawned == NULL || size == NULL || rank == NULL || appnum == NULL)
        return PMI2_ERR_INVALID_ARG;
    rc = lib_init(true, &pm);
    if (rc != PMI2_SUCCESS)
        return rc;
    rc = pm_appnum(pm, appnum, &err);
    if (rc == PMI2_SUCCESS) {
        *spawned = pm->spawned;
        *size = pm->size;
        *rank = pm->rank;
    }
    return lib_leave(rc, &err);
}

int PMI2_Initialized(void)
{
    return lib_is_initialized();
}

int PMI2_Finalize(void)
{
    return lib_finalize();
}

/* PMI-2 has no exit status to give; every library ends with 255. */
int PMI2_Abort(int flag, const char msg[])
{
    (void)flag; /* no server can end one process of a job alone */
    lib_abort("PMI2_Abort", -1, msg);
}

int PMI2_Job_GetId(char jobid[], int jobid_size)
{
    struct err err = {0};
    const char *name;
    struct pm *pm;
    int rc = lib_enter(&pm);

    if (rc != PMI2_SUCCESS)
        return rc;
    if (jobid == NULL)
        return lib_leave(PMI2_ERR_INVALID_ARG, NULL);
    rc = pm_name(pm, &name, &err);
    if (rc == PMI2_SUCCESS)
        rc = lib_copy(span_of(name), jobid, jobid_size, &err);
    return lib_leave(rc, &err);
}

int PMI2_Job_GetRank(int *rank)
{
    struct pm *pm;
    int rc = lib_enter(&pm);

    if (rc != PMI2_SUCCESS)
        return rc;
    if (rank == NULL)
        return lib_leave(PMI2_ERR_INVALID_ARG, NULL);
    *rank = pm->rank;
    return lib_leave(PMI2_SUCCESS, NULL);
}

/* Of the processes on this node, as pmi2.h has it; Slurm's gives that of the job. */
int PMI2_Info_GetSize(int *size)
{
    struct err err = {0};
    const int *ranks;
    struct pm *pm;
    int rc = lib_enter(&pm);

    if (rc != PMI2_SUCCESS)
        return rc;
    if (size == NULL)
        return lib_leave(PMI2_ERR_INVALID_ARG, NULL);
    return lib_leave(pm_clique(pm, &ranks, size, &err), &err);
}

/* Works with no server there is. */
static int not_supported(void)
{
    struct pm *pm;
    int rc = lib_enter(&pm);

    return rc != PMI2_SUCCESS ? rc : lib_leave(PMI2_FAIL, NULL);
}

int PMI2_Job_Connect(const char jobid[], PMI2_Connect_comm_t *conn)
{
    (void)jobid, (void)conn;
    return not_supported();
}

int PMI2_Job_Disconnect(const char jobid[])
{
    (void)jobid;
    return not_supported();
}

int PMI2_KVS_Put(const char key[], const char value[])
{
    struct err err = {0};
    struct pm *pm;
    int rc = lib_enter(&pm);

    if (rc != PMI2_SUCCESS)
        return rc;
    if (key == NULL || value == NULL)
        return lib_leave(PMI2_ERR_INVALID_ARG, NULL);
    return lib_leave(pm_put(pm, NULL, key, value, &err), &err);
}

int PMI2_KVS_Fence(void)
{
    struct err err = {0};
    struct pm *pm;
    int rc = lib_enter(&pm);

    return rc != PMI2_SUCCESS ? rc : lib_leave(pm->ops->fence(pm, &err), &err);
}

/* As much as there is room for; `*vallen` is negative where that is not all. */
static void copy_cut(struct span got, char *value, int maxvalue, int *vallen)
{
    size_t n = got.n < (size_t)maxvalue ? got.n : (size_t)maxvalue - 1;

    memcpy(value, got.p, n);
    value[n] = '\0';
    *vallen = n == got.n ? (int)got.n : -(int)got.n;
}

int PMI2_KVS_Get(const char *jobid, int src_pmi_id, const char key[], char value[], int maxvalue, int *vallen)
{
    struct err err = {0};
    struct span got;
    struct pm *pm;
    int rc = lib_enter(&pm);

    (void)src_pmi_id; /* a hint */
    if (rc != PMI2_SUCCESS)
        return rc;
    if (key == NULL || value == NULL || vallen == NULL || maxvalue < 1)
        return lib_leave(PMI2_ERR_INVALID_ARG, NULL);
    rc = pm_get(pm, jobid != NULL && *jobid != '\0' ? jobid : NULL, key, &got, &err);
    if (rc == PMI2_SUCCESS)
        copy_cut(got, value, maxvalue, vallen);
    return lib_leave(rc, &err);
}

/* One value around a ring of all ranks: keys that no other call uses, and a fence. */
static int ring(struct pm *pm, const char *value, char *left, char *right, int room, struct err *err)
{
    char *const out[] = {left, right};
    char key[PMI2_MAX_KEYLEN];
    static unsigned round; /* under the lock */
    struct span got;
    int rc;

    round++;
    snprintf(key, sizeof(key), "PMIX_Ring-%u-%d", round, pm->rank);
    rc = pm_put(pm, NULL, key, value, err);
    if (rc == PM_OK)
        rc = pm->ops->fence(pm, err);
    for (int i = 0; rc == PM_OK && i < 2; i++) {
        int64_t from = ((int64_t)pm->rank + (i == 0 ? pm->size - 1 : 1)) % pm->size;

        snprintf(key, sizeof(key), "PMIX_Ring-%u-%d", round, (int)from);
        rc = pm_get(pm, NULL, key, &got, err);
        if (rc == PM_OK)
            rc = lib_copy(got, out[i], room, err);
    }
    return rc;
}

int PMIX_Ring(const char value[], int *rank, int *ranks, char left[], char right[], int maxvalue)
{
    struct err err = {0};
    struct pm *pm;
    int rc = lib_enter(&pm);

    if (rc != PMI2_SUCCESS)
        return rc;
    if (value == NULL || rank == NULL || ranks == NULL || left == NULL || right == NULL)
        return lib_leave(PMI2_ERR_INVALID_ARG, NULL);
    rc = ring(pm, value, left, right, maxvalue, &err);
    if (rc == PMI2_SUCCESS) {
        *rank = pm->rank;
        *ranks = pm->size;
    }
    return lib_leave(rc, &err);
}
