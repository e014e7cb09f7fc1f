# SPDX-License-Identifier: BSD-3-Clause
# pmi-bench measures any PMI server, and finds what is wrong with one.
load helpers

setup_file() { need_hosts 1; }
teardown_file() { "$hosts_scripts/slurm.sh" down; }

bench=$build/pmi-bench

# ours ARG..., hydra ARG...: three ranks of it on this machine.
ours() { run_pmi -n 3 "$bench" "$@"; }
hydra() { run --separate-stderr timeout -s KILL "$RUN_LIMIT" mpiexec.hydra -n 3 "$bench" "$@"; }

# faulty FAULT ARG...: one rank of a server with that fault, see fake_pmi.py
faulty() {
    local fault=$1
    shift
    run --separate-stderr timeout -s KILL "$RUN_LIMIT" python3 "$BATS_TEST_DIRNAME/fake_pmi.py" "$fault" "$bench" "$@"
}

# alone ARG...: without any server
alone() {
    run --separate-stderr env -u PMI_FD -u PMI_PORT -u PMI_ID -u PMI_RANK -u PMI_SIZE "$bench" "$@"
}

# prints NAME COUNT: a line of figures that can be: none is 0, and they are in order.
prints() {
    sed 's/[a-z0-9]* \([0-9.]*\) us/\1/g; s/,//g' <<<"$output" | awk -v name="$1:" -v count="$2" '
        $1 == name && $2 == "count" && $3 == count && $4 > 0 && $4 <= $5 && $5 <= $7 && $7 <= $8 &&
            $4 <= $6 && $6 <= $8 { good = 1 }
        END { exit !good }' || show_run "no good line '$1: count $2'"
}

# complains TEXT: where TEXT is a pattern of the shell's.
complains() {
    # shellcheck disable=SC2053 # a pattern on purpose
    [[ $stderr == *"pmi-bench: "$1* ]] || show_run "no complaint '$1'"
}

# Every command, with figures for all that it does.
all_commands() {
    local run=$1
    shift
    "$run" "$@" info
    expect_status 0
    [[ $output == *"task: rank 0 of 3, application 0, universe"*"PMI_process_mapping: (vector,"* ]] || show_run info
    "$run" "$@" get -c 50
    expect_status 0
    prints get 150
    "$run" "$@" get PMI_process_mapping -c 20
    expect_status 0
    prints get 60
    "$run" "$@" barrier -c 30
    expect_status 0
    prints barrier 90
    "$run" "$@" exchange -c 20
    expect_status 0
    prints put 60
    prints barrier 60
    prints get 180
    prints round 60
    prints round-first-tenth 6
    prints round-last-tenth 6
    "$run" "$@" exchange -c 2 -r 1 -k 40 -s 900
    expect_status 0
    prints get 6
    "$run" "$@" put-get -c 10 -s 1
    expect_status 0
    prints put 30
    prints get 30
    [ "$stderr" = "" ] || show_run "something on standard error"
}

@test "every command under pmi-start, over PMI_FD and PMI_PORT, PMI-1 and PMI-2" {
    ours_port() { run_pmi --nodes=3 --pmi-connect=port "$bench" "$@"; }
    all_commands ours
    all_commands ours --pmi=2
    all_commands ours_port
    all_commands ours_port --pmi=2
}

@test "every command under mpiexec.hydra, over PMI_FD and PMI_PORT, PMI-1 and PMI-2" {
    all_commands hydra
    all_commands hydra --pmi=2
    hydra_port() { run --separate-stderr timeout -s KILL "$RUN_LIMIT" mpiexec.hydra -pmi-port -n 3 "$bench" "$@"; }
    all_commands hydra_port --wire=port
    all_commands hydra_port --pmi=2
}

@test "spawn: the new tasks have their key and their ranks" {
    local pmi server
    for pmi in 1 2; do
        for server in ours hydra; do
            $server --pmi=$pmi spawn -n 3 -c 2
            expect_status 0
            prints spawn 2
            prints answer 2
        done
    done
}

