# SPDX-License-Identifier: BSD-3-Clause
# What pmi-start and a bootstrap script have agreed on; logins that are noisy or have another shell; ways to name hosts,
# addresses and ports; providers started by hand.
load helpers

setup_file() { need_hosts 3; }

setup() {
    need_hosts 3
    clean_start
}

teardown() {
    end_failed
    rm -f "$HOSTS_DIR/home/.bashrc"
    on h1 sh -c 'while umount /etc/passwd 2>/dev/null; do :; done'
    true
}

# One value of the script's environment, as it noted it.
noted() { sed -n "s/^$1=//p" "$HOSTS_DIR/noted"; }

# shellcheck disable=SC2016 # for the script
noting_script() {
    site_script noting <<END
{
    env | sort
    ps -o sid= -p \$\$ | sed "s/ *\$\$\$/SID_IS_PID=yes/"
    ps -o tty= -p \$\$ | sed 's/^/TTY=/'
    readlink /proc/\$\$/fd/0 | sed 's/^/STDIN=/'
} >'$HOSTS_DIR/noted'
exec pdsh -R ssh -f "\$PMI_LOGIN_FANOUT" -w "\$PMI_HOSTLIST" "\$PMI_PROVIDER" --pmi-rank=%n
END
}

@test "the script's environment, session and standard input" {
    local provider
    run_env PMI_RANK=7 PMI_FD=9 PMI_ID=1 FROM_USER='a b' -- -H 'h[0-2],root@h0,h1:2' --rsh-command="$(noting_script)" \
        --port=30000-30100 --interface="$(on login hostname -I | cut -d' ' -f1)" --start-timeout=30s \
        "$client" init , exchange 1 10 0 new , finalize
    exchanged 6
    leftovers
    [ "$(noted PMI_HOST)" = "$(on login hostname -I | cut -d' ' -f1)" ]
    [[ $(noted PMI_PORT) =~ ^30(0[0-9][0-9]|100)$ ]]
    [ "$(noted PMI_SIZE)" = 6 ]
    [ "$(noted PMI_HOSTLIST)" = 'h[0-2],root@h0,h1' ]
    [[ $(noted PMI_KEY) =~ ^[0-9a-f]{64}$ ]]
    [ "$(noted PMI_LOGIN_FANOUT)" = 5 ]
    [ "$(noted PMI_LOGIN_TIMEOUT)" = 10 ]
    [ "$(noted FROM_USER)" = 'a b' ]
    [ -z "$(noted PMI_RANK)$(noted PMI_FD)$(noted PMI_ID)" ]
    [ "$(noted SID_IS_PID)-$(noted TTY)-$(noted STDIN)" = 'yes-?-/dev/null' ]
    provider=$(noted PMI_PROVIDER)
    [[ $provider =~ ^[A-Za-z0-9/._:,=+@%\ -]+$ ]]
    [[ $provider == "$pmi_start --pmi-port=$(noted PMI_HOST):$(noted PMI_PORT) --pmi-size=6 --pmi-run=1 "* ]]
    [[ $provider == *" --pmi-key=$(noted PMI_KEY)"* && $provider != *--pmi-rank* ]]
}

@test "no secret in any argument or environment" {
    # What looks like one, in any process of a host, is the launcher's public fingerprint.
    cat >"$HOSTS_DIR/watch.py" <<'END'
import glob, re, sys
seen = set()
print("ready", flush=True)
while not glob.glob(sys.argv[1]):
    for name in glob.glob("/proc/[0-9]*/cmdline") + glob.glob("/proc/[0-9]*/environ"):
        try:
            text = open(name, "rb").read()
        except OSError:
            continue
        seen.update(re.findall(rb"[0-9a-fA-F]{32,}|[0-9A-Za-z+/]{43}=", text))
print(*sorted(s.decode() for s in seen))
END
    local host
    rm -f "$HOSTS_DIR/watched"
    for host in login h1; do
        on "$host" python3 "$HOSTS_DIR/watch.py" "$HOSTS_DIR/watched" >"$BATS_TEST_TMPDIR/$host.seen" 3>&- &
        wait_until 10 says "$host.seen" ready
    done
    run_pmi -H 'h[0-2]' --rsh-command="$(noting_script)" --fanout=1 "$client" init , exchange 50 100 5 new , finalize
    touch "$HOSTS_DIR/watched"
    expect_status 0
    wait
    for host in login h1; do
        [ "$(tail -n 1 "$BATS_TEST_TMPDIR/$host.seen")" = "$(noted PMI_KEY)" ] ||
            show_run "$host: $(cat "$BATS_TEST_TMPDIR/$host.seen")"
    done
    leftovers
}

@test "noisy logins: words, a broken key line, megabytes of rubbish" {
    # shellcheck disable=SC2016 # for the hosts
    echo 'echo "welcome to $HOSTNAME"; echo "mind the step" >&2
printf "pmi-start-provider 1 run=1 index=0 key=abc\nno newline pmi-start-provider 1 run=1"
head -c 2000000 /dev/urandom; head -c 20000 /dev/urandom >&2' >"$HOSTS_DIR/home/.bashrc"
    clean_start
    works 3 -H 'h[0-2]'
    run_env PATH="$(path_without_pdsh)" -- -H 'h[0-2]' "$client" init , exchange 1 10 0 new , finalize
    exchanged 3
    leftovers
}

