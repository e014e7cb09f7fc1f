/* SPDX-License-Identifier: BSD-3-Clause */
/* Allocations as the environment tells of them: what is taken from it, when, and what is refused. */
#include "conf_helpers.h"
#include "common/util.h"

#define JOB "SLURM_JOB_ID=7"
#define NODES "SLURM_JOB_NODELIST=h[0-3]"
#define TASKS "SLURM_TASKS_PER_NODE=2(x3),1"
#define STEP "SLURM_STEP_ID=0", "SLURM_STEP_NUM_TASKS=1"

static struct conf *load_in(const char *line, const char *const *env, struct err *err)
{
    char whole[256];

    snprintf(whole, sizeof(whole), "pmi-start %s", line);
    return load_line(whole, (char *const *)(uintptr_t)env, err);
}

/* "h0:2 h1:2 ..." */
static const char *hosts_of(const struct conf *conf)
{
    static char text[512];
    size_t n = 0;

    text[0] = '\0';
    for (size_t i = 0; conf->hosts != NULL && i < hostlist_count(conf->hosts); i++) {
        struct host h = hostlist_get(conf->hosts, i);

        n += (size_t)snprintf(text + n, sizeof(text) - n, "%s%s:%u", i > 0 ? " " : "", h.name, h.slots);
    }
    return text;
}

static const struct {
    const char *line, *env[8];
    enum alloc_kind kind;
    const char *hosts;
} cases[] = {
    {"true", {NULL}, ALLOC_NONE, ""},
    {"true", {"SLURM_CONF=/x", "SLURM_NTASKS=4"}, ALLOC_NONE, ""},
    {"true", {JOB, NODES, TASKS}, ALLOC_SLURM, "h0:2 h1:2 h2:2 h3:1"},
    {"true", {"SLURM_JOBID=7", "SLURM_NODELIST=h[3,1]", "SLURM_TASKS_PER_NODE=1,4"}, ALLOC_SLURM, "h3:1 h1:4"},
    {"true",
     {JOB, "SLURM_JOBID=7", NODES, "SLURM_NODELIST=h[0-3]", TASKS, "SLURM_NNODES=4"},
     ALLOC_SLURM,
     "h0:2 h1:2 h2:2 h3:1"},
    {"-x h[1-2] true", {JOB, NODES, TASKS}, ALLOC_SLURM, "h0:2 h3:1"},
    {"-b slurm true", {JOB, NODES, TASKS}, ALLOC_SLURM, "h0:2 h1:2 h2:2 h3:1"},
    {"-b slurm --nodes=2 true", {JOB, NODES, TASKS}, ALLOC_SLURM, "h0:2 h1:2 h2:2 h3:1"},
    {"-b rsh true", {JOB, NODES, TASKS}, ALLOC_SLURM, "h0:2 h1:2 h2:2 h3:1"},
    {"--print-hosts", {JOB, NODES, TASKS}, ALLOC_SLURM, "h0:2 h1:2 h2:2 h3:1"},
    /* hosts, --nodes and other methods come first */
    {"-H h3,h0:3 true", {JOB, NODES, TASKS}, ALLOC_SLURM, "h3:0 h0:3"},
    {"-H h3,x true", {JOB, NODES, TASKS}, ALLOC_NONE, "h3:0 x:0"},
    {"-H me@h3 true", {JOB, NODES, TASKS}, ALLOC_NONE, "me@h3:0"},
    {"-H h3 -b rsh true", {JOB, NODES, TASKS}, ALLOC_NONE, "h3:0"},
    {"-H h3 true", {JOB}, ALLOC_NONE, "h3:0"},
    {"--nodes=2 true", {JOB, NODES, TASKS}, ALLOC_NONE, ""},
    {"--nodes=2 true", {JOB}, ALLOC_NONE, ""},
    {"-b local true", {JOB}, ALLOC_NONE, ""},
    {"-b manual --secret-file=/x --nodes=2 true", {JOB}, ALLOC_NONE, ""},
    {"--serve=127.0.0.1 -n 2 true", {JOB}, ALLOC_NONE, ""},
    {"--print-config true", {JOB}, ALLOC_NONE, ""},
    /* within a step, whose own counts say nothing of the job */
    {"true",
     {JOB, NODES, "SLURM_TASKS_PER_NODE=1", "SLURM_NNODES=1", "SLURM_JOB_CPUS_PER_NODE=4(x4)", STEP},
     ALLOC_SLURM,
     "h0:4 h1:4 h2:4 h3:4"},
    {"true",
     {JOB, NODES, TASKS, "SLURM_NNODES=4", "SLURM_JOB_CPUS_PER_NODE=8(x4)", "SLURM_STEP_ID=4294967290",
      "SLURM_STEP_NUM_TASKS=1"},
     ALLOC_SLURM,
     "h0:2 h1:2 h2:2 h3:1"},
    {"true",
     {JOB, NODES, "SLURM_CPUS_PER_TASK=3", "SLURM_JOB_CPUS_PER_NODE=7,2(x3)", STEP},
     ALLOC_SLURM,
     "h0:2 h1:1 h2:1 h3:1"},
};

