# SPDX-License-Identifier: BSD-3-Clause
# Gets of our own libpmi and libpmi2 from a mapping of the node's keys, and barriers whose end comes from the node's bell;
# and who gets neither.
load helpers

setup_file() { need_hosts 4; }

setup() {
    clean_start
    RUN_LIMIT=120
}

suite=$build/tests/progs/map_suite

@test "4 hosts x 4: values that change every round, own puts, 10000 keys, by libpmi" {
    run_pmi -H 'h[0-3]' --ppn=4 "$suite" yes 60 10000
    expect_status 0
    [ "$output" = 'map_suite: 16 ranks, all right' ] || show_run output
    expect_lines_at_most 0
    leftovers
}

@test "the same by libpmi2" {
    run_pmi -H 'h[0-3]' --ppn=4 "${suite}2" yes 60 10000
    expect_status 0
    [ "$output" = 'map_suite: 16 ranks, all right' ] || show_run output
    leftovers
}

@test "1,000 rounds, squeezed many times" {
    run_pmi --nodes=2 --ppn=3 "$suite" yes 1000 100
    expect_status 0
    leftovers
}

@test "over PMI_PORT there is none, and all is the same" {
    run_pmi -H 'h[0-1]' --ppn=2 --pmi-connect=port "$suite" no 10 100
    expect_status 0
    run_pmi -H 'h[0-1]' --ppn=2 --pmi-connect=port "${suite}2" no 10 100
    expect_status 0
    run_pmi -H 'h[0-1]' --ppn=2 --pmi-connect=both "$suite" yes 10 100
    expect_status 0
    leftovers
}

@test "a trace shows every get, so there is none with it" {
    run_pmi -n 2 --pmi-trace "$suite" no 2 10
    expect_status 0
    [[ $stderr == *'cmd=get '*'key=key-1-7'* ]] || show_run trace
    [[ $stderr != *map_kvs* ]] || show_run trace
    leftovers
}

# Hydra ends a job whose task says map_kvs.
@test "a launcher of another kind within a task is not asked, though its tasks inherit the variable" {
    command -v mpiexec.hydra >/dev/null || skip 'no Hydra'
    run_pmi -n 1 mpiexec.hydra -n 2 sh -c '[ -n "$PMI_KVS_MAP" ] && exec "$0" --plain' "$build/tests/progs/pmi_suite"
    expect_status 0
    [[ $output == *'pmi_suite: 2 ranks, all right' ]] || show_run output
    leftovers
}

@test "a pmi-start within a task, whose tasks have a mapping of their own" {
    run_pmi -n 1 "$pmi_start" -n 2 "$suite" yes 4 10
    expect_status 0
    leftovers
}

@test "a task that asks over and over and drops what it gets" {
    # shellcheck disable=SC2016 # for the task
    run_pmi -n 2 bash -c 'for ((i = PMI_RANK * 500; i < 500; i++)); do
            echo cmd=map_kvs >&$PMI_FD && read -r line <&$PMI_FD && [ "$line" = "cmd=kvs_map rc=0 slot=0" ] || exit 9
        done
        exec "$0" yes 20 100' "$suite"
    expect_status 0
    leftovers
}

@test "a task that asks 1,000 times before it reads" {
    # shellcheck disable=SC2016 # for the task
    run_pmi -n 1 bash -c 'for i in {1..1000}; do echo cmd=map_kvs; done >&$PMI_FD
        for i in {1..1000}; do
            read -r line <&$PMI_FD && [[ $line == "cmd=kvs_map rc="* ]] || exit 9
        done
        exec "$0" yes 20 100' "$suite"
    expect_status 0
    leftovers
}

# As libpmi does, in the shell: what it says, and what it is told.
bell_task='ask() { echo "$1" >&$PMI_FD; read -r line <&$PMI_FD; [ "$line" = "$2" ] || { echo "$line"; exit 9; }; }
    ask "cmd=init pmi_version=1 pmi_subversion=1" "cmd=response_to_init rc=0 pmi_version=1 pmi_subversion=1"
    ask "cmd=map_kvs what=bell" "cmd=kvs_map rc=0 slot=$PMI_RANK"'

@test "a barrier by the bell is not answered, unless it fails" {
    run_pmi -n 3 bash -c "$bell_task"'
        for i in 1 2 3; do
            if [ $PMI_RANK = 2 ]; then ask cmd=barrier_in "cmd=barrier_out rc=0"
            else echo cmd=barrier_in answer=bell >&$PMI_FD; fi
            ask cmd=get_appnum "cmd=appnum rc=0 appnum=0"
            ask cmd=barrier_in "cmd=barrier_out rc=0"
        done
        ask cmd=finalize "cmd=finalize_ack rc=0"'
    expect_status 0
    run_pmi -n 3 -k bash -c "$bell_task"'
        [ $PMI_RANK = 2 ] && exit 3
        ask "cmd=barrier_in answer=bell" "cmd=barrier_out rc=-1"
        ask "cmd=barrier_in answer=bell" "cmd=barrier_out rc=-1"; ask cmd=finalize "cmd=finalize_ack rc=0"'
    expect_status 3
    [ -z "$output" ] || show_run output
    leftovers
}

@test "a rank that ends while the others wait by the bell is named" {
    run_pmi -H 'h[0-1]' --ppn=2 bash -c "${bell_task/slot=\$PMI_RANK/slot=\$((PMI_RANK % 2))}"'
        [ $PMI_RANK = 3 ] && exit 0
        ask "cmd=barrier_in answer=bell" never'
    expect_status 1
    [[ $stderr == *'rank 3 on h1 '*'exited before PMI finalize'* ]] || show_run stderr
    leftovers
}
