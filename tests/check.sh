#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# check.sh - all that must hold before a change goes in (called by `./quickstart check`, after a build in ./build)
#
# Each part writes a log, build/check/PART.log, and the last line here counts the tests of all of them. A part that has
# no tests of its own counts as one. A test that was skipped makes the whole fail: here everything is there to run it.
#
# The end-to-end tests wait more than they work. What only compiles and computes runs beside them, at a low priority.
set -u
cd "$(dirname "$0")/.." || exit 1
logs=$PWD/build/check
jobs=$(nproc)
FUZZ_SECS=${FUZZ_SECS:-30}     # for each target
PART_LIMIT=${PART_LIMIT:-1000} # seconds for each part

# Add up one part's results from what it left: automake's *.trs below a folder, its summaries in a log, or a TAP file.
tally_trs() {
    local results
    results=$(find "$1" -name '*.trs' -exec sed -n 's/^:test-result: \([A-Z]*\).*/\1/p' {} +)
    p=$(grep -cxE 'PASS' <<<"$results")
    f=$(grep -cxE 'FAIL|ERROR|XPASS' <<<"$results")
    s=$(grep -cxE 'SKIP|XFAIL' <<<"$results")
}

tally_summaries() {
    p=$(awk '/^# PASS:/ { n += $3 } END { print n + 0 }' "$1")
    f=$(awk '/^# (FAIL|ERROR|XPASS):/ { n += $3 } END { print n + 0 }' "$1")
    s=$(awk '/^# (SKIP|XFAIL):/ { n += $3 } END { print n + 0 }' "$1")
}

tally_tap() {
    s=$(grep -cE '^(not )?ok .*# (skip|SKIP|todo|TODO)' "$1")
    f=$(grep -vE '# (skip|SKIP|todo|TODO)' "$1" | grep -c '^not ok ')
    p=$(grep -vE '# (skip|SKIP|todo|TODO)' "$1" | grep -c '^ok ')
}

# Run a part in process groups of its own. One that has no end is ended, and its log says what hung.
limited() {
    local pid watch rc
    set -m
    "$@" </dev/null &
    pid=$!
    overdue "$pid" &
    watch=$!
    set +m
    wait "$pid"
    rc=$?
    kill -- "-$watch" 2>/dev/null && wait "$watch" 2>/dev/null
    return $rc
}

overdue() {
    sleep "$PART_LIMIT"
    echo "error: no end after $PART_LIMIT s. What runs (a process in state T is stopped):"
    ps -eo pid,ppid,stat,ni,etimes,wchan:16,args --forest --cols 200 |
        awk -v top="$1" '$1 == top || $2 in below { below[$1]; print }'
    kill -KILL -- "-$1"
}

# part NAME RESULTS COMMAND...: RESULTS is a folder of *.trs, a TAP file (`log`: the part's own log), `summaries` in the
# log, or `none`. What it prints comes in one piece, as another part may run at the same time.
part() {
    local name=$1 results=$2 log=$logs/$1.log start=$SECONDS rc p=0 f=0 s=0
    shift 2
    [ -f "$results" ] && rm -f "$results"
    limited "$@" >"$log" 2>&1
    rc=$?
    case $results in
        log) tally_tap "$log" ;;
        summaries) tally_summaries "$log" ;;
        *) if [ -d "$results" ]; then tally_trs "$results"; elif [ -f "$results" ]; then tally_tap "$results"; fi ;;
    esac
    ((p + f + s > 0 || rc != 0)) || p=1
    ((rc == 0 || f > 0)) || f=1
    echo "$p $f $s" >"$logs/$name.count"
    {
        printf '%-22s %4d passed %3d failed %3d skipped %4d s\n' "$name" "$p" "$f" "$s" $((SECONDS - start))
        ((f == 0)) || report "$log"
    } >"$log.said"
    cat "$log.said"
}

report() {
    echo "--- $1:"
    grep -aE -A10 '^not ok|^FAIL|^ERROR|error:' "$1" | head -n 60
    echo '--- its end:'
    tail -n 40 "$1"
    echo '---'
}

