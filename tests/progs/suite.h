/* SPDX-License-Identifier: BSD-3-Clause */
/* suite.h - what pmi_suite and pmi2_suite have in common: checks, values, options */
#ifndef PROGS_SUITE_H
#define PROGS_SUITE_H

#include <stdbool.h>
#include <stddef.h>

#define SUITE_VALUE_ROOM 1100

extern const char *suite_name;
extern int suite_rank;

/* A check that fails says what it was and where, and ends the program with status 1. */
#define CHECK(what) suite_check((what), #what, __FILE__, __LINE__)
void suite_check(bool ok, const char *what, const char *file, int line);
/* `call` must return `want`. */
#define GIVES(want, call) suite_gives((want), (call), #call, __FILE__, __LINE__)
void suite_gives(int want, int got, const char *call, const char *file, int line);

/* Whether --NAME was among the arguments. */
bool suite_option(char **argv, const char *name);

/* The value of key `i` of `rank` in `round`: 24 to `max` - 1 bytes, with all the characters that
 * a launcher may trip over but those in `without`. */
void suite_value(char value[SUITE_VALUE_ROOM], int rank, int i, int round, int max, const char *without);

/* Run `child` in a forked process: it must return 0. */
void suite_in_child(int (*child)(void));

/* Run `work` in so many threads at once. */
void suite_in_threads(int count, void (*work)(int index));

#endif
