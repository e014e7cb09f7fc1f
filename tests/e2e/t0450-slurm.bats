# SPDX-License-Identifier: BSD-3-Clause
# Within an allocation of a real Slurm of four nodes.
load helpers

setup_file() {
    need_hosts 4
    "$hosts_scripts/slurm.sh" up 4
}

# Slurm's daemons talk for a moment after each job.
setup() {
    wait_until 10 quiet
    clean_start
}

quiet() { ! "$hosts_scripts/traces.py" | grep -q ' established '; }

teardown_file() { "$hosts_scripts/slurm.sh" down; }

# allocated SALLOC-ARG... -- ARG...: salloc on login, and pmi-start in it
allocated() {
    local words=()
    while [ "$1" != -- ]; do
        words+=("$1")
        shift
    done
    shift
    run --separate-stderr on login timeout -s KILL "$RUN_LIMIT" \
        salloc --quiet "${words[@]}" "$pmi_start" "$@" </dev/null
}

# begin NAME COMMAND...: the same in the background, COMMAND as it is; end it by wait_pmi
begin() {
    on login timeout -s KILL "$RUN_LIMIT" "${@:2}" </dev/null \
        >"$BATS_TEST_TMPDIR/$1.out" 2>"$BATS_TEST_TMPDIR/$1.err" 3>&- &
    started[$1]=$!
}

in_job() { begin "$1" salloc --quiet -N4 "$pmi_start" "${@:2}"; }

all_run() { has_tasks h0 1 && has_tasks h1 1 && has_tasks h2 1 && has_tasks h3 1; }

# The one job there is, and its step of providers.
job() { on login squeue -h -o %i; }
step() { on login squeue -s -h -o '%i %j' | awk '$2 == "pmi-start" { print $1 }'; }

all_idle() { [ "$(on login sinfo -h -N -t idle -o %N </dev/null | wc -l)" = 4 ]; }

# nothing_left: Slurm's own daemons have a moment to end what is theirs, too.
nothing_left() { leftovers 10; }

