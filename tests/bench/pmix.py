#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""pmix.py - programs of Open MPI on ssh hosts, beside mpirun: start to exit, fences by size, and what PMIx costs a node

    pmix.py --build=DIR [--hosts=1,8,32] [--fence-hosts=8,32] [--sizes=64,512,4096] [--rounds=N] [--runs=N]

Run `make bench-pmix` instead. Hosts are network namespaces (tests/hosts) with a real sshd, so that all share this
machine's processors. All columns of a row are measured in turn, run by run; the cells are medians. Prints tables in
Markdown:

    start     start to exit of an MPI program (mpi_check, one rank a host), seconds, and the CPU time of the whole
              machine meanwhile, milliseconds a host
    fence     put, commit and a fence that collects, as the first rank sees it (pmix_fence), microseconds a round
    a node    private memory, resident memory, threads and CPU time of a provider, with PMIx and without
"""
import argparse
import os
import signal
import statistics
import subprocess

import turns

LIMIT = 120


def arguments():
    parser = argparse.ArgumentParser(description="PMIx of pmi-start beside mpirun's")
    parser.add_argument("--build", required=True)
    parser.add_argument("--hosts", type=turns.numbers, default="1,8,32")
    parser.add_argument("--fence-hosts", type=turns.numbers, default="8,32")
    parser.add_argument("--sizes", type=turns.numbers, default="64,512,4096")
    parser.add_argument("--rounds", type=int, default=50)
    parser.add_argument("--runs", type=int, default=5)
    return parser.parse_args()


class Bench:
    def __init__(self, args, cluster):
        self.args, self.cluster = args, cluster
        self.pmi_start = os.path.join(args.build, "pmi-start")
        self.fence = os.path.join(args.build, "tests/bench/pmix_fence")
        self.check = os.path.join(args.build, "tests/progs/mpi_check_openmpi")
        self.client = os.path.join(args.build, "tests/progs/pmi_client")

    def ours(self, hosts, *words):
        return [self.pmi_start, "-H", f"h[0-{hosts - 1}]", *words]

    # --- tables

    def start_row(self, hosts):
        seen = turns.in_turn(self.cluster, {
            "true": self.ours(hosts, "true"), "ours": self.ours(hosts, self.check),
            "theirs": turns.mpirun(hosts, self.check)}, self.args.runs)
        seconds = {way: turns.median(rows, "seconds") for way, rows in seen.items()}
        cpu = {way: turns.median(rows, "all_ms") / hosts for way, rows in seen.items()}
        print(f"| {hosts} | {seconds['true']:.3f} | {seconds['ours']:.3f} | {seconds['theirs']:.3f} | "
              f"{seconds['ours'] / seconds['theirs']:.2f} | {cpu['true']:.0f} | {cpu['ours']:.0f} | "
              f"{cpu['theirs']:.0f} |", flush=True)

    def fence_row(self, hosts, size):
        words = [self.fence, str(size), str(self.args.rounds)]
        seen = turns.in_turn(self.cluster, {
            "ours": self.ours(hosts, "--pmix=yes", *words), "theirs": turns.mpirun(hosts, *words)}, self.args.runs)
        ours, theirs = (statistics.median(float(row.output) for row in seen[way]) for way in ("ours", "theirs"))
        print(f"| {hosts} | {size} | {ours:.0f} | {theirs:.0f} | {ours / theirs:.2f} |", flush=True)

    def node_row(self, name, argv):
        run = subprocess.Popen(self.cluster.enter(turns.LOGIN) + argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                               env=turns.surroundings())
        run.stdout.readline()  # all are through their first rounds
        rows = [self._process(p) for p in self.cluster.roles()["worker"]]
        for p in self.cluster.roles()["launcher"]:
            self.cluster.signal(p, signal.SIGTERM)
        run.wait(LIMIT)
        run.stdout.close()
        cells = [f"{statistics.median(column):.0f}" for column in zip(*rows)]
        print(f"| {name} | {len(rows)} | " + " | ".join(cells) + " |", flush=True)

    def _process(self, p):
        proc = f"{self.cluster.root(p.host)}/proc/{p.pid}"
        kib = {"Private": 0, "Rss": 0}
        for line in turns.traces.text_of(f"{proc}/smaps_rollup").splitlines():
            for what in kib:
                if line.startswith(what) and not line.startswith("Private_Hugetlb"):
                    kib[what] += int(line.split()[1])
        fields = turns.traces.text_of(f"{proc}/stat").rpartition(")")[2].split()
        return kib["Private"], kib["Rss"], int(fields[17]), (int(fields[11]) + int(fields[12])) * 1000 / turns.TICKS

    def all(self):
        args = self.args
        print(f"Start to exit, medians of {args.runs}, one rank a host:\n")
        print("| hosts | pmi-start true, s | pmi-start MPI | mpirun MPI | ours/mpirun | CPU a host, ms: true | "
              "pmi-start | mpirun |")
        print("|---|---|---|---|---|---|---|---|", flush=True)
        for hosts in args.hosts:
            self.start_row(hosts)
        print(f"\nFence, medians of {args.runs} means of {args.rounds} rounds, one rank a host:\n")
        print("| hosts | bytes a rank | pmi-start, us | mpirun, us | ours/mpirun |\n|---|---|---|---|---|", flush=True)
        for hosts in args.fence_hosts:
            for size in args.sizes:
                self.fence_row(hosts, size)
        hosts = min(8, max(args.hosts))
        print("\nA provider, medians:\n\n| | providers | private, KiB | resident, KiB | threads | CPU, ms |\n"
              "|---|---|---|---|---|---|", flush=True)
        self.node_row("with PMIx", self.ours(hosts, "--pmix=yes", self.fence, "64", "5", "hold"))
        steps = "init , exchange 5 64 0 new , print ready , sleep 600000".split()
        self.node_row("without", self.ours(hosts, "--pmix=no", self.client, *steps))


def main():
    args = arguments()
    args.build = os.path.abspath(args.build)
    turns.on_cluster(args.build, max(args.hosts + args.fence_hosts), "pmix", lambda cluster: Bench(args, cluster).all())


main()