Test(alloc, table)
{
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct err err = {0};
        struct conf *conf = load_in(cases[i].line, cases[i].env, &err);

        cr_assert(conf != NULL, "%zu, %s: %s", i, cases[i].line, err.text);
        cr_expect_eq(conf->alloc, cases[i].kind, "%zu, %s: %d", i, cases[i].line, (int)conf->alloc);
        cr_expect_str_eq(hosts_of(conf), cases[i].hosts, "%zu, %s: %s", i, cases[i].line, hosts_of(conf));
        cr_expect((conf->alloc_job != NULL) == (cases[i].kind != ALLOC_NONE), "%zu", i);
        conf_free(conf);
    }
}

static const struct {
    const char *line, *env[8], *says[2];
} bad[] = {
    {"true", {JOB}, {"SLURM_JOB_ID is set, but SLURM_JOB_NODELIST is not", "--bootstrap=local"}},
    {"true", {NODES, TASKS}, {"SLURM_JOB_NODELIST is set, but SLURM_JOB_ID is not"}},
    {"true", {"SLURM_NODELIST=h1", TASKS}, {"SLURM_NODELIST is set, but SLURM_JOB_ID is not"}},
    {"true", {"SLURM_JOBID=7", TASKS}, {"SLURM_JOBID is set, but SLURM_JOB_NODELIST is not"}},
    {"true", {"SLURM_JOBID=7", NODES}, {"SLURM_JOBID is set, but SLURM_TASKS_PER_NODE is not"}},
    {"true", {"SLURM_JOBID=x", NODES, TASKS}, {"SLURM_JOBID: 'x'"}},
    {"true", {JOB, "SLURM_NODELIST=h[0-", TASKS}, {"SLURM_NODELIST: ", "h[0-"}},
    {"true", {JOB, "SLURM_NODELIST=h[0-3]", TASKS, "SLURM_NNODES=3"}, {"SLURM_NNODES is '3', but SLURM_NODELIST"}},
    {"true", {JOB, NODES}, {"SLURM_TASKS_PER_NODE is not"}},
    {"true", {JOB, NODES, "SLURM_TASKS_PER_NODE="}, {"SLURM_TASKS_PER_NODE is not"}},
    {"true", {JOB, "SLURM_JOBID=8", NODES, TASKS}, {"SLURM_JOB_ID is '7', but SLURM_JOBID is '8'"}},
    {"true", {JOB, NODES, "SLURM_NODELIST=h[0-2]", TASKS}, {"SLURM_NODELIST is 'h[0-2]'"}},
    {"true", {JOB, NODES, TASKS, "SLURM_JOB_NUM_NODES=3"}, {"SLURM_JOB_NUM_NODES is '3'", "names 4"}},
    {"true", {JOB, NODES, TASKS, "SLURM_NNODES=x"}, {"is 'x'"}},
    {"true", {JOB, NODES, "SLURM_TASKS_PER_NODE=2(x3)"}, {"SLURM_TASKS_PER_NODE: '2(x3)' is for 3 nodes", "are 4"}},
    {"true", {JOB, NODES, "SLURM_TASKS_PER_NODE=2(x5)"}, {"for more than the 4 nodes"}},
    {"true", {JOB, NODES, "SLURM_TASKS_PER_NODE=2(x4),1"}, {"for more than the 4 nodes"}},
    {"true", {JOB, NODES, "SLURM_TASKS_PER_NODE=2(x4),"}, {"is no list of counts"}},
    {"true", {JOB, NODES, "SLURM_TASKS_PER_NODE=,2(x4)"}, {"is no list of counts"}},
    {"true", {JOB, NODES, "SLURM_TASKS_PER_NODE=0(x4)"}, {"is no list of counts"}},
    {"true", {JOB, NODES, "SLURM_TASKS_PER_NODE=2(4)"}, {"is no list of counts"}},
    {"true", {JOB, NODES, "SLURM_TASKS_PER_NODE=2(x4"}, {"is no list of counts"}},
    {"true", {JOB, NODES, "SLURM_TASKS_PER_NODE=2(x)"}, {"is no list of counts"}},
    {"true", {JOB, NODES, "SLURM_TASKS_PER_NODE=4000(x4)"}, {"more than 1024 on one node"}},
    {"true", {JOB, "SLURM_JOB_NODELIST=h[0-", TASKS}, {"SLURM_JOB_NODELIST: ", "h[0-"}},
    {"true", {JOB, "SLURM_JOB_NODELIST=^/etc/passwd", TASKS}, {"SLURM_JOB_NODELIST: "}},
    {"true", {JOB, "SLURM_JOB_NODELIST=a@h", "SLURM_TASKS_PER_NODE=1"}, {"no list of Slurm's nodes"}},
    {"true", {"SLURM_JOB_ID=x", NODES, TASKS}, {"'x' is not the number of a job"}},
    {"true", {JOB, "SLURM_HET_SIZE=2", "SLURM_JOB_NODELIST_HET_GROUP_0=h0"}, {"SLURM_HET_SIZE is '2'"}},
    {"true", {JOB, NODES, TASKS, "SLURM_HET_SIZE=2"}, {"SLURM_HET_SIZE is '2'"}},
    {"true", {JOB, NODES, TASKS, STEP}, {"SLURM_JOB_CPUS_PER_NODE is not"}},
    {"true", {JOB, NODES, TASKS, "SLURM_STEP_ID=0", "SLURM_STEP_NUM_TASKS=4"}, {"srun -n1"}},
    {"-b rsh true", {JOB}, {"SLURM_JOB_NODELIST is not"}},
    {"-b slurm -H h1 true", {JOB}, {"SLURM_JOB_NODELIST is not"}},
    {"-b slurm -H h1,x true", {JOB, NODES, TASKS}, {"host 'x' is not in the allocation of job 7"}},
    {"-x x true", {JOB, NODES, TASKS}, {"'x' is no host of the list"}},
    {"-x h[0-3] true", {JOB, NODES, TASKS}, {"leaves no host"}},
};

