# SPDX-License-Identifier: BSD-3-Clause
# What waits, says for whom: a barrier that lasts, a signal that ends a barrier or a start, and QUIT at any time.
load helpers

setup_file() { need_hosts 3; }

setup() {
    clean_start
    RUN_LIMIT=60
}

teardown() {
    end_failed
    on login rm -f /root/slow /root/begun
}

three=(--bootstrap=rsh -H 'login,h[0-1]')

# Ranks 0 and 1 wait for rank 2, which sleeps for $1 ms.
late() { late=(init , barrier , on 2 , sleep "$1" , all , barrier , finalize); }

# lines TEXT N: so many lines of standard error begin so.
lines() { (($(grep -c "^pmi-start: $1" "$BATS_TEST_TMPDIR/run.err") >= $2)); }

# In the background; ready once rank 0 has said so.
begin() {
    start_pmi run "$@"
    wait_until 40 says run.out ready
}

in_second_barrier=(init , barrier , print ready%r , on 0,1 , barrier , on 2 , sleep 600000)

# Both ranks that do not sleep have entered: what the state says of it.
waits_for_two() {
    signal_on login QUIT "$(launcher)"
    wait_until 5 lines 'state: bytes' 1
    wait_until 5 lines "state: the launcher's links: 2 children, received " 1
    grep -q '^pmi-start: state: barrier 2: entered by ranks 0-1 on h0,login, not entered by rank 2 on h1$' \
        "$BATS_TEST_TMPDIR/run.err" ||
        grep -q '^pmi-start: state: barrier 2: entered by ranks 0-1 on login,h0, not entered by rank 2 on h1$' \
            "$BATS_TEST_TMPDIR/run.err"
}

@test "a barrier that lasts is said once, with those it waits for, and goes on" {
    late 3500
    run_pmi "${three[@]}" --barrier-warn=1 "$client" "${late[@]}"
    expect_status 0
    expect_line 'barrier 2 has lasted 1 s, not entered by rank 2 on h1'
    expect_lines_at_most 1
    leftovers
}

@test "on one host as well" {
    late 2500
    run_pmi -n 3 --barrier-warn=1 "$client" "${late[@]}"
    expect_status 0
    expect_line 'barrier 2 has lasted 1 s, not entered by rank 2 on login'
    expect_lines_at_most 1
}

@test "so is one of a group" {
    run_pmi "${three[@]}" --barrier-warn=1 "$client" --style=mpich init , on 1 , sleep 3500 , on 1,2 , \
        raw 'cmd=barrier_in group=1,2:5' , all , finalize
    expect_status 0
    expect_line 'barrier 1 of ranks 1-2 with tag 5 has lasted 1 s, not entered by rank 1 on h0'
    expect_lines_at_most 1
}

@test "--barrier-warn=0 says nothing of it" {
    late 1500
    run_pmi "${three[@]}" --barrier-warn=0 "$client" "${late[@]}"
    expect_status 0
    expect_lines_at_most 0
}

@test "QUIT says the state of the run, and nothing else happens" {
    begin "${three[@]}" "$client" "${in_second_barrier[@]}"
    wait_until 20 waits_for_two
    grep -q '^pmi-start: state: all 3 hosts have joined$' "$BATS_TEST_TMPDIR/run.err"
    grep -q '^pmi-start: state: 3 ranks, 3 run$' "$BATS_TEST_TMPDIR/run.err"
    ! grep '^pmi-start: ' "$BATS_TEST_TMPDIR/run.err" | grep -v '^pmi-start: state: ' || false
    [ "$(tasks h1 | wc -l)" = 1 ]
    signal_on login TERM "$(launcher)"
    wait_pmi run
    expect_status 143
    leftovers
}

@test "QUIT names a host that does not answer" {
    local stopped
    begin "${three[@]}" "$client" "${in_second_barrier[@]}"
    stopped=$(workers h1)
    signal_on h1 STOP "$stopped"
    signal_on login QUIT "$(launcher)"
    wait_until 10 lines 'state: no word from h1$' 1
    signal_on h1 CONT "$stopped"
    signal_on login TERM "$(launcher)"
    wait_pmi run
    expect_status 143
    leftovers
}

@test "INT in a barrier says who was awaited" {
    begin "${three[@]}" "$client" "${in_second_barrier[@]}"
    wait_until 20 waits_for_two
    : >"$BATS_TEST_TMPDIR/run.err"
    signal_on login INT "$(launcher)"
    wait_pmi run
    expect_status 130
    expect_line 'ended by INT in barrier 2, not entered by rank 2 on h1'
    expect_lines_at_most 1
    leftovers
}

