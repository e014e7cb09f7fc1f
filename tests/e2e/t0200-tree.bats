# SPDX-License-Identifier: BSD-3-Clause
# The tree at any width and depth: every rank reads every rank's key after a barrier, round after round without a pause,
# and the launcher has no more than its fan-out of messages to receive and to send for a round.
load helpers

setup_file() { need_hosts 8; }

# exchange K RANKS ROUNDS fresh|again OPTION...: a run in which all must be right, by the ranks and by the counts.
exchange() {
    local k=$1 ranks=$2 rounds=$3 how=$4
    shift 4
    run_pmi -vv --fanout="$k" "$@" "$client" init , exchange "$rounds" 10 2 "$how" , finalize
    expect_status 0
    [ "$output" = "exchange: $ranks ranks, $rounds rounds, all right" ] || show_run "--fanout=$k"
    expect_counts "$k" "$rounds"
}

# expect_counts K ROUNDS: more than so many rounds, and in each at most K messages from below and K down. A launcher
# that runs no tasks and has one child is in no barrier at all: the child holds all ranks, and releases them.
expect_counts() {
    local rounds up down
    read -r rounds up down < <(
        sed -n 's/^pmi-start: barriers: \([0-9]*\) .* received \([0-9]*\) .* sent \([0-9]*\)$/\1 \2 \3/p' <<<"$stderr"
        echo 0 0 0
    )
    if [ "$1" = 1 ] && ((rounds == 0)); then return; fi
    ((rounds > $2)) || show_run "$rounds rounds, not more than $2"
    ((up <= $1 * rounds && down <= $1 * rounds)) || show_run "in $rounds rounds $up messages up and $down down"
    ((up >= rounds && down >= rounds)) || show_run "in $rounds rounds only $up messages up and $down down"
}

@test "8 ssh hosts, --fanout 1, 2, 3, 7 and 32, 100 rounds" {
    local k how=fresh
    clean_start
    for k in 1 2 3 7 32; do
        exchange "$k" 16 100 $how --hostlist='h[0-7]' --ppn=2
        if [ $how = fresh ]; then how=again; else how=fresh; fi
    done
    leftovers
}

@test "the launcher among the hosts, wherever it stands in the list" {
    exchange 2 10 10 again --hostlist=login,'h[0-3]' --ppn=2
    exchange 2 10 10 fresh --hostlist='h[0-1]',login,'h[2-3]' --ppn=2
}

@test "63, 64 and 65 nodes on this machine, 100 rounds" {
    RUN_LIMIT=120
    exchange 1 63 2 fresh --nodes=63
    exchange 2 63 100 fresh --nodes=63
    exchange 32 64 100 fresh --nodes=64
    exchange 7 65 100 again --nodes=65
}

@test "130 nodes on this machine, 10 rounds" {
    RUN_LIMIT=120
    exchange 3 130 10 again --nodes=130
    exchange 32 130 10 fresh --nodes=130
    expect_line 'links when all were ready: 32 children, received * messages and * bytes, sent * messages and * bytes'
    expect_line 'links when all had ended: 32 children, *'
    expect_line 'links in all: 32 children, *'
}

@test "512 nodes on this machine, 3 rounds" {
    RUN_LIMIT=240
    exchange 32 512 3 fresh --nodes=512
}

@test "nodes without a task of their own and nodes with many" {
    run_pmi -vv --fanout=2 --nodes=9 -n 3 "$client" init , exchange 5 10 2 fresh , finalize
    expect_status 0
    run_pmi -vv --fanout=2 --nodes=3 --ppn=40 "$client" init , exchange 3 10 2 fresh , finalize
    expect_status 0
    [[ $output == "exchange: 120 ranks, 3 rounds, all right" ]]
}

@test "a round with more data than links hold at a time, and values that change from round to round" {
    local k
    for k in 1 2 7; do
        run_pmi --fanout="$k" --nodes=8 "$build/pmi-bench" -c 500 -s 1000 put-get
        expect_status 0
        [[ $output == *"0 faults"* ]] || show_run "--fanout=$k"
    done
    exchange 2 32 4 again --nodes=8 --ppn=4
}

@test "large values: a round's data in several frames counts once" {
    run_pmi -vv --fanout=2 --nodes=7 --ppn=32 "$client" --style=mpich init , exchange 2 1000 2 fresh , finalize
    expect_status 0
    expect_counts 2 2
}
