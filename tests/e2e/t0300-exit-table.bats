# SPDX-License-Identifier: BSD-3-Clause
# How a run ends: each way once with tasks of the launcher's own, once with tasks on hosts behind ssh. What is said is
# compared as a whole: one line, the cause. Rank 2 is the one that fails, on `login` or on h1.
load helpers

setup_file() { need_hosts 2; }

setup() {
    clean_start
    RUN_LIMIT=120
}

local_args=(-n 3)
remote_args=(--bootstrap=rsh -H 'h[0-1]' -n 3)

# ends WHERE STATUS LINE ARG...: where LINE is a pattern in which @ stands for rank 2's host; an empty one: not a word.
ends() {
    local where=$1 want=$2 line=$3 host=login RUN_STATUS=
    local -n args=${1}_args
    shift 3
    [ "$where" = local ] || host=h1
    [ "$want" != 127 ] || RUN_STATUS=-127
    run_pmi "${args[@]}" "$@"
    expect_status "$want"
    [ -z "$line" ] || expect_line "${line//@/$host}"
    expect_lines_at_most $((${#line} > 0))
    leftovers
}

both() { ends local "$@" && ends remote "$@"; }

pid='(pid +([0-9]))'

@test "every task exits 0: 0, and not a word" {
    both 0 '' "$client" init , barrier , finalize
    [ -z "$stderr" ]
    ends remote 0 '' true
}

@test "the first task that fails gives its status" {
    both 4 "rank 2 on @ $pid exited with status 4" "$client" init , barrier , on 2 , exit 4 , all , sleep 60000
}

@test "a task dies of a signal" {
    both 139 "rank 2 on @ $pid was killed by signal 11 (Segmentation fault)" \
        "$client" init , on 2 , signal 11 , all , barrier
    ends local 137 "rank 2 on @ $pid was killed by signal 9 (Killed)" "$client" on 2 , signal 9 , all , sleep 60000
}

@test "abort: the text and the code" {
    both 8 'rank 2 on @ aborted (8): all is lost, "truly"' \
        "$client" init , on 2 , raw 'cmd=abort exitcode=8 error_msg=all is lost, "truly"' , all , barrier
}

@test "abort: every spelling, and a code that is never 0" {
    local request
    while IFS='|' read -r request status line; do
        ends local "$status" "rank 2 on @ aborted ($status)$line" \
            "$client" init , on 2 , raw "$request" , all , barrier
    done <<'END'
cmd=abort|1|
cmd=abort exit_code=7 message=oh no|7|: oh no
cmd=abort exitcode=0|1|
cmd=abort exitcode=256 error_msg=a|1|: a
cmd=abort exitcode=300|44|
cmd=abort exitcode=-1|255|
cmd=abort message=what|1|: what
END
    ends local 9 'rank 2 on @ aborted (9): x y' "$client" --style=flux init , on 2 , abort 9 'x y' , all , barrier
}

@test "exit 0 after init, without finalize" {
    both 1 'rank 2 on @ exited before PMI finalize' "$client" init , on 2 , exit 0 , all , barrier
}

@test "a PMI connection is closed before finalize, and its task lives on" {
    both 1 "rank 2 on @ closed PMI before finalize" "$client" init , on 2 , close , all , sleep 60000
}

@test "a barrier of which one rank has ended, in either order" {
    both 1 'rank 2 on @ exited before barrier 2' \
        "$client" init , barrier , on 2 , finalize , exit 0 , all , sleep 400 , barrier
    both 1 'rank 2 on @ exited before barrier 2' \
        "$client" init , barrier , on 2 , sleep 400 , finalize , exit 0 , all , barrier
}

@test "a rank that never speaks PMI may leave while nobody waits for it" {
    both 0 '' "$client" on 0 , init , finalize
    both 1 'rank 2 on @ exited before barrier 1' "$client" not 2 , init , barrier
}

@test "a program that is missing: 127, and nothing starts anywhere" {
    both 127 'rank 2 on @: /no/such/program: No such file or directory' -n 2 touch /root/ran : -n 1 /no/such/program
    ends remote 127 'rank 2 on @: no-such-program: not found in PATH' -n 2 touch /root/ran : -n 1 no-such-program
}

@test "a program that cannot be executed: 126, and nothing starts anywhere" {
    both 126 'rank 2 on @: /etc/passwd: not executable' -n 2 touch /root/ran : -n 1 /etc/passwd
    both 126 'rank 2 on @: /etc: *directory*' -n 2 touch /root/ran : -n 1 /etc
}

@test "a program whose interpreter is missing: only exec shows it, and it ends the others" {
    printf '#!/no/such/interpreter\n' | on login sh -c 'cat >/root/bad && chmod +x /root/bad'
    clean_start
    both 127 'rank 2 on @ cannot execute /root/bad: No such file or directory (its interpreter; *)' -n 2 sleep 60 : -n 1 /root/bad
    on login rm /root/bad
}

@test "a directory that is missing on one node" {
    on login mkdir /tmp/place
    on h0 mkdir /tmp/place
    clean_start
    ends remote 1 'rank 2 on @: directory /tmp/place: No such file or directory' -C /tmp/place touch /root/ran
    ends local 1 'rank 0 on @: directory /no/such: No such file or directory' -C /no/such touch /root/ran
    ends local 1 'rank 0 on @: directory /etc/passwd: Not a directory' -C /etc/passwd touch /root/ran
    on login rmdir /tmp/place
    on h0 rmdir /tmp/place
}

@test "the time limit: while hosts are started" {
    on login sh -c 'printf "#!/bin/sh\nexec sleep 60\n" >/root/slow && chmod +x /root/slow'
    clean_start
    ends remote 124 'the time limit of 1 s is over while hosts were started, waiting for h\[0-1]' \
        --rsh-command=/root/slow --timeout=1 true
    on login rm /root/slow
}

@test "the time limit: while tasks run, and in a barrier" {
    ends local 124 'the time limit of 1.5 s is over while the tasks ran' --timeout=1500ms sleep 60
    ends local 124 'the time limit of 2 s is over in barrier 2, not entered by rank 2 on @' --timeout=2 \
        "$client" init , barrier , on 2 , sleep 60000 , all , barrier
    ends remote 124 'the time limit of 6 s is over in barrier 2, not entered by ranks 1-2 on h\[0-1]' --timeout=6 \
        "$client" init , barrier , on 1,2 , sleep 60000 , all , barrier
}

# signalled WHERE ARG...: start it, wait until all three ranks have said that they are there.
signalled() {
    local -n args=${1}_args
    shift
    start_pmi run "${args[@]}" "$@"
    wait_until 60 eval '(($(grep -c ready "$BATS_TEST_TMPDIR/run.out") == 3))'
}

@test "INT, TERM and HUP are forwarded" {
    local where name
    for where in local remote; do
        for name in INT TERM HUP; do
            signalled $where "$client" trap "$(kill -l $name)" "got $name" 3 , print ready , sleep 600000
            signal_on login $name "$(launcher)"
            wait_pmi run
            expect_status $((128 + $(kill -l $name)))
            expect_lines_at_most 0
            [ "$(grep -c "got $name" <<<"$output")" = 3 ] || show_run "not forwarded to all"
            leftovers
        done
    done
}

@test "tasks that are deaf to a signal are killed after the grace" {
    local where
    for where in local remote; do
        signalled $where --kill-grace=500ms "$client" deaf , daemonize 1 quiet , print ready , sleep 60000
        signal_on login TERM "$(launcher)"
        wait_pmi run
        expect_status 143
        expect_lines_at_most 0
        leftovers
    done
}

@test "a second signal kills at once" {
    local where
    for where in local remote; do
        signalled $where --kill-grace=50s "$client" deaf , print ready , sleep 60000
        signal_on login INT "$(launcher)"
        signal_on login INT "$(launcher)"
        wait_until 20 eval '! kill -0 ${started[run]} 2>/dev/null'
        wait_pmi run
        expect_status 130
        expect_lines_at_most 0
        leftovers
    done
}

@test "a signal while hosts are started" {
    on login sh -c 'printf "#!/bin/sh\ntouch /root/begun; exec sleep 60\n" >/root/slow && chmod +x /root/slow'
    clean_start
    start_pmi run "${remote_args[@]}" --rsh-command=/root/slow true
    wait_until 60 on login test -e /root/begun
    on login rm /root/begun
    signal_on login HUP "$(launcher)"
    wait_pmi run
    expect_status 129
    expect_line 'ended by HUP while hosts were started, waiting for h\[0-1]'
    expect_lines_at_most 1
    leftovers
    on login rm /root/slow
}

# A pipe that is open for reading, but that nobody reads.
unread_output() {
    [ -p "$BATS_TEST_TMPDIR/pipe" ] || mkfifo "$BATS_TEST_TMPDIR/pipe"
    exec {reader}<>"$BATS_TEST_TMPDIR/pipe"
}

full() { ! timeout 2 sh -c 'printf x >>"$1"' sh "$BATS_TEST_TMPDIR/pipe"; }

@test "output that nobody reads does not hold up the end by a signal" {
    local where reader
    unread_output
    for where in local remote; do
        local -n args=${where}_args
        on login timeout --foreground -s KILL 120 "$pmi_start" "${args[@]}" head -c 2000000 /dev/zero \
            >"$BATS_TEST_TMPDIR/pipe" 2>"$BATS_TEST_TMPDIR/run.err" 3>&- {reader}>&- &
        wait_until 60 eval '[ -n "$(launcher)" ]'
        wait_until 60 full
        signal_on login TERM "$(launcher)"
        [ "$where" = local ] || signal_on login TERM "$(launcher)"
        status=0
        wait $! || status=$?
        output='' stderr=$(<"$BATS_TEST_TMPDIR/run.err")
        expect_status 143
        expect_lines_at_most 0
        leftovers
        dd of=/dev/null bs=1M count=1 iflag=nonblock <&"$reader" 2>/dev/null || true
    done
}

@test "bad use: 2" {
    run_pmi --no-such-option true
    expect_status 2
    expect_line "*--no-such-option*"
    run_pmi -n 3
    expect_status 2
    expect_lines_at_most 1
    run_pmi -H 'h[1-' true
    expect_status 2
    expect_line "*h\[1-*"
    leftovers
}

@test "of several failures the gravest is the cause" {
    # All leave the barrier together.
    both 139 "rank 2 on @ $pid was killed by signal 11 (Segmentation fault)" \
        "$client" init , barrier , on 0 , exit 3 , on 1 , exit 0 , on 2 , signal 11
    both 3 "rank 2 on @ $pid exited with status 3" "$client" init , barrier , on 0,1 , exit 0 , on 2 , exit 3
    both 6 "rank 2 on @ aborted (6): x" "$client" --style=flux init , barrier , on 0 , exit 3 , on 2 , abort 6 x \
        , on 1 , barrier
}

@test "--keep-going: the others go on, a barrier fails, the highest status counts" {
    local where host=login
    for where in local remote; do
        local -n args=${where}_args
        run_pmi "${args[@]}" -k "$client" init , on 1 , exit 3 , on 2 , exit 5 , on 0 , raw cmd=barrier_in , \
            print 'still here' , finalize
        expect_status 5
        [[ $output == 'cmd=barrier_out rc=-1'*$'\nstill here' ]] || show_run "the barrier was not answered so"
        expect_line "rank 1 on * $pid exited with status 3"
        expect_line "rank 2 on $host $pid exited with status 5"
        leftovers
        host=h1
    done
    both 7 'rank 2 on @ aborted (7)' -k "$client" init , on 2 , raw 'cmd=abort exitcode=7' , all , sleep 60000
    ends local 0 '' -k true
    # A start that fails has nothing that could go on.
    RUN_STATUS=-127 run_pmi -n 1 -k /no/such
    expect_status 127
    expect_line 'rank 0 on login: /no/such: No such file or directory'
}

@test "--keep-going: one line for a rank that failed, none for those that were told so and left" {
    local wire
    for wire in '' --pmi2; do
        both 3 "rank 2 on @ $pid exited with status 3" -k "$client" $wire init , lenient \
            , on 2 , sleep 300 , exit 3 , all , barrier , finalize
        both 1 'rank 2 on @ exited before PMI finalize' -k "$client" $wire init , lenient \
            , on 2 , sleep 300 , exit 0 , all , barrier , finalize
    done
    both 137 "rank 2 on @ $pid was killed by signal 9 (Killed)" -k --pmi-subversion=2 "$client" --style=mpich \
        init , lenient , on 2 , sleep 300 , signal 9 , on 0 , group 0,2:7 , all , barrier , finalize
}

@test "rubbish and an endless line on a PMI connection" {
    both 1 "rank 2 on @ $pid sent rubbish on its PMI connection: *" "$client" init , on 2 , rubbish , all , sleep 60000
    both 1 "rank 2 on @ $pid sent rubbish on its PMI connection: *65536 bytes*" \
        "$client" init , on 2 , longline 100000 , all , sleep 60000
}
