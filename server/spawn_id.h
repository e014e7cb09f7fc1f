/* SPDX-License-Identifier: BSD-3-Clause */
/* spawn_id.h - the ranges of the ids under which a node's processes run */
#ifndef SERVER_SPAWN_ID_H
#define SERVER_SPAWN_ID_H

#include <stdint.h>

/* Ids at and above this are the bootstrap's (BOOT_ID_BASE of bootstrap.h); those below are tasks. */
#define SPAWN_ID_KEPT 0x40000000u
/* Not an id: every task. */
#define SPAWN_ID_ALL UINT32_MAX

#endif
