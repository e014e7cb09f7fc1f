# SPDX-License-Identifier: BSD-3-Clause
# PMI-1.2: barriers of groups of ranks, several under way at once. See tests/progs/pmi_groups.c for the model.
load helpers

setup_file() { need_hosts 1; }

setup() {
    clean_start
    RUN_LIMIT=240
}

teardown() {
    end_failed
    on login rm -f /tmp/model
}

groups=$build/tests/progs/pmi_groups

@test "overlapping groups, tags and threads: nobody is let out before all are in" {
    local k
    for k in 32 2 1; do
        on login rm -f /tmp/model
        run_pmi --nodes=4 --ppn=4 --fanout=$k --pmi-subversion=2 "$groups" /tmp/model 100 8
        expect_status 0
        expect_lines_at_most 0
    done
    on login rm -f /tmp/model
    leftovers
}

@test "groups of ranks on one node send nothing off it" {
    run_pmi -vv --nodes=4 --ppn=4 --pmi-subversion=2 "$groups" /tmp/model 200 8 node
    expect_status 0
    # One barrier of all ranks at the end, and that is all.
    expect_line 'barriers: 1 rounds, the launcher received 3 messages and sent 3'
}

@test "a group that is none is refused, and the session goes on" {
    local group
    for group in 0,9 1 0,x 'NODES' '0-' '-1,0'; do
        run_pmi --nodes=2 -n 2 --pmi-subversion=2 "$client" --style=mpich init , on 0 \
            , raw "cmd=barrier_in group=$group:7" , raw cmd=get_appnum , all , finalize
        expect_status 0
        [[ $output == 'cmd=barrier_out rc=-1'*$'\ncmd=appnum rc=0 appnum=0' ]] || show_run "group=$group"
    done
}

@test "the version that clients are told" {
    run_pmi -n 1 "$client" raw 'cmd=init pmi_version=1 pmi_subversion=1' , finalize
    [ "$output" = 'cmd=response_to_init rc=0 pmi_version=1 pmi_subversion=1' ] || show_run 1.1
    run_pmi -n 1 --pmi-subversion=2 "$client" raw 'cmd=init pmi_version=1 pmi_subversion=1' , finalize
    [ "$output" = 'cmd=response_to_init rc=0 pmi_version=1 pmi_subversion=2' ] || show_run 1.2
}
