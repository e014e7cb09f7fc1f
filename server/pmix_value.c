/* SPDX-License-Identifier: BSD-3-Clause */
#include "config.h"
#ifdef HAVE_PMIX
#include "server/pmix_value.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "common/limits.h"
#include "common/util.h"
#include "server/pmix_pair.h"

/* --- values ----------------------------------------------------------------------------------------------------- */

/* Those whose bytes lie in the value itself. */
static const struct {
    pmix_data_type_t type;
    size_t size;
} plain[] = {
    {PMIX_BOOL, sizeof(bool)},
    {PMIX_BYTE, 1},
    {PMIX_SIZE, sizeof(size_t)},
    {PMIX_PID, sizeof(pid_t)},
    {PMIX_INT, sizeof(int)},
    {PMIX_INT8, 1},
    {PMIX_INT16, 2},
    {PMIX_INT32, 4},
    {PMIX_INT64, 8},
    {PMIX_UINT, sizeof(unsigned)},
    {PMIX_UINT8, 1},
    {PMIX_UINT16, 2},
    {PMIX_UINT32, 4},
    {PMIX_UINT64, 8},
    {PMIX_FLOAT, sizeof(float)},
    {PMIX_DOUBLE, sizeof(double)},
    {PMIX_TIMEVAL, sizeof(struct timeval)},
    {PMIX_STATUS, sizeof(pmix_status_t)},
    {PMIX_PROC_RANK, sizeof(pmix_rank_t)},
    {PMIX_PERSIST, 1},
    {PMIX_DATA_RANGE, 1},
};

static size_t plain_size(pmix_data_type_t type)
{
    for (size_t i = 0; i < ARRAY_SIZE(plain); i++)
        if (plain[i].type == type)
            return plain[i].size;
    return 0;
}

static int pack(pmix_data_type_t type, const void *p, size_t n, struct buf *out)
{
    int rc = buf_reserve(out, sizeof(type) + n);

    if (rc < 0)
        return rc;
    (void)buf_add(out, &type, sizeof(type));
    if (n > 0)
        (void)buf_add(out, p, n);
    return 0;
}

/* An element of an array. */
static size_t item_size(pmix_data_type_t type)
{
    return type == PMIX_PROC ? sizeof(pmix_proc_t) : plain_size(type);
}

/* The type of the elements, then these. */
static int pack_array(const pmix_data_array_t *a, struct buf *out)
{
    pmix_data_type_t type = PMIX_DATA_ARRAY;
    size_t size = a == NULL ? 0 : item_size(a->type);
    int rc;

    if (size == 0 || a->size > PMIX_BLOB_MAX / size || (a->size > 0 && a->array == NULL))
        return -ENOSYS;
    rc = buf_reserve(out, sizeof(type) + sizeof(a->type) + size * a->size);
    if (rc < 0)
        return rc;
    (void)buf_add(out, &type, sizeof(type));
    (void)buf_add(out, &a->type, sizeof(a->type));
    if (a->size > 0)
        (void)buf_add(out, a->array, size * a->size);
    return 0;
}

int pmix_value_pack(const pmix_value_t *v, struct buf *out)
{
    size_t n = plain_size(v->type);

    if (n > 0)
        return pack(v->type, &v->data, n, out);
    if (v->type == PMIX_STRING && v->data.string != NULL)
        return pack(v->type, v->data.string, strlen(v->data.string), out);
    if (v->type == PMIX_BYTE_OBJECT)
        return pack(v->type, v->data.bo.bytes, v->data.bo.size, out);
    if (v->type == PMIX_PROC && v->data.proc != NULL)
        return pack(v->type, v->data.proc, sizeof(*v->data.proc), out);
    if (v->type == PMIX_DATA_ARRAY)
        return pack_array(v->data.darray, out);
    return -ENOSYS;
}

static void *copy(struct span bytes)
{
    void *p = malloc(bytes.n + 1);

    if (p != NULL)
        memcpy(p, bytes.p, bytes.n);
    return p;
}

static int unpack_array(struct span bytes, pmix_value_t *v)
{
    pmix_data_array_t *a;
    pmix_data_type_t type;
    size_t size;

    if (bytes.n < sizeof(type))
        return -EPROTO;
    memcpy(&type, bytes.p, sizeof(type));
    bytes = (struct span){bytes.p + sizeof(type), bytes.n - sizeof(type)};
    size = item_size(type);
    if (size == 0 || bytes.n % size != 0)
        return -EPROTO;
    a = calloc(1, sizeof(*a));
    if (a == NULL || (a->array = copy(bytes)) == NULL) {
        free(a);
        return -ENOMEM;
    }
    a->type = type;
    a->size = bytes.n / size;
    v->data.darray = a;
    return 0;
}

static int unpack_proc(struct span bytes, pmix_value_t *v)
{
    if (bytes.n != sizeof(*v->data.proc))
        return -EPROTO;
    v->data.proc = copy(bytes);
    return v->data.proc == NULL ? -ENOMEM : 0;
}

