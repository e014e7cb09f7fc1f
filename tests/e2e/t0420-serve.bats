# SPDX-License-Identifier: BSD-3-Clause
# --serve: ranks that pmi-start does not start, from eight hosts and one that is in no range.
load helpers

setup_file() { need_hosts 9; }

setup() {
    read -r _ net <"$HOSTS_DIR/settings"
    ranges=$net.1.0/29,$net.1.8 # h0 to h7; neither h8 nor login
    marks=$HOSTS_DIR/marks
    rm -rf "$marks"
    mkdir -p "$marks"
    rank=$(site_script rank <<'END'
# rank ID STEP...: a rank in bash; ends with 3 when it is let go.
exec bash -c '
    say() { printf "%s\n" "$*" >&3; }
    hear() { read -r -t 60 -u 3 line || exit 3; }
    frame() { printf "%6d%s" ${#1} "$1" >&3; read -r -t 60 -u 3 -N 6 n && read -r -t 60 -u 3 -N $((n)) line || exit 3; }
    exec 3<>"/dev/tcp/${PMI_PORT/:/\/}" || exit 4
    say "cmd=initack pmiid=$1" && id=$1
    for i in 1 2 3 4; do hear; done
    shift
    for step; do
        case $step in
        init) say cmd=init pmi_version=1 pmi_subversion=1; hear ;;
        barrier) say cmd=barrier_in; hear; echo "${line}" ;;
        mapping) say cmd=get kvsname=x key=PMI_process_mapping; hear; echo "$line" ;;
        finalize) say cmd=finalize; hear ;;
        init2) say cmd=init pmi_version=2 pmi_subversion=0; hear; frame "cmd=fullinit;pmirank=$id;threaded=FALSE;" ;;
        attr) frame "cmd=info-getnodeattr;key=k;wait=TRUE;"; echo "$line" ;;
        finalize2) frame "cmd=finalize;" ;;
        abort) say cmd=abort exitcode=7 message=enough; hear ;;
        mark=*) : >"${step#*=}" ;;
        wait=*) for ((i = 0; i < 600; i++)); do [ -e "${step#*=}" ] && break; sleep 0.1; done ;;
        hold) hear ;;
        spawn) say mcmd=spawn; say nprocs=2; say execname=/bin/true; say totspawns=1; say spawnssofar=1; say endcmd
            hear; echo "$line" ;;
        esac
    done' rank "$@"
END
    )
    RUN_LIMIT=90
    clean_start
}

teardown() {
    end_failed
    rm -rf "$marks"
}

# serve N SCRIPT [OPTION...]: SCRIPT, of bash, is COMMAND. `at HOST ID STEP...` in it is a rank there.
serve() {
    local size=$1 script=$2
    shift 2
    # shellcheck disable=SC2016 # for COMMAND
    run_pmi --serve="$ranges" -n "$size" "$@" bash -c '
        at() { local host=$1; shift; ssh -n "$host" "PMI_PORT=$PMI_PORT $rank $*"; }
        refused() { "$@" && echo "taken: $*"; [ $? = 3 ] || echo "not refused: $*"; true; }
        rank=$1 marks=$2
        eval "$3"' sh "$rank" "$marks" "$script"
}

open_line() { expect_line "serving $1 ranks at $net.0.1:*, open to everybody in $net.1.0/29,$net.1.8/32"; }

