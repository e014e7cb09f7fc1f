/* SPDX-License-Identifier: BSD-3-Clause */
#include "tests/unit/conf_helpers.h"
#include "common/util.h"

Test(conf, defaults)
{
    struct conf *c = good("pmi-start true");

    cr_expect_eq(c->action, ACTION_RUN);
    cr_expect_eq(c->bootstrap, BOOT_AUTO);
    cr_expect_null(c->hosts);
    cr_expect_eq(c->ntasks, -1);
    cr_expect_eq(c->ppn, -1);
    cr_expect_eq(c->nodes, 0);
    cr_expect_eq(c->rsh_fanout, 32);
    cr_expect_eq(c->fanout, 32);
    cr_expect_eq(c->start_timeout_ms, 60000);
    cr_expect_eq(c->timeout_ms, 0);
    cr_expect_eq(c->kill_grace_ms, 2000);
    cr_expect_eq(c->input, 0);
    cr_expect_eq(c->verbose, 0);
    cr_expect_eq(c->app_count, 1);
    cr_expect_eq(c->app[0].ntasks, -1);
    cr_expect_str_eq(c->app[0].argv[0], "true");
    cr_expect_null(c->app[0].argv[1]);
    conf_free(c);
}

Test(conf, numbers_and_texts)
{
    struct conf *c =
        good("pmi-start -n 7 --ppn 2 --nodes=3 -mcyclic --rsh-fanout=4096 --fanout=65536 --rsh-attach=no -klvv "
             "-C/tmp --output=o.%r.%h.%n%% -e x --port=1-65535 --interface=eth0 true -n 9");

    cr_expect_eq(c->ntasks, 7);
    cr_expect_eq(c->app[0].ntasks, 7);
    cr_expect_eq(c->ppn, 2);
    cr_expect_eq(c->nodes, 3);
    cr_expect_eq(c->map, MAP_CYCLIC);
    cr_expect_eq(c->rsh_fanout, 4096);
    cr_expect_eq(c->fanout, 65536);
    cr_expect_eq(c->rsh_attach, ATTACH_NO);
    cr_expect(c->keep_going && c->label);
    cr_expect_eq(c->verbose, 2);
    cr_expect_str_eq(c->chdir, "/tmp");
    cr_expect_str_eq(c->output, "o.%r.%h.%n%%");
    cr_expect_str_eq(c->interface, "eth0");
    cr_expect(c->port.given && c->port.range && c->port.low == 1 && c->port.high == 65535);
    cr_expect_eq(c->app[0].argc, 3, "what follows COMMAND is its own");
    conf_free(c);
}

