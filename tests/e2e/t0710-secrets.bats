# SPDX-License-Identifier: BSD-3-Clause
# The secrets of a run are in the memory of its launcher and providers, and nowhere else: in no argument, environment or file that
# anybody could read, with whatever bootstrap; nor in a core dump; nor can a task look for them there. What lets one into a run
# is there no longer than somebody is awaited.
load helpers
load pods

watch=$BATS_TEST_DIRNAME/watch.py

setup_file() {
    need_hosts 3
    unset GLIBC_TUNABLES # under which free() would wipe for us
}

setup() {
    clean_start
    mkfifo "$BATS_TEST_TMPDIR/input" "$BATS_TEST_TMPDIR/watch.in"
    exec {input}<>"$BATS_TEST_TMPDIR/input" {over}<>"$BATS_TEST_TMPDIR/watch.in"
    START_INPUT=$BATS_TEST_TMPDIR/input
}

teardown() {
    [ -n "${BATS_TEST_COMPLETED:-}" ] || [ -z "${watcher:-}" ] || kill "$watcher" 2>/dev/null || true
    end_failed
    [ -z "${slurm_is_up:-}" ] || "$hosts_scripts/slurm.sh" down
    rm -f "$HOSTS_DIR"/key "$HOSTS_DIR"/pod*.hosts "$HOSTS_DIR/go"
}

begin_watch() {
    rm -f "$BATS_TEST_TMPDIR/watch.out" "$BATS_TEST_TMPDIR/record" "$BATS_TEST_TMPDIR"/run.*
    "$watch" watch "$BATS_TEST_TMPDIR/record" <"$BATS_TEST_TMPDIR/watch.in" >"$BATS_TEST_TMPDIR/watch.out" 3>&- &
    watcher=$!
    wait_until 10 says watch.out watching
}

end_watch() {
    echo over >&"$over"
    wait "$watcher"
}

# A job of three ranks that runs until it is told to go on.
# shellcheck disable=SC2016 # for the task
job=(sh -c '[ "$PMI_RANK" != 0 ] || { echo running; read -r go; }; exec "$@"' sh
    "$client" init , exchange 5 10 2 fresh , finalize)

go_on() { echo go >&"$input"; }

# outside HOST PID: a process of the host, as it is numbered here.
outside() {
    local pid
    for pid in $(grep -lE "^NSpid:.*[[:space:]]$2\$" /proc/[0-9]*/status 2>/dev/null | cut -d/ -f3); do
        [ "$(readlink "/proc/$pid/ns/pid")" != "$(readlink "/proc/$(init_pid "$1")/ns/pid")" ] || echo "$pid"
    done
}

# A worker on HOST that is no launcher, as it is numbered here.
# shellcheck disable=SC2016
provider_of() {
    outside "$1" "$(on "$1" sh -c 'for pid in $(grep -lx pmi-keeper /proc/[0-9]*/comm | cut -d/ -f3); do
        parent=$(sed -n "s/^PPid:\t//p" /proc/$pid/status)
        tr "\0" "\n" </proc/$parent/cmdline | grep -qE "^--(pmi-port|join)=" && echo $parent; done | head -n 1')"
}

# whole_start HOST OPTION...: the secrets of a run, among them what its launcher and the provider on HOST have in common, do
# not show outside of these processes. Sets $output and $keys: what did show and looks like a key.
whole_start() {
    local host=$1
    shift
    begin_watch
    start_pmi run --fanout=1 "$@" "${job[@]}"
    by_hand
    wait_until 20 says run.out running
    find_secrets "$(outside login "$(launcher)")" "$(provider_of "$host")"
    while_running
    go_on
    wait_pmi run
    all_right
    none_was_seen
}

# What both of these processes have.
find_secrets() {
    "$watch" shared "$1" "$2" >"$BATS_TEST_TMPDIR/secrets"
    [ -s "$BATS_TEST_TMPDIR/secrets" ] || show_run "no secrets were found"
}

all_right() {
    expect_status 0
    [[ $output == *'exchange: 3 ranks, 5 rounds, all right' ]] || show_run "not as it should be"
}

none_was_seen() {
    end_watch
    keys=$("$watch" keys "$BATS_TEST_TMPDIR/record")
    # The fingerprint of the launcher's key is public, and in the memory of both as any other.
    nothing_shows "$(grep -vxF "${keys:-none}" "$BATS_TEST_TMPDIR/secrets")"
    leftovers 10 # Slurm's own daemons have a moment
}

# nothing_shows LINES: none of these, which are in hex, was seen.
nothing_shows() {
    local found
    found=$("$watch" find "$BATS_TEST_TMPDIR/record" <<<"$1" | head -n 3 | cut -c1-300)
    [ -z "$found" ] || show_run "$found"
}

