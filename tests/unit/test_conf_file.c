/* SPDX-License-Identifier: BSD-3-Clause */
#include "tests/unit/conf_helpers.h"

#include <sys/stat.h>
#include "common/util.h"

/* Every source sets one more option than the one after it. */
Test(conf_file, precedence)
{
    char dir[] = "/tmp/test_conf.XXXXXX", path[128], home[64], sub[64];
    char *env[] = {home, (char *)"PMI_START_PPN=33", (char *)"PMI_START_FANOUT=34", NULL};
    char *argv[] = {(char *)"pmi-start", (char *)"--fanout=44", (char *)"true", NULL};
    const char *admin = temp_file("nodes: 11\nrsh-fanout: 12\nppn: 13\nfanout: 14\nenv: {A: 1, B: 1}\n");
    struct conf *c = NULL;
    struct err err = {0};
    FILE *f;

    cr_assert(mkdtemp(dir) != NULL);
    snprintf(home, sizeof(home), "XDG_CONFIG_HOME=%s", dir);
    snprintf(sub, sizeof(sub), "%s/pmi-start", dir);
    snprintf(path, sizeof(path), "%s/pmi-start.yaml", sub);
    cr_assert_eq(mkdir(sub, 0700), 0);
    f = fopen(path, "w");
    cr_assert(f != NULL);
    fputs("rsh-fanout: 22\nppn: 23\nfanout: 24\nenv: [B=2, C]\n", f);
    fclose(f);
    cr_assert_eq(conf_load_with(admin, 3, argv, env, &c, &err), 0, "%s", err.text);
    cr_expect_eq(c->nodes, 11);
    cr_expect_eq(c->rsh_fanout, 22);
    cr_expect_eq(c->ppn, 33);
    cr_expect_eq(c->fanout, 44);
    cr_expect_eq(c->app[0].env_count, 3, "lists add up");
    cr_expect_str_eq(c->app[0].env[1].value, "2");
    char *text = conf_print(c);
    cr_expect(strstr(text, "fanout: 44  # command line\n"), "%s", text);
    cr_expect(strstr(text, "ppn: 33  # PMI_START_PPN\n"));
    cr_expect(strstr(text, "/pmi-start/pmi-start.yaml:1\n"));
    cr_expect(strstr(text, "kill-grace: 2s  # default\n"));
    free(text);
    conf_free(c);
    unlink(admin);
    unlink(path);
    rmdir(sub);
    rmdir(dir);
}

static const struct {
    const char *text, *at, *fragment;
} bad_yaml[] = {
    {"nodes: x\n", ":1:8: nodes:", "'x'"},
    {"\n\nlabel: 7\n", ":3:8: label:", "'7'"},
    {"# c\n  foo: 1\n", ":2:3:", "'foo'"},
    {"hostlsit: a\n", ":1:1:", "did you mean 'hostlist'"},
    {"serve: 10.0.0.0/8\n", ":1:1:", "'serve' is for the command line only"},
    {"print-hosts: yes\n", ":1:1:", "'print-hosts' is for the command line only"},
    {"nodes: 1\nnodes: 2\n", ":2:1:", "second time"},
    {"- a\n", ":1:1:", "option: value"},
    {"word\n", ":1:1:", "option: value"},
    {"nodes: [1]\n", ":1:8:", "one word"},
    {"nodes: {a: 1}\n", ":1:8:", "one word"},
    {"? [a]\n: b\n", ":1:3:", "name of an option"},
    {"command: flux start\n", ":1:10:", "[flux, start]"},
    {"command: []\n", ":1:10:", "list"},
    {"command: [a, [b]]\n", ":1:14:", "one word"},
    {"env: [A=1, [x]]\n", ":1:12:", "one word"},
    {"env: [=1]\n", ":1:7: env:", "'=1'"},
    {"env: {A=B: 1}\n", ":1:7:", "'='"},
    {"env:\n  A: [1]\n", ":2:6:", "one word"},
    {"preput:\n  - a\n", ":2:5: preput:", "'a'"},
    {"output: \"a%x\"\n", ":1:9: output:", "'a%x'"},
    {"chdir: \"a\\0b\"\n", ":1:8:", "NUL"},
    {"rsh-tree: 0\n", ":1:11: rsh-tree:", "from 1 to 65536"},
    {"join: here\n", ":1:7: join:", "is not ADDR:PORT"},
    {"help: true\n", ":1:1:", "'help'"},
    {"print-config: true\n", ":1:1:", "'print-config'"},
    {"hostlist: f[1-\n", ":1:11: hostlist:", "f[1-"},
    {"hostlist: [a, {b: c}]\n", ":1:15:", "one word"},
    {"hostlist: [a\nlabel: yes\n", ":2:", "label"},
    {"label: \"x\n", ":", "quoted scalar"},
    {"label: yes\n\tx: 1\n", ":2:", "x: 1"},
    {"label: *nothing\n", ":1:8:", "alias"},
    {"label: yes\nchdir: \xff\n", ":2:8:", "\\xff"},
    {"label: yes\n---\nlabel: no\n", ":3:1:", "second document"},
    {"label: yes\n...\n{\n", ":", ""},
};

