# SPDX-License-Identifier: BSD-3-Clause
# Any process of a run may be killed by KILL. Whichever it is, every task and every daemon that a task left is gone from
# every host within the grace plus 5 s, and where the launcher lives on it says who was lost.
load helpers

GONE=6 # the grace and 5 s

setup_file() { need_hosts 2; }

setup() {
    clean_start
    RUN_LIMIT=120
}

teardown() {
    end_failed
    on login rm -f /root/go
}

ready() { [ "$(grep -c ready "$BATS_TEST_TMPDIR/run.out")" = "$1" ]; }

# Three ranks, on login, h0 and h1, each with two daemons that have left its session; one rank and its daemon are deaf.
start_crowd() {
    start_pmi run --bootstrap=rsh -H 'login,h[0-1]' --kill-grace=1s "$@" \
        "$client" init , on 1 , deaf , all , daemonize 1 quiet , daemonize 1 loud , print ready , sleep 600000
    wait_until 60 ready 3
}

@test "the launcher is killed" {
    start_crowd
    signal_on login KILL "$(launcher)"
    leftovers $GONE
    wait_pmi run
    expect_status 137
}

@test "the launcher is killed while it starts the hosts" {
    on login sh -c 'printf "#!/bin/sh\ntouch /root/go; exec sleep 60\n" >/root/slow && chmod +x /root/slow'
    clean_start
    start_pmi run --bootstrap=rsh -H 'login,h[0-1]' --rsh-command=/root/slow "$client" init
    wait_until 60 on login test -e /root/go
    signal_on login KILL "$(launcher)"
    on login rm /root/go
    leftovers $GONE
    on login rm /root/slow
    wait_pmi run
    expect_status 137
}

@test "the launcher's keeper is killed" {
    start_crowd
    signal_on login KILL "$(keepers login)"
    wait_pmi run
    leftovers $GONE
    expect_status 69
    expect_line 'login: lost: its keeper process was killed'
    expect_lines_at_most 1
}

@test "a provider's worker is killed" {
    start_crowd
    signal_on h1 KILL "$(workers h1)"
    wait_pmi run
    leftovers $GONE
    expect_status 69
    expect_line 'h1: lost: *'
    expect_lines_at_most 1
}

@test "a provider's keeper is killed" {
    start_crowd
    signal_on h1 KILL "$(keepers h1)"
    wait_pmi run
    leftovers $GONE
    expect_status 69
    expect_line 'h1: lost: its keeper process was killed'
    expect_lines_at_most 1
}

@test "keepers that stand still do not outlast the run" {
    start_crowd --timeout=5s
    signal_on login STOP "$(keepers login)"
    signal_on h1 STOP "$(keepers h1)"
    wait_pmi run
    leftovers $((GONE + 5))
    expect_status 124
    expect_line 'the time limit of 5 s is over *'
    expect_line '* of * tasks have not ended, giving them up: ranks * on login,h1'
}

# What was lost before all were in used to be forgotten, and waited for.
@test "a provider is killed that has joined while another has not" {
    local script
    script=$(site_script half <<<'ssh h0 "$PMI_PROVIDER" --pmi-rank=0; sleep 600')
    start_pmi run -vv --bootstrap=rsh -H 'login,h[0-1]' --rsh-command="$script" "$client" init
    wait_until 60 says run.err 'node 1 joined'
    signal_on h0 KILL "$(workers h0)"
    wait_pmi run
    leftovers $GONE
    expect_status 69
    expect_line 'h0: lost: *'
}

@test "a provider is killed, and those that were behind it are not blamed" {
    start_crowd --fanout=1
    signal_on h0 KILL "$(workers h0)"
    wait_pmi run
    leftovers $GONE
    expect_status 69
    expect_line 'h0: lost: *'
    expect_lines_at_most 1
}

@test "two hosts are lost at once: one line" {
    start_crowd
    local first second
    first=$(workers h0) second=$(workers h1)
    signal_on h0 KILL "$first" 3>&- &
    signal_on h1 KILL "$second" || true # where all is slow, the second one may have gone already
    wait $!
    wait_pmi run
    leftovers $GONE
    expect_status 69
    expect_lines_at_most 1
}

@test "with --keep-going the others go on without a lost host, and no barrier waits for it" {
    start_pmi run --bootstrap=rsh -H 'login,h[0-1]' -k "$client" init , print ready , sleep 0 , on 2 , sleep 600000 , \
        on 1 , sleep 1000 , on 0,1 , raw cmd=barrier_in , print 'gone on' , finalize
    wait_until 60 ready 3
    signal_on h1 KILL "$(workers h1)"
    wait_pmi run
    leftovers $GONE
    expect_status 69
    expect_line 'h1: lost: *'
    expect_lines_at_most 1
    [ "$(grep -c 'barrier_out rc=-1' <<<"$output")" = 2 ] || show_run "not both were told"
    [ "$(grep -c 'gone on' <<<"$output")" = 2 ] || show_run "not both went on"
}

@test "a host crashes" {
    start_crowd
    crash_host h1
    wait_pmi run
    need_hosts 2
    expect_status 69
    expect_line 'h1: lost: *'
    expect_lines_at_most 1
    leftovers $GONE
}

@test "a login that stays open is killed: the run does without it" {
    start_pmi run --bootstrap=rsh -H 'login,h[0-1]' --rsh-attach=yes "$client" init , daemonize 1 quiet , \
        print ready , barrier , finalize , on 0 , sleep 1000
    wait_until 60 ready 3
    # It may be over already for a rank that was quick.
    for pid in $(named login ssh); do signal_on login KILL "$pid" 2>/dev/null || true; done
    wait_pmi run
    leftovers $GONE
    expect_status 0
    expect_lines_at_most 0
}

@test "a task is killed" {
    start_crowd
    signal_on h1 KILL "$(tasks h1 | head -n 1)" # the daemons are its keeper's children as well, later ones
    wait_pmi run
    leftovers $GONE
    expect_status 137
    expect_line 'rank 2 on h1 (pid +([0-9])) was killed by signal 9 (Killed)'
    expect_lines_at_most 1
}

@test "daemons that tasks leave behind are ended with the run" {
    run_pmi --bootstrap=rsh -H 'login,h[0-1]' "$client" daemonize 2 loud , daemonize 2 quiet , print done
    leftovers $GONE
    expect_status 0
    expect_lines_at_most 0
    [ "$output" = $'done\ndone\ndone' ]
}
