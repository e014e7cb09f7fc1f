/* SPDX-License-Identifier: BSD-3-Clause */
/* provider.h - the program as a bootstrap starts it on another node */
#ifndef SERVER_PROVIDER_H
#define SERVER_PROVIDER_H

/* Returns what the process exits with. Descriptors 0 to 2 are open. */
int provider_main(int argc, char **argv);

#endif
