# SPDX-License-Identifier: BSD-3-Clause
# Spawn: a task has further jobs started, on either wire, as MPI_Comm_spawn does. See tests/progs/spawn_check.c.
load helpers

setup_file() { need_hosts 4; }

setup() {
    clean_start
    RUN_LIMIT=120
}

check=$build/tests/progs/spawn_check
four=(-H 'login,h[0-2]')
wires=('' --pmi2)

# A spawn request of one command in PMI-1's words: N PROGRAM [ARG...]
request() {
    local n=$1 program=$2 i=0 arg
    shift 2
    printf 'mcmd=spawn\nnprocs=%d\nexecname=%s\ntotspawns=1\nspawnssofar=1\n' "$n" "$program"
    for arg; do printf 'arg%d=%s\n' $((++i)) "$arg"; done
    printf 'argcnt=%d\npreput_num=0\ninfo_num=0\nendcmd' $i
}

@test "one, several, several commands, odd arguments, 500 arguments, from a spawned job; over four hosts, both wires" {
    local wire
    for wire in "${wires[@]}"; do
        run_pmi "${four[@]}" "$check" $wire one several commands many nest
        expect_status 0
        expect_lines_at_most 0
        leftovers
    done
}

@test "ranks go where the info keys say" {
    local wire
    for wire in "${wires[@]}"; do
        run_pmi -H 'login,h[0-2]' "$check" $wire hosts
        expect_status 0
    done
    leftovers
}

@test "every parent spawns at the same time" {
    local wire
    for wire in "${wires[@]}"; do
        run_pmi "${four[@]}" --ppn=2 "$check" $wire all several all commands
        expect_status 0
    done
    leftovers
}