@test "MPICH from eight ssh hosts by one pdsh line; who should not come does not harm it" {
    [ -x "$mpi_check" ] || skip "built without MPI"
    # shellcheck disable=SC2016
    serve 8 "mpi_check=$mpi_check"'
        at h1 3 mark=$marks/in wait=$marks/out & holder=$! # comes as 3, and lets go of it later
        ssh -n h2 "bash -c \"exec 3<>/dev/tcp/${PMI_PORT/:/\/}; read -t 60 -r -u 3 line; echo silent: \\\$?\"" & silent=$!
        for ((i = 0; i < 200; i++)); do [ -e $marks/in ] && break; sleep 0.1; done
        refused at h0 3
        for id in x -1 99999999999 3x ""; do refused at h0 "\"$id\""; done
        for i in 1 2 3; do refused at h8 5; done
        touch $marks/out; wait $holder
        pdsh -R ssh -w "h[0-7]" "PMI_PORT=$PMI_PORT PMI_ID=%n $mpi_check"
        echo "pdsh: $?"
        wait $silent; echo through'
    expect_status 0
    grep -q '^h0: mpi_check: 8 ranks, allreduce, ring and split right; ranks a node: 1 (8 ranks)$' <<<"$output" ||
        show_run "the program did not say that all is right"
    grep -qx 'silent: 1' <<<"$output" || show_run "the silent one was not let go"
    grep -qx 'pdsh: 0' <<<"$output" || show_run "pdsh failed"
    ! grep -E '^(taken|not refused)' <<<"$output" || show_run "somebody was let in"
    open_line 8
    expect_line "a connection from $net.1.1 is refused: PMI_ID 3 is in use"
    expect_line "a connection from $net.1.1 is refused: initack with a pmiid that is no id: '-1'"
    expect_line "a connection from $net.1.3 is refused: it has not said which rank it is for 10 s"
    expect_line "a connection from $net.1.9 is refused: it is in no range of --serve"
    [ "$(grep -c "from $net.1.9 " <<<"$stderr")" = 1 ] || show_run "more than one warning for an address"
    leftovers 5
}

@test "several ranks a host: the mapping follows the addresses, in the order of ranks" {
    [ -x "$mpi_check" ] || skip "built without MPI"
    # shellcheck disable=SC2016
    serve 8 "mpi_check=$mpi_check"'
        for i in 0 1 2 3 4 5 6 7; do ssh -n h$((i / 2 * 2)) "PMI_PORT=$PMI_PORT PMI_ID=$i $mpi_check" & done; wait'
    expect_status 0
    [ "$output" = 'mpi_check: 8 ranks, allreduce, ring and split right; ranks a node: 2 (8 ranks)' ] || show_run "result"
    # shellcheck disable=SC2016
    serve 4 'at h3 0 init mapping finalize & at h1 1 init mapping finalize & at h3 2 init mapping finalize &
        sleep 1; [ -z "$(jobs -d)" ]; touch $marks/late; at h0 3 init mapping finalize; wait'
    expect_status 0
    [ "$output" = "$(for _ in 1 2 3 4; do echo 'cmd=get_result rc=0 value=(vector,(0,2,1),(0,1,1),(2,1,1))'; done)" ] ||
        show_run "mapping"
    leftovers 5
}

@test "libpmi and libpmi2 from other hosts" {
    # shellcheck disable=SC2016
    serve 4 "progs=$build/tests/progs"'
        pdsh -R ssh -N -w "h[0-3]" "PMI_PORT=$PMI_PORT PMI_ID=%n PMI_SIZE=4 PMI_RANK=%n $progs/pmi_suite"
        pdsh -R ssh -N -w "h[0-3]" "PMI_PORT=$PMI_PORT PMI_ID=%n PMI_SIZE=4 PMI_RANK=%n $progs/pmi2_suite"'
    expect_status 0
    [ "$(grep -cE '^pmi2?_suite: .*all right$' <<<"$output")" = 2 ] || show_run "the suites did not say that all is right"
    expect_lines_at_most 1
    leftovers 5
}

@test "four sessions of each rank" {
    # shellcheck disable=SC2016
    serve 8 "progs=$build/tests/progs"'
        pdsh -R ssh -w "h[0-7]" "PMI_PORT=$PMI_PORT PMI_RANK=%n PMI_SIZE=8 $progs/pmi_threads 50 4"'
    expect_status 0
    expect_lines_at_most 1
    leftovers 5
}

@test "what COMMAND is told, and that a good end of it alone is one" {
    # shellcheck disable=SC2016
    serve 5 'echo ${PMI_PORT%:*} $PMI_SIZE ${PMI_FD-none} ${PMI_RANK-none} ${PMI_ID-none} ${MPI_LOCALRANKID-none}'
    expect_status 0
    [ "$output" = "$net.0.1 5 none none none none" ] || show_run "variables"
    open_line 5
    expect_lines_at_most 1
    run_pmi --serve=127.0.0.0/8 -n 1 --port=7321 sh -c 'echo $PMI_PORT'
    [ "$output" = 127.0.0.1:7321 ] || show_run "port"
    run_pmi --serve=0.0.0.0/0 -n 1 --interface=lo --port=7321-7330 sh -c 'echo $PMI_PORT'
    [ "$output" = 127.0.0.1:7321 ] || show_run "interface"
    run_pmi --serve="$net.7.0/24" -n 1 -q sh -c 'echo ${PMI_PORT%:*}'
    [ "$output" = "$net.0.1" ] || show_run "route"
    [ -z "$stderr" ] || show_run "-q"
    leftovers
}