Test(conf_file, bad_files_are_named_with_line_and_column)
{
    for (size_t i = 0; i < ARRAY_SIZE(bad_yaml); i++) {
        struct err err = {0};
        struct conf *c = NULL;
        char at[100];

        snprintf(at, sizeof(at), "/tmp/test_conf.%ld%s", (long)getpid(), bad_yaml[i].at);
        cr_expect(load_yaml(bad_yaml[i].text, "pmi-start true", &c, &err) < 0, "accepted: %s", bad_yaml[i].text);
        cr_expect(strstr(err.text, at), "%s: '%s' is not in: %s", bad_yaml[i].text, at, err.text);
        cr_expect(strstr(err.text, bad_yaml[i].fragment), "%s: '%s' is not in: %s", bad_yaml[i].text,
                  bad_yaml[i].fragment, err.text);
        conf_free(c);
    }
}

Test(conf_file, good_files)
{
    static const char text[] = "%YAML 1.1\n---\n"
                               "hostlist: [\"h[0-3]\", x:2]\n"
                               "exclude: h1,nowhere\n"
                               "label: true\n"
                               "timeout: 1.5\n"
                               "pmi-trace: true\n"
                               "env: {A: 1, B: null, C: '', D: 'x=y'}\n"
                               "preput: [k=v w]\n"
                               "rsh-fanout: ~\n"
                               "command: [flux, start, 'a b', \"\"]\n";
    struct conf *c = NULL;
    struct err err = {0};

    cr_assert_eq(load_yaml(text, "pmi-start", &c, &err), 0, "%s", err.text);
    cr_expect_eq(hostlist_count(c->hosts), 4);
    cr_expect(c->label);
    cr_expect_eq(c->timeout_ms, 1500);
    cr_expect(c->pmi_trace && c->pmi_trace_file == NULL);
    cr_expect_eq(c->app[0].env_count, 4);
    cr_expect_null(c->app[0].env[1].value);
    cr_expect_str_eq(c->app[0].env[2].value, "");
    cr_expect_str_eq(c->app[0].env[3].value, "x=y");
    cr_expect_str_eq(c->preput[0].value, "v w");
    cr_expect_eq(c->rsh_fanout, 32);
    cr_expect_eq(c->app[0].argc, 4);
    cr_expect_str_eq(c->app[0].argv[2], "a b");
    conf_free(c);
}

Test(conf_file, empty_files_say_nothing)
{
    static const char *const texts[] = {"", "\n# only this\n", "---\n", "--- ~\n"};

    for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
        struct conf *c = NULL;
        struct err err = {0};

        cr_expect_eq(load_yaml(texts[i], "pmi-start true", &c, &err), 0, "%s", err.text);
        conf_free(c);
    }
}

Test(conf_file, null_takes_back_what_an_earlier_source_said)
{
    struct loader ld;
    struct conf *c;

    cr_assert_eq(loader_init(&ld), 0);
    cr_assert_eq(
        yaml_load(&ld, "a", span_of("nodes: 3\nchdir: /x\nenv: [A=1]\nport: 1-2\nfanout: 2\n"), LAYER_ADMIN, NULL), 0);
    cr_assert_eq(yaml_load(&ld, "u", span_of("nodes:\nchdir: null\nenv: ~\nport: ~\nfanout: ~\n"), LAYER_USER, NULL),
                 0);
    c = ld.conf;
    cr_expect_eq(c->nodes, 0);
    cr_expect_null(c->chdir);
    cr_expect_eq(ld.common.env_count, 0);
    cr_expect_not(c->port.given);
    cr_expect_eq(c->fanout, 32);
    loader_done(&ld);
}

/* Cut "  # origin" off every line, in place. */
static void drop_origins(char *text)
{
    char *out = text, *line = text, *save = NULL;

    for (line = strtok_r(text, "\n", &save); line != NULL; line = strtok_r(NULL, "\n", &save)) {
        char *hash = line[0] == '#' ? NULL : strstr(line, "  # ");
        size_t n = hash ? (size_t)(hash - line) : strlen(line);

        while (hash != NULL && strstr(hash + 1, "  # ") != NULL) { /* the last one */
            hash = strstr(hash + 1, "  # ");
            n = (size_t)(hash - line);
        }
        memmove(out, line, n);
        out[n] = '\n';
        out += n + 1;
    }
    *out = '\0';
}