@test "what cannot be started is told to the one who asked, by task, and the run goes on" {
    local wire
    on login sh -c 'cd /tmp && printf "#!/no/such/interpreter\n" >no-interpreter && chmod 755 no-interpreter'
    for wire in "${wires[@]}"; do
        run_pmi --nodes=2 -C /tmp "$check" $wire missing half badhost baddir interpreter one
        expect_status 0
        [ "$output" = 'missing: rc 0, errors in 3 of 3
half: rc 0, errors in 1 of 3
badhost: rc not 0, errors in 0 of 1
baddir: rc 0, errors in 1 of 1
interpreter: rc 0, errors in 2 of 2' ] || show_run "answers"
        expect_line 'rank * of job * on login: cannot be spawned: /no/such/program: No such file or directory'
        expect_line 'rank 0 on login: its request to spawn is refused: nowhere is none of the run'\''s hosts'
        expect_line 'rank 0 of job * on login: cannot be spawned: directory /no/such/dir: No such file or directory'
        expect_line 'rank * of job * on login: cannot be spawned: *no-interpreter*'
    done
    on login rm /tmp/no-interpreter
    leftovers
}

@test "a spawned task that fails ends the run, named by its job" {
    run_pmi "${four[@]}" "$client" init , on 1 , raw "$(request 2 sh -c 'exit 7')" , all , sleep 60000
    expect_status 7
    expect_line 'rank [01] of job 1 on * (pid *) exited with status 7'
    expect_lines_at_most 1
    leftovers
}

@test "the run ends when all jobs have ended, and what they print is labelled with their job" {
    # shellcheck disable=SC2016 # for the tasks
    run_pmi "${four[@]}" -l "$client" init , on 0 , raw "$(request 4 sh -c 'sleep 1; echo $PMI_RANK of $PMI_SIZE')" \
        , all , finalize
    expect_status 0
    [ "$(sort <<<"$output")" = '0: cmd=spawn_result rc=0
1.0: 0 of 4
1.1: 1 of 4
1.2: 2 of 4
1.3: 3 of 4' ] || show_run output
    leftovers
}

@test "a job that aborts, and a signal to the launcher, end every job" {
    run_pmi "${four[@]}" "$client" init , on 0 , raw "$(request 3 sleep 600)" , print spawned , nap 100 , abort 9 x
    expect_status 9
    expect_line 'rank 0 on login aborted (9)'
    leftovers
    start_pmi run "${four[@]}" "$client" init , on 0 , raw "$(request 3 sleep 600)" , all , sleep 600000
    wait_until 60 says run.out spawn_result
    signal_on login INT "$(launcher)"
    wait_pmi run
    expect_status 130
    leftovers
}

# Rank 0 asks for a job of 4 ranks once /tmp/go is there, and then for four of one rank. Rank 3, on h2, only waits.
spawns_when_told() {
    # shellcheck disable=SC2016 # for the task
    local script='say() { printf "$1\n" >&$PMI_FD; read -r line <&$PMI_FD; echo "$line"; }
        say "cmd=init pmi_version=1 pmi_subversion=1"
        [ $PMI_RANK != 3 ] || sleep 600
        if [ $PMI_RANK = 0 ]; then
            until [ -e /tmp/go ]; do sleep 0.05; done
            for n in 4 1 1 1 1; do
                job="mcmd=spawn\nnprocs=$n\nexecname=true\ntotspawns=1\nspawnssofar=1\nargcnt=0"
                say "$job\npreput_num=0\ninfo_num=0\nendcmd"
            done
        fi
        say cmd=finalize'
    start_pmi run "${four[@]}" -k --pmi-trace bash -c "$script"
    wait_until 60 eval '[ "$(grep -c "rc=0 pmi_version" "$BATS_TEST_TMPDIR/run.out")" = 4 ]'
}

@test "--keep-going: a job that a lost host has a part in is answered, and what it has none in runs" {
    local when
    for when in before while; do
        on login rm -f /tmp/go
        spawns_when_told
        if [ $when = before ]; then
            signal_on h2 KILL "$(workers h2)"
            wait_until 40 says run.err 'h2: lost: '
            on login touch /tmp/go
        else
            signal_on h2 STOP "$(workers h2)"
            on login touch /tmp/go
            wait_until 40 says run.err ' 0 C .*mcmd=spawn'
            signal_on h2 KILL "$(workers h2)"
        fi
        wait_pmi run
        on login rm -f /tmp/go
        expect_status 69
        expect_line 'h2: lost: *'
        # Of the four ranks one is on h2, and of the four single ones, too.
        [ "$(grep -c '^cmd=spawn_result rc=0 errcodes=' <<<"$output")" = 2 ] || show_run "not two with errors"
        [ "$(grep -c '^cmd=spawn_result rc=0$' <<<"$output")" = 3 ] || show_run "not three whole ones"
        [ "$(grep -vE '^pmi-start: [0-9:.]+ [0-9.]+ [CS] ' <<<"$stderr" | grep -c '^pmi-start: ')" = 1 ] ||
            show_run "more than the cause"
        leftovers 5
    done
}

@test "200 jobs, one after the other" {
    local steps=() i
    for ((i = 0; i < 200; i++)); do steps+=(, raw "$(request 2 true)"); done
    run_pmi --nodes=2 -n 1 "$client" init "${steps[@]}" , finalize
    expect_status 0
    [ "$(grep -cx 'cmd=spawn_result rc=0' <<<"$output")" = 200 ] || show_run "not 200 answers"
    leftovers
}

@test "a spawned job's keys, mapping and parent, and no key of another job" {
    # shellcheck disable=SC2016 # for the tasks
    local child='printf "cmd=init pmi_version=1 pmi_subversion=1\ncmd=get_my_kvsname\ncmd=get_appnum\n" >&3
        printf "cmd=get kvsname=x key=PMI_process_mapping\ncmd=get kvsname=x key=secret\ncmd=finalize\n" >&3
        for i in 1 2 3 4 5 6; do read -r line <&3; echo "$line"; done; echo "spawned=$PMI_SPAWNED"'
    run_pmi --nodes=2 -n 2 "$client" init , put secret s , barrier , on 0 \
        , raw "$(request 1 bash -c "${child//$'\n'/;}")" , all , finalize
    expect_status 0
    [[ $output == *'cmd=my_kvsname rc=0 kvsname=pmi-start.login.'*.1$'\n'*'cmd=appnum rc=0 appnum=0'* ]] || show_run name
    [[ $output == *'value=(vector,(0,1,1))'*'cmd=get_result rc=4'*'spawned=1'* ]] || show_run keys
    leftovers
}
