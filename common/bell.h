/* SPDX-License-Identifier: BSD-3-Clause */
/* bell.h - one page in memory by which a node tells its tasks that a barrier is over, all of them by one system call
 *
 * The provider alone writes it; tasks map it read-only and sleep on `rings` (futex, shared). It is rung behind every
 * end of the job's plain barrier, WORLD of session set 0; `rounds` counts those that were complete. It never moves and
 * is there as long as the job is. Two processes of one machine: integers are the machine's.
 */
#ifndef COMMON_BELL_H
#define COMMON_BELL_H

#include <stdatomic.h>
#include <stdint.h>

#define BELL_MAGIC "pmibell" /* with its terminator 8 bytes */
#define BELL_SIZE 4096u      /* of the file */

struct bell {
    char magic[8];
    _Atomic(uint32_t) rings, rounds; /* both wrap round */
};

#endif