/* What is printed loads to what it was printed from, and prints the same but for the origins. */
Test(conf_file, printed_configuration_loads_again)
{
    char *argv[] = {(char *)"pmi-start",
                    (char *)"-Hh[0-3],[fd00::2],u@x:3",
                    (char *)"-x",
                    (char *)"h2",
                    (char *)"-vv",
                    (char *)"-EA=x y\n\t\"z\\",
                    (char *)"-E",
                    (char *)"B",
                    (char *)"-E\xc3\xa4=\xf0\x9f\x98\x80",
                    (char *)"-C",
                    (char *)"null",
                    (char *)"--preput=k=v # w",
                    (char *)"-o",
                    (char *)"%r.out",
                    (char *)"--port=7-9",
                    (char *)"-iall",
                    (char *)"--pmi-trace",
                    (char *)"--env-none",
                    (char *)"--interface=-",
                    (char *)"sh",
                    (char *)"-c",
                    (char *)": ; exit 0",
                    (char *)"",
                    NULL};
    struct conf *a = NULL, *b = NULL;
    struct err err = {0};
    char *once, *twice;

    cr_assert_eq(load(argv, no_env, &a, &err), 0, "%s", err.text);
    once = conf_print(a);
    cr_assert_eq(load_yaml(once, "pmi-start", &b, &err), 0, "%s\n%s", err.text, once);
    twice = conf_print(b);
    drop_origins(once);
    drop_origins(twice);
    cr_expect_str_eq(once, twice);
    cr_expect_eq(b->verbose, 2);
    cr_expect_eq(b->app[0].argc, 4);
    cr_expect_str_eq(b->app[0].argv[2], ": ; exit 0");
    cr_expect_eq(b->app[0].env_count, a->app[0].env_count);
    for (size_t i = 0; i < b->app[0].env_count; i++)
        cr_expect_str_eq(a->app[0].env[i].name, b->app[0].env[i].name);
    cr_expect_str_eq(b->app[0].env[0].value, "x y\n\t\"z\\");
    cr_expect_str_eq(b->chdir, "null");
    cr_expect_str_eq(b->interface, "-");
    cr_expect_eq(hostlist_count(b->hosts), hostlist_count(a->hosts));
    cr_expect(b->app[0].env_none && b->pmi_trace && b->input == INPUT_ALL);
    free(once);
    free(twice);
    conf_free(a);
    conf_free(b);
}

Test(conf_file, what_yaml_cannot_hold_is_printed_as_a_comment)
{
    struct conf *a = good("pmi-start -E A=\xff true : -n 2 false"), *b = NULL;
    struct err err = {0};
    char *text = conf_print(a);

    cr_expect(strstr(text, "A=\\xff (left out: not UTF-8)"), "%s", text);
    cr_expect(strstr(text, "# part 2: -n 2 false"), "%s", text);
    cr_expect_eq(load_yaml(text, "pmi-start", &b, &err), 0, "%s", err.text);
    free(text);
    conf_free(a);
    conf_free(b);
}

Test(conf_file, later_hosts_replace_earlier_ones_whatever_their_spelling)
{
    struct conf *c = NULL;

    cr_assert_eq(load_yaml("hostfile: /no/such/file\n", "pmi-start -H a true", &c, NULL), 0);
    cr_expect_eq(hostlist_count(c->hosts), 1);
    conf_free(c);
}

Test(conf_file, help_works_with_a_broken_file)
{
    struct conf *c = NULL;

    cr_expect_eq(load_yaml("{{{", "pmi-start --help", &c, NULL), 0);
    conf_free(c);
}

static struct buf slurp(const char *name)
{
    const char *srcdir = getenv("srcdir");
    struct buf b, path;
    struct err err = {0};

    buf_init(&b, 0);
    buf_init(&path, 0);
    cr_assert_eq(buf_printf(&path, "%s/%s", srcdir ? srcdir : ".", name), 0);
    cr_assert_eq(file_read(buf_str(&path), 1 << 20, &b, &err), 0, "%s: %s", path.p, err.text);
    cr_assert(buf_str(&b) != NULL);
    buf_done(&path);
    return b;
}

Test(conf_file, manual_names_every_option)
{
    struct buf page = slurp("docs/pmi-start.1");

    for (size_t i = 0; i < option_count; i++) {
        char name[40];

        snprintf(name, sizeof(name), "Fl Fl %s", options[i].name);
        if (options[i].help != NULL)
            cr_expect(strstr(page.p, name), "%s", name);
        snprintf(name, sizeof(name), ".It Fl %c ,", options[i].letter);
        if (options[i].letter != 0)
            cr_expect(strstr(page.p, name), "%s", name);
    }
    buf_done(&page);
}

/* The sample with its lines taken into use. */
Test(conf_file, sample_is_right)
{
    struct buf sample = slurp("conf/pmi-start.yaml.sample");
    struct loader ld;
    struct err err = {0};

    for (size_t i = 0; i + 1 < sample.len; i++) {
        bool start = i == 0 || sample.p[i - 1] == '\n';

        if (start && sample.p[i] == '#' && sample.p[i + 1] != ' ' && sample.p[i + 1] != '\n')
            sample.p[i] = '\n'; /* a blank would indent the key */
        if (start && strncmp(&sample.p[i], "#  ", 3) == 0)
            sample.p[i] = '\n';
    }
    cr_assert_eq(loader_init(&ld), 0);
    cr_expect_eq(yaml_load(&ld, "sample", buf_span(&sample), LAYER_ADMIN, &err), 0, "%s", err.text);
    cr_expect_eq(ld.common.env_count, 2);
    cr_expect_eq(conf_values(ld.conf, "command")->count, 2);
    loader_done(&ld);
    buf_done(&sample);
}
