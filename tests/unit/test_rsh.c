/* SPDX-License-Identifier: BSD-3-Clause */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include "boot_rig.h"

/* For scripts: `run` and `list` (the hosts, one word each, where the list was not folded into brackets), `key PLACE`.
 * */
#define PRELUDE                                                                                                        \
    "run=${PMI_PROVIDER#*--pmi-run=}; run=${run%% *}; n=$run\n"                                                        \
    "list=$(echo \"$PMI_HOSTLIST\" | tr , ' ')\n"                                                                      \
    "echo \"$PMI_HOSTLIST\" >>$DIR/lists\n"                                                                            \
    "key() { printf '\\npmi-start-provider 1 run=%s index=%s key=%s\\n' $run $1 $KEY; }\n"                             \
    "all() { i=0; for h in $list; do key $i; i=$((i + 1)); done; }\n"

static struct rig *rig_with(const char *hosts, const char *body)
{
    static char path[128];
    char *text;
    struct rig *r = rig_new(BOOT_RSH, hosts);

    cr_assert(asprintf(&text, "%s%s", PRELUDE, body) > 0);
    snprintf(path, sizeof(path), "%s", rig_script(r, "script", text));
    free(text);
    r->boot_conf.script = path;
    r->join = true;
    return r;
}

Test(rsh, environment)
{
    struct rig *r = rig_with("a u@b a fd00::2", "env >$DIR/env; cat >$DIR/in; all");
    const char *env;

    cr_assert_eq(rig_run(r, 10000, NULL), 0);
    cr_expect_eq(boot_waiting(r->boot), 0, "%s", r->said.p);
    cr_expect_str_eq(r->keys.p, "node=0 run=1 index=0 node=1 run=1 index=1 node=2 run=1 index=2 node=3 run=1 index=3 ");
    env = rig_file(r, "env");
    cr_expect(strstr(env, "\nPMI_HOST=10.0.0.1\n") != NULL);
    cr_expect(strstr(env, "\nPMI_PORT=4321\n") != NULL);
    cr_expect(strstr(env, "\nPMI_SIZE=5\n") != NULL);
    cr_expect(strstr(env, "\nPMI_HOSTLIST=a,u@b,a,fd00::2\n") != NULL, "%s", env);
    cr_expect(strstr(env, "\nPMI_KEY=" RIG_KEY "\n") != NULL);
    cr_expect(strstr(env, "\nPMI_LOGIN_FANOUT=4\n") != NULL);
    cr_expect(strstr(env, "\nPMI_LOGIN_TIMEOUT=20\n") != NULL);
    cr_expect(strstr(env, "PMI_RANK=") == NULL);
    cr_expect(strstr(env,
                     "PMI_PROVIDER=/opt/bin/pmi-start --pmi-port=10.0.0.1:4321,fd00::1:4321 --pmi-size=5 --pmi-run=1 "
                     "--pmi-start-timeout=60000ms --pmi-key=" RIG_KEY " --pmi-attach=auto\n") != NULL);
    rig_done(r);
}

Test(rsh, options_reach_the_provider)
{
    struct rig *r = rig_with("a", "echo \"$PMI_PROVIDER\" >$DIR/words; all");

    r->conf.interface = (char[]){"10.0.0.0/8"};
    r->conf.port = (struct conf_ports){.given = true, .range = true, .low = 5000, .high = 5100};
    r->conf.remote_path = (char[]){"/usr/bin/pmi-start"};
    r->conf.rsh_attach = ATTACH_NO;
    cr_assert_eq(rig_run(r, 10000, NULL), 0);
    cr_expect(strncmp(rig_file(r, "words"), "/usr/bin/pmi-start ", 19) == 0);
    cr_expect(strstr(rig_file(r, "words"), " --pmi-attach=no --pmi-interface=10.0.0.0/8 --pmi-ports=5000-5100\n") !=
              NULL);
    rig_done(r);
}

Test(rsh, unsafe_path_is_refused_with_the_hint)
{
    struct rig *r = rig_with("a", "all");
    struct err err;

    r->boot_conf.self_path = "/opt/a b/pmi-start";
    cr_expect_eq(rig_run(r, 10000, &err), -EINVAL);
    cr_expect(strstr(err.text, "'/opt/a b/pmi-start'") != NULL && strstr(err.text, "--remote-path") != NULL, "%s",
              err.text);
    cr_expect_eq(r->spawned, 0);
    rig_done(r);
}

