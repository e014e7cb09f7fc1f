/* SPDX-License-Identifier: BSD-3-Clause */
/* limit.h - the seconds that a unit test may take
 *
 * Far more than any of them needs: where the limit ends before a test's process has begun, as it may on a machine that
 * has much else to do, Criterion up to 2.4.1 waits for ever (its pull request 483); the Makefile's limit ends that.
 */
#ifndef TESTS_UNIT_LIMIT_H
#define TESTS_UNIT_LIMIT_H

#define TEST_LIMIT 120.0

#endif
