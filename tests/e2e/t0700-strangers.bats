# SPDX-License-Identifier: BSD-3-Clause
# Somebody at the launcher's port, and at that of a provider inside the tree, who has no business there: whatever it does, the
# job starts and ends as if it were not there, it is held within the limits, and one line says that it was there.
load helpers
load field

stranger=$BATS_TEST_DIRNAME/stranger.py
PORT=7700 # the launcher's

setup_file() { need_hosts 4; }

setup() {
    clean_start
    agent
    RUN_LIMIT=60
}

teardown() {
    on h3 ip addr flush dev eth0 label eth0:far
    end_failed
}

# start_held NAME OPTION... COMMAND: a chain of three hosts, of which h2's login takes until let_in; h0 and h1 listen.
start_held() {
    local name=$1
    shift
    # shellcheck disable=SC2016 # for the agent
    echo 'while [ ! -e "$dir/go" ]; do sleep 0.05; done' | order h2
    PATH="$agent_dir:$PATH" start_pmi "$name" -H 'h[0-2]' --fanout=1 --port=$PORT "$@"
    wait_until 20 has_port h0
    wait_until 20 has_port h1
    where=("$(address_of login)" $PORT)
    inner=("$(address_of h0)" "$(port_of h0)")
}

let_in() { touch "$agent_dir/go"; }

