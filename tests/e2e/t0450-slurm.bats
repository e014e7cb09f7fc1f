# SPDX-License-Identifier: BSD-3-Clause
# Within an allocation of a real Slurm of four nodes.
load helpers

setup_file() {
    need_hosts 4
    "$hosts_scripts/slurm.sh" up 4
}

setup() { clean_start; }

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
