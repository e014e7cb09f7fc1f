# SPDX-License-Identifier: BSD-3-Clause
# PMI over TCP: tasks that have PMI_PORT and PMI_ID instead of a descriptor, and several sessions of one rank.
load helpers

setup_file() { need_hosts 4; }

setup() {
    clean_start
    RUN_LIMIT=120
}

threads=$build/tests/progs/pmi_threads

# A client of its own, in bash: says lines to PMI_PORT and prints what comes back, until the server closes.
# shellcheck disable=SC2016 # for the task
talk='exec 3<>/dev/tcp/${PMI_PORT/:/\/}; printf "%b" "$1" >&3; while read -t 20 -r line <&3; do echo "$line"; done; true'

@test "MPICH over PMI_PORT on four hosts" {
    run_pmi -H 'h[0-3]' --ppn=2 --pmi-connect=port "$mpi_check"
    expect_status 0
    leftovers
}

@test "what a task is told: with port no descriptor, with both both" {
    # shellcheck disable=SC2016
    run_pmi -n 2 -l --pmi-connect=port sh -c 'echo ${PMI_FD-none} ${PMI_PORT%:*} $PMI_ID $PMI_RANK $PMI_SIZE'
    expect_status 0
    [ "$(sort <<<"$output")" = $'0: none 127.0.0.1 0 0 2\n1: none 127.0.0.1 1 1 2' ] || show_run vars
    # shellcheck disable=SC2016
    run_pmi -n 1 --pmi-connect=both sh -c 'echo ${PMI_FD-none} ${PMI_PORT%:*} $PMI_ID'
    [ "$output" = '3 127.0.0.1 0' ] || show_run vars
    # shellcheck disable=SC2016
    run_pmi -n 1 sh -c 'echo ${PMI_FD-none} ${PMI_PORT-none} ${PMI_ID-none}'
    [ "$output" = '3 none none' ] || show_run vars
}

