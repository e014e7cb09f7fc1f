# SPDX-License-Identifier: BSD-3-Clause
# Nodes that are started by hand with --join, wherever somebody likes: they find a launcher by name, early or late, are told why
# where they cannot join, and end as the run does.
load helpers
load field

PORT=7720

setup_file() { need_hosts 3; }

setup() {
    clean_start
    secret=$HOSTS_DIR/join-secret
    rm -f "$secret" "$secret.other"
    "$pmi_start" --new-secret="$secret"
    "$pmi_start" --new-secret="$secret.other"
}

teardown() {
    end_failed
    on h1 nft delete table ip e2e 2>/dev/null || true
    rm -f "$secret" "$secret.other" "$HOSTS_DIR/join.hosts"
}

launch() { start_pmi run --bootstrap=manual --secret-file="$secret" --port=$PORT "$@"; }
listens() { says run.err '^pmi-start: start these'; }

# join NAME HOST NODE OPTION...: in the background; what it says in NAME.err.
declare -gA joined=()
join() {
    local name=$1 host=$2 node=$3
    shift 3
    : >"$BATS_TEST_TMPDIR/$name.err"
    # INT is ignored in the background of a script, where a terminal's ^C would not come.
    on "$host" timeout -s KILL "$RUN_LIMIT" env --default-signal=INT ${ignored:+--ignore-signal="$ignored"} "$pmi_start" \
        --join="${where:-login:$PORT}" --node="$node" --nodes="${nodes:-3}" --secret-file="${key:-$secret}" "$@" </dev/null >"$BATS_TEST_TMPDIR/$name.out" 2>"$BATS_TEST_TMPDIR/$name.err" 3>&- &
    joined[$name]=$!
}

# ended NAME STATUS: that node; sets $stderr.
ended() {
    status=0
    wait "${joined[$1]}" || status=$?
    stderr=$(<"$BATS_TEST_TMPDIR/$1.err")
    output=$(<"$BATS_TEST_TMPDIR/$1.out")
    expect_status "$2"
    [ -z "$output" ] || show_run "output of its own"
}

@test "by name, by number, in a tree, with a launcher that is a node and one that is none" {
    launch --nodes=3 "$client" init , exchange 2 10 0 new , finalize
    join one h1 1
    where=$(address_of login):$PORT join two h2 2
    wait_pmi run
    expect_status 0
    [ "$output" = 'exchange: 3 ranks, 2 rounds, all right' ] || show_run "not all"
    ended one 0
    [ -z "$stderr" ] || show_run "words of a node that ended well"
    ended two 0
    # The hosts' names say who is which, and --nodes counts them; the chain has h1 and h2 behind another.
    launch -vv -H 'h[0-2]' --fanout=1 -l hostname
    join zero h0 0
    join one h1 1
    join two h2 2
    wait_pmi run
    expect_status 0
    [ "$(sort <<<"$output")" = $'0: h0\n1: h1\n2: h2' ] || show_run "not who they said"
    for one in zero one two; do ended $one 0; done
    leftovers
}

@test "a node that comes first looks for its launcher until it is there" {
    # A name that is known later; the hosts' own file is one for all of them.
    cp "$HOSTS_DIR/hosts" "$HOSTS_DIR/join.hosts"
    # shellcheck disable=SC2016 # for the shell on the host
    early=(sh -c 'mount --bind "$1" /etc/hosts && shift && exec "$@"' sh "$HOSTS_DIR/join.hosts" "$pmi_start" --node=1 --nodes=3
        --secret-file="$secret" --join=launcher.later:$PORT)
    on h1 timeout -s KILL "$RUN_LIMIT" unshare -m "${early[@]}" </dev/null >"$BATS_TEST_TMPDIR/early.out" \
        2>"$BATS_TEST_TMPDIR/early.err" 3>&- &
    joined[early]=$!
    join second h2 2
    # A launcher that nobody comes to says so as well.
    start_pmi lonely --bootstrap=manual --secret-file="$secret" --port=$((PORT + 1)) --nodes=3 --timeout=15s true
    wait_until 20 says early.err '^pmi-start: waiting for the launcher: launcher.later:7720: the name is not known$'
    launch --nodes=3 true
    wait_until 10 listens
    echo "$(address_of login) launcher.later" >>"$HOSTS_DIR/join.hosts"
    wait_pmi run
    expect_status 0
    ended early 0
    ended second 0
    wait_until 20 says lonely.err '^pmi-start: waiting for node\[1-2\]: 1 of 3 are here$'
    signal_on login TERM "$(launcher)"
    wait_pmi lonely
    expect_status 143
    leftovers
}

