# SPDX-License-Identifier: BSD-3-Clause
# What users of other launchers ran into: odd names in host lists, and host files as people write them. The grammar
# itself is proven by the unit tests of hostlist.
load helpers
load field

RUN_LIMIT=60

file() { printf "$@" >"$HOSTS_DIR/list"; }

# lists NAMES ARG...: --print-hosts gives these.
lists() {
    local want=$1
    shift
    run_pmi --print-hosts "$@"
    expect_status 0
    [ "$output" = "${want// /$'\n'}" ] || show_run "not $want"
}

names=(00a 7up n a-1-b c712f6n02 c000712f6n02 w.1.example w.2.example x20231231123456789012 x20231231123456789013
    9999999999999999 n007 n07 n7)

@test "names that begin with a digit, have none, many, dashes or dots reach the hosts and the labels as they are" {
    local all i=0 lines=() way want='' name
    all=$(IFS=, && echo "${names[*]}")
    agent
    for name in "${names[@]}"; do
        lines+=("$(address_of h$((i % 3))) $name")
        want+="$i: $name h$((i++ % 3))"$'\n'
    done
    hosts_file login "${lines[@]}"
    clean_start
    for way in pdsh ssh; do
        by_agent $way -H "$all" -o "$HOSTS_DIR/home/out-%h.%r" /bin/hostname
        expect_status 0
        [ -z "$output$stderr" ] || show_run words
        i=0
        for name in "${names[@]}"; do
            [ "$(<"$HOSTS_DIR/home/out-$name.$i")" = "h$((i % 3))" ] || show_run "$name, rank $i"
            rm "$HOSTS_DIR/home/out-$name.$((i++))"
        done
    done
    leftovers
    # Two that are the same up to the first dot, of which one fails.
    order w.2.example <<<'echo "root@w.2.example: Permission denied (publickey)." >&2; exit 255'
    for way in pdsh ssh; do
        by_agent $way -H "w.1.example,w.2.example,n" true
        expect_status 69
        expect_line 'w.2.example: login: Permission denied (publickey).'
        expect_lines_at_most 1
    done
    leftovers
}

@test "named pipes as files: with a writer they are read, without one they are refused" {
    local fifo=$HOSTS_DIR/home/fifo
    mkdir -p "$HOSTS_DIR/home/.config/pmi-start"
    mkfifo "$fifo"
    printf 'ha\nhb\n' >"$fifo" 3>&- &
    lists 'ha hb' -f /root/fifo
    refused "*/root/fifo*: it is a pipe, and nobody writes to it" -f /root/fifo
    ln -s ../../fifo "$HOSTS_DIR/home/.config/pmi-start/pmi-start.yaml"
    refused "*pmi-start.yaml: it is a pipe, and nobody writes to it" -H ha
    rm -r "$HOSTS_DIR/home/.config" "$fifo"
}

@test "host files without a last newline, with comments, blank lines, tabs, CR, a byte order mark" {
    file 'ha\nhb'
    lists 'ha hb' -f "$HOSTS_DIR/list"
    file '\xef\xbb\xbfha\r\n# x[1\r\n\r\n \t hb:2 \t# two\r\n\nhc slots=3   \r\n'
    lists 'ha hb hc' -f "$HOSTS_DIR/list"
    file 'ha\nha\nhb\nha\n'
    lists 'ha ha hb ha' -f "$HOSTS_DIR/list"
    file '# nothing\n\n'
    refused "*list*names no host" -f "$HOSTS_DIR/list"
    lists 'ha hb' -f <(printf 'ha\nhb\n')
    lists 'ha hb' -f /dev/stdin < <(sleep 1.5 && printf 'ha\nhb\n')
    file 'ha\n\nhb eth0\n'
    refused "*list*line 3*'hb eth0'*" -f "$HOSTS_DIR/list"
    file 'ha\nh\0b\n'
    refused "*list*line 2*" -f "$HOSTS_DIR/list"
    file 'ha\nhb:2222\n'
    refused "*list*line 2*port*" -f "$HOSTS_DIR/list"
    refused "*$HOSTS_DIR*directory*" -f "$HOSTS_DIR"
    refused "*/no/such*No such file*" -f /no/such
}

@test "a host on two lines of a file is two ranks" {
    file 'h1\nh0\nh1\n'
    run_pmi -l -f "$HOSTS_DIR/list" hostname
    expect_status 0
    [ "$(sort <<<"$output")" = $'0: h1\n1: h0\n2: h1' ] || show_run ranks
    leftovers
}

@test "every other one of 5000 hosts, each three times" {
    local i list=''
    for ((i = 1; i <= 5000; i += 2)); do list+="h$i,h$i,h$i,"; done
    run_pmi --print-hosts -H "${list%,}"
    expect_status 0
    [ "${#lines[@]}-${lines[0]}-${lines[7499]}" = 7500-h1-h4999 ] || show_run hosts
    run_pmi --print-hosts=folded -H "${list%,}"
    run_pmi --print-hosts -H "$output"
    [ "${#lines[@]}-${lines[0]}-${lines[7499]}" = 7500-h1-h4999 ] || show_run folded
}

@test "lists that are wrong are refused with the place, and nothing is started" {
    local list
    for list in 'f[1-]' 'f[-1]' 'f[]' 'f[3-1]' 'f[1' 'f1]' 'a,,b' 'a,' ' ' -x -oProxyCommand=true 'f[1-999999999]' \
        '-host:a,-host:b' 'h;true' 'h$(true)' 'a/b'; do
        refused "*${list//[\[\]]/?}*" --hostlist="$list"
        [[ $list == ' ' || $stderr == *position* ]] || show_run "no place"
    done
    leftovers
}

@test "lists and files that are too large are refused" {
    truncate -s 2G "$HOSTS_DIR/list"
    refused "*list*larger than*" -f "$HOSTS_DIR/list"
    rm "$HOSTS_DIR/list"
    refused '*more than*' -H 'f[0-999][0-999][0-999][0-999]'
}

@test "a user and a port with a host: the user is for the login alone, ports are ssh's" {
    refused "*'h1:2222'*port*ssh*" -H h1:2222
    run_pmi -H root@h0,root@h1 -o "$HOSTS_DIR/home/out-%h" sh -c 'echo "$PMI_RANK"; exit 3'
    expect_status 3
    expect_line 'rank [01] on h[01] (pid +([0-9])) exited with status 3'
    rm "$HOSTS_DIR/home/out-h0" "$HOSTS_DIR/home/out-h1"
    run_pmi -H root@nowhere true
    expect_line 'root@nowhere: login: *'
    run_pmi -H 'root@h[0-1]' hostname
    expect_status 0
    [ "$(sort <<<"$output")" = $'h0\nh1' ] || show_run hosts
    leftovers
}

@test "a list that the shell took for a pattern: the word behind it is no command" {
    local RUN_STATUS=-127
    run_pmi -H h1 h2
    expect_status 127
    expect_line "*h2*not found*quote*"
}
