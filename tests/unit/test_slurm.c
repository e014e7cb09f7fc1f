/* SPDX-License-Identifier: BSD-3-Clause */
/* Steps of Slurm, with a script in the place of srun. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include "boot_rig.h"
#include "common/strv.h"

#define FAKE                                                                                                           \
    "for w; do case $w in --pmi-run=*) run=${w#*=} ;; --nodelist=*) list=${w#*=} ;; esac; done\n"                      \
    "echo \"$list\" >>$DIR/lists; echo \"$@\" >>$DIR/words; env >>$DIR/env\n"                                          \
    "key() { printf '\\npmi-start-provider 1 run=%s index=%s key=%s\\n' $run $1 ${2-$KEY}; }\n"

static char job[] = "42";

static struct rig *rig_with(const char *hosts, const char *body)
{
    static char path[128];
    char *text;
    struct rig *r = rig_new(BOOT_SLURM, hosts);

    cr_assert(asprintf(&text, "%s%s", FAKE, body) > 0);
    snprintf(path, sizeof(path), "%s", rig_script(r, "srun", text));
    free(text);
    r->boot_conf.srun = path;
    r->conf.alloc_job = job;
    r->join = true;
    return r;
}

Test(slurm, one_step_starts_all_and_its_places_are_ours)
{
    struct rig *r = rig_with("h2 h0 h1", "key 2; key 0; key 1; exec sleep 20");

    r->plan.self = 1;
    cr_assert_eq(rig_run(r, 10000, NULL), 0);
    cr_expect_eq(r->spawned, 1);
    cr_expect_str_eq(rig_file(r, "lists"), "h[2,1]\n");
    cr_expect(strstr(r->keys.p, "node=0 run=1 index=0 ") != NULL && strstr(r->keys.p, "node=2 run=1 index=1 ") != NULL);
    cr_expect_eq(boot_waiting(r->boot), 0, "%s", r->said.p);
    cr_expect_eq(boot_node_of(r->boot, 1, 1), 2);
    cr_expect_eq(boot_node_of(r->boot, 1, 2), -1);
    cr_expect_eq(boot_node_of(r->boot, 2, 0), -1);
    cr_expect_not_null(strstr(rig_file(r, "words"), "--jobid=42 --nodes=2 --ntasks=2 --nodelist=h[2,1] "));
    cr_expect_not_null(strstr(rig_file(r, "words"), " --pmi-hosts=h[2,1]\n"));
    rig_done(r);
}

Test(slurm, what_steers_an_srun_is_not_for_ours)
{
    struct rig *r = rig_with("h0", "key 0");
    char **own = strv_dup(r->env);

    cr_assert(env_set(&own, "SLURM_NTASKS", "7") == 0 && env_set(&own, "SRUN_DEBUG", "1") == 0);
    cr_assert(env_set(&own, "SLURM_CONF", "/c") == 0 && env_set(&own, "PMI_FD", "3") == 0);
    r->boot_conf.envp = own;
    cr_assert_eq(rig_run(r, 10000, NULL), 0);
    cr_expect_null(strstr(rig_file(r, "env"), "SLURM_NTASKS"));
    cr_expect_null(strstr(rig_file(r, "env"), "SRUN_DEBUG"));
    cr_expect_null(strstr(rig_file(r, "env"), "PMI_FD"));
    cr_expect_not_null(strstr(rig_file(r, "env"), "SLURM_CONF=/c"));
    rig_done(r);
    strv_free(own);
}

Test(slurm, a_host_that_is_listed_again_has_a_step_for_each_time)
{
    struct rig *r = rig_with("a b a a b", "case $list in *,*|*[[]*) key 0; key 1 ;; *) key 0 ;; esac; exec sleep 20");

    cr_assert_eq(rig_run(r, 10000, NULL), 0);
    cr_expect_eq(r->spawned, 3);
    cr_expect_eq(boot_waiting(r->boot), 0, "%s %s", r->said.p, r->keys.p);
    cr_expect_eq(boot_node_of(r->boot, 1, 0), 0);
    cr_expect_eq(boot_node_of(r->boot, 1, 1), 1);
    cr_expect_eq(boot_node_of(r->boot, 2, 0), 2);
    cr_expect_eq(boot_node_of(r->boot, 2, 1), 4);
    cr_expect_eq(boot_node_of(r->boot, 3, 0), 3);
    rig_done(r);
}

static void fails_with(const char *hosts, const char *body, const char *says)
{
    struct rig *r = rig_with(hosts, body);

    cr_assert_eq(rig_run(r, 10000, NULL), 0);
    cr_expect_str_eq(r->said.p, says);
    rig_done(r);
}

#define BY_SSH " (--bootstrap=rsh logs in to the same hosts by ssh)"

Test(slurm, why_a_node_was_not_started)
{
    fails_with("h0 h1",
               "echo 'srun: error: Unable to create step for job 42: Down' >&2; echo 'srun: error: x' >&2; exit 1",
               "h[0-1]: start: srun: error: Unable to create step for job 42: Down" BY_SSH);
    fails_with("h0 h1", "exit 3", "h[0-1]: start: srun ended with exit status 3" BY_SSH);
    fails_with("h0 h1 h2",
               "echo 'srun: error: h[1-2]: tasks 1-2: Exited with exit code 2' >&2; key 0\n"
               "echo 'slurmstepd-h1: error: execve(): /p: No such file' >&2\n"
               "echo 'slurmstepd-h2: error: execve(): /p: No such file' >&2; exec sleep 20",
               "h[1-2]: start: execve(): /p: No such file");
    fails_with("h0 h1",
               "key 0; echo 'h1: pmi-start: no memory' >&2; echo 'srun: error: h1: task 1: Exited' >&2; sleep 20",
               "h1: start: no memory");
    fails_with("h0 h1", "key 0; echo 'srun: error: Node failure on h1' >&2; exec sleep 20",
               "h1: start: Node failure on h1");
    fails_with("h0 h1", "key 0; key 0 ffbbccddeeff00112233445566778899aabbccddeeff00112233445566778899; exec sleep 20",
               "h0: start: two different keys for run 1 index 0: " RIG_KEY
               " and ffbbccddeeff00112233445566778899aabbccddeeff00112233445566778899");
}

Test(slurm, a_step_that_is_not_created_ends_by_the_time_limit)
{
    struct rig *r =
        rig_with("h0 h1", "echo 'srun: Job 42 step creation temporarily disabled, retrying' >&2; exec sleep 20");

    r->conf.start_timeout_ms = 300;
    cr_assert_eq(rig_run(r, 10000, NULL), 0);
    cr_expect_str_eq(r->said.p, "h[0-1]: start: srun: Job 42 step creation temporarily disabled, retrying" BY_SSH);
    rig_done(r);
}

Test(slurm, rubbish_is_survived)
{
    fails_with("h0 h1",
               "key 7; key 4294967295; echo 'srun: error: h[0-: task 1: x' >&2; echo 'srun: error: : task: ' >&2\n"
               "echo 'srun: error: Node failure on ' >&2; head -c 3000 /dev/zero >&2; echo >&2; echo 'srun: error: "
               "why' >&2; exit 1",
               "h[0-1]: start: srun: error: why" BY_SSH);
}
