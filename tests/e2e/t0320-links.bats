# SPDX-License-Identifier: BSD-3-Clause
# Silence: a host whose cable is out for good is given up within half a minute, on both sides; a short one is survived.
load helpers

setup_file() { need_hosts 2; }

setup() {
    clean_start
    RUN_LIMIT=120
}

teardown() {
    end_failed
    cable h0 up
    cable h1 up
}

ready() { [ "$(grep -c ready "$BATS_TEST_TMPDIR/run.out")" = "$1" ]; }

no_tasks() { [ -z "$(tasks "$1")" ]; }

@test "a cable is out for good" {
    start_pmi run --bootstrap=rsh -H 'login,h[0-1]' "$client" init , daemonize 1 quiet , print ready , barrier , \
        sleep 600000
    wait_until 60 ready 3
    cable h1 down
    SECONDS=0
    wait_pmi run
    # 30 s to notice, 2 s of grace
    ((SECONDS <= 33)) || show_run "noticed after $SECONDS s"
    expect_status 69
    expect_line 'h1: lost: no sign of life for 2[0-9] s'
    expect_lines_at_most 1
    wait_until 10 no_tasks h1
    leftovers 7
}

@test "a cable that is out for 5 s, and a provider that stands still for 10 s, are survived" {
    start_pmi run --bootstrap=rsh -H 'login,h[0-1]' --ppn=2 "$client" init , exchange 3 100 0 fresh , print ready , \
        sleep 3000 , exchange 20 100 10 fresh , print done , finalize
    wait_until 60 ready 6
    signal_on h0 STOP "$(workers h0)"
    cable h1 down
    sleep 5
    cable h1 up
    sleep 5
    signal_on h0 CONT "$(workers h0)"
    wait_pmi run
    expect_status 0
    expect_lines_at_most 0
    [ "$(grep -c done <<<"$output")" = 6 ] || show_run "not all came to their end"
    leftovers
}
