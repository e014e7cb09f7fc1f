# SPDX-License-Identifier: BSD-3-Clause
# The PMI service as clients on several hosts see it. The wire format itself is proven by the unit tests of the session.
load helpers

setup_file() { need_hosts 2; }

# pmi STEP...: the steps on two ranks of each of two hosts, read as Flux does, which takes blanks in values.
pmi() { run_pmi -H login,h0 --ppn=2 -l "$client" --style=flux init , "$@"; }

# expect_output TEXT: standard output, its lines sorted.
expect_output() { [ "$(sort <<<"$output")" = "$1" ] || show_run "not '$1'"; }

# on_all TEXT: what every rank has to print.
on_all() { expect_output "$(printf '%d: %s\n' 0 "$1" 1 "$1" 2 "$1" 3 "$1")"; }

# Has the task PID written nothing more since the last look?
writes_no_more() {
    local before=$written
    written=$(on h0 grep wchar "/proc/$1/io")
    [ "$written" = "$before" ]
}

@test "a task that never reads its replies is not read either, and its server stays small" {
    clean_start
    # shellcheck disable=SC2016 # for the task
    start_pmi run -H h0 bash -c 'echo ready; exec yes cmd=get_maxes >&$PMI_FD'
    wait_until 30 says run.out ready
    local yes server written=
    wait_until 10 on h0 pgrep -x yes
    yes=$(on h0 pgrep -x yes)
    wait_until 60 writes_no_more "$yes"
    for server in $(on h0 pgrep -x pmi-start); do
        (($(on h0 awk '/^VmRSS/ {print $2}' "/proc/$server/status") < 60000)) || show_run "$server is large"
    done
    signal_on login INT "$(launcher)"
    wait_pmi run
    expect_status 130
    leftovers
}

@test "sizes and limits" {
    pmi info , finalize
    expect_status 0
    expect_output "$(for r in 0 1 2 3; do
        echo "$r: rank=$r size=4 universe=4 appnum=0 kvsname_max=64 keylen_max=64 vallen_max=1024"
    done)"
}

