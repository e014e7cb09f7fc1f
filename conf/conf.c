/* SPDX-License-Identifier: BSD-3-Clause */
/* conf.c - all sources, in order, into one checked struct conf */
#include "conf/conf.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "common/buf.h"
#include "common/strv.h"
#include "common/util.h"
#include "conf/cmdline.h"
#include "conf/option.h"

#define FILE_NAME "pmi-start.yaml"
#define FILE_BYTES_MAX (1u << 20)
#define ENV_PREFIX "PMI_START_"

static int out_of_memory(struct err *err)
{
    return err_set(err, -ENOMEM, "out of memory");
}

/* A file that is not there is no error; one that cannot be read is. */
static int load_file(struct loader *ld, const char *path, enum conf_layer layer, struct err *err)
{
    struct buf bytes;
    int rc;

    buf_init(&bytes, 0);
    rc = file_read(path, FILE_BYTES_MAX, &bytes, err);
    if (rc == -ENOENT || rc == -ENOTDIR)
        rc = 0;
    else if (rc < 0)
        err_prefix(err, "%s", path);
    else
        rc = yaml_load(ld, path, buf_span(&bytes), layer, err);
    buf_done(&bytes);
    return rc;
}

static int load_user_file(struct loader *ld, char *const *envp, struct err *err)
{
    const char *xdg = env_get(envp, "XDG_CONFIG_HOME"), *home = env_get(envp, "HOME");
    struct buf path;
    int rc = 0;

    buf_init(&path, 0);
    if (xdg != NULL && xdg[0] == '/') /* the XDG specification has a relative one ignored */
        rc = buf_printf(&path, "%s/pmi-start/" FILE_NAME, xdg);
    else if (home != NULL && home[0] != '\0')
        rc = buf_printf(&path, "%s/.config/pmi-start/" FILE_NAME, home);
    if (rc < 0 || buf_str(&path) == NULL)
        rc = out_of_memory(err);
    else if (path.len > 0)
        rc = load_file(ld, buf_str(&path), LAYER_USER, err);
    buf_done(&path);
    return rc;
}

/* `name` is what follows PMI_START_. */
static const struct option *option_by_variable(struct span name)
{
    char word[32];

    if (name.n == 0 || name.n > sizeof(word))
        return NULL;
    for (size_t i = 0; i < name.n; i++) {
        char c = name.p[i];

        if (c != '_' && (c < 'A' || c > 'Z') && (c < '0' || c > '9'))
            return NULL;
        word[i] = c == '_' ? '-' : (char)(c >= 'A' ? c - 'A' + 'a' : c);
    }
    return option_by_name((struct span){word, name.n});
}

/* A list has one entry a line, as entries may hold any other separator. */
static int set_lines(struct loader *ld, const struct option *o, struct span text, const struct source *src,
                     struct err *err)
{
    int rc = 0;

    while (rc == 0 && text.n > 0) {
        const char *nl = memchr(text.p, '\n', text.n);
        size_t n = nl ? (size_t)(nl - text.p) : text.n, step = n + (nl != NULL);

        if (n > 0)
            rc = loader_set(ld, o, (struct span){text.p, n}, src, err);
        text = (struct span){text.p + step, text.n - step};
    }
    return rc;
}

/* Kubernetes tells pods of all services of their namespace in variables: one that is called pmi-start, or pmi-start-x,
 * has PMI_START_SERVICE_HOST, PMI_START_PORT=tcp://10.0.0.1:80, PMI_START_X_PORT_80_TCP and more. */
static bool is_service_link(struct span name, const char *value)
{
    static const char *const parts[] = {"_SERVICE_HOST", "_SERVICE_PORT", "_TCP", "_UDP", "_SCTP"};

    for (size_t i = 0; i < ARRAY_SIZE(parts); i++)
        if (memmem(name.p, name.n, parts[i], strlen(parts[i])) != NULL)
            return true;
    return span_ends(name, "_PORT") && strstr(value, "://") != NULL;
}

static int load_variable(struct loader *ld, const char *entry, struct err *err)
{
    const char *eq = strchr(entry, '=');
    size_t n = eq ? (size_t)(eq - entry) : strlen(entry), prefix = strlen(ENV_PREFIX);
    const struct option *o = option_by_variable((struct span){entry + prefix, n - prefix});
    struct quoted name = quoted((struct span){entry, n});
    struct source src = {LAYER_ENV, name.text, name.text};

    if (eq == NULL || eq[1] == '\0' || is_service_link((struct span){entry, n}, eq + 1)) /* empty is as good as unset */
        return 0;
    if (o != NULL && !(o->flags & OPTION_FILE))
        return err_set(err, -EINVAL, "%s in the environment: --%s is for the command line only", name.text, o->name);
    if (o == NULL || (o->flags & OPTION_WORDS))
        return err_set(err, -EINVAL, "%s in the environment: there is no such option", name.text);
    if (o->flags & OPTION_LIST)
        return set_lines(ld, o, span_of(eq + 1), &src, err);
    return loader_set(ld, o, span_of(eq + 1), &src, err);
}

