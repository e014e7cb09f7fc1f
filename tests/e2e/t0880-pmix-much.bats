#!/usr/bin/env bats
# SPDX-License-Identifier: BSD-3-Clause
# Ranks that say much at once over PMIx: all of it comes, and nobody keeps more of it than there is room for.
load helpers

setup_file() {
    need_hosts 2
    make_pmix_program pmix_much
}

teardown_file() { rm -f "$HOSTS_DIR/pmix_much"; }

setup() {
    need_pmix
    much=$HOSTS_DIR/pmix_much
    clean_start
}

@test "what a rank says by PMIx_Log() comes whole, however long it is" {
    run_pmi -H 'h[0-1]' --pmix=yes "$much" log 1000000 3
    expect_status 0
    [ "$output" = "taken: 3" ] || show_run "not all were taken"
    [ "$(tr -d '\n' <<<"$stderr" | wc -c)" = 3000000 ] || show_run "${#stderr} bytes came"
    leftovers 5
}

@test "who says more than is read waits, and nobody keeps it" {
    run on login sh -c '"$@" 2>&1 >/dev/null </dev/null | {
        sleep 3
        for pid in $(pgrep -x pmi-start); do grep VmHWM "/proc/$pid/status"; done | sort -k 2 -n | tail -n 1
        wc -c
    }' sh "$pmi_start" -n 2 --pmix=yes --timeout=25 "$much" log 50000 2000
    [ "${lines[1]}" = 100002000 ] || show_run "not all came"
    [ "$(awk '{ print $2 }' <<<"${lines[0]}")" -lt 60000 ] || show_run "too much was kept"
    leftovers 5
}

@test "what is too long to be said is answered with an error" {
    run_pmi -n 2 --pmix=yes --timeout=15 "$much" log 17000000 1
    expect_status 0
    [ "$output" = "taken: 0" ] || show_run "it was taken"
    [ -z "$stderr" ] || show_run "words on standard error"
    leftovers 5
}

@test "events that come one behind the other are seen by all" {
    run_pmi -H 'h[0-1]' --pmix=yes --timeout=25 "$much" event 1000 2000
    expect_status 0
    [ "$(sort <<<"$output")" = $'seen: 2000\nseen: 2000\ntaken: 2000' ] || show_run "not all were seen"
    leftovers 5
}

# 160 MB, as fast as the library takes them. It keeps the last 512 of them itself; what it keeps of another's is its affair.
@test "events that come faster than the links carry them wait, and nobody keeps more than there is room for" {
    for sender in 2 0; do
        run on login sh -c '"$@" & pid=$!
            while grep VmHWM "/proc/$pid/status"; do sleep 0.1; done >"$HOSTS_DIR/home/hwm" 2>/dev/null
            wait $pid' sh env SENDER=$sender "$pmi_start" --nodes=3 --pmix=yes --timeout=25 "$much" event 40000 4000
        expect_status 0
        [ "$(sort <<<"$output")" = $'seen: 4000\nseen: 4000\nseen: 4000\ntaken: 4000' ] || show_run "not all were seen"
    done
    most=$(sort -n -k 2 "$HOSTS_DIR/home/hwm" | awk 'END { print $2 }')
    ((most > 5000 && most < 130000)) || show_run "$most KiB were kept where they came from"
    rm "$HOSTS_DIR/home/hwm"
    leftovers 5
}
