#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""memory.py - how much memory of its own has each process of a run, and how does that grow with the nodes?

    memory.py --build=DIR [--nodes=64,1024] [--keys=N] [--bytes=N] [--fanout=K] [--limit=KIB]

Run `make bench-memory` instead. Starts a run of so many played nodes with one task each, and when all tasks have come
out of a barrier looks at launcher, workers and keepers: private memory is what no other process has too (Private_Clean
and Private_Dirty of smaps_rollup), PSS is that and a process's share of the rest. A worker with children in the tree
has a connection to each, so these have rows of their own. With --keys=N there are N keys of BYTES bytes in all, put
before the barrier. Fails where a worker or keeper has more than --limit.
"""
import argparse
import os
import statistics
import subprocess
import sys
import time

START_LIMIT = 900  # seconds; a thousand providers share two cores
LATER = 2.0  # from the barrier's end to the look: what a round needed for a moment is given back


def arguments():
    parser = argparse.ArgumentParser(description="memory of pmi-start's processes")
    parser.add_argument("--build", required=True)
    parser.add_argument("--nodes", default="64,1024")
    parser.add_argument("--keys", type=int, default=0)
    parser.add_argument("--bytes", type=int, default=64)
    parser.add_argument("--fanout", type=int, default=32)
    parser.add_argument("--limit", type=int, default=4096, help="KiB private")
    return parser.parse_args()


def read(path):
    try:
        with open(path, encoding="ascii", errors="replace") as f:
            return f.read()
    except OSError:
        return ""


def status_field(pid, name):
    for line in read(f"/proc/{pid}/status").splitlines():
        if line.startswith(name + ":"):
            return line.split()[1]
    return ""


def below(top):
    """All descendants of a process, as {pid: parent}."""
    parent = {}
    for name in os.listdir("/proc"):
        if name.isdigit():
            parent[int(name)] = int(status_field(name, "PPid") or 0)
    found = {}
    for pid in parent:
        above = pid
        while above > 1 and above != top:
            above = parent.get(above, 0)
        if above == top and pid != top:
            found[pid] = parent[pid]
    return found


def memory(pid):
    """(private, PSS) in KiB; None: it is gone."""
    private = pss = 0
    text = read(f"/proc/{pid}/smaps_rollup")
    for line in text.splitlines():
        if line.startswith(("Private_Clean:", "Private_Dirty:")):
            private += int(line.split()[1])
        elif line.startswith("Pss:"):
            pss = int(line.split()[1])
    return (private, pss) if text else None


def peers(pid):
    """How many links it has."""
    count = 0
    try:
        for name in os.listdir(f"/proc/{pid}/fd"):
            count += os.readlink(f"/proc/{pid}/fd/{name}").startswith("socket:")
    except OSError:
        pass
    return count


def roles(launcher):
    """{role: [pid]}"""
    parent = below(launcher)
    comm = {pid: read(f"/proc/{pid}/comm").strip() for pid in parent}
    keepers = [pid for pid in parent if comm[pid] == "pmi-keeper"]
    own = [pid for pid in keepers if parent[pid] == launcher]
    workers = [pid for pid in parent if comm[pid] == "pmi-start"]
    links = {pid: peers(pid) for pid in workers}
    least = min(links.values(), default=0)
    return {"launcher": [launcher], "its keeper": own,
            "worker, no children": [pid for pid in workers if links[pid] == least],
            "worker, some": [pid for pid in workers if links[pid] > least],
            "keeper": [pid for pid in keepers if pid not in own]}


def task(args, nodes):
    """What the ranks do: with keys of their own or without, then a barrier, a word, and nothing."""
    puts = []
    for i in range(args.keys // nodes):
        puts += [",", "put", f"key-%r-{i}", "v" * args.bytes]
    return [os.path.join(args.build, "tests/progs/pmi_client"), "init", *puts, ",", "barrier",
            ",", "on", "0", ",", "print", "ready", ",", "all", ",", "sleep", "3600000"]


def run(args, nodes):
    argv = [os.path.join(args.build, "pmi-start"), f"--nodes={nodes}", f"--fanout={args.fanout}",
            f"--start-timeout={START_LIMIT}", *task(args, nodes)]
    with subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True) as p:
        if p.stdout.readline().strip() != "ready":
            sys.exit(f"memory.py: {nodes} nodes did not start")
        time.sleep(LATER)
        found = {role: [m for m in map(memory, pids) if m is not None] for role, pids in roles(p.pid).items()}
        p.terminate()
    return found


def main():
    args = arguments()
    bad = False
    print("| nodes | process | how many | KiB private, median | most | PSS, median |")
    print("|---|---|---|---|---|---|")
    for nodes in map(int, args.nodes.split(",")):
        for role, found in run(args, nodes).items():
            if not found:
                continue
            private = [m[0] for m in found]
            pss = [m[1] for m in found]
            print(f"| {nodes} | {role} | {len(found)} | {statistics.median(private):g} | {max(private)} | "
                  f"{statistics.median(pss):g} |", flush=True)
            bad = bad or (role != "launcher" and max(private) > args.limit)
    if bad:
        print(f"memory.py: a process has more than {args.limit} KiB of its own", file=sys.stderr)
    return bad


if __name__ == "__main__":
    sys.exit(main())
