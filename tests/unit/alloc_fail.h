/* SPDX-License-Identifier: BSD-3-Clause */
/* alloc_fail.h - the n-th allocation fails, in a program that is linked with --wrap (see tests.am)
 *
 * What the archives ask for counts, ours and those of the libraries; what the C library asks for itself does not, but
 * for copies of strings.
 */
#ifndef TESTS_UNIT_ALLOC_FAIL_H
#define TESTS_UNIT_ALLOC_FAIL_H

#include <stdbool.h>

/* The `nth` from now on (1: the next) fails, and with `on` all that follow; 0: none. */
void alloc_fail_at(unsigned nth, bool on);
/* Has one failed since? */
bool alloc_has_failed(void);
/* Blocks that are not freed. */
long alloc_blocks(void);

#endif