static const struct {
    const char *line, *fragments[3];
} bad[] = {
    {"", {"no COMMAND"}},
    {"-n", {"'-n' needs a value: N"}},
    {"-n x true", {"-n: 'x' is not a number from 1 to"}},
    {"-n 0 true", {"'0'"}},
    {"-n -1 true", {"'-1'"}},
    {"--ntasks=1.5 true", {"--ntasks: '1.5'"}},
    {"--ppn=99999999999999999999 true", {"'99999999999999999999'"}},
    {"--rsh-fanout=0 true", {"1 to 4096"}},
    {"--rsh-fanout=4097 true", {"1 to 4096"}},
    {"--fanout=65537 true", {"1 to 65536"}},
    {"--port=0 true", {"'0'", "LOW-HIGH"}},
    {"--port=65536 true", {"'65536'"}},
    {"--port=9-8 true", {"'9-8'"}},
    {"--port=1- true", {"'1-'"}},
    {"--timeout=10x true", {"'10x'", "250ms"}},
    {"--start-timeout=0 true", {"too short"}},
    {"--bootstrap=ssh true", {"'ssh' is none of auto, local, rsh, manual, slurm, k8s"}},
    {"--bootstrap=slurm true", {"SLURM_JOB_ID is not set"}},
    {"--bootstrap=slurm -H a true", {"SLURM_JOB_ID is not set"}},
    {"--bootstrap=k8s true", {"--secret-file", "--new-secret"}},
    {"--bootstrap=k8s --secret-file=/s true", {"--nodes=N", "completions"}},
    {"--bootstrap=k8s --secret-file=/s --nodes=2 true", {"JOB_COMPLETION_INDEX is not set"}},
    {"--bootstrap=k8s --secret-file=/s --nodes=2 --node=1 true", {"--node is for --join by hand"}},
    {"--bootstrap=k8s --secret-file=/s --nodes=2 -H a true", {"takes no hosts"}},
    {"--bootstrap=manual true", {"--secret-file", "--new-secret"}},
    {"--map=x true", {"'x' is none of block, cyclic"}},
    {"--label=maybe true", {"'maybe' is neither yes nor no"}},
    {"--input=first true", {"'first' is neither a rank"}},
    {"--output=a%x true", {"'a%x'", "r (rank)"}},
    {"--output=a% true", {"'a%'"}},
    {"--chdir= true", {"''"}},
    {"--env==x true", {"'=x' has no name"}},
    {"--preput=a true", {"'a' has no '='"}},
    {"--preput==b true", {"the key is empty"}},
    {"--remote-path=/a;b true", {"'/a;b'", "letters"}},
    {"--print-hosts=x true", {"'x'", "folded"}},
    {"--print-config=x true", {"'x'"}},
    {"--no-such true", {"'--no-such'", "--help"}},
    {"--hostlsit=a true", {"did you mean --hostlist?"}},
    {"--start-timout=1 true", {"did you mean --start-timeout?"}},
    {"-Z true", {"'-Z'"}},
    {"-H f[1- true", {"f[1-"}},
    {"-H a,,b true", {"a,,b"}},
    {"-f /no/such/file true", {"-f", "'/no/such/file'", "No such file"}},
    {"-f /tmp true", {"-f", "'/tmp'", "directory"}},
    {"-H ^/no/such/file true", {"-H", "'/no/such/file'"}},
    {"-H a -x a true", {"leaves no host"}},
    {"-H a -x LD_LIBRARY_PATH true", {"'LD_LIBRARY_PATH'", "-E LD_LIBRARY_PATH"}},
    {"-H a -x FOO=bar true", {"'FOO=bar'", "-E FOO=bar"}},
    {"-x PATH true", {"'PATH'", "-E PATH"}},
    {"true :", {"part 2"}},
    {": true", {"part 1"}},
    {"true : : true", {"part 2"}},
    {"true : -l true", {"'-l'", "before the first COMMAND"}},
    {"true : -n x true", {"-n: 'x'"}},
    {"true : -np 2 true", {"-n N"}},
    {"--command=true", {"no option '--command=true'"}},
    /* later versions */
    {"--pmi-connect=sock true", {"--pmi-connect", "'sock'", "fd, port"}},
    {"-E PMI_RANK=3 true", {"PMI_RANK is set by pmi-start itself"}},
    {"--env=PWD true", {"PWD is set by pmi-start itself"}},
    {"--serve=10.0.0.0/8 true", {"--serve needs -n"}},
    {"--serve -n 2 true", {"--serve"}},
    {"--serve= -n 2 true", {"--serve", "''"}},
    {"--serve=10.0.0.1/8 -n 2 true", {"--serve", "'10.0.0.1/8'", "10.1.0.0/16"}},
    {"--serve=10.0.0.0/8,,10.1.2.3 -n 2 true", {"--serve", "''"}},
    {"--serve=10.0.0.0/8,::1 -n 2 true", {"--serve", "'::1'"}},
    {"--serve=host -n 2 true", {"--serve", "'host'"}},
    {"--serve=10.0.0.0/8 -n 2 -H a true", {"--serve", "--hostlist"}},
    {"--serve=10.0.0.0/8 -n 2 --nodes=2 true", {"--serve", "--nodes"}},
    {"--serve=10.0.0.0/8 -n 2 --ppn=2 true", {"--serve", "--ppn"}},
    {"--serve=10.0.0.0/8 -n 2 --pmi-connect=fd true", {"--serve", "--pmi-connect"}},
    {"--serve=10.0.0.0/8 -n 2 -b rsh true", {"--serve", "--bootstrap"}},
    {"--serve=10.0.0.0/8 -n 2 true : true", {"--serve", "one COMMAND"}},
    {"--pmi-subversion=3 true", {"--pmi-subversion", "'3'"}},
    {"--pmix=maybe true", {"--pmix", "'maybe' is none of"}},
    {"--barrier-warn=soon true", {"--barrier-warn", "'soon' is not a time"}},
    {"--join=h:1", {"--node=N"}},
    {"--join=h:1 --node=1", {"--nodes=N"}},
    {"--join=h:1 --node=1 --nodes=2", {"--secret-file=FILE"}},
    {"--join=h:1 --node=2 --nodes=2 --secret-file=/s", {"--node=2 is not below --nodes=2"}},
    {"--join=h:1 --node=1 --nodes=2 --secret-file=/s true", {"COMMAND and --join"}},
    {"--join=h:1 --node=1 --nodes=2 --secret-file=/s -n 2", {"-n and --join"}},
    {"--join=h:1 --node=1 --nodes=2 --secret-file=/s -H a", {"-H and --join"}},
    {"--join=h:1 --node=1 --nodes=2 --secret-file=/s -b rsh", {"--bootstrap=manual", "--bootstrap=k8s"}},
    {"--join=h --node=1", {"'h' is not ADDR:PORT"}},
    {"--join=:1 --node=1", {"':1' is not ADDR:PORT"}},
    {"--join=h:0 --node=1", {"'h:0' is not ADDR:PORT"}},
    {"--join=h:65536 --node=1", {"'h:65536'"}},
    {"--join=a:b:1 --node=1", {"'a:b:1'"}},
    {"--join=[g]:1 --node=1", {"'[g]:1'"}},
    {"--join=-h:1 --node=1", {"'-h:1'"}},
    {"--node=1 true", {"--node is for --join"}},
    {"--rsh-tree=0 true", {"--rsh-tree", "'0'", "from 1 to 65536, yes or no"}},
    {"--rsh-tree 2 true", {"'--rsh-tree 2'", "--rsh-tree=2"}},
    {"--pmi-rank=1 true", {"no option '--pmi-rank=1'"}},
    /* habits */
    {"-np 4 true", {"'-np'", "-n N"}},
    {"-ppn 4 true", {"'-ppn'", "--ppn"}},
    {"-N 4 true", {"'-N'", "--ppn=N"}},
    {"-hosts a,b true", {"'-hosts'", "-H HOSTS"}},
    {"-host a,b true", {"'-host'", "-H HOSTS"}},
    {"--host a,b true", {"'--host'", "-H HOSTS"}},
    {"-machinefile f true", {"-f FILE"}},
    {"-hostfile f true", {"--hostfile"}},
    {"-genv A 1 true", {"'-genv'", "-E NAME=VALUE"}},
    {"-env A 1 true", {"'-env'", "-E NAME=VALUE"}},
    {"-genvall true", {"'-genvall'", "leave it out"}},
    {"-wdir /tmp true", {"-C DIR"}},
    {"--oversubscribe true", {"leave it out"}},
    {"-bind-to core true", {"taskset"}},
    {"--bind-to core true", {"taskset"}},
    {"--map-by node true", {"--map"}},
    {"--mca btl tcp true", {"OMPI_MCA_"}},
    {"-timeout 5 true", {"did you mean --timeout?"}},
};

