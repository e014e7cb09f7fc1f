# SPDX-License-Identifier: BSD-3-Clause
# Standard input, output and error of the tasks: what is written arrives whole, in whole lines, and bounded in memory
load helpers

setup_file() { need_hosts 3; }

# A folder in the home that all hosts share, which they know as /root/streams.
setup() {
    mkdir "$HOSTS_DIR/home/streams"
    cd "$HOSTS_DIR/home/streams" || return
}

teardown() {
    end_failed
    rm -rf "$HOSTS_DIR/home/streams"
}

# sh_pmi SCRIPT ARG...: run SCRIPT by a shell on login and in that folder, where "$@" is pmi-start with ARG...; status
# and output as of run_pmi.
sh_pmi() {
    local script="cd /root/streams; $1"
    shift
    run --separate-stderr on login timeout --foreground -s KILL "$RUN_LIMIT" bash -c "$script" sh "$pmi_start" "$@"
}

@test "labels: before each line, also of an error, and none before the launcher's words" {
    run_pmi -l --nodes=2 --ppn=2 sh -c 'printf "out\nlast"; echo err >&2; [ $PMI_RANK != 3 ]'
    expect_status 1
    [ "$(sort <<<"$output")" = "$(printf '%s: last\n%s: out\n' 0 0 1 1 2 2 3 3)" ] || show_run labels
    [ "$(grep -v ^pmi-start: <<<"$stderr" | sort)" = $'0: err\n1: err\n2: err\n3: err' ] || show_run labels
    expect_line "rank 3 on * exited with status 1"
}

# Each of 32 ranks writes 200 lines of 300 characters, in pieces of $1 bytes.
writer='import os, sys
r = int(os.environ["PMI_RANK"])
text = b"".join(b"%02d %03d " % (r, i) + b"x" * 292 + b"\n" for i in range(200))
while text: text = text[os.write(1, text[:int(sys.argv[1])]):]'

