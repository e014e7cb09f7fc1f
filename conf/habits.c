/* SPDX-License-Identifier: BSD-3-Clause */
/* habits.c - what users of mpiexec, mpirun, srun, pdsh and flux type, and what it is called here */
#include "conf/option.h"

#include "common/util.h"

static const char same_n[] = "the number of tasks is -n N";
static const char same_ppn[] = "tasks a node are --ppn=N";
static const char same_hosts[] = "hosts are -H HOSTS";
static const char same_file[] = "a file of hosts is -f FILE";
static const char same_env[] = "a variable is -E NAME=VALUE, or -E NAME for the launcher's own value";
static const char same_all[] = "the whole environment goes along anyway, leave it out";
static const char same_dir[] = "the directory is -C DIR";
static const char same_cpus[] =
    "CPU masks are left as they are; put taskset, numactl or hwloc-bind in front of COMMAND, or see --map";
static const char same_slots[] = "more tasks than slots are fine anyway, leave it out";
static const char same_label[] = "labels are -l";
static const char same_method[] = "the way to start is --bootstrap=METHOD";
static const char same_script[] = "a login command of your own is --rsh-command=PATH";
static const char same_iface[] = "addresses are chosen with --interface=NAME, ADDR or CIDR";
static const char same_mca[] = "parameters of Open MPI go into the environment, -E OMPI_MCA_NAME=VALUE";

static const struct {
    const char *word, *answer;
} habits[] = {
    {"np", same_n},
    {"c", same_n},
    {"tasks", same_n},
    {"ppn", same_ppn},
    {"perhost", same_ppn},
    {"npernode", same_ppn},
    {"pernode", "one task a node is --ppn=1"},
    {"ntasks-per-node", same_ppn},
    {"tasks-per-node", same_ppn},
    {"N", "nodes are --nodes=N, tasks a node --ppn=N"},
    {"hosts", same_hosts},
    {"host", same_hosts},
    {"nodelist", same_hosts},
    {"w", same_hosts},
    {"machinefile", same_file},
    {"default-hostfile", same_file},
    {"machine", same_file},
    {"env", same_env},
    {"genv", same_env},
    {"envlist", same_env},
    {"genvlist", same_env},
    {"export", same_env},
    {"envall", same_all},
    {"genvall", same_all},
    {"envnone", "an empty environment is --env-none"},
    {"genvnone", "an empty environment is --env-none"},
    {"wdir", same_dir},
    {"wd", same_dir},
    {"dir", same_dir},
    {"bind-to", same_cpus},
    {"bind-to-core", same_cpus},
    {"bind-to-none", same_cpus},
    {"binding", same_cpus},
    {"map-by", same_cpus},
    {"rank-by", same_cpus},
    {"cpu-bind", same_cpus},
    {"cpus-per-task", same_cpus},
    {"bynode", "ranks go round the nodes with --map=cyclic"},
    {"rr", "ranks go round the nodes with --map=cyclic"},
    {"byslot", "that is --map=block, the default"},
    {"distribution", "ranks are placed by --map=block or --map=cyclic"},
    {"oversubscribe", same_slots},
    {"nooversubscribe", "slots are no limit here, give -n no more than there are"},
    {"allow-run-as-root", "root needs no permission, leave it out"},
    {"prepend-rank", same_label},
    {"tag-output", same_label},
    {"prepend-pattern", same_label},
    {"outfile-pattern", "a file for each task is -o FILE"},
    {"output-filename", "a file for each task is -o FILE"},
    {"errfile-pattern", "a file for each task's errors is -e FILE"},
    {"stdin", "who reads standard input is -i RANK, all or none"},
    {"s", "who reads standard input is -i RANK, all or none"},
    {"launcher", same_method},
    {"rmk", same_method},
    {"bootstrap-exec", same_script},
    {"launcher-exec", same_script},
    {"rsh-agent", same_script},
    {"R", same_method},
    {"iface", same_iface},
    {"mca", same_mca},
    {"gmca", same_mca},
    {"prefix", "the place on the other hosts is --remote-path=PATH"},
    {"path", "the place on the other hosts is --remote-path=PATH; COMMAND is looked up in PATH"},
    {"configfile", "parts are written on the command line, with ':' between them"},
    {"app", "parts are written on the command line, with ':' between them"},
    {"test-size", "nodes played on this machine are --nodes=N"},
    {"wait", "a failed task ends the others; --keep-going leaves them"},
    {"kill-on-bad-exit", "a failed task ends the others; --keep-going leaves them"},
    {"disable-auto-cleanup", "a failed task ends the others; --keep-going leaves them"},
};

const char *option_habit(struct span word)
{
    for (size_t i = 0; i < ARRAY_SIZE(habits); i++)
        if (span_is(word, habits[i].word))
            return habits[i].answer;
    return NULL;
}