# What a test does while hosts are awaited, and while the job runs.
by_hand() { :; }
while_running() { :; }

launcher_holds() { "$watch" holds "$(outside login "$(launcher)")" "$1"; }
provider_holds() {
    local pid
    pid=$(provider_of "$1")
    [ -n "$pid" ] && "$watch" holds "$pid" "$2"
}

# all_hold FILE HOST...: launcher and providers have what is in it. nobody_holds: none of them has.
all_hold() {
    local file=$1 host
    shift
    launcher_holds "$file" || show_run "the launcher does not have it"
    for host in "$@"; do
        wait_until 20 provider_holds "$host" "$file"
    done
}

nobody_holds() {
    local file=$1 host
    shift
    ! launcher_holds "$file" || show_run "the launcher has it still"
    for host in "$@"; do
        ! provider_holds "$host" "$file" || show_run "$host has it still"
    done
    look_for "$file"
}

# To be looked for elsewhere.
look_for() { od -An -v -tx1 "$1" | tr -d ' \n' | sed 's/$/\n/' >>"$BATS_TEST_TMPDIR/secrets"; }

# Nothing else that looks like a key shows but the fingerprint in the provider's command line, and its own in its key line.
one_public_key() {
    [[ $keys =~ ^[0-9a-f]{64}$ ]] || show_run "keys: $keys"

    grep -qaF -- "--pmi-key=$keys" "$BATS_TEST_TMPDIR/record"
}

@test "the watch sees what is there to be seen" {
    local secret=000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f where
    begin_watch
    on h1 env S=AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8= python3 -c 'import os, sys
secret = bytes.fromhex(sys.argv[1])
os.write(os.memfd_create("x"), secret)
with open("/dev/shm/seen", "wb") as file:
    file.write(secret)
print("made", flush=True)
sys.stdin.readline()
os.unlink("/dev/shm/seen")' $secret <"$BATS_TEST_TMPDIR/input" >"$BATS_TEST_TMPDIR/seen.out" 3>&- &
    wait_until 10 says seen.out made
    end_watch
    echo $secret | "$watch" find "$BATS_TEST_TMPDIR/record" >"$BATS_TEST_TMPDIR/found"
    for where in 'h1 argument' 'h1 environment' 'h1 file /dev/shm/seen' 'h1 nameless' 'anybody argument'; do
        says found "^$where: $secret" || show_run "not seen: $where"
    done
    "$watch" keys "$BATS_TEST_TMPDIR/record" | grep -qx $secret
    go_on
    wait $!
}

@test "played nodes" {
    whole_start login --nodes=3
    one_public_key
}

@test "ssh by pdsh, with logins that end and logins that stay" {
    whole_start h1 -H 'h[0-2]'
    one_public_key
    whole_start h1 -H 'h[0-2]' --rsh-attach=yes
    one_public_key
}

@test "ssh by itself" {
    PATH=$(path_without_pdsh):$PATH whole_start h1 -H 'h[0-2]'
    one_public_key
}

@test "a tree of logins: each host that logs in to others has one public key for them" {
    local key
    whole_start h0 -H 'h[0-2]' --rsh-tree=1
    [ "$(wc -l <<<"$keys")" = 3 ] || show_run "keys: $keys" # the launcher's, h0's and h1's
    for key in $keys; do
        grep -qaF -- "--pmi-key=$key" "$BATS_TEST_TMPDIR/record" || show_run "$key is in no command line"
    done
}

@test "a script of the site's; the key of the run is wiped when all are in" {
    local script told=$HOSTS_DIR/pmi-start-told key=$BATS_TEST_TMPDIR/key
    rm -f "$told" "$told.go"
    # h1's provider is not the program but one that tells the key.
    script=$(site_script telling <<END
ssh h0 "env -u GLIBC_TUNABLES \$PMI_PROVIDER" --pmi-rank=0 &
ssh h1 python3 $BATS_TEST_DIRNAME/stranger.py provider --how=key "\$PMI_PROVIDER" --pmi-rank=1 2>'$told' &
while [ ! -e '$told.go' ]; do sleep 0.05; done
ssh h2 "env -u GLIBC_TUNABLES \$PMI_PROVIDER" --pmi-rank=2 &
wait
END
    )
    # shellcheck disable=SC2016 # for the task
    job=(sh -c '[ "$PMI_RANK" != 0 ] || { echo running; read -r go; echo "exchange: 3 ranks, 5 rounds, all right"; }')
    by_hand() {
        wait_until 20 test -s "$told"
        sed -n 's/^the key of the run is //p' "$told" | python3 -c 'import sys
sys.stdout.buffer.write(bytes.fromhex(sys.stdin.read()))' >"$key"
        [ "$(stat -c %s "$key")" = 32 ]
        all_hold "$key" h0
        touch "$told.go"
    }
    while_running() { nobody_holds "$key" h0 h2; }
    whole_start h2 -H 'h[0-2]' --fanout=32 --rsh-command="$script"
    one_public_key
    rm "$told" "$told.go"
}

