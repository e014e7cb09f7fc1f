#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# test_readers.sh - are pmi_client's readers as strict as the clients they stand for? (TAP)
client=${READERS_CLIENT:?the pmi_client to test}
count=0

# row STATUS STYLE REPLY LINE: status 0 good, 1 a failure that the server reports, 90 such a client chokes on it.
row() {
    count=$((count + 1))
    "$client" check "$2" "$3" "$4" >/dev/null
    got=$?
    if [ "$got" = "$1" ]; then
        echo "ok $count - $2: $4"
    else
        echo "not ok $count - $2: $4: status $got, not $1"
    fi
}

init='cmd=response_to_init rc=0 pmi_version=1 pmi_subversion=1'
get='cmd=get_result rc=0 value=a=b#$'
for style in mpich402 mpich flux; do
    row 0 $style response_to_init "$init"
    row 0 $style get_result "$get"
    row 1 $style get_result 'cmd=get_result rc=4 msg=key_not_found'
    row 1 $style put_result 'cmd=put_result rc=7'
    row 0 $style barrier_out 'cmd=barrier_out rc=0'
    row 0 $style barrier_out 'cmd=barrier_out'
    row 90 $style put_result "$get"
    row 90 $style put_result 'rubbish'
done
row 0 mpich402 get_result 'rc=0  cmd=get_result value= '
row 90 mpich402 get_result 'cmd=get_result rc=4 msg=not found'
row 90 mpich402 response_to_init 'cmd=response_to_init pmi_version=1 pmi_subversion=1'
row 0 mpich402 response_to_init 'cmd=response_to_init rc=0 pmi_version=1 pmi_subversion=2'
row 1 mpich402 response_to_init 'cmd=response_to_init rc=00 pmi_version=1 pmi_subversion=1'
row 90 mpich402 maxes 'cmd=maxes a_key_of_more_than_31_characters=1'
row 90 mpich get_result 'rc=0 cmd=get_result value=a'
row 90 mpich get_result 'cmd=get_result rc=0 value='
row 0 mpich barrier_out 'cmd=barrier_out lonely rc=0'
row 90 flux response_to_init 'cmd=response_to_init rc=0 pmi_version=1 pmi_subversion=2'
row 90 flux response_to_init 'cmd=response_to_init rc=0'
row 1 flux get_result 'cmd=get_result value=a rc=7'
row 0 flux get_result 'cmd=get_result rc=0 value=a rc=7'
row 90 flux get_result 'cmd=get_result rc=x value=a'
echo "1..$count"
