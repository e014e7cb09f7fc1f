#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# up.sh N - have hosts h0 .. h(N-1), and "login", on this machine
#
# A host is a set of namespaces (network, host name, processes, mounts, IPC) whose first process is a real sshd, with a
# /tmp, /dev/shm and /etc/hosts of its own; /root is one empty home for all of them, as over NFS. Everything else of
# the file system is this machine's. Hosts that run already are left alone, so a larger N adds some. Needs root and
# Debian's openssh-server, openssh-client, iproute2 and util-linux. Settings: common.sh.
set -u
here=$(cd "$(dirname "$0")" && pwd)
. "$here/common.sh"

# Everything that all hosts of the cluster read.
write_files() {
    local d=$HOSTS_DIR i
    mkdir -p "$d/pid" "$d/log" "$d/home" "$d/ssh" /run/sshd || exit 1
    chmod 700 "$d/ssh" "$d/home"
    echo "$HOSTS_PREFIX $HOSTS_NET" >"$d/settings"
    [ -f "$d/ssh/host_key" ] || ssh-keygen -q -t ed25519 -N '' -C '' -f "$d/ssh/host_key" || exit 1
    [ -f "$d/ssh/id" ] || ssh-keygen -q -t ed25519 -N '' -C '' -f "$d/ssh/id" || exit 1
    echo "* $(cat "$d/ssh/host_key.pub")" >"$d/ssh/known_hosts"
    # sshd without PAM turns away a root that is locked by "!" in shadow(5), as it is on many fresh machines.
    (umask 077 && sed -n 's/^root:[^:]*/root:*/p' /etc/shadow >"$d/shadow")
    { sed 's/^hosts:.*/hosts: files/' /etc/nsswitch.conf 2>/dev/null || echo 'hosts: files'; } >"$d/nsswitch.conf"
    {
        printf '127.0.0.1 localhost\n%s.0.1 login\n' "$HOSTS_NET"
        for ((i = 0; i < HOSTS_MAX; i++)); do
            set_address "$i"
            echo "$address h$i"
        done
    } >"$d/hosts"
    write_ssh_files "$d/ssh"
}

write_ssh_files() {
    cat >"$1/sshd_config" <<END
HostKey $1/host_key
AuthorizedKeysFile $1/id.pub
PermitRootLogin prohibit-password
PasswordAuthentication no
KbdInteractiveAuthentication no
StrictModes no
UsePAM no
UseDNS no
PrintMotd no
PrintLastLog no
PidFile none
MaxStartups ${HOSTS_MAXSTARTUPS:-256:30:512}
MaxSessions 64
${HOSTS_SETENV:+SetEnv $HOSTS_SETENV}
END
    cat >"$1/ssh_config" <<END
Host *
    IdentityFile $1/id
    IdentitiesOnly yes
    GlobalKnownHostsFile $1/known_hosts
    UserKnownHostsFile ~/.ssh/known_hosts
    StrictHostKeyChecking yes
    UpdateHostKeys no
    LogLevel ERROR
    GSSAPIAuthentication no
${HOSTS_FASTKEX:+    KexAlgorithms curve25519-sha256}
END
}

# The kernel's limit of neighbour entries is one for all namespaces: with the usual 1024, some 32 hosts that all talk
# to each other run into "No route to host". down.sh puts the old values back.
raise_neighbour_limit() {
    local now=() i
    for i in 1 2 3; do now+=("$(<"$NEIGH/gc_thresh$i")"); done
    if [ "$1" -lt 24 ] || [ "${now[2]}" -ge 65536 ]; then return; fi
    [ -f "$HOSTS_DIR/neighbour" ] || echo "${now[@]}" >"$HOSTS_DIR/neighbour"
    { echo 65536 >"$NEIGH/gc_thresh3" && echo 32768 >"$NEIGH/gc_thresh2" &&
        echo 16384 >"$NEIGH/gc_thresh1"; } 2>/dev/null ||
        say "cannot raise $NEIGH/gc_thresh3: stay below 30 hosts"
}

