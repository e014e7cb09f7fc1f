/* SPDX-License-Identifier: BSD-3-Clause */
/* script.h - a PMI server whose part was written in advance: replies wait in the socket, requests are read later */
#ifndef UNIT_SCRIPT_H
#define UNIT_SCRIPT_H

/* Make PMI_FD one end of a socket pair, whose other end has `replies` to read; rank 1 of 4. Returns our end. */
int script_start(const char *replies);

/* More replies. */
void script_say(int server, const char *replies);

/* The requests since the last look are exactly these. */
void script_expect(int server, const char *requests);

/* No PMI variable is set. */
void script_alone(void);

#endif
