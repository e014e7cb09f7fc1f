# SPDX-License-Identifier: BSD-3-Clause
# Barriers of every kind that can never be complete, because a member has ended or has left PMI for good: nobody waits
# for ever, and the line says which barrier it is and who will not come.
load helpers

setup_file() { need_hosts 2; }

setup() {
    clean_start
    RUN_LIMIT=60
    # PMI by hand: say TEXT, frame TEXT and hear its answer; session N over PMI_PORT.
    # shellcheck disable=SC2016 # for the task
    by_hand='say() { printf "%s\n" "$1" >&$fd; hear; }
        frame() { printf "%6d%s" ${#1} "$1" >&$fd; read -r -t 50 -N 6 -u $fd len && read -r -t 50 -N $((len)) -u $fd line; }
        hear() { read -r -t 50 -u $fd line; }
        session() { exec {fd}<>/dev/tcp/${PMI_PORT/:/\/}; say "cmd=initack pmiid=$((PMI_RANK + PMI_SIZE * $1))"
            hear; hear; hear; say "cmd=init pmi_version=1 pmi_subversion=1"; }
        fd=3; '
}

# stuck LINE ARG...: three ranks on login, then on h0 and h1, of which rank 2 is not to be waited for. @ is its host.
stuck() {
    local line=$1 host
    shift
    for host in login h1; do
        run_pmi $([ $host = login ] || echo --bootstrap=rsh -H 'h[0-1]') -n 3 "$@"
        expect_status 1
        expect_line "${line//@/$host}"
        expect_lines_at_most 1
        leftovers
    done
}

@test "a group of ranks, whoever comes first" {
    stuck 'rank 2 on @ exited before barrier 1 of ranks 0,2 with tag 7' \
        "$client" init , on 2 , finalize , exit 0 , on 0 , raw 'cmd=barrier_in group=2,0:7' , on 1 , sleep 60000
    stuck 'rank 2 on @ exited before barrier 2 of ranks 0,2' \
        "$client" init , not 1 , raw 'cmd=barrier_in group=0,2' , on 2 , sleep 400 , finalize , exit 0 , \
        on 0 , raw 'cmd=barrier_in group=0,2' , on 1 , sleep 60000
    # Another member is late as well.
    stuck 'rank 2 on @ exited before barrier 1 of ranks 0-2' \
        "$client" init , on 2 , finalize , exit 0 , on 0 , raw 'cmd=barrier_in group=0,1,2' , on 1 , sleep 60000
}

@test "WORLD with a tag, and NODE" {
    stuck 'rank 2 on @ exited before barrier 1 with tag 3' \
        "$client" init , not 2 , raw 'cmd=barrier_in group=WORLD:3' , all , finalize
    run_pmi --nodes=2 --ppn=2 "$client" init , not 3 , raw 'cmd=barrier_in group=NODE' , all , finalize
    expect_status 1
    expect_line 'rank 3 on * exited before barrier 1 of its node'
    expect_lines_at_most 1
}

@test "PMI-2: a fence" {
    # shellcheck disable=SC2016
    stuck 'rank 2 on @ exited before barrier 2' bash -c "$by_hand"'
        say "cmd=init pmi_version=2 pmi_subversion=0"; frame "cmd=fullinit;pmijobid=x;pmirank=$PMI_RANK;threaded=FALSE;"
        frame "cmd=kvs-fence;"
        [ $PMI_RANK = 2 ] || frame "cmd=kvs-fence;"
        frame "cmd=finalize;"'
}

@test "a further session of each rank, over PMI_PORT" {
    # shellcheck disable=SC2016
    stuck 'rank 2 on @ exited before barrier 2 in session 3' --pmi-connect=port bash -c "$by_hand"'
        session 3; say cmd=barrier_in; [ $PMI_RANK = 2 ] || say cmd=barrier_in; say cmd=finalize'
    # A rank that has never had such a session.
    # shellcheck disable=SC2016
    stuck 'rank 2 on @ exited before barrier 1 of ranks 1-2 with tag 5 in session 1' --pmi-connect=port bash -c "$by_hand"'
        [ $PMI_RANK = 2 ] && exit; session 1; [ $PMI_RANK = 0 ] || say "cmd=barrier_in group=1,2:5"; say cmd=finalize
        exec sleep 60'
}

@test "a rank that closes its connection after finalize, or ahead of init, and lives on" {
    stuck 'rank 2 on @ closed PMI before barrier 1' \
        "$client" on 2 , init , finalize , close , sleep 60000 , not 2 , init , barrier
    stuck 'rank 2 on @ closed PMI before barrier 1 of ranks 1-2' \
        "$client" on 2 , close , sleep 60000 , not 2 , init , on 1 , raw 'cmd=barrier_in group=1,2' , on 0 , sleep 60000
    # With a port it may come again.
    # shellcheck disable=SC2016
    run_pmi -n 3 --pmi-connect=port bash -c "$by_hand"'
        session 0; if [ $PMI_RANK = 2 ]; then say cmd=finalize; exec {fd}>&-; sleep 1; session 0; fi
        say cmd=barrier_in; echo "$line"; say cmd=finalize'
    expect_status 0
    [ "$output" = "$(printf 'cmd=barrier_out rc=0\n%.0s' 1 2 3)" ] || show_run "it was not waited for"
}

@test "a deep tree: any pair of ranks" {
    local pair
    for pair in 0,7 7,0 3,4 6,5 1,3 3,1; do
        run_pmi --nodes=8 --ppn=1 --fanout=2 "$client" init , on "${pair#*,}" , finalize , exit 0 , \
            on "${pair%,*}" , raw "cmd=barrier_in group=$pair" , all , sleep 60000
        expect_status 1
        expect_line "rank ${pair#*,} on * exited before barrier 1 of ranks *"
        expect_lines_at_most 1
    done
    leftovers
}

@test "slow barriers of others go on while a rank is gone" {
    local steps=() i
    for i in 1 2 3; do steps+=(on 1 , sleep 250 , not 2 , raw 'cmd=barrier_in group=1,0' ,); done
    run_pmi --nodes=3 -n 3 "$client" init , on 2 , finalize , exit 0 , "${steps[@]}" all , finalize
    expect_status 0
    expect_lines_at_most 0
    [ "$(grep -c '^cmd=barrier_out rc=0' <<<"$output")" = 6 ] || show_run "a barrier failed"
    leftovers
}

@test "--keep-going: the barrier fails, others do not" {
    local i
    for i in 1 3; do
        run_pmi -k --nodes=$i -n 3 "$client" init , on 2 , finalize , exit 0 , \
            on 0 , raw 'cmd=barrier_in group=2,0' , raw 'cmd=barrier_in group=0,2' , all , \
            raw 'cmd=barrier_in group=0,1' , raw 'cmd=barrier_in group=0,1' , barrier
        [ "$(grep -c '^cmd=barrier_out rc=-1' <<<"$output")" = 2 ] || show_run "not failed"
        [ "$(grep -c '^cmd=barrier_out rc=0' <<<"$output")" = 4 ] || show_run "others failed"
        expect_line 'rank 2 on * exited before barrier 1 of ranks 0,2'
        expect_line 'rank 2 on * exited before barrier 1'
        [ "$(grep -c 'before barrier' <<<"$stderr")" = 2 ] || show_run "said more than once"
        leftovers
    done
}
