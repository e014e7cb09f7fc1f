# SPDX-License-Identifier: BSD-3-Clause
# What users of other launchers ran into: environment, directory and program, processes that are left behind, Ctrl-C
load helpers
load field

RUN_LIMIT=60

tidy() { cable h2 up; }

ready() { [ "$(grep -c ready "$BATS_TEST_TMPDIR/$1")" = "$2" ]; }

@test "TMPDIR is long, missing, or cannot be written: nothing of ours is there" {
    local dir
    printf -v dir '/tmp/%0150d' 1
    for dir in "$dir" /no/such /proc; do
        run_env TMPDIR="$dir" -- -H 'h[0-1],login' --pmi-connect=both "$client" init , exchange 1 10 0 new , finalize
        expect_status 0
        [ -z "$stderr" ] || show_run words
    done
    leftovers
}

@test "the same variables on every host, whatever the login there sets" {
    printf 'export ONLY_THERE=1 PATH=/nowhere LD_LIBRARY_PATH=/nowhere\n' >"$HOSTS_DIR/home/.bashrc"
    run_env LD_LIBRARY_PATH=/x:/y FROM_HERE=1 -- -H login,h0 \
        sh -c 'env | grep -v -e ^PMI_ -e ^MPI_ -e ^SHLVL -e ^_ | sort | md5sum'
    expect_status 0
    [ "${#lines[@]}-${lines[0]}" = "2-${lines[1]}" ] || show_run different
    run_env LD_LIBRARY_PATH=/x:/y -- -H h0 sh -c 'echo "$LD_LIBRARY_PATH $ONLY_THERE"'
    [ "$output" = '/x:/y ' ] || show_run variables
    rm "$HOSTS_DIR/home/.bashrc"
    leftovers
}

@test "a program that is missing, no program, a directory, or of no known kind on one host alone" {
    local there=$HOSTS_DIR/prog RUN_STATUS
    mkdir -p "$there"
    printf '#!/bin/sh\nexec touch /root/ran\n' >"$there/prog"
    chmod 755 "$there/prog"
    clean_start
    on h1 mount -t tmpfs tmpfs "$there"
    RUN_STATUS=-127
    run_pmi -H 'h[0-2]' "$there/prog"
    expect_status 127
    expect_line "rank 1 on h1: $there/prog: No such file or directory"
    RUN_STATUS=
    on h1 sh -c 'echo text >"$1"' sh "$there/prog"
    run_pmi -H 'h[0-2]' "$there/prog"
    expect_status 126
    expect_line "rank 1 on h1: $there/prog: not executable"
    on h1 sh -c 'rm "$1"; mkdir "$1"' sh "$there/prog"
    run_pmi -H 'h[0-2]' "$there/prog"
    expect_status 126
    expect_line "rank 1 on h1: $there/prog: *directory*"
    expect_lines_at_most 1
    on h1 umount "$there"
    leftovers
}

@test "a pmi-start in a task, on another host, and the outer job goes on" {
    run_pmi -H 'h[0-1]' sh -c '"$1" -H "h2,h$PMI_RANK" -n 2 "$2" init , exchange 1 10 0 new , finalize &&
        exec "$2" init , exchange 1 10 0 new , finalize' sh "$pmi_start" "$client"
    expect_status 0
    [ "$(sort -u <<<"$output")" = 'exchange: 2 ranks, 1 rounds, all right' ] && ((${#lines[@]} == 3)) || show_run jobs
    leftovers
}

@test "two jobs of one program on the same hosts: the end of one is not that of the other" {
    local name
    for name in one two; do
        start_pmi $name -H 'h[0-1],login' "$client" init , print ready , sleep 600000
        wait_until 20 ready $name.out 3
        [ $name = two ] || first=$(launcher)
    done
    signal_on login INT "$first"
    wait_pmi one
    expect_status 130
    for name in h0 h1 login; do [ "$(tasks $name | wc -l)" = 1 ] || { tasks $name && false; }; done
    signal_on login TERM "$(launcher)"
    wait_pmi two
    expect_status 143
    leftovers
}

@test "tasks that fork, and a launcher that is interrupted or killed: no child is left" {
    local name
    for name in INT KILL; do
        start_pmi run -H 'h[0-1],login' sh -c '(trap "" INT TERM HUP; sleep 600 & setsid sleep 600 & sleep 600) &
            (cd / && nohup sleep 600 >/dev/null 2>&1 &); echo ready; exec sleep 600'
        wait_until 20 ready run.out 3
        signal_on login $name "$(launcher)"
        wait_pmi run
        expect_lines_at_most 0
        leftovers 8
    done
}

@test "Ctrl-C while a host does not answer" {
    cable h2 down
    run_pty 'wait:starting;type:^C' -H 'h[0-2]' sleep 600
    [ "$status" = 130 ]
    grep -q 'pmi-start: ended by INT while hosts were started, waiting for h2' <<<"$output"
    cable h2 up
    leftovers
}

@test "Ctrl-Z while hosts are started, and fg" {
    agent
    order h1 <<<"until [ -e '$agent_dir/go' ]; do sleep 0.05; done"
    clean_start
    run on login env PATH="$agent_dir:$PATH" timeout -s KILL 60 python3 "$BATS_TEST_DIRNAME/pty_run.py" \
        'wait:starting;type:^Z;stopped;fg;wait:starting;touch:'"$agent_dir"'/go;wait:all right' \
        "$pmi_start" -H 'h[0-2]' "$client" init , exchange 1 10 0 new , finalize
    [ "$status" = 0 ]
    leftovers
}

@test "a wrong option behind hosts: nothing is started anywhere" {
    agent
    run_env PATH="$agent_dir:$PATH" -- -H 'h[0-2]' --start-timeout=soon true
    expect_status 2
    run_env PATH="$agent_dir:$PATH" -- -H 'h[0-2]' --oversubscribe true
    expect_status 2
    [ -z "$(ls "$agent_dir/calls")" ] || show_run "a login was made"
    leftovers
}

@test "a daemon that a task leaves behind: with our pipes or its own, the run ends without waiting for it" {
    run_pmi -H 'login,h0' sh -c '(setsid sleep 600 &); exit 0'
    expect_status 0
    run_pmi -H 'login,h0' sh -c '(setsid sleep 600 </dev/null >/dev/null 2>&1 &); exit 0'
    expect_status 0
    leftovers
}
