/* SPDX-License-Identifier: BSD-3-Clause */
/* launcher_start.c - open the port, start the providers, follow who comes */
#include <stdlib.h>
#include <string.h>
#include "common/io/addrs.h"
#include "common/io/log.h"
#include "common/path.h"
#include "common/strv.h"
#include "common/util.h"
#include "server/boot_process.h"
#include "server/launcher_priv.h"
#include "server/process.h"
#include "server/program_find.h"
#include "server/secret.h"
#include "server/tree.h"

/* --- processes of the bootstrap --------------------------------------------------------------------------------- */

static int boot_spawn(uint32_t id, char *const *argv, char *const *envp, int *out_fd, int *err_fd, void *arg,
                      struct err *err)
{
    struct launcher *l = arg;
    struct spawn_req what = {.id = id, .argv = argv, .envp = envp};
    int rc = boot_process_spawn(l->spawner, &l->limits, &what, out_fd, err_fd, err);

    if (rc == 0)
        l->boot_running++;
    return rc;
}

static void boot_kill(uint32_t id, int sig, void *arg)
{
    struct launcher *l = arg;

    (void)spawner_kill(l->spawner, id, sig);
}

static void boot_on_key(uint32_t node, uint32_t run, uint32_t index, const char *key, void *arg)
{
    struct launcher *l = arg;

    (void)run;
    (void)index;
    if (l->tree != NULL)
        launcher_tree_key(l, node, key);
    else if (l->join != NULL && join_root_expect(l->join, node, key) < 0)
        root_start_failed(l->root, "out of memory");
}

static void boot_on_failed(const char *text, void *arg)
{
    struct launcher *l = arg;

    root_start_failed(l->root, text);
}

/* --- providers that come ---------------------------------------------------------------------------------------- */

static void on_joined(uint32_t node, bool attached, void *arg)
{
    struct launcher *l = arg;

    if (l->boot != NULL)
        boot_joined(l->boot, node, attached);
}

static void on_refused(uint32_t node, const char *reason, void *arg)
{
    struct launcher *l = arg;

    if (l->boot != NULL)
        boot_refused(l->boot, node, reason);
}

static void on_stranger(void *arg)
{
    struct launcher *l = arg;

    if (l->boot != NULL)
        boot_stranger(l->boot);
}

static void on_join_lost(uint32_t node, const struct err *why, void *arg)
{
    struct launcher *l = arg;

    root_node_lost(l->root, node, why->code < 0 ? why->text : "it closed the connection");
}

static void on_wired(void *arg)
{
    struct launcher *l = arg;

    root_wired(l->root, join_root_parents(l->join), join_root_nodes(l->join),
               l->plan->node_count - (l->plan->self >= 0) + 1);
}

static const struct join_root_ops join_ops = {
    .on_joined = on_joined,
    .on_refused = on_refused,
    .on_stranger = on_stranger,
    .on_lost = on_join_lost,
    .on_wired = on_wired,
};

/* --- start ------------------------------------------------------------------------------------------------------ */

static int make_addrs(struct launcher *l, struct err *err)
{
    if (l->plan->method != BOOT_LOCAL)
        return addrs_to_give(l->conf->interface, l->conf->hosts, &l->addrs, err);
    return strv_add(&l->addrs, "127.0.0.1") < 0 ? err_set(err, -ENOMEM, "out of memory") : 0;
}

bool launcher_by_secret(const struct launcher *l)
{
    return l->plan->method == BOOT_MANUAL || l->plan->method == BOOT_K8S;
}

static int make_ctx(struct launcher *l, struct err *err)
{
    if (launcher_by_secret(l))
        return secret_ctx(l->conf->secret_file, &l->ctx, err) < 0 ? -EINVAL : 0; /* bad use, whatever it is */
    return tls_ctx_new_cert(&l->ctx, NULL, err);
}

/* The nodes other than our own, in order. */
static uint32_t *other_nodes(const struct launcher *l, uint32_t *count)
{
    uint32_t *v = calloc(l->plan->node_count + 1u, sizeof(*v)), n = 0;

    for (uint32_t i = 0; v != NULL && i < l->plan->node_count; i++)
        if ((int32_t)i != l->plan->self)
            v[n++] = i;
    *count = n;
    return v;
}

/* Pods know our port from their own command line, so of a range it is the first. */
static uint16_t highest_port(const struct launcher *l)
{
    const struct conf_ports *port = &l->conf->port;

    return port->range && l->plan->method != BOOT_K8S ? port->high : port->low;
}

static int open_join(struct launcher *l, uint32_t *others, uint32_t count, struct err *err)
{
    const struct conf_ports *port = &l->conf->port;
    struct join_root_conf jc = {
        .interface = l->conf->interface,
        .port_low = port->given ? port->low : 0,
        .port_high = port->given ? highest_port(l) : 0,
        .loopback_only = l->plan->method == BOOT_LOCAL,
        .ctx = l->ctx,
        .by_secret = launcher_by_secret(l),
        .nodes = l->plan->node_count,
        .noun = l->plan->method == BOOT_K8S ? "pod" : "node",
        .providers = count,
        .node_of_index = others,
        .self = l->plan->self >= 0 ? (uint32_t)l->plan->self : TREE_NONE,
        .fanout = l->conf->fanout,
        .links = l->links,
    };

    return join_root_open(&l->loop, &jc, &join_ops, l, &l->join, err);
}

