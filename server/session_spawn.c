/* SPDX-License-Identifier: BSD-3-Clause */
#include "server/session_spawn.h"

#include <stdlib.h>
#include "common/limits.h"
#include "common/num.h"
#include "common/pmi2.h"
#include "common/util.h"

#define UNSAID UINT64_MAX

enum item {
    TOTAL,
    SO_FAR,
    COMMAND, /* PMI-2: its program, and the beginning of a command */
    PROGRAM,
    NPROCS,
    ARG_COUNT,
    ARG,
    PREPUT_COUNT,
    PREPUT_KEY,
    PREPUT_VALUE,
    INFO_COUNT,
    INFO_KEY,
    INFO_VALUE,
};

struct key {
    const char *name;
    enum item item;
    bool is_numbered; /* a number follows */
    unsigned first;   /* and this is the lowest */
};

static const struct key keys1[] = {
    {"nprocs", NPROCS, false, 0},           {"execname", PROGRAM, false, 0},
    {"totspawns", TOTAL, false, 0},         {"spawnssofar", SO_FAR, false, 0},
    {"argcnt", ARG_COUNT, false, 0},        {"arg", ARG, true, 1},
    {"preput_num", PREPUT_COUNT, false, 0}, {"preput_key_", PREPUT_KEY, true, 0},
    {"preput_val_", PREPUT_VALUE, true, 0}, {"info_num", INFO_COUNT, false, 0},
    {"info_key_", INFO_KEY, true, 0},       {"info_val_", INFO_VALUE, true, 0},
};

static const struct key keys2[] = {
    {"ncmds", TOTAL, false, 0},     {"subcmd", COMMAND, false, 0},    {"maxprocs", NPROCS, false, 0},
    {"argc", ARG_COUNT, false, 0},  {"argv", ARG, true, 0},           {"preputcount", PREPUT_COUNT, false, 0},
    {"ppkey", PREPUT_KEY, true, 0}, {"ppval", PREPUT_VALUE, true, 0}, {"infokeycount", INFO_COUNT, false, 0},
    {"infokey", INFO_KEY, true, 0}, {"infoval", INFO_VALUE, true, 0},
};

static void refuse(struct spawn_parse *p, const char *why)
{
    if (p->refused == NULL)
        p->refused = why;
    spawn_want_done(&p->want);
}

static char *copy(struct spawn_parse *p, struct span s)
{
    char *text;

    if (++p->strings > SPAWN_STRINGS_MAX || s.n >= SPAWN_BYTES_MAX - p->bytes) {
        refuse(p, "too_big");
        return NULL;
    }
    p->bytes += (uint32_t)s.n + 1;
    text = malloc(s.n + 1);
    if (text == NULL) {
        refuse(p, "no_memory");
        return NULL;
    }
    if (s.n > 0)
        memcpy(text, s.p, s.n);
    text[s.n] = '\0';
    return text;
}

/* Room for one more behind `n`, and a NULL: doubled whenever n is a power of two. */
static bool grow(struct spawn_parse *p, char ***v, uint32_t n)
{
    char **bigger;

    if ((n & (n - 1)) != 0)
        return true;
    bigger = realloc(*v, (2u * n + 2u) * sizeof(**v));
    if (bigger == NULL) {
        refuse(p, "no_memory");
        return false;
    }
    *v = bigger;
    bigger[n] = NULL;
    return true;
}

static void append(struct spawn_parse *p, char ***v, uint32_t *n, struct span s)
{
    char *text;

    if (!grow(p, v, *n) || (text = copy(p, s)) == NULL)
        return;
    (*v)[(*n)++] = text;
    (*v)[*n] = NULL;
}

static struct spawn_cmd *current(struct spawn_parse *p)
{
    return &p->want.cmd[p->want.count - 1];
}

static void begin_command(struct spawn_parse *p)
{
    uint32_t n = p->want.count;
    struct spawn_cmd *cmd;

    p->cmds++;
    p->argsaid = p->infosaid = UNSAID;
    p->ninfo = 0;
    if (p->refused != NULL)
        return;
    if (n == SPAWN_CMDS_MAX) {
        refuse(p, "too_many_commands");
        return;
    }
    if ((n & (n - 1)) == 0) {
        cmd = realloc(p->want.cmd, (2u * n + 1u) * sizeof(*cmd));
        if (cmd == NULL) {
            refuse(p, "no_memory");
            return;
        }
        p->want.cmd = cmd;
    }
    cmd = &p->want.cmd[n];
    *cmd = (struct spawn_cmd){0};
    p->want.count++;
    /* The program's place, which PMI-1 may fill last. */
    if (grow(p, &cmd->argv, 0)) {
        cmd->argc = 1;
        cmd->argv[0] = cmd->argv[1] = NULL;
    }
}

static void end_command(struct spawn_parse *p)
{
    struct spawn_cmd *cmd;

    if (p->refused != NULL)
        return;
    cmd = current(p);
    if (cmd->argv[0] == NULL || cmd->argv[0][0] == '\0')
        refuse(p, "no_program");
    else if (cmd->nprocs == 0)
        refuse(p, "no_processes");
    else if ((p->argsaid != UNSAID && p->argsaid != cmd->argc - 1) || p->ninfo % 2 != 0 || p->npp % 2 != 0 ||
             (p->infosaid != UNSAID && p->infosaid != p->ninfo / 2) ||
             (p->takes_preput && p->ppsaid != UNSAID && p->ppsaid != p->npp / 2))
        refuse(p, "miscounted");
    else if ((p->tasks += cmd->nprocs) > TASKS_MAX)
        refuse(p, "too_many_processes");
    else {
        cmd->ninfo = p->ninfo / 2;
        p->want.npreput = p->npp / 2;
    }
}