Test(conf, bad_command_lines)
{
    for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
        struct err err = {0};
        char line[256];
        struct conf *c;

        snprintf(line, sizeof(line), "pmi-start %s", bad[i].line);
        c = load_line(line, no_env, &err);
        cr_expect_null(c, "%s was accepted", line);
        for (size_t f = 0; c == NULL && f < ARRAY_SIZE(bad[i].fragments) && bad[i].fragments[f] != NULL; f++)
            cr_expect(strstr(err.text, bad[i].fragments[f]) != NULL, "%s: '%s' is not in: %s", line,
                      bad[i].fragments[f], err.text);
        cr_expect_null(strchr(err.text, '\n'));
        conf_free(c);
    }
}

Test(conf, serve_counts_ranks_that_come_and_runs_one_command)
{
    struct conf *conf = good("pmi-start -n 8 --serve=10.0.0.0/8,192.168.7.1 true");

    cr_expect_eq(conf->serve_count, 2);
    cr_expect_eq(conf->serve_size, 8);
    cr_expect_eq(conf->ntasks, 1);
    cr_expect_eq(conf->app[0].ntasks, 1);
    cr_expect_eq(conf->pmi_connect, CONNECT_NONE);
    cr_expect(cidr_has(&conf->serve[0], 0x0a010203));
    cr_expect_not(cidr_has(&conf->serve[0], 0x0b010203));
    cr_expect(cidr_has(&conf->serve[1], 0xc0a80701));
    conf_free(conf);
    conf = good("pmi-start -n 8 --serve=10.0.0.0/8 --serve=127.0.0.0/8 true");
    cr_expect_eq(conf->serve_count, 1, "the last wins");
    cr_expect(cidr_has(&conf->serve[0], 0x7f000001));
    conf_free(conf);
}