@test "the four lines of initack, byte by byte" {
    run_pmi -n 2 --pmi-connect=port bash -c '[ $PMI_RANK = 1 ] || exit 0; '"$talk" sh \
        'cmd=initack pmiid=1\ncmd=init pmi_version=1 pmi_subversion=1\ncmd=finalize\n'
    expect_status 0
    [ "$output" = 'cmd=initack
cmd=set size=2
cmd=set rank=1
cmd=set debug=0
cmd=response_to_init rc=0 pmi_version=1 pmi_subversion=1
cmd=finalize_ack rc=0' ] || show_run lines
    leftovers
}

@test "four sessions of each of 64 ranks on eight nodes, 1000 rounds, are never mixed" {
    RUN_LIMIT=300
    run_pmi --nodes=8 --ppn=8 --pmi-connect=port "$threads" 1000 4
    expect_status 0
    expect_lines_at_most 0
    leftovers
}

@test "four sessions of each rank on four ssh hosts" {
    run_pmi -H 'h[0-3]' --ppn=4 --pmi-connect=port "$threads" 100 4
    expect_status 0
    expect_lines_at_most 0
    leftovers
}

@test "an id in use, of a rank elsewhere, or none at all: refused, and the job goes on" {
    local id
    for id in 0 1 2 -1 x '' 99999999999; do
        # shellcheck disable=SC2016
        run_pmi --nodes=2 --ppn=1 --pmi-connect=both bash -c '[ $PMI_RANK = 0 ] || exit 0
            printf "cmd=init pmi_version=1 pmi_subversion=1\n" >&3; read -r line <&3
            exec 4<>/dev/tcp/${PMI_PORT/:/\/}; printf "%b" "$1" >&4; read -t 20 -r line <&4 && echo "got $line"
            printf "cmd=finalize\n" >&3; read -r line <&3; echo "$line"' sh "cmd=initack pmiid=$id\n"
        expect_status 0
        if [ "$id" = 2 ]; then
            [[ $output = 'got cmd=initack'* ]] || show_run "session 1 was refused"
            continue
        fi
        [ "${lines[-1]}" = 'cmd=finalize_ack rc=0' ] || show_run "id $id"
        [[ $output != *'got cmd=initack'* ]] || show_run "id $id was taken"
    done
    leftovers
}

@test "with both, the session belongs to whichever speaks first" {
    # shellcheck disable=SC2016
    run_pmi -n 1 --pmi-connect=both bash -c 'exec 4<>/dev/tcp/${PMI_PORT/:/\/}
        printf "cmd=initack pmiid=0\ncmd=init pmi_version=1 pmi_subversion=1\n" >&4
        for i in 1 2 3 4 5; do read -r line <&4; done; echo "$line"
        if read -t 20 -r line <&3; then echo "the descriptor answers: $line"; else echo "the descriptor is closed"; fi
        printf "cmd=finalize\n" >&4; read -r line <&4; echo "$line"'
    expect_status 0
    [ "$output" = 'cmd=response_to_init rc=0 pmi_version=1 pmi_subversion=1
the descriptor is closed
cmd=finalize_ack rc=0' ] || show_run both
}

@test "a connection that says nothing, or too much, is closed; the job goes on" {
    # shellcheck disable=SC2016
    run_pmi -n 1 --pmi-connect=port bash -c 'exec 4<>/dev/tcp/${PMI_PORT/:/\/}
        head -c 8192 /dev/zero | tr "\0" x >&4 2>/dev/null; read -t 20 -r line <&4; echo "long: $?"
        exec 5<>/dev/tcp/${PMI_PORT/:/\/}; read -t 20 -r line <&5; echo "silent: $?"'
    expect_status 0
    [ "$output" = $'long: 1\nsilent: 1' ] || show_run closed
    leftovers
}

@test "another user's process is refused, by what the kernel says of it" {
    # shellcheck disable=SC2016
    run_pmi -n 1 --pmi-connect=port bash -c 'setpriv --reuid=65534 --clear-groups bash -c "$1" sh "$2"' sh "$talk" \
        'cmd=initack pmiid=0\n'
    expect_status 0
    [ -z "$output" ] || show_run "it was answered"
    expect_line "a connection to PMI_PORT is refused: it is user 65534's"
    leftovers
}

@test "another user who knocks a hundred times is told of sixteen times" {
    # shellcheck disable=SC2016
    run_pmi -n 1 --pmi-connect=port bash -c 'setpriv --reuid=65534 --clear-groups bash -c "
        for ((i = 0; i < 100; i++)); do exec 3<>/dev/tcp/${PMI_PORT/:/\/}; read -t 20 -r line <&3; done; true"'
    expect_status 0
    expect_line "a connection to PMI_PORT is refused: it is user 65534's"
    expect_line "a connection to PMI_PORT is refused: it is user 65534's; that is all that is said of such"
    expect_lines_at_most 16
    leftovers
}

@test "a task in another pid and mount namespace, without the descriptor" {
    run_pmi --nodes=2 --ppn=2 --pmi-connect=port unshare --pid --mount --fork "$threads" 20 2
    expect_status 0
    leftovers
}

@test "a session that ends before finalize ends the job, named" {
    run_pmi --nodes=2 --ppn=1 --pmi-connect=port bash -c '[ $PMI_RANK = 1 ] || exec sleep 60
        exec 3<>/dev/tcp/${PMI_PORT/:/\/}; printf "cmd=initack pmiid=3\ncmd=init pmi_version=1 pmi_subversion=1\n" >&3
        for i in 1 2 3 4 5; do read -r line <&3; done; exec 3>&-; exec sleep 60'
    expect_status 1
    expect_line 'rank 1 on * closed PMI before finalize'
    expect_lines_at_most 1
    leftovers
}

# The node reads who it is and that it is gone in one turn.
@test "a rank that says who it is and is gone at once is blamed, and nobody else" {
    cat >"$HOSTS_DIR/at-once.py" <<'END'
import os, signal, socket
def parent(pid):
    with open(f"/proc/{pid}/status") as file:
        return int(next(line for line in file if line.startswith("PPid:")).split()[1])
worker = parent(os.getppid())
where, _, port = os.environ["PMI_PORT"].partition(":")
s = socket.create_connection((where, int(port)))
ends = [f"0100007F:{number:04X}" for number in (int(port), s.getsockname()[1])]
def is_read():
    with open("/proc/net/tcp") as file:
        return any(line.split()[1:3] == ends and line.split()[4].endswith(":00000000") for line in file)
text = f"cmd=initack pmiid={os.environ['PMI_ID']}\ncmd=init pmi_version=1 pmi_subversion=1\n".encode()
s.sendall(text[:5])
while not is_read():
    pass
os.kill(worker, signal.SIGSTOP)
s.sendall(text[5:])
s.close()
os.kill(worker, signal.SIGCONT)
END
    run_pmi -n 1 --pmi-connect=port python3 "$HOSTS_DIR/at-once.py"
    expect_status 1
    expect_line 'rank 0 on login exited before PMI finalize'
    expect_lines_at_most 1
    run_pmi -H h0 --pmi-connect=port python3 "$HOSTS_DIR/at-once.py"
    expect_status 1
    expect_line 'rank 0 on h0 exited before PMI finalize'
    expect_lines_at_most 1
    rm "$HOSTS_DIR/at-once.py"
    leftovers
}