Test(rsh, missing_script)
{
    struct rig *r = rig_with("a", "all");
    struct err err;

    r->conf.rsh_command = (char[]){"/nowhere/script"};
    cr_expect_eq(rig_run(r, 10000, &err), -EINVAL);
    rig_done(r);
}

Test(rsh, hosts_without_a_key_line_are_tried_again)
{
    struct rig *r = rig_with("a b c", "[ $run = 1 ] && { key 0; echo 'b: port 22: Connection refused' >&2; exit 0; }\n"
                                      "[ $run = 2 ] && { key 1; exit 0; }\n"
                                      "all");

    cr_assert_eq(rig_run(r, 15000, NULL), 0);
    cr_expect_eq(boot_waiting(r->boot), 0, "%s", r->said.p);
    cr_expect_str_eq(r->keys.p, "node=0 run=1 index=0 node=2 run=2 index=1 node=1 run=3 index=0 ");
    cr_expect_str_eq(rig_file(r, "lists"), "a,b,c\nb,c\nb\n");
    rig_done(r);
}

Test(rsh, hosts_that_turned_away_are_tried_in_small_lots)
{
    struct rig *r = rig_with("a b c d e f", "say='b c d e f'; [ $run = 1 ] && key 0 || { say=; all; }\n"
                                            "for host in $say; do echo \"$host: Connection closed by x\" >&2; done");

    cr_assert_eq(rig_run(r, 15000, NULL), 0);
    cr_expect_eq(boot_waiting(r->boot), 0, "%s", r->said.p);
    cr_expect_str_eq(rig_file(r, "lists"), "a,b,c,d,e,f\nb,c,d,e\nf\n");
    rig_done(r);
}

Test(rsh, a_login_that_pdsh_saw_end_is_tried_again_while_others_go_on)
{
    struct rig *r = rig_with("a b", "[ $run = 1 ] && { echo 'pdsh@x: b: ssh exited with exit code 255' >&2; key 0; "
                                    "exec sleep 20; }\n"
                                    "all");

    r->attached = true;
    cr_assert_eq(rig_run(r, 15000, NULL), 0);
    cr_expect_eq(boot_waiting(r->boot), 0, "%s", r->said.p);
    cr_expect_str_eq(r->keys.p, "node=0 run=1 index=0 node=1 run=2 index=0 ");
    rig_done(r);
}

Test(rsh, denied_host_key_and_unknown_name_are_not_tried_again)
{
    struct rig *r =
        rig_with("a b c d e", "key 0\n"
                              "{ echo 'pdsh@x: y'; echo 'b: root@b: Permission denied (publickey).'\n"
                              "echo 'c: root@c: Permission denied (publickey).'\n"
                              "echo 'd: Host key verification failed.'\n"
                              "echo 'e: ssh: Could not resolve hostname e: Name or service not known'\n"
                              "for h in b c d e; do echo \"pdsh@x: $h: ssh exited with exit code 255\"; done; } >&2");

    cr_assert_eq(rig_run(r, 15000, NULL), 0);
    cr_expect_eq(r->spawned, 1);
    cr_expect_str_eq(r->said.p, "b,c: login: Permission denied (publickey).\n"
                                "d: login: Host key verification failed.\n"
                                "e: login: ssh: Could not resolve hostname e: Name or service not known");
    rig_done(r);
}

Test(rsh, same_reason_folds_though_it_names_each_host)
{
    struct rig *r = rig_with("n1 n2 n3", "all_say() { for h in n1 n2 n3; do echo \"$h: ssh: Could not resolve hostname "
                                         "$h: Name or service not known\"; done; }; all_say >&2");

    cr_assert_eq(rig_run(r, 15000, NULL), 0);
    cr_expect_str_eq(r->said.p, "n[1-3]: login: ssh: Could not resolve hostname HOST: Name or service not known");
    rig_done(r);
}

Test(rsh, program_not_found)
{
    struct rig *r = rig_with("a", "echo 'a: bash: line 1: /opt/bin/pmi-start: No such file or directory' >&2\n"
                                  "echo 'pdsh@x: a: ssh exited with exit code 127' >&2");

    cr_assert_eq(rig_run(r, 15000, NULL), 0);
    cr_expect_eq(r->spawned, 3);
    cr_expect_str_eq(r->said.p, "a: not found: bash: line 1: /opt/bin/pmi-start: No such file or directory");
    rig_done(r);
}

