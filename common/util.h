/* SPDX-License-Identifier: BSD-3-Clause */
/* util.h - the few macros everybody needs */
#ifndef COMMON_UTIL_H
#define COMMON_UTIL_H

#include <stddef.h>
#include <sys/param.h> /* MIN, MAX: uv.h includes it too */

#define ARRAY_SIZE(a) (sizeof(a) / sizeof((a)[0]))
#define CONTAINER_OF(ptr, type, member) ((type *)(void *)((char *)(ptr)-offsetof(type, member)))

#endif
