#!/usr/bin/env bats
# SPDX-License-Identifier: BSD-3-Clause
# The examples of OpenPMIx, as Debian ships them in libpmix-dev: every one that is a program of a launched job comes to
# the end that it looks for itself, or is told what there is not.
#
# Not here, as they are not run by a launcher but take its place or look at it: server (a launcher of its own), tool,
# debugger, launcher (tools that connect to a launcher's daemon), debuggerd (the daemon that a debugger has spawned).
# `alloc` runs alone: its rank 1 waits for word of an allocation that nobody makes, and from rank 2 on it crashes by itself.
load helpers

examples=/usr/share/doc/libpmix-dev/examples

build_examples() {
    local flags name
    [ -e "$examples/client.c" ] || { echo "no examples in $examples: install libpmix-dev" >&2; return 1; }
    flags="-I$BATS_TEST_DIRNAME/../progs/openpmix $(pkg-config --cflags pmix)"
    mkdir -p "$HOSTS_DIR/openpmix"
    for name in abi_no_init abi_with_init alloc asyncgroup bad_exit client client2 dmodex dynamic fault group \
        group_dmodex group_lcl_cid hello jctrl log nodeinfo pub pubi; do
        echo "-o $HOSTS_DIR/openpmix/$name $flags $examples/$name.c -lpmix"
    done | xargs -P 2 -L 1 gcc -w
    gcc -w -I"$BATS_TEST_DIRNAME/../../client" -o "$HOSTS_DIR/openpmix/pmi1client" "$examples/pmi1client.c" \
        -L"$E2E_BUILD/.libs" -Wl,-rpath,"$E2E_BUILD/.libs" -lpmi
}

setup_file() {
    need_hosts 4
    build_examples
}

teardown_file() { rm -rf "$HOSTS_DIR/openpmix"; }

setup() {
    need_pmix
    ex=$HOSTS_DIR/openpmix
    four=(-H 'h[0-3]' --pmix=yes)
    two=(-H 'h[0-1]' --ppn=2 --pmix=yes)
    clean_start
}

# seen COUNT PATTERN: on so many lines of standard error.
seen() {
    local count
    count=$(grep -ce "$2" <<<"$stderr") || true
    [ "$count" = "$1" ] || show_run "'$2' $count times, not $1"
}

# went_well: and found nothing wrong.
went_well() {
    expect_status 0
    seen 0 '[Ff]ailed\|[Ww]rong\|ERROR\|NOTIFIED\|^pmi-start: '
}

example() {
    local name=$1
    shift
    run_pmi "$@" "$ex/$name"
}

# Three at once, as each of them sleeps for two seconds.
@test "client, dynamic, fault: keys of all ranks; a spawned job and its values; a rank that fails ends the run, and is named" {
    start_pmi client "${two[@]}" "$ex/client"
    start_pmi dynamic "${two[@]}" -C "$ex" "$ex/dynamic"
    start_pmi fault "${four[@]}" "$ex/fault"
    wait_pmi client
    went_well
    seen 8 'PMIx_Get .*-local returned correct'
    seen 8 'PMIx_Get .*-remote returned correct'
    seen 4 'PMIx_Finalize successfully completed'
    wait_pmi dynamic
    went_well
    seen 1 'job .* size 2$'
    seen 1 'job .* local rank [01]$'
    seen 6 'PMIx_Finalize successfully completed'
    wait_pmi fault
    expect_status 1
    expect_line 'rank 0 on h0 (pid *) exited with status 1'
    leftovers 5
}

@test "bad_exit: a status of its own while the others go on" {
    example bad_exit "${four[@]}"
    expect_status 1
    expect_line 'rank 0 on h0 (pid *) exited with status 1'
    leftovers 5
}

@test "client2, dmodex: keys with and without a fence that spreads them" {
    example client2 "${two[@]}"
    went_well
    seen 4 'PMIx_Finalize successfully completed'
    example dmodex "${two[@]}"
    went_well
    seen 1 'World size 4'
    seen 1 'PMIx_Finalize successfully completed'
}

@test "group, group_dmodex, group_lcl_cid: groups with a number of their own, and what their members say of themselves" {
    example group "${four[@]}"
    expect_status 0
    seen 0 'failed'
    seen 3 'Group construct complete with status SUCCESS KEY pmix.grp.ctxid CID 1$'
    seen 4 'PMIx_Finalize successfully completed'
    example group_dmodex "${two[@]}"
    went_well
    seen 4 'Group construct complete with status SUCCESS KEY pmix.grp.ctxid CID 1$'
    seen 4 'COMPLETE$'
    example group_lcl_cid "${two[@]}"
    went_well
    seen 16 'PMIx_Get LOCAL CID for rank [0-3] SUCCESS'
}

@test "asyncgroup: invited by an event, joined by an event, complete by an event" {
    example asyncgroup "${four[@]}"
    expect_status 0
    seen 0 '[Ff]ailed\|Error'
    seen 1 'Group invite complete with status SUCCESS'
    seen 3 'Executing Group_destruct'
    seen 4 'PMIx_Finalize successfully completed'
}

@test "pub, pubi: what is published is found, at once or when it comes, and taken back" {
    local name
    for name in pub pubi; do
        example "$name" "${four[@]}"
        went_well
        seen 3 'PUBLISH-LOOKUP SUCCEEDED'
        seen 1 'UNPUBLISH SUCCEEDED'
    done
}

@test "hello, nodeinfo, log, abi: the run's names, and the user's words" {
    example hello "${four[@]}"
    went_well
    seen 4 'Query returned 2 values status SUCCESS'
    example nodeinfo "${four[@]}"
    expect_status 0
    seen 1 'Rank 1 is on host h1$'
    seen 1 'Rank 0 is on host h0$'
    seen 1 'Host list h0,h1,h2,h3$'
    seen 8 'coordinates .*NOT-FOUND' # there is no fabric that would have any
    example log "${four[@]}"
    went_well
    seen 1 '^stderr log message$'
    seen 4 'PMIx_Finalize successfully completed'
    example abi_with_init "${four[@]}"
    went_well
    [ "$(grep -c 'Namespaces: String: pmi-start\.' <<<"$output")" = 4 ] || show_run "not four namespaces"
    example abi_no_init -n 1 --pmix=yes
    expect_status 0
    [[ $output == *'ABI (Stable)'* ]] || show_run "no ABI"
}

@test "alloc, jctrl: what there is not is said so" {
    example alloc -n 1 --pmix=yes
    expect_status 0
    seen 1 'Allocation returned status: NOT-SUPPORTED'
    example jctrl "${four[@]}"
    expect_status 0
    seen 4 'PMIx_Job_control_nb failed: -47$'
    seen 4 'PMIx_Finalize successfully completed'
}

@test "pmi1client: PMI-1 beside PMIx" {
    example pmi1client "${four[@]}"
    expect_status 0
    seen 4 'Client [0-3]: Finalizing'
    leftovers 5
}