static int load_env(struct loader *ld, char *const *envp, struct err *err)
{
    int rc = 0;

    for (size_t i = 0; rc == 0 && envp != NULL && envp[i] != NULL; i++)
        if (strncmp(envp[i], ENV_PREFIX, strlen(ENV_PREFIX)) == 0)
            rc = load_variable(ld, envp[i], err);
    return rc;
}

static int load_given(struct loader *ld, const struct given *g, struct err *err)
{
    char where[64];

    if (g->by_letter)
        snprintf(where, sizeof(where), "-%c", g->option->letter);
    else
        snprintf(where, sizeof(where), "--%s", g->option->name);
    return loader_set(ld, g->option, span_of(g->text), &(struct source){LAYER_CMDLINE, where, "command line"}, err);
}

/* What stands in front of the first COMMAND holds for every part, but for -n. */
static int load_whole(struct loader *ld, const struct cmdline *cl, struct err *err)
{
    int rc = 0;

    for (size_t i = 0; rc == 0 && i < cl->given_count && cl->given[i].part == 0; i++)
        rc = load_given(ld, &cl->given[i], err);
    return rc;
}

static int start_app(const struct loader *ld, struct conf_app *app, struct err *err)
{
    const struct conf_app *common = &ld->common;
    int rc = 0;

    *app = (struct conf_app){.ntasks = -1, .env_none = common->env_none};
    ld->conf->app_count++;
    for (size_t i = 0; rc == 0 && i < common->env_count; i++) {
        struct conf_env *e = &common->env[i];

        rc = conf_app_env(app, span_of(e->name), e->value ? span_of(e->value) : SPAN_NONE);
    }
    return rc < 0 ? out_of_memory(err) : 0;
}

static int set_argv(struct conf_app *app, char *const *argv, size_t argc, struct err *err)
{
    int rc = 0;

    app->argv = calloc(argc + 1, sizeof(*app->argv));
    if (app->argv == NULL)
        return out_of_memory(err);
    for (; rc == 0 && app->argc < argc; app->argc++) {
        app->argv[app->argc] = strdup(argv[app->argc]);
        if (app->argv[app->argc] == NULL)
            return out_of_memory(err);
    }
    return 0;
}

/* Show the command line's COMMAND as the value of `command`. */
static int note_command(struct loader *ld, const struct given_part *part, struct err *err)
{
    static const struct source src = {LAYER_CMDLINE, "COMMAND", "command line"};
    const struct option *o = option_by_name(span_of("command"));
    int rc = 0;

    conf_values_clear(&ld->conf->origins->of[o - options]);
    for (size_t i = 0; rc == 0 && i < part->argc; i++)
        rc = loader_note(ld, o, span_of(part->argv[i]), &src);
    return rc < 0 ? out_of_memory(err) : 0;
}

static int load_parts(struct loader *ld, const struct cmdline *cl, struct err *err)
{
    struct conf *conf = ld->conf;
    int rc = 0;

    conf->app = calloc(cl->part_count, sizeof(*conf->app));
    if (conf->app == NULL)
        return out_of_memory(err);
    for (size_t i = 0; rc == 0 && i < cl->part_count; i++) {
        rc = start_app(ld, &conf->app[i], err);
        if (rc == 0)
            rc = set_argv(&conf->app[i], cl->part[i].argv, cl->part[i].argc, err);
    }
    for (size_t i = 0; rc == 0 && i < cl->given_count; i++) {
        if (cl->given[i].part == 0)
            continue;
        ld->part = &conf->app[cl->given[i].part];
        rc = load_given(ld, &cl->given[i], err);
        ld->part = NULL;
    }
    return rc < 0 ? rc : note_command(ld, &cl->part[0], err);
}

static int load_configured_command(struct loader *ld, struct err *err)
{
    const struct conf_values *words = conf_values(ld->conf, "command");
    struct conf *conf = ld->conf;
    char **argv = NULL;
    int rc;

    if (words->count == 0)
        return 0;
    if (words->v[0].text[0] == '\0')
        return err_set(err, -EINVAL, "%s: COMMAND is empty: ''", words->v[0].where);
    conf->app = calloc(1, sizeof(*conf->app));
    argv = calloc(words->count, sizeof(*argv));
    if (conf->app == NULL || argv == NULL) {
        free(argv);
        return out_of_memory(err);
    }
    for (size_t i = 0; i < words->count; i++)
        argv[i] = words->v[i].text;
    rc = start_app(ld, conf->app, err);
    if (rc == 0)
        rc = set_argv(conf->app, argv, words->count, err);
    free(argv);
    return rc;
}

