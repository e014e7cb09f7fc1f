# SPDX-License-Identifier: BSD-3-Clause
# What users of other launchers ran into: the PMI server, and servers that do not answer
load helpers

RUN_LIMIT=60

setup_file() { need_hosts 2; }

setup() { clean_start; }

pmi() { run_pmi -H login,h0 --ppn=2 -l "$client" --style=flux init , "$@" , finalize; }

@test "a key put again and again, and by two ranks in one round: every reader has the same" {
    local steps=() i
    for ((i = 0; i < 101; i++)); do
        steps+=(on $((i % 4)) , put k "round$i" , all , barrier , want k "round$i" , barrier ,)
    done
    pmi "${steps[@]}" on 0,3 , put k both%r , all , barrier , want k both3
    expect_status 0
    leftovers
}

@test "a long value and then a short one: nothing of the first is left in the second" {
    local long
    printf -v long '%01023d' 7
    pmi on 1 , put long "$long" , put short s , put none '' , all , barrier , \
        want long "$long" , want short s , want long "$long" , want none '' , want short s
    expect_status 0
    leftovers
}

@test "random lines from a client: the job may end, the server does not die" {
    local seed words
    for seed in 1 2 3; do
        # shellcheck disable=SC2016 # for the task
        run_pmi --nodes=2 --ppn=2 python3 -c 'import os, random, sys
random.seed(int(sys.argv[1]) * 100 + int(os.environ["PMI_RANK"]))
fd = int(os.environ["PMI_FD"])
words = ["cmd", "=", " ", "init", "put", "get", "barrier_in", "kvsname", "key", "value", "pmi_version", "1", "-1", "\0",
    "spawn", "mcmd", "nprocs", "endcmd", "\n", "\n", "cmd=init pmi_version=1 pmi_subversion=1\n", "abort2", "x" * 2000,
    "cmd=get key=PMI_process_mapping\n", "cmd=get_maxes\n", "group", "tag", "cmd=finalize\n", "initack", "pmiid", "%n"]
try:
    for i in range(400): os.write(fd, "".join(random.choices(words, k=12)).encode())
except OSError: pass' $seed
        ((status < 124 && status != 69)) || show_run "the server died"
    done
    leftovers
}
