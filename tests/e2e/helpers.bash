# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash disable=SC2034 # much is set for the tests
# helpers.bash - what every file of end-to-end tests loads (load helpers)
#
# All of them run pmi-start on the host `login`, whatever the bootstrap, because there everything that a run leaves
# behind can be seen: see clean_start() and leftovers().
bats_require_minimum_version 1.7.0

hosts_scripts=$(cd "$BATS_TEST_DIRNAME/../hosts" && pwd)
# shellcheck source=tests/hosts/common.sh
. "$hosts_scripts/common.sh" # for on HOST COMMAND...
build=${E2E_BUILD:?the build folder; run me by make e2e}
pmi_start=$build/pmi-start
client=$build/tests/progs/pmi_client
mpi_check=$build/tests/progs/mpi_check
RUN_LIMIT=30 # seconds that run_pmi gives a run

# Have hosts h0 .. h(N-1). Also starts again those that a test has crashed.
need_hosts() { "$hosts_scripts/up.sh" "$1"; }

crash_host() { "$hosts_scripts/down.sh" "$1"; }

# cable HOST up|down: a host whose cable is out is silent, where one that crashed resets connections.
cable() {
    local prefix
    read -r prefix _ <"$HOSTS_DIR/settings"
    ip -n "${prefix}login" link set "v$1" "$2"
}

# Run pmi-start on login, at most RUN_LIMIT seconds. Sets $status, $output, $stderr, $lines and $stderr_lines as bats'
# run does. A run over its limit has status 137, which nothing else here produces by accident. Where 127 is meant to
# come out, RUN_STATUS=-127 tells bats so, which takes it for a slip otherwise.
run_pmi() { run ${RUN_STATUS:-} --separate-stderr on login timeout -s KILL "$RUN_LIMIT" "$pmi_start" "$@"; }

# works RANKS ARG...: a run in which every rank gets what every rank has put, and not a word is said.
works() {
    local ranks=$1
    shift
    run_pmi "$@" "$client" init , exchange 1 10 0 new , finalize
    exchanged "$ranks"
}

# Of a run that was begun in another way.
exchanged() {
    expect_status 0
    [ "$output" = "exchange: $1 ranks, 1 rounds, all right" ] || show_run "not $1 ranks"
    [ -z "$stderr" ] || show_run "words on standard error"
}

# run_env NAME=VALUE... -- ARG...: the same with more in its environment.
run_env() {
    local vars=()
    while [ "$1" != -- ]; do
        vars+=("$1")
        shift
    done
    shift
    run --separate-stderr on login env "${vars[@]}" timeout -s KILL "$RUN_LIMIT" "$pmi_start" "$@"
}

# A PATH with all that the shipped script needs but pdsh, as a folder that the hosts see.
path_without_pdsh() {
    local dir=$HOSTS_DIR/no-pdsh name
    mkdir -p "$dir"
    for name in sh env awk sed grep xargs cat cut printf timeout ssh; do
        ln -sf "$(command -v "$name")" "$dir/$name"
    done
    echo "$dir"
}

# site_script NAME: make a bootstrap script of standard input, and say where the hosts see it.
site_script() {
    local file=$HOSTS_DIR/script-$1
    { echo '#!/bin/sh' && cat; } >"$file"
    chmod 755 "$file"
    echo "$file"
}

# start_pmi NAME ARG...: the same in the background, output in $BATS_TEST_TMPDIR/NAME.out and .err; end it by wait_pmi.
# Its input is the file START_INPUT, if that is set.
start_pmi() {
    local name=$1
    shift
    # At once, not when the process below gets to it: whoever waits for a word would find that of the run before.
    : >"$BATS_TEST_TMPDIR/$name.out" 2>"$BATS_TEST_TMPDIR/$name.err"
    on login timeout --foreground -s KILL "$RUN_LIMIT" "$pmi_start" "$@" \
        <"${START_INPUT:-/dev/null}" >"$BATS_TEST_TMPDIR/$name.out" 2>"$BATS_TEST_TMPDIR/$name.err" 3>&- &
    started[$name]=$!
}
declare -gA started=() # load is a function, so without -g it would be gone behind it

# wait_pmi NAME: sets $status, $output and $stderr of a run begun by start_pmi.
wait_pmi() {
    status=0
    wait "${started[$1]}" || status=$?
    output=$(<"$BATS_TEST_TMPDIR/$1.out")
    stderr=$(<"$BATS_TEST_TMPDIR/$1.err")
}

# run_pty SCRIPT ARG...: pmi-start on its own terminal. SCRIPT types into it (see pty_run.py)
run_pty() {
    local script=$1
    shift
    run on login timeout -s KILL "$RUN_LIMIT" python3 "$BATS_TEST_DIRNAME/pty_run.py" "$script" "$pmi_start" "$@"
}

# start_pty NAME SCRIPT ARG...: the same in the background, its output in $BATS_TEST_TMPDIR/NAME. Sets $pty to its pid.
start_pty() {
    local out=$BATS_TEST_TMPDIR/$1 script=$2
    shift 2
    : >"$out"
    on login timeout -s KILL "$RUN_LIMIT" python3 "$BATS_TEST_DIRNAME/pty_run.py" "$script" "$pmi_start" "$@" \
        >"$out" 2>&1 3>&- &
    pty=$!
}

# wait_until SECONDS COMMAND...: until COMMAND succeeds, asked every 20 ms; fails when the time is over.
wait_until() {
    local end=$((${EPOCHREALTIME/./} + $1 * 1000000))
    shift
    until "$@"; do
        if ((${EPOCHREALTIME/./} > end)); then
            echo "not within the limit: $*" >&2
            return 1
        fi
        sleep 0.02
    done
}

