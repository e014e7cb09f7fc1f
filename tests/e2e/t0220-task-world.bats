# SPDX-License-Identifier: BSD-3-Clause
# What a task finds: environment, arguments, directory, limits, its place among the ranks
load helpers

setup_file() { need_hosts 2; }

setup() {
    mkdir "$HOSTS_DIR/home/world"
    cd "$HOSTS_DIR/home/world" || return
}

teardown() {
    end_failed
    rm -rf "$HOSTS_DIR/home/world"
}

# sh_pmi SCRIPT ARG...: run SCRIPT by a shell on login, in a folder of the shared home; "$@" is pmi-start with ARG...
sh_pmi() {
    local script="cd /root/world; $1"
    shift
    run --separate-stderr on login timeout --foreground -s KILL "$RUN_LIMIT" bash -c "$script" sh "$pmi_start" "$@"
}

# expect_output TEXT: standard output, its lines sorted.
expect_output() { [ "$(sort <<<"$output")" = "$1" ] || show_run "not '$1'"; }

@test "variables that tell a task its place, on every node" {
    run_pmi -H login,'h[0-1]' --ppn=2 sh -c 'echo $PMI_RANK $PMI_SIZE $MPI_LOCALRANKID $MPI_LOCALNRANKS \
        $PMI_LOCAL_RANK $PMI_LOCAL_SIZE $PMI_NODE $PMI_NODES ${PMI_FD:+fd} ${PMI_SPAWNED-x} ${PMI_PORT-x} ${PMI_ID-x}'
    expect_status 0
    expect_output '0 6 0 2 0 2 0 3 fd x x x
1 6 1 2 1 2 0 3 fd x x x
2 6 0 2 0 2 1 3 fd x x x
3 6 1 2 1 2 1 3 fd x x x
4 6 0 2 0 2 2 3 fd x x x
5 6 1 2 1 2 2 3 fd x x x'
}