/* Relative to where we were started: the keeper, which executes it, is elsewhere. */
static int own_script(struct launcher *l, struct err *err)
{
    int rc = path_absolute(l->conf->rsh_command, &l->script);

    return rc < 0 ? err_set(err, rc, "--rsh-command=%s: %s", l->conf->rsh_command, strerror(-rc)) : 0;
}

static int find_script(struct launcher *l, struct err *err)
{
    if (l->conf->rsh_command != NULL)
        return own_script(l, err);
    return boot_process_script(l->self_path, &l->script) < 0 ? err_set(err, -ENOMEM, "out of memory") : 0;
}

static int find_srun(struct launcher *l, struct err *err)
{
    struct err why = {0};
    int rc = program_find("srun", "/", l->envp, &l->srun, &why);

    if (rc == 0)
        return 0;
    return err_set(err, rc == -ENOMEM ? rc : -EINVAL,
                   "job %s of Slurm: %s (--bootstrap=rsh logs in to the same hosts by ssh)", l->conf->alloc_job,
                   why.text);
}

/* What a manager starts itself it can count and end; where its agent is not there, or ssh is asked for by name, that it
 * is. OpenPBS's pbs_tmrsh is of no use: what it starts writes to the job's files, and no key line would come back.
 */
static const char *find_agent(const struct launcher *l)
{
    static const char *const agents[] = {[ALLOC_LSF] = "blaunch", [ALLOC_SGE] = "qrsh"};
    const char *name = l->conf->alloc < ARRAY_SIZE(agents) ? agents[l->conf->alloc] : NULL;
    char *path = NULL;

    if (name == NULL || l->conf->bootstrap != BOOT_AUTO || l->conf->rsh_command != NULL ||
        program_find(name, "/", l->envp, &path, NULL) < 0)
        return NULL;
    free(path);
    return name;
}

/* What is needed to start providers. */
static int find_means(struct launcher *l, struct err *err)
{
    int rc = process_self_path(&l->self_path, err);

    if (rc == 0)
        rc = l->plan->method == BOOT_SLURM ? find_srun(l, err) : find_script(l, err);
    l->agent = find_agent(l);
    return rc;
}

static int open_boot(struct launcher *l, struct err *err)
{
    l->boot_conf = (struct boot_conf){
        .conf = l->conf,
        .plan = l->plan,
        .addrs = l->addrs,
        .port = l->tree != NULL ? launcher_tree_port(l) : join_root_port(l->join),
        .key = tls_ctx_key(l->ctx),
        .self_path = l->self_path,
        .envp = l->envp,
        .script = l->script,
        .srun = l->srun,
        .agent = l->agent,
        .one_by_one = l->tree != NULL,
    };
    l->boot_ops = (struct boot_ops){.spawn = boot_spawn,
                                    .kill = boot_kill,
                                    .on_key = boot_on_key,
                                    .on_failed = boot_on_failed,
                                    .login_from = l->tree != NULL ? launcher_tree_login_from : NULL,
                                    .arg = l};
    return boot_open(&l->loop, &l->boot_conf, &l->boot_ops, &l->boot, err);
}

/* Are all logins as the same user, as far as the list says? A host that logs in to one without "user@" does so as the
 * user that it runs as itself. */
static bool is_one_user(const struct plan *plan)
{
    const struct plan_node *first = NULL;

    for (uint32_t i = 0; i < plan->node_count; i++) {
        const struct plan_node *n = &plan->node[i];

        if ((int64_t)i == plan->self)
            continue;
        if (first == NULL)
            first = n;
        if (n->host - n->login != first->host - first->login ||
            memcmp(n->login, first->login, (size_t)(n->host - n->login)) != 0)
            return false;
    }
    return true;
}

/* Where logins are not what starts providers, or are a manager's own, which only the job's first host may use, there is
 * no tree of them. */
static bool is_tree(const struct launcher *l)
{
    if (l->conf->rsh_tree < 0)
        return false;
    if (l->plan->method != BOOT_RSH || l->agent != NULL)
        log_info("--rsh-tree is for --bootstrap=rsh with ssh or a script of your own, ignoring it");
    else if (!is_one_user(l->plan))
        log_info("--rsh-tree is for hosts that are all logged in to as the same user, ignoring it");
    else
        return true;
    return false;
}

int launcher_start(struct launcher *l, struct err *err)
{
    uint32_t count, *others = other_nodes(l, &count);
    int rc;

    if (others == NULL)
        return err_set(err, -ENOMEM, "out of memory");
    if (count == 0) { /* nobody else: no port, no bootstrap */
        const uint32_t parent = TREE_NONE, node = (uint32_t)l->plan->self;

        free(others);
        root_wired(l->root, &parent, &node, 1);
        return 0;
    }
    rc = make_addrs(l, err);
    if (rc == 0)
        rc = make_ctx(l, err);
    if (rc == 0)
        rc = find_means(l, err);
    if (rc == 0)
        rc = is_tree(l) ? launcher_tree_open(l, others, count, err) : open_join(l, others, count, err);
    free(others);
    if (rc == 0)
        rc = open_boot(l, err);
    return rc < 0 || l->tree == NULL ? rc : launcher_tree_begin(l, err);
}

struct strangers launcher_stop_listening(struct launcher *l)
{
    if (l->tree != NULL)
        return launcher_tree_all_in(l);
    return l->join != NULL ? join_root_stop(l->join) : (struct strangers){0};
}

uint32_t launcher_waiting(struct launcher *l, struct buf *names)
{
    if (l->boot == NULL)
        return 0;
    boot_waiting_names(l->boot, names);
    return boot_waiting(l->boot);
}
