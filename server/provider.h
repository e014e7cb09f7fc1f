/* SPDX-License-Identifier: BSD-3-Clause */
/* provider.h - the program as it runs on every node but the launcher's */
#ifndef SERVER_PROVIDER_H
#define SERVER_PROVIDER_H

#include "conf/conf.h"

/* Returns what the process exits with. Descriptors 0 to 2 are open. */
int provider_main(int argc, char **argv);
/* The same for one that nobody started but the user, or Kubernetes: it looks for its launcher, and ends as the run
 * does. */
int provider_join(const struct conf *conf);

#endif