@test "every command under srun, and Slurm's two libraries" {
    local pmi libs
    libs=/usr/lib/$(gcc -print-multiarch)
    "$hosts_scripts/slurm.sh" up 1
    srun() { run --separate-stderr on login timeout -s KILL 60 srun -Q -N1 --overcommit "$@" </dev/null; }
    for pmi in 1 2; do
        pmi2() { srun --mpi=pmi2 -n3 "$bench" --pmi=$pmi "$@"; }
        pmi2 info
        [[ $output == *"task: rank 0 of 3,"*"PMI_process_mapping: (vector,"* ]] || show_run info
        pmi2 exchange -c 3
        expect_status 0
        prints round 9
        pmi2 put-get -c 3
        expect_status 0
        prints get 9
        srun --mpi=pmi2 -n1 --overlap "$bench" --pmi=$pmi spawn
        expect_status 0
        prints answer 1
    done
    srun --mpi=pmi2 -n3 "$bench" --library="$libs/libpmi2.so.0" exchange -c 3
    expect_status 0
    prints round 9
    srun --mpi=none -n3 "$bench" --library="$libs/libpmi.so.0" exchange -c 3
    expect_status 0
    prints round 9
    "$hosts_scripts/slurm.sh" down
}

@test "many sessions under pmi-start" {
    local pmi
    for pmi in 1 2; do
        run_pmi --nodes=2 --ppn=2 --pmi-connect=port "$bench" --pmi=$pmi --sessions=25 exchange -c 3
        expect_status 0
        prints open 100
        prints get 1200
        prints round 300
        [[ $output == *"; 0 faults" ]] || show_run faults
    done
}

@test "through a library" {
    local lib
    lib=/usr/lib/$(gcc -print-multiarch)/libpmi2.so.0
    hydra --library=$lib exchange -c 3
    expect_status 0
    prints round 9
    ours --library="$build/.libs/libpmi.so" exchange -c 3
    expect_status 0
    prints round 9
    ours --library="$build/.libs/libpmi2.so" put-get -c 3
    expect_status 0
    prints get 9
    hydra --library=$lib info
    [[ $output == "speaks: libpmi2"*"rank 0 of 3"* ]] || show_run info
    alone --library=/nowhere/libpmi.so get
    expect_status 1
    complains "/nowhere/libpmi.so: cannot open"
    alone --library=libm.so.6 get
    expect_status 1
    complains "libm.so.6 has no PMI2_Init"
}

@test "--json: one object a line; -v: one of each rank as well" {
    ours --json -v barrier -c 5
    expect_status 0
    python3 -c 'import json, sys
lines = [json.loads(line) for line in sys.stdin]
bars = [x for x in lines if x["measure"] == "barrier"]
assert sorted(x["rank"] for x in bars if x["ranks"] == 1) == [0, 1, 2], bars
whole, = [x for x in bars if x["ranks"] == 3]
assert whole["count"] == 15 and 0 < whole["min_us"] <= whole["median_us"] <= whole["max_us"], whole
assert all(x["faults"] == 0 for x in lines if x["measure"] == "cpu")' <<<"$output" || show_run json
}

@test "without a server there is a word about it" {
    alone exchange
    expect_status 1
    complains "there is no PMI server: neither PMI_FD nor PMI_PORT is set"
    run --separate-stderr env PMI_RANK=0 PMI_SIZE=1 "$bench" get
    expect_status 1
    complains "PMI_RANK is set but neither PMI_FD nor PMI_PORT"
    run --separate-stderr env PMI_PORT=127.0.0.1:1 PMI_ID=0 "$bench" get
    expect_status 1
    complains "cannot connect to the PMI server at 127.0.0.1:1: Connection refused"
    ours --wire=port get
    expect_status 1
    complains "PMI_PORT is not set"
    ours --sessions=2 get
    expect_status 1
    complains "PMI_PORT is not set"
}