@test "the status is COMMAND's: exit, signal, program missing, port in use" {
    serve 2 'exit 9'
    expect_status 9
    expect_line 'COMMAND (pid *) exited with status 9'
    # shellcheck disable=SC2016
    serve 2 'kill -SEGV $$'
    expect_status 139
    expect_line 'COMMAND (pid *) was killed by signal 11 (Segmentation fault)'
    RUN_STATUS=-127 run_pmi --serve="$ranges" -n 2 /no/such/program
    expect_status 127
    expect_line 'COMMAND: */no/such/program*'
    run_pmi --serve="$ranges" -n 2 --port=22 true
    expect_status 1
    expect_line '--serve: cannot listen on port 22: Address already in use'
    leftovers
}

@test "a rank that is lost before finalize, or aborts, ends COMMAND and the run" {
    serve 2 'at h0 0 init barrier & at h1 1 init; sleep 60'
    expect_status 1
    expect_line "rank 1 at $net.1.2 closed PMI before finalize"
    expect_lines_at_most 2
    leftovers 5
    serve 2 'at h0 0 init barrier & at h1 1 init abort; sleep 60'
    expect_status 7
    expect_line "rank 1 at $net.1.2 aborted (7): enough"
    expect_lines_at_most 2
    leftovers 5
    # It stays until it is shown the door: one that leaves at once may be seen to leave before what it sent is read.
    # shellcheck disable=SC2016
    serve 2 'at h0 0 init barrier & ssh -n h1 "exec 3<>/dev/tcp/${PMI_PORT/:/\/}; printf \"cmd=initack pmiid=1
cmd=init pmi_version=1 pmi_subversion=1
\0\0
\" >&3; cat <&3 >/dev/null"'
    expect_status 1
    expect_line "rank 1 at $net.1.2 sent rubbish on its PMI connection*"
    leftovers 5
}

@test "a rank that aborts when COMMAND is over: the others are let go" {
    # shellcheck disable=SC2016
    serve 2 '(at h0 0 init barrier; echo "let go: $?" >&2) & at h1 1 init mark=$marks/in wait=$marks/over abort &
        for ((i = 0; i < 100; i++)); do [ -e $marks/in ] && break; sleep 0.1; done; sleep 0.5
        (sleep 1; touch $marks/over) & exit 0'
    expect_status 7
    expect_line "rank 1 at $net.1.2 aborted (7): enough"
    leftovers 5
}

@test "the run lasts until every rank that came has finalized or gone" {
    # shellcheck disable=SC2016
    serve 3 'setsid -f ssh -n h0 "PMI_PORT=$PMI_PORT $rank 0 init mark=$marks/in wait=$marks/over finalize mark=$marks/fin" \
            >/dev/null 2>&1
        for ((i = 0; i < 100; i++)); do [ -e $marks/in ] && break; sleep 0.1; done
        setsid -f sh -c "sleep 3; touch $marks/over" >/dev/null 2>&1'
    expect_status 0
    [ -e "$marks/over" ] || show_run "it did not wait for the rank"
    expect_lines_at_most 1
    leftovers 5
}

@test "who has said which rank it is and does not begin is not waited for when COMMAND is over" {
    # shellcheck disable=SC2016
    serve 2 'setsid -f ssh -n h0 "PMI_PORT=$PMI_PORT $rank 0 mark=$marks/in hold" >/dev/null 2>&1
        for ((i = 0; i < 100; i++)); do [ -e $marks/in ] && break; sleep 0.1; done'
    expect_status 0
    expect_line "a connection from $net.1.1 is refused: it has said which rank it is and has not begun"
    leftovers 5
}

