# SPDX-License-Identifier: BSD-3-Clause
# What users of other launchers ran into: names and addresses, interfaces, ports
load helpers
load field

RUN_LIMIT=60

prepare() { address=$(address_of login); }

tidy() {
    on login sh -c 'ip link del extra0; true' 2>/dev/null
    [ -z "${h0:-}" ] || ipv4 add
}

# ipv4 add|del: the addresses of login, h0 and h1. h0 and h1 must be known.
ipv4() {
    on login ip addr "$1" "$address/16" dev br0 2>/dev/null || true
    on h0 ip addr "$1" "$h0/16" dev eth0 2>/dev/null || true
    on h1 ip addr "$1" "$h1/16" dev eth0 2>/dev/null || true
}

# wired RANKS ARG...: it works with a connection between two hosts of their own.
wired() { works "$1" --fanout=1 "${@:2}"; }

# start_by_agent NAME ARG...; called N: so many logins have begun
start_by_agent() {
    local name=$1
    shift
    on login env PATH="$agent_dir:$PATH" timeout --foreground -s KILL "$RUN_LIMIT" "$pmi_start" "$@" \
        </dev/null >"$BATS_TEST_TMPDIR/$name.out" 2>"$BATS_TEST_TMPDIR/$name.err" 3>&- &
    started["$name"]=$!
}

called() { [ "$(find "$agent_dir/calls" -type f | wc -l)" -ge "$1" ]; }

@test "hosts that do not know the launcher by any name, or know it by a wrong one" {
    local host
    for host in h0 h1 h2; do
        on $host sh -c 'printf "127.0.0.1 localhost login\n127.0.1.1 login\n" >/dev/shm/hosts &&
            mount --bind /dev/shm/hosts /etc/hosts'
        changed_hosts+=("$host")
    done
    clean_start
    wired 3 -H 'h[0-2]'
    wired 4 -H 'h[0-2],login'
    leftovers
}

@test "the launcher's own name is a loopback address, or is in no file, or has another domain" {
    local name
    hosts_file login "127.0.1.1 login login.bogus.example"
    clean_start
    wired 3 -H 'h[0-1],login'
    for name in login.bogus.example nobody; do
        run --separate-stderr on login unshare -u sh -c 'hostname "$1" && shift && exec "$@"' sh $name \
            "$pmi_start" --fanout=1 -H 'h[0-1]' "$client" init , exchange 1 10 0 new , finalize
        exchanged 2
    done
    leftovers
}

@test "a file that gives every host the names of all is believed by nobody" {
    local host all='login h0 h1 h2'
    for host in login h0 h1; do hosts_file $host "127.0.0.1 localhost $all" "127.0.1.1 $all"; done
    clean_start
    run_pmi -H "$(address_of h0),$(address_of h1),login" -l hostname
    expect_status 0
    [ "$(sort <<<"$output")" = $'0: h0\n1: h1\n2: login' ] || show_run "wrong hosts"
    leftovers
}

@test "localhost among other hosts is this machine" {
    wired 3 -H h0,localhost,h1
    wired 2 -H 127.0.0.1,h1
    leftovers
}

@test "this machine by its address, its second name, and as a user: no login" {
    local name
    hosts_file login "$address login frontend"
    clean_start
    agent
    for name in "$address" login root@login "$address:2" 127.0.0.1 ::1; do
        by_agent pdsh -H "$name" hostname
        expect_status 0
        [ "${lines[0]}" = login ] || show_run "not here"
    done
    [ -z "$(ls "$agent_dir/calls")" ] || show_run "there was a login"
    # Only the host's own name counts as itself; by another name it logs in to itself, and that works too.
    by_agent pdsh -H frontend hostname
    [ "$status-$output" = 0-login ] || show_run "not by its second name"
    rm -r "$agent_dir"
    leftovers
}

@test "an address stays an address, whatever name it has" {
    local h1
    h1=$(address_of h1)
    hosts_file login "$h1 wrong.example wrong" "10.255.255.1 h1"
    clean_start
    run_pmi -H "$h1" -o "$HOSTS_DIR/home/out.%h" sh -c 'hostname; exit 3'
    expect_status 3
    expect_line "rank 0 on $h1 (pid +([0-9])) exited with status 3"
    [ "$(<"$HOSTS_DIR/home/out.$h1")" = h1 ]
    rm "$HOSTS_DIR/home/out.$h1"
    leftovers
}

