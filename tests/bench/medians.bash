# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash
# medians.bash - what the tables are made of: files $tmp/NAME with one number a line, one for each run
: "${tmp:?where the files are}"

# median NAME: or nothing
median() { [ -s "$tmp/$1" ] && sort -n "$tmp/$1" | awk '{v[NR] = $1} END {print v[int((NR + 1) / 2)]}'; }

# ratio A B
ratio() {
    local a b
    a=$(median "$1")
    b=$(median "$2")
    if [ -z "$a" ] || [ -z "$b" ]; then
        printf " - |"
        return
    fi
    LC_ALL=C awk -v a="$a" -v b="$b" 'BEGIN {printf " %.2f |", a / b}'
}