/* They are for all runs, and this one is said to be something else. */
Test(conf, serve_overrides_hosts_of_files)
{
    struct conf *conf = NULL;
    struct err err = {0};

    cr_assert_eq(
        load_yaml("hostlist: a,b\nppn: 2\nbootstrap: rsh\n", "pmi-start --serve=10.0.0.0/8 -n 2 true", &conf, &err), 0,
        "%s", err.text);
    cr_expect_null(conf->hosts);
    cr_expect_eq(conf->ppn, -1);
    cr_expect_eq(conf->bootstrap, BOOT_LOCAL);
    conf_free(conf);
}

Test(conf, preput_limits)
{
    char key[80], arg[1200], *argv[] = {(char *)"pmi-start", arg, (char *)"true", NULL};
    static const struct {
        size_t key, value;
        int rc;
    } cases[] = {{63, 1023, 0}, {64, 1, -EINVAL}, {1, 1024, -EINVAL}, {1, 0, 0}};

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct conf *c = NULL;
        char value[1100];

        memset(key, 'k', sizeof(key));
        memset(value, 'v', sizeof(value));
        snprintf(arg, sizeof(arg), "--preput=%.*s=%.*s", (int)cases[i].key, key, (int)cases[i].value, value);
        cr_expect_eq(load(argv, no_env, &c, NULL), cases[i].rc, "row %zu", i);
        cr_expect(cases[i].rc < 0 || strlen(c->preput[0].value) == cases[i].value);
        conf_free(c);
    }
    snprintf(arg, sizeof(arg), "--preput=a b=c");
    cr_expect_eq(load(argv, no_env, &(struct conf *){NULL}, NULL), -EINVAL);
    snprintf(arg, sizeof(arg), "--preput=a=c\nd");
    cr_expect_eq(load(argv, no_env, &(struct conf *){NULL}, NULL), -EINVAL);
}

Test(conf, last_one_wins)
{
    struct conf *c =
        good("pmi-start -n 1 -n 2 -l --label=no -H a -H b,c --timeout=1 --timeout=0 -q -v -E A=1 -E B -E A=2 x");

    cr_expect_eq(c->ntasks, 2);
    cr_expect_not(c->label);
    cr_expect_eq(hostlist_count(c->hosts), 2);
    cr_expect_eq(c->timeout_ms, 0);
    cr_expect_eq(c->verbose, 1);
    cr_expect_eq(c->app[0].env_count, 2);
    cr_expect_str_eq(c->app[0].env[0].value, "2");
    cr_expect_null(c->app[0].env[1].value);
    conf_free(c);
}

Test(conf, verbosity)
{
    static const struct {
        const char *line;
        int verbose;
    } cases[] = {{"x", 0}, {"-v", 1}, {"-vv", 2}, {"-vvv", 2}, {"-q", -1}, {"-v -q", -1}, {"-v --verbose", 2}};

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        char line[64];
        struct conf *c;

        snprintf(line, sizeof(line), "pmi-start %s true", cases[i].line);
        c = good(line);
        cr_expect_eq(c->verbose, cases[i].verbose, "%s", line);
        conf_free(c);
    }
}

