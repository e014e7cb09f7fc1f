# SPDX-License-Identifier: BSD-3-Clause
# An Indexed Job whose pods are played on hosts: names that are known late, pods that come late, twice, not at all, or go; no
# user, no home, nothing to write to; all of them end as the job does.
load helpers
load pods

setup_file() { need_hosts 4; }

setup() {
    clean_start
    pod_secret "$HOSTS_DIR/key"
    launcher_known 0 1 2 3
}

teardown() {
    end_failed
    rm -f "$HOSTS_DIR"/key* "$HOSTS_DIR"/pod*.hosts
}

exchange=("$client" init , exchange 1 10 0 new , finalize)
# Runs until it is told to end.
sleeper=(sh -c 'echo "running $PMI_RANK"; exec sleep 60')

start_pods() {
    local i list=$1
    shift
    for i in $list; do start_pod "$i" "$@"; done
}

no_zombies() { "${within[@]}" sh -c '! grep -qs "^State:.Z" /proc/[0-9]*/status'; }

running() { [ "$(grep -c '^running' "$BATS_TEST_TMPDIR/pod0.out")" = "$1" ]; }

@test "four pods, with two ranks each: MPI, PMI, what a task sees; the output is pod 0's" {
    # MPICH itself, not pmi-start, wants a /dev/shm.
    POD_SHM=mode=1777,size=64m start_pods '0 1 2 3' --nodes=4 --ppn=2 "$mpi_check"
    wait_pod 0
    expect_status 0
    [[ $output == *'8 ranks, allreduce, ring and split right;'* ]] || show_run "no MPI"
    ended_with 0 1 2 3
    start_pods '3 2 1 0' --nodes=4 --ppn=2 "${exchange[@]}"
    wait_pod 0
    exchanged 8
    ended_with 0 1 2 3
    # shellcheck disable=SC2016 # for the task
    start_pods '0 1 2 3' --nodes=4 -l sh -c 'echo $(hostname) $(id -u) $PWD ${JOB_COMPLETION_INDEX-none} $POD_NAME'
    wait_pod 0
    expect_status 0
    [ "$(sort <<<"$output")" = "0: sim-0 $POD_UID / none sim-0
1: sim-1 $POD_UID / none sim-0
2: sim-2 $POD_UID / none sim-0
3: sim-3 $POD_UID / none sim-0" ] || show_run "another world"
    ended_with 0 1 2 3
    leftovers
}

@test "a name that is known after 5 s only, an address of the past, and a launcher that starts last" {
    pod_names 1
    pod_names 2 "$(address_of_pod 3) sim-0.sim"
    start_pods '1 2 3' --nodes=4 "${exchange[@]}"
    sleep 5
    start_pod 0 --nodes=4 "${exchange[@]}"
    launcher_known 1 2
    wait_pod 0
    exchanged 4
    ended_with 0 1 2 3
    leftovers
}

@test "pods that do not come are named by their numbers, and those that have come end as well" {
    start_pods '0 2' --nodes=9 --start-timeout=2s "${exchange[@]}"
    wait_pod 0
    expect_status 69
    expect_line 'pods 1,3-8 have not come (nobody within 2 s; see kubectl get pods, and the logs of those that run)'
    ended_with 69 2
    expect_line 'the run has ended with status 69; why, the log of pod 0 says'
    # Without a launcher.
    pod_names 1
    start_pods '1 2' --nodes=4 --start-timeout=1s true
    ended_with 69 1
    expect_line 'no connection within 1 s: sim-0.sim:7647: the name is not known (see kubectl get pods,services,*'
    ended_with 69 2
    expect_line 'no connection within 1 s: sim-0.sim:7647: *connection refused (see kubectl *'
    leftovers
}

@test "the status of the job is that of every pod" {
    # shellcheck disable=SC2016 # for the task
    start_pods '0 1 2' --nodes=3 sh -c '[ "$PMI_RANK" != 2 ] || exit 7; exec sleep 60'
    wait_pod 0
    expect_status 7
    expect_line 'rank 2 on sim-2 (pid *) exited with status 7'
    ended_with 7 1 2
    start_pods '0 1' --nodes=2 /no/such/program
    wait_pod 0
    expect_status 127
    ended_with 127 1
    leftovers
}

@test "a pod that dies is named, and all end" {
    start_pods '0 1 2' --nodes=3 "${sleeper[@]}"
    wait_until 20 running 3
    signal_on h2 KILL "$(pod_init 2)"
    wait_pod 0
    expect_status 69
    expect_line 'sim-2: lost: *'
    ended_with 69 1
    wait_pod 2
    # The launcher dies: nobody is left who could say why.
    start_pods '0 1 2' --nodes=3 "${sleeper[@]}"
    wait_until 20 running 3
    signal_on h0 KILL "$(pod_init 0)"
    ended_with 69 1 2
    expect_line 'the launcher, or what leads to it, is lost: *'
    wait_pod 0
    leftovers 7
}

@test "a pod that is started again while the job runs is told so" {
    start_pods '0 1 2' --nodes=3 --keep-going "${sleeper[@]}"
    wait_until 20 running 3
    signal_on h2 KILL "$(pod_init 2)"
    wait_until 20 says pod0.err '^pmi-start: sim-2: lost: '
    wait_pod 2
    for _ in 1 2; do
        start_pod 2 --nodes=3 --keep-going --start-timeout=2s "${sleeper[@]}"
        ended_with 69 2
        expect_line '* says that the run has begun, or is over: nobody can join it any more'
    done
    # Once, however often it comes.
    [ "$(grep -c "^pmi-start: $(address_of_pod 2):[0-9]* comes too late, and was turned away$" "$BATS_TEST_TMPDIR/pod0.err")" = 1 ]
    signal_on h0 TERM "$(pod_init 0)"
    wait_pod 0
    expect_status 143
    ended_with 143 1
    leftovers
}

@test "a pod that comes as the run before it ends finds the next one, past an address that is somebody else's" {
    pod_secret "$HOSTS_DIR/key2"
    pod_names 2 "$(address_of_pod 3) sim-0.sim" "$(address_of_pod 0) sim-0.sim"
    POD_AS=foreign POD_INDEX=0 POD_SECRET=$HOSTS_DIR/key2 start_pod 3 --nodes=2 true
    start_pods '0 1' --nodes=2 "${sleeper[@]}"
    wait_until 20 running 2
    POD_AS=next POD_INDEX=1 start_pod 2 --nodes=2 "${exchange[@]}"
    wait_until 20 says pod0.err 'comes too late, and was turned away$'
    signal_on h0 TERM "$(pod_init 0)"
    wait_pod 0
    ended_with 143 1
    start_pod 0 --nodes=2 "${exchange[@]}"
    wait_pod 0
    exchanged 2
    ended_with 0 next
    signal_on h3 TERM "$(pod_init 3)"
    ended_with 143 foreign
    expect_line '*: it has another secret (--secret-file)'
    leftovers
}

@test "of a range of ports the first is the launcher's, and the others find it" {
    start_pods '0 1 2' --nodes=3 --port=7660-7690 --fanout=1 "${exchange[@]}"
    wait_pod 0
    exchanged 3
    ended_with 0 1 2
    leftovers
}

listening() { [ -n "$(on h0 ss -Hltn 'sport = :7647')" ]; }

@test "two pods of one number, another number of pods, another secret: refused, and the job is none the worse" {
    start_pods '0 1' --nodes=3 "${exchange[@]}"
    pod_secret "$HOSTS_DIR/key2"
    wait_until 10 listening
    POD_AS=wrong POD_SECRET=$HOSTS_DIR/key2 start_pod 2 --nodes=3 --start-timeout=2s "${exchange[@]}"
    ended_with 69 wrong
    expect_line 'the launcher there has another secret than ours *'
    POD_AS=four start_pod 3 --nodes=4 "${exchange[@]}"
    ended_with 69 four
    expect_line 'the launcher refused: the run has 3 pods, not 4 (--nodes)'
    wait_until 10 eval 'POD_AS=twice POD_INDEX=1 start_pod 3 --nodes=3 --start-timeout=2s "${exchange[@]}"; true'
    ended_with 69 twice
    expect_line 'the launcher refused: this node has joined already'
    start_pod 2 --nodes=3 "${exchange[@]}"
    wait_pod 0
    expect_status 0
    expect_line '*: it has another secret (--secret-file)'
    expect_line 'pod 3, from *, was refused: the run has 3 pods, not 4 (--nodes)'
    expect_line 'a second pod 1, from *, was refused'
    ended_with 0 1 2
    leftovers
}

@test "TERM to one pod ends the job, in time and politely; to pod 0 as well" {
    # shellcheck disable=SC2016 # for the task
    local polite=(sh -c 'trap "echo bye $PMI_RANK; exit 0" TERM; echo running; while :; do sleep 0.1; done')
    start_pods '0 1 2' --nodes=3 "${polite[@]}"
    wait_until 20 running 3
    signal_on h1 TERM "$(pod_init 1)"
    wait_pod 0
    expect_status 69
    expect_line 'sim-1: it was told to end: signal 15 (Terminated)'
    [ "$(grep -c '^bye' <<<"$output")" = 3 ] || show_run "not all had their time"
    ended_with 69 1 2
    start_pods '0 1 2' --nodes=3 "${polite[@]}"
    wait_until 20 running 3
    signal_on h0 TERM "$(pod_init 0)"
    wait_pod 0
    expect_status 143
    expect_line 'ended by TERM: this pod was told to end'
    [ "$(grep -c '^bye' <<<"$output")" = 3 ] || show_run "not all had their time"
    ended_with 143 1 2
    # One that still looks for its launcher, whose name nobody knows.
    pod_names 1
    start_pod 1 --nodes=3 true
    wait_until 10 eval '[ -n "$(pod_init 1)" ]'
    wait_until 10 eval 'signal_on h1 TERM $(pod_init 1) 2>/dev/null; [ -z "$(pod_init 1)" ]'
    ended_with 143 1
    leftovers
}

# shellcheck disable=SC2016 # for the shell in the pod
@test "the first process of a pod takes up what loses its parent" {
    local host
    start_pods '0 1' --nodes=2 "${sleeper[@]}"
    wait_until 20 running 2
    for host in h0 h1; do
        within=(on "$host" nsenter -t "$(pod_init "${host#h}")" -p -m)
        # As with kubectl exec; it ends when what it has left behind does.
        run "${within[@]}" sh -c '(until grep -q "^PPid:[[:space:]]*1$" "/proc/$(exec sh -c "echo \$PPID")/status"
            do sleep 0.02; done; echo adopted) &'
        [ "$output" = adopted ] || show_run "nobody has adopted it"
        wait_until 10 no_zombies
    done
    signal_on h0 TERM "$(pod_init 0)"
    wait_pod 0
    ended_with 143 1
    leftovers
}