# configured DIR OPTION...: a build of its own below build/check. A subshell, so that the next part stands where we do.
configured() (
    dir=$1
    shift
    mkdir -p "$dir" && cd "$dir" && "$top/configure" -q "$@"
)

make_check() { make -C "$1" -j"$jobs" -k check; }

# Every program that the end-to-end tests need is built before their time starts to run.
make_e2e() {
    local dir=$1 report=$2
    shift 2
    mkdir -p "$report" && make -C "$dir" e2e E2E_REPORT="$report" ${1:+E2E="$*"}
}

# Lists of end-to-end files side by side, on hosts of their own: much of their time is waiting.
e2e_lanes() {
    local dir=$1 report=$2 list lane=0 rc=0 pids=() pid
    shift 2
    make -C "$dir" all >/dev/null || return
    for list; do
        make_e2e "$dir" "$report/$lane" "$list" &
        pids+=($!)
        lane=$((lane + 1))
    done
    for pid in "${pids[@]}"; do
        wait "$pid" || rc=1
    done
    cat "$report"/[0-9]/report.tap >"$report/report.tap"
    return $rc
}

# All of them, those that take longest first (a report has the times); those that fill the machine with nodes and hosts
# alone.
e2e_all() {
    local heavy='tests/e2e/t0200-tree.bats tests/e2e/t0900-many-hosts.bats' file lane=('' '' '') i=0 rc=0
    local long='tests/e2e/t0120-start-failures.bats tests/e2e/t0420-serve.bats tests/e2e/t0400-port.bats'
    for file in $long tests/e2e/t*.bats; do
        [[ " $heavy ${lane[*]} " == *" $file "* ]] || lane[i++ % 3]+=" $file"
    done
    e2e_lanes "$1" "$2" "${lane[@]}" || rc=1
    make_e2e "$1" "$2/heavy" "$heavy" || rc=1
    cat "$2/heavy/report.tap" >>"$2/report.tap"
    return $rc
}

# Those that walk most of the program, for the sanitizers, under which everything takes several times as long.
e2e_sanitized() {
    e2e_lanes "$1" "$2" tests/e2e/t0300-exit-table.bats \
        'tests/e2e/t0110-readers.bats tests/e2e/t0210-streams.bats tests/e2e/t0230-pmi.bats'
}

# With clang, and from the packed sources.
distcheck_clang() {
    make -C "$logs/sanitize" -j"$jobs" distcheck DISTCHECK_CONFIGURE_FLAGS='CC=clang --enable-werror'
}

# Those that compile and compute; whatever time is left is the fuzzers'.
low_lane() {
    renice -n 15 -p $BASHPID >/dev/null
    part sanitizers-configure none configured "$logs/sanitize" --enable-werror --enable-sanitize
    part fuzz none nice -n 4 make -C "$logs/sanitize" fuzz FUZZ_SECS="$FUZZ_SECS" &
    part sanitizers "$logs/sanitize" make_check "$logs/sanitize"
    part distcheck-clang summaries distcheck_clang
    wait
}

rm -rf "$logs"
mkdir -p "$logs"
top=$PWD

part lint log make -s -C build lint
part gcc "$top/build" make_check build
low_lane &
low=$!
part end-to-end "$logs/e2e/report.tap" e2e_all build "$logs/e2e"
part faults log make -s -C build faults N=100 SEED=1
part bench-smoke none make -C build bench-smoke
part soak-smoke none make -C build soak-smoke
# What the low lane has built.
while [ ! -e "$logs/sanitizers.count" ] && kill -0 $low; do sleep 1; done
part sanitizers-e2e "$logs/e2e-sanitized/report.tap" e2e_sanitized "$logs/sanitize" "$logs/e2e-sanitized"
wait $low

read -r passed failed skipped < <(cat "$logs"/*.count | awk '{ p += $1; f += $2; s += $3 } END { print p, f, s }')
echo "$passed passed, $failed failed, $skipped skipped"
((failed == 0 && skipped == 0))