is_stopped() { on h1 grep -qs "^State:[[:space:]]*T" "/proc/$(tasks h1)/status"; }

@test "a task that a signal has stopped is named: by QUIT, by INT, by the time limit" {
    # shellcheck disable=SC2016
    local program='[ $PMI_RANK = 0 ] || kill -STOP $$; sleep 60'
    start_pmi run -H 'h[0-1]' sh -c "$program"
    wait_until 20 is_stopped
    signal_on login QUIT "$(launcher)"
    wait_until 10 lines 'state: stopped by a signal: rank 1 on h1$' 1
    signal_on login INT "$(launcher)"
    wait_pmi run
    expect_status 130
    expect_line 'ended by INT; stopped by a signal: rank 1 on h1'
    run_pmi -n 2 --timeout=2 sh -c "$program"
    expect_status 124
    expect_line 'the time limit of 2 s is over while the tasks ran; stopped by a signal: rank 1 on login'
    leftovers
}

@test "in the start, QUIT and TERM say for which hosts it waits" {
    on login sh -c 'printf "#!/bin/sh\ntouch /root/begun; exec sleep 60\n" >/root/slow && chmod +x /root/slow'
    start_pmi run "${three[@]}" --rsh-command=/root/slow true
    wait_until 20 on login test -e /root/begun
    signal_on login QUIT "$(launcher)"
    wait_until 10 lines 'state: 1 of 3 hosts have joined, waiting for h\[0-1]$' 1
    signal_on login TERM "$(launcher)"
    wait_pmi run
    expect_status 143
    expect_line 'ended by TERM while hosts were started, waiting for h\[0-1]'
    expect_lines_at_most 2
}

@test "QUIT tells of ranks that have ended and of spawned jobs" {
    local nodes
    for nodes in 1 2; do
        told "$nodes"
    done
}

told() {
    local spawn='mcmd=spawn\nnprocs=2\nexecname=sleep\ntotspawns=1\nspawnssofar=1\narg1=600\nargcnt=1\npreput_num=0\ninfo_num=0\nendcmd'
    # shellcheck disable=SC2059 # its newlines are meant
    begin --nodes="$1" -n 3 "$client" on 0 , init , raw "$(printf "$spawn")" , print ready , sleep 600000 , on 1 , sleep 600000
    wait_until 20 all_told
    signal_on login TERM "$(launcher)"
    wait_pmi run
    expect_status 143
    leftovers
}

all_told() {
    signal_on login QUIT "$(launcher)"
    wait_until 5 lines 'state: 3 ranks, 2 run; ended: rank 2$' 1 && lines 'state: 2 ranks of job 1, 2 run$' 1
}

@test "a launcher without room for one more connection says so, where all that shows is that nobody came" {
    local secret=$HOSTS_DIR/secret files
    rm -f "$secret"
    run_pmi --new-secret="$secret"
    mkfifo "$BATS_TEST_TMPDIR/knocks"
    on h0 python3 -c 'import select, socket, sys
while not select.select([0], [], [], 0.1)[0]:
    try:
        held = socket.create_connection(("login", 7723), timeout=1)
    except OSError:
        pass' <"$BATS_TEST_TMPDIR/knocks" 3>&- &
    exec {knocks}>"$BATS_TEST_TMPDIR/knocks"
    # What it has itself when it listens is not for this test to know.
    for files in 16 15 14 13 12; do
        run_with_limit "$files" "$pmi_start" --bootstrap=manual --secret-file="$secret" --nodes=2 --port=7723 --start-timeout=1s true
        expect_status 69
        [[ $stderr != *'cannot be taken'* ]] || break
    done
    exec {knocks}>&-
    wait $!
    expect_line 'a connection to port 7723 cannot be taken: Too many open files; raise the limit of open files (ulimit -n)'
    expect_line 'node1: start: nobody connected within 1 s'
    rm -f "$secret"
    leftovers
}

# shellcheck disable=SC2016 # for the inner shell
run_with_limit() {
    run --separate-stderr on login sh -c 'exec 3>&- 4>&- 5>&- 6>&-; ulimit -n $0; exec "$@"' "$1" timeout -s KILL "$RUN_LIMIT" "${@:2}"
}
