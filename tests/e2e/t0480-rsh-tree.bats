# SPDX-License-Identifier: BSD-3-Clause
# --rsh-tree: hosts that are up log in to further ones. Whatever happens to one of them, the run starts as it would without, or
# says of the same hosts why it cannot.
load helpers

setup_file() { need_hosts 8; }

setup() {
    need_hosts 8
    rm -f "$HOSTS_DIR/go" "$HOSTS_DIR"/logins.*
    clean_start
    RUN_LIMIT=60
}

teardown() {
    touch "$HOSTS_DIR/go"
    end_failed
    for host in ${changed:-}; do
        on "$host" umount /usr/bin/ssh
    done
    rm -rf "$HOSTS_DIR/home/.ssh" "$HOSTS_DIR/script-tree"
}

# no_ssh HOST...: their ssh refuses, as where nobody may log in from there.
no_ssh() {
    local host
    site_script no-ssh >/dev/null <<<'echo "root@${2:-it}: Permission denied (publickey)." >&2; exit 255'
    for host; do
        on "$host" mount --bind "$HOSTS_DIR/script-no-ssh" /usr/bin/ssh
        changed+=" $host"
    done
}

# slow_to HOST: a script of the site's whose login to HOST waits for let_in. It notes on which host it was run for whom.
slow_to() {
    script=$(site_script tree <<END
echo "\$PMI_HOSTLIST" >>"$HOSTS_DIR/logins.\$(hostname)"
[ "\$PMI_SIZE" = 2 ] || exit 1
case \$PMI_HOSTLIST in
    *$1) echo waits >"$HOSTS_DIR/waits"; while [ ! -e "$HOSTS_DIR/go" ]; do sleep 0.05; done ;;
esac
exec ssh -n "\$PMI_HOSTLIST" "\$PMI_PROVIDER" --pmi-rank=0
END
    )
    rm -f "$HOSTS_DIR/waits"
}

let_in() { touch "$HOSTS_DIR/go"; }

waits() { [ -e "$HOSTS_DIR/waits" ]; }

# Hosts from which logins were begun.
callers() { (cd "$HOSTS_DIR" && printf '%s\n' logins.* | sed 's/logins\.//' | sort | tr '\n' ' '); }

@test "narrow trees, and the width of its own: every rank gets what every rank has put" {
    local k
    for k in =3 ''; do
        works 8 -H 'h[0-7]' --rsh-tree$k
    done
    works 16 -H 'h[0-7]' --rsh-tree=2 --ppn=2 --map=cyclic --rsh-attach=yes
    leftovers 5
}

@test "an MPI program over it" {
    [ -x "$mpi_check" ] || skip "built without MPI"
    RUN_LIMIT=90
    run_pmi -H 'h[0-7]' --ppn=2 --rsh-tree=2 "$mpi_check"
    expect_status 0
    [ "$output" = "mpi_check: 16 ranks, allreduce, ring and split right; ranks a node: 2 (16 ranks)" ] ||
        show_run "not what mpi_check says when all is right"
    [ -z "$stderr" ] || show_run "words on standard error"
    leftovers 5
}

@test "the launcher's host amid the list, a host twice, a user: as without" {
    works 6 --rsh-tree=1 -H 'root@h0,root@h1,login,root@h[2-3],root@h1'
    run_pmi -v --rsh-tree=2 -l -H 'h0,h1,login,h[2-3],h1' hostname
    expect_status 0
    expect_lines_at_most 1 # it is not ignored
    [ "$(sort <<<"$output" | tr '\n' ' ')" = '0: h0 1: h1 2: login 3: h2 4: h3 5: h1 ' ] || show_run "not as in the list"
    leftovers 5
}

@test "who logs in to whom: with a width of one each to the next, by the script of the site" {
    slow_to nobody
    works 5 --rsh-tree=1 -H 'h[0-4]' --rsh-command="$script" --rsh-attach=no
    [ "$(callers)" = 'h0 h1 h2 h3 login ' ] || show_run "logins from $(callers)"
    [ "$(<"$HOSTS_DIR/logins.h2")" = h3 ] || show_run "h2 logged in to $(<"$HOSTS_DIR/logins.h2")"
    run_pmi -vv --rsh-tree=1 -H 'h[0-1]' --rsh-command="$script" true
    expect_line "run 1: PMI_HOSTLIST=h0 PMI_PROVIDER='* --pmi-port=*' $script"
    expect_line "h0: run 1: PMI_HOSTLIST=h1 PMI_PROVIDER='* --pmi-port=*' $script"
    expect_line 'h0 is to have h1 logged in to'
    expect_line 'node 1 joined below node 0'
    leftovers 5
}

