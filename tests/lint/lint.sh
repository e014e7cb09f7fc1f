#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# lint.sh [SRCDIR] - the rules of CONTRIBUTING.md that a program can hold us to (TAP)
set -u
cd "${1:-.}" || exit 1
shopt -s globstar nullglob
sources=({common,conf,bootstrap,server,client,tests}/**/*.[ch])
scripts=(quickstart .ci/run {bootstrap,tests}/**/*.{sh,bash})
count=0 failed=0

# rule TEXT COMMAND...: holds when COMMAND prints nothing and succeeds.
rule() {
    local text=$1 found
    shift
    count=$((count + 1))
    if found=$("$@" 2>&1) && [ -z "$found" ]; then
        echo "ok $count - $text"
    else
        failed=$((failed + 1))
        echo "not ok $count - $text"
        echo "# ${found//$'\n'/$'\n'# }"
    fi
}

none() { ! grep -En "$@"; }

formatted() { clang-format --dry-run -Werror "${sources[@]}"; }

checked() { shellcheck "${scripts[@]}"; }

# uthash's loops are too much for its uninitvar, which the compilers' warnings cover.
analysed() {
    cppcheck --suppress=uninitvar --enable=warning,portability --error-exitcode=1 --quiet \
        --inline-suppr -I. -D_GNU_SOURCE client common conf bootstrap server
}

manuals() {
    local pages=(docs/*.[1-8] docs/man3/*.3)
    ((${#pages[@]} == 0)) || mandoc -Tlint -Wwarning "${pages[@]}"
}

# Each function of the two headers has a line in a page's NAME, and a file of its name.
documented() {
    local name
    while read -r name; do
        grep -qxE "\.Nm $name( ,)?" docs/man3/*.3 || echo "$name is in no page"
        grep -q "man3/$name\.3 " docs/docs.am || echo "$name is not in docs.am"
    done < <(sed -n 's/^int \(PMI[A-Za-z0-9_]*\)(.*/\1/p' client/pmi.h client/pmi2.h)
}

header_sizes() {
    wc -l {common,conf,bootstrap,server,client}/**/*.h | awk '$2 != "total" && $1 > 150 { print $2 ": " $1 " lines" }'
}

# Which folder may include from which: arrows point one way only.
arrows() {
    local dir allowed file
    while read -r dir allowed; do
        for file in "$dir"/*.[ch]; do
            grep -Hn '^#include "' "$file" | grep -Ev "\"(config\.h|($allowed)/[a-z0-9_]+\.h)\"" && return 1
        done
    done <<'END'
common common
common/io common|common/io
conf common|common/io|conf
bootstrap common|common/io|conf|bootstrap
server common|common/io|conf|bootstrap|server
client common|client
tests/progs tests/progs
END
    return 0
}

# tests.am has why.
test_limits() { none '\.timeout = ' tests/unit/*.[ch]; }

# libuv stays where there is a loop.
uv_places() { none '#include <uv\.h>|\buv_[a-z]+\(' common/*.[ch] conf/*.[ch] client/*.[ch]; }

license() {
    local file
    for file in "${sources[@]}" "${scripts[@]}"; do
        head -n 2 "$file" | grep -q 'SPDX-License-Identifier: BSD-3-Clause' || echo "$file"
    done
}

file_sizes() { wc -l "${sources[@]}" "${scripts[@]}" | awk '$2 != "total" && $1 > 500 { print $2 ": " $1 " lines" }'; }

# A function's body stands between a line "{" and a line "}".
function_sizes() {
    awk '/^\{/ { start = FNR } /^\}/ && start {
        if (FNR - start > 61) print FILENAME ":" start ": " FNR - start - 1 " lines"
        start = 0 }' "${sources[@]}"
}

line_lengths() { none '^.{121}' "${sources[@]}" "${scripts[@]}"; }

banned_calls() {
    none '\b(atoi|atol|atof|strcpy|strcat|sprintf|vsprintf|strtok|gets|alloca)\(' "${sources[@]}"
}

no_leftovers() { none '\b(TODO|FIXME|XXX)[: ]' "${sources[@]}" "${scripts[@]}" || :; }

rule 'C is formatted as .clang-format says' formatted
rule 'shell scripts pass shellcheck' checked
rule 'cppcheck finds nothing' analysed
rule 'man pages pass mandoc' manuals
rule 'every function of pmi.h and pmi2.h has its manual page' documented
rule 'includes point one way: common < common/io < conf < bootstrap < server; common < client' arrows
rule 'no libuv in common, conf and client' uv_places
rule 'common stands without common/io' none '"common/io/' common/*.[ch]
rule 'unit tests have no limit of their own' test_limits
rule 'every source names its license' license
rule 'no file of more than 500 lines' file_sizes
rule 'no header of more than 150 lines' header_sizes
rule 'no function of more than 60 lines' function_sizes
rule 'no line of more than 120 columns' line_lengths
rule 'no call that cannot check its input or its room' banned_calls
rule 'no notes of things to do' no_leftovers
echo "1..$count"
((failed == 0))
