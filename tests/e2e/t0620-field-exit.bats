# SPDX-License-Identifier: BSD-3-Clause
# What users of other launchers ran into: exit statuses, who is blamed, tasks that end early, barriers
load helpers
load field

RUN_LIMIT=60

hosts_needed=2

hosts=(--bootstrap=rsh -H 'h[0-1]')

# ends STATUS LINE ARG...: an empty LINE is not a word
ends() {
    local want=$1 line=$2
    shift 2
    run_pmi "$@"
    expect_status "$want"
    [ -z "$line" ] || expect_line "$line"
    expect_lines_at_most $((${#line} > 0))
}

pid='(pid +([0-9]))'

@test "two statuses are not mixed: the first failure's, or the highest with --keep-going" {
    ends 2 "rank 5 on h1 $pid exited with status 2" "${hosts[@]}" --ppn=4 \
        "$client" init , on 5 , exit 2 , all , sleep 600000
    run_pmi "${hosts[@]}" sh -c 'exit $((PMI_RANK + 1))'
    [[ $status == [12] ]] || show_run "status $status"
    expect_line "rank [01] on h[01] $pid exited with status $status"
    run_pmi "${hosts[@]}" -k sh -c 'exit $((PMI_RANK + 1))'
    expect_status 2
    leftovers
}

@test "a rank that ends itself by SEGV, TERM, KILL, PIPE or a real-time signal" {
    local n text
    while read -r n text; do
        ends $((128 + n)) "rank 1 on h1 $pid was killed by signal $n ($text)" "${hosts[@]}" \
            sh -c '[ $PMI_RANK = 0 ] && exec sleep 600; ulimit -c 0; kill -'$n' $$; exec sleep 600'
    done <<'END'
11 Segmentation fault
15 Terminated
9 Killed
13 Broken pipe
40 Real-time signal 6
END
    leftovers
}

@test "255 of the program is the program's" {
    ends 255 "rank 1 on h1 $pid exited with status 255" "${hosts[@]}" \
        sh -c '[ $PMI_RANK = 0 ] || exit 255; exec sleep 600'
    ends 69 'nowhere: login: *' -H h0,nowhere true
    leftovers
}

@test "one of three fails: its status, also with logins that stay" {
    local attach
    for attach in yes no; do
        ends 7 "rank 1 on h1 $pid exited with status 7" "${hosts[@]}" --rsh-attach=$attach \
            sh -c 'exit $((PMI_RANK * 7))'
    done
    leftovers
}

@test "abort: code and text once, for a job with a host that has no task and ranks that are busy" {
    ends 8 'rank 1 on login aborted (8): no such luck' -H 'login:2,h0,h1' -n 2 "$client" --style=flux init , on 1 , \
        abort 8 'no such luck' , on 0 , sleep 600000
    ends 8 'rank 1 on h1 aborted (8): no such luck' "${hosts[@]}" "$client" --style=flux init , on 1 , \
        abort 8 'no such luck' , on 0 , barrier
    leftovers
}

@test "a host fails in front of the first barrier, the others are in it: no waiting" {
    ends 3 "rank 1 on h1 $pid exited with status 3" "${hosts[@]}" "$client" on 1 , exit 3 , on 0 , init , barrier
    ends 1 'rank 1 on h1 exited before barrier 1' "${hosts[@]}" "$client" on 1 , exit 0 , on 0 , init , barrier
    leftovers
}

@test "rank 0 is done first: the others still put, get and meet" {
    ends 0 '' "${hosts[@]}" --ppn=2 "$client" init , put k%r v%r , barrier , finalize , on 0 , exit 0 , all , exit 0
    # Its key is read when it is long gone.
    run_pmi "${hosts[@]}" --ppn=2 "$client" init , put k%r v%r , barrier , on 0 , finalize , exit 0 , all , \
        sleep 1000 , want k0 v0 , want k3 v3 , finalize
    expect_status 0
    expect_lines_at_most 0
    leftovers
}

@test "many good runs, one after the other: never a word" {
    local i
    for i in {1..20}; do
        run_pmi --nodes=2 --ppn=2 "$client" init , finalize
        [ "$status-$output$stderr" = 0- ] || show_run "run $i"
    done
    leftovers
}

@test "a task that handles TERM for a second may finish its work; a deaf one is killed" {
    local begin
    # shellcheck disable=SC2016 # for the task
    run_pmi "${hosts[@]}" --kill-grace=20s perl -e '$| = 1; $SIG{TERM} = sub { sleep 1; print "saved\n"; exit 0 };
        if ($ENV{PMI_RANK} == 1) { until (-e "/root/ready") { select undef, undef, undef, 0.02 } exit 4 }
        open my $f, ">", "/root/ready"; close $f; sleep 600 while 1'
    rm -f "$HOSTS_DIR/home/ready"
    expect_status 4
    expect_line "rank 1 on h1 $pid exited with status 4"
    [ "$output" = saved ] || show_run "it could not finish"
    leftovers
}