@test "where logins are not what starts providers it is ignored, and -v says so" {
    run_pmi -v --rsh-tree --nodes=2 true
    expect_status 0
    expect_line '--rsh-tree is for --bootstrap=rsh *'
    works 2 --rsh-tree --nodes=2
    run_pmi -v --rsh-tree -H 'root@h0,h1' hostname
    expect_status 0
    expect_line '--rsh-tree is for hosts that are all logged in to as the same user, ignoring it'
}

@test "a host from which nobody can log in: one warning, and its hosts are logged in to from elsewhere" {
    no_ssh h0
    run_pmi --rsh-tree=1 -H 'h[0-7]' "$client" init , exchange 1 10 0 new , finalize
    expect_status 0
    [ "$output" = "exchange: 8 ranks, 1 rounds, all right" ] || show_run "not 8 ranks"
    expect_line 'h0: logins from here fail (h?: *Permission denied (publickey).), 7 hosts are left to others'
    expect_lines_at_most 1
    run_pmi -v --rsh-tree=2 -H 'h[0-7]' "$client" init , exchange 1 10 0 new , finalize
    expect_status 0
    expect_line 'h?: login from h0 failed: *Permission denied (publickey).; trying from the launcher'
    leftovers 5
}

@test "a host that another one cannot be reached from: the reason is that, not that it was silent" {
    script=$(site_script tree <<END
[ "\$(hostname)" = login ] || exec >/dev/null # no key comes back
exec ssh -n "\$PMI_HOSTLIST" "\$PMI_PROVIDER" --pmi-rank=0
END
    )
    run_pmi --rsh-tree=1 --start-timeout=3s --rsh-command="$script" --rsh-attach=no -H 'h[0-1]' true
    expect_status 0
    expect_line "h0: logins from here fail (h1: start: providers connect, but the script does not pass on *), 1 host is left to others"
    expect_lines_at_most 1
    leftovers 5 # the one that was given up finds it out when it says its key again
}

@test "hosts from which nobody can log in at all: the launcher does it, and stops asking" {
    no_ssh h0 h1 h2 h3 h4 h5 h6 h7
    run_pmi --rsh-tree=2 -H 'h[0-7]' "$client" init , exchange 1 10 0 new , finalize
    expect_status 0
    [ "$output" = "exchange: 8 ranks, 1 rounds, all right" ] || show_run "not 8 ranks"
    expect_line 'h0: logins from here fail *'
    expect_lines_at_most 5
    leftovers 5
}

@test "a host that is down, and one with another key: named as without a tree, nobody else is, and nothing has run" {
    crash_host h2
    mkdir -p "$HOSTS_DIR/home/.ssh"
    printf '%s\n' 'Host h5' 'GlobalKnownHostsFile /dev/null' 'UserKnownHostsFile /dev/null' >"$HOSTS_DIR/home/.ssh/config"
    chmod 600 "$HOSTS_DIR/home/.ssh/config"
    clean_start
    run_pmi --rsh-tree=1 -H 'h[0-7]' touch /root/ran
    expect_status 69
    expect_lines_at_most 2
    expect_line 'h2: login: ssh: connect to host h2 port 22: Connection refused'
    expect_line 'h5: login: *Host key verification failed.'
    [ ! -e "$HOSTS_DIR/home/ran" ]
    leftovers 5
}

# kill_on HOST: the provider there.
kill_on() {
    local pid
    for pid in $(workers "$1"); do
        on "$1" kill -s KILL "$pid"
    done
}

@test "a host is lost in the middle of the start: it and all behind it are logged in to again, with one warning" {
    slow_to h4
    start_pmi run --rsh-tree=1 --rsh-command="$script" --rsh-attach=no -H 'h[0-5]' \
        "$client" init , exchange 1 10 0 new , finalize
    wait_until 20 waits
    kill_on h1
    let_in
    wait_pmi run
    expect_status 0
    [ "$output" = "exchange: 6 ranks, 1 rounds, all right" ] || show_run "not 6 ranks"
    expect_line 'h0: h1: lost while hosts were logged in to from it (*), trying again there and for 4 behind it'
    expect_lines_at_most 1
    leftovers 5
}

