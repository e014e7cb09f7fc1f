# SPDX-License-Identifier: BSD-3-Clause
# What a start does to file systems, which many nodes share: on each node the program is looked for and executed, and that is all;
# no folder is listed, and it is the same however many nodes there are. (Meeting of the OpenPMIx developers, 2023-12-07.)
load helpers

setup_file() { need_hosts 8; }

setup() {
    clean_start
    shared=$HOSTS_DIR/shared
    mkdir -p "$shared/work"
    cp "$client" "$shared/task"
}

teardown() {
    end_failed
    rm -rf "$HOSTS_DIR/shared" "$HOSTS_DIR"/files.*
}

# traced N: a run on N hosts, in which the provider of h0 is looked at, and all that it starts until that is executed. Sets
# $calls: its calls about files, as strace writes them, without numbers of processes.
traced() {
    local script trace=$HOSTS_DIR/files.$1
    script=$(site_script traced <<END
ssh h0 "strace -f -qq -e trace=%file,getdents64,getdents -o '$trace' \$PMI_PROVIDER --pmi-rank=0" &
[ $1 = 1 ] || for i in \$(seq 1 $(($1 - 1))); do ssh "h\$i" "\$PMI_PROVIDER" --pmi-rank="\$i" & done
wait
END
    )
    run_pmi -H "h[0-$(($1 - 1))]" --rsh-command="$script" --rsh-attach=yes -C "$shared/work" \
        "$shared/task" init , exchange 1 10 0 new , finalize
    exchanged "$1"
    # The loader's calls of the task are the task's.
    calls=$(awk -v task="execve(\"$shared/task\"" '{ pid = $1; sub(/^[0-9]+ +/, "") }
        !(pid in gone) && /^[a-z0-9_]+\(/
        index($0, task) == 1 { gone[pid] = 1 }' "$trace")
}

named_by_call() { sed -n 's/(.*//p' <<<"$calls" | sort | uniq -c; }

@test "a provider's calls about files are few, none lists a folder, and their number is not that of the nodes" {
    local few many
    traced 2
    few=$(named_by_call)
    output=$calls
    (($(wc -l <<<"$calls") <= 60)) || show_run "that are many"
    ! grep -q '^getdents' <<<"$calls" || show_run "a folder was listed"
    # Of what is shared: the folder is looked at and entered, the program looked at and executed.
    grep -F "\"$shared" <<<"$calls" >"$BATS_TEST_TMPDIR/shared"
    (($(wc -l <"$BATS_TEST_TMPDIR/shared") <= 8)) || show_run "$(<"$BATS_TEST_TMPDIR/shared")"
    [ "$(grep -c '^execve' "$BATS_TEST_TMPDIR/shared")" = 1 ]
    traced 8
    many=$(named_by_call)
    [ "$few" = "$many" ] || show_run "2 nodes: $few; 8 nodes: $many"
    leftovers
}
