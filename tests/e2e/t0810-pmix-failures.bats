#!/usr/bin/env bats
# SPDX-License-Identifier: BSD-3-Clause
# Programs of Open MPI that fail, and PMIx servers that cannot be: the run ends in time, says why, and leaves nothing.
load helpers

setup_file() { need_hosts 4; }

setup() {
    need_openmpi
    RUN_LIMIT=90
    clean_start
}

teardown() {
    on h2 sh -c 'while umount "$1" 2>/dev/null; do :; done' sh "$(library)" || true
    end_failed
}

# The file that is loaded.
library() { readlink -f "$(ldconfig -p | sed -n 's/.*libpmix\.so\.2 .*=> //p' | head -n 1)"; }

@test "MPI_Abort: its status, its words, and who it was" {
    run_pmi -H 'h[0-3]' "$ompi" abort
    expect_status 42
    expect_line 'rank 3 on h3 aborted (42)'
    [[ $stderr == *"MPI_ABORT was invoked on rank 3"* ]] || show_run "not a word of Open MPI's"
    leftovers 5
}

@test "a signal, an exit status, an end without finalize" {
    run_pmi -H 'h[0-3]' "$ompi" segv
    expect_status 139
    expect_line 'rank 3 on h3 (pid *) was killed by signal 11 (Segmentation fault)'
    run_pmi -H 'h[0-3]' "$ompi" status 7
    expect_status 7
    expect_line 'rank 3 on h3 (pid *) exited with status 7'
    run_pmi -H 'h[0-3]' "$ompi" exit
    expect_status 1
    expect_line 'rank 3 on h3 exited before PMIx finalize'
    leftovers 5
}

@test "a rank that ends without having begun, while the others wait for it" {
    run_pmi -H 'h[0-3]' "$ompi" early
    expect_status 1
    expect_line 'rank 1 on h1 exited without PMIx init, which others have begun'
    run_pmi -n 3 "$ompi" early
    expect_status 1
    expect_line 'rank 1 on login exited without PMIx init, which others have begun'
    leftovers 5
}

@test "a rank that ends without having begun ends the run with --keep-going, too: nothing could fail for the others" {
    run_pmi -k -H 'h[0-1]' --ppn=2 --timeout=20s "$ompi" early
    expect_status 1
    expect_line 'rank 1 on h0 exited without PMIx init, which others have begun: all end, although --keep-going is given, *'
    run_pmi -k --pmix=yes --timeout=20s -n 2 "$ompi" : -n 1 sh -c 'exit 7'
    expect_status 7
    expect_line 'rank 2 on login (pid *) exited with status 7'
    expect_line 'rank 2 on login exited without PMIx init, which others have begun: *'
    leftovers 5
}

@test "programs of Open MPI and of MPICH in one job: the first ranks that wait for each other are named" {
    local mpich=$build/tests/progs/mpi_check
    [ -x "$mpich" ] || skip "built without MPICH"
    run_pmi --pmix=yes --timeout=20s -n 2 "$ompi" : -n 2 "$mpich"
    expect_status 1
    expect_line 'rank [01] on login uses PMIx, but rank [23] on login waits for it in barrier 1 of PMI: they cannot meet, *'
    run_pmi -H 'h[0-3]' --timeout=20s -n 2 "$mpich" : -n 2 "$ompi"
    expect_status 1
    expect_line 'rank [23] on h[23] uses PMIx, but rank [01] on h[01] waits for it in barrier 1 of PMI: they cannot meet, *'
    leftovers 5
}

all_in() { [ "$(grep -c 'is in$' "$BATS_TEST_TMPDIR/run.out")" = "$1" ]; }

@test "a spawn of a program that there is not ends the run, and names program, host and who has asked" {
    run_pmi -H 'h[0-1]' "$ompi" spawn 2 /no/such/program
    expect_status 1
    expect_line 'rank [01] of job 1 on h[01]: cannot be spawned: /no/such/program: No such file or directory'
    expect_line 'rank 0 on h0 (pid *) asked for a job to be spawned, which could not be'
    leftovers 5
}

