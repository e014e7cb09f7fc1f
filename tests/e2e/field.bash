# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash
# field.bash - more for the tests of what users of other launchers ran into (load field, behind helpers)

# A file may say another number here, and have a `prepare`, for what is there before a run, and a `tidy`, for what a
# test can leave behind but the agent and changed files of hosts.
hosts_needed=3
setup_file() { need_hosts "$hosts_needed"; }

setup() {
    need_hosts "$hosts_needed"
    prepare
    clean_start
}

teardown() {
    end_failed
    tidy
    hosts_files_back
    rm -rf "$HOSTS_DIR/agent"
}

prepare() { :; }
tidy() { :; }

# refused LINE ARG...: bad use, of which nothing is started.
refused() {
    local line=$1
    shift
    run_pmi "$@" touch /root/ran
    expect_status 2
    expect_line "$line"
    expect_lines_at_most 1
}

# agent: a folder with an `ssh` to be put in front of PATH. It notes its arguments, one file a call with one argument a
# line, and how many of its kind run, does what was ordered for the host, and goes on as the real one. Nothing of it is
# left from an earlier test.
agent() {
    agent_dir=$HOSTS_DIR/agent
    rm -rf "$agent_dir"
    mkdir -p "$agent_dir/calls" "$agent_dir/now" "$agent_dir/orders"
    cat >"$agent_dir/ssh" <<END
#!/bin/bash
PATH=/usr/bin:/bin dir=$agent_dir
host=\${*: -2:1} host=\${host##*@}
printf '%s\n' "\$@" >"\$dir/calls/\$\$"
touch "\$dir/now/\$\$"
trap 'rm -f "\$dir/now/\$\$"' EXIT
ls "\$dir/now" | wc -l >>"\$dir/peak"
[ ! -e "\$dir/orders/\$host" ] || . "\$dir/orders/\$host"
$(command -v ssh) "\$@"
END
    chmod 755 "$agent_dir/ssh"
}

# order HOST: what the agent does for it first, from standard input.
order() { cat >"$agent_dir/orders/$1"; }

# by_agent WAY ARG...: pmi-start with the agent, where WAY is pdsh or ssh
by_agent() {
    local path=$PATH
    [ "$1" = pdsh ] || path=$(path_without_pdsh)
    shift
    run_env PATH="$agent_dir:$path" -- "$@"
}

# How many logins the agent had under way at once, at most.
agent_peak() { sort -n "$agent_dir/peak" | tail -n 1; }

# hosts_file HOST LINE...: that host's /etc/hosts has more lines in front, until hosts_files_back.
hosts_file() {
    local host=$1
    shift
    printf '%s\n' "$@" | on "$host" sh -c 'cat - /etc/hosts >/dev/shm/hosts && mount --bind /dev/shm/hosts /etc/hosts'
    changed_hosts+=("$host")
}
changed_hosts=()

hosts_files_back() {
    local host
    for host in "${changed_hosts[@]}"; do
        on "$host" sh -c 'umount /etc/hosts; rm -f /dev/shm/hosts'
    done
    changed_hosts=()
}

address_of() { on "$1" hostname -I | cut -d' ' -f1; }
