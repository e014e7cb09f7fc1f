# SPDX-License-Identifier: BSD-3-Clause
# What users of other launchers ran into: logins, ssh's words, and hosts that cannot be reached or are slow
load helpers
load field

RUN_LIMIT=60

hosts_needed=4

prepare() {
    mkdir -p "$HOSTS_DIR/home/.ssh"
    agent
}

# ssh_config LINE...: for the user, about h2.
ssh_config() {
    printf '%s\n' 'Host h2' "$@" >"$HOSTS_DIR/home/.ssh/config"
    chmod 600 "$HOSTS_DIR/home/.ssh/config"
}

tidy() {
    [ -z "${sshd:-}" ] || signal_on h2 TERM "$(on h2 pgrep -f sshd_chatty)" || true
    rm -rf "$HOSTS_DIR/home/.ssh"
}

# h2 has a second sshd, which shows a banner and would take a password.
chatty_sshd() {
    printf '*** %s ***\n' 'A MACHINE OF THE SITE' 'go away' >"$HOSTS_DIR/banner"
    { cat "$HOSTS_DIR/ssh/sshd_config" && echo "Banner $HOSTS_DIR/banner"; } |
        sed 's/^PasswordAuthentication.*/PasswordAuthentication yes/' >"$HOSTS_DIR/ssh/sshd_chatty"
    on h2 /usr/sbin/sshd -D -f "$HOSTS_DIR/ssh/sshd_chatty" -p 2222 </dev/null 3>&- &
    sshd=$!
    wait_until 10 on h2 sh -c 'ss -Hnlt | grep -q :2222'
}

@test "a site's banner: never among the output, not the reason of a failure, and no password is asked for" {
    local way
    chatty_sshd
    ssh_config 'Port 2222' 'LogLevel INFO'
    clean_start
    for way in pdsh ssh; do
        by_agent $way -H 'h[1-3]' -l "$client" print here
        expect_status 0
        [ "$(sort <<<"$output")" = $'0: here\n1: here\n2: here' ] || show_run "words among the output"
        (($(grep -c 'OF THE SITE' <<<"$stderr") <= 1)) || show_run "the banner more than once"
    done
    ssh_config 'Port 2222' 'LogLevel INFO' 'PubkeyAuthentication no'
    for way in pdsh ssh; do
        by_agent $way -H 'h[1-3]' -l "$client" print here
        expect_status 69
        expect_line 'h2: login: Permission denied (publickey,password).'
        expect_lines_at_most 1
    done
    leftovers
}

@test "ssh's arguments: the same options on every call, the user's own among them, the command as one" {
    local way call options=''
    export PDSH_SSH_ARGS_APPEND='-oServerAliveInterval=7 -oUser=root'
    for way in pdsh ssh; do
        by_agent $way -H 'h[0-3]' "$client" init , exchange 1 10 0 new , finalize
        exchanged 4
        [ "$(find "$agent_dir/calls" -type f | wc -l)" = 4 ] || show_run "not four logins"
        for call in "$agent_dir"/calls/*; do
            [[ $(tail -n 1 "$call") == "$pmi_start --pmi-port="*" --pmi-rank="[0-3] ]] || show_run "$(cat "$call")"
            sed -n '$!p' "$call" | grep -vx -e 'h[0-3]' -e -- >"$call.options"
            [ -z "$options" ] || cmp "$options" "$call.options"
            options=$call.options
        done
        for call in -x -a -oBatchMode=yes -oServerAliveInterval=7 -oUser=root; do grep -qx -e "$call" "$options"; done
        # Whose keys are good is for the user's own configuration.
        ! grep -qi -e stricthost -e knownhosts "$options" || false
        options=''
        rm "$agent_dir"/calls/*
    done
    leftovers
}

@test "an unknown host key: no question, nothing accepted, nothing written down" {
    ssh_config 'GlobalKnownHostsFile /dev/null' 'UserKnownHostsFile ~/.ssh/known' 'StrictHostKeyChecking ask'
    echo '# mine' >"$HOSTS_DIR/home/.ssh/known"
    clean_start
    run_pmi -H 'h[0-2]' touch /root/ran
    expect_status 69
    expect_line 'h2: login: *Host key verification failed.'
    expect_lines_at_most 1
    [ "$(<"$HOSTS_DIR/home/.ssh/known")" = '# mine' ] || show_run "known hosts were changed"
    leftovers
}

@test "login shells: one that knows no assignment, redirection or quote, and a tcsh that talks" {
    cat >"$HOSTS_DIR/picky" <<'END'
#!/bin/bash
case $2 in
*[!A-Za-z0-9\ /._:,=+@%-]*) echo "picky: a character that I do not know in: $2" >&2 && exit 1 ;;
esac
for word in $2; do
    case $word in -* | /*) ;; *=*) echo "picky: an assignment: $word" >&2 && exit 1 ;; esac
done
exec sh -c "$2"
END
    chmod 755 "$HOSTS_DIR/picky"
    printf 'echo "welcome"\nstty erase x\nsetenv PATH /nowhere\n' >"$HOSTS_DIR/home/.tcshrc"
    local shell
    clean_start
    for shell in "$HOSTS_DIR/picky" "$(command -v tcsh)"; do
        [ -n "$shell" ] || continue
        on h2 sh -c 'sed "s#^\(root:.*:\).*#\1$1#" /etc/passwd >/dev/shm/passwd &&
            mount --bind /dev/shm/passwd /etc/passwd' sh "$shell"
        works 3 -H 'h[0-2]'
        on h2 sh -c 'umount /etc/passwd; rm /dev/shm/passwd'
    done
    leftovers
    rm "$HOSTS_DIR/home/.tcshrc"
}

@test "installed where the path has a blank: fine here, refused with a hint for other hosts" {
    local there="$HOSTS_DIR/a b"
    mkdir -p "$there/bootstrap"
    cp "$pmi_start" "$there/pmi-start"
    cp "$build/bootstrap/pmi-start-rsh" "$build/bootstrap/pmi-start-ssh" "$there/bootstrap/"
    clean_start
    run --separate-stderr on login "$there/pmi-start" --nodes=2 echo here
    expect_status 0
    run --separate-stderr on login "$there/pmi-start" -H h1 echo here
    expect_status 2
    expect_line "*'$there/pmi-start' cannot be given to the shell of another host*--remote-path"
    run --separate-stderr on login "$there/pmi-start" --remote-path="$pmi_start" -H h1 echo here
    expect_status 0
    leftovers
    rm -r "$there"
}

@test "started by a relative path, by PATH, and through a link" {
    local dir=${pmi_start%/*}
    ln -sf "$pmi_start" "$HOSTS_DIR/linked"
    cd "$dir"
    for way in './pmi-start' "../${dir##*/}/pmi-start" 'pmi-start' "$HOSTS_DIR/linked"; do
        run --separate-stderr on login env PATH="$dir:$PATH" "$way" -H h1 echo here
        [ "$status-$output" = 0-here ] || show_run "$way"
    done
    rm "$HOSTS_DIR/linked"
    leftovers
}