int pmix_value_unpack(struct span bytes, pmix_value_t *v)
{
    pmix_data_type_t type;
    size_t n;

    memset(v, 0, sizeof(*v));
    if (bytes.n < sizeof(type))
        return -EPROTO;
    memcpy(&type, bytes.p, sizeof(type));
    bytes = (struct span){bytes.p + sizeof(type), bytes.n - sizeof(type)};
    n = plain_size(type);
    if (n > 0) {
        if (bytes.n != n)
            return -EPROTO;
        memcpy(&v->data, bytes.p, n);
    } else if (type == PMIX_STRING) {
        v->data.string = strndup(bytes.p, bytes.n);
        if (v->data.string == NULL)
            return -ENOMEM;
    } else if (type == PMIX_BYTE_OBJECT) {
        v->data.bo.bytes = (char *)(uintptr_t)bytes.p; /* it is only read */
        v->data.bo.size = bytes.n;
    } else {
        int rc = type == PMIX_PROC ? unpack_proc(bytes, v) : type == PMIX_DATA_ARRAY ? unpack_array(bytes, v) : -EPROTO;
        if (rc < 0)
            return rc;
    }
    v->type = type;
    return 0;
}

void pmix_value_drop(pmix_value_t *v)
{
    if (v->type == PMIX_STRING)
        free(v->data.string);
    else if (v->type == PMIX_PROC)
        free(v->data.proc);
    else if (v->type == PMIX_DATA_ARRAY) {
        free(v->data.darray->array);
        free(v->data.darray);
    }
    v->type = PMIX_UNDEF;
}

/* --- lists of infos --------------------------------------------------------------------------------------------- */

static pmix_value_t *add(struct pmix_infos *l, const char *key, pmix_data_type_t type)
{
    pmix_info_t *i;

    if (l->count == l->room) {
        size_t room = l->room == 0 ? 16 : 2 * l->room;

        i = realloc(l->v, room * sizeof(*i));
        if (i == NULL) {
            l->failed = -ENOMEM;
            return NULL;
        }
        l->v = i;
        l->room = room;
    }
    i = &l->v[l->count++];
    memset(i, 0, sizeof(*i));
    strncpy(i->key, key, sizeof(i->key) - 1);
    i->value.type = type;
    return &i->value;
}

void pmix_infos_str(struct pmix_infos *l, const char *key, const char *value)
{
    pmix_value_t *v = value == NULL ? NULL : add(l, key, PMIX_STRING);

    if (v != NULL)
        v->data.string = (char *)(uintptr_t)value; /* it is only read */
}

void pmix_infos_u32(struct pmix_infos *l, const char *key, uint32_t value)
{
    pmix_value_t *v = add(l, key, PMIX_UINT32);

    if (v != NULL)
        v->data.uint32 = value;
}

void pmix_infos_u16(struct pmix_infos *l, const char *key, uint32_t value)
{
    pmix_value_t *v = add(l, key, PMIX_UINT16);

    if (v != NULL)
        v->data.uint16 = value > UINT16_MAX ? UINT16_MAX : (uint16_t)value;
}

void pmix_infos_array(struct pmix_infos *l, const char *key, pmix_data_array_t *value)
{
    pmix_value_t *v = add(l, key, PMIX_DATA_ARRAY);

    if (v != NULL)
        v->data.darray = value;
}

void pmix_infos_bool(struct pmix_infos *l, const char *key, bool value)
{
    pmix_value_t *v = add(l, key, PMIX_BOOL);

    if (v != NULL)
        v->data.flag = value;
}

void pmix_infos_proc(struct pmix_infos *l, const char *key, pmix_proc_t *value)
{
    pmix_value_t *v = add(l, key, PMIX_PROC);

    if (v != NULL)
        v->data.proc = value;
}

void pmix_infos_rank(struct pmix_infos *l, const char *key, pmix_rank_t value)
{
    pmix_value_t *v = add(l, key, PMIX_PROC_RANK);

    if (v != NULL)
        v->data.rank = value;
}

int pmix_infos_unpack(struct pmix_infos *l, struct span pairs)
{
    struct pmix_pair p;
    pmix_value_t v, *to;
    char key[PMIX_MAX_KEYLEN + 1] = "";
    int rc;

    while ((rc = pmix_pair_next(&pairs, &p)) == 1) {
        if (p.key.n >= sizeof(key))
            return -EPROTO;
        memcpy(key, p.key.p, p.key.n);
        key[p.key.n] = '\0';
        if ((rc = pmix_value_unpack(p.value, &v)) < 0)
            return rc;
        to = add(l, key, v.type);
        if (to == NULL) {
            pmix_value_drop(&v);
            return -ENOMEM;
        }
        *to = v;
    }
    return rc;
}

void pmix_infos_done(struct pmix_infos *l)
{
    free(l->v);
    *l = (struct pmix_infos){0};
}

const pmix_info_t *pmix_infos_find(const pmix_info_t *v, size_t n, const char *key)
{
    for (size_t i = 0; v != NULL && i < n; i++)
        if (strncmp(v[i].key, key, sizeof(v[i].key)) == 0)
            return &v[i];
    return NULL;
}

bool pmix_infos_flag(const pmix_info_t *v, size_t n, const char *key)
{
    const pmix_info_t *i = pmix_infos_find(v, n, key);

    return i != NULL && (i->value.type != PMIX_BOOL || i->value.data.flag);
}

uint64_t pmix_infos_number(const pmix_info_t *v, size_t n, const char *key, uint64_t missing)
{
    const pmix_info_t *i = pmix_infos_find(v, n, key);

    if (i == NULL)
        return missing;
    switch (i->value.type) {
    case PMIX_INT:
    case PMIX_INT32:
        return i->value.data.int32 < 0 ? 0 : (uint64_t)i->value.data.int32;
    case PMIX_UINT8:
    case PMIX_PERSIST:
        return i->value.data.uint8;
    case PMIX_UINT:
    case PMIX_UINT32:
        return i->value.data.uint32;
    default:
        return missing;
    }
}
#endif