Test(rsh, a_library_is_missing)
{
    struct rig *r =
        rig_with("a", "echo 'a: pmi-start: error while loading shared libraries: libx.so: cannot open shared "
                      "object file: No such file or directory' >&2\n"
                      "echo 'pdsh@x: a: ssh exited with exit code 127' >&2");

    cr_assert_eq(rig_run(r, 15000, NULL), 0);
    cr_expect(strncmp(r->said.p, "a: start: ", 10) == 0 && strstr(r->said.p, "libx.so"), "%s", r->said.p);
    rig_done(r);
}

Test(rsh, words_of_a_provider_on_its_standard_output)
{
    struct rig *r = rig_with("a", "echo 'a: welcome to a'; echo 'a: pmi-start: no usable interface'");

    cr_assert_eq(rig_run(r, 15000, NULL), 0);
    cr_expect_str_eq(r->said.p, "a: start: no usable interface");
    rig_done(r);
}

Test(rsh, script_that_cannot_work_is_not_run_again)
{
    struct rig *r = rig_with("a b", "echo 'no pdsh here' >&2; exit 127");

    cr_assert_eq(rig_run(r, 15000, NULL), 0);
    cr_expect_eq(r->spawned, 1);
    cr_expect_str_eq(r->said.p, "a,b: login: the bootstrap script ended with exit status 127 and brought nothing from "
                                "this host (no pdsh here)");
    rig_done(r);
}

Test(rsh, no_answer)
{
    struct rig *r = rig_with("a b", "key 0; exec sleep 20");

    r->conf.start_timeout_ms = 500;
    cr_assert_eq(rig_run(r, 15000, NULL), 0);
    cr_expect_str_eq(r->said.p, "b: login: no answer within 0.5 s");
    rig_done(r);
}

Test(rsh, started_but_not_connected)
{
    struct rig *r = rig_with("a b", "key 0; key 1; exec sleep 20");

    r->join = false;
    r->conf.start_timeout_ms = 300;
    cr_assert_eq(rig_run(r, 15000, NULL), 0);
    cr_expect_str_eq(r->said.p, "a,b: connect: started, but did not reach 10.0.0.1:4321 or [fd00::1]:4321 (check the "
                                "network, --interface, --port)");
    rig_done(r);
}

Test(rsh, output_not_passed_on)
{
    struct rig *r = rig_with("a", "exec sleep 20");

    r->conf.start_timeout_ms = 600;
    cr_assert_eq(rig_run(r, 100, NULL), 0);
    boot_stranger(r->boot);
    rig_go_on(r, 15000);
    cr_expect(strstr(r->said.p, "the script does not pass on the providers' output") != NULL, "%s", r->said.p);
    rig_done(r);
}

Test(rsh, second_key_fails_the_start_and_shows_both)
{
    struct rig *r = rig_with("a b", "key 0; key 0; KEY=$(echo $KEY | tr a b); key 0; exec sleep 20");

    r->join = false;
    cr_assert_eq(rig_run(r, 15000, NULL), 0);
    cr_expect_eq(r->failed, 1);
    cr_expect(strncmp(r->said.p, "a: start: two different keys for run 1 index 0: " RIG_KEY " and bbbb", 116) == 0,
              "%s", r->said.p);
    rig_done(r);
}

Test(rsh, refused_connection)
{
    struct rig *r = rig_with("a b", "key 1; exec sleep 20");

    cr_assert_eq(rig_run(r, 200, NULL), 0);
    boot_refused(r->boot, 0, "version: 1..1 here, 2..2 there");
    rig_go_on(r, 15000);
    cr_expect_str_eq(r->said.p, "a: version: 1..1 here, 2..2 there");
    rig_done(r);
}

Test(rsh, short_labels_and_users)
{
    struct rig *r = rig_with("u@w1.example.org w2.example.org", "echo 'w1: Permission denied' >&2\n"
                                                                "echo 'w2.example.org: Permission denied' >&2");

    cr_assert_eq(rig_run(r, 15000, NULL), 0);
    cr_expect_str_eq(r->said.p, "u@w1.example.org,w2.example.org: login: Permission denied");
    rig_done(r);
}

