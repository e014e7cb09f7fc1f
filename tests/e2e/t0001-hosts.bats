# SPDX-License-Identifier: BSD-3-Clause
# The hosts that all other tests stand on, and the means by which those judge a run: do they see what they should?
load helpers

setup_file() { need_hosts 3; }

@test "hosts have a name, an address and a home of their own cluster, and ssh between them asks nothing" {
    run on login ssh h2 'hostname; hostname -I; pwd'
    [ "$output" = $'h2\n'"$(on login getent hosts h2 | cut -d' ' -f1) "$'\n/root' ]
    run on h1 ssh -o BatchMode=yes h0 hostname
    [ "$output" = h0 ]
}

@test "a name that is no host is unknown at once" {
    run -255 timeout 2 "$hosts_scripts/exec.sh" login ssh nowhere true
    [[ $output == *"Could not resolve hostname nowhere"* ]]
}

@test "hosts see the build but not each other's /tmp" {
    on h0 touch /tmp/mine
    run ! on h1 test -e /tmp/mine
    on h0 rm /tmp/mine
    on h1 test -x "$pmi_start"
}

@test "up.sh leaves running hosts alone" {
    local before
    before=$(cat "$HOSTS_DIR"/pid/*)
    need_hosts 2
    [ "$(cat "$HOSTS_DIR"/pid/*)" = "$before" ]
}

@test "a crashed host refuses connections and can be started again" {
    crash_host h2
    run -255 on login ssh h2 true
    [[ $output == *"Connection refused"* ]]
    need_hosts 3
    on login ssh h2 true
}

@test "leftovers finds a process that made itself independent" {
    clean_start
    on login ssh h1 "$client daemonize 1 quiet"
    run ! leftovers 1
    [[ $output == *"> h1 process "*"pmi_client"* ]]
    signal_on h1 KILL $(named h1 pmi_client)
    leftovers
}

@test "leftovers finds files and sockets" {
    clean_start
    on h1 touch /dev/shm/forgotten /tmp/forgotten
    on h0 python3 -c 'import os, socket, time
s = socket.create_server(("", 7777))
if os.fork() == 0: time.sleep(60)' 3>&-
    run ! leftovers 1
    [[ $output == *"> h1 file /dev/shm/forgotten"* ]]
    [[ $output == *"> h1 file /tmp/forgotten"* ]]
    [[ $output == *"> h0 socket tcp LISTEN"*":7777"* ]]
    on h1 rm /dev/shm/forgotten /tmp/forgotten
    signal_on h0 KILL $(named h0 python3)
    leftovers
}

@test "pty_run gives a job a terminal, stops it and brings it back" {
    run on login python3 "$BATS_TEST_DIRNAME/pty_run.py" 'wait:ready;type:^Z;stopped;fg;wait:again;type:^C' \
        "$client" trap "$(kill -l CONT)" again on , trap "$(kill -l INT)" 'let go' 7 , print ready , sleep 600000
    [ "$status" = 7 ]
}
