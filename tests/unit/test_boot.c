/* SPDX-License-Identifier: BSD-3-Clause */
/* The methods that need no login: local and manual. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include "boot_rig.h"
#include "common/io/log.h"

#define PROVIDER                                                                                                       \
    "for w; do case $w in --pmi-rank=*) rank=${w#*=} ;; esac; done\n"                                                  \
    "key() { printf '\\npmi-start-provider 1 run=1 index=%s key=%s\\n' $1 $KEY; }\n"

static struct rig *rig_with(enum boot_method method, const char *hosts, const char *body)
{
    static char path[128];
    char *text;
    struct rig *r = rig_new(method, hosts);

    cr_assert(asprintf(&text, "%s%s", PROVIDER, body) > 0);
    snprintf(path, sizeof(path), "%s", rig_script(r, "provider", text));
    free(text);
    r->boot_conf.self_path = path;
    r->join = true;
    return r;
}

Test(boot, local_starts_one_process_a_node_but_for_its_own)
{
    struct rig *r = rig_with(BOOT_LOCAL, "x x x", "echo \"$@\" >>$DIR/words; key $rank");

    r->plan.self = 0;
    cr_assert_eq(rig_run(r, 10000, NULL), 0);
    cr_expect_eq(boot_waiting(r->boot), 0, "%s", r->said.p);
    cr_expect_eq(r->spawned, 2);
    cr_expect(strstr(r->keys.p, "node=1 run=1 index=0 ") != NULL && strstr(r->keys.p, "node=2 run=1 index=1 ") != NULL);
    cr_expect(strstr(rig_file(r, "words"), "--pmi-port=10.0.0.1:4321,fd00::1:4321 --pmi-size=3 --pmi-run=1") != NULL);
    rig_done(r);
}

Test(boot, local_provider_that_fails_is_named_with_its_words)
{
    struct rig *r = rig_with(BOOT_LOCAL, "x x x x",
                             "case $rank in 0) key 0;; 1) echo 'pmi-start: no memory' >&2; exit 1;; *) exit 3;; esac");

    cr_assert_eq(rig_run(r, 10000, NULL), 0);
    cr_expect_str_eq(r->said.p, "node1: start: no memory\nnode[2-3]: start: ended with exit status 3");
    rig_done(r);
}

Test(boot, local_key_of_another_index_is_not_believed)
{
    struct rig *r = rig_with(BOOT_LOCAL, "x x", "key 0; exec sleep 20");

    r->conf.start_timeout_ms = 300;
    cr_assert_eq(rig_run(r, 10000, NULL), 0);
    cr_expect_str_eq(r->keys.p, "node=0 run=1 index=0 ");
    cr_expect(strstr(r->said.p, "node1: start: no word from ") != NULL, "%s", r->said.p);
    rig_done(r);
}

Test(boot, local_512_nodes)
{
    struct rlimit files = {4096, 4096};
    struct buf hosts = {0};
    struct rig *r;

    if (setrlimit(RLIMIT_NOFILE, &files) < 0)
        cr_skip_test("the limit of open files is below 4096");
    for (int i = 0; i < 512; i++)
        buf_add_str(&hosts, "x ");
    r = rig_with(BOOT_LOCAL, buf_str(&hosts), "key $rank");
    cr_assert_eq(rig_run(r, 25000, NULL), 0);
    cr_expect_eq(boot_waiting(r->boot), 0, "%s", r->said.p);
    rig_done(r);
    buf_done(&hosts);
}

Test(boot, nothing_to_start)
{
    struct rig *r = rig_with(BOOT_LOCAL, "x", "key $rank");

    r->plan.self = 0;
    cr_assert_eq(rig_run(r, 10, NULL), 0);
    cr_expect_eq(r->spawned + r->failed + boot_waiting(r->boot), 0);
    cr_expect_eq(boot_node_of(r->boot, 1, 0), -1);
    rig_done(r);
}

static void keep_line(enum log_level level, const char *line, void *arg)
{
    (void)level;
    buf_printf(arg, "%s\n", line);
}

Test(boot, manual_says_what_to_start)
{
    struct rig *r = rig_with(BOOT_MANUAL, "a b", "");
    struct buf lines = {0};

    r->boot_conf.key = "";
    r->boot_conf.self_path = "/opt/bin/pmi-start";
    r->conf.secret_file = (char[]){"/etc/secret"};
    r->conf.start_timeout_ms = 200;
    log_set_sink(keep_line, &lines);
    cr_assert_eq(rig_run(r, 5000, NULL), 0);
    log_set_sink(NULL, NULL);
    cr_expect(strstr(buf_str(&lines), "a: /opt/bin/pmi-start --pmi-port=10.0.0.1:4321,fd00::1:4321 --pmi-size=3 "
                                      "--pmi-run=1 --pmi-start-timeout=200ms --pmi-secret-file=/etc/secret "
                                      "--pmi-attach=yes --pmi-rank=0\n") != NULL,
              "%s", lines.p);
    cr_expect(strstr(lines.p, "b: ") != NULL && strstr(lines.p, " --pmi-rank=1\n") != NULL);
    cr_expect_eq(boot_node_of(r->boot, 1, 1), 1);
    cr_expect_str_eq(r->said.p, "a,b: start: nobody connected within 0.2 s");
    buf_done(&lines);
    rig_done(r);
}

Test(boot, manual_needs_a_secret)
{
    struct rig *r = rig_with(BOOT_MANUAL, "a", "");
    struct err err;

    cr_expect_eq(rig_run(r, 1000, &err), -EINVAL);
    cr_expect(strstr(err.text, "--new-secret=FILE") != NULL);
    rig_done(r);
}

Test(boot, pods_that_are_missing_are_named_by_number)
{
    struct rig *r = rig_with(BOOT_K8S, "s-0 s-1 s-2 s-3 s-4 s-5", "");

    r->boot_conf.key = "";
    r->plan.self = 0;
    r->conf.start_timeout_ms = 1000;
    cr_assert_eq(rig_run(r, 1, NULL), 0);
    boot_joined(r->boot, 2, true);
    rig_go_on(r, 5000);
    cr_expect(strstr(r->said.p, "pods 1,3-5 have not come (nobody within 1 s;") != NULL, "%s", r->said.p);
    rig_done(r);
}
