/* SPDX-License-Identifier: BSD-3-Clause */
/* conf.h - everything the user asked for, checked, in one const struct
 *
 * Made once at the start from built-in defaults, the administrator's file, the user's file, PMI_START_* and the command
 * line (the later wins). Nothing else in the program reads options or configuration files.
 */
#ifndef CONF_CONF_H
#define CONF_CONF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include "common/cidr.h"
#include "common/err.h"
#include "common/hostlist.h"

enum boot_method { BOOT_AUTO, BOOT_LOCAL, BOOT_RSH, BOOT_MANUAL, BOOT_SLURM, BOOT_K8S };
enum alloc_kind { ALLOC_NONE, ALLOC_SLURM, ALLOC_PBS, ALLOC_LSF, ALLOC_SGE, ALLOC_FLUX };
enum map_order { MAP_BLOCK, MAP_CYCLIC };
enum attach_mode { ATTACH_AUTO, ATTACH_YES, ATTACH_NO };
/* How tasks reach their provider; bits. Under --serve COMMAND does not, and its ranks come from elsewhere. */
enum pmi_connect { CONNECT_NONE = 0, CONNECT_FD = 1, CONNECT_PORT = 2, CONNECT_BOTH = 3, CONNECT_SERVE = 4 };
enum pmix_mode { PMIX_MODE_AUTO, PMIX_MODE_YES, PMIX_MODE_NO }; /* auto: where a program is seen to need it */
enum conf_action {
    ACTION_RUN,
    ACTION_PRINT_HOSTS,
    ACTION_PRINT_HOSTS_FOLDED,
    ACTION_PRINT_CONFIG,
    ACTION_NEW_SECRET,
    ACTION_HELP,
    ACTION_VERSION
};

#define INPUT_NONE (-1)
#define INPUT_ALL (-2)

/* One -E: NAME=VALUE sets, NAME alone takes the launcher's value (also under --env-none). */
struct conf_env {
    char *name;
    char *value; /* NULL: the launcher's own */
};

/* One `:` part of the command line. What was given for all parts (files, PMI_START_*, options in front of the first
 * COMMAND) is in each one's env and env_none already. */
struct conf_app {
    char **argv; /* NULL-terminated, never empty */
    size_t argc;
    int ntasks; /* -1: not given */
    struct conf_env *env;
    size_t env_count;
    bool env_none;
};

struct conf_preput {
    char *key, *value;
};

struct conf_ports {
    bool given;
    bool range; /* LOW-HIGH: holds for every listener of every process; else `low` is the launcher's */
    uint16_t low, high;
};

struct conf {
    enum conf_action action;
    enum boot_method bootstrap;
    struct hostlist *hosts; /* -H and -f joined, or an allocation's, less --exclude; NULL: none */
    enum alloc_kind alloc;  /* what all the hosts are an allocation of, as far as that has been asked for; */
    char *alloc_job;        /* its name for the job, or NULL */
    unsigned nodes;         /* --nodes; 0: not given */
    int node;               /* --node, or a pod's index; -1: not given */
    char *join;             /* "NAME:PORT", a launcher of which this process is to be a node, or NULL */
    char *pod_base;         /* k8s: a pod is called "BASE-INDEX"; NULL: that is not known */
    int ntasks;             /* -1: not given; where there are several apps it is -1, and each has its own */
    int ppn;                /* -1: not given */
    enum map_order map;
    char *rsh_command; /* NULL: the shipped script */
    unsigned rsh_fanout;
    int rsh_tree; /* -1: no; 0: as wide as `fanout`; else so many logins a host */
    enum attach_mode rsh_attach;
    char *remote_path; /* NULL: this program's own absolute path */
    uint64_t start_timeout_ms;
    uint64_t kill_grace_ms;
    uint64_t timeout_ms, barrier_warn_ms; /* 0: none, never */
    char *chdir;                          /* NULL: the launcher's directory */
    int input;                            /* a rank, INPUT_NONE or INPUT_ALL */
    bool keep_going, label, pty;
    char *output, *error; /* file patterns, or NULL */
    char *interface;      /* NAME, ADDR or CIDR, or NULL */
    struct conf_ports port;
    unsigned fanout;
    char *secret_file, *new_secret;
    struct conf_preput *preput;
    size_t preput_count;
    enum pmi_connect pmi_connect;
    struct cidr *serve;      /* whose peers are served as ranks; COMMAND is then one task that is none */
    size_t serve_count;      /* 0: no --serve */
    uint32_t serve_size;     /* ranks that are to come: what -n says there */
    unsigned pmi_subversion; /* 1 or 2 */
    enum pmix_mode pmix;
    bool pmi_trace;
    char *pmi_trace_file; /* NULL: standard error */
    int verbose;          /* -1 quiet, 0, 1, 2 */
    struct conf_app *app; /* at least one when action is ACTION_RUN */
    size_t app_count;
    struct conf_origins *origins; /* for --print-config; opaque */
};

/* `argv`, `envp`: the process's own. `*out` is owned by the caller. Returns 0 or a negative errno with one line in
 * `err` that quotes the bad text and says what would be right; the caller then exits 2. */
int conf_load(int argc, char *const *argv, char *const *envp, struct conf **out, struct err *err);
void conf_free(struct conf *conf);

/* Is this process to be a node of a run that another one launches? */
bool conf_joins(const struct conf *conf);

/* COMMAND was not found: does it look like a host of the list, as when a shell has expanded an unquoted h[1-2] into the
 * names of two files? Then the message hints at quotes. */
bool conf_looks_like_unquoted_hosts(const struct conf *conf);
/* Of --interface: the loopback interface, or an address of it. */
bool conf_is_loopback(const char *which);
/* -EINVAL where --interface is a loopback and some host is not this machine (as `is_self` says): it could never
 * connect. */
int conf_check_interface(const struct conf *conf, bool (*is_self)(const char *name), struct err *err);

/* The configuration in force as YAML that conf_load() would read, each line with "# origin"; a fresh string or NULL. */
char *conf_print(const struct conf *conf);
/* --help; static. */
const char *conf_help(void);

#endif
