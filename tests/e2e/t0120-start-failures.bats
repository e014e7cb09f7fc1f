# SPDX-License-Identifier: BSD-3-Clause
# A start that fails on one host or several: exit 69 within the limit, one line with host, stage and reason, nothing left.
# And starts that have to try again.
load helpers

setup_file() { need_hosts 3; }

setup() {
    need_hosts 3
    there=$HOSTS_DIR/there # a folder in which h2 may have something else than the other hosts
    mkdir -p "$HOSTS_DIR/home/.ssh" "$there"
    ln -f "$pmi_start" "$there/pmi-start" 2>/dev/null || cp -f "$pmi_start" "$there/pmi-start"
}

teardown() {
    end_failed
    rm -rf "$HOSTS_DIR/home/.ssh"
    cable h2 up
    on h2 sh -c 'umount "$1"; nft delete table ip e2e' sh "$there" 2>/dev/null
    true
}

# ssh_config LINE...: for the user, about h2.
ssh_config() {
    printf '%s\n' 'Host h2' "$@" >"$HOSTS_DIR/home/.ssh/config"
    chmod 600 "$HOSTS_DIR/home/.ssh/config"
}

# fails LINE ARG...: the start says this one line and nothing else.
fails() {
    local line=$1
    shift
    clean_start
    run_pmi "$@" "$client" init , finalize
    fails_with "$line"
}

fails_with() {
    expect_status 69
    expect_line "$1"
    [ "${#stderr_lines[@]}" = 1 ] || show_run "more than one line"
    leftovers 10
}

# fails_both LINE ARG...: likewise, by ssh alone as well.
fails_both() {
    fails "$@"
    local line=$1
    shift
    run_env PATH="$(path_without_pdsh)" -- "$@" "$client" init , finalize
    fails_with "$line"
}

@test "names that are unknown, with the others folded into one line" {
    fails_both 'nowhere: login: ssh: Could not resolve hostname nowhere: Name or service not known' -H h0,nowhere,h1
    fails 'nowhere\[7-9\]: login: ssh: Could not resolve hostname HOST: Name or service not known' -H 'h0,nowhere[7-9]'
}

@test "a host that refuses, and two reasons at once" {
    crash_host h2
    clean_start
    run_pmi -H 'h[0-2]' "$client" init , finalize
    fails_with 'h2: login: ssh: connect to host h2 port 22: Connection refused'
    run_pmi -H 'h[0-2],nowhere' "$client" init , finalize
    expect_status 69
    expect_line 'h2: login: ssh: connect to host h2 port 22: Connection refused'
    expect_line 'nowhere: login: ssh: Could not resolve hostname *'
    leftovers 10
}

@test "a host that is silent" {
    cable h2 down
    fails 'h2: login: ssh: connect to host h2 port 22: *' -H 'h[0-2]' --start-timeout=6s
}

@test "a host key that is wrong, and one that is not known" {
    ssh-keygen -q -t ed25519 -N '' -C '' -f "$BATS_TEST_TMPDIR/key"
    echo "h2 $(cat "$BATS_TEST_TMPDIR/key.pub")" >"$HOSTS_DIR/home/.ssh/wrong"
    ssh_config 'GlobalKnownHostsFile /dev/null' 'UserKnownHostsFile ~/.ssh/wrong'
    fails_both 'h2: login: Host key for h2 has changed and you have requested strict checking.' -H 'h[0-2]'
    ssh_config 'GlobalKnownHostsFile /dev/null' 'UserKnownHostsFile /dev/null'
    fails 'h2: login: *Host key verification failed.' -H 'h[0-2]'
}

@test "a host that lets nobody in" {
    ssh_config 'PubkeyAuthentication no'
    fails_both 'h2: login: Permission denied (publickey).' -H 'h[0-2]'
    fails_both 'nobody@h2: login: Permission denied (publickey).' -H 'h[0-1],nobody@h2'
}

@test "a host without pmi-start, and one where it is no program" {
    on h2 mount -t tmpfs tmpfs "$there"
    fails "h2: not found: *$there/pmi-start: No such file or directory" -H 'h[0-2]' --remote-path="$there/pmi-start"
    on h2 sh -c 'echo text >"$1"' sh "$there/pmi-start"
    fails "h2: not executable: *$there/pmi-start: Permission denied" -H 'h[0-2]' --remote-path="$there/pmi-start"
}

@test "a host with another version" {
    on h2 mount -t tmpfs tmpfs "$there"
    on h2 cp "$build/tests/progs/pmi_start_v2" "$there/pmi-start"
    fails_both 'h2: connect: * speaks protocol versions 1 to 1, this side 2 to 2: not the same pmi-start' \
        -H 'h[0-2]' --remote-path="$there/pmi-start"
}