@test "a machine without ssh: local runs work, others are told what is missing" {
    local path
    path=$(path_without_pdsh)-ssh
    rm -rf "$path"
    cp -a "$HOSTS_DIR/no-pdsh" "$path"
    rm "$path/ssh"
    run_env PATH="$path" -- --nodes=2 "$client" init , exchange 1 10 0 new , finalize
    exchanged 2
    run_env PATH="$path" -- -H localhost "$client" init , exchange 1 10 0 new , finalize
    exchanged 1
    run_env PATH="$path" -- -H 'root@h1,h[2-3]' true
    expect_status 69
    expect_line 'root@h1,h\[2-3\]: login: cannot run ssh: No such file or directory'
    [ "${#stderr_lines[@]}" = 1 ] || show_run "more than one line"
    rm -r "$path"
    leftovers
}

@test "no more logins at once than the fan-out says, also when it is one" {
    local way n
    for way in pdsh ssh; do
        for n in 1 2; do
            rm -f "$agent_dir/peak"
            by_agent $way -H 'h[0-3]' --rsh-fanout=$n "$client" init , exchange 1 10 0 new , finalize
            exchanged 4
            (($(agent_peak) <= n)) || show_run "$(agent_peak) at once"
        done
    done
    leftovers
}

@test "of six hosts exactly those that failed are named, by ssh's words" {
    local way host
    for host in h1 h3; do order $host <<<"echo 'root@$host: Permission denied (publickey).' >&2; exit 255"; done
    clean_start
    for way in pdsh ssh; do
        by_agent $way -H 'h[0-3],h0,h2' touch /root/ran
        expect_status 69
        expect_line 'h\[1,3\]: login: Permission denied (publickey).'
        expect_lines_at_most 1
    done
    leftovers
}

@test "a login that breaks off each time, one that says nothing, one that only takes long" {
    local way
    for way in pdsh ssh; do
        order h2 <<<'echo "Connection to h2 closed by remote host." >&2; exit 255'
        clean_start
        by_agent $way -H 'h[0-2]' touch /root/ran
        expect_status 69
        expect_line 'h2: login: Connection to h2 closed by remote host.'
        expect_lines_at_most 1
    done
    order h2 <<<'exec sleep 600'
    by_agent ssh -H 'h[0-2]' --start-timeout=8s touch /root/ran
    expect_status 69
    expect_line 'h2: login: no answer within 8.0 s'
    expect_lines_at_most 1
    order h2 <<<'sleep 2'
    by_agent pdsh -H 'h[0-2]' "$client" init , exchange 1 10 0 new , finalize
    exchanged 3
    leftovers
}

@test "a job that takes too long in a login and in the tasks of another host" {
    order h2 <<<'exec sleep 600'
    clean_start
    by_agent ssh -H 'h[0-2]' --timeout=3s sleep 600
    expect_status 124
    expect_line 'the time limit of 3 s is over while hosts were started, waiting for h*'
    expect_lines_at_most 1
    leftovers
}