@test "a client on all nodes of the allocation, with the slots that it says" {
    allocated -N4 -- "$client" init , exchange 3 100 0 new , finalize
    expect_status 0
    [ "$output" = "exchange: 4 ranks, 3 rounds, all right" ] || show_run "not 4 ranks"
    [ -z "$stderr" ] || show_run "words on standard error"
    nothing_left
    # shellcheck disable=SC2016 # for the shell of the task
    allocated -N4 -n6 -- sh -c 'echo $PMI_RANK/$PMI_SIZE $(hostname)'
    expect_status 0
    [ "$(sort <<<"$output")" = '0/6 h0
1/6 h0
2/6 h0
3/6 h1
4/6 h2
5/6 h3' ] || show_run "not 3 tasks on h0 and 1 on each other"
    nothing_left
}

@test "MPICH, and a client that reads as Flux does" {
    allocated -N4 -- --ppn=2 "$mpi_check"
    expect_status 0
    [[ $output == "mpi_check: 8 ranks, "*"right; ranks a node: 2 (8 ranks)" ]] || show_run "not 8 ranks"
    nothing_left
    allocated -N4 -- --fanout=2 "$client" --style=flux init , put key-%r value-%r , barrier , \
        want key-0 value-0 , want key-3 value-3 , missing nothing , exchange 5 100 1 new , finalize
    expect_status 0
    [[ $output == *"exchange: 4 ranks, 5 rounds, all right"* ]] || show_run "no word of the exchange"
    nothing_left
}

# placed EXPECTED ARG...: which rank is where
placed() {
    # shellcheck disable=SC2016
    allocated -N4 -- "${@:2}" sh -c 'echo $PMI_RANK $(hostname)'
    expect_status 0
    [ "$(sort -n <<<"$output" | paste -sd,)" = "$1" ] || show_run "not as expected"
    [ -z "$stderr" ] || show_run "words on standard error"
}

@test "hosts in the order of -H, some of them, one twice; -n, --ppn, -x, --nodes" {
    placed '0 h2,1 h0' -H h2,h0
    placed '0 h3,1 h1,2 h3,3 h3' -H h3,h1,h3:2
    placed '0 h0,1 h0,2 h1,3 h1,4 h2' -n 5 --ppn=2 --bootstrap=slurm
    placed '0 h0,1 h3' -x 'h[1-2]'
    placed '0 h0,1 h1' --bootstrap=slurm --nodes=2
    placed '0 login,1 login' --nodes=2
    nothing_left
}

@test "several programs in one run" {
    # shellcheck disable=SC2016
    allocated -N4 -- -n 1 sh -c 'echo a $PMI_RANK $(hostname)' : -n 3 sh -c 'echo b $PMI_RANK $(hostname)'
    expect_status 0
    [ "$(sort <<<"$output" | paste -sd,)" = 'a 0 h0,b 1 h1,b 2 h2,b 3 h3' ] || show_run "not as expected"
    nothing_left
}

# The launcher runs on the first node then, and is no node itself.
@test "in a batch script" {
    local file=$HOSTS_DIR/job
    printf '#!/bin/sh\n%s\n' "$pmi_start -l --ppn=2 $client init , exchange 2 50 0 new , finalize" >"$file.sh"
    run --separate-stderr on login sbatch --wait --quiet -N4 --output="$file.out" "$file.sh"
    output=$(<"$file.out")
    rm "$file.sh" "$file.out"
    expect_status 0
    [ "$output" = "0: exchange: 8 ranks, 2 rounds, all right" ] || show_run "not 8 ranks"
    nothing_left
}

# As salloc without a command gives it, where the site wants it on the first node.
@test "in an interactive step" {
    local file=$HOSTS_DIR/interactive
    # shellcheck disable=SC2016
    printf '#!/bin/sh\nhostname >%s\n%s -- sh -c %s >>%s\n' "$file" "$pmi_start" \
        "'echo \$PMI_RANK \$(hostname)'" "$file" >"$file.sh"
    run on login env SHELL="/bin/sh" script -qec 'salloc -Q -N4 -n5' /dev/null <<<"sh $file.sh; exit"
    output=$(<"$file")
    rm "$file" "$file.sh"
    [ "$(sort <<<"$output" | paste -sd,)" = '0 h0,1 h0,2 h1,3 h2,4 h3,h0' ] || show_run "not as expected"
    nothing_left
}

@test "in a step of one task; in one of several it is refused" {
    # shellcheck disable=SC2016
    run --separate-stderr on login salloc -Q -N4 srun -n1 -N1 --mpi=pmi2 "$pmi_start" -n 4 --map=cyclic sh -c '
        echo $PMI_RANK $(hostname); env | grep -E "^(SLURM_(STEP|PMI|SRUN|PROCID)|SLURMD|PMIX|PMI_JOBID|PMI2)" || true' </dev/null
    expect_status 0
    [ "$(sort <<<"$output" | paste -sd,)" = '0 h0,1 h1,2 h2,3 h3' ] || show_run "not as expected"
    run --separate-stderr on login salloc -Q -N4 srun -n4 "$pmi_start" true </dev/null
    [[ $stderr == *"pmi-start: SLURM_STEP_NUM_TASKS is '4': "*"srun -n1"* ]] || show_run "no word of the four"
    nothing_left
}

@test "a run within a task of a run" {
    allocated -N3 -n3 -- -n 1 "$pmi_start" "$client" init , exchange 2 50 0 new , finalize
    expect_status 0
    [ "$output" = "exchange: 3 ranks, 2 rounds, all right" ] || show_run "not 3 ranks"
    nothing_left
}

@test "a task that fails, and one that is not there" {
    # shellcheck disable=SC2016
    allocated -N4 -- sh -c 'test $PMI_RANK != 2 || exit 7; exec sleep 30'
    expect_status 7
    expect_line "rank 2 on h2 (pid *) exited with status 7"
    expect_lines_at_most 1
    nothing_left
    RUN_LIMIT=20
    run -127 --separate-stderr on login salloc -Q -N4 "$pmi_start" /no/program </dev/null
    expect_line "rank * on h*: /no/program: No such file or directory"
    nothing_left
}

@test "pmi-start is not where --remote-path says" {
    allocated -N4 -- --remote-path=/no/pmi-start true
    expect_status 69
    expect_line "h?0-3?: start: *: /no/pmi-start: No such file or directory"
    expect_lines_at_most 1
    nothing_left
}

@test "the job is cancelled" {
    in_job a sleep 60
    wait_until 10 all_run
    on login scancel "$(job)"
    wait_pmi a
    [[ $stderr == *"JOB "*" CANCELLED AT "* || $stderr == *"STEP "*" CANCELLED AT "* ]] || show_run "no word of it"
    nothing_left
}

@test "the step is cancelled, and ends the run, not the job" {
    # shellcheck disable=SC2016
    begin a salloc --quiet -N4 sh -c '"$@" sleep 60; echo status $?; "$@" echo again' sh "$pmi_start"
    wait_until 10 all_run
    on login scancel "$(step)"
    wait_pmi a
    expect_status 0
    # Which of the tasks and the providers are killed first is Slurm's affair.
    [[ $output == status\ @(69|137|143)$'\nagain\nagain\nagain\nagain' ]] || show_run "not ended, or the job with it"
    expect_line "*STEP * CANCELLED AT *"
    expect_lines_at_most 2
    nothing_left
}

# It may be back by itself.
resume() {
    on login scontrol update nodename=h2 state=resume 2>/dev/null || true
    wait_until 10 all_idle
}

# Slurm drops a signal to a step that it is not through with starting, although its tasks run.
have_usr1() {
    on login scancel -s USR1 "$(job)"
    [ "$(grep usr1 "$BATS_TEST_TMPDIR/a.out" | sort -u | wc -l)" = 4 ]
}

@test "USR1 to the job comes to every task; TERM ends the run" {
    # shellcheck disable=SC2016
    in_job a sh -c 'trap "echo usr1 $PMI_RANK" USR1; echo ready; while :; do sleep 0.05; done'
    wait_until 20 eval '(($(grep -c ready "$BATS_TEST_TMPDIR/a.out") == 4))'
    wait_until 20 have_usr1
    on login scancel -s TERM "$(job)"
    wait_pmi a
    # Whom Slurm ends first is its own affair.
    [[ $status == @(69|137|143) ]] || show_run "status $status"
    nothing_left
}

# The batch script is in none of the job's steps, and has no signal that is for these.
@test "USR1 to a batch job comes to every task, those beside the launcher as well" {
    # shellcheck disable=SC2016
    printf '#!/bin/sh\nexec %s %s\n' "$pmi_start" \
        "sh -c 'trap \"echo usr1 \$PMI_RANK; exit\" USR1; echo ready; while :; do sleep 0.05; done'" >"$HOSTS_DIR/job.sh"
    for nodes in 1 2; do
        out=$BATS_TEST_TMPDIR/a.out
        on login sbatch --quiet -N$nodes --output="$HOSTS_DIR/home/job.out" "$HOSTS_DIR/job.sh"
        wait_until 20 eval '(($(grep -c ready "$HOSTS_DIR/home/job.out") == nodes))'
        wait_until 20 no_job_is_left_by_usr1
        cp "$HOSTS_DIR/home/job.out" "$out"
        [ "$(grep -c usr1 "$out")" = "$nodes" ] || { cat "$out" && false; }
        rm "$HOSTS_DIR/home/job.out"
    done
    rm "$HOSTS_DIR/job.sh"
    nothing_left
}

no_job_is_left_by_usr1() {
    [ -z "$(job)" ] || on login scancel -s USR1 "$(job)"
    [ -z "$(job)" ]
}

@test "a node is set down" {
    in_job a sleep 60
    wait_until 10 all_run
    on login scontrol update nodename=h2 state=down reason=test
    wait_pmi a
    resume
    [[ $stderr == *"Node failure on h2"* ]] || show_run "no word of it"
    nothing_left
}

@test "a node that the job has lost cannot be started on" {
    # shellcheck disable=SC2016
    run --separate-stderr on login salloc -Q -N4 --no-kill sh -c '
        scontrol update nodename=h2 state=down reason=test; "$@"; echo status $?' sh "$pmi_start" true </dev/null
    resume
    [ "$output" = "status 69" ] || show_run "not 69"
    expect_line "h?0-3?: start: srun: error: *--bootstrap=rsh*"
    nothing_left
}

@test "srun is killed" {
    in_job a sleep 60
    wait_until 10 all_run
    signal_on login KILL "$(named login srun | head -n 1)" # its other one goes with it, and ends the step
    wait_pmi a
    [ "$status" != 0 ] || show_run "it went well"
    expect_lines_at_most 2
    nothing_left
}

@test "the launcher is killed" {
    in_job a sleep 60
    wait_until 10 all_run
    signal_on login KILL "$(launcher)"
    wait_pmi a
    nothing_left
}

@test "by ssh to the hosts of the allocation" {
    allocated -N4 -n6 -- --bootstrap=rsh "$client" init , exchange 3 100 0 new , finalize
    expect_status 0
    [ "$output" = "exchange: 6 ranks, 3 rounds, all right" ] || show_run "not 6 ranks"
    [ -z "$stderr" ] || show_run "words on standard error"
    nothing_left
}

@test "srun is missing, or refuses" {
    local path=$HOSTS_DIR/no-srun
    mkdir -p "$path"
    run --separate-stderr on login salloc -Q -N4 env PATH="$path" "$pmi_start" true </dev/null
    expect_line "job * of Slurm: srun: not found in PATH (--bootstrap=rsh *)"
    expect_lines_at_most 1
    run --separate-stderr on login env SLURM_JOB_ID=999 SLURM_JOB_NODELIST='h[0-1]' SLURM_TASKS_PER_NODE='1(x2)' \
        "$pmi_start" true
    expect_status 69
    expect_line "h?0-1?: start: srun: error: *999*Invalid job id* ?--bootstrap=rsh *"
    expect_lines_at_most 1
    nothing_left
}

@test "half an allocation is refused, and nothing runs" {
    run --separate-stderr on login env SLURM_JOB_ID=7 "$pmi_start" touch /tmp/ran
    expect_status 2
    expect_line "SLURM_JOB_ID is set, but SLURM_JOB_NODELIST is not (--bootstrap=local *)"
    run --separate-stderr on login env SLURM_JOB_ID=7 SLURM_JOB_NODELIST='h[0-3]' SLURM_TASKS_PER_NODE='1(x3)' \
        "$pmi_start" touch /tmp/ran
    expect_status 2
    expect_line "SLURM_TASKS_PER_NODE: '1(x3)' is for 3 nodes, but there are 4 (--bootstrap=local *)"
    run --separate-stderr on login "$pmi_start" -b slurm touch /tmp/ran
    expect_status 2
    allocated -N2 -- -b slurm -H h9 touch /tmp/ran
    expect_line "--bootstrap=slurm: host 'h9' is not in the allocation of job *"
    nothing_left
}

@test "a slurmd is killed, and the run goes on" {
    in_job a sh -c 'sleep 1.5; echo done'
    wait_until 10 all_run
    signal_on h2 KILL "$(<"$HOSTS_DIR/slurm/pid/slurmd-h2")"
    wait_pmi a
    on h2 slurmd
    expect_status 0
    [ "$output" = $'done\ndone\ndone\ndone' ] || show_run "not four"
    wait_until 20 all_idle
}

@test "a terminal for a rank within an allocation, its size, Ctrl-C and its status" {
    local script
    # shellcheck disable=SC2016 # for the shell on the terminal
    script='size:33,101;wait:$ ;raw;type:hostname && stty size\n;wait:33 101;type:sed -u s/^/got:/\n;type:hello\n;wait:got:hello;type:^C;next:$ ;type:echo "<$?>"\n;wait:<130>;type:exit 7\n'
    run on login timeout -s KILL "$RUN_LIMIT" python3 "$BATS_TEST_DIRNAME/pty_run.py" "$script" \
        salloc --quiet -N4 "$pmi_start" --pty env PS1='$ ' TERM=dumb HISTFILE= bash --norc --noprofile -i
    [ "$status" = 7 ] || show_run "status $status"
    [[ $output == *$'\nh0\r'* ]] || show_run "not on h0"
    nothing_left
}

@test "a task may use the CPUs that the allocation has on its node, whatever the launcher may" {
    local mask='grep Cpus_allowed_list: /proc/self/status | cut -f2' all slurmd
    all=$(on h0 sh -c "$mask")
    [[ $all == *[,-]* ]] || skip "there is one CPU"
    slurmd=$(cat "$HOSTS_DIR/slurm/pid/slurmd-h1")
    on h1 taskset -p -c "${all%%[,-]*}" "$slurmd"
    run --separate-stderr on login timeout -s KILL "$RUN_LIMIT" taskset -c "${all##*[,-]}" \
        salloc --quiet -N3 "$pmi_start" sh -c "echo \$(hostname) \$($mask)" </dev/null
    on h1 taskset -p -c "$all" "$slurmd"
    expect_status 0
    [ "$(sort <<<"$output")" = "h0 $all
h1 ${all%%[,-]*}
h2 $all" ] || show_run "not the masks of the nodes"
    nothing_left
}

# The last one: the host stays away.
@test "a node crashes" {
    in_job a sleep 60
    wait_until 10 all_run
    crash_host h3
    wait_pmi a
    expect_line "h3: lost: *"
    expect_lines_at_most 1
    for host in h0 h1 h2; do
        wait_until 5 no_keeper "$host"
    done
}

no_keeper() { [ -z "$(keepers "$1")" ]; }