@test "a rank that never comes, while others wait and COMMAND is over" {
    # shellcheck disable=SC2016
    serve 4 'setsid -f ssh -n h0 "PMI_PORT=$PMI_PORT $rank 0 init mark=$marks/in barrier" >/dev/null 2>&1
        for ((i = 0; i < 100; i++)); do [ -e $marks/in ] && break; sleep 0.1; done'
    expect_status 1
    expect_line 'rank 1 has not come, nor have ranks 2-3'
    expect_lines_at_most 2
    leftovers 5
    # shellcheck disable=SC2016 # a mapping is waited for likewise, and a patience of one's own
    serve 2 'at h0 1 init mapping; sleep 60' --start-timeout=2s
    expect_status 1
    expect_line 'rank 0 has not come'
    leftovers 5
}

@test "a rank that has left while others wait for it" {
    # shellcheck disable=SC2016
    serve 2 'at h1 1 init finalize; at h0 0 init barrier; sleep 60' --start-timeout=2s
    expect_status 1
    expect_line "rank 1 at $net.1.2 left before barrier 1"
    leftovers 5
    # In a further session.
    # shellcheck disable=SC2016
    serve 2 'for i in 0 1; do at h$i $i init finalize; done; at h0 2 init barrier; sleep 60' --start-timeout=2s
    expect_status 1
    expect_line "rank 1 at $net.1.2 left before barrier 1 in session 1"
    leftovers 5
}

@test "PMI-2: a node attribute that only a rank could put that has left" {
    # shellcheck disable=SC2016
    serve 2 'at h1 1 init2 finalize2; at h0 0 init2 attr; sleep 60' --start-timeout=2s
    expect_status 1
    expect_line "rank 0 at $net.1.1 waits for node attribute 'k', which nobody on its node can put any more"
    expect_lines_at_most 2
    leftovers 5
}

@test "one program after the other as the same ranks" {
    # shellcheck disable=SC2016
    serve 2 'for turn in 1 2 3; do
            at h0 0 init mapping barrier finalize & at h1 1 init barrier finalize; wait
        done'
    expect_status 0
    [ "$(grep -c 'cmd=barrier_out rc=0' <<<"$output")" = 6 ] || show_run "barriers"
    expect_lines_at_most 1
    leftovers 5
}