# The bridge is in login's namespace: the machine itself gets no address and no route, so nothing that is sent to a
# host which is gone can leave through the machine's real network.
make_bridge() {
    local ns=${HOSTS_PREFIX}login
    [ -e "/run/netns/$ns" ] || ip netns add "$ns" || exit 1
    ip -n "$ns" link show br0 >/dev/null 2>&1 && return
    ip -n "$ns" -batch - <<END || exit 1
link set lo up
link add br0 type bridge
addr add $HOSTS_NET.0.1/16 dev br0
link set br0 up
END
}

# Namespaces and cables of the hosts that have none yet, in two calls of ip(8).
make_networks() {
    local i ns spaces='' cables='' inside=()
    for ((i = 0; i < $1; i++)); do
        ns=${HOSTS_PREFIX}h$i
        [ -e "/run/netns/$ns" ] && continue
        spaces+="netns add $ns"$'\n'
        cables+="link add vh$i type veth peer name eth0 netns $ns"$'\n'"link set vh$i master br0 up"$'\n'
        inside+=("$i")
    done
    [ -n "$spaces" ] || return
    ip -batch - <<<"$spaces" && ip -n "${HOSTS_PREFIX}login" -batch - <<<"$cables" || exit 1
    for i in "${inside[@]}"; do
        set_address "$i"
        ip -n "${HOSTS_PREFIX}h$i" -batch - <<END || exit 1
link set lo up
addr add $address/16 dev eth0
link set eth0 up
END
    done
}

# Start one host in the background; its record is written by note_pid().
start_host() {
    : >"$HOSTS_DIR/log/$1"
    ip netns exec "$HOSTS_PREFIX$1" unshare -m -u -i -p -f --kill-child --mount-proc \
        bash "$here/host-init.sh" "$1" "$HOSTS_DIR" "$show" </dev/null >"$HOSTS_DIR/log/$1" 2>&1 &
    outer[$1]=$!
}

note_pid() {
    local o=${outer[$1]} child='' i
    for ((i = 0; i < 500; i++)); do
        # The kernel puts no newline after the pid, so read fails although it has read it.
        { read -r child <"/proc/$o/task/$o/children"; } 2>/dev/null
        child=${child%% *}
        [ -n "$child" ] && break
        [ -d "/proc/$o" ] || fail "$1 ended at its start: $(tail -n 3 "$HOSTS_DIR/log/$1")"
        sleep 0.01
    done
    [ -n "$child" ] || fail "$1 did not start"
    echo "$o $(started_at "$o") $child $(started_at "$child")" >"$HOSTS_DIR/pid/$1"
}

wait_for_sshd() {
    local i
    for ((i = 0; i < 1000; i++)); do
        grep -qs 'Server listening on 0.0.0.0' "$HOSTS_DIR/log/$1" && return
        init_pid "$1" >/dev/null || break
        sleep 0.01
    done
    fail "$1 has no sshd: $(tail -n 3 "$HOSTS_DIR/log/$1")"
}

count=${1:-}
if ! [[ $count =~ ^[0-9]{1,4}$ ]] || ((count < 1 || count > HOSTS_MAX)); then
    fail "usage: up.sh N, N from 1 to $HOSTS_MAX"
fi
[ "$(id -u)" = 0 ] || fail "needs root: it makes network namespaces"
for tool in ip nsenter unshare ssh-keygen /usr/sbin/sshd; do
    command -v "$tool" >/dev/null || fail "$tool is missing (Debian: iproute2 util-linux openssh-client openssh-server)"
done
[ -f "$HOSTS_DIR/hosts" ] || write_files
show=$(cd "$here/../.." && pwd):$PWD:$HOSTS_DIR${HOSTS_SHOW:+:$HOSTS_SHOW}
raise_neighbour_limit "$count"
make_bridge
make_networks "$count"
declare -A outer=()
for ((i = -1; i < count; i++)); do
    host=h$i
    ((i >= 0)) || host=login
    init_pid "$host" >/dev/null || start_host "$host"
done
for host in "${!outer[@]}"; do note_pid "$host"; done
for host in "${!outer[@]}"; do wait_for_sshd "$host"; done
