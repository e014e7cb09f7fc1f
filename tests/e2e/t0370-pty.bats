# SPDX-License-Identifier: BSD-3-Clause
# --pty: a terminal of its own for the rank that reads standard input, on the launcher's host or on another
load helpers

setup_file() { need_hosts 2; }

setup() {
    clean_start
    RUN_LIMIT=60
}

teardown() {
    end_failed
    on login rm -f /root/go
}

# A shell that says what it finds with ":" before, so that it is not what was typed.
bash=(bash --norc --noprofile -i)

# at_both SCRIPT...: the same typed into a shell on this host and on another; sets $status and $output of the other.
at_both() {
    local script=$1 where
    shift
    for where in login h1; do
        run_pty "$script" -H "$where" "$@" env PS1='$ ' TERM=dumb HISTFILE= "${bash[@]}"
        [ "$status" = "$expected" ] || show_run "$where: status $status"
        leftovers 5
    done
}

@test "a shell: a terminal of the right size, its exit status, and ours as it was" {
    expected=7
    # shellcheck disable=SC2016 # for the shell on the terminal
    at_both 'size:33,101;wait:$ ;raw;type:tty && stty size && echo "<$((6*7))>"\n;wait:<42>;type:exit 7\n' --pty
    [[ $output == */dev/pts/* ]] || show_run "no terminal"
    [[ $output == *"33 101"* ]] || show_run "not its size"
}

@test "Ctrl-C is for what runs in the foreground there, not for the run" {
    expected=0
    # shellcheck disable=SC2016
    at_both 'wait:$ ;type:sed -u s/^/got:/\n;type:hello\n;wait:got:hello;type:^C;next:$ ;type:echo "<$?>"\n;wait:<130>;type:exit 0\n' --pty
}

@test "Ctrl-Z and fg work within it, the launcher goes on" {
    expected=0
    # shellcheck disable=SC2016
    at_both 'wait:$ ;type:sed -u s/^/got:/\n;type:hello\n;wait:got:hello;type:^Z;wait:Stopped;next:$ ;type:fg\n;type:again\n;wait:got:again;type:^D;next:$ ;type:echo "<$?>"\n;wait:<0>;type:exit 0\n' --pty
}

@test "a terminal that changes its size tells what runs on it" {
    expected=0
    # shellcheck disable=SC2016
    at_both 'wait:$ ;type:trap "stty size" WINCH\n;type:echo "<$((1+1))>"\n;wait:<2>;size:44,55;wait:44 55;type:exit 0\n' --pty
}

@test "the other ranks' lines are whole, and the terminal is not read by them" {
    run_pty 'wait:two;type:x\n;wait:got x' -H login,h0,h1 --pty bash -c '
        if [ $PMI_RANK = 0 ]; then read -r line; echo "got $line"; else echo one; echo two; read -r line || echo none$PMI_RANK; fi'
    [ "$status" = 0 ]
    [[ $output == *$'one\r\ntwo\r\n'* ]] || show_run "no CR and LF"
    [[ $output == *none1* && $output == *none2* ]] || show_run "they read"
    leftovers 5
}

@test "another rank by --input, and a program that puts its terminal into raw mode itself" {
    run_pty 'raw;wait:ready;type:^C;wait:=3=' -H login,h0 --pty --input=1 bash -c '
        [ $PMI_RANK = 1 ] || exit 0; stty raw -echo; echo ready; printf "=%d=" "'"'"'$(head -c 1)"; stty sane'
    [ "$status" = 0 ] || show_run raw
    leftovers 5
}

@test "much output, byte by byte" {
    run_pty 'wait:end of it' -H h0 --pty bash -c 'stty -opost; head -c 3000000 /dev/zero | tr "\0" x; echo; echo "end of it"'
    [ "$status" = 0 ]
    [ "$(tr -cd x <<<"$output" | wc -c)" = 3000000 ]
    leftovers 5
}

@test "what goes wrong is told with whole lines, and the terminal is as it was" {
    run_pty 'wait:ready' -H login,h0 --pty bash -c '[ $PMI_RANK = 0 ] && { echo ready; exec sleep 1000; }; sleep 0.5; exit 9'
    [ "$status" = 9 ] || show_run status
    [[ $output == *$'pmi-start: rank 1 on h0 '*' exited with status 9'* ]] || show_run "no cause"
    leftovers 5
}

@test "the launcher is killed: the terminal is put back, and nothing is left" {
    start_pty killed 'wait:ready;raw;touch:/root/go;cooked' -H h0 --pty bash -c 'echo ready; exec sleep 1000'
    wait_until 30 on login test -e /root/go
    signal_on login KILL "$(launcher)"
    wait "$pty" || status=$?
    cat "$BATS_TEST_TMPDIR/killed"
    [ "$status" = 137 ]
    on login rm /root/go
    leftovers 10
}

# stopped_and_on SIGNAL ACTS: by that signal from outside; what the little shell does meanwhile.
stopped_and_on() {
    start_pty stop "wait:ready;raw;touch:/root/go;stopped;$2;fg;raw;type:end\\n" -H h0 --pty \
        bash -c 'echo ready; read -r line; [ "$line" = end ]'
    wait_until 30 on login test -e /root/go
    signal_on login "$1" "$(launcher)"
    status=0
    wait "$pty" || status=$?
    cat "$BATS_TEST_TMPDIR/stop"
    [ "$status" = 0 ]
    on login rm /root/go
    leftovers 5
}

@test "stopped from outside the terminal is as it was, and raw again when it goes on" {
    stopped_and_on TSTP cooked
}

@test "stopped by STOP, which a shell makes up for, it is raw again when it goes on" {
    stopped_and_on STOP cook
}

@test "the last output, too, is written while the terminal is raw" {
    local host
    for host in login h0; do
        run_pty '' -H "$host" --pty sh -c 'stty raw; seq 1 20000; printf "a\nb\n"'
        [ "$status" = 0 ] || show_run "$host: status"
        [[ $output != *$'\r'* ]] || fail "$host: carriage returns"
        run_pty 'wait:on' -H "$host" --pty sh -c 'sleep 600 & echo on' # who has the terminal yet holds nothing up
        [ "$status" = 0 ] || show_run "$host: status"
    done
    leftovers 5
}

@test "with HUP ignored, a terminal that is gone ends the run even so" {
    local gone host
    gone=$(cat <<'END'
import os, pty, signal, sys, time
pid, tty = pty.fork()
if pid == 0:
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    os.execv(sys.argv[1], sys.argv[1:])
seen = b""
while b"ready" not in seen:
    seen += os.read(tty, 1000)
os.close(tty)
end = time.monotonic() + 30
while time.monotonic() < end:
    done, status = os.waitpid(pid, os.WNOHANG)
    if done:
        sys.exit(os.waitstatus_to_exitcode(status))
    time.sleep(0.02)
sys.exit(99)
END
    )
    for host in login h0; do
        run on login timeout -s KILL "$RUN_LIMIT" python3 -c "$gone" "$pmi_start" -H "$host" --pty \
            sh -c 'echo ready; exec sleep 600'
        [ "$status" = 129 ] || show_run "$host: status $status"
    done
    leftovers 5
}

@test "where there is no terminal, or no use for one: refused" {
    run_pmi --pty -H h0 true
    expect_status 2
    expect_line '--pty: standard input is no terminal'
    for option in --label --output=/tmp/x --error=/tmp/x --input=all --input=none; do
        run_pty '' --pty "$option" -H h0 true
        [ "$status" = 2 ] || show_run "$option"
        [[ $output == *"--pty and ${option/\/tmp*/}"* || $output == *"--pty and ${option%%=*}"* ]] || show_run "$option"
    done
    leftovers
}