@test "who cannot join is told why, at once; so is the launcher" {
    launch --nodes=3 "$client" init , exchange 1 10 0 new , finalize
    join one h1 1
    wait_until 10 listens
    key=$secret.other join wrong h2 2
    ended wrong 69
    expect_line 'the launcher there has another secret than ours (*'
    nodes=5 join many h2 2
    ended many 69
    expect_line 'the launcher refused: the run has 3 nodes, not 5 (--nodes)'
    join self h2 0
    ended self 69
    expect_line 'the launcher refused: node 0 is the launcher itself'
    wait_until 10 first_is_in
    two_of_a_kind
    join two h2 2
    wait_pmi run
    expect_status 0
    expect_line "$(address_of h2):* was refused: it has another secret (--secret-file)"
    expect_line "node 2, from $(address_of h2):*, was refused: the run has 3 nodes, not 5 (--nodes)"
    expect_line "a second node 1, from $(address_of h2):*, was refused"
    ended one 0
    ended two 0
    leftovers
}

first_is_in() { [ -n "$(on login ss -Htn state established "sport = :$PORT")" ]; }

# Whichever of the two comes first is in; the other is told.
two_of_a_kind() {
    join twin h2 1
    ended twin 69
    expect_line 'the launcher refused: this node has joined already'
}

@test "the run has begun, is over, is of another kind; another version" {
    launch --nodes=2 sh -c 'echo running; exec sleep 60'
    nodes=2 join one h1 1
    wait_until 20 both_run
    nodes=2 join late h2 1
    ended late 69
    expect_line '* says that the run has begun, or is over: nobody can join it any more'
    pmi_start=$build/tests/progs/pmi_start_v2 nodes=2 join other h2 1
    ended other 69
    expect_line '* speaks protocol versions 1 to 1, this side 2 to 2: not the same pmi-start'
    signal_on login TERM "$(launcher)"
    wait_pmi run
    expect_status 143
    expect_line "$(address_of h2):* speaks protocol versions 2 to 2, this side 1 to 1: not the same pmi-start"
    ended one 143
    expect_line 'the run has ended with status 143; why, its launcher says'
    nodes=2 join gone h2 1 --start-timeout=500ms
    ended gone 69
    expect_line "no connection within 0.5 s: login:$PORT: $(address_of login):$PORT (eth0): connection refused"
    leftovers
}

# A name has two addresses here, of which one swallows all that is sent to it: TCP alone would try it for two minutes.
@test "an address where nobody answers costs no time, and is named where there is no other; of many none is left out" {
    local dead
    dead=$(address_of login | cut -d. -f1-2).77.7
    on h1 nft -f - <<<"table ip e2e { chain out { type filter hook output priority 0
        ip daddr $dead drop
    }
}"
    { cat "$HOSTS_DIR/hosts" && printf '%s two\n' "$dead" "$(address_of login)" && echo "$dead one"
        printf '127.0.0.%s many\n' {2..9} && echo "$(address_of login) many"; } >"$HOSTS_DIR/join.hosts"
    launch --nodes=2 true
    # shellcheck disable=SC2016 # for the shell on the host
    within=(on h1 timeout -s KILL "$RUN_LIMIT" unshare -m sh -c 'mount --bind "$1" /etc/hosts && shift && exec "$@"' sh
        "$HOSTS_DIR/join.hosts" "$pmi_start" --node=1 --nodes=2 --secret-file="$secret")
    "${within[@]}" --join=two:$PORT
    wait_pmi run
    expect_status 0
    run --separate-stderr "${within[@]}" --join=one:$PORT --start-timeout=1s
    expect_status 69
    expect_line "no connection within 1 s: one:$PORT: $dead:$PORT (*): no answer"
    launch --nodes=2 true
    "${within[@]}" --join=many:$PORT
    wait_pmi run
    expect_status 0
    leftovers
}