@test "the environment goes along, less what names this session or host" {
    sh_pmi 'export KEPT="a  b" EMPTY= LINES2=$'"'one\ntwo'"' SLURM_JOB_ID=7 OMPI_MCA_btl=tcp
        export PMI_RANK=99 PMI_SPAWNED=1 PMI_PORT=x PMIX_RANK=1 HYDI_CONTROL_FD=5 HYDRA_X=1
        export OMPI_COMM_WORLD_RANK=1 SLURM_PROCID=1 SLURM_STEP_ID=0 DISPLAY=:0 XAUTHORITY=x SSH_AUTH_SOCK=x
        export DBUS_SESSION_BUS_ADDRESS=x XDG_RUNTIME_DIR=/x
        export XDG_SESSION_ID=1 WINDOWID=1 HOSTNAME=wrong
        "$@"' -H login,h0 sh -c 'env -0 | tr "\0\n" "\n~" |
            grep -aE "^(KEPT|EMPTY|LINES2|SLURM|OMPI|PMI_(RANK|SPA|PORT)|PMIX|HYD)" >env.$PMI_NODE
        env | grep -E "^(DISPLAY|XAUTH|SSH|DBUS|XDG|WINDOWID|HOSTNAME)" && exit 1; sort -o env.$PMI_NODE env.$PMI_NODE'
    expect_status 0
    [ "$(<env.1)" = 'EMPTY=
KEPT=a  b
LINES2=one~two
OMPI_MCA_btl=tcp
PMI_RANK=1
SLURM_JOB_ID=7' ] || show_run "$(<env.1)"
    [ "$(<env.0)" = "$(sed s/RANK=1/RANK=0/ env.1)" ]
}

@test "--env sets, passes on and removes; --env-none starts from nothing" {
    sh_pmi 'export A=1 B=2 DISPLAY=:0; "$@"' -E A=new -E NEW='x y=z' -E DISPLAY -H h0 sh -c 'echo "$A,$B,$NEW,$DISPLAY"'
    expect_status 0
    [ "$output" = "new,2,x y=z,:0" ] || show_run env
    sh_pmi 'export A=1 B=2; "$@"' --env-none -E A -E C=3 -H h0 /usr/bin/env
    expect_status 0
    [ "$(grep -v -e ^PMI_ -e ^MPI_ -e ^PWD= <<<"$output" | sort)" = $'A=1\nC=3' ] || show_run env-none
}

@test "arguments and environment arrive byte for byte" {
    local i odd=('' ' ' $'two\nlines' "it's" '"' "\\" '$HOME' '*' $'\x01\xff\xfe' '-n' '%n' 'a=b' $'\t' '`ls`')
    for ((i = 0; i < 500; i++)); do odd+=("argument $i"); done
    local show='import os, sys; os.write(1, b"".join(os.fsencode(a) + b"\0" for a in sys.argv[1:]))'
    python3 -c "$show" "${odd[@]}" >expected
    sh_pmi '"$@"' -o 'args.%n' -H login,h0 -- python3 -c "$show" "${odd[@]}"
    expect_status 0
    cmp expected args.0
    cmp expected args.1
    sh_pmi 'for i in 1 2 3 4 5 6 7 8 9 10; do export BIG$i=$(head -c 100000 /dev/zero | tr "\0" $((i % 10)))
        done; "$@"' -H login,h0 sh -c 'env | grep ^BIG | sort | md5sum'
    expect_status 0
    ((${#lines[@]} == 2)) && [ "${lines[0]}" = "${lines[1]}" ] || show_run "1 MB of environment"
}

@test "directory: as the shell spells it, --chdir, relative and absolute, missing on a node" {
    mkdir real
    ln -s real link
    sh_pmi 'cd link; "$@"' -H login,h0 sh -c 'echo "$PWD $(pwd -L) $(/bin/pwd)"'
    expect_status 0
    local line='/root/world/link /root/world/link /root/world/real'
    expect_output "$line"$'\n'"$line"
    sh_pmi 'PWD=/usr "$@"' -n 1 sh -c 'pwd'
    expect_output /root/world
    sh_pmi '"$@"' -C /usr -H login,h0 sh -c pwd
    expect_output $'/usr\n/usr'
    sh_pmi '"$@"' --chdir=link -n 1 sh -c pwd
    expect_output /root/world/link
    printf '#!/bin/sh\necho here\n' >link/prog
    chmod +x link/prog
    sh_pmi '"$@"' --chdir=link -H login,h0 ./prog
    expect_output $'here\nhere'
    on login mkdir /tmp/only-here
    sh_pmi 'cd /tmp/only-here; "$@"' -H login,h0 touch /root/world/started
    on login rmdir /tmp/only-here
    expect_status 1
    expect_line "*h0*/tmp/only-here*No such file or directory"
    expect_lines_at_most 1
    [ ! -e started ]
}

@test "limits and umask are carried over, up to a node's hard limit; the CPU mask is left alone" {
    sh_pmi 'ulimit -Sn 777; ulimit -Ss 4096; ulimit -Sc 0; umask 027; "$@"' -H login,h0 \
        bash -c 'echo $(ulimit -Sn; ulimit -Ss; ulimit -Sc; umask)'
    expect_status 0
    expect_output $'777 4096 0 0027\n777 4096 0 0027'
    sh_pmi 'ulimit -Sc unlimited; "$@"' -H login,h0 bash -c 'ulimit -Sc'
    expect_output $'unlimited\nunlimited'
    sh_pmi 'taskset -c 1 "$@"' -n 2 sh -c 'taskset -p $$ | sed "s/.*: //"'
    expect_output $'2\n2'
    sh_pmi '"$@"' -n 2 sh -c 'grep Cpus_allowed: /proc/self/status'
    expect_output "$(on login sh -c 'for i in 1 2; do grep Cpus_allowed: /proc/self/status; done')"
}

@test "signals are at their defaults, but HUP and INT stay ignored where they were" {
    run_pmi -H login,h0 grep SigBlk /proc/self/status
    expect_output $'SigBlk:\t0000000000000000\nSigBlk:\t0000000000000000'
    run_pmi -H login,h0 grep SigIgn /proc/self/status
    expect_output $'SigIgn:\t0000000000000000\nSigIgn:\t0000000000000000'
    sh_pmi 'trap "" HUP INT USR1; "$@"' -H login,h0 grep SigIgn /proc/self/status
    expect_output $'SigIgn:\t0000000000000003\nSigIgn:\t0000000000000003'
}

@test "descriptors: none but the standard ones and PMI" {
    sh_pmi 'exec 7</dev/null 8>/dev/null; "$@"' -H login,h0 python3 -c 'import os
print([n for n in range(3, 200) if os.path.exists("/proc/self/fd/%d" % n)], os.environ["PMI_FD"])'
    expect_output $'[3] 3\n[3] 3'
}

@test "placement: slots, -n, --ppn, --map, and a mapping that clients can read" {
    local hosts
    run_pmi --nodes=3 --ppn=2 --map=cyclic -l sh -c 'echo $PMI_NODE'
    expect_output $'0: 0\n1: 1\n2: 2\n3: 0\n4: 1\n5: 2'
    run_pmi --nodes=3 -n 7 -l sh -c 'echo $PMI_NODE'
    expect_output $'0: 0\n1: 0\n2: 0\n3: 1\n4: 1\n5: 2\n6: 2'
    run_pmi -H h0:2,h1:1 -l hostname
    expect_output $'0: h0\n1: h0\n2: h1'
    run_pmi -H h0:2,h1:1 -n 5 -l hostname
    expect_status 0
    run_pmi -n 5 -l sh -c 'echo $PMI_NODE $PMI_NODES'
    expect_output $'0: 0 1\n1: 0 1\n2: 0 1\n3: 0 1\n4: 0 1'
    for hosts in '-n 7' '--ppn=3' '--ppn=3 --map=cyclic' '-n 10 --map=cyclic'; do
        # shellcheck disable=SC2086 # words
        run_pmi --nodes=4 $hosts "$client" init , mapping , finalize
        expect_status 0
        [[ $output == "mapping: (vector,"* ]] || show_run "$hosts"
    done
}

@test "several programs in one job, split by colons" {
    run_pmi -l --nodes=2 -n 2 "$client" init , info , finalize : -n 3 "$client" init , info , finalize
    expect_status 0
    [ "$(grep -c 'size=5 universe=5 appnum=0' <<<"$output")" = 2 ] || show_run appnum
    [ "$(grep -c 'size=5 universe=5 appnum=1' <<<"$output")" = 3 ] || show_run appnum
    run_pmi -l -n 1 sh -c 'echo "$WHO"' : -n 2 -E WHO=me sh -c 'echo "$WHO"' : -n 1 echo last
    expect_output $'0: \n1: me\n2: me\n3: last'
    run_pmi -n 1 -- echo a : b
    expect_output 'a : b'
}

@test "--preput is there before anything ran, on every node" {
    run_pmi --nodes=3 --preput=one=1 --preput='two=a b=c' "$client" --style=flux \
        init , want one 1 , want two 'a b=c' , missing three , finalize
    expect_status 0
}

@test "a pmi-start inside a task is a job of its own, here and on another host" {
    run_pmi -H login,h0 "$pmi_start" -n 2 "$client" init , exchange 1 5 0 fresh , finalize
    expect_status 0
    expect_output $'exchange: 2 ranks, 1 rounds, all right\nexchange: 2 ranks, 1 rounds, all right'
    run_pmi -n 2 "$pmi_start" --nodes=2 sh -c 'exit 3'
    expect_status 3
}

@test "a low soft limit of descriptors is the tasks', not ours" {
    run on login sh -c 'ulimit -Sn 12; exec "$@"' sh "$pmi_start" -n 3 sh -c 'ulimit -Sn'
    [ "$status" = 0 ]
    [ "$output" = $'12\n12\n12' ]
}

@test "more tasks than there can be descriptors for are refused before any runs" {
    clean_start
    run --separate-stderr on login sh -c 'ulimit -n 100; exec "$@"' sh "$pmi_start" -n 40 touch /tmp/ran
    [ "$status" = 1 ] || show_run here
    expect_line '*: 40 tasks need 120 open files here, but the limit (ulimit -n) is 100: use more nodes, or raise it'
    run_pmi -H h0 -n 1000000 true
    expect_status 1
    expect_line '*1000000 tasks need 3000000 open files here*'
    expect_lines_at_most 2
    leftovers
}

@test "a limit of descriptors, however low, is said" {
    local n
    clean_start
    for ((n = 4; n < 20; n++)); do
        # shellcheck disable=SC2016 # for the shell on the host
        run --separate-stderr on login sh -c 'exec 3>&- 4>&- 5>&- 6>&-; ulimit -n $0; exec "$@"' \
            "$n" "$pmi_start" --nodes=2 true
        [[ $status =~ ^(0|1|69|126)$ ]] || show_run "status $status with $n"
        [ "$status" = 0 ] || [[ $stderr == *[Tt]'oo many open files'* ]] || show_run "$n"
    done
    leftovers
}
