#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""logins.py - starts of `true` on ssh hosts, flat and by a tree of logins, beside pdsh, Hydra and Open MPI

    logins.py --build=DIR [--hosts=32,64] [--runs=N]

Run `make bench-logins` instead. Hosts are network namespaces (tests/hosts) with a real sshd, so that all share this
machine's processors. Prints tables in Markdown; the cells are medians of runs made in turn: seconds from start to exit;
milliseconds of CPU of what runs where the logins begin (the launcher and all that it has started there, ssh above all);
and of the whole machine, a host.
"""
import argparse
import os

import turns


def arguments():
    parser = argparse.ArgumentParser(description="starts on ssh hosts")
    parser.add_argument("--build", required=True)
    parser.add_argument("--hosts", type=turns.numbers, default="32,64")
    parser.add_argument("--runs", type=int, default=5)
    return parser.parse_args()


def ways(build, hosts):
    ours, some = os.path.join(build, "pmi-start"), f"h[0-{hosts - 1}]"
    return {
        "pdsh": ["pdsh", "-R", "ssh", "-f", "32", "-w", some, "true"],
        "pmi-start": [ours, "-H", some, "true"],
        "pmi-start --rsh-tree": [ours, "-H", some, "--rsh-tree", "true"],
        "Hydra": ["mpiexec.hydra", "-launcher", "ssh", "-hosts", turns.names_of(hosts), "-n", str(hosts), "-ppn", "1",
                  "true"],
        "mpirun": turns.mpirun(hosts, "true"),
    }


def table(args, cluster):
    print(f"Start to exit of `true`, one task a host, medians of {args.runs}:\n")
    print("| hosts | how | seconds | to pdsh | CPU at the launcher, ms | CPU of all, ms a host |")
    print("|---|---|---|---|---|---|", flush=True)
    for hosts in args.hosts:
        seen = turns.in_turn(cluster, ways(args.build, hosts), args.runs)
        pdsh = turns.median(seen["pdsh"], "seconds")
        for name, rows in seen.items():
            seconds, root, whole = (turns.median(rows, what) for what in ("seconds", "cpu_ms", "all_ms"))
            cells = f"{seconds:.3f} | {seconds / pdsh:.2f} | {root:.0f} | {whole / hosts:.0f}"
            print(f"| {hosts} | {name} | {cells} |", flush=True)


def main():
    args = arguments()
    args.build = os.path.abspath(args.build)
    turns.on_cluster(args.build, max(args.hosts), "logins", lambda cluster: table(args, cluster))


main()
