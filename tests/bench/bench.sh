#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# bench.sh - how long a start takes on ssh hosts, beside pdsh, Hydra and Open MPI; and one PMI get beside its floor
#
# Prints tables in Markdown. All columns of a row are measured in turn, round by round, so that a machine whose speed
# drifts changes them alike; read the ratios. Needs root (hosts are network namespaces made by tests/hosts).
#   BENCH_HOSTS  numbers of hosts ("1 4 16 32")
#   BENCH_RUNS   rounds, medians are of these (7)
set -u
here=$(cd "$(dirname "$0")" && pwd)
hosts=$here/../hosts
build=${BENCH_BUILD:?the build folder; run me by make bench}
sizes=${BENCH_HOSTS:-1 4 16 32}
runs=${BENCH_RUNS:-7}
gets=${BENCH_GETS:-20000}
pmi_start=$build/pmi-start
progs=$build/tests/progs
tmp=$(mktemp -d)
# shellcheck source=tests/bench/medians.bash
. "$here/medians.bash"
trap '"$hosts/down.sh" >/dev/null 2>&1; rm -rf "$tmp"' EXIT

on_login() { "$hosts/exec.sh" login "$@"; }

# hosts_of N: h0,h1,... for those that know no brackets
hosts_of() { seq -s, -f 'h%g' 0 $(($1 - 1)); }

bad=0

# once NAME COMMAND...: microseconds from start to exit go to $tmp/NAME. A peer that is not installed has no column.
once() {
    local name=$1 start end
    shift
    command -v "$1" >/dev/null || return
    start=$EPOCHREALTIME
    if ! on_login timeout -s KILL 120 "$@" </dev/null >"$tmp/out" 2>"$tmp/err"; then
        echo "bench: $name failed: $*: $(tail -n 2 "$tmp/err")" >&2
        bad=1
        return
    fi
    end=$EPOCHREALTIME
    echo $((${end/./} - ${start/./})) >>"$tmp/$name"
}

cell() {
    local us
    us=$(median "$1") || { printf ' - |'; return; }
    LC_ALL=C awk -v us="$us" 'BEGIN {printf " %.3f |", us / 1e6}'
}

start_row() {
    local n=$1 list i
    list=$(hosts_of "$n")
    rm -f "$tmp"/m_*
    for ((i = 0; i < runs; i++)); do
        once m_pdsh pdsh -R ssh -f 32 -w "h[0-$((n - 1))]" true
        once m_ours "$pmi_start" -H "h[0-$((n - 1))]" true
        once m_hydra mpiexec.hydra -launcher ssh -hosts "$list" -n "$n" -ppn 1 true
        once m_ompi mpirun.openmpi --allow-run-as-root --host "$list" -n "$n" true
        [ -x "$progs/mpi_check" ] || continue
        once m_ours_mpi "$pmi_start" -H "h[0-$((n - 1))]" "$progs/mpi_check"
        once m_hydra_mpi mpiexec.hydra -launcher ssh -hosts "$list" -n "$n" -ppn 1 "$progs/mpi_check"
        [ -x "$progs/mpi_check_openmpi" ] || continue
        once m_ompi_mpi mpirun.openmpi --allow-run-as-root --host "$list" -n "$n" "$progs/mpi_check_openmpi"
    done
    printf '| %s |' "$n"
    cell m_pdsh; cell m_ours; cell m_hydra; cell m_ompi
    ratio m_ours m_pdsh; ratio m_ours m_hydra; ratio m_ours m_ompi
    cell m_ours_mpi; cell m_hydra_mpi; cell m_ompi_mpi
    ratio m_ours_mpi m_hydra_mpi; ratio m_ours_mpi m_ompi_mpi
    echo
}

start_table() {
    echo "Start to exit, seconds (medians of $runs; one task a host; Hydra and Open MPI over ssh):"
    echo
    printf '| hosts | pdsh true | pmi-start true | Hydra true | mpirun true | ours/pdsh | ours/Hydra | ours/mpirun |'
    echo ' pmi-start MPI | Hydra MPI | mpirun MPI | ours/Hydra | ours/mpirun |'
    echo '|---|---|---|---|---|---|---|---|---|---|---|---|---|'
    for n in $sizes; do
        "$hosts/up.sh" "$n" >/dev/null || exit 1
        start_row "$n"
    done
    echo
}

# get_once NAME COMMAND...: get_rtt's median, in nanoseconds so that it is whole
get_once() {
    local name=$1
    shift
    "$@" 2>"$tmp/err" | awk '{printf "%d\n", $2 * 1000}' >>"$tmp/$name"
    [ -s "$tmp/$name" ] && return
    echo "bench: $name failed: $(tail -n 1 "$tmp/err")" >&2
    bad=1
}

get_table() {
    local i rtt=$build/tests/bench/get_rtt mask
    echo "One get of 64 bytes, microseconds (medians of $runs medians of $gets):"
    echo
    echo '| CPUs | socket pair | pmi-start | Hydra | ours/socket pair | ours/Hydra |'
    echo '|---|---|---|---|---|---|'
    for mask in 0 0,1; do
        rm -f "$tmp"/g_*
        for ((i = 0; i < runs; i++)); do
            get_once g_floor taskset -c "$mask" "$rtt" floor "$gets"
            get_once g_ours taskset -c "$mask" "$pmi_start" -n 1 "$rtt" pmi "$gets"
            get_once g_hydra taskset -c "$mask" mpiexec.hydra -n 1 "$rtt" pmi "$gets"
        done
        printf '| %s |' "$mask"
        for c in g_floor g_ours g_hydra; do
            LC_ALL=C awk -v ns="$(median $c)" 'BEGIN {printf " %.2f |", ns / 1e3}'
        done
        ratio g_ours g_floor; ratio g_ours g_hydra
        echo
    done
}

# The same get through our libpmi, from the mapping of the node's keys and over the wire, one after the other.
lib_table() {
    local n i
    echo
    echo "One get of 64 bytes through libpmi, microseconds (medians of $runs medians):"
    echo
    echo '| tasks | mapping | wire | wire/mapping |'
    echo '|---|---|---|---|'
    for n in 1 4 16; do
        rm -f "$tmp"/l_*
        for ((i = 0; i < runs; i++)); do
            if ! "$pmi_start" -n "$n" "$build/tests/bench/get_lib" $((gets * 10)) >"$tmp/out" 2>"$tmp/err"; then
                echo "bench: get_lib failed: $(tail -n 1 "$tmp/err")" >&2
                bad=1
            fi
            awk -v dir="$tmp" '{print $2 >>(dir "/l_" $1)}' "$tmp/out"
        done
        printf '| %s |' "$n"
        for c in l_map l_wire; do
            LC_ALL=C awk -v ns="$(median $c)" 'BEGIN {printf " %.3f |", ns / 1e3}'
        done
        ratio l_wire l_map
        echo
    done
}

start_table
get_table
lib_table
exit $bad