@test "with --keep-going the others are told that it can never be complete" {
    # shellcheck disable=SC2016
    serve 3 'at h0 0 init barrier finalize & at h1 1 init mark=$marks/in
        at h2 2 init barrier finalize; wait; echo through' --keep-going
    expect_status 1
    [ "$(sort <<<"$output")" = "cmd=barrier_out rc=-1
cmd=barrier_out rc=-1
through" ] || show_run "answers"
    expect_line "rank 1 at $net.1.2 closed PMI before finalize"
    leftovers 5
}

@test "--timeout says who is awaited, --pmi-trace what was said" {
    serve 3 'at h0 0 init barrier & at h1 1 init hold; sleep 60' --timeout=4s
    expect_status 124
    expect_line "the time limit of 4 s is over in barrier 1, not entered by ranks 1-2 at $net.1.2; rank 2 has not come"
    leftovers 5
    serve 1 'at h5 0 init finalize' --pmi-trace
    expect_status 0
    expect_line '* 0 C cmd=finalize'
    expect_line '* 0 S cmd=finalize_ack rc=0'
}

@test "a signal ends COMMAND, and the ranks are let go" {
    # shellcheck disable=SC2016
    start_pmi term --serve="$ranges" -n 2 bash -c 'ssh -n h0 "PMI_PORT=$PMI_PORT $1 0 init mark=$2/in barrier"' sh \
        "$rank" "$marks"
    wait_until 20 test -e "$marks/in"
    signal_on login TERM "$(launcher)"
    wait_pmi term
    expect_status 143
    leftovers 5
}

@test "a host that falls silent is noticed" {
    # shellcheck disable=SC2016
    start_pmi dead --serve="$ranges" -n 2 bash -c 'setsid -f ssh -n h6 "PMI_PORT=$PMI_PORT $1 0 init mark=$2/in hold" \
        >/dev/null 2>&1; sleep 80' sh "$rank" "$marks"
    wait_until 20 test -e "$marks/in"
    cable h6 down
    local at=$SECONDS
    wait_pmi dead
    cable h6 up
    expect_status 1
    expect_line "rank 0 at $net.1.7 was lost before PMI finalize: *"
    ((SECONDS - at <= 32)) || show_run "after $((SECONDS - at)) s"
    signal_on h6 KILL $(named h6 bash) 2>/dev/null || true
}

@test "many silent connections from inside the range keep no rank out" {
    # shellcheck disable=SC2016
    serve 2 'ssh -n h7 "PMI_PORT=$PMI_PORT python3 -c \"
import os, socket, time
host, port = os.environ[\\\"PMI_PORT\\\"].split(\\\":\\\")
s = [socket.create_connection((host, int(port))) for i in range(1500)]
open(\\\"$marks/full\\\", \\\"w\\\")
while not os.path.exists(\\\"$marks/out\\\"): time.sleep(0.1)\"" & flood=$!
        for ((i = 0; i < 200; i++)); do [ -e $marks/full ] && break; sleep 0.1; done
        at h0 0 init barrier finalize & first=$!; at h1 1 init barrier finalize; wait $first
        touch $marks/out; wait $flood'
    expect_status 0
    [ "$(grep -c 'cmd=barrier_out rc=0' <<<"$output")" = 2 ] || show_run "barriers"
    expect_line "a connection from $net.1.8 is refused: *"
    expect_lines_at_most 20
    leftovers 5
}

@test "a rank may spawn: the new tasks run on the launcher's host" {
    serve 1 'at h0 0 init spawn finalize'
    expect_status 0
    [ "$output" = 'cmd=spawn_result rc=0' ] || show_run "spawn"
    leftovers 5
}

@test "bad use" {
    local words
    for words in '-n 2 -H h0' '-n 2 --nodes=2' '-n 2 --ppn=1' '-n 2 --pmi-connect=port' ''; do
        # shellcheck disable=SC2086
        run_pmi --serve="$ranges" $words true
        expect_status 2
        expect_line '*--serve*'
        expect_lines_at_most 1
    done
    run_pmi --serve="$net.1.1/16" -n 2 true
    expect_status 2
    expect_line "--serve: '$net.1.1/16' is no IPv4 range*"
    run_pmi --serve="$ranges" -n 2 true : true
    expect_status 2
}

# COMMAND has the same limit, but fewer files than its server.
@test "a server without room for one more connection says so once, does not spin, and goes on when there is room" {
    local used
    cat >"$HOSTS_DIR/many.py" <<'END'
import os, socket, sys
host, port = os.environ["PMI_PORT"].split(":")
many = [socket.create_connection((host, int(port))) for _ in range(30)]
print("many", flush=True)
sys.stdin.readline()
for one in many:
    one.close()
os.execv(sys.argv[1], sys.argv[1:])
END
    mkfifo "$BATS_TEST_TMPDIR/input"
    exec {input}<>"$BATS_TEST_TMPDIR/input"
    # shellcheck disable=SC2016 # for the inner shell
    pmi_start=/bin/sh START_INPUT=$BATS_TEST_TMPDIR/input start_pmi run -c 'ulimit -n 40; exec "$@"' sh "$pmi_start" -n 1 \
        --serve="$net.0.1" env PMI_ID=0 python3 "$HOSTS_DIR/many.py" "$client" init , exchange 2 10 0 new , finalize
    wait_until 10 says run.out many
    wait_until 10 says run.err 'cannot be taken'
    used=$(cpu_of "$(launcher)")
    wait_until 10 is_second $((SECONDS + 2))
    used=$(($(cpu_of "$(launcher)") - used))
    ((used < 50)) || show_run "$used hundredths of a second of CPU in one to two seconds"
    echo go >&"$input"
    wait_pmi run
    expect_status 0
    [[ $output == *'exchange: 1 ranks, 2 rounds, all right' ]] || show_run "not all"
    expect_line 'a connection to port * cannot be taken: Too many open files; raise the limit of open files (ulimit -n)'
    expect_lines_at_most 2 # with the one that it serves
    rm "$HOSTS_DIR/many.py"
    leftovers
}

# Hundredths of a second that a process on login has used.
cpu_of() { on login sed 's/.*) //' "/proc/$1/stat" | awk '{ print $12 + $13 }'; }

is_second() { ((SECONDS >= $1)); }