Test(conf, parts)
{
    struct conf *c = good("pmi-start -n 1 -E A=1 one x : -n 2 -E A=2 -E B=3 two : --env-none three");

    cr_expect_eq(c->app_count, 3);
    cr_expect_eq(c->ntasks, -1);
    cr_expect_eq(c->app[0].ntasks, 1);
    cr_expect_eq(c->app[1].ntasks, 2);
    cr_expect_eq(c->app[2].ntasks, -1);
    cr_expect_eq(c->app[0].argc, 2);
    cr_expect_str_eq(c->app[1].argv[0], "two");
    cr_expect_eq(c->app[0].env_count, 1);
    cr_expect_eq(c->app[1].env_count, 2);
    cr_expect_str_eq(c->app[1].env[0].value, "2");
    cr_expect_str_eq(c->app[2].env[0].value, "1", "what stands first holds for all");
    cr_expect(c->app[2].env_none && !c->app[1].env_none);
    conf_free(c);
}

Test(conf, colon_behind_dashes_is_an_argument)
{
    struct conf *c = good("pmi-start -n 2 -- echo a : b");

    cr_expect_eq(c->app_count, 1);
    cr_expect_eq(c->app[0].argc, 4);
    conf_free(c);
    c = good("pmi-start git log -- : x");
    cr_expect_eq(c->app_count, 1);
    cr_expect_str_eq(c->app[0].argv[2], "--");
    conf_free(c);
    c = good("pmi-start -- -odd");
    cr_expect_str_eq(c->app[0].argv[0], "-odd");
    conf_free(c);
}

Test(conf, actions)
{
    static const struct {
        const char *line;
        enum conf_action action;
    } cases[] = {
        {"--help", ACTION_HELP},
        {"-n 1 -h", ACTION_HELP},
        {"--version --bogus", ACTION_VERSION},
        {"--print-config", ACTION_PRINT_CONFIG},
        {"--print-hosts -H a", ACTION_PRINT_HOSTS},
        {"--print-hosts=folded -H a", ACTION_PRINT_HOSTS_FOLDED},
        {"--new-secret=f", ACTION_NEW_SECRET},
        {"true --help", ACTION_RUN},
    };

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        char line[64];
        struct conf *c;

        snprintf(line, sizeof(line), "pmi-start %s", cases[i].line);
        c = good(line);
        cr_expect_eq(c->action, cases[i].action, "%s", line);
        conf_free(c);
    }
}

Test(conf, hosts_from_lists_and_files)
{
    char line[200];
    const char *path = temp_file("# mine\r\n\r\nb1 slots=4\r\nb2:3  \nb[3-4]");
    struct conf *c;

    snprintf(line, sizeof(line), "pmi-start -H a[1-2] -f %s -x b3 true", path);
    c = good(line);
    cr_expect_eq(hostlist_count(c->hosts), 5);
    cr_expect_str_eq(hostlist_get(c->hosts, 0).name, "a1");
    cr_expect_str_eq(hostlist_get(c->hosts, 4).name, "b4");
    cr_expect_eq(hostlist_get(c->hosts, 2).slots, 4);
    conf_free(c);
    snprintf(line, sizeof(line), "pmi-start -H ^%s,z true", path);
    c = good(line);
    cr_expect_eq(hostlist_count(c->hosts), 5);
    conf_free(c);
    unlink(path);
}

Test(conf, host_file_errors_name_file_and_line)
{
    struct err err = {0};
    char line[200];
    const char *path = temp_file("a\n\nb bogus=1\n");

    snprintf(line, sizeof(line), "pmi-start -f %s true", path);
    cr_expect_null(load_line(line, no_env, &err));
    cr_expect(strstr(err.text, path) && strstr(err.text, "3") && strstr(err.text, "bogus"), "%s", err.text);
    temp_file("# nothing\n");
    cr_expect_null(load_line(line, no_env, &err));
    cr_expect(strstr(err.text, "names no host"), "%s", err.text);
    unlink(path);
}

