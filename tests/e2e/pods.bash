# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash disable=SC2034,SC2154 # what helpers.bash sets, and reads
# pods.bash - pods of an Indexed Job, played in the namespaces of a host each (load pods)
#
# Pod I is on host hI: a process namespace whose first process is pmi-start, the host name sim-I, an /etc/hosts of its
# own in the place of the cluster's DNS, a root file system that cannot be written, no /dev/shm to write to, a user who
# is in no passwd file and has no capabilities, and an environment with next to nothing in it.

POD_UID=1234567
declare -gA pod_pid=()

# A secret as a Secret is mounted with defaultMode 0440 and an fsGroup.
pod_secret() {
    rm -f "$1"
    "$pmi_start" --new-secret="$1"
    chgrp "$POD_UID" "$1"
    chmod 440 "$1"
}

# pod_names I LINE...: what pod I can look up, from now on.
pod_names() {
    local file=$HOSTS_DIR/pod$1.hosts
    shift
    # Written into, for it is mounted.
    printf '127.0.0.1 localhost\n%s\n' "$(printf '%s\n' "$@")" >"$file"
}

launcher_known() {
    local i
    for i in "$@"; do pod_names "$i" "$(address_of_pod 0) sim-0.sim"; done
}

address_of_pod() { awk -v host="h$1" '$2 == host { print $1 }' "$HOSTS_DIR/hosts"; }

# run_pod I ARG...: what Kubernetes does. POD_INDEX and POD_SECRET are those of another pod, if they are set; POD_SHM
# are the options of a /dev/shm that can be used.
# shellcheck disable=SC2016 # for the inner shell
run_pod() {
    local i=$1
    shift
    on "h$i" env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin JOB_COMPLETION_INDEX="${POD_INDEX-$i}" POD_NAME="sim-$i" \
        timeout -s KILL "$RUN_LIMIT" unshare --mount --uts --pid --fork --kill-child=KILL --mount-proc \
        sh -c 'hostname "sim-$1" && mount --bind "$2" /etc/hosts && mount -t tmpfs -o "$4" none /dev/shm &&
            mount -t tmpfs -o ro,size=4k none /root && mount -o remount,bind,ro / &&
            uid=$3 && shift 4 && cd / &&
            exec setpriv --reuid="$uid" --regid="$uid" --clear-groups --no-new-privs --inh-caps=-all \
                --bounding-set=-all "$@"' sh \
        "${POD_INDEX-$i}" "$HOSTS_DIR/pod$i.hosts" "$POD_UID" "${POD_SHM:-ro,size=4k}" \
        "$pmi_start" --bootstrap=k8s --secret-file="${POD_SECRET-$HOSTS_DIR/key}" "$@"
}

# start_pod I ARG...: in the background, its log in podI.out and podI.err. POD_NAME is another name for it.
start_pod() {
    local name=pod${POD_AS-$1}
    : >"$BATS_TEST_TMPDIR/$name.out" 2>"$BATS_TEST_TMPDIR/$name.err"
    run_pod "$@" </dev/null >"$BATS_TEST_TMPDIR/$name.out" 2>"$BATS_TEST_TMPDIR/$name.err" 3>&- &
    pod_pid[$name]=$!
}

# wait_pod NAME: sets $status, $output and $stderr.
wait_pod() {
    status=0
    wait "${pod_pid[pod$1]}" || status=$?
    output=$(<"$BATS_TEST_TMPDIR/pod$1.out")
    stderr=$(<"$BATS_TEST_TMPDIR/pod$1.err")
}

# ended_with STATUS NAME...: each of these pods, whose words are nothing or how the run has ended.
ended_with() {
    local want=$1 name
    shift
    for name in "$@"; do
        wait_pod "$name"
        expect_status "$want"
        [ -z "$output" ] || show_run "pod $name has output of its own"
    done
}

# The first process of the pod on host hI, as it is numbered on the host.
# shellcheck disable=SC2016
pod_init() {
    on "h$1" sh -c 'grep -lsE "^NSpid:[[:space:]]+[0-9]+[[:space:]]+1$" /proc/[0-9]*/status | cut -d/ -f3'
}
