/* SPDX-License-Identifier: BSD-3-Clause */
/* program_libs.h - what shared libraries a program is linked with, by itself or by way of other libraries */
#ifndef SERVER_PROGRAM_LIBS_H
#define SERVER_PROGRAM_LIBS_H

#include <stdbool.h>

/* Whether `wanted` is true of the name of a library that the program at `path` needs, or that such a library needs, and
 * so on. They are looked for as the loader would with `env` (LD_LIBRARY_PATH), but for the folders that are set on this
 * machine alone (ld.so.conf); of what is not found, the name is all that is known. `direct`: the program itself says
 * so. */
bool program_needs(const char *path, char *const *env, bool (*wanted)(const char *name, bool direct));

#endif