Test(alloc, what_is_half_there_or_contradicts_itself_is_named)
{
    for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
        struct err err = {0};
        struct conf *conf = load_in(bad[i].line, bad[i].env, &err);

        cr_expect(conf == NULL, "%zu, %s", i, bad[i].says[0]);
        cr_expect_eq(err.code, -EINVAL, "%zu", i);
        for (size_t k = 0; k < ARRAY_SIZE(bad[i].says) && bad[i].says[k] != NULL; k++)
            cr_expect_not_null(strstr(err.text, bad[i].says[k]), "%zu: '%s' is not in: %s", i, bad[i].says[k],
                               err.text);
        conf_free(conf);
    }
}

/* What a manager's file holds, and which variable names it (NULL: the text is the variable's value). */
static const struct {
    const char *text, *variable, *env[4];
    enum alloc_kind kind;
    const char *hosts; /* or NULL: what is wrong */
    const char *says;
} files[] = {
    {"n1\nn1\nn2\nn1\n", "PBS_NODEFILE", {"PBS_JOBID=1.pbs"}, ALLOC_PBS, "n1:3 n2:1", NULL},
    {"n1.x.y\r\n\n  n2 \nn3", "PBS_NODEFILE", {"PBS_JOBID=1[3].pbs"}, ALLOC_PBS, "n1.x.y:1 n2:1 n3:1", NULL},
    {"", "PBS_NODEFILE", {"PBS_JOBID=1"}, ALLOC_PBS, NULL, "PBS_NODEFILE: '/tmp/test_conf."},
    {"a b\n", "PBS_NODEFILE", {"PBS_JOBID=1"}, ALLOC_PBS, NULL, "'a' is not alone in its line"},
    {"a:b\n", "PBS_NODEFILE", {"PBS_JOBID=1"}, ALLOC_PBS, NULL, "'a:b' is no name of a host"},
    {"a\n", "PBS_NODEFILE", {NULL}, ALLOC_PBS, NULL, "PBS_NODEFILE is set, but PBS_JOBID is not"},
    {NULL, NULL, {"PBS_JOBID=1"}, ALLOC_PBS, NULL, "PBS_JOBID is set, but PBS_NODEFILE is not"},
    {NULL,
     NULL,
     {"PBS_JOBID=1", "PBS_NODEFILE=/no/such"},
     ALLOC_PBS,
     NULL,
     "PBS_NODEFILE: '/no/such': cannot open it: No such"},

    {NULL, NULL, {"LSB_JOBID=5", "LSB_MCPU_HOSTS=hostA 4 hostB 2 "}, ALLOC_LSF, "hostA:4 hostB:2", NULL},
    {NULL, NULL, {"LSB_JOBID=5", "LSB_MCPU_HOSTS=b 1 a 2 b 2"}, ALLOC_LSF, "b:3 a:2", NULL},
    {NULL, NULL, {"LSB_JOBID=5", "LSB_MCPU_HOSTS=a 4 b"}, ALLOC_LSF, NULL, "behind 'b' a number of slots"},
    {NULL,
     NULL,
     {"LSB_JOBID=5", "LSB_MCPU_HOSTS=a 0"},
     ALLOC_LSF,
     NULL,
     "'0' behind 'a' is no number of slots, 1 to 1024"},
    {NULL, NULL, {"LSB_JOBID=5", "LSB_MCPU_HOSTS= "}, ALLOC_LSF, NULL, "LSB_MCPU_HOSTS: there is no host"},
    {NULL, NULL, {"LSB_JOBID=5"}, ALLOC_LSF, NULL, "LSB_JOBID is set, but LSB_MCPU_HOSTS is not"},
    {"hostA\nhostA\nhostB\n",
     "LSB_DJOB_HOSTFILE",
     {"LSB_JOBID=5", "LSB_MCPU_HOSTS=hostA 2 hostB 1"},
     ALLOC_LSF,
     "hostA:2 hostB:1",
     NULL},

    {"n1 4 all.q@n1 UNDEFINED\nn2 2 all.q@n2 0,0:0,1\n",
     "PE_HOSTFILE",
     {"JOB_ID=9", "NSLOTS=6"},
     ALLOC_SGE,
     "n1:4 n2:2",
     NULL},
    {"n1 1 a.q@n1 UNDEFINED\nn2 2 a.q\nn1 3 b.q@n1 UNDEFINED",
     "PE_HOSTFILE",
     {"JOB_ID=9"},
     ALLOC_SGE,
     "n1:4 n2:2",
     NULL},
    {"n1 4 q\n", "PE_HOSTFILE", {"JOB_ID=9", "NSLOTS=5"}, ALLOC_SGE, NULL, "has 4 slots, but NSLOTS is '5'"},
    {"n1 q\n", "PE_HOSTFILE", {"JOB_ID=9"}, ALLOC_SGE, NULL, "'q' behind 'n1' is no number of slots, 1 to 1024"},
    {"n1 2000 q\n", "PE_HOSTFILE", {"JOB_ID=9"}, ALLOC_SGE, NULL, "'2000' behind 'n1' is no number of slots"},
    {"n1 1000 q\nn1 1000 r\n", "PE_HOSTFILE", {"JOB_ID=9"}, ALLOC_SGE, NULL, "'n1' has more than 1024 slots"},
    {"a\nb\nb\n", "LSB_DJOB_HOSTFILE", {"LSB_JOBID=5", "LSB_MCPU_HOSTS=b 2 a 1"}, ALLOC_LSF, "a:1 b:2", NULL},
    {"a\nb\n", "LSB_DJOB_HOSTFILE", {"LSB_JOBID=5", "LSB_MCPU_HOSTS=b 2 a 1"}, ALLOC_LSF, NULL, "other hosts or slots"},
    {"a\nb\n", "LSB_DJOB_HOSTFILE", {"LSB_JOBID=5", "LSB_MCPU_HOSTS=b"}, ALLOC_LSF, NULL, "a number of slots"},
    {"a\n",
     "PBS_NODEFILE",
     {"PBS_JOBID=1", "LSB_JOBID=5", "LSB_MCPU_HOSTS=a 1"},
     ALLOC_NONE,
     NULL,
     "job 1 of PBS and job 5 of LSF at once"},
    {"n1 1 q\n", "PE_HOSTFILE", {NULL}, ALLOC_SGE, NULL, "PE_HOSTFILE is set, but JOB_ID is not"},
    {NULL, NULL, {"FLUX_JOB_ID=f1", "FLUX_JOB_SIZE=1"}, ALLOC_NONE, "", NULL},
    {NULL, NULL, {"FLUX_URI=local:///x", "PATH=/none"}, ALLOC_NONE, NULL, "flux getattr hostlist fails: 'sh: "},
    {NULL, NULL, {"FLUX_URI=x", "FLUX_PROXY_REMOTE=y"}, ALLOC_NONE, NULL, "FLUX_URI is of an instance elsewhere"},
    {NULL, NULL, {"FLUX_URI=x", "FLUX_JOB_ID=f1", "FLUX_JOB_SIZE=1"}, ALLOC_NONE, "", NULL},
    {NULL, NULL, {"FLUX_JOB_ID=f1", "FLUX_JOB_SIZE=4"}, ALLOC_NONE, NULL, "FLUX_JOB_SIZE is '4': each of the tasks"},
    {NULL, NULL, {"FLUX_JOB_ID=f1", "FLUX_JOB_SIZE=x"}, ALLOC_NONE, NULL, "FLUX_JOB_SIZE is 'x', which is no number"},
    {NULL, NULL, {"FLUX_JOB_ID=f1"}, ALLOC_NONE, NULL, "FLUX_JOB_ID is set, but FLUX_JOB_SIZE is not"},
    {NULL, NULL, {"JOB_ID=9", "NSLOTS=1"}, ALLOC_NONE, "", NULL},
    {"n1\n", "PBS_NODEFILE", {"PBS_JOBID=1", JOB, NODES, TASKS}, ALLOC_SLURM, "h0:2 h1:2 h2:2 h3:1", NULL},
};

Test(alloc, files_of_other_managers)
{
    for (size_t i = 0; i < ARRAY_SIZE(files); i++) {
        const char *path = files[i].text != NULL ? temp_file(files[i].text) : NULL;
        const char *env[8] = {NULL};
        char variable[128];
        struct err err = {0};
        struct conf *conf;
        size_t n = 0;

        for (; n < 4 && files[i].env[n] != NULL; n++)
            env[n] = files[i].env[n];
        if (path != NULL) {
            snprintf(variable, sizeof(variable), "%s=%s", files[i].variable, path);
            env[n] = variable;
        }
        conf = load_in("true", env, &err);
        if (path != NULL)
            unlink(path);
        cr_expect((conf != NULL) == (files[i].hosts != NULL), "%zu: %s", i, err.text);
        if (conf != NULL && files[i].hosts != NULL) {
            cr_expect_eq(conf->alloc, files[i].kind, "%zu", i);
            cr_expect_str_eq(hosts_of(conf), files[i].hosts, "%zu: %s", i, hosts_of(conf));
        } else if (conf == NULL && files[i].says != NULL) {
            cr_expect_not_null(strstr(err.text, files[i].says), "%zu: %s", i, err.text);
        }
        conf_free(conf);
    }
}
