#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# slurm.sh up N - have a real Slurm on the hosts: controller and munge on login, a node daemon on each of h0 .. h(N-1)
# slurm.sh down - end its daemons; the hosts stay
#
# The hosts must run. Every host sees the cluster's own folder as /etc/slurm; nothing of the machine's is changed. Each
# node claims 8 CPUs, whatever the machine has, and nobody is fenced in. Needs Debian's munge, slurmctld, slurmd and
# slurm-client. Then, for example: exec.sh login srun -N4 -n8 --mpi=pmi2 hostname </dev/null
set -u
here=$(cd "$(dirname "$0")" && pwd)
. "$here/common.sh"
slurm=$HOSTS_DIR/slurm

write_conf() {
    mkdir -p "$slurm/etc" "$slurm/state" "$slurm/spool" "$slurm/log" "$slurm/pid" "$slurm/munge" || exit 1
    chmod 755 "$slurm" "$slurm/munge"
    if [ ! -s "$slurm/munge/key" ]; then
        (umask 077 && head -c 1024 /dev/urandom >"$slurm/munge/key") || exit 1
    fi
    # Without a word on it slurmd looks for cgroups at its start, and ends where none are mounted.
    printf 'CgroupPlugin=cgroup/v1\nCgroupAutomount=no\nConstrainCores=no\n' >"$slurm/etc/cgroup.conf"
    cat >"$slurm/etc/slurm.conf" <<END
ClusterName=pmi-start-tests
SlurmctldHost=login($HOSTS_NET.0.1)
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
CredType=cred/munge
AuthInfo=socket=$slurm/munge/socket
StateSaveLocation=$slurm/state
SlurmdSpoolDir=$slurm/spool/%n
SlurmctldPidFile=$slurm/pid/slurmctld
SlurmdPidFile=$slurm/pid/slurmd-%n
SlurmctldLogFile=$slurm/log/slurmctld
SlurmdLogFile=$slurm/log/slurmd-%n
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
LaunchParameters=use_interactive_step
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
SwitchType=switch/none
MpiDefault=none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
SlurmdParameters=config_overrides
SchedulerParameters=sched_min_interval=0
ReturnToService=2
KillWait=5
NodeName=h[0-$(($1 - 1))] CPUs=8 RealMemory=2000
PartitionName=all Nodes=ALL Default=YES
END
}

# show HOST: the folder as /etc/slurm, in that host's own mounts.
show() {
    # shellcheck disable=SC2016 # for the shell on the host
    on "$1" sh -c 'mountpoint -q /etc/slurm || mount --bind "$1" /etc/slurm' sh "$slurm/etc" ||
        fail "cannot show $1 its /etc/slurm"
}

idle_nodes() { on login sinfo -h -N -t idle -o %N 2>/dev/null </dev/null | sort -u | wc -l; }

up() {
    local i
    for tool in munged slurmctld slurmd srun; do
        command -v "$tool" >/dev/null || fail "$tool is missing (Debian: munge slurmctld slurmd slurm-client)"
    done
    [ -d /etc/slurm ] || fail "there is no /etc/slurm to mount over"
    down
    write_conf "$1"
    show login
    on login munged --force --key-file="$slurm/munge/key" --socket="$slurm/munge/socket" \
        --pid-file="$slurm/pid/munged" --seed-file="$slurm/munge/seed" --log-file="$slurm/log/munged" \
        2>"$slurm/log/munged-start" || fail "munged: $(tail -n 3 "$slurm/log/munged-start")"
    on login slurmctld || fail "slurmctld: $(tail -n 3 "$slurm/log/slurmctld")"
    for ((i = 0; i < $1; i++)); do
        show "h$i"
        on "h$i" slurmd || fail "slurmd on h$i: $(tail -n 3 "$slurm/log/slurmd-h$i")"
    done
    for ((i = 0; i < 600; i++)); do
        (($(idle_nodes) < $1)) || return 0
        sleep 0.1
    done
    fail "after a minute only $(idle_nodes) nodes of $1 are idle"
}

# stop HOST PIDFILE: the daemon that wrote it there, and wait until it is gone.
stop() {
    local pid i
    { read -r pid <"$2"; } 2>/dev/null || return 0
    if init_pid "$1" >/dev/null && on "$1" kill "$pid" 2>/dev/null; then
        for ((i = 0; i < 500; i++)); do
            on "$1" kill -0 "$pid" 2>/dev/null || break
            sleep 0.02
        done
    fi
    rm -f "$2"
}

down() {
    local file host
    [ -d "$slurm" ] || return 0
    for file in "$slurm"/pid/slurmd-*; do
        [ -e "$file" ] && stop "${file##*-}" "$file"
    done
    stop login "$slurm/pid/slurmctld"
    stop login "$slurm/pid/munged"
    for host in $(recorded); do
        on "$host" sh -c '! mountpoint -q /etc/slurm || umount /etc/slurm' || :
    done
    rm -rf "$slurm"
}

case ${1:-} in
up)
    [[ ${2:-} =~ ^[1-9][0-9]{0,2}$ ]] || fail "usage: slurm.sh up N"
    up "$2"
    ;;
down) down ;;
*) fail "usage: slurm.sh up N, slurm.sh down" ;;
esac
