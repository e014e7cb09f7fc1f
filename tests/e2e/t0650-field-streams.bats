# SPDX-License-Identifier: BSD-3-Clause
# What users of other launchers ran into: standard input and output
load helpers

RUN_LIMIT=60

setup_file() { need_hosts 2; }

# sh_pmi SCRIPT ARG...: run SCRIPT by a shell on login, where "$@" is pmi-start with ARG...; status and output as of
# run_pmi.
sh_pmi() {
    local script=$1
    shift
    run --separate-stderr on login timeout --foreground -s KILL "$RUN_LIMIT" bash -c "$script" sh "$pmi_start" "$@"
}

@test "a loop that reads lines and starts a job for each: every line is had" {
    sh_pmi 'printf "a\nb\nc\n" | while read -r line; do "$@" "$line" </dev/null; done' -H h0 echo
    [ "$output" = $'a\nb\nc' ] || show_run "without input"
    sh_pmi 'printf "a\nb\nc\n" | while read -r line; do "$@" "$line"; done' -H h0 -i none echo
    [ "$output" = $'a\nb\nc' ] || show_run "--input=none"
}

@test "a slow producer, and one that has more than a pipe holds" {
    sh_pmi '{ echo a; sleep 1; echo b; } | "$@"' -H h0 cat
    [ "$status-$output" = $'0-a\nb' ] || show_run slow
    sh_pmi 'seq 300000 | "$@"' -H h0 sh -c 'sleep 1; exec tail -n 1'
    [ "$status-$output" = 0-300000 ] || show_run much
}

@test "endless input for a job that reads nothing" {
    sh_pmi 'yes | "$@"' -H h0,login echo ok
    [ "$status-$output" = $'0-ok\nok' ] || show_run endless
}

@test "without standard descriptors, one by one: what is opened never lands there" {
    local fds where
    for where in login h0; do
        for fds in '<&-' '2>&-' '<&- >&- 2>&-'; do
            rm -f "$HOSTS_DIR/home/fds"
            sh_pmi '"$@" '"$fds" -H $where sh -c 'echo out; echo err >&2; cat; echo done >/root/fds'
            expect_status 0
            [ "$(<"$HOSTS_DIR/home/fds")" = done ] || show_run "$where $fds"
            [[ $fds == *' >&-'* || $output == out ]] || show_run "$where $fds"
        done
    done
    rm -f "$HOSTS_DIR/home/fds"
    sh_pmi 'nohup "$@" </dev/null' -H h0 echo x
    [ "$status-$output" = 0-x ] || show_run nohup
}

@test "input that can only be written, as nohup leaves that of a terminal, is at its end" {
    local where
    for where in login h0 login,h0; do
        sh_pmi '"$@" 0>/dev/null' -i all -H $where sh -c 'cat && echo end'
        [ "$status-${output%%$'\n'*}$stderr" = 0-end ] || show_run "$where"
    done
    run on login timeout -s KILL "$RUN_LIMIT" python3 "$BATS_TEST_DIRNAME/pty_run.py" wait:end \
        sh -c 'nohup "$@" 2>&1 | cat' sh "$pmi_start" -H h0 sh -c 'cat && echo end'
    [ "$status" = 0 ] || show_run nohup
}

@test "four readers and one line: rank 0 has it, the others are at the end at once" {
    sh_pmi 'echo hello | "$@"' -l -H login,h0 --ppn=2 sh -c 'cat; echo end'
    expect_status 0
    [ "$(sort <<<"$output")" = $'0: end\n0: hello\n1: end\n2: end\n3: end' ] || show_run input
    sh_pmi 'echo hello | "$@"' -l -i 3 -H login,h0 --ppn=2 cat
    [ "$status-$output" = '0-3: hello' ] || show_run "rank 3"
}

@test "what is typed while a job runs that reads nothing is left for the shell" {
    local way
    for way in '--input=none' '--input=none -H h0'; do
        # The shell is what reads the terminal afterwards.
        run on login timeout -s KILL "$RUN_LIMIT" python3 "$BATS_TEST_DIRNAME/pty_run.py" \
            'wait:ready;type:for the shell\n;wait:got for the shell.' \
            sh -c '"$@"; read -r line; echo "got $line."' sh "$pmi_start" $way sh -c 'echo ready; sleep 1'
        [ "$status" = 0 ]
    done
}

@test "64 ranks with labels: every line, every time" {
    local i
    for i in {1..5}; do
        run_pmi -l --nodes=2 -n 64 sh -c 'echo "$PMI_RANK"'
        expect_status 0
        [ "$(sort -n <<<"$output")" = "$(for ((r = 0; r < 64; r++)); do echo "$r: $r"; done)" ] || show_run "run $i"
    done
}

@test "a label is at the beginning of a line and nowhere else" {
    run_pmi -l -H login,h0 sh -c 'printf AB; sleep 0.3; printf "CD\nEF"; sleep 0.3; printf "GH"'
    expect_status 0
    [ "$(sort <<<"$output")" = $'0: ABCD\n0: EFGH\n1: ABCD\n1: EFGH' ] || show_run labels
}

@test "NUL and bytes that are no text, with labels too" {
    sh_pmi '"$@" | od -An -c | tr -s " "' -l -H h0 printf 'a\0b\377\r\nc'
    [ "$output" = ' 0 : a \0 b 377 \r \n 0 : c \n' ] || show_run bytes
    sh_pmi '"$@" | od -An -c | tr -s " "' -H h0 printf 'a\0b\377\r\nc'
    [ "$output" = ' a \0 b 377 \r \n c' ] || show_run bytes
}