@test "providers by hand, with a secret of their own; it is wiped when all are in" {
    local secret=$HOSTS_DIR/secret
    rm -f "$secret"
    run_pmi --new-secret="$secret"
    by_hand() {
        local host line
        wait_until 10 says run.err '^pmi-start: h2: '
        for host in h0 h1 h2; do
            line=$(sed -n "s/^pmi-start: $host: //p" "$BATS_TEST_TMPDIR/run.err")
            # shellcheck disable=SC2086 # a command line
            on $host $line </dev/null 3>&- &
            [ $host != h1 ] || all_hold "$secret" h0 h1
        done
    }
    while_running() { nobody_holds "$secret" h0 h1 h2; }
    whole_start h1 --bootstrap=manual --secret-file="$secret" -H 'h[0-2]'
    [ -z "$keys" ] || show_run "keys: $keys"
    rm "$secret"
}

@test "nodes that come by themselves, with a secret of their own; it is wiped when all are in" {
    local secret=$HOSTS_DIR/secret joined=()
    rm -f "$secret"
    run_pmi --new-secret="$secret"
    by_hand() {
        local i
        for i in 0 1 2; do
            on "h$i" "$pmi_start" --join=login:7721 --node=$i --nodes=3 --secret-file="$secret" </dev/null 3>&- &
            joined+=($!)
            [ $i != 1 ] || all_hold "$secret" h0 h1
        done
    }
    while_running() { nobody_holds "$secret" h0 h1 h2; }
    whole_start h1 --bootstrap=manual --secret-file="$secret" --port=7721 -H 'h[0-2]'
    wait "${joined[@]}"
    [ -z "$keys" ] || show_run "keys: $keys"
    rm "$secret"
}

# in_pod I: the first process of that pod, as it is numbered here.
# Pods on other hosts may have the same number there, but not this host's network.
in_pod() {
    local pid
    for pid in $(grep -lsE "^NSpid:.*[[:space:]]$(pod_init "$1")[[:space:]]1\$" /proc/[0-9]*/status | cut -d/ -f3); do
        [ "$(readlink "/proc/$pid/ns/net")" != "$(readlink "/proc/$(init_pid "h$1")/ns/net")" ] || echo "$pid"
    done
}