@test "wrong use is status 2" {
    local args
    for args in '' dance 'get a b' '-c 0 get' '--wire=udp get' '-L libpmi.so spawn' '-w fd -S 2 get' '-t never get'; do
        # shellcheck disable=SC2086 # words
        alone $args
        expect_status 2
        complains ''
    done
    alone --help
    expect_status 0
    alone --version
    expect_status 0
    [[ $output == "pmi-bench "[0-9]* ]]
}

@test "more than the server takes is said beforehand" {
    ours -s 1024 get
    expect_status 1
    complains 'rank 0: values of 1024 bytes: this PMI server takes at most 1023'
}

@test "values that are wrong, cut or missing are told with rank, key, wanted and got" {
    local pmi fault got
    faulty none exchange -c 4
    expect_status 0
    for pmi in 1 2; do
        for fault in wrong cut longer missing late-put; do
            faulty $fault --pmi=$pmi exchange -c 4
            expect_status 1
            case $fault in
            wrong) got="64 bytes 'rank0.0." ;;
            cut) got="63 bytes 'rank0.0." ;;
            longer) got="65 bytes 'rank0.0." ;;
            *) got='nothing: rc=' ;;
            esac
            [[ $stderr == *"rank 0: session 0: key b"[23]".0.0: wanted 64 bytes 'rank0.0."*", got $got"* ]] ||
                show_run "fault $fault"
            complains 'rank 0: 2 faults in all'
        done
    done
}

@test "requests that fail are told of" {
    faulty put put-get -c 2
    expect_status 1
    complains 'rank 0: session 0: put of key b0.0.0 failed: rc=-1'
    faulty barrier --pmi=2 barrier -c 20
    expect_status 1
    complains 'rank 0: session 0: barrier failed: rc=-1 (more of this is only counted)'
    faulty no-init get
    expect_status 1
    complains 'rank 0: the PMI server does not speak PMI-1'
    ours get nothing
    expect_status 1
    complains 'rank [0-2]: there is no key nothing (rc=4)'
}

@test "a server that says nothing, half of it, rubbish, or good-bye" {
    local pmi fault says
    for pmi in 1 2; do
        for fault in silent half close rubbish; do
            faulty $fault --pmi=$pmi --timeout=300ms exchange -c 4
            expect_status 1
            case $fault in
            close) says='rank 0: session 0: the reply to get of key b2.0.0: the PMI server has closed the connection' ;;
            rubbish) says='rank 0: session 0: the reply to get of key b2.0.0: the PMI server sent ' ;;
            *) says='rank 0: gave up after 0.300 s of waiting for the reply to get b2.0.0 (session 0)' ;;
            esac
            complains "$says"
        done
    done
}

@test "many sessions: each has its own keys, and a fault is told with its session" {
    local i
    faulty none --sessions=40 exchange -c 5
    expect_status 0
    prints open 40
    prints round 200
    faulty none --sessions=40 --pmi=2 put-get -c 5
    expect_status 0
    prints get 200
    faulty rank --sessions=3 exchange
    expect_status 1
    complains 'rank 0: session 1: the PMI server says that it is rank 1 of 1, but session 0 is rank 0 of 1'
    faulty wrong --sessions=3 exchange -c 1
    expect_status 1
    [[ $stderr =~ "session "([0-2])": key b0."([0-2])".0: wanted 64 bytes 'rank0."([0-2])".0=".*", got 64 bytes" ]] ||
        show_run wrong
    [[ ${BASH_REMATCH[1]} = "${BASH_REMATCH[2]}" && ${BASH_REMATCH[1]} = "${BASH_REMATCH[3]}" ]] || show_run mixed
    faulty silent --sessions=3 --timeout=300ms exchange -c 4
    expect_status 1
    complains 'rank 0: session [0-2]: the reply to get of key b[0-3].[0-2].0: not within 300 ms ('
    for i in close rubbish half; do
        faulty $i --sessions=3 --timeout=300ms exchange -c 4
        expect_status 1
        complains 'rank 0: '
    done
}