# Lines of $output: 6400 of LEN characters, in each rank's order; the last fields but two name rank and number.
expect_whole_lines() {
    ((${#lines[@]} == 6400)) || show_run "${#lines[@]} lines"
    awk -v len="$1" 'length($0) != len || $(NF - 1) + 0 != n[$(NF - 2)]++ { print "mixed: " $0; exit 1 }' <<<"$output"
}

@test "whole lines of 32 ranks are never mixed, local and remote" {
    local where
    for where in --nodes=1 '-H h[0-2]' --nodes=4; do
        # shellcheck disable=SC2086 # two words
        run_pmi $where --ntasks=32 python3 -c "$writer" 1500
        expect_status 0
        expect_whole_lines 299
    done
}

@test "a reader that is slow gets whole lines as well" {
    sh_pmi '"$@" | { sleep 1; while read -r -N 65536 text; do printf %s "$text"; sleep 0.01; done; printf %s "$text"; }' \
        -H login,h0 --ppn=2 python3 -c 'import os
r = b"%d " % int(os.environ["PMI_RANK"])
for i in range(700): os.write(1, b"".join(r + b"%d" % (i * 4 + k) + b"x" * 491 + b"\n" for k in range(4)))'
    expect_status 0
    [ "$(tr -d 0-9 <<<"$output" | sort -u | wc -l)" = 1 ] || show_run "$(tr -d 0-9 <<<"$output" | sort -u | cut -c1-100)"
    ((${#lines[@]} == 4 * 2800)) || show_run "${#lines[@]} lines"
}

# A rank of an overloaded machine may rest for longer than 100 ms within a line; only labels wait as long as it takes.
@test "labelled lines are whole in whatever pieces they were written" {
    run_pmi -l -H 'login,h[0-1]' --ntasks=32 python3 -c "$writer" 1117
    expect_status 0
    output=$(sed 's/^\([0-9]\): /0\1: /' <<<"$output")
    expect_whole_lines 303
}

@test "a prompt without newline shows while the task waits, and nothing is added to it" {
    mkfifo in
    sh_pmi 'exec 9<>in; "$@" <&9 >out &
        for i in $(seq 500); do [ -s out ] && break; sleep 0.02; done
        cat out; echo go >&9; wait $!' -n 1 sh -c 'printf "name? "; read x; printf "got $x"'
    expect_status 0
    [ "$output" = "name? " ] || show_run prompt
    [ "$(cat out)" = "name? got go" ]
}

@test "ten MiB of binary, no newline at the end, local and remote" {
    local where
    head -c 10485760 /dev/urandom >data
    for where in -n1 -Hh1; do
        sh_pmi '"$@" | cmp - data && echo same' $where cat data
        expect_status 0
        [ "$output" = same ] || show_run "$where"
    done
}

@test "a file for each task: %r, %h, %n, %%" {
    sh_pmi '"$@"' -H 'h[0-1]' --ppn=2 -o 'out.%r.%h.%n.%%' -e 'err.%r' \
        sh -c 'echo out $PMI_RANK; echo err $PMI_RANK >&2'
    expect_status 0
    [ "$output$stderr" = "" ] || show_run files
    [ "$(cat out.0.h0.0.% out.1.h0.0.% out.2.h1.1.% out.3.h1.1.%)" = $'out 0\nout 1\nout 2\nout 3' ]
    [ "$(cat err.0 err.1 err.2 err.3)" = $'err 0\nerr 1\nerr 2\nerr 3' ]
    sh_pmi '"$@"' -n 2 -o both.%r -e both.%r sh -c 'echo one; echo two >&2'
    [ "$(sort both.1)" = $'one\ntwo' ]
    run_pmi -n 2 -o /nowhere/%r true
    expect_status 1
    expect_line "*/nowhere/0*"
    sh_pmi '"$@"' -n 3 -o all sh -c 'echo "a line of rank $PMI_RANK"'
    expect_status 0
    [ "$(sort all)" = $'a line of rank 0\na line of rank 1\na line of rank 2' ] || show_run "$(cat all)"
}

@test "a file as standard input is handed to a local rank 0 itself" {
    printf 'one\ntwo\nthree\n' >in
    sh_pmi '{ "$@"; cat; } <in' -n 2 sh -c '[ $PMI_RANK = 1 ] && exec cat; exec dd bs=1 count=4 status=none'
    expect_status 0
    [ "$output" = $'one\ntwo\nthree' ] || show_run "the rest was not left"
}

@test "a pipe is forwarded to a remote rank 0 byte for byte, with its end" {
    head -c 10485760 /dev/urandom >data
    sh_pmi 'cat data | "$@" | cmp - data && echo same' -H h0,h1 sh -c 'exec cat'
    expect_status 0
    [ "$output" = same ] || show_run pipe
    sh_pmi '"$@" <data | cmp - data && echo same' -H h0,h1 cat
    [ "$output" = same ] || show_run file
}

@test "standard input for all, for none, for one rank" {
    head -c 300000 /dev/zero | tr '\0' x >data
    sh_pmi 'cat data | "$@" <data' -i all --nodes=3 --ppn=2 wc -c
    [ "$(sort -u <<<"$output")" = 300000 ] && ((${#lines[@]} == 6)) || show_run all
    sh_pmi 'cat data | "$@"' -i none -H 'login,h0' wc -c
    [ "$output" = $'0\n0' ] || show_run none
    sh_pmi 'cat data | "$@"' -l -i 3 -H 'login,h0' --ppn=2 wc -c
    [ "$(sort <<<"$output")" = $'0: 0\n1: 0\n2: 0\n3: 300000' ] || show_run "rank 3"
    sh_pmi 'cat data | "$@"' -l -i 1 -n 2 wc -c
    [ "$(sort <<<"$output")" = $'0: 0\n1: 300000' ] || show_run "rank 1"
    run_pmi -i 4 -n 4 true
    expect_status 2
    expect_line "*--input=4*"
}

@test "standard input that is closed, endless, or slow" {
    sh_pmi '"$@" <&-' -n 2 sh -c 'cat; echo ok'
    expect_status 0
    [ "$output" = $'ok\nok' ] || show_run closed
    sh_pmi '"$@" <&-' -H h0,h1 sh -c 'cat; echo ok'
    expect_status 0
    [ "$output" = $'ok\nok' ] || show_run "closed, remote"
    sh_pmi 'yes | "$@"' -n 1 echo ok
    expect_status 0
    [ "$output" = ok ] || show_run endless
    sh_pmi 'yes | "$@"' -H h0 echo ok
    expect_status 0
    [ "$output" = ok ] || show_run "endless, remote"
    sh_pmi 'for i in 1 2 3; do echo $i; sleep 0.2; done | "$@"' -H h0 cat
    expect_status 0
    [ "$output" = $'1\n2\n3' ] || show_run slow
    sh_pmi '"$@" </tmp' -H h0 cat
    expect_status 1
    expect_line 'cannot read standard input: Is a directory'
    sh_pmi 'sleep 20 | { "$@"; kill $(pgrep -x sleep); }' -H h0 echo ok
    expect_status 0
}

@test "standard output that is closed, ends early, or cannot be written" {
    sh_pmi '"$@" >&-' -n 1 true
    expect_status 0
    clean_start
    sh_pmi '"$@" | head -1; exit ${PIPESTATUS[0]}' -H login,h0 yes
    expect_status 141
    [ "$output$stderr" = y ] || show_run head
    leftovers
    sh_pmi '"$@" >/dev/full' -n 1 echo x
    expect_status 1
    expect_line "cannot write standard output: No space left on device"
    sh_pmi 'ulimit -f 1; "$@" >/tmp/limited; status=$?; rm /tmp/limited; exit $status' -H h0 seq 1 100000
    expect_status 1
    expect_line "cannot write standard output: File too large"
    sh_pmi '"$@" >/dev/full' --print-config
    expect_status 1
    expect_line "cannot write standard output: No space left on device"
    sh_pmi '"$@" 2>/dev/full' --nodes=2 sh -c 'head -c 2000000 /dev/zero >&2; echo ok'
    expect_status 0
    [ "$output" = $'ok\nok' ] || show_run "a full standard error"
    sh_pmi '"$@" >&- 2>&-' -n 1 sh -c 'echo out; echo err >&2; touch ran'
    expect_status 0
    [ -e ran ]
}

@test "nohup: a HUP that was ignored at the start stays ignored, here and in the tasks" {
    sh_pmi 'trap "" HUP; "$@" &
        for i in $(seq 500); do [ -e ran ] && break; sleep 0.02; done
        kill -HUP $!; touch go; wait $!' -n 2 \
        sh -c 'touch ran; kill -HUP $$; until [ -e go ]; do sleep 0.02; done; echo ok'
    expect_status 0
    [ "$output" = $'ok\nok' ] || show_run nohup
}

@test "a stray that holds standard output is waited for while it writes, and for half a second of silence" {
    local begin=${EPOCHREALTIME/./}
    clean_start
    run_pmi -H login,h0 sh -c 'echo hi; setsid sleep 30 & for i in 1 2 3; do sleep 0.2; echo late; done &'
    expect_status 0
    ((${EPOCHREALTIME/./} - begin < 15000000)) || show_run "it was waited for"
    [ "$(sort <<<"$output")" = $'hi\nhi\nlate\nlate\nlate\nlate\nlate\nlate' ] || show_run late
    leftovers
}

# Resident KiB of every pmi-start process on a host.
resident() {
    on "$1" sh -c 'for p in $(pgrep -x pmi-start); do
        sed -n "s/^VmRSS:[^0-9]*\([0-9]*\).*/\1/p" /proc/$p/status; done'
}

# paused NAME COMMAND...: pmi-start on three hosts in the background, its output into the pipe `out`, which descriptor 9
# holds open and nobody reads; the status of it comes from `resume`.
paused() {
    mkfifo out
    exec 9<>out
    on login timeout -s KILL 60 "$pmi_start" -H login,h0,h1 --kill-grace=0.1 "$@" <&- >&9 2>err 3>&- 9>&- &
    run=$!
}

# The reader reads on, into `read`.
resume() {
    cat out >read 3>&- 9>&- &
    exec 9>&-
    status=0
    wait $run || status=$?
    stderr=$(<err)
}

@test "a reader that pauses: memory stays bounded, and a barrier passes" {
    local host kib
    paused --ppn=2 sh -c "yes 'a line that nobody reads' &
        $client init , barrier , barrier , finalize; touch /tmp/passed; wait"
    for host in login h0 h1; do wait_until 20 on $host test -e /tmp/passed; done
    sleep 3
    for host in login h0 h1; do
        on $host rm /tmp/passed
        for kib in $(resident $host); do
            ((kib < 40000)) || { echo "$host: $kib KiB" && false; }
        done
    done
    signal_on login TERM "$(launcher)"
    resume
    expect_status 143
    (($(grep -cx 'a line that nobody reads' read) > 10000)) || show_run "$(tail -3 read)"
}

@test "a reader that pauses longer than any grace: all is written in the end, and the failure is told" {
    paused sh -c 'head -c 200000 /dev/zero | tr "\0" x; [ $PMI_RANK = 0 ] || exit 0; touch /tmp/exited; exit 3'
    wait_until 20 on login test -e /tmp/exited
    on login rm /tmp/exited
    sleep 6
    kill -0 $run
    resume
    expect_status 3
    expect_line "rank 0 on login * exited with status 3"
    [ "$(wc -c <read)" = 600000 ] || show_run "$(wc -c <read)"
}

@test "a reader that never reads again: INT ends the tasks, a second one the launcher" {
    clean_start
    paused sh -c 'touch /tmp/started; exec yes'
    wait_until 20 on h1 test -e /tmp/started
    signal_on login INT "$(launcher)"
    for host in login h0 h1; do
        wait_until 10 no_tasks $host
        on $host rm -f /tmp/started
    done
    signal_on login INT "$(launcher)" || true # on a slow machine it has given up the reader by itself by now
    status=0
    wait $run || status=$?
    expect_status 130
    exec 9>&-
    rm out err
    leftovers
}

no_tasks() { ! on "$1" pgrep -x yes >/dev/null; }

# unread COMMAND...: a run of two tasks with a time limit, whose output and error are a pipe that stays open and full.
unread() {
    clean_start
    mkfifo full
    exec 7<>full
    SECONDS=0
    status=0
    on login timeout -s KILL "$RUN_LIMIT" "$pmi_start" --timeout=2s --kill-grace=1s -n 2 "$@" \
        </dev/null >full 2>&1 7<&- || status=$?
    exec 7<&-
    rm full
}

@test "a reader that never reads again: the time limit ends the run all the same, its own words or not" {
    unread sh -c 'seq 1 100000; sleep 600'
    ((SECONDS <= 15)) || show_run "over after $SECONDS s"
    expect_status 124
    leftovers
}

@test "a reader that never reads again: the time limit also ends a run whose tasks have all ended" {
    unread sh -c 'seq 1 20000 >&2'
    ((SECONDS <= 15)) || show_run "over after $SECONDS s"
    expect_status 124
    leftovers
}

@test "output files that cannot be written are named" {
    ln -sf /dev/full "$HOSTS_DIR/home/full.1"
    run_pmi -H login,h0 -o "$HOSTS_DIR/home/full.%r" "$client" init , barrier , finalize , on 1 , print x
    rm -f "$HOSTS_DIR"/home/full.*
    expect_status 1
    expect_line "cannot write $HOSTS_DIR/home/full.1: No space left on device"
    expect_lines_at_most 1
    run_pmi -e /dev/full sh -c 'echo x >&2'
    expect_status 1
    expect_line "cannot write /dev/full: No space left on device"
}

@test "an output file that is a pipe without a reader is refused, not waited for" {
    on login mkfifo "$HOSTS_DIR/home/fifo"
    run_pmi -o "$HOSTS_DIR/home/fifo" true
    on login rm "$HOSTS_DIR/home/fifo"
    expect_status 1
    expect_line '*cannot open*fifo: it is a pipe'
}