@test "a rank that is killed from outside" {
    start_pmi run -H 'h[0-3]' "$ompi" sleep
    wait_until 60 all_in 4
    signal_on h2 KILL "$(tasks h2)"
    wait_pmi run
    expect_status 137
    expect_line 'rank 2 on h2 (pid *) was killed by signal 9 (Killed)'
    leftovers 5
}

@test "a provider that is killed: its folders go too" {
    start_pmi run -H 'h[0-3]' "$ompi" sleep
    wait_until 60 all_in 4
    signal_on h1 KILL "$(workers h1)"
    wait_pmi run
    expect_status 69
    leftovers 10
}

@test "a signal to the launcher" {
    start_pmi run -H 'h[0-1]' --ppn=2 "$ompi" sleep
    wait_until 60 all_in 4
    signal_on login TERM "$(launcher)"
    wait_pmi run
    expect_status 143
    leftovers 5
}

@test "a client of another user is turned away, and does not hold up the end" {
    local begin=$SECONDS
    run_pmi -H 'h[0-1]' --pmix=yes sh -c 'setpriv --reuid=65534 --clear-groups "$0" early >/dev/null 2>&1; exit 5' "$ompi"
    expect_status 5
    ((SECONDS - begin < 60)) || show_run "it took $((SECONDS - begin)) s"
    leftovers 5
}

@test "different libraries do not mix, and both are named with their hosts" {
    local lib other=$HOSTS_DIR/other-libpmix
    lib=$(library)
    sed 's/OpenPMIx 4\.2\.2/OpenPMIx 4.2.9/g; s/OpenPMIx 5\.0\./OpenPMIx 5.9./g' "$lib" >"$other"
    cmp -s "$lib" "$other" && skip "a library whose version this test does not know"
    on h2 mount --bind "$other" "$lib"
    run_pmi -H 'h[0-3]' "$ompi"
    # A provider that has just been told to end may still have it.
    wait_until 5 on h2 umount "$lib" 2>/dev/null
    rm -f "$other"
    expect_status 1
    expect_line '*h2 has *4.2.9*: a job needs one version of PMIx on all of its hosts'
    leftovers 5
}

@test "without the library the host is named, and what to install" {
    local lib other=$HOSTS_DIR/no-libpmix
    lib=$(library)
    echo "no library" >"$other"
    on h2 mount --bind "$other" "$lib"
    run_pmi -H 'h[0-3]' --pmix=yes true
    on h2 umount "$lib"
    rm -f "$other"
    expect_status 1
    expect_line 'rank 2 on h2: PMIx: *libpmix*install*'
    leftovers 5
}

@test "a TMPDIR in which nothing can be made is said, and another folder taken" {
    run_env TMPDIR=/proc -- -n 2 "$ompi"
    expect_status 0
    [ "$output" = "hello from 2 ranks" ] || show_run "wrong"
    expect_line 'cannot make a folder in /proc (*): /tmp is used instead'
    expect_lines_at_most 1
    leftovers 5
}

@test "too few open files for the connections of all ranks: nothing starts, and that is said" {
    run --separate-stderr on login sh -c 'ulimit -n 100; exec "$@"' sh "$pmi_start" -n 24 --timeout=20s "$ompi"
    expect_status 1
    expect_line 'rank 0 on login: 24 tasks need 1* open files here, but the limit (ulimit -n) is 100: *'
    leftovers 5
}

@test "settings of the library: those that would hang it are not used, those it cannot have are named" {
    run_env PMIX_MCA_gds=ds21 -- -n 2 "$ompi"
    expect_status 0
    [ "$output" = "hello from 2 ranks" ] || show_run "wrong"
    if [ -n "$stderr" ]; then # a library before 5
        expect_line 'PMIX_MCA_gds=ds21 is not used: *hash instead'
        expect_lines_at_most 1
    fi
    run_env PMIX_MCA_psec=munge -- -n 2 "$ompi"
    if [ "$status" != 0 ]; then # a library without it
        expect_status 1
        expect_line 'rank 0 on login: PMIx: the server does not begin: *, with PMIX_MCA_psec=munge in the environment there: *'
    fi
    leftovers 5
}

@test "ranks that do not use it are noticed" {
    run_pmi -n 2 --pmix=yes true
    expect_status 0
    expect_line 'no rank has used PMIx: *'
    leftovers
}