@test "a network that the hosts have no way to: they try the right one first" {
    local script
    on login sh -c 'ip link add extra0 type veth peer name extra1 &&
        ip addr add 192.168.77.1/24 dev extra0 && ip link set extra0 up && ip link set extra1 up'
    script=$(site_script first <<END
echo "\$PMI_HOST" >'$HOSTS_DIR/first'
exec '$build/bootstrap/pmi-start-rsh'
END
    )
    clean_start
    wired 2 -H 'h[0-1]' --rsh-command="$script"
    [ "$(<"$HOSTS_DIR/first")" = "$address" ]
    wired 2 -H 'h[0-1]' --interface="${address%.*.*}.0.0/16"
    wired 2 -H 'h[0-1]' --interface="$address"
    refused "*'nothing0'*extra0*" -H 'h[0-1]' --interface=nothing0
    refused "*'192.168.79.0/24'*$address (br0)*" -H 'h[0-1]' --interface=192.168.79.0/24
    refused "*'10.88.0.0/99'*" -H 'h[0-1]' --interface=10.88.0.0/99
    # Nobody gets there: it is said where they tried.
    run_pmi -H 'h[0-1]' --interface=extra0 --start-timeout=8s true
    expect_status 69
    expect_line 'h\[0-1\]: connect: *192.168.77.1*'
    leftovers 10
}

@test "no IPv4 anywhere, or no address that others can reach" {
    h0=$(address_of h0) h1=$(address_of h1)
    on login ip addr add fd00:83::ff/64 dev br0 nodad
    on h0 ip addr add fd00:83::10/64 dev eth0 nodad
    on h1 ip addr add fd00:83::11/64 dev eth0 nodad
    ipv4 del
    wired 2 -H 'fd00:83::10,root@[fd00:83::11]'
    wired 2 -H '[fd00:83::10],fd00:83::11' --interface=br0 --port=31700-31709
    ipv4 add
    on login ip addr del fd00:83::ff/64 dev br0
    on h0 ip addr del fd00:83::10/64 dev eth0
    on h1 ip addr del fd00:83::11/64 dev eth0
    run --separate-stderr on login unshare -n sh -c 'ip link set lo up && exec "$@"' sh \
        "$pmi_start" -H fe80::1%eth0 true
    expect_status 2
    expect_line '*this machine has no address that other hosts can reach*'
    leftovers
}

@test "an interface that has another name on the hosts" {
    wired 3 -H 'h[0-2]' --interface=br0
    wired 3 -H 'h[0-2]' --interface="$address"
    leftovers
}

@test "the control address is a loopback one: refused where a host could not reach it" {
    local which
    for which in lo localhost 127.0.0.1 127.0.0.0/8 ::1; do
        refused "*'$which' is this machine's own loopback, host 'h0' cannot reach it" -H h0 --interface=$which
    done
    leftovers
}

@test "a range of two ports and three launchers: two run, the third says so" {
    local name
    agent
    order h0 <<<"until [ -e '$agent_dir/go' ]; do sleep 0.05; done"
    clean_start
    for name in one two; do
        start_by_agent $name -H h0,h1 --port=31500-31501 "$client" init , exchange 1 10 0 new , finalize
    done
    wait_until 20 called 4
    run_pmi -H h1 --port=31500-31501 true
    expect_status 1
    expect_line '*31500-31501*'
    expect_lines_at_most 1
    touch "$agent_dir/go"
    for name in one two; do
        wait_pmi $name
        exchanged 2
    done
    rm -r "$agent_dir"
    leftovers
}

@test "with --interface ports are open there and nowhere else, and the launcher's for its start alone" {
    local port
    agent
    order h0 <<<"until [ -e '$agent_dir/go' ]; do sleep 0.05; done"
    clean_start
    start_by_agent run -H h0,h1,h1 --fanout=1 --interface="$address" --port=31600-31609 \
        sh -c 'echo ready; exec sleep 600'
    wait_until 20 called 3
    wait_until 20 on h1 sh -c 'ss -Hnlt | grep -q ":316"'
    ! on h1 ss -Hnlt | grep ':316' | grep -v "$(address_of h1):316" || false
    ! on login ss -Hnlt | grep ':316' | grep -v -e "$address:316" -e "127.0.0.1:316" -e "\[::1\]:316" || false
    touch "$agent_dir/go"
    wait_until 20 says run.out ready
    ! on login ss -Hnlt | grep ':316' || false
    signal_on login TERM "$(launcher)"
    wait_pmi run
    rm -r "$agent_dir"
    leftovers
}
