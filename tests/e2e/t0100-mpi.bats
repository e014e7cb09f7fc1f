# SPDX-License-Identifier: BSD-3-Clause
# An MPI program on eight ssh hosts, two ranks on each: right results and MPI's nodes the launcher's, by every way in.
load helpers

setup_file() { need_hosts 8; }

setup() {
    [ -x "$mpi_check" ] || skip "built without MPI"
    RUN_LIMIT=90
    clean_start
}

# What mpi_check says when all is right, with how many ranks on each of the nodes.
all_right() {
    expect_status 0
    [ "$output" = "mpi_check: $1 ranks, allreduce, ring and split right; ranks a node: 2 ($1 ranks)" ] ||
        show_run "not what mpi_check says when all is right"
    [ -z "$stderr" ] || show_run "words on standard error"
    leftovers 5
}

logins() { named login ssh | wc -l; }

@test "eight hosts with pdsh" {
    run_pmi --bootstrap=rsh --hostlist='h[0-7]' --ppn=2 "$mpi_check"
    all_right 16
}

@test "a tree of two children a node, so that providers connect to each other" {
    run_pmi -H 'h[0-7]' --ppn=2 --fanout=2 "$mpi_check"
    all_right 16
}

@test "with ssh alone" {
    run_env PATH="$(path_without_pdsh)" -- -H 'h[0-7]' --ppn=2 "$mpi_check"
    all_right 16
}

@test "logins that stay for the run, and logins that do not" {
    run_pmi -H 'h[0-7]' --ppn=2 --rsh-attach=yes --rsh-fanout=3 "$mpi_check"
    all_right 16
    run_pmi -H 'h[0-7]' --ppn=2 --rsh-attach=no --rsh-fanout=3 "$mpi_check"
    all_right 16
}

@test "logins that stay with ssh alone" {
    run_env PATH="$(path_without_pdsh)" -- -H 'h[0-7]' --ppn=2 --rsh-attach=yes "$mpi_check"
    all_right 16
}

@test "a site's script of one pdsh line" {
    local script
    # shellcheck disable=SC2016 # for the script
    script=$(site_script one-line <<<'exec pdsh -R ssh -f "$PMI_LOGIN_FANOUT" -w "$PMI_HOSTLIST" "$PMI_PROVIDER" --pmi-rank=%n')
    run_pmi -H 'h[0-7]' --ppn=2 --rsh-command="$script" "$mpi_check"
    all_right 16
    run_pmi -H 'h[0-7]' --ppn=2 --rsh-command="$script" --rsh-attach=no "$mpi_check"
    all_right 16
}

@test "the launcher is one of the hosts, wherever it stands" {
    run_pmi -H 'h[0-2],login,h[3-6]' --ppn=2 --fanout=3 "$mpi_check"
    all_right 16
    run_pmi -H 'login,h[0-2]' --ppn=2 --fanout=1 "$mpi_check" -v
    expect_status 0
    [[ $output == *"rank 0 of 8 on login, node 0"* && $output == *"rank 7 of 8 on h2, node 3"* ]] ||
        show_run "ranks are not where they belong"
    leftovers 5
}

@test "a host script with attached logins gets the launcher's own host as well" {
    local script
    # shellcheck disable=SC2016
    script=$(site_script own <<<'echo "list $PMI_HOSTLIST size $PMI_SIZE" >&2
exec pdsh -R ssh -f "$PMI_LOGIN_FANOUT" -w "$PMI_HOSTLIST" "$PMI_PROVIDER" --pmi-rank=%n')
    run_pmi -H 'h0,login,h1' --ppn=2 --rsh-command="$script" --rsh-attach=yes "$mpi_check"
    expect_status 0
    [[ $output == "mpi_check: 6 ranks, allreduce, ring and split right; ranks a node: 2 (6 ranks)" ]] || show_run "wrong"
    expect_line 'list h0,login,h1 size 4'
    leftovers 5
}
