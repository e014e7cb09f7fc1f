#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# down.sh [HOST...] - without names: end the cluster and remove every trace of it; with names: crash these hosts
#
# The first process of a host is killed, and the kernel ends all others of its process namespace with it, whatever they
# made of themselves. A crashed host's network stays and answers with resets; up.sh starts it again. For a host
# that is silent instead, cut its cable: ip -n PREFIXlogin link set vHOST down.
set -u
. "$(dirname "$0")/common.sh"

stop_host() {
    local outer start pid i
    read -r outer start _ _ <"$HOSTS_DIR/pid/$1" || return
    pid=$(init_pid "$1") && kill -KILL "$pid"
    for ((i = 0; i < 500; i++)); do
        [ "$(started_at "$outer")" = "$start" ] || break
        grep -q '^State:.Z' "/proc/$outer/status" 2>/dev/null && break
        sleep 0.01
    done
    rm -f "$HOSTS_DIR/pid/$1"
}

remove_networks() {
    local ns names=''
    for ns in /run/netns/"$HOSTS_PREFIX"*; do
        [ -e "$ns" ] && names+="netns del ${ns##*/}"$'\n'
    done
    [ -z "$names" ] || ip -force -batch - <<<"$names"
}

restore_neighbour_limit() {
    local a b c
    { read -r a b c <"$HOSTS_DIR/neighbour"; } 2>/dev/null || return
    echo "$a" >"$NEIGH/gc_thresh1"
    echo "$b" >"$NEIGH/gc_thresh2"
    echo "$c" >"$NEIGH/gc_thresh3"
}

[ -d "$HOSTS_DIR" ] || exit 0
if [ $# -gt 0 ]; then
    for host; do stop_host "$host"; done
    exit 0
fi
for host in $(recorded); do stop_host "$host"; done
# Only what up.sh made is removed: without its settings the prefix is just a guess.
if [ -f "$HOSTS_DIR/settings" ]; then
    remove_networks
    restore_neighbour_limit
    rm -rf --one-file-system "$HOSTS_DIR"
fi