@test "a login that hangs below another host: named at the limit, and nothing is left" {
    slow_to h3
    run_pmi -v --rsh-tree=1 --rsh-command="$script" --rsh-attach=no --start-timeout=3s -H 'h[0-3]' true
    expect_status 69
    expect_line 'h3: login from h2 failed: no answer within 1.5 s; trying from the launcher'
    expect_line 'h3: login: no answer within 3.0 s'
    expect_lines_at_most 2
    leftovers 5
}

@test "a task's status, and a launcher that is killed while hosts log in: nothing is left anywhere" {
    local pid
    run_pmi --rsh-tree=1 -H 'h[0-3]' "$client" init , on 3 , exit 7
    expect_status 7
    expect_line 'rank 3 on h3 (pid *) exited with status 7'
    leftovers 5
    slow_to h3
    start_pmi run --rsh-tree=1 --rsh-command="$script" --rsh-attach=yes -H 'h[0-4]' true
    wait_until 20 waits
    pid=$(launcher)
    on login kill -s KILL "$pid"
    wait_pmi run
    leftovers 9
}

@test "who says of a host what it has no say in: named, and the run ends" {
    script=$(site_script tree <<END
exec ssh -n "\$PMI_HOSTLIST" "python3 $BATS_TEST_DIRNAME/stranger.py provider --how=claims \$PMI_PROVIDER --pmi-rank=0"
END
    )
    run_pmi --rsh-tree=1 --rsh-command="$script" -H 'h[0-1]' true
    expect_status 1
    expect_line "*: refused 'joined' from h0: it speaks of hosts that it was not given"
    leftovers 5
}

# port_of HOST: one that it listens on, but sshd's.
# shellcheck disable=SC2016 # for awk
port_of() {
    local hex
    hex=$(on "$1" awk '$4 == "0A" && $2 !~ /:0016$/ { sub(".*:", "", $2); print $2; exit }' /proc/net/tcp)
    [ -n "$hex" ] && echo $((16#$hex))
}

have_said() { [ "$(grep -c '^false: said' "$BATS_TEST_TMPDIR/false")" -ge "$1" ]; }

@test "a stranger at a host that logs in to others: refused as at the launcher, and in the end nobody listens" {
    local host where over=$HOSTS_DIR/over
    rm -f "$over"
    slow_to h2
    start_pmi run --rsh-tree=1 --rsh-command="$script" --rsh-attach=no -H 'h[0-2]' \
        sh -c "echo running; while [ ! -e '$over' ]; do sleep 0.05; done"
    wait_until 20 waits
    where=("$(on h1 hostname -I | cut -d' ' -f1)" "$(port_of h1)")
    run on h3 timeout 30 python3 "$BATS_TEST_DIRNAME/stranger.py" long "${where[@]}" </dev/null
    [[ $output == 'long: 4 connections, 4 dropped within '* ]] || show_run long
    on h3 timeout 30 python3 "$BATS_TEST_DIRNAME/stranger.py" false "${where[@]}" --tell \
        </dev/null >"$BATS_TEST_TMPDIR/false" 2>&1 3>&- &
    wait_until 20 have_said 4
    let_in
    wait $! # none is let in, nor held any longer
    grep -q '^false: 4 connections, 4 dropped within' "$BATS_TEST_TMPDIR/false" || show_run "$(<"$BATS_TEST_TMPDIR/false")"
    wait_until 20 says run.out running
    for host in login h0 h1 h2; do
        ! port_of "$host" || show_run "$host listens"
    done
    touch "$over"
    wait_pmi run
    expect_status 0
    expect_line '* connections of strangers were dropped during the start'
    expect_lines_at_most 1
    rm "$over"
    leftovers 5
}

@test "a host that cannot log in to others, for want of the script: its hosts are others', and it listens to nobody" {
    local here=/dev/shm/script-tree
    slow_to h1
    on login cp "$script" "$here"
    start_pmi run --rsh-tree=1 --rsh-command="$here" --rsh-attach=no -H 'h[0-1]' "$client" init , exchange 1 10 0 new , finalize
    wait_until 20 waits
    ! port_of h0 || show_run "h0 listens"
    let_in
    wait_pmi run
    on login rm "$here"
    expect_status 0
    expect_line "h0: cannot log in to others (--rsh-command='$here': No such file or directory), 1 host is left to others"
    expect_lines_at_most 1
    leftovers
}
