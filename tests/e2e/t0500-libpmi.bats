# SPDX-License-Identifier: BSD-3-Clause
# libpmi and libpmi2: the same two programs, which call all of them, with our server, Hydra and Slurm; and programs that
# were made for other libraries with ours.
load helpers

setup_file() { need_hosts 4; }

setup() {
    RUN_LIMIT=60
    progs=$build/tests/progs
    libs=$build/.libs
    slurms=/usr/lib/$(gcc -print-multiarch)
    clean_start
}

teardown_file() { "$hosts_scripts/slurm.sh" down; }

# all_right PROGRAM: it says so, and the run left nothing.
all_right() {
    expect_status 0
    [[ $output == *"$1: "*"all right"* ]] || show_run "$1 does not say that all is right"
    leftovers
}

# elsewhere COMMAND...: run another launcher on login
elsewhere() { run --separate-stderr on login timeout -s KILL "$RUN_LIMIT" "$@"; }

have_slurm() {
    on login sinfo -h >/dev/null 2>&1 </dev/null || "$hosts_scripts/slurm.sh" up 4 || return
    clean_start
}

# srun ARG...: as a step of two tasks on each of four nodes. Its daemons talk at any time: leftovers means nothing.
srun() {
    have_slurm
    elsewhere srun -N4 -n8 --ntasks-per-node=2 --mpi=pmi2 "$@" </dev/null
    expect_status 0
    [[ $output == *"all right"* ]] || show_run "it does not say that all is right"
}

@test "libpmi by itself, and what it says where it is not" {
    elsewhere "$progs/pmi_suite" --fork --threads --again
    all_right pmi_suite
    elsewhere "$progs/pmi2_suite" --ours --no-names
    all_right pmi2_suite
    elsewhere env PMI_RANK=0 PMI_SIZE=2 "$progs/pmi_suite"
    expect_status 1
    [[ $stderr == "libpmi: PMI_RANK is set but neither PMI_FD nor PMI_PORT: "* ]] || show_run "no word of what is missing"
    elsewhere env PMI_FD=99 PMI_RANK=0 PMI_SIZE=2 "$progs/pmi2_suite"
    expect_status 1
    [[ $stderr == "libpmi2: PMI_FD is 99, but no such descriptor is open"* ]] || show_run "no word of what is wrong"
}

@test "what the libraries export is what Slurm's do" {
    local lib
    for lib in libpmi libpmi2; do
        [ "$(nm -D --defined-only "$libs/$lib.so.0" | awk '{ print $3 }')" = \
            "$(nm -D --defined-only "$slurms/$lib.so.0" | awk '$2 == "T" { print $3 }')" ]
    done
}

# everywhere PROGRAM ARG...: with pmi-start on one host and on four, over the descriptor and over the port
everywhere() {
    local connect
    for connect in fd port; do
        run_pmi --nodes=4 --ppn=2 --pmi-connect=$connect "$progs/$1" "${@:2}"
        all_right "$1"
        run_pmi -H 'h[0-3]' --ppn=2 --fanout=2 --pmi-connect=$connect "$progs/$1" "${@:2}"
        all_right "$1"
    done
}

@test "libpmi with pmi-start" { everywhere pmi_suite --fork --threads --again --names --spawn; }

@test "libpmi2 with pmi-start" { everywhere pmi2_suite --ours --spawn; }

# Over the port it gives its PMI_ID for a rank, which no server can help.
@test "Slurm's own libpmi2 with pmi-start" {
    run_pmi -H 'h[0-3]' --ppn=2 --fanout=2 -E LD_LIBRARY_PATH="$slurms" "$progs/pmi2_suite" --spawn
    all_right pmi2_suite
}

@test "libpmi with Hydra, over its descriptor and its port" {
    elsewhere mpiexec.hydra -n 8 "$progs/pmi_suite" --plain --names --fork --threads --spawn
    all_right pmi_suite
    elsewhere mpiexec.hydra -pmi-port -n 8 "$progs/pmi_suite" --plain --names --fork --threads
    all_right pmi_suite
}

@test "libpmi2 with Hydra, over its descriptor and its port" {
    elsewhere mpiexec.hydra -n 8 "$progs/pmi2_suite" --plain --ours --spawn
    all_right pmi2_suite
    elsewhere mpiexec.hydra -pmi-port -n 8 "$progs/pmi2_suite" --plain --ours
    all_right pmi2_suite
}

@test "libpmi and libpmi2 under srun" {
    srun "$progs/pmi_suite" --plain --fork --threads
    srun "$progs/pmi2_suite" --plain --ours
    srun env LD_LIBRARY_PATH="$slurms" "$progs/pmi2_suite" --plain
    "$hosts_scripts/slurm.sh" down
}

# The same sources with Slurm's headers and libraries, of which only the name is left at run time.
@test "programs made for Slurm's libraries" {
    local name src=$BATS_TEST_DIRNAME/../..
    for name in pmi pmi2; do
        gcc -I"$src" -I/usr/include/slurm -pthread -o "$HOSTS_DIR/slurms-$name" \
            "$src/tests/progs/${name}_suite.c" "$src/tests/progs/suite.c" "-l$name"
    done
    run_pmi -H 'h[0-3]' --ppn=2 -E LD_LIBRARY_PATH="$libs" "$HOSTS_DIR/slurms-pmi" --fork --threads
    all_right pmi_suite
    run_pmi -H 'h[0-3]' --ppn=2 -E LD_LIBRARY_PATH="$libs" "$HOSTS_DIR/slurms-pmi2" --ours
    all_right pmi2_suite
}

@test "loaded and unloaded three hundred times" {
    run_pmi -n 2 "$progs/pmi_dl" "$libs/libpmi.so.0" 300
    all_right pmi_dl
    elsewhere "$progs/pmi_dl" "$libs/libpmi.so.0" 300
    all_right pmi_dl
}

@test "an abort is the job's end, with its status and its words" {
    run_pmi -n 2 --ppn=1 --nodes=2 "$progs/pmi_suite" --abort
    expect_status 42
    [[ $stderr == *"libpmi: rank 1: PMI_Abort(42): as told"* ]] || show_run "no word of the abort"
    leftovers
}

@test "Open MPI starts over it" {
    [ -x "$progs/mpi_check_openmpi" ] || skip "built without Open MPI"
    run_pmi -H 'h[0-3]' --ppn=2 -E FLUX_JOB_ID=1 -E FLUX_PMI_LIBRARY_PATH="$libs/libpmi.so.0" \
        "$progs/mpi_check_openmpi"
    expect_status 0
    [ "$output" = "mpi_check: 8 ranks, allreduce, ring and split right; ranks a node: 2 (8 ranks)" ] ||
        show_run "not what mpi_check says when all is right"
    leftovers 5
}