# Ports that a host listens on, but sshd's.
# shellcheck disable=SC2016
ports_of() {
    local hex
    for hex in $(on "$1" awk '$4 == "0A" && $2 !~ /:0016$/ { sub(".*:", "", $2); print $2 }' /proc/net/tcp); do
        echo $((16#$hex))
    done
}
port_of() { ports_of "$1" | head -n 1; }
has_port() { [ -n "$(ports_of "$1")" ]; }
has_no_port() { ! has_port "$1"; }

# from_far N: N addresses of h3, as a list; a host of one address each, as the program sees it.
from_far() {
    local i list=''
    for ((i = 1; i <= $1; i++)); do
        on h3 ip addr add "$(address_of h3 | cut -d. -f1-2).200.$i/16" dev eth0 label eth0:far 2>/dev/null || true
        list+=,$(address_of h0 | cut -d. -f1-2).200.$i
    done
    echo "${list#,}"
}

# meet NAME HOST WAY ADDRESS PORT OPTION...: a stranger in the background, what it says in NAME.out. leave NAME ends it.
declare -gA met=() line_to=()
meet() {
    local name=$1 host=$2
    shift 2
    mkfifo "$BATS_TEST_TMPDIR/$name.in"
    on "$host" timeout 60 python3 "$stranger" "$@" <"$BATS_TEST_TMPDIR/$name.in" >"$BATS_TEST_TMPDIR/$name.out" \
        2>"$BATS_TEST_TMPDIR/$name.err" 3>&- &
    met[$name]=$!
    exec {line_to[$name]}>"$BATS_TEST_TMPDIR/$name.in"
}

leave() {
    echo >&"${line_to[$1]}"
    wait "${met[$1]}"
}

# What a stranger has said last.
told() { tail -n 1 "$BATS_TEST_TMPDIR/$1.out"; }

# dropped NAME COUNT SECONDS: all of its connections were, within that time.
dropped() {
    local count within
    read -r count within < <(sed -n 's/^[a-z]*: \([0-9]*\) connections, \1 dropped within \([0-9.]*\) s$/\1 \2/p' \
        "$BATS_TEST_TMPDIR/$1.out") || true
    [ "$count" = "$2" ] && awk -v t="$within" -v limit="$3" 'BEGIN { exit t > limit }' ||
        show_run "$1: $(told "$1")$(cat "$BATS_TEST_TMPDIR/$1.err")"
}

job=("$client" init , exchange 100 10 2 fresh , finalize)
right="exchange: 3 ranks, 100 rounds, all right"

went_well() {
    expect_status 0
    [ "$output" = "$right" ] || show_run "not as it should be"
}

# One line for all strangers, and no other. Sets $count.
one_line() {
    count=$(sed -n 's/^pmi-start: \([0-9]*\) connections\? of strangers \(was\|were\) dropped during the start$/\1/p' <<<"$stderr")
    [ "$(wc -l <<<"$stderr")" = 1 ] && [ -n "$count" ] || show_run "not one line about strangers"
}

@test "every kind of stranger, at the launcher and inside the tree, while the job starts" {
    local far way host port target i=0 ways=(mute slow http tls bare false long frame psk)
    start_held all "${job[@]}"
    IFS=, read -ra far < <(from_far 20)
    for way in "${ways[@]}"; do
        meet "launcher-$way" h3 "$way" "${where[@]}" --from="${far[i++]}" --key="$(printf '%064d' 7)"
        meet "inner-$way" h3 "$way" "${inner[@]}" --from="${far[i++]}" --key="$(printf '%064d' 7)"
    done
    meet launcher-scan h3 scan "${where[@]}"
    meet inner-scan h3 scan "${inner[@]}"
    for target in launcher inner; do
        wait_until 10 says $target-scan.out '^scan: 40 connections'
        for way in "${ways[@]}"; do
            wait_until 20 says "$target-$way.out" dropped
        done
        for way in http bare long frame tls psk; do
            dropped "$target-$way" 4 5 # at once, but for the linger that lets an alert arrive
        done
        for way in mute slow; do
            dropped "$target-$way" 4 13 # 10 s, whatever it says
        done
    done
    dropped launcher-false 4 13 # who may be vouched for yet has as long
    dropped inner-false 4 5
    let_in
    wait_pmi all
    went_well
    one_line
    # Those that came and went are only counted where there were too many of them at once.
    ((count >= 2 * 4 * ${#ways[@]})) || show_run "$count of them"
    for target in launcher inner; do
        for way in "${ways[@]}" scan; do
            leave "$target-$way"
        done
    done
    leftovers
}

@test "a thousand connections at once: 8 of one address are held, 256 of all" {
    start_held crowd "${job[@]}"
    meet one h3 many "${where[@]}" --count=1000
    meet inner h3 many "${inner[@]}" --count=1000
    wait_until 20 says one.out '^many: 8 open'
    wait_until 20 says inner.out '^many: 8 open'
    leave one
    leave inner
    meet forty h3 many "${where[@]}" --count=1000 --from="$(from_far 40)"
    wait_until 20 says forty.out '^many: 256 open'
    let_in
    wait_pmi crowd
    went_well
    one_line
    ((count >= 2 * 992 + 744)) || show_run "$count of them"
    wait_until 5 says forty.out '^many: 0 open'
    leave forty
    leftovers
}

@test "who fills the port from a provider's own host, again and again, does not keep it out" {
    local way
    for way in '' begin; do
        rm -f "$agent_dir/go"
        start_held "full$way" "${job[@]}"
        meet "root$way" h2 many "${where[@]}" --count=100 --again --say="$way"
        meet "mid$way" h2 many "$(address_of h1)" "$(port_of h1)" --count=100 --again --say="$way"
        wait_until 10 says "root$way.out" open
        wait_until 10 says "mid$way.out" open
        let_in
        wait_pmi "full$way"
        went_well
        one_line
        leave "root$way"
        leave "mid$way"
    done
    leftovers
}


@test "while the job runs nobody listens, and strangers of the start are gone" {
    local host input
    mkfifo "$BATS_TEST_TMPDIR/input"
    exec {input}<>"$BATS_TEST_TMPDIR/input"
    # shellcheck disable=SC2016 # for the task
    START_INPUT=$BATS_TEST_TMPDIR/input start_held runs sh -c '[ "$PMI_RANK" != 0 ] || { echo running; read -r go; }
        exec "$@"' sh "${job[@]}"
    meet root h3 mute "${where[@]}"
    meet mid h3 mute "${inner[@]}"
    wait_until 5 has_callers
    let_in
    wait_until 20 says runs.out running
    wait_until 5 says root.out dropped
    wait_until 5 says mid.out dropped
    for host in login h0 h1 h2; do
        has_no_port $host
    done
    ! on h3 bash -c "exec 3<>/dev/tcp/${where[0]}/${where[1]}" 2>/dev/null || false
    ! on h3 bash -c "exec 3<>/dev/tcp/${inner[0]}/${inner[1]}" 2>/dev/null || false
    echo go >&"$input"
    wait_pmi runs
    expect_status 0
    [ "$output" = "running"$'\n'"$right" ] || show_run "not as it should be"
    [ -z "$stderr" ] || show_run "words about nothing"
    leave root
    leave mid
    leftovers
}

# h3's four connections to each port are there: it cannot know by itself, as the program says nothing to who is mute.
has_callers() { [ "$(callers login "${where[1]}")-$(callers h0 "${inner[1]}")" = 4-4 ]; }
callers() {
    local a b c d
    IFS=. read -r a b c d < <(address_of h3)
    on "$1" grep -c "$(printf ':%04X %02X%02X%02X%02X:.... 01' "$2" "$d" "$c" "$b" "$a")" /proc/net/tcp
}

@test "a handshake that was recorded is worth nothing, in the same run or in another" {
    local kept=$HOSTS_DIR/kept script
    script=$(site_script relayed <<END
exec pdsh -R ssh -w "\$PMI_HOSTLIST" "\$(echo "\$PMI_PROVIDER" |
    sed 's/--pmi-port=[^ ]*/--pmi-port=$(address_of h3):7701/') --pmi-rank=%n"
END
    )
    meet relay h3 record "$(address_of login)" $PORT --listen="$(address_of h3):7701" --bytes="$kept"
    wait_until 5 says relay.out listening
    start_held first --rsh-command="$script" "${job[@]}"
    meet same-root h3 replay "${where[@]}" --bytes="$kept"
    meet same-mid h3 replay "${inner[@]}" --bytes="$kept" --from="$(from_far 1)"
    wait_until 20 says same-root.out dropped
    wait_until 20 says same-mid.out dropped
    let_in
    wait_pmi first
    went_well
    cat "$BATS_TEST_TMPDIR"/*.err "$BATS_TEST_TMPDIR"/*.out; ls -la $kept
    one_line
    ((count == 8)) || show_run "$count of them"
    rm "$agent_dir/go"
    start_held second "${job[@]}"
    meet later h3 replay "${where[@]}" --bytes="$kept"
    wait_until 20 says later.out dropped
    let_in
    wait_pmi second
    went_well
    one_line
    for name in same-root same-mid later; do
        dropped $name 4 5
        leave $name
    done
    leave relay
    rm "$kept"
    leftovers
}

# A run in which h1's provider is not the program but this one, with a key that came back over the login. The last host
# comes when it has done so and said something.
with_false_provider() {
    local how=$1 script
    shift
    rm -f "$HOSTS_DIR/false.err"
    script=$(site_script false <<END
ssh h0 "\$PMI_PROVIDER" --pmi-rank=0 &
ssh h1 python3 $stranger provider --how=$how "\$PMI_PROVIDER" --pmi-rank=1 2>'$HOSTS_DIR/false.err' &
while [ ! -s '$HOSTS_DIR/false.err' ]; do sleep 0.05; done
ssh h2 "\$PMI_PROVIDER" --pmi-rank=2 &
wait
END
    )
    run_pmi -H h0,h1,h2 --rsh-command="$script" "$@"
}

@test "the same provider twice: the second hello of one is not answered, that of another with its key refused" {
    with_false_provider twice hostname
    expect_status 0
    [ "$(sort <<<"$output" | xargs)" = "h0 h2" ] || show_run "not as it should be"
    [ -z "$stderr" ] || show_run "words about nothing"
    [ "$(cat "$HOSTS_DIR/false.err")" = "the second is answered None, the third 65" ] || show_run "$(cat "$HOSTS_DIR/false.err")"
    leftovers
}

@test "a frame that is too large, from a host that is part of the run" {
    with_false_provider huge "$client" sleep 30000
    expect_status 69
    expect_line 'h1: *'
    expect_lines_at_most 1
    leftovers
}

@test "who holds the secret: another's number, none, large frames, rubbish" {
    local secret=$HOSTS_DIR/secret key say line
    rm -f "$secret"
    run_pmi --new-secret="$secret"
    key=$(od -An -v -tx1 "$secret" | tr -d ' \n')
    start_pmi held --bootstrap=manual --secret-file="$secret" -H 'h[0-1]' --port=$PORT "$client" init , exchange 20 10 2 fresh , finalize
    wait_until 10 says held.err '^pmi-start: h1: '
    line=$(sed -n "s/^pmi-start: h0: //p" "$BATS_TEST_TMPDIR/held.err")
    # shellcheck disable=SC2086 # a command line
    on h0 $line </dev/null 3>&- &
    wait_until 10 has_caller_of h0
    for say in hello:0 hello:9 large:4097 large:65537 rubbish; do
        meet "$say" h3 psk "$(address_of login)" $PORT --key="$key" --say="$say" --count=1
        wait_until 20 says "$say.out" dropped
        dropped "$say" 1 5
        leave "$say"
    done
    line=$(sed -n "s/^pmi-start: h1: //p" "$BATS_TEST_TMPDIR/held.err")
    # shellcheck disable=SC2086
    on h1 $line </dev/null 3>&- &
    wait_pmi held
    expect_status 0
    [ "$output" = "exchange: 2 ranks, 20 rounds, all right" ] || show_run "not two ranks"
    expect_line '3 connections of strangers were dropped during the start'
    leftovers
}

has_caller_of() { [ "$(on login awk '$4 == "01" && $2 ~ /:1E14$/ { n++ } END { print n + 0 }' /proc/net/tcp)" -ge 1 ]; }
