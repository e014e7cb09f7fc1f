/* SPDX-License-Identifier: BSD-3-Clause */
/* option.h - the one table of options, and how a text becomes a checked field of struct conf
 *
 * The command line, PMI_START_*, the YAML files, --help and --print-config are all driven by it. Inside conf/ only.
 */
#ifndef CONF_OPTION_H
#define CONF_OPTION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "common/buf.h"
#include "common/err.h"
#include "common/span.h"
#include "conf/conf.h"

enum option_flag {
    OPTION_CMDLINE = 1 << 0,
    OPTION_FILE = 1 << 1,      /* a key of the YAML files, and PMI_START_<OPTION> */
    OPTION_BARE = 1 << 2,      /* on the command line the value may be left out; then it is `implied` */
    OPTION_LIST = 1 << 3,      /* values add up over all sources; a later one of the same name replaces the earlier */
    OPTION_WORDS = 1 << 4,     /* a list of words that a later source replaces whole */
    OPTION_PART = 1 << 5,      /* may also stand behind a `:` */
    OPTION_LATER = 1 << 6,     /* known, but not in this version: refused by name */
    OPTION_UNPRINTED = 1 << 7, /* a second spelling of another option, which --print-config shows instead */
    OPTION_ENDS = 1 << 8,      /* ends the reading of the command line, nothing else counts */
};

struct loader;

struct option_choice {
    const char *name; /* NULL ends the list */
    int value;        /* OPTION_CHOICE_LATER: refused by name */
};
#define OPTION_CHOICE_LATER (-1000)

struct option {
    const char *name;
    char letter; /* 0: none */
    unsigned flags;
    const char *meta;    /* what the value is, for --help; NULL: none */
    const char *implied; /* with OPTION_BARE */
    const char *initial; /* built-in default as text; NULL: unset */
    /* Check `text` and store it; p NULL: back to unset. What it says in `err` begins with the bad text. */
    int (*set)(struct loader *ld, const struct option *o, struct span text, struct err *err);
    size_t at; /* offset of the field in struct conf, where `set` is a generic one */
    int64_t min, max;
    const struct option_choice *choices;
    const char *help; /* NULL: not in --help */
};

/* Rows in the order of --help; `option_count` of them. */
extern const struct option options[];
extern const size_t option_count;

const struct option *option_by_name(struct span name); /* whole names only; NULL: none */
const struct option *option_by_letter(char letter);
/* The option that `name` was probably meant to be, or NULL. */
const struct option *option_nearest(struct span name);
/* What to use here instead of another launcher's option (a word without its dashes), or NULL. Static. */
const char *option_habit(struct span word);

/* Where a value comes from; the later wins. */
enum conf_layer { LAYER_DEFAULT, LAYER_ADMIN, LAYER_USER, LAYER_ENV, LAYER_CMDLINE };

struct conf_value {
    char *text;
    char *where;  /* goes before a message: "--nodes", "PMI_START_NODES", "FILE:3:8: nodes" */
    char *origin; /* for --print-config */
    enum conf_layer layer;
};

struct conf_values {
    struct conf_value *v;
    size_t count;
};

/* One list of values for each row of the table, at the row's index. */
struct conf_origins {
    struct conf_values *of;
};

/* A configuration while it is being put together. */
struct loader {
    struct conf *conf;      /* owned until loader_done() */
    struct conf_app common; /* env and env_none that hold for every part; argv unused */
    struct conf_app *part;  /* the part behind a `:` that is being read, or NULL; lent */
};

struct source {
    enum conf_layer layer;
    const char *where, *origin; /* lent for the call */
};

/* Defaults in force. 0 or -ENOMEM; loader_done() is due in any case. */
int loader_init(struct loader *ld);
void loader_done(struct loader *ld);
/* Set `o` to `text` (p NULL: back to its default) and note where that came from. -EINVAL with source->where in front.
 * */
int loader_set(struct loader *ld, const struct option *o, struct span text, const struct source *src, struct err *err);
/* Only note it, behind what is noted already. 0 or -ENOMEM. */
int loader_note(struct loader *ld, const struct option *o, struct span text, const struct source *src);
/* The values of the option `name` (which must exist); lent. */
const struct conf_values *conf_values(const struct conf *conf, const char *name);
void conf_values_clear(struct conf_values *values);
/* Was it said on this command line, so that it was meant for this run? */
bool conf_is_typed(const struct conf *conf, const char *name);

/* Read a YAML file's bytes; `name` is for messages. -EINVAL with "name:line:column: ..." */
int yaml_load(struct loader *ld, const char *name, struct span bytes, enum conf_layer layer, struct err *err);

/* A whole file, at most `max` bytes. 0 or negative errno; the text has no file name in it. */
int file_read(const char *path, size_t max, struct buf *out, struct err *err);

/* Make conf->hosts from the values of hostlist, hostfile and exclude, and from the allocation that `envp` tells of. */
int hosts_load(struct conf *conf, char *const *envp, struct err *err);

/* What --serve needs and what does not go together with it; then COMMAND is a single task here. 0 or -EINVAL. */
int serve_check(struct conf *conf, struct err *err);
/* The same for --join, and for k8s, where the pod's environment and host name say who we are. 0 or -EINVAL. */
int join_check(struct loader *ld, char *const *envp, struct err *err);
/* Is the pod `host`, of the name BASE-INDEX, that of this index? BASE, which points into `host`; else p NULL. */
struct span pod_base(const char *host, unsigned index);

/* conf_load() with another administrator's file (NULL: none). */
int conf_load_with(const char *admin_file, int argc, char *const *argv, char *const *envp, struct conf **out,
                   struct err *err);

/* Text as it may stand in a message: control bytes escaped, long text cut. For `quoted(s).text` inside one call. */
struct quoted {
    char text[128];
};
struct quoted quoted(struct span s);

void conf_app_done(struct conf_app *app);
/* Add or replace one -E. 0 or -ENOMEM. */
int conf_app_env(struct conf_app *app, struct span name, struct span value);

#endif
