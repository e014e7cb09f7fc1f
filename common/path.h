/* SPDX-License-Identifier: BSD-3-Clause */
/* path.h - paths of files */
#ifndef COMMON_PATH_H
#define COMMON_PATH_H

/* The same file for whoever stands in another directory: from "/" on, without "./" in front. Allocated; NULL where it
 * fails. 0, -ENOMEM, or what getcwd(3) says, as -ENOENT where this directory has been removed. */
int path_absolute(const char *path, char **out);

#endif
