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
        # That it is missing in WORLD as well is not said.
        [ "$(grep -c 'before barrier' <<<"$stderr")" = 1 ] || show_run "said more than once"
        leftovers
    done
}

# attr PREPARE LINE: two ranks on each of two nodes; on the second node PREPARE and then a wait for a node attribute.
# `begin` is PMI-2's init, `get KEY` waits, `put KEY` puts. @ is the host.
attr() {
    local host
    for host in login h1; do
        run_pmi $([ $host = login ] || echo --bootstrap=rsh -H 'h[0-1]') $([ $host = h1 ] || echo --nodes=2) --ppn=2 \
            "${attr_options[@]}" bash -c "$by_hand"'threaded=FALSE
            begin() { say "cmd=init pmi_version=2 pmi_subversion=0"
                frame "cmd=fullinit;pmijobid=x;pmirank=$PMI_RANK;threaded=$threaded;"; }
            get() { frame "cmd=info-getnodeattr;key=$1;wait=TRUE;"; }
            put() { frame "cmd=info-putnodeattr;key=$1;value=v;"; }
            end() { frame "cmd=finalize;"; }
            if [ $PMI_RANK -lt 2 ]; then begin; end; exit; fi
            '"$1"
        [ -z "$2" ] && expect_status 0 || expect_status 1
        [ -z "$2" ] || expect_line "${2//@/$host}"
        expect_lines_at_most $([ -z "$2" ] && echo 0 || echo 1)
        leftovers
    done
}

@test "PMI-2: a node attribute that nobody can put any more" {
    local attr_options=() left="rank 3 on @ waits for node attribute 'k', which nobody on its node can put any more"
    # The other has ended, before or after the question.
    attr 'begin; put other; if [ $PMI_RANK = 3 ]; then get other; get k; fi; end' "$left"
    attr 'begin; if [ $PMI_RANK = 3 ]; then get k; fi; sleep 0.4; end' "$left"
    # It has left PMI for good and lives on; or has never said a word.
    attr 'begin; if [ $PMI_RANK = 3 ]; then get k; fi; end; exec 3>&-; exec sleep 60' "$left"
    attr '[ $PMI_RANK = 2 ] && exit; begin; get k; end' "$left"
    # They wait for each other.
    attr 'begin; get k$PMI_RANK; put k$((5 - PMI_RANK)); end' \
        "rank 2 on @ waits for node attribute 'k2', which nobody on its node can put any more"
}

@test "PMI-2: a node attribute that can still come is waited for" {
    local attr_options=()
    # From a task that has finalized, and begins again.
    attr 'begin; if [ $PMI_RANK = 3 ]; then get k; else end; sleep 0.5; begin; put k; fi; end' ''
    # From another thread of the same task, which has said that it has some; the other task has ended.
    attr 'threaded=TRUE; begin; if [ $PMI_RANK = 3 ]; then
            ask="cmd=info-getnodeattr;thrid=1;key=k;wait=TRUE;"; printf "%6d%s" ${#ask} "$ask" >&3
            sleep 0.5; put k; fi; end' ''
}

@test "PMI-2: a thread that waits for a node attribute is not believed for ever in another one" {
    run_pmi --nodes=1 --ppn=2 bash -c "$by_hand"'
        say "cmd=init pmi_version=2 pmi_subversion=0"; frame "cmd=fullinit;pmirank=$PMI_RANK;threaded=TRUE;"
        [ $PMI_RANK = 0 ] || frame "cmd=info-getnodeattr;key=k;thrid=1;wait=TRUE;"
        frame "cmd=finalize;"'
    expect_status 1
    expect_line "rank 1 on login waits for node attribute 'k', which nobody on its node can put any more"
    expect_lines_at_most 1
}

@test "PMI-2, --keep-going: the get of a node attribute that cannot come fails" {
    run_pmi -k --nodes=1 --ppn=2 bash -c "$by_hand"'
        say "cmd=init pmi_version=2 pmi_subversion=0"; frame "cmd=fullinit;pmirank=$PMI_RANK;threaded=FALSE;"
        [ $PMI_RANK = 0 ] || { frame "cmd=info-getnodeattr;key=k;wait=TRUE;"; echo "$line"; }
        frame "cmd=finalize;"'
    expect_status 1
    expect_line "rank 1 on login waits for node attribute 'k', which nobody on its node can put any more"
    expect_lines_at_most 1
    [ "$output" = "cmd=info-getnodeattr-response;found=FALSE;rc=-1;errmsg=nobody_left;" ] || show_run "not answered"
}