@test "the name of the key-value space is the same on every host, and another for another job" {
    local first
    pmi raw cmd=get_my_kvsname , finalize
    expect_status 0
    first=${lines[0]#*: }
    on_all "$first"
    [[ $first == "cmd=my_kvsname rc=0 kvsname="?* ]] && ((${#first} < 28 + 64))
    pmi raw cmd=get_my_kvsname , finalize
    [ "$first" != "${lines[0]#*: }" ] || show_run "the same name again"
}

@test "an unknown key is rc=4 at once, an unknown command rc=-1, and the session goes on" {
    pmi raw 'cmd=get key=nothing' , raw 'cmd=dance shoes=red' , raw '  cmd=get_appnum   shoes=red ' , barrier , finalize
    expect_status 0
    expect_output "$(for r in 0 1 2 3; do
        printf '%d: %s\n' $r 'cmd=appnum rc=0 appnum=0' $r 'cmd=dance_result rc=-1 msg=unknown_command' \
            $r 'cmd=get_result rc=4 msg=no_such_key'
    done)"
}

@test "keys and values up to the limits, and over them" {
    local key value
    printf -v key '%063d' 7
    printf -v value '%01023d' 7
    pmi on 0 , raw "cmd=put kvsname=x key=$key value=$value" , raw "cmd=put kvsname=x key=0$key value=v" \
        , raw "cmd=put kvsname=x key=k value=0$value" , raw "cmd=put kvsname=x$key key=k value=v" , all \
        , barrier , want "$key" "$value" , missing k , finalize
    expect_status 0
    [ "$output" = '0: cmd=put_result rc=0
0: cmd=put_result rc=5 msg=too_long
0: cmd=put_result rc=7 msg=too_long
0: cmd=put_result rc=8 msg=too_long' ] || show_run limits
}

@test "values keep their blanks on the way to another host" {
    pmi on 3 , raw 'cmd=put kvsname=x  key=k shoes=red value= a  b=c ' , all , barrier , want k ' a  b=c ' , finalize
    expect_status 0
}

@test "a key put again: the later round, in a round the higher rank, of a rank the last" {
    pmi put k old%r , put k first%r , want k first%r , barrier , want k first3 \
        , on 0 , put k second , want k second , all , barrier , want k second \
        , on 1 , put k third , all , on 2 , put k fourth , all , barrier , want k fourth , barrier , want k fourth \
        , finalize
    expect_status 0
}

@test "local:: keys stay on their node" {
    pmi on 0,2 , put local::k of%r , all , barrier , on 0,1 , want local::k of0 , on 2,3 , want local::k of2 \
        , on 3 , put local::late x , all , barrier , on 2 , want local::late x , on 0,1 , missing local::late , all \
        , finalize
    expect_status 0
}

@test "names are published on one host and looked up on another" {
    pmi on 2 , raw 'cmd=publish_name service=s port=tag#0$port#1$' , raw 'cmd=publish_name service=s port=p' \
        , all , barrier , on 0 , raw 'cmd=lookup_name service=s' , raw 'cmd=lookup_name service=t' , all , barrier \
        , on 1 , raw 'cmd=unpublish_name service=s' , raw 'cmd=unpublish_name service=s' , all , barrier \
        , on 3 , raw 'cmd=lookup_name service=s' , all , barrier , finalize
    expect_status 0
    expect_output "$(sort <<'END'
2: cmd=publish_result rc=0
2: cmd=publish_result rc=1 msg=key_already_present
0: cmd=lookup_result rc=0 port=tag#0$port#1$
0: cmd=lookup_result rc=1 msg=service_not_found
1: cmd=unpublish_result rc=0
1: cmd=unpublish_result rc=1 msg=service_not_found
3: cmd=lookup_result rc=1 msg=service_not_found
END
    )"
}

@test "a client of a later PMI gets an answer, and the user a word about it" {
    run_pmi -H login,h0 "$client" on 1 , raw 'cmd=init pmi_version=3 pmi_subversion=0'
    expect_status 0
    [[ $output == "cmd=response_to_init rc=-1"* ]] || show_run answer
    expect_line "*rank 1 speaks PMI-3, which is not served here"
}

@test "after finalize the connection is still served" {
    pmi finalize , raw cmd=get_appnum
    expect_status 0
    on_all 'cmd=appnum rc=0 appnum=0'
}

@test "rubbish and endless lines end the job of that client, by name" {
    local what
    for what in rubbish 'longline 200000'; do
        # shellcheck disable=SC2086 # words
        pmi on 2 , $what , sleep 20000 , all , barrier , finalize
        expect_status 1
        expect_line "rank 2 on h0 * sent rubbish on its PMI connection: *"
        expect_lines_at_most 1
    done
}

@test "many jobs' worth of rounds in one, with nothing and with much to say" {
    local none=() i
    for ((i = 0; i < 500; i++)); do none+=(barrier ,); done
    pmi "${none[@]}" exchange 20 900 0 again , "${none[@]}" finalize
    expect_status 0
    [ "$output" = "0: exchange: 4 ranks, 20 rounds, all right" ] || show_run rounds
}

@test "--pmi-trace: every request and reply with rank and time, on standard error or in a file" {
    local file=$HOSTS_DIR/home/trace
    run_pmi -H login,h0 --pmi-trace="/root/trace" "$client" --style=flux init , put k 'a b' , barrier , finalize
    expect_status 0
    [ "$output$stderr" = "" ] || show_run "not in the file alone"
    [ "$(sed -n 's/kvsname=[^ ]*/kvsname=N/; s/^[0-9:]\{8\}\.[0-9]\{6\} 1 //p' "$file")" = \
        'C cmd=init pmi_version=1 pmi_subversion=1
S cmd=response_to_init rc=0 pmi_version=1 pmi_subversion=1
C cmd=get_maxes
S cmd=maxes rc=0 kvsname_max=64 keylen_max=64 vallen_max=1024
C cmd=get_my_kvsname
S cmd=my_kvsname rc=0 kvsname=N
C cmd=put kvsname=N key=k value=a b
S cmd=put_result rc=0
C cmd=barrier_in
S cmd=barrier_out rc=0
C cmd=finalize
S cmd=finalize_ack rc=0' ] || { cat "$file" && false; }
    [ "$(grep -c ' 0 [CS] cmd=' "$file")" = 12 ]
    rm "$file"
    run_pmi -n 2 --pmi-trace "$client" init , finalize
    expect_status 0
    [ "$(grep -c '^pmi-start: [0-9:]\{8\}\.[0-9]\{6\} [01] [CS] cmd=' <<<"$stderr")" = 16 ] || show_run trace
    run_pmi -n 2 --pmi-trace=/nowhere/trace true
    expect_status 1
    expect_line "cannot open /nowhere/trace: No such file or directory"
    mkfifo "$HOSTS_DIR/home/fifo"
    run_pmi -n 2 --pmi-trace=/root/fifo true
    expect_status 1
    expect_line "cannot open /root/fifo: it is a pipe, and nobody reads it"
    expect_lines_at_most 1
    exec {reader}<>"$HOSTS_DIR/home/fifo"
    run_pmi -n 2 --pmi-trace=/root/fifo "$client" init , finalize
    expect_status 0
    [ "$(dd bs=64K iflag=nonblock <&"$reader" 2>/dev/null | grep -c ' [01] [CS] cmd=')" = 16 ] || show_run "a pipe"
    exec {reader}>&-
    rm "$HOSTS_DIR/home/fifo"
}

@test "PMI-2: two threads over one connection, told apart by thrid: what one waits for does not hold up the other" {
    local where
    for where in '-H login,h0 --ppn=2' '--nodes=2 --ppn=3' '-n 1'; do
        # shellcheck disable=SC2086
        run_pmi $where "$build/tests/progs/pmi2_thrids" 50
        expect_status 0
        expect_lines_at_most 0
    done
}
