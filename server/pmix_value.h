/* SPDX-License-Identifier: BSD-3-Clause */
/* pmix_value.h - values and infos of PMIx, made and read by hand. Included by pmix_*.c alone */
#ifndef SERVER_PMIX_VALUE_H
#define SERVER_PMIX_VALUE_H

#include <pmix_common.h>
#include "common/buf.h"

/* A value as bytes for nodes that run the same library, and back. -ENOSYS: of a type that is no plain one. */
int pmix_value_pack(const pmix_value_t *v, struct buf *out);
/* `v` points into `bytes`, but for a text, a name of a process and an array, which it gets a fresh copy of. -EPROTO,
 * -ENOMEM. */
int pmix_value_unpack(struct span bytes, pmix_value_t *v);
void pmix_value_drop(pmix_value_t *v);

/* A list of infos; strings are lent. A failure to find room sticks, see `failed`. */
struct pmix_infos {
    pmix_info_t *v;
    size_t count, room;
    int failed;
};

void pmix_infos_str(struct pmix_infos *l, const char *key, const char *value); /* NULL: left out */
void pmix_infos_u32(struct pmix_infos *l, const char *key, uint32_t value);
void pmix_infos_u16(struct pmix_infos *l, const char *key, uint32_t value);
void pmix_infos_array(struct pmix_infos *l, const char *key, pmix_data_array_t *value); /* lent */
void pmix_infos_bool(struct pmix_infos *l, const char *key, bool value);
void pmix_infos_proc(struct pmix_infos *l, const char *key, pmix_proc_t *value);
void pmix_infos_rank(struct pmix_infos *l, const char *key, pmix_rank_t value);
/* Pairs of a peer's, added; each value is to be dropped. 0, -EPROTO or -ENOMEM, also amidst. */
int pmix_infos_unpack(struct pmix_infos *l, struct span pairs);
void pmix_infos_done(struct pmix_infos *l);

/* Of an array from the library: a flag that is given, and not false; a number, or `missing`. */
bool pmix_infos_flag(const pmix_info_t *v, size_t n, const char *key);
uint64_t pmix_infos_number(const pmix_info_t *v, size_t n, const char *key, uint64_t missing);
const pmix_info_t *pmix_infos_find(const pmix_info_t *v, size_t n, const char *key);

#endif