says() { grep -qse "$2" "$BATS_TEST_TMPDIR/$1"; }

# Before a run: remember what the hosts hold anyway.
clean_start() { "$hosts_scripts/traces.py" >"$BATS_TEST_TMPDIR/traces"; }

same_traces() {
    "$hosts_scripts/traces.py" >"$BATS_TEST_TMPDIR/traces.now"
    cmp -s "$BATS_TEST_TMPDIR/traces" "$BATS_TEST_TMPDIR/traces.now"
}

# leftovers [SECONDS]: after a run, every process, file and socket of it must be gone from every host, at once or
# within SECONDS (default 2, as an sshd needs a moment to end). Prints what is left, and fails.
leftovers() {
    wait_until "${1:-2}" same_traces 2>/dev/null && return
    echo "left behind (>) or lost (<):"
    diff "$BATS_TEST_TMPDIR/traces" "$BATS_TEST_TMPDIR/traces.now" | grep '^[<>]'
    return 1
}

# A test that failed may leave a run behind, and files. They go before the next one starts, which would find two
# launchers, or leftovers that come and go. Asked again, as what a process has started just then is not on the list.
end_failed() {
    local i mark host kind what rest
    [ -z "${BATS_TEST_COMPLETED:-}" ] && [ -e "$BATS_TEST_TMPDIR/traces" ] || return 0
    for ((i = 0; i < 10; i++)); do
        same_traces && return
        while read -r mark host kind what rest; do
            case $mark$kind in
                '>process') on "$host" kill -s KILL "$what" || true ;;
                '>file') on "$host" rm -rf "$what${rest:+ $rest}" || true ;;
            esac
        done < <(diff "$BATS_TEST_TMPDIR/traces" "$BATS_TEST_TMPDIR/traces.now") 2>/dev/null
    done
}

# A file with a teardown of its own calls this in it.
teardown() { end_failed; }

# expect_status N, expect_line TEXT: readable failures, with all that is known of the run.
expect_status() {
    [ "$status" = "$1" ] || show_run "status $status instead of $1"
}

# One of the lines of standard error is "pmi-start: TEXT", where TEXT is a pattern of the shell's.
expect_line() {
    local line
    while IFS= read -r line; do
        # shellcheck disable=SC2053 # a pattern on purpose
        [[ $line == "pmi-start: "$1 ]] && return
    done <<<"$stderr"
    show_run "no line 'pmi-start: $1'"
}

# No more than N lines of pmi-start's own.
expect_lines_at_most() {
    local count
    count=$(grep -c '^pmi-start: ' <<<"$stderr") || true
    ((count <= $1)) || show_run "$count lines of pmi-start's, more than $1"
}

show_run() {
    printf '%s\n--- standard output:\n%s\n--- standard error:\n%s\n' "$1" "$output" "$stderr"
    return 1
}

# named HOST NAME: pids of the processes of that name, one a line, as numbers of that host.
named() {
    # shellcheck disable=SC2016 # for the shell on the host
    on "$1" sh -c 'grep -lx "$1" /proc/[0-9]*/comm 2>/dev/null | cut -d/ -f3' sh "$2"
}

# Likewise: `keepers` are those named so, their parents are workers (also
# the launcher, where it is in use), their other children are the tasks.
keepers() { named "$1" pmi-keeper; }

# shellcheck disable=SC2016 # for the shell on the host
workers() {
    on "$1" sh -c 'for pid in $(grep -lx pmi-keeper /proc/[0-9]*/comm 2>/dev/null | cut -d/ -f3); do
        sed -n "s/^PPid:\t//p" /proc/$pid/status; done'
}

# By the parent in status, as not every kernel has the file that names children; a script or ssh that the keeper
# runs is no task, and has no rank.
# shellcheck disable=SC2016
tasks() {
    on "$1" sh -c 'keepers=$(grep -lx pmi-keeper /proc/[0-9]*/comm 2>/dev/null | cut -d/ -f3)
        for keeper in $keepers; do
            for child in $(grep -lx "PPid:[[:space:]]*$keeper" /proc/[0-9]*/status 2>/dev/null | cut -d/ -f3); do
                grep -qzs "^PMI_RANK=" /proc/$child/environ && echo $child
            done
        done | sort -n'
}

# The launcher: a worker on login that is no provider, that is, has not been told a port. Not by pidof, which passes
# over whatever waits for the disk just then.
# shellcheck disable=SC2016
launcher() {
    on login sh -c 'for pid in $(pgrep -x pmi-start); do
        args=$(tr "\0" "\n" <"/proc/$pid/cmdline")
        [ -z "$args" ] || echo "$args" | grep -q ^--pmi-port= || echo "$pid"
    done'
}

# signal_on HOST SIGNAL PID...
signal_on() {
    local host=$1 name=$2
    shift 2
    on "$host" kill -s "$name" "$@"
}

has_tasks() { [ "$(tasks "$1" | wc -l)" -ge "$2" ]; }

need_pmix() { grep -qx '#define HAVE_PMIX 1' "$build/config.h" || skip "built without PMIx"; }

# make_pmix_program NAME: of tests/progs/openpmix, where all hosts have it, as $HOSTS_DIR/NAME.
make_pmix_program() {
    # shellcheck disable=SC2046 # words on purpose
    gcc -o "$HOSTS_DIR/$1" $(pkg-config --cflags pmix) "$BATS_TEST_DIRNAME/../progs/openpmix/$1.c" -lpmix
}

# Sets $ompi, a program of Open MPI.
need_openmpi() {
    ompi=$build/tests/progs/ompi_check
    [ -x "$ompi" ] || skip "built without Open MPI"
    need_pmix
}
