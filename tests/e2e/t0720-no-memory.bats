# SPDX-License-Identifier: BSD-3-Clause
# A process of the run finds no memory at one of its allocations, or from there on: the run ends in time and says so,
# nobody crashes, nothing is left.
load helpers

setup_file() { need_hosts 1; }

setup() { clean_start; }

sweep() {
    local folder=$HOSTS_DIR/no-memory
    mkdir -p "$folder"
    run on login python3 "$BATS_TEST_DIRNAME/no_memory.py" "$build" "$folder" "$@"
    stderr=''
    rm -rf "$folder"
    expect_status 0
    leftovers 7
}

# More of them by hand: NO_MEMORY_START=3 no_memory.py BUILD FOLDER SEED COUNT.
@test "launcher, provider, keeper or login is short of memory, at random" {
    sweep 1 200 12
}
