#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# pmi.sh - gets, barriers and exchanges of pmi-bench under pmi-start and, in the same run, under Hydra and Slurm
#
# Ours twice: over the wire, as every other server is asked, and through our own libpmi. And what pmi_floor needs, the
# least of servers, which has to wake the same tasks by the same replies: nobody who answers over the wire can be much
# better.
#
# Prints tables in Markdown. All columns of a row are measured in turn, run by run, so that a machine whose speed drifts
# changes them alike; read the ratios. All tasks are on this machine.
#   BENCH_RANKS  numbers of tasks ("1 64 256")
#   BENCH_RUNS   runs, medians are of these (5)
#   BENCH_RUN    what to put in front of each start, as in 'chrt -b 0'
#   BENCH_WORK   gets of all tasks together in one run (100000), from which the other counts follow
#   BENCH_SRUN   how Slurm starts tasks, where it is to be measured, as in 'srun --mpi=pmi2 -N1 --overcommit', or,
#                after tests/hosts/up.sh 1 and slurm.sh up 1, with 'tests/hosts/exec.sh login' in front of it
set -u
here=$(cd "$(dirname "$0")" && pwd)
build=${BENCH_BUILD:?the build folder; run me by make bench-pmi}
sizes=${BENCH_RANKS:-1 64 256}
runs=${BENCH_RUNS:-5}
work=${BENCH_WORK:-100000}
bench=$build/pmi-bench
tmp=$(mktemp -d)
# shellcheck source=tests/bench/medians.bash
. "$here/medians.bash"
trap 'rm -rf "$tmp"' EXIT
bad=0

# between LEAST MOST N
between() { echo $(($3 < $1 ? $1 : $3 > $2 ? $2 : $3)); }

# starter SERVER N: the words in front of the program; fails where there is no such server.
starter() {
    case $1 in
    ours | lib) starter=("$build/pmi-start" -n "$2") ;;
    floor) starter=("$build/tests/bench/pmi_floor" -n "$2") ;;
    hydra) starter=(mpiexec.hydra -n "$2") ;;
    slurm)
        [ -n "${BENCH_SRUN:-}" ] || return
        read -ra starter <<<"$BENCH_SRUN"
        starter+=(-n "$2")
        ;;
    esac
    command -v "${starter[0]}" >/dev/null
}

# measured SERVER N ARG...: a run of pmi-bench; its lines are in $tmp/out, what the whole of it used in $tmp/used.
measured() {
    local server=$1 n=$2 front=()
    shift 2
    starter "$server" "$n" || return
    [ -z "${BENCH_RUN:-}" ] || read -ra front <<<"$BENCH_RUN"
    [ "$server" != lib ] || set -- --library="$build/.libs/libpmi.so" "$@"
    TIMEFORMAT='%U %S'
    starter=("${front[@]}" "${starter[@]}" "$bench" --json)
    if ! { time timeout -s KILL 300 "${starter[@]}" "$@" </dev/null >"$tmp/out" 2>"$tmp/err"; } 2>"$tmp/used"; then
        echo "pmi.sh: $server, $n tasks: pmi-bench $*: $(tail -n 2 "$tmp/err")" >&2
        bad=1
        return 1
    fi
}

# field MEASURE NAME: of the last run.
field() { sed -n "s/.*\"measure\":\"$1\".*\"$2\":\([0-9.]*\).*/\1/p" "$tmp/out"; }

# server_cpu: seconds that the last run used without what its clients used while they measured.
server_cpu() {
    LC_ALL=C awk -v user="$(field cpu user_s)" -v sys="$(field cpu system_s)" '{print $1 + $2 - user - sys}' "$tmp/used"
}

# A get's own part of the server's time is the difference between many gets and few.
get_run() {
    local server=$1 n=$2 gets few before after
    gets=$(between 20 "$work" $((work / n)))
    few=$((gets / 10))
    measured "$server" "$n" get -c "$few" || return
    before=$(server_cpu)
    measured "$server" "$n" get -c "$gets" || return
    after=$(server_cpu)
    field get mean_us >>"$tmp/get-$server"
    field get median_us >>"$tmp/median-$server"
    LC_ALL=C awk -v a="$after" -v b="$before" -v gets=$(((gets - few) * n)) \
        'BEGIN {printf "%.3f\n", (a - b) * 1e6 / gets}' >>"$tmp/cpu-$server"
}

barrier_run() {
    measured "$1" "$2" barrier -c "$(between 100 1000 $((work / 10 / $2)))" && field barrier mean_us >>"$tmp/barrier-$1"
}

exchange_run() {
    measured "$1" "$2" exchange -c "$(between 3 100 $((work / $2 / $2)))" && field round mean_us >>"$tmp/exchange-$1"
}

growth_run() {
    measured "$1" 8 exchange -r 1 -c 1000 || return
    field round-first-tenth median_us >>"$tmp/first-$1"
    field round-last-tenth median_us >>"$tmp/last-$1"
}

us() { LC_ALL=C awk -v us="$(median "$1")" 'BEGIN {printf us == "" ? " - |" : " %.2f |", us}'; }

# row N WHAT NAME
row() {
    printf '| %s | %s |' "$1" "$2"
    us "$3-ours"; us "$3-lib"; us "$3-floor"; us "$3-hydra"; us "$3-slurm"
    ratio "$3-ours" "$3-hydra"; ratio "$3-lib" "$3-hydra"; ratio "$3-floor" "$3-hydra"; ratio "$3-ours" "$3-slurm"
    echo
}

rows_of() {
    local n=$1 i server
    rm -f "$tmp"/*-*
    for ((i = 0; i < runs; i++)); do
        for server in ours lib floor hydra slurm; do
            get_run "$server" "$n"
            barrier_run "$server" "$n"
            exchange_run "$server" "$n"
        done
    done
    row "$n" 'get, mean' get
    row "$n" 'get, median' median
    rm -f "$tmp/cpu-slurm" "$tmp/cpu-lib" # its daemons are nobody's children; gets from the mapping take none
    row "$n" "get, server's CPU" cpu
    row "$n" 'barrier, mean' barrier
    row "$n" 'exchange, mean' exchange
}

echo "pmi-bench on this machine, values of 64 bytes, microseconds (medians of $runs runs):"
echo
echo -n '| tasks | what | pmi-start | libpmi | floor | Hydra | Slurm '
echo '| ours/Hydra | libpmi/Hydra | floor/Hydra | ours/Slurm |'
echo '|---|---|---|---|---|---|---|---|---|---|---|'
for n in $sizes; do
    rows_of "$n"
done
rm -f "$tmp"/*-*
for ((i = 0; i < runs; i++)); do
    for server in ours hydra; do
        growth_run "$server"
    done
done
echo
echo "1000 rounds of an exchange with one rank, 8 tasks: the median round, microseconds (medians of $runs runs):"
echo
echo '| server | rounds 1 to 100 | rounds 901 to 1000 | last/first |'
echo '|---|---|---|---|'
for server in ours hydra; do
    printf '| %s |' "$server"
    us "first-$server"; us "last-$server"; ratio "last-$server" "first-$server"
    echo
done
exit $bad
