# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash
# shellcheck disable=SC2034 # set here, used by those who source it
# common.sh - settings and small functions of the scripts in this folder (sourced, never run)
#
# Settings, all from the environment:
#   HOSTS_DIR          where the state lives (/run/pmi-start-hosts); one folder is one cluster
#   HOSTS_PREFIX       put before the names of its network namespaces (pmst-); must differ between two clusters
#   HOSTS_NET          first two bytes of its addresses (10.88); never seen outside the cluster's own namespaces
#   HOSTS_SHOW         more folders, colon separated, that every host sees although they lie under /tmp or /root;
#                      the checkout and the current folder are always shown
#   HOSTS_FASTKEX      if set, ssh uses a cheap key exchange: 0.1 s less a login
#   HOSTS_SETENV       NAME=VALUE that each login finds in its environment
#   HOSTS_MAXSTARTUPS  sshd's limit for unauthenticated connections (256:30:512)
# Prefix and addresses are fixed by the first up.sh and kept in the state folder; the other scripts need HOSTS_DIR only.

HOSTS_DIR=${HOSTS_DIR:-/run/pmi-start-hosts}
if [ -r "$HOSTS_DIR/settings" ]; then
    read -r HOSTS_PREFIX HOSTS_NET <"$HOSTS_DIR/settings"
fi
HOSTS_PREFIX=${HOSTS_PREFIX:-pmst-}
HOSTS_NET=${HOSTS_NET:-10.88}
HOSTS_MAX=1000
NEIGH=/proc/sys/net/ipv4/neigh/default

say() { echo "${0##*/}: $*" >&2; }
fail() { say "$*"; exit 1; }

# Names of all hosts that are recorded as started, one a line.
recorded() {
    local f
    for f in "$HOSTS_DIR"/pid/*; do
        [ -e "$f" ] && echo "${f##*/}"
    done
}

address=''

# Sets $address, that of host number $1: no subshell, as this runs a thousand times for /etc/hosts.
set_address() { printf -v address '%s.%d.%d' "$HOSTS_NET" $((1 + $1 / 250)) $((1 + $1 % 250)); }

# Start time of a process in clock ticks: with it a recorded pid that was given to somebody else is recognised.
started_at() {
    local stat
    { read -r stat <"/proc/$1/stat"; } 2>/dev/null || return 1
    stat=${stat##*) }
    # shellcheck disable=SC2086 # split on purpose
    set -- $stat
    echo "${20}"
}

# The pid, seen from here, of a host's first process; fails when the host does not run.
# A record is: pid and start time of unshare(1), then those of its child, the host's pid 1.
init_pid() {
    local start pid
    { read -r _ _ pid start <"$HOSTS_DIR/pid/$1"; } 2>/dev/null || return 1
    [ -n "$start" ] || return 1 # one that had ended before its record was written
    [ "$(started_at "$pid")" = "$start" ] || return 1
    echo "$pid"
}

# on HOST COMMAND...: run it there, not through ssh, in the same folder where the host has it.
on() {
    local pid
    pid=$(init_pid "$1") || {
        say "host $1 does not run"
        return 1
    }
    shift
    # The folder is entered behind the namespaces: nsenter's --wd would leave us in a folder outside of the host's tree.
    # It ends as the command did, by SIGINT also where that is ignored in the background of a script.
    # shellcheck disable=SC2016 # for the inner shell
    HOME=/root USER=root LOGNAME=root env --default-signal=INT \
        nsenter -t "$pid" -m -u -i -n -p -- sh -c 'cd "$1" 2>/dev/null || cd /; shift; exec "$@"' sh "$PWD" "$@"
}
