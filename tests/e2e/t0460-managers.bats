# SPDX-License-Identifier: BSD-3-Clause
# Within jobs of PBS, LSF and Grid Engine, as far as their environment and files go, with stand-ins for their agents.
load helpers

setup_file() { need_hosts 3; }

setup() {
    need_hosts 3
    dir=$HOSTS_DIR/manager
    rm -rf "$dir"
    mkdir -p "$dir"
    clean_start
}

teardown() {
    end_failed
    rm -rf "$dir"
}

# agent NAME OPTION...: a program that takes these options, the host and words, notes itself, and goes there by ssh.
agent() {
    local name=$1
    shift
    cat >"$dir/$name" <<END
#!/bin/bash
for option in $*; do
    [ "\$1" = "\$option" ] || { echo "$name: not \$option but \$1" >&2; exit 9; }
    shift
done
echo "\$1 \$#" >>"$dir/calls"
host=\$1
shift
exec ssh -oBatchMode=yes "\$host" "\$@"
END
    chmod 755 "$dir/$name"
}

# placed EXPECTED NAME=VALUE... -- ARG...: which rank is where
placed() {
    local expected=$1
    shift
    # shellcheck disable=SC2016
    run_env "$@" sh -c 'echo $PMI_RANK $(hostname)'
    expect_status 0
    [ "$(sort -n <<<"$output" | paste -sd,)" = "$expected" ] || show_run "not as expected"
    [ -z "$stderr" ] || show_run "words on standard error"
    leftovers
}

calls() { sort "$dir/calls" 2>/dev/null | cut -d' ' -f1 | paste -sd,; }

@test "PBS: hosts and slots of PBS_NODEFILE, by ssh" {
    printf 'h1\nh1\nh0\nh1\n' >"$dir/nodes"
    placed '0 h1,1 h1,2 h1,3 h0' PBS_JOBID=7.server PBS_NODEFILE="$dir/nodes" --
    placed '0 h0,1 h0' PBS_JOBID=7.server PBS_NODEFILE="$dir/nodes" -- -H h0:2
    placed '0 h2' PBS_JOBID=7.server PBS_NODEFILE="$dir/nodes" -- -H h2
    run_env PBS_JOBID=7.server PBS_NODEFILE="$dir/nodes" -- --print-hosts=folded
    [ "$output" = "h[1,0]" ] || show_run "not the hosts"
    run_env PBS_JOBID=7.server -- touch /tmp/ran
    expect_status 2
    expect_line "PBS_JOBID is set, but PBS_NODEFILE is not (--bootstrap=local *)"
    run_env PBS_JOBID=7.server PBS_NODEFILE="$dir/none" -- touch /tmp/ran
    expect_status 2
    expect_line "PBS_NODEFILE: '$dir/none': *No such file*"
    leftovers
}

@test "LSF: hosts and slots, by blaunch where it is there" {
    placed '0 h0,1 h0,2 h2' LSB_JOBID=7 LSB_MCPU_HOSTS='h0 2 h2 1' --
    agent blaunch -n
    placed '0 h0,1 h0,2 h2' LSB_JOBID=7 LSB_MCPU_HOSTS='h0 2 h2 1' PATH="$dir:$PATH" --
    [ "$(calls)" = h0,h2 ] || show_run "called for $(calls)"
    printf 'h1\nh2\nh2\n' >"$dir/nodes"
    placed '0 h1,1 h2,2 h2' LSB_JOBID=7 LSB_MCPU_HOSTS='h1 1 h2 2' LSB_DJOB_HOSTFILE="$dir/nodes" PATH="$dir:$PATH" --
    [ "$(calls)" = h0,h1,h2,h2 ] || show_run "called for $(calls)"
    # ssh by name
    placed '0 h0,1 h0,2 h2' LSB_JOBID=7 LSB_MCPU_HOSTS='h0 2 h2 1' PATH="$dir:$PATH" -- --bootstrap=rsh
    [ "$(calls)" = h0,h1,h2,h2 ] || show_run "called for $(calls)"
}

