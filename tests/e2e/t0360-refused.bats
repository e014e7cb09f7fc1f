# SPDX-License-Identifier: BSD-3-Clause
# A node that has to refuse what another sends: nobody waits for it, the run ends and says where and why. The program is
# one whose caps are soon reached (8 KiB of keys, 4 different barriers).
load helpers

setup_file() {
    need_hosts 3
    # With the script beside it, where it is looked for.
    mkdir -p "$HOSTS_DIR/tight"
    cp "$build/tests/progs/pmi_start_tight" "$HOSTS_DIR/tight/pmi-start"
    ln -sfn "$build/bootstrap" "$HOSTS_DIR/tight/bootstrap"
}

setup() {
    clean_start
    pmi_start=$HOSTS_DIR/tight/pmi-start
    local big i
    printf -v big '%01000d' 0
    # What stays on its own node leaves just too little room for what comes.
    fill=()
    for i in 1 2 3 4 5 6 7; do fill+=(put "local::$i" "$big" ,); done
    tell=(put key "$big" ,)
}

# keys FULL PUTTER ARG...: the node of rank FULL has no room for what rank PUTTER puts.
keys() {
    local full=$1 putter=$2
    shift 2
    run_pmi "$@" "$client" init , on "$full" , "${fill[@]}" all , barrier , on "$putter" , "${tell[@]}" all , barrier , \
        finalize
}

# refused LINE: that is the only one, and the run's end.
refused() {
    expect_status 1
    expect_line "$1"
    expect_lines_at_most 1
    leftovers
}

@test "no room for keys on one of several hosts: at the root, within, at a leaf" {
    # One login at a time and one child each: login - h0 - h1 - h2.
    local chain=(--bootstrap=rsh --rsh-fanout=1 --fanout=1 -H 'login,h[0-2]') why='the job?s keys need more than 8192 bytes'
    keys 0 3 "${chain[@]}"
    refused "login: refused barrier 2 from h0: $why"
    keys 1 3 "${chain[@]}"
    refused "h0: refused barrier 2 from h1: $why"
    keys 1 0 "${chain[@]}"
    refused "h0: refused the end of barrier 2 from login: $why"
    keys 3 0 "${chain[@]}"
    refused "h2: refused the end of barrier 2 from h1: $why"
}

@test "no room for keys on one of several played nodes" {
    local full
    for full in 0 1 2 3; do
        keys $full $((full == 0 ? 3 : 0)) --nodes=4 --ppn=1 --fanout=1
        refused 'login: refused *barrier 2 from login: the job?s keys need more than 8192 bytes'
    done
    # What is in many pieces, of many.
    keys 2 0,1,3,4,5,6 --nodes=7 --ppn=1 --fanout=2
    refused 'login: refused *barrier 2 from login: the job?s keys need more than 8192 bytes'
}

# Four that the node in the middle knows of, and then one of which it is no member.
barriers() {
    run_pmi "$@" --bootstrap=rsh --rsh-fanout=1 --fanout=1 -H 'login,h[0-1]' "$client" init , \
        on 0,1 , raw 'cmd=barrier_in group=0,1:1' , on 1,2 , raw 'cmd=barrier_in group=1,2:1' , \
        raw 'cmd=barrier_in group=1,2:2' , raw 'cmd=barrier_in group=1,2:3' , \
        on 0,2 , raw 'cmd=barrier_in group=0,2:9' , all , raw cmd=barrier_in , finalize
}

@test "too many barriers for the node in the middle, which is no member of this one" {
    barriers
    refused 'h0: refused barrier 1 of ranks 0,2 with tag 9 from h1: more than 4 different barriers'
}

@test "--keep-going: the barriers fail and the run goes on" {
    barriers -k
    refused 'h0: refused barrier 1 of ranks 0,2 with tag 9 from h1: more than 4 different barriers'
    [ "$(grep -c '^cmd=barrier_out rc=0' <<<"$output")" = 8 ] || show_run "others failed"
    [ "$(grep -c '^cmd=barrier_out rc=-1' <<<"$output")" = 5 ] || show_run "not failed"
    # Keys can be missing from here on, so that every later barrier fails as well.
    local full
    for full in 0 1 2; do
        run_pmi -k --nodes=3 --ppn=1 --fanout=1 "$client" init , on $full , "${fill[@]}" all , barrier , \
            on $((full == 0 ? 2 : 0)) , "${tell[@]}" all , raw cmd=barrier_in , raw cmd=barrier_in , finalize
        refused 'login: refused *barrier 2 from login: the job?s keys need more than 8192 bytes'
        [ "$(grep -c '^cmd=barrier_out rc=-1' <<<"$output")" -ge 4 ] || show_run "not failed"
    done
}

@test "a task that puts too much itself is told so, and nobody else hears of it" {
    run_pmi --nodes=2 --ppn=1 "$client" init , on 1 , "${fill[@]}" raw "cmd=put kvsname=x key=local::8 value=$(printf %01000d 0)" , \
        all , barrier , finalize
    expect_status 0
    [[ $output == 'cmd=put_result rc='[!0]* ]] || show_run "not told"
    expect_lines_at_most 0
}
