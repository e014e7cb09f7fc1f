#!/usr/bin/env bats
# SPDX-License-Identifier: BSD-3-Clause
# Ranks that wait for another one over PMIx: who is awaited is said, and who can never come ends the run.
load helpers

setup_file() {
    need_hosts 4
    make_pmix_program pmix_wait
}

teardown_file() { rm -f "$HOSTS_DIR/pmix_wait"; }

setup() {
    need_pmix
    wait=$HOSTS_DIR/pmix_wait
    four=(-H 'h[0-3]' --pmix=yes --timeout=20)
    two=(-H 'h[0-1]' --ppn=2 --pmix=yes --timeout=20)
    clean_start
}

# blames LINE ARG...: a run that is ended by that, with status 1.
blames() {
    local line=$1
    shift
    run_pmi "$@"
    expect_status 1
    expect_line "$line"
    expect_lines_at_most 1
}

@test "a rank that has ended is missing in a fence, a group or a connect of others: it is named" {
    blames 'rank 2 on h2 exited before PMIx fence' "${four[@]}" "$wait" fence 2 ends
    blames 'rank 3 on h3 exited before PMIx fence' "${four[@]}" --fanout=1 "$wait" fence 3 ends
    blames "rank 3 on h3 exited before PMIx group 'mine' of ranks 0-3" "${four[@]}" "$wait" group 3 ends
    blames 'rank 1 on h0 @(exited|finalized PMIx) before PMIx connect of ranks 0-3' "${two[@]}" "$wait" connect 1 ends
    leftovers 5
}

@test "one that finalizes drops out of the fence that its node is in" {
    blames 'rank 2 on h1 @(exited|finalized PMIx) before PMIx fence' "${two[@]}" "$wait" fence 2 ends
    leftovers 5
}

@test "--keep-going: that one fails, with an error for each who waits" {
    run_pmi "${four[@]}" --keep-going "$wait" fence 2 ends
    expect_status 1
    expect_line 'rank 2 on h2 exited before PMIx fence'
    [ "$(grep -c '^fence: ERROR$' <<<"$output")" = 3 ] || show_run "not three errors"
    leftovers 5
}

@test "keys that a rank has not put when it ends are not found" {
    run_pmi "${four[@]}" "$wait" get 2 ends
    expect_status 0
    [ "$(grep -c '^get: NOT-FOUND$' <<<"$output")" = 3 ] || show_run "not three answers"
    leftovers 5
}

# Four runs at once, as each is to last.
@test "who is awaited: --barrier-warn and the time limit say it" {
    four=(-H 'h[0-3]' --pmix=yes --timeout=3 --barrier-warn=1)
    start_pmi fence "${four[@]}" "$wait" fence 2 sleeps
    start_pmi part -H 'h[0-1]' --ppn=2 --pmix=yes --timeout=3 --barrier-warn=1 "$wait" group 2 sleeps
    start_pmi keys "${four[@]}" "$wait" get 1 sleeps
    start_pmi name -n 2 --pmix=yes --timeout=3 "$wait" lookup 1 sleeps
    wait_pmi fence
    expect_status 124
    expect_line 'PMIx fence has lasted 1 s, not entered by rank 2 on h2'
    expect_line 'the time limit of 3 s is over in PMIx fence, not entered by rank 2 on h2'
    expect_lines_at_most 2
    wait_pmi part
    expect_status 124
    expect_line "PMIx group 'mine' of ranks 0-3 has lasted 1 s, not entered by all of ranks 2-3 on h1"
    wait_pmi keys
    expect_status 124
    expect_line "PMIx get of rank 1's keys has lasted 1 s, not put by rank 1 on h1"
    expect_line "the time limit of 3 s is over in PMIx get of rank 1's keys, not put by rank 1 on h1"
    wait_pmi name
    expect_status 124
    expect_line "the time limit of 3 s is over in PMIx look-up of 'no-such-name' by rank 0"
    expect_lines_at_most 1
    leftovers 5
}

is_asked() {
    signal_on login QUIT "$(launcher)"
    sleep 0.2 # for the answer, or the next try
    says run.err "state: PMIx fence: entered by ranks 0,2-3 on h\[0,2-3\], not entered by rank 1 on h1"
}

@test "SIGQUIT tells who is in, and TERM who was awaited" {
    start_pmi run -H 'h[0-3]' --pmix=yes "$wait" fence 1 sleeps
    wait_until 20 eval '[ -n "$(launcher)" ] && has_tasks h1 1'
    wait_until 20 is_asked
    signal_on login TERM "$(launcher)"
    wait_pmi run
    expect_status 143
    expect_line 'ended by TERM in PMIx fence, not entered by rank 1 on h1'
    leftovers 5
}