Test(rsh, long_lists_go_in_pieces)
{
    struct buf hosts = {0};
    struct rig *r;

    /* Names that do not fold: 3000 of 60 bytes are 180 KB. */
    for (int i = 0; i < 3000; i++)
        buf_printf(&hosts, "n%dx%051d%c ", i, 7, 'a' + i % 26);
    r = rig_with(buf_str(&hosts), "all");
    cr_assert_eq(rig_run(r, 20000, NULL), 0);
    cr_expect_eq(boot_waiting(r->boot), 0, "%s", r->said.p);
    cr_expect_eq(r->spawned, 2);
    cr_expect(strstr(r->keys.p, "node=1500 run=2 index=0 ") != NULL);
    rig_done(r);
    buf_done(&hosts);
}

Test(rsh, users_script_stays_attached_with_a_slot_for_everybody)
{
    struct rig *r = rig_with("a b c", "echo \"$PMI_LOGIN_FANOUT $PMI_PROVIDER\" >$DIR/words; all; exec sleep 20");

    r->conf.rsh_fanout = 1;
    r->conf.rsh_command = (char *)(uintptr_t)r->boot_conf.script;
    r->attached = true;
    cr_assert_eq(rig_run(r, 15000, NULL), 0);
    cr_expect_eq(boot_waiting(r->boot), 0);
    cr_expect(strncmp(rig_file(r, "words"), "3 ", 2) == 0 && strstr(rig_file(r, "words"), "--pmi-attach=yes") != NULL);
    rig_done(r);
}

Test(rsh, providers_that_stay_free_the_others_by_a_further_run)
{
    struct rig *r = rig_with("a b c d", "[ $run = 1 ] && { key 0; key 1; exec sleep 20; }\n"
                                        "echo \"$PMI_LOGIN_FANOUT\" >$DIR/fanout; all; exec sleep 20");

    r->conf.rsh_fanout = 2;
    r->attached = true;
    cr_assert_eq(rig_run(r, 15000, NULL), 0);
    cr_expect_eq(boot_waiting(r->boot), 0, "%s", r->said.p);
    cr_expect_str_eq(r->keys.p, "node=0 run=1 index=0 node=1 run=1 index=1 node=2 run=2 index=0 node=3 run=2 index=1 ");
    cr_expect_str_eq(rig_file(r, "fanout"), "2\n");
    rig_done(r);
}

Test(rsh, fan_out_of_one_is_kept_by_retries)
{
    struct rig *r = rig_with("a b c", "echo $PMI_LOGIN_FANOUT >>$DIR/fanout\n"
                                      "[ $run = 1 ] && { echo 'a: ssh exited with exit code 255' >&2; sleep 2; key 1; "
                                      "echo over >>$DIR/fanout; exit 0; }\n"
                                      "all");

    r->conf.rsh_fanout = 1;
    cr_assert_eq(rig_run(r, 15000, NULL), 0);
    cr_expect_eq(boot_waiting(r->boot), 0, "%s", r->said.p);
    cr_expect(strncmp(rig_file(r, "fanout"), "1\nover\n1\n", 9) == 0, "%s", rig_file(r, "fanout"));
    rig_done(r);
}

Test(rsh, closing_ends_the_script)
{
    struct rig *r = rig_with("a b", "key 0; exec sleep 20");

    cr_assert_eq(rig_run(r, 300, NULL), 0);
    cr_expect_eq(r->failed, 0);
    boot_close(r->boot);
    r->boot = NULL;
    cr_expect_eq(r->killed, 1);
    rig_done(r);
}

Test(rsh, names_of_those_awaited)
{
    struct rig *r = rig_with("n1 n2 n3 n4", "key 1; exec sleep 20");
    struct buf names = {0};

    cr_assert_eq(rig_run(r, 300, NULL), 0);
    boot_waiting_names(r->boot, &names);
    cr_expect_str_eq(buf_str(&names), "n[1,3-4]");
    buf_done(&names);
    rig_done(r);
}

Test(rsh, secret_file_is_for_manual)
{
    struct rig *r = rig_with("a", "all");
    struct err err;

    r->boot_conf.key = "";
    r->conf.secret_file = (char[]){"/etc/secret"};
    cr_expect_eq(rig_run(r, 1000, &err), -EINVAL);
    rig_done(r);
}
