# SPDX-License-Identifier: BSD-3-Clause
# At a terminal: Ctrl-C once and twice, Ctrl-Z and fg; and the signals that are handed on to the tasks.
load helpers

setup_file() { need_hosts 2; }

setup() {
    clean_start
    RUN_LIMIT=120
}

teardown() {
    end_failed
    on login rm -f /root/go
}

hosts=(--bootstrap=rsh -H 'login,h[0-1]')

# Standard input has no word of pmi-start's but how many hosts have started, which it tells a terminal when it is slow.
no_complaint() { ! grep 'pmi-start:' | grep -v 'pmi-start: starting [0-9]*/[0-9]* hosts '; }

@test "Ctrl-C ends the run" {
    run_pty 'wait:ready0;wait:ready1;wait:ready2;type:^C' "${hosts[@]}" "$client" print ready%r , sleep 60000
    [ "$status" = 130 ]
    no_complaint <<<"$output"
    leftovers
}

# A shell goes on with the next command unless this one has died of the signal.
@test "Ctrl-C ends a loop of runs, too, and of nodes that look for their launcher" {
    local words
    on login "$pmi_start" --new-secret=/root/key
    clean_start
    for words in '--nodes=2 sleep 60' '--join=nobody:7700 --node=1 --nodes=2 --secret-file=/root/key'; do
        run on login timeout -s KILL "$RUN_LIMIT" python3 "$BATS_TEST_DIRNAME/pty_run.py" 'wait:ready;pause:500;type:^C' \
            bash -c "echo ready; for i in 1 2; do $pmi_start $words; done; echo went on"
        [ "$status" = 130 ] || show_run "$words: status $status"
        [[ $output != *'went on'* ]] || show_run "$words"
        leftovers
    done
    on login rm /root/key
}

@test "Ctrl-C for the second time does not wait for the grace" {
    SECONDS=0
    run_pty 'wait:ready0;wait:ready1;wait:ready2;type:^C;pause:300;type:^C' "${hosts[@]}" --kill-grace=50s \
        "$client" deaf , print ready%r , sleep 60000
    [ "$status" = 130 ]
    ((SECONDS < 45))
    no_complaint <<<"$output"
    leftovers
}

# all_stopped HOST: there are tasks, and every one is stopped
# shellcheck disable=SC2016 # for the shell on the host
all_stopped() {
    local pid pids
    pids=$(tasks "$1")
    [ -n "$pids" ] || return 1
    for pid in $pids; do on "$1" grep -q '^State:.T' "/proc/$pid/status" || return 1; done
}

# Fails with what the host runs where not all are stopped within the limit.
expect_stopped() {
    wait_until 20 all_stopped "$1" && return
    on "$1" ps -eo pid,ppid,pgid,sid,stat,wchan,args
    return 1
}

@test "Ctrl-Z stops the tasks and the launcher, and fg brings all back" {
    local runner host
    on login timeout -s KILL $RUN_LIMIT python3 "$BATS_TEST_DIRNAME/pty_run.py" \
        'wait:ready0;wait:ready1;wait:ready2;type:^Z;stopped;exists:/root/go;fg;wait:again0;wait:again1;wait:again2;type:^C' \
        "$pmi_start" "${hosts[@]}" "$client" trap "$(kill -l CONT)" again%r on , print ready%r , sleep 600000 \
        >"$BATS_TEST_TMPDIR/pty" 3>&- &
    runner=$!
    wait_until 60 says pty ready2
    wait_until 20 on login sh -c "grep -q '^State:.T' /proc/$(launcher)/status"
    for host in login h0 h1; do expect_stopped $host; done
    on login touch /root/go
    status=0
    wait $runner || status=$?
    cat "$BATS_TEST_TMPDIR/pty"
    on login rm /root/go
    [ "$status" = 130 ]
    no_complaint <"$BATS_TEST_TMPDIR/pty"
    leftovers
}

@test "USR1 and USR2 go to every task" {
    local name
    start_pmi run "${hosts[@]}" "$client" trap "$(kill -l USR1)" one on , trap "$(kill -l USR2)" two 0 , \
        print ready , sleep 600000
    wait_until 60 eval '(($(grep -c ready "$BATS_TEST_TMPDIR/run.out") == 3))'
    signal_on login USR1 "$(launcher)"
    wait_until 20 eval '(($(grep -c one "$BATS_TEST_TMPDIR/run.out") == 3))'
    signal_on login USR2 "$(launcher)"
    wait_pmi run
    expect_status 0
    expect_lines_at_most 0
    [ "$(grep -c two <<<"$output")" = 3 ]
    leftovers
}

@test "HUP that was ignored at the start stays ignored, also by the tasks" {
    # timeout(1) would undo it, so it is ignored behind that.
    # shellcheck disable=SC2016 # for the shell on the host
    on login timeout --foreground -s KILL $RUN_LIMIT sh -c 'trap "" HUP; exec "$@"' sh "$pmi_start" "${hosts[@]}" \
        sh -c 'kill -s HUP $$; echo ready; exec sleep 600' \
        >"$BATS_TEST_TMPDIR/run.out" 2>"$BATS_TEST_TMPDIR/run.err" 3>&- &
    started[run]=$!
    wait_until 60 eval '(($(grep -c ready "$BATS_TEST_TMPDIR/run.out") == 3))'
    signal_on login HUP "$(launcher)"
    signal_on login TERM "$(launcher)"
    wait_pmi run
    expect_status 143
    expect_lines_at_most 0
    leftovers
}
