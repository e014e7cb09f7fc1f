# SPDX-License-Identifier: BSD-3-Clause
# As many ssh hosts as go beyond what other launchers stop at (64, 128), at the limits of pdsh's fan-out and of our tree
load helpers

setup_file() { need_hosts 130; }

@test "63 to 66 hosts, 129 and 130" {
    local n
    clean_start
    RUN_LIMIT=120
    for n in 63 64 65 66 129 130; do
        run_pmi -H "h[0-$((n - 1))]" "$client" init , exchange 2 10 0 fresh , finalize
        expect_status 0
        [ "$output" = "exchange: $n ranks, 2 rounds, all right" ] || show_run "$n hosts"
        [ -z "$stderr" ] || show_run "$n hosts: not silent"
    done
    leftovers 10
}

@test "65 hosts in a chain, in a deep tree, and all below the launcher" {
    local k
    clean_start
    RUN_LIMIT=120
    for k in 1 2 65; do
        run_pmi -H "h[0-64]" --rsh-fanout=65 --fanout=$k "$client" init , exchange 1 10 0 fresh , finalize
        expect_status 0
        [ "$output" = "exchange: 65 ranks, 1 rounds, all right" ] || show_run "--fanout=$k"
    done
    leftovers 10
}