/* A count of tasks: of one part, -n wherever it comes from; of several, the one typed in front of the first. */
static void share_ntasks(struct conf *conf)
{
    const struct conf_values *ntasks = conf_values(conf, "ntasks");

    if (conf->app_count == 0)
        return;
    if (conf->app_count == 1 || (ntasks->count > 0 && ntasks->v[0].layer == LAYER_CMDLINE))
        conf->app[0].ntasks = conf->ntasks;
    if (conf->app_count > 1)
        conf->ntasks = -1;
}

static int check_whole(const struct conf *conf, struct err *err)
{
    if (conf->action != ACTION_RUN)
        return 0;
    if (conf->app_count == 0 && (conf->bootstrap == BOOT_K8S || !conf_joins(conf)))
        return err_set(err, -EINVAL, "no COMMAND is given: pmi-start [OPTIONS] [--] COMMAND [ARG...], see --help");
    if (conf->bootstrap == BOOT_MANUAL && conf->secret_file == NULL)
        return err_set(err, -EINVAL, "--bootstrap=manual needs --secret-file=FILE; --new-secret=FILE makes one");
    return 0;
}

static int load_all(struct loader *ld, const char *admin_file, const struct cmdline *cl, char *const *envp,
                    struct err *err)
{
    int rc = admin_file != NULL ? load_file(ld, admin_file, LAYER_ADMIN, err) : 0;

    if (rc == 0)
        rc = load_user_file(ld, envp, err);
    if (rc == 0)
        rc = load_env(ld, envp, err);
    if (rc == 0)
        rc = load_whole(ld, cl, err);
    if (rc == 0)
        rc = cl->part[0].argc > 0 ? load_parts(ld, cl, err) : load_configured_command(ld, err);
    if (rc == 0)
        rc = join_check(ld, envp, err);
    if (rc == 0 && ld->conf->action != ACTION_NEW_SECRET && ld->conf->bootstrap != BOOT_K8S && !conf_joins(ld->conf))
        rc = hosts_load(ld->conf, envp, err);
    if (rc < 0)
        return rc;
    share_ntasks(ld->conf);
    rc = check_whole(ld->conf, err);
    return rc < 0 ? rc : serve_check(ld->conf, err);
}

/* --help and --version work whatever else is broken. */
static bool ends_early(const struct cmdline *cl)
{
    return cl->given_count > 0 && (cl->given[cl->given_count - 1].option->flags & OPTION_ENDS) != 0;
}

int conf_load_with(const char *admin_file, int argc, char *const *argv, char *const *envp, struct conf **out,
                   struct err *err)
{
    struct cmdline cl;
    struct loader ld = {0};
    int rc = cmdline_parse(&cl, argc, argv, err);

    if (rc == 0 && loader_init(&ld) < 0)
        rc = out_of_memory(err);
    if (rc == 0 && ends_early(&cl))
        rc = load_given(&ld, &cl.given[cl.given_count - 1], err);
    else if (rc == 0)
        rc = load_all(&ld, admin_file, &cl, envp, err);
    if (rc == 0) {
        *out = ld.conf;
        ld.conf = NULL;
    }
    loader_done(&ld);
    cmdline_done(&cl);
    return rc;
}

int conf_load(int argc, char *const *argv, char *const *envp, struct conf **out, struct err *err)
{
    return conf_load_with(SYSCONFDIR "/" FILE_NAME, argc, argv, envp, out, err);
}

static void free_origins(struct conf_origins *origins)
{
    for (size_t i = 0; origins != NULL && origins->of != NULL && i < option_count; i++)
        conf_values_clear(&origins->of[i]);
    if (origins != NULL)
        free(origins->of);
    free(origins);
}

void conf_free(struct conf *conf)
{
    if (conf == NULL)
        return;
    for (size_t i = 0; i < conf->app_count; i++)
        conf_app_done(&conf->app[i]);
    free(conf->app);
    for (size_t i = 0; i < conf->preput_count; i++) {
        free(conf->preput[i].key);
        free(conf->preput[i].value);
    }
    free(conf->preput);
    free(conf->serve);
    char *const texts[] = {conf->rsh_command,    conf->remote_path, conf->chdir,       conf->output,
                           conf->error,          conf->interface,   conf->secret_file, conf->new_secret,
                           conf->pmi_trace_file, conf->alloc_job,   conf->join,        conf->pod_base};
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
        free(texts[i]);
    hostlist_free(conf->hosts);
    free_origins(conf->origins);
    free(conf);
}
