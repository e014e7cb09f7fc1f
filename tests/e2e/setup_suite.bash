# SPDX-License-Identifier: BSD-3-Clause
# setup_suite.bash - before and after all files of one `make e2e`: a cluster of its own, gone at the end
#
# The files share it, as to start hosts costs more than most tests; need_hosts() in each adds what is missing.

setup_suite() {
    export HOSTS_FASTKEX=1
    # The system's own programs: a wrapper before them may take a second of CPU for each python3.
    export PATH=/usr/sbin:/usr/bin:/sbin:/bin:$PATH
    # What is freed is filled with something else at once: who reads it is killed by a signal, on every host.
    export GLIBC_TUNABLES=glibc.malloc.tcache_count=0:glibc.malloc.perturb=165
    export HOSTS_SETENV=GLIBC_TUNABLES=$GLIBC_TUNABLES
    if [ -z "${HOSTS_DIR:-}" ]; then
        export HOSTS_DIR=/run/pmi-start-e2e.$$ HOSTS_PREFIX=e2e$$-
    fi
    export HOSTS_SHOW=$E2E_BUILD
}

teardown_suite() {
    "$BATS_TEST_DIRNAME/../hosts/down.sh"
}
