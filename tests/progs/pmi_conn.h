/* SPDX-License-Identifier: BSD-3-Clause */
/* pmi_conn.h - a blocking PMI client: PMI-1, the replies read through one of the readers, or PMI-2
 *
 * On PMI_FD; or on PMI_PORT where that is all there is. Where there are both, every other rank takes the port.
 * Whatever a real client would not survive ends the program with one line on standard error: status 90 where a reply
 * was refused, 91 where the connection ended.
 */
#ifndef PROGS_PMI_CONN_H
#define PROGS_PMI_CONN_H

#include <stdbool.h>

#include "tests/progs/pmi_reader.h"

#define STATUS_REFUSED 90
#define STATUS_LOST 91
#define STATUS_WRONG 92 /* the server's answers are well formed but not right */

struct pmi {
    const struct reader *reader;
    int fd;                                  /* -1: closed, or there was none */
    int id;                                  /* PMI_ID; -1 without it */
    bool two;                                /* speaks PMI-2 */
    bool lenient;                            /* a barrier that fails is the end of its use of PMI, and no mistake */
    int rank, size;                          /* from the environment or the server; 0 and 1 without them */
    int kvsname_max, keylen_max, vallen_max; /* as the server said, terminator included */
    char kvsname[READER_LINE_MAX];
    char line[READER_LINE_MAX]; /* the last reply, no newline */
    char in[READER_LINE_MAX];   /* what came behind it */
    size_t used;
};

/* Take PMI_FD, PMI_RANK, PMI_SIZE and PMI_ID; says nothing to the server yet. */
void pmi_open(struct pmi *p, const struct reader *reader);

/* Connect to PMI_PORT, where that is this rank's way. */
void pmi_dial(struct pmi *p);

/* init, get_maxes and get_my_kvsname. */
void pmi_init(struct pmi *p);

/* For so long, or until the server closes the connection, which ends the program. */
void pmi_hold(struct pmi *p, int ms);

void pmi_close(struct pmi *p);

/* Write all of it. */
void pmi_send(struct pmi *p, const char *bytes, size_t len);

/* Read one line into p->line. */
void pmi_read_line(struct pmi *p);

/* Send a request (no newline), read its answer `reply` into p->line. Returns 0, or 1 where its rc reports a failure. */
int pmi_ask(struct pmi *p, const char *reply, const char *fmt, ...) __attribute__((format(printf, 3, 4)));

/* A field of the last reply; the program ends where it is missing. `out` has READER_LINE_MAX bytes. */
void pmi_field(struct pmi *p, const char *key, char *out);

/* PMI-2's init and fullinit. */
void pmi2_init(struct pmi *p);

/* Send a frame as it is, and read one into p->line. */
void pmi2_raw(struct pmi *p, const char *body);

/* Like pmi_ask(); `fmt` is what stands behind the command's name. */
int pmi2_ask(struct pmi *p, const char *name, const char *fmt, ...) __attribute__((format(printf, 3, 4)));

/* A field of the last reply, up to its first semicolon; 0: it is not there. `out` has READER_LINE_MAX bytes. */
int pmi2_field(const struct pmi *p, const char *key, char *out);

/* End the program with `status`, and "pmi_client: rank R: ..." on standard error. */
void pmi_die(const struct pmi *p, int status, const char *fmt, ...) __attribute__((format(printf, 3, 4), noreturn));

#endif