@test "Grid Engine: hosts and slots of PE_HOSTFILE, by qrsh where it is there" {
    printf 'h2 1 all.q@h2 UNDEFINED\nh0 2 all.q@h0 UNDEFINED\n' >"$dir/nodes"
    agent qrsh -inherit -nostdin
    placed '0 h2,1 h0,2 h0' JOB_ID=7 NSLOTS=3 PE_HOSTFILE="$dir/nodes" PATH="$dir:$PATH" --
    [ "$(calls)" = h0,h2 ] || show_run "called for $(calls)"
    run_env JOB_ID=7 NSLOTS=4 PE_HOSTFILE="$dir/nodes" -- touch /tmp/ran
    expect_status 2
    expect_line "PE_HOSTFILE: '$dir/nodes' has 3 slots, but NSLOTS is '4' (--bootstrap=local *)"
    leftovers
}

# flux SCRIPT: a stand-in for the command
flux() {
    printf '#!/bin/sh\n%s\n' "$1" >"$dir/flux"
    chmod 755 "$dir/flux"
}

@test "Flux: the hosts of the instance's brokers, by ssh" {
    local within=(FLUX_URI=local:///run/f/local-0 PATH="$dir:$PATH")
    # shellcheck disable=SC2016 # for the stand-in
    flux '[ "$*" = "getattr hostlist" ] && echo "h[0-2]"'
    placed '0 h0,1 h1,2 h2' "${within[@]}" --
    placed '0 h0,1 h1,2 h2' "${within[@]}" -- --bootstrap=rsh
    placed '0 h2' "${within[@]}" -- -H h2
    flux 'echo "h1,h0,h1,h2"'
    placed '0 h1,1 h1,2 h0,3 h2' "${within[@]}" --
    run_env "${within[@]}" -- --print-hosts=folded
    [ "$output" = "h[1,0,2]" ] || show_run "not the hosts"
    # In a job of one task this machine is all there is; --bootstrap=local asks nobody.
    placed '0 login' "${within[@]}" FLUX_JOB_ID=f1 FLUX_JOB_SIZE=1 --
    flux 'echo called >&2; exit 1'
    placed '0 login' "${within[@]}" -- --bootstrap=local
    placed '0 h1' "${within[@]}" -- -H h1
}

@test "Flux: an instance that does not answer, or not with hosts, is refused" {
    local within=(FLUX_URI=local:///run/f/local-0 PATH="$dir:$PATH")
    flux 'echo "flux-getattr: ERROR: broker: Connection refused" >&2; exit 1'
    run_env "${within[@]}" -- touch /tmp/ran
    expect_status 2
    expect_line "FLUX_URI is set, but flux getattr hostlist fails: 'flux-getattr: ERROR: broker: Connection refused' (--bootstrap=local *)"
    flux 'echo "h[0-"'
    run_env "${within[@]}" -- touch /tmp/ran
    expect_status 2
    expect_line "FLUX_URI is set, and flux getattr hostlist says: *h?0-*"
    flux 'exit 0'
    run_env "${within[@]}" -- touch /tmp/ran
    expect_status 2
    expect_line "FLUX_URI is set, and flux getattr hostlist says: *"
    rm "$dir/flux"
    run_env "${within[@]}" -- touch /tmp/ran
    expect_status 2
    expect_line "FLUX_URI is set, but flux getattr hostlist fails: *flux: not found*"
    run_env "${within[@]}" FLUX_PROXY_REMOTE=there -- touch /tmp/ran
    expect_status 2
    expect_line "FLUX_URI is of an instance elsewhere, as FLUX_PROXY_REMOTE is set *"
    leftovers
}

@test "an agent that fails, and a task that does" {
    agent blaunch -n
    run_env LSB_JOBID=7 LSB_MCPU_HOSTS='h0 1 h2 1' PATH="$dir:$PATH" -- sh -c 'test $PMI_RANK = 0 || exit 5; sleep 30'
    expect_status 5
    expect_lines_at_most 1
    leftovers
    agent blaunch -x
    run_env LSB_JOBID=7 LSB_MCPU_HOSTS='h0 1 h2 1' PATH="$dir:$PATH" -- --start-timeout=20 true
    expect_status 69
    expect_line "h?0,2?: login: blaunch: not -x but -n"
    leftovers
}