static void set_program(struct spawn_parse *p, struct span value)
{
    char *text = copy(p, value);

    if (text == NULL)
        return;
    free(current(p)->argv[0]);
    current(p)->argv[0] = text;
}

/* String number `at` of a list: all come in order. */
static void take_pair(struct spawn_parse *p, char ***v, uint32_t *n, uint64_t at, struct span value)
{
    if (*n != at)
        refuse(p, "out_of_order");
    else
        append(p, v, n, value);
}

static void take_number(struct spawn_parse *p, enum item item, struct span value)
{
    uint64_t v;

    if (num_u64(value, 0, UINT32_MAX, &v) < 0) {
        refuse(p, "no_number");
        return;
    }
    if (item == TOTAL)
        p->total = v;
    else if (item == SO_FAR)
        p->so_far = v;
    else if (item == ARG_COUNT)
        p->argsaid = v;
    else if (item == INFO_COUNT)
        p->infosaid = v;
    else if (item == PREPUT_COUNT)
        p->ppsaid = p->takes_preput ? v : p->ppsaid;
    else if (v > TASKS_MAX)
        refuse(p, "too_many_processes");
    else if (p->refused == NULL)
        current(p)->nprocs = (uint32_t)v;
}

static void take_text(struct spawn_parse *p, enum item item, uint64_t index, struct span value)
{
    if (item == PREPUT_KEY || item == PREPUT_VALUE) {
        if (p->takes_preput)
            take_pair(p, &p->want.preput, &p->npp, 2 * index + (item == PREPUT_VALUE), value);
    } else if (item == INFO_KEY || item == INFO_VALUE) {
        take_pair(p, &current(p)->info, &p->ninfo, 2 * index + (item == INFO_VALUE), value);
    } else if (item == PROGRAM) {
        set_program(p, value);
    } else {
        take_pair(p, &current(p)->argv, &current(p)->argc, index + 1, value);
    }
}

static void take(struct spawn_parse *p, enum item item, uint64_t index, struct span value)
{
    bool is_number = item == TOTAL || item == SO_FAR || item == NPROCS || item == ARG_COUNT || item == PREPUT_COUNT ||
                     item == INFO_COUNT;

    if (item == COMMAND) {
        if (p->cmds > 0)
            end_command(p);
        begin_command(p);
        item = PROGRAM;
    }
    /* Of a PMI-2 request the preputs and the number of commands come ahead of the commands. */
    if (p->cmds == 0 && item != TOTAL && item != PREPUT_COUNT && item != PREPUT_KEY && item != PREPUT_VALUE)
        refuse(p, "out_of_order");
    if (p->refused != NULL && item != TOTAL && item != SO_FAR)
        return;
    if (is_number)
        take_number(p, item, value);
    else
        take_text(p, item, index, value);
}

/* What nobody knows is passed over. */
static void take_key(struct spawn_parse *p, const struct key *keys, size_t count, const struct pmi2_field *f)
{
    for (size_t i = 0; i < count; i++) {
        const struct key *k = &keys[i];
        size_t n = strlen(k->name);
        uint64_t number = k->first;

        if (!span_starts(f->key, k->name))
            continue;
        if (!k->is_numbered ? f->key.n != n
                            : num_u64((struct span){f->key.p + n, f->key.n - n}, 0, UINT32_MAX, &number) < 0)
            continue;
        if (number < k->first)
            refuse(p, "out_of_order");
        take(p, k->item, number - k->first, f->raw);
        return;
    }
}

static void finish(struct spawn_parse *p)
{
    if (p->cmds > 0)
        end_command(p);
    if (p->cmds == 0 || (p->total > 0 && p->total != p->cmds))
        refuse(p, "miscounted");
}

void spawn_parse_begin(struct spawn_parse *p)
{
    if (p->is_more)
        end_command(p);
    else
        spawn_parse_done(p);
    p->is_open = true;
    p->is_more = false;
    p->total = p->so_far = 0;
    p->takes_preput = p->npp == 0;
    p->ppsaid = UNSAID;
    begin_command(p);
}

bool spawn_parse_line(struct spawn_parse *p, struct span line)
{
    const char *eq = line.n == 0 ? NULL : memchr(line.p, '=', line.n);
    struct pmi2_field f;

    if (eq != NULL) {
        f.key = (struct span){line.p, (size_t)(eq - line.p)};
        f.raw = (struct span){eq + 1, line.n - f.key.n - 1};
        take_key(p, keys1, ARRAY_SIZE(keys1), &f);
        return false;
    }
    if (!span_is(line, "endcmd"))
        return false;
    p->is_open = false;
    p->is_more = (p->so_far > 0 ? p->so_far : p->cmds) < p->total;
    if (!p->is_more)
        finish(p);
    return !p->is_more;
}

void spawn_parse_frame(struct spawn_parse *p, struct span payload, struct buf *room)
{
    struct pmi2_field f;

    spawn_parse_done(p);
    p->takes_preput = true;
    p->ppsaid = UNSAID;
    while (pmi2_next(&payload, &f) > 0) {
        room->len = 0;
        if (f.raw.p == NULL)
            continue;
        if (pmi2_plain(f.raw, room, &f.raw) < 0)
            refuse(p, "no_memory");
        else
            take_key(p, keys2, ARRAY_SIZE(keys2), &f);
    }
    finish(p);
}

void spawn_parse_done(struct spawn_parse *p)
{
    spawn_want_done(&p->want);
    *p = (struct spawn_parse){0};
}
