/* SPDX-License-Identifier: BSD-3-Clause */
/* secret.h - the pre-shared key of --secret-file */
#ifndef SERVER_SECRET_H
#define SERVER_SECRET_H

#include "common/err.h"
#include "common/io/tls.h"

/* The file must be a regular one that only its owner can read, TLS_PSK_MIN..TLS_PSK_MAX bytes. The error names it. */
int secret_ctx(const char *path, struct tls_ctx **out, struct err *err);
/* Make a new one, mode 0600; a file that is there already is left alone (-EEXIST). */
int secret_make(const char *path, struct err *err);

#endif