@test "pods of a Job; their secret is wiped when all are in" {
    local i secret=$HOSTS_DIR/key
    pod_secret "$secret"
    launcher_known 0 1 2
    begin_watch
    # The file's owner is another user's than the pods', and so is what waits.
    # shellcheck disable=SC2016 # for the task
    job=(--nodes=3 --fanout=1 sh -c '[ "$PMI_RANK" != 0 ] || { echo running; until [ -e "$1" ]; do sleep 0.05; done; }
        shift; exec "$@"' sh "$HOSTS_DIR/go" "$client" init , exchange 5 10 2 fresh , finalize)
    start_pod 0 "${job[@]}"
    start_pod 1 "${job[@]}"
    for i in 0 1; do
        wait_until 20 pod_holds $i "$secret"
    done
    start_pod 2 "${job[@]}"
    wait_until 20 says pod0.out running
    find_secrets "$(in_pod 0)" "$(in_pod 1)"
    for i in 0 1 2; do
        ! "$watch" holds "$(in_pod $i)" "$secret" || show_run "pod $i has it still"
    done
    look_for "$secret"
    touch "$HOSTS_DIR/go"
    wait_pod 0
    all_right
    ended_with 0 1 2
    none_was_seen
    [ -z "$keys" ] || show_run "keys: $keys"
}

pod_holds() {
    local pid
    pid=$(in_pod "$1")
    [ -n "$pid" ] && "$watch" holds "$pid" "$2"
}

# aborting NAME HOST COMMAND...: run it with no limit on cores in a folder of its own, until abort NAME, which succeeds where
# it has left a core, as the system says. Its output is in NAME.out and NAME.err.
aborting() {
    local name=$1 host=$2
    shift 2
    mkfifo "$BATS_TEST_TMPDIR/$name.in"
    on "$host" timeout 60 python3 -c 'import os, resource, signal, subprocess, sys
os.makedirs("/tmp/cores", exist_ok=True)
os.chdir("/tmp/cores")
resource.setrlimit(resource.RLIMIT_CORE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
child = subprocess.Popen(sys.argv[1:], stdin=subprocess.DEVNULL)
sys.stdin.readline()
child.send_signal(signal.SIGABRT)
status = os.waitpid(child.pid, 0)[1]
for name in os.listdir():
    os.unlink(name)
os.chdir("/")
os.rmdir("/tmp/cores")
sys.exit(0 if os.WCOREDUMP(status) else 10 if os.WTERMSIG(status) == signal.SIGABRT else 1)' "$@" \
        <"$BATS_TEST_TMPDIR/$name.in" >"$BATS_TEST_TMPDIR/$name.out" 2>"$BATS_TEST_TMPDIR/$name.err" 3>&- &
    aborted[$name]=$!
    exec {word_to[$name]}>"$BATS_TEST_TMPDIR/$name.in"
}
declare -gA aborted=() word_to=()

abort() {
    echo now >&"${word_to[$1]}"
    wait "${aborted[$1]}"
}

leaves_no_core() {
    local rc=0
    abort "$1" || rc=$?
    [ $rc = 10 ] || show_run "$1: $rc $(cat "$BATS_TEST_TMPDIR/$1.err")"
}

# shellcheck disable=SC2016 # for the task
@test "neither launcher nor provider leaves a core; the keepers have no secret; tasks have the limit of cores of their user" {
    local secret=$HOSTS_DIR/secret sleeper=(sh -c 'echo running; exec sleep 60') line keeper
    aborting control login "${sleeper[@]}"
    wait_until 10 says control.out running
    abort control || skip "this system writes no cores"
    rm -f "$secret"
    run_pmi --new-secret="$secret"
    aborting launcher login "$pmi_start" --bootstrap=manual --secret-file="$secret" -H h0 "${sleeper[@]}"
    wait_until 10 says launcher.err '^pmi-start: h0: '
    launcher_holds "$secret"
    for keeper in $(outside login "$(keepers login)"); do
        ! "$watch" holds "$keeper" "$secret" || show_run "the launcher's keeper has it"
    done
    line=$(sed -n "s/^pmi-start: h0: //p" "$BATS_TEST_TMPDIR/launcher.err")
    # shellcheck disable=SC2086 # a command line
    aborting provider h0 $line --pmi-attach=yes
    wait_until 10 says launcher.out running
    for keeper in $(outside login "$(keepers login)") $(outside h0 "$(keepers h0)"); do
        ! "$watch" holds "$keeper" "$secret" || show_run "a keeper has it"
    done
    leaves_no_core provider
    wait_until 10 says launcher.err '^pmi-start: h0: lost'
    abort launcher || true # it has ended, for want of its host
    aborting again login "$pmi_start" --nodes=2 "${sleeper[@]}"
    wait_until 10 says again.out running
    leaves_no_core again
    leftovers 7
    run on login bash -c "ulimit -c 4000 && exec '$pmi_start' --nodes=2 bash -c 'ulimit -c'"
    [ "$output" = $'4000\n4000' ] || show_run "another limit"
    rm "$secret"
}

# What may have a core can also be read by any process of its user. A keeper can, and has nothing.
@test "a task cannot look into the processes that hold the keys" {
    cat >"$HOSTS_DIR/look.py" <<'END'
import os
for pid in filter(str.isdigit, os.listdir("/proc")):
    try:
        with open(f"/proc/{pid}/comm") as file:
            comm = file.read().strip()
        if not comm.startswith("pm"):
            continue
        seen = []
        for what in ("environ", "maps", "mem", "fd"):
            try:
                os.listdir(f"/proc/{pid}/fd") if what == "fd" else open(f"/proc/{pid}/{what}", "rb").read(1)
                seen.append(what)
            except PermissionError:
                pass
            except OSError:
                seen.append(what)
        print(comm, *seen)
    except FileNotFoundError:
        continue
END
    run on login setpriv --reuid=65534 --regid=65534 --clear-groups env HOME=/nowhere \
        "$pmi_start" --nodes=2 -n 1 -C / python3 "$HOSTS_DIR/look.py"
    stderr=''
    [ "$status" = 0 ] || show_run "status $status"
    [ "$(sort -u <<<"$output")" = $'pmi-keeper environ maps mem fd\npmi-start' ] || show_run "that is not all it should see"
}

@test "srun within an allocation" {
    local real=$pmi_start pmi_start
    "$hosts_scripts/slurm.sh" up 3
    slurm_is_up=1
    clean_start
    pmi_start=$(site_script allocated <<<"exec salloc --quiet -N3 '$real' \"\$@\"")
    whole_start h1
    one_public_key
    grep -qa 'srun' "$BATS_TEST_TMPDIR/record" || show_run "no srun was seen"
}
