/* SPDX-License-Identifier: BSD-3-Clause */
/* program_find.h - where a program would be executed from */
#ifndef SERVER_PROGRAM_FIND_H
#define SERVER_PROGRAM_FIND_H

#include "common/err.h"

/* Where `name` would be executed from: as execvp() does with the PATH in `envp` (without one: "/bin:/usr/bin"),
 * relative names and relative or empty elements of PATH from `dir`, an absolute path. 0 and a fresh string; or -ENOENT,
 * -EACCES (there, but not executable), -EISDIR, -ENOTDIR, another errno of stat(), or -ENOMEM. `err` names the path. */
int program_find(const char *name, const char *dir, char *const *envp, char **path, struct err *err);

#endif
