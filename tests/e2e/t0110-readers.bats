# SPDX-License-Identifier: BSD-3-Clause
# PMI clients that read replies as MPICH 4.0.2, the newest MPICH and Flux do, on several hosts.
load helpers

setup_file() { need_hosts 3; }

reader_test() {
    clean_start
    run_pmi -H 'h[0-2]' --ppn=2 --fanout=2 "$client" --style="$1" init , \
        put key-%r value-%r , barrier , want key-0 value-0 , want key-5 value-5 , missing nothing , \
        exchange 5 100 1 new , barrier , on 0 , info , all , finalize
    expect_status 0
    [[ $output == *"exchange: 6 ranks, 5 rounds, all right"* ]] || show_run "no word of the exchange"
    leftovers
}

@test "MPICH 4.0.2's reader" { reader_test mpich402; }
@test "the newest MPICH's reader" { reader_test mpich; }
@test "Flux's reader" { reader_test flux; }