@test "a provider that cannot connect back names the address that it tried" {
    on h2 nft -f - <<<'table ip e2e { chain out { type filter hook output priority 0
        tcp sport 22 accept
        tcp flags & (syn | ack) == syn drop
    }
}'
    fails 'h2: connect: *.0.1:* (eth0): no answer' -H 'h[0-2]' --start-timeout=5s
    fails 'h2: connect: *: no answer' -H 'h[0-2]' --start-timeout=5s --rsh-attach=yes
}

@test "a script that passes nothing on" {
    # shellcheck disable=SC2016
    script=$(site_script silent <<<'exec pdsh -R ssh -w "$PMI_HOSTLIST" "$PMI_PROVIDER" --pmi-rank=%n >/dev/null 2>&1')
    fails "h\[0-1\]: start: providers connect, but the script does not pass on the providers' output" \
        -H 'h[0-1]' --rsh-command="$script" --start-timeout=5s
}

@test "a script that fails is tried again, and its words are kept" {
    script=$(site_script failing <<<'echo "site is closed" >&2; exit 3')
    clean_start
    run_pmi -H 'h[0-1]' --rsh-command="$script" true
    expect_status 69
    expect_line 'h\[0-1\]: login: the bootstrap script ended with exit status 3 and * \(site is closed\)'
    expect_line 'site is closed'
    expect_lines_at_most 2
    leftovers
    run_pmi -H 'h[0-1]' --rsh-command="$script.none" true
    expect_status 2
    expect_line "*'$script.none': No such file or directory"
}

@test "a script by a path that is relative to where pmi-start was started" {
    # shellcheck disable=SC2016 # for the script
    script=$(site_script relative <<<'exec ssh h0 "$PMI_PROVIDER --pmi-rank=0"')
    for name in "${script##*/}" "./${script##*/}"; do
        # shellcheck disable=SC2016 # for the shell on the host
        run --separate-stderr on login sh -c 'cd "$0" && exec "$@"' "${script%/*}" "$pmi_start" -H h0 \
            --rsh-command="$name" hostname
        expect_status 0
        [ "$output" = h0 ] || show_run "$name"
    done
}

@test "a host whose sshd comes up late" {
    on h2 nft -f - <<<'table ip e2e { chain in { type filter hook input priority 0
        tcp dport 22 reject with tcp reset
    }
}'
    clean_start
    start_pmi late -v -H 'h[0-2]' "$client" init , finalize
    wait_until 20 says late.err 'h2: .*Connection refused; trying again'
    on h2 nft delete table ip e2e
    wait_pmi late
    expect_status 0
    leftovers
}

@test "an sshd that takes two at a time: twelve logins, ten runs" {
    local host=h2,h2,h2,h2 pid round
    sed 's/^MaxStartups.*/MaxStartups 2:100:2/' "$HOSTS_DIR/ssh/sshd_config" >"$HOSTS_DIR/ssh/sshd_narrow"
    on h2 /usr/sbin/sshd -D -f "$HOSTS_DIR/ssh/sshd_narrow" -p 2222 3>&- &
    pid=$!
    ssh_config 'Port 2222'
    wait_until 10 on login ssh h2 true
    clean_start
    RUN_LIMIT=90
    # Not i: bats' run has that for itself.
    for ((round = 0; round < 10; round++)); do
        run_pmi -v -H "$host,$host,$host" "$client" init , exchange 1 10 0 new , finalize
        expect_status 0
        [[ $output == *"12 ranks, 1 rounds, all right"* ]] || show_run "not all twelve"
        expect_line 'h2: *; trying again'
    done
    leftovers
    run_pmi -H "$host,$host" --rsh-attach=yes "$client" init , exchange 1 10 0 new , finalize
    expect_status 0
    [[ $output == *"8 ranks, 1 rounds, all right"* ]] || show_run "not all eight"
    leftovers
    kill "$pid"
    signal_on h2 TERM "$(on h2 pgrep -f sshd_narrow)" || true
}

@test "no room for another process, on played nodes: each line says so" {
    local n line
    clean_start
    for ((n = 1; n < 10; n++)); do
        run --separate-stderr on login env HOME=/ setpriv --reuid=234567 --regid=234567 --clear-groups \
            prlimit --nproc="$n" "$pmi_start" --nodes=4 true
        [[ $status =~ ^(0|1|69|126)$ ]] || show_run "status $status with $n"
        [ "$status" = 0 ] || [ -n "$stderr" ] || show_run "not a word with $n"
        while IFS= read -r line; do
            [[ -z $line || $line == *'Resource temporarily unavailable'* ]] || show_run "with $n: $line"
        done <<<"$stderr"
    done
    leftovers
}
