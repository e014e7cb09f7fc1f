/* SPDX-License-Identifier: BSD-3-Clause */
/* msg_check.h - is this msgpack, and all of it? Asked before a decoder sees bytes from a peer
 *
 * msgpack-c allocates by the counts that an array or a map declares, 24 and 48 bytes an element, before it has seen the
 * elements: five bytes could ask it for 100 GiB. Here one pass without an allocation holds every length and count
 * against the bytes that are really there, so that what is decoded afterwards is a small multiple of the body.
 */
#ifndef COMMON_MSG_CHECK_H
#define COMMON_MSG_CHECK_H

#include <stdbool.h>
#include "common/span.h"

#define MSG_DEPTH_MAX 8 /* levels, the outermost included */

/* Exactly one item, whole, with nothing behind it. */
bool msg_is_whole(struct span body);

#endif