Test(conf, environment)
{
    static char *const env[] = {(char *)"PMI_START_RSH_FANOUT=5", (char *)"PMI_START_LABEL=yes",
                                (char *)"PMI_START_TIMEOUT=",     (char *)"PMI_START_ENV=A=1\nB=2 3",
                                (char *)"PMI_STARTLING=1",        NULL};
    struct err err = {0};
    struct conf *c = load_line("pmi-start --rsh-fanout=6 true", env, &err);

    cr_assert(c != NULL, "%s", err.text);
    cr_expect_eq(c->rsh_fanout, 6);
    cr_expect(c->label);
    cr_expect_eq(c->app[0].env_count, 2);
    cr_expect_str_eq(c->app[0].env[1].value, "2 3");
    conf_free(c);
}

Test(conf, bad_environment)
{
    static const struct {
        const char *entry, *fragment;
    } cases[] = {
        {"PMI_START_RSH_FANOUT=x", "PMI_START_RSH_FANOUT: 'x' is not a number"},
        {"PMI_START_FOO=1", "PMI_START_FOO"},
        {"PMI_START_RSH_TREE=x", "PMI_START_RSH_TREE: 'x'"},
        {"PMI_START_HELP=1", "PMI_START_HELP"},
        {"PMI_START_PORT=tcp", "PMI_START_PORT"},
        {"PMI_START_SERVICE=1", "PMI_START_SERVICE"},
        {"PMI_START_COMMAND=x", "PMI_START_COMMAND"},
        {"PMI_START_rsh_fanout=1", "PMI_START_rsh_fanout"},
    };

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        char *const env[] = {(char *)cases[i].entry, NULL};
        struct err err = {0};

        cr_expect_null(load_line("pmi-start true", env, &err), "%s", cases[i].entry);
        cr_expect(strstr(err.text, cases[i].fragment), "%s: %s", cases[i].entry, err.text);
    }
}

Test(conf, unquoted_brackets_are_suspected)
{
    static const struct {
        const char *line;
        bool suspect;
    } cases[] = {{"-H h1 h2", true}, {"-H n1.x n22.x h", true}, {"-H h1 true", false}, {"-H h h", false},
                 {"h2", false},      {"-H h1 ./h2", false}};

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        char line[64];
        struct conf *c;

        snprintf(line, sizeof(line), "pmi-start %s", cases[i].line);
        c = good(line);
        cr_expect_eq(conf_looks_like_unquoted_hosts(c), cases[i].suspect, "%s", line);
        conf_free(c);
    }
}

static bool is_me(const char *name)
{
    return strcmp(name, "me") == 0;
}

Test(conf, loopback_is_no_address_for_other_hosts)
{
    static const struct {
        const char *line;
        int rc;
    } cases[] = {
        {"-H me,you --interface=localhost", -EINVAL},
        {"-H you --interface=127.0.0.1", -EINVAL},
        {"-H you --interface=127.0.0.0/8", -EINVAL},
        {"-H you --interface=::1", -EINVAL},
        {"-H me --interface=127.0.0.1", 0},
        {"-H you --interface=10.0.0.0/8", 0},
        {"--interface=lo", 0},
    };

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct err err = {0};
        char line[64];
        struct conf *c;

        snprintf(line, sizeof(line), "pmi-start %s x", cases[i].line);
        c = good(line);
        cr_expect_eq(conf_check_interface(c, is_me, &err), cases[i].rc, "%s", line);
        cr_expect(cases[i].rc == 0 || strstr(err.text, "'you'"), "%s", err.text);
        conf_free(c);
    }
}

Test(conf, help_names_every_option_once)
{
    const char *help = conf_help();

    for (size_t i = 0; i < option_count; i++) {
        char name[40];

        snprintf(name, sizeof(name), "--%s", options[i].name);
        if (options[i].help != NULL)
            cr_expect(strstr(help, name), "%s", name);
    }
    cr_expect(help[strlen(help) - 1] == '\n');
}
