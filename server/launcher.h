/* SPDX-License-Identifier: BSD-3-Clause */
/* launcher.h - the program as the user starts it: makes the parts, connects them, runs them, takes them down */
#ifndef SERVER_LAUNCHER_H
#define SERVER_LAUNCHER_H

/* Returns what the process exits with. Descriptors 0 to 2 are open. */
int launcher_main(int argc, char **argv, char **envp);

#endif