@test "a version and the one before it understand each other, whichever is the launcher" {
    local next=$build/tests/progs/pmi_start_v1_2 launcher
    for launcher in "$pmi_start" "$next"; do
        pmi_start=$launcher launch --nodes=3 "$client" init , exchange 1 10 0 new , finalize
        pmi_start=$next join one h1 1
        join two h2 2
        wait_pmi run
        expect_status 0
        [ "$output" = 'exchange: 3 ranks, 1 rounds, all right' ] || show_run "not all"
        ended one 0
        ended two 0
    done
    # What has nothing in common is refused by both, with both named.
    pmi_start=$build/tests/progs/pmi_start_v2 launch --nodes=2 --start-timeout=2s true
    nodes=2 join other h1 1
    ended other 69
    expect_line '* speaks protocol versions 2 to 2, this side 1 to 1: not the same pmi-start'
    wait_pmi run
    expect_status 69
    expect_line '* speaks protocol versions 1 to 1, this side 2 to 2: not the same pmi-start'
    leftovers
}

@test "INT to a node ends the run and names it; a second signal ends the node at once" {
    # shellcheck disable=SC2016 # for the task
    local stubborn=(sh -c 'trap "" TERM; echo running; while :; do sleep 0.1; done')
    launch --nodes=2 --kill-grace=200ms "${stubborn[@]}"
    nodes=2 join one h1 1
    wait_until 20 both_run
    signal_on h1 INT "$(workers h1)"
    wait_pmi run
    expect_status 69
    expect_line 'node1: it was told to end: signal 2 (Interrupt)'
    ended one 69
    leftovers
    launch --nodes=2 --kill-grace=20s "${stubborn[@]}"
    nodes=2 join one h1 1
    wait_until 20 both_run
    # Its tasks do not mind, so the run goes on ending.
    wait_until 10 eval 'signal_on h1 TERM $(workers h1) 2>/dev/null; [ -z "$(workers h1)" ]'
    ended one 143
    wait_until 10 eval 'signal_on login TERM $(launcher) 2>/dev/null; [ -z "$(launcher)" ]' # at the second one it kills
    wait_pmi run
    leftovers 7
}

both_run() { [ "$(grep -c '^running' "$BATS_TEST_TMPDIR/run.out")" = 2 ]; }

@test "HUP to a node that was started with it ignored, as by nohup, ends nothing" {
    launch --nodes=2 sh -c 'trap "exit 0" USR1; echo running; while :; do sleep 0.1; done'
    ignored=HUP nodes=2 join one h1 1
    wait_until 20 both_run
    signal_on h1 HUP "$(workers h1)"
    signal_on login USR1 "$(launcher)" # it comes behind whatever that has begun
    wait_pmi run
    expect_status 0
    ended one 0
    leftovers
}

@test "what is asked for has to make sense" {
    bad() {
        run_pmi "${@:2}"
        expect_status 2
        expect_line "$1"
    }
    bad "--join: '10.1.2.3' is not ADDR:PORT, *" --join=10.1.2.3 --node=1 --nodes=2 --secret-file="$secret"
    bad '--join needs --node=N: *' --join=login:1 --nodes=2 --secret-file="$secret"
    bad '--join needs --nodes=N: *' --join=login:1 --node=1 --secret-file="$secret"
    bad '--join needs --secret-file=FILE, *' --join=login:1 --node=1 --nodes=2
    bad '--node=2 is not below --nodes=2' --join=login:1 --node=2 --nodes=2 --secret-file="$secret"
    bad 'COMMAND and --join do not go together: *' --join=login:1 --node=1 --nodes=2 --secret-file="$secret" true
    bad '--ppn and --join do not go together: *' --join=login:1 --node=1 --nodes=2 --secret-file="$secret" --ppn=2
    bad '--node is for --join=ADDR:PORT' --node=1 true
    bad "cannot open /no/such: *" --join=login:1 --node=1 --nodes=2 --secret-file=/no/such
}
