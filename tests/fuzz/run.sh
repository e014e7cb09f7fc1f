#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Build every tests/fuzz/fuzz_*.c with libFuzzer and the sanitizers, and run each for a while. Called by `make fuzz`.
#
#   run.sh SRCDIR SECONDS [NAME...]      NAMEs as in fuzz_NAME.c; none: all
#
# CLANG, FUZZ_CPPFLAGS and FUZZ_LIBS come from make. What is found lies in fuzz/ of the build folder: crash-NAME-*, and
# corpus/NAME, of which the interesting part may be copied to tests/fuzz/corpus/NAME.
set -eu

srcdir=$1
secs=$2
shift 2
clang=${CLANG:-clang}
san="-std=gnu11 -g -O1 -fsanitize=address,undefined -fno-sanitize-recover=undefined -fno-omit-frame-pointer"

mkdir -p fuzz/obj
rm -f fuzz/obj/*.o

compile() { # every source but the mains, since a target may use any of them
    # shellcheck disable=SC2016 # the inner shell expands them
    find "$srcdir/common" "$srcdir/client" "$srcdir/conf" "$srcdir/bootstrap" "$srcdir/server" -name '*.c' \
        ! -name main.c ! -name bench_main.c ! -name ssh_main.c ! -name 'libpmi*' |
    while read -r file; do
        object=$(echo "${file#"$srcdir"/}" | tr / _)
        printf '%s fuzz/obj/%s.o\n' "$file" "${object%.c}"
    done |
    FLAGS="$san -fsanitize=fuzzer-no-link $FUZZ_CPPFLAGS" CLANG=$clang \
        xargs -P 4 -n 2 sh -c '$CLANG $FLAGS -c "$0" -o "$1" || exit 255'
    ar rcs fuzz/all.a fuzz/obj/*.o
}

run() {
    name=$1
    corpus=$srcdir/tests/fuzz/corpus/$name
    dict=$srcdir/tests/fuzz/$name.dict
    mkdir -p "fuzz/corpus/$name"
    # shellcheck disable=SC2086 # lists of words
    $clang $san -fsanitize=fuzzer $FUZZ_CPPFLAGS "$srcdir/tests/fuzz/fuzz_$name.c" fuzz/all.a $FUZZ_LIBS -o "fuzz/$name"
    set -- -max_total_time="$secs" -timeout=20 -rss_limit_mb=2048 -print_final_stats=1 \
        -artifact_prefix="fuzz/crash-$name-" "fuzz/corpus/$name" "$corpus"
    if test -f "$dict"; then
        set -- -dict="$dict" "$@"
    fi
    if "fuzz/$name" "$@" >"fuzz/$name.log" 2>&1; then
        echo "fuzz_$name: $(sed -n 's/^stat::number_of_executed_units: *//p' "fuzz/$name.log") inputs, nothing found"
    else
        tail -n 40 "fuzz/$name.log"
        echo "fuzz_$name: FAILED, see fuzz/$name.log"
        return 1
    fi
}

compile
if test $# -eq 0; then
    for file in "$srcdir"/tests/fuzz/fuzz_*.c; do
        name=${file##*/fuzz_}
        set -- "$@" "${name%.c}"
    done
fi
# Two at a time.
failed=0
while test $# -gt 0; do
    run "$1" &
    first=$!
    shift
    if test $# -gt 0; then
        run "$1" || failed=1
        shift
    fi
    wait $first || failed=1
done
exit $failed
