/* SPDX-License-Identifier: BSD-3-Clause */
/* num.h - numbers in text, strict: no blanks, no sign unless said, the whole text, no overflow */
#ifndef COMMON_NUM_H
#define COMMON_NUM_H

#include <stdint.h>
#include "common/span.h"

/* Decimal digits only, min..max. 0, -EINVAL (not a number) or -ERANGE. `*out` is written on success only. */
int num_u64(struct span text, uint64_t min, uint64_t max, uint64_t *out);

/* The same with an optional leading '-'. */
int num_i64(struct span text, int64_t min, int64_t max, int64_t *out);

/* "250ms", "10s", "5m", "1h", "1.5s"; a bare number is seconds. Milliseconds, at most 10^12. 0, -EINVAL or -ERANGE. */
int num_duration_ms(struct span text, uint64_t *out_ms);

#endif