@test "pdsh is given few files to close; a single host needs no pdsh" {
    local dir=$HOSTS_DIR/noting-pdsh
    mkdir -p "$dir"
    cat >"$dir/pdsh" <<END
#!/bin/sh
[ "\$1" = -L ] || ulimit -S -n >>'$dir/limits'
exec $(command -v pdsh) "\$@"
END
    chmod +x "$dir/pdsh"
    run_env PATH="$dir:$PATH" -- -H 'h[0-2]' "$client" init , exchange 1 10 0 new , finalize
    exchanged 3
    [ "$(cat "$dir/limits")" = 76 ] # three logins at once
    rm "$dir/limits"
    run_env PATH="$dir:$PATH" -- -H h0 "$client" init , exchange 1 10 0 new , finalize
    exchanged 1
    [ ! -e "$dir/limits" ] || show_run "pdsh for one host"
    leftovers
}

@test "login shells csh and fish" {
    local shell
    for shell in csh fish; do
        on h1 sh -c 'path=$(command -v "$1") && sed "s#^\(root:.*:\).*#\1$path#" /etc/passwd >/dev/shm/passwd &&
            mount --bind /dev/shm/passwd /etc/passwd' sh "$shell" || continue
        on login ssh h1 true # their files in the home are made now
        clean_start
        works 3 -H 'h[0-2]'
        leftovers
        on h1 sh -c 'umount /etc/passwd; rm /dev/shm/passwd'
    done
    rm -rf "$HOSTS_DIR/home/.config" "$HOSTS_DIR/home/.local" "$HOSTS_DIR/home/.cache"
}

@test "one host several times, users, addresses" {
    works 3 -H h0,h0,h0
    works 2 -H root@h0,root@h1
    works 3 -H "$(on h0 hostname -I | cut -d' ' -f1),h1,$(on h2 hostname -I | cut -d' ' -f1)"
    leftovers
}

@test "hosts and networks by IPv6" {
    local i
    on login ip addr add fd00:82::ff/64 dev br0 nodad
    for i in 0 1 2; do on "h$i" ip addr add "fd00:82::$i/64" dev eth0 nodad; done
    works 3 -H fd00:82::0,fd00:82::1,h2
    works 4 -H '[fd00:82::0],[fd00:82::1]:2,h2' --fanout=1 --interface=fd00:82::/64
    leftovers
    on login ip addr del fd00:82::ff/64 dev br0
    for i in 0 1 2; do on "h$i" ip addr del "fd00:82::$i/64" dev eth0; done
}

@test "interfaces, ports and fan-outs" {
    local i address
    address=$(on login hostname -I | cut -d' ' -f1)
    works 3 -H 'h[0-2]' --interface="${address%.*.*}.0.0/16" --fanout=1 --port=31000-31004
    works 3 -H 'h[0-2]' --interface="$address" --fanout=1 --rsh-fanout=1
    works 3 -H 'h[0-2]' --rsh-attach=yes --rsh-fanout=1
    for i in 1 2 3 4 5; do works 3 -H 'h[0-2]' --port=31000; done
    leftovers
    run_pmi -H 'h[0-2]' --interface=nothing0 true
    expect_status 2
    expect_line "*'nothing0'*"
}

@test "providers by hand, with a secret" {
    local secret=$HOSTS_DIR/secret line
    rm -f "$secret"
    run_pmi --new-secret="$secret"
    expect_status 0
    [ "$(stat -c %a,%s "$secret")" = 600,32 ]
    run_pmi --new-secret="$secret"
    expect_status 2
    expect_line "*$secret: File exists"
    run_pmi --bootstrap=manual -H 'h[0-1]' true
    expect_status 2
    expect_line '*--secret-file*'
    mkfifo "$HOSTS_DIR/home/fifo"
    run_pmi --bootstrap=manual --secret-file=/root/fifo -H 'h[0-1]' true
    rm "$HOSTS_DIR/home/fifo"
    expect_status 2
    expect_line '/root/fifo: a secret must be a regular file *'
    # The path is relative here; those who type the line are elsewhere.
    start_pmi hand --bootstrap=manual --secret-file="./$(realpath --relative-to=. "$secret")" -H 'h[0-1]' \
        "$client" init , exchange 1 10 0 new , finalize
    wait_until 10 says hand.err "^pmi-start: h1: .* --pmi-secret-file=/"
    for host in h0 h1; do
        line=$(sed -n "s/^pmi-start: $host: //p" "$BATS_TEST_TMPDIR/hand.err")
        # shellcheck disable=SC2086 # a command line
        (cd / && on "$host" $line </dev/null 3>&-) &
    done
    wait_pmi hand
    expect_status 0
    [ "$output" = "exchange: 2 ranks, 1 rounds, all right" ] || show_run "not two ranks"
    leftovers
}

@test "a provider with another secret, or nobody, is no part of it" {
    local secret=$HOSTS_DIR/secret other=$HOSTS_DIR/other line
    rm -f "$secret" "$other"
    run_pmi --new-secret="$secret"
    run_pmi --new-secret="$other"
    start_pmi hand --bootstrap=manual --secret-file="$secret" -H 'h[0-1]' --start-timeout=3s true
    wait_until 10 says hand.err '^pmi-start: h1: '
    line=$(sed -n "s/^pmi-start: h0: //p" "$BATS_TEST_TMPDIR/hand.err")
    # shellcheck disable=SC2086
    on h0 ${line/"$secret"/"$other"} </dev/null 2>"$BATS_TEST_TMPDIR/other.err" 3>&- &
    wait_pmi hand
    expect_status 69
    expect_line 'h\[0-1\]: start: nobody connected within 3 s'
    wait
    says other.err '^pmi-start: '
    leftovers
}
