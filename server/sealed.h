/* SPDX-License-Identifier: BSD-3-Clause */
/* sealed.h - a file in memory that this process alone can write, and others can only map to read */
#ifndef SERVER_SEALED_H
#define SERVER_SEALED_H

#include <stddef.h>

/* A new file of `size` bytes (sparse), whose length and contents nobody but the holder of `*base` can change. Returns
 * its descriptor, close-on-exec; the caller unmaps and closes. A negative errno: -EFBIG (over RLIMIT_FSIZE), -ENOSYS (a
 * kernel without such seals), or what memfd_create() and mmap() say. */
int sealed_open(const char *name, size_t size, void **base);

#endif
