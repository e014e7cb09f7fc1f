/* SPDX-License-Identifier: BSD-3-Clause */
/* pmi_conn.h - a blocking PMI-1 client on PMI_FD that reads its replies through one of the readers
 *
 * Whatever a real client would not survive ends the program with one line on standard error: status 90 where a reply
 * was refused, 91 where the connection ended.
 */
#ifndef PROGS_PMI_CONN_H
#define PROGS_PMI_CONN_H

#include "tests/progs/pmi_reader.h"

#define STATUS_REFUSED 90
#define STATUS_LOST 91

struct pmi {
    const struct reader *reader;
    int fd;                                  /* -1: closed, or there was none */
    int rank, size;                          /* from the environment; 0 and 1 without it */
    int kvsname_max, keylen_max, vallen_max; /* as the server said, terminator included */
    char kvsname[READER_LINE_MAX];
    char line[READER_LINE_MAX]; /* the last reply, no newline */
    char in[READER_LINE_MAX];   /* what came behind it */
    size_t used;
};

/* Take PMI_FD, PMI_RANK and PMI_SIZE; says nothing to the server yet. */
void pmi_open(struct pmi *p, const struct reader *reader);

/* init, get_maxes and get_my_kvsname. */
void pmi_init(struct pmi *p);

void pmi_close(struct pmi *p);

/* Write all of it. */
void pmi_send(struct pmi *p, const char *bytes, size_t len);

/* Read one line into p->line. */
void pmi_read_line(struct pmi *p);

/* Send a request (no newline), read its answer `reply` into p->line. Returns 0, or 1 where its rc reports a failure. */
int pmi_ask(struct pmi *p, const char *reply, const char *fmt, ...) __attribute__((format(printf, 3, 4)));

/* A field of the last reply; the program ends where it is missing. `out` has READER_LINE_MAX bytes. */
void pmi_field(struct pmi *p, const char *key, char *out);

/* End the program with `status`, and "pmi_client: rank R: ..." on standard error. */
void pmi_die(const struct pmi *p, int status, const char *fmt, ...) __attribute__((format(printf, 3, 4), noreturn));

#endif
