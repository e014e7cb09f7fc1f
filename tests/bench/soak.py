#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""soak.py - does anything grow, or stay behind, however long it goes on?

    soak.py --build=DIR [--jobs=N] [--rounds=N] [--megabytes=N] [--rate=N] [--share=S] [--only=PARTS]

Run `make soak` instead. Three parts, each a table row or several; the whole fails where one does:

jobs        N short jobs, one after the other, most of them on one or two played nodes, every 50th on four ssh hosts.
            After each hundred every process, file and socket of the hosts is compared with what was there before.
exchange    a job of 8 nodes that goes through N rounds of put, barrier and get, over PMI_FD and over PMI_PORT
output      a job of 64 tasks on 8 nodes that writes N MB, to a reader that takes RATE MB/s

During the last two the private memory (that is, what no other process has too) and the open descriptors of launcher,
workers and keepers are looked at again and again. They are flat where the median of the last quarter is not above that
of the second by more than MEMORY_SLACK or SHARE, and of descriptors by none; in the first quarter caches and
buffers may fill. In a run of a second they fill all the time, so that for one a larger --share is allowed. That this
would show a leak is shown by `control`, an exchange with new keys in each round, which have to be kept: it must not be
flat.
"""
import argparse
import os
import signal
import statistics
import subprocess
import sys
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.append(os.path.join(HERE, "..", "faults"))
from cluster import LOGIN, Cluster, traces  # noqa: E402 pylint: disable=wrong-import-position

NODES = 8
MEMORY_SLACK = 256  # KiB of all processes of a role together: 5 bytes a round of 50,000
ROLES = ("launcher", "own-keeper", "worker", "keeper")
HUNDRED = 100
LIMIT = 3600


def arguments():
    parser = argparse.ArgumentParser(description="soak of pmi-start")
    parser.add_argument("--build", required=True)
    parser.add_argument("--jobs", type=int, default=10000)
    parser.add_argument("--rounds", type=int, default=100000)
    parser.add_argument("--megabytes", type=int, default=1024)
    parser.add_argument("--rate", type=float, default=20, help="MB/s that the reader takes")
    parser.add_argument("--share", type=float, default=0.01, help="of its memory by which a role may grow")
    parser.add_argument("--only", default="jobs,exchange,output", help="parts, with commas between them")
    return parser.parse_args()


class Usage:
    """What the processes of a run have, from its start to its end."""

    def __init__(self, cluster, every, share):
        self.cluster, self.every, self.share = cluster, every, share
        self.rows = []  # {role: (KiB, descriptors, processes)}
        self.over = threading.Event()
        self.thread = threading.Thread(target=self._look, daemon=True)

    def _look(self):
        while not self.over.wait(self.every):
            row = {}
            for role, processes in self.cluster.roles().items():
                if role in ROLES and processes:
                    row[role] = self._sum(processes)
            self.rows.append(row)

    def _sum(self, processes):
        kib = descriptors = 0
        for p in {(p.host, p.pid) for p in processes}:
            proc = f"{self.cluster.root(p[0])}/proc/{p[1]}"
            for line in traces.text_of(f"{proc}/smaps_rollup").splitlines():
                if line.startswith(("Private_Clean:", "Private_Dirty:")):
                    kib += int(line.split()[1])
            try:
                descriptors += len(os.listdir(f"{proc}/fd"))
            except OSError:
                pass
        return kib, descriptors, len(processes)

    def quarter(self, role, which, what):
        """The median in the which-th quarter of those looks that found the whole run."""
        most = max((row[role][2] for row in self.rows if role in row), default=0)
        whole = [row[role][what] for row in self.rows if role in row and row[role][2] == most]
        part = whole[len(whole) * (which - 1) // 4:len(whole) * which // 4]
        return statistics.median(part) if part else None

    def grown(self):
        """(role, what, second quarter, last quarter, flat?) of each; none without enough looks."""
        for role in ROLES:
            for what, name in ((0, "KiB private"), (1, "descriptors")):
                second, last = (self.quarter(role, q, what) for q in (2, 4))
                if second is None:
                    yield role, name, "-", "-", False
                    continue
                slack = max(MEMORY_SLACK, second * self.share) if what == 0 else 0
                yield role, name, second, last, last <= second + slack


def exchange(rounds, size, keys):
    """What the tasks do."""
    return ["init", ",", "exchange", str(rounds), str(size), "0", keys, ",", "finalize"]


class Soak:
    def __init__(self, args, cluster):
        self.args, self.cluster = args, cluster
        self.pmi_start = os.path.join(args.build, "pmi-start")
        self.client = os.path.join(args.build, "tests/progs/pmi_client")
        self.bad = 0

    def say(self, what, measure, second, last, verdict, good=True):
        self.bad += not good
        cells = [what, measure, *(f"{n:g}" if isinstance(n, (int, float)) else n for n in (second, last)),
                 verdict if good else f"**{verdict}**"]
        print("| " + " | ".join(cells) + " |", flush=True)

    def argv(self, *words):
        return self.cluster.enter(LOGIN) + [self.pmi_start, *words]

    # --- jobs

    def job(self, number):
        work = ["true"] if number % 2 else [self.client, *exchange(2, 60, "again")]
        if number % 50 == 0:
            return self.argv("--bootstrap=rsh", "-H", "h[0-3]", *work)
        return self.argv(f"--nodes={1 + number % 4 // 2}", *work)

    def jobs(self):
        before = self.cluster.holdings()
        begun, failed, left = time.monotonic(), 0, []
        for number in range(1, self.args.jobs + 1):
            run = subprocess.run(self.job(number), stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                 stderr=subprocess.PIPE, check=False, timeout=LIMIT)
            if run.returncode != 0 or run.stderr:
                failed += 1
                print(f"# job {number}: status {run.returncode}, {run.stderr.decode(errors='replace')[:300]}")
            if number % HUNDRED == 0 or number == self.args.jobs:
                left.append(self._left(before, number))
        each = (time.monotonic() - begun) / self.args.jobs * 1000
        self.say(f"{self.args.jobs} jobs, {each:.0f} ms each", "failed", "", failed, "" if failed == 0 else "wrong",
                 good=failed == 0)
        quarters = [max(left[len(left) * q // 4:len(left) * (q + 1) // 4] or left) for q in (1, 3)]
        clean = max(left) == 0
        self.say("", "left behind, at most", *quarters, "clean" if clean else "leaks", good=clean)

    def _left(self, before, number):
        """How many things there are that were not; an sshd may need a moment to end."""
        end = time.monotonic() + 5
        left = self.cluster.holdings() - before
        while left and time.monotonic() < end:
            time.sleep(0.1)
            left = self.cluster.holdings() - before
        for thing in sorted(left):
            print(f"# after job {number}: {thing}")
        return len(left)

    # --- runs that are watched

    def watched(self, name, argv, every, must_grow=False, rate=None, size=None):
        usage = Usage(self.cluster, every, self.args.share)
        begun = time.monotonic()
        with subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as run:
            errors = []
            watcher = threading.Thread(target=lambda: errors.append(run.stderr.read()), daemon=True)
            watcher.start()
            usage.thread.start()
            taken = take(run.stdout, rate)
            status = run.wait(LIMIT)
            watcher.join(5)
        seconds = time.monotonic() - begun
        usage.over.set()
        usage.thread.join()
        good = status == 0 and (size is None or taken == size)
        self.say(f"{name}: {seconds:.0f} s, {len(usage.rows)} looks", "status, bytes of output", status, str(taken),
                 "ended well" if good else "wrong", good=good)
        if not good:
            print("# " + errors[0].decode(errors="replace")[:500].replace("\n", "\n# "))
        grew = False
        for role, what, second, last, flat in usage.grown():
            grew |= not flat
            if not must_grow or not flat:
                verdict = "flat" if flat else "grows, as it must" if must_grow else "grows"
                self.say(role, what, second, last, verdict, good=flat or must_grow)
        if must_grow and not grew:
            self.say(name, "has to grow", "", "", "flat", good=False)

    def exchange(self):
        rounds = self.args.rounds
        every = max(0.05, min(1.0, rounds * 0.003 / 100))
        for how in ("fd", "port"):
            self.watched(f"{rounds} rounds over {how}", self.argv(
                f"--nodes={NODES}", f"--pmi-connect={how}", self.client, *exchange(rounds, 60, "again")), every)
        fresh = min(2000, max(rounds // 10, 1000))
        self.watched(f"control, {fresh} rounds", self.argv(
            f"--nodes={NODES}", self.client, *exchange(fresh, 800, "fresh")), max(0.05, every / 10), must_grow=True)

    def output(self):
        each = self.args.megabytes * 1024 * 1024 // 64
        line = "x" * 99
        every = max(0.05, min(1.0, self.args.megabytes / self.args.rate / 100))
        tasks = ["sh", "-c", f"yes {line} | head -c {each}"]
        self.watched(f"{self.args.megabytes} MB of output", self.argv(f"--nodes={NODES}", "--ppn=8", *tasks), every,
                     rate=self.args.rate, size=64 * each)


def take(stream, rate):
    """Read to the end, no faster than `rate` MB/s; how many bytes."""
    begun, total = time.monotonic(), 0
    while True:
        piece = os.read(stream.fileno(), 65536)
        if not piece:
            return total
        total += len(piece)
        if rate is not None:
            ahead = total / (rate * 1e6) - (time.monotonic() - begun)
            if ahead > 0.01:
                time.sleep(ahead)


def main():
    args = arguments()
    args.build = os.path.abspath(args.build)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    cluster = Cluster(f"/run/pmi-start-soak.{os.getpid()}", f"so{os.getpid()}-", 4, args.build)
    soak = Soak(args, cluster)
    try:
        cluster.up()
        print(f"Load {os.getloadavg()[0]:.0f} at the start.\n\n| what | of it | second quarter | last quarter | |\n"
              "|---|---|---|---|---|", flush=True)
        for part in args.only.split(","):
            {"jobs": soak.jobs, "exchange": soak.exchange, "output": soak.output}[part]()
        print(f"\nLoad {os.getloadavg()[0]:.0f} at the end. " + (f"{soak.bad} wrong" if soak.bad else "All is flat."))
    finally:
        cluster.down()
    return 1 if soak.bad else 0


if __name__ == "__main__":
    sys.exit(main())
