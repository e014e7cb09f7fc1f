/* SPDX-License-Identifier: BSD-3-Clause */
/* session_rig.h - a job of one node for tests of sessions: its barriers, its names, and what each session said */
#ifndef TESTS_UNIT_SESSION_RIG_H
#define TESTS_UNIT_SESSION_RIG_H

#include "common/buf.h"
#include "common/limits.h"
#include "common/util.h"
#include "server/session.h"

#define RIG_MAX 8

struct rig_end {
    struct rig *rig;
    unsigned index;
    struct session *s;
    struct buf out;
};

struct rig {
    struct session_job job;
    unsigned n;
    struct rig_end end[RIG_MAX]; /* rank i on the first n; more are opened by rig_open() */
    struct barriers *barriers;
    struct buf traced;
    unsigned entered; /* barrier_in calls */
    int refuse_barrier, refuse_name, refuse_spawn, refuse_map;
    unsigned aborts, warnings, maps;
    int abort_code;
    char abort_text[64], warning[256];
    struct {
        char service[NAME_SERVICE_MAX + 1], port[NAME_PORT_MAX + 1];
    } names[4];
    bool hold_names; /* do not answer */
    unsigned spawns;
    uint32_t name_req, spawn_req; /* the last ones */
    struct spawn_want want;       /* the last one, through a message and back */
};

/* Bound sessions of ranks 0..n-1. */
void rig_init(struct rig *r, unsigned n);
void rig_done(struct rig *r);
/* A further session that nobody speaks for yet; returns its index. */
unsigned rig_open(struct rig *r);
int feed(struct rig *r, unsigned index, const char *text);
/* "cmd=...;" as a frame. */
int feed_frame(struct rig *r, unsigned index, const char *payload);
/* What it was answered since the last call; frames each on a line of its own, checked and without their length. */
const char *take(struct rig *r, unsigned index);
const char *take_frames(struct rig *r, unsigned index);

#endif
