/* SPDX-License-Identifier: BSD-3-Clause */
/* pmi_acts.h - those steps of pmi_client that are no PMI: what a process may do to itself and to others */
#ifndef PROGS_PMI_ACTS_H
#define PROGS_PMI_ACTS_H

#include "tests/progs/pmi_conn.h"

/* A number of an argument; the program ends where it is none. */
int number(const struct pmi *p, const char *text);

void sleep_ms(int ms);

/* Steps. */
void do_signal(struct pmi *p, char **arg);
void do_deaf(struct pmi *p, char **arg);
void do_trap(struct pmi *p, char **arg);
void do_daemonize(struct pmi *p, char **arg);

#endif
