#!/usr/bin/env bats
# SPDX-License-Identifier: BSD-3-Clause
# Debian's Open MPI, as it is, on eight ssh hosts: it is served over PMIx, on the same tree.
load helpers

setup_file() { need_hosts 8; }

setup() {
    need_openmpi
    RUN_LIMIT=90
    clean_start
}

# expect_output TEXT: the run went well, said this and no other word.
expect_output() {
    expect_status 0
    [ "$output" = "$1" ] || show_run "not '$1'"
    [ -z "$stderr" ] || show_run "words on standard error"
    leftovers 5
}

@test "eight hosts: allreduce, ring and split, and MPICH beside it" {
    run_pmi -H 'h[0-7]' --ppn=2 "$build/tests/progs/mpi_check_openmpi"
    expect_output "mpi_check: 16 ranks, allreduce, ring and split right; ranks a node: 2 (16 ranks)"
    [ -x "$mpi_check" ] || skip "built without MPICH"
    run_pmi -H 'h[0-7]' --ppn=2 --pmix=yes "$mpi_check"
    expect_status 0
    [ "$output" = "mpi_check: 16 ranks, allreduce, ring and split right; ranks a node: 2 (16 ranks)" ] || show_run "wrong"
    leftovers 5
}

@test "a fence to which every host brings more than one message holds" {
    run_pmi -H 'h[0-7]' --pmix=yes "$build/tests/bench/pmix_fence" 60000 6
    expect_status 0
    [ -z "$stderr" ] || show_run "words on standard error"
    leftovers
}

@test "one host, the launcher's own; ranks in another order; a tree of depth three" {
    run_pmi -n 3 "$ompi"
    expect_output "hello from 3 ranks"
    run_pmi -H 'h[0-3],login' --ppn=2 --map=cyclic --fanout=1 "$build/tests/progs/mpi_check_openmpi"
    expect_output "mpi_check: 10 ranks, allreduce, ring and split right; ranks a node: 2 (10 ranks)"
}

@test "keys are fetched from the node of their rank where no fence brings them" {
    run_pmi -H 'h[0-7]' -E OMPI_MCA_pmix_base_async_modex=1 -E OMPI_MCA_pmix_base_collect_data=0 \
        "$build/tests/progs/mpi_check_openmpi"
    expect_output "mpi_check: 8 ranks, allreduce, ring and split right; ranks a node: 1 (8 ranks)"
}

@test "publish, look up, connect and accept" {
    run_pmi -H 'h[0-7]' "$ompi" connect
    expect_output "connected: 8 ranks"
}

@test "spawn: a job of its own on the same hosts" {
    run_pmi -H 'h[0-3]' --ppn=1 "$ompi" spawn 3
    expect_status 0
    [ "$(sort <<<"$output")" = $'children: 3\nparents: 4' ] || show_run "wrong"
    [ -z "$stderr" ] || show_run "words on standard error"
    leftovers 5
}

@test "several programs: each rank is of the one that it was given, and all find each other" {
    run_pmi -H 'h[0-2]' --ppn=2 -n 1 "$ompi" appnum : -n 4 "$ompi" appnum : "$ompi" appnum
    expect_status 0
    [ "$(sort <<<"$output")" = "$(printf 'rank %d: program %d\n' 0 0 1 1 2 1 3 1 4 1 5 2)" ] || show_run "wrong"
    run_pmi -H 'h[0-2]' --ppn=2 --map=cyclic -n 1 "$build/tests/progs/mpi_check_openmpi" : -n 5 "$build/tests/progs/mpi_check_openmpi"
    expect_output "mpi_check: 6 ranks, allreduce, ring and split right; ranks a node: 2 (6 ranks)"
}

@test "a script needs to be told, and then works" {
    run_pmi -H 'h[0-1]' --pmix=yes sh -c '"$0"' "$ompi"
    expect_output "hello from 2 ranks"
}

@test "a script that was not told: who runs alone is seen, and what to do" {
    start_pmi run -H 'h[0-1]' --barrier-warn=2s sh -c '"$0" sleep; exit' "$ompi"
    wait_until 60 says run.err 'h0: rank 0 has Open MPI without PMIx, .* each of the 2 ranks is a job .* --pmix=yes'
    signal_on login TERM "$(launcher)"
    wait_pmi run
    expect_status 143
    on h0 sh -c 'rm -rf /tmp/ompi.*' # nobody removes those of one that was alone and killed
    on h1 sh -c 'rm -rf /tmp/ompi.*'
    leftovers 5
}

@test "a program that has MPI by way of a library of its own is known for one" {
    run_pmi -n 2 "$build/tests/progs/ompi_by_lib"
    expect_output "hello from 2 ranks"
}

@test "who does not want it has none of it" {
    run_pmi -n 1 sh -c 'env | grep -c ^PMIX_'
    [ "$output" = 0 ] || show_run "PMIx variables"
    run_pmi -n 1 --pmix=no "$ompi"
    expect_output "hello from 1 ranks"
}
