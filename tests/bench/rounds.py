#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""rounds.py - what a round costs with many nodes: time, CPU, and what goes over the launcher's links; at which width?

    rounds.py --build=DIR [--nodes=64,256] [--fanout=2,4,8,16,32,64] [--what=barrier,exchange] [--rounds=N] [--runs=N]
              [--front=WORDS]

Run `make bench-rounds` instead. Played nodes with one task each; `exchange` is a put of 64 bytes by every rank, the
barrier, and one get. Each cell comes from pairs of runs, one of N rounds and one of three times as many, in turn: their
difference by that of their rounds is a round's, without the start and the end. So are:

    round        mean time of a round as the ranks see it; the least of the runs (nobody's rounds are faster than this
                 machine allows, while others can only slow it down)
    CPU          of all processes; the median
    root's CPU   of the launcher alone; the median
    messages     over the launcher's links, received and sent: of the last pair, as they are the same each time
    bytes        likewise, on the wire

All nodes share this machine's processors, so that the round takes what the work of all nodes takes: its time says
little of a tree's depth. With --fanout=1 the nodes are a chain, in which only one has work at a time: half of its round
by the number of its links is what one hop takes.
"""
import argparse
import json
import os
import re
import statistics
import subprocess
import sys
import threading
import time

LIMIT = 900
EVERY = 0.02  # between two looks at the launcher's CPU time
LINKS = re.compile(r"links when all (\w+ \w+): (\d+) children, received (\d+) messages and (\d+) bytes, "
                   r"sent (\d+) messages and (\d+) bytes")
DETAIL = re.compile("pmi-start-provider 1|joined from|dropped:")  # of -vv
LAUNCHER_READY, LAUNCHER_ENDED = "were ready", "had ended"


def arguments():
    parser = argparse.ArgumentParser(description="rounds of pmi-start with many nodes")
    parser.add_argument("--build", required=True)
    parser.add_argument("--nodes", default="64,256")
    parser.add_argument("--fanout", default="2,4,8,16,32,64")
    parser.add_argument("--what", default="barrier")
    parser.add_argument("--rounds", type=int, default=200)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--front", default="", help="what to put in front of each start, as in 'nice -n -10'")
    return parser.parse_args()


def numbers(text):
    return [int(word) for word in text.split(",")]


def watch(pid, last):
    """Its own CPU time, seconds, as long as it is there."""
    while True:
        try:
            with open(f"/proc/{pid}/schedstat", encoding="ascii") as f:
                now = int(f.read().split()[0]) / 1e9
        except (OSError, ValueError, IndexError):
            return
        if now > 0:
            last[0] = now
        time.sleep(EVERY)


def links(stderr):
    """(messages received, sent, bytes received, sent) between go and the end."""
    found = {m[1]: [int(m[i]) for i in (3, 5, 4, 6)] for m in LINKS.finditer(stderr)}
    if LAUNCHER_READY not in found or LAUNCHER_ENDED not in found:
        return [0, 0, 0, 0]
    return [b - a for a, b in zip(found[LAUNCHER_READY], found[LAUNCHER_ENDED])]


def one(args, what, nodes, fanout, rounds):
    """{measure: value} of one run; times in microseconds."""
    argv = args.front.split() + [os.path.join(args.build, "pmi-start"), "-vv", f"--nodes={nodes}",
                                 f"--fanout={fanout}", f"--start-timeout={LIMIT}",
                                 os.path.join(args.build, "pmi-bench"), "--json", f"--timeout={LIMIT}",
                                 f"--count={rounds}", *(["--read=1"] if what == "exchange" else []), what]
    before, own = os.times(), [0.0]
    with subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          text=True) as p:
        looking = threading.Thread(target=watch, args=(p.pid, own), daemon=True)
        looking.start()
        out, err = p.communicate(timeout=LIMIT)
    after = os.times()
    looking.join()
    measured = {m["measure"]: m for m in map(json.loads, out.splitlines())}
    name = "round" if what == "exchange" else what
    if p.returncode != 0 or name not in measured:
        words = [line for line in err.splitlines() if not DETAIL.search(line)]
        sys.exit(f"rounds.py: {nodes} nodes, --fanout={fanout}, {what}: status {p.returncode}: {words[-3:]}")
    used = after.children_user + after.children_system - before.children_user - before.children_system
    return {"round": measured[name]["mean_us"], "cpu": used * 1e6, "root": own[0] * 1e6, "links": links(err)}


def all_rounds(counted):
    """With those that pmi-bench does ahead of the ones that it counts."""
    return counted + min(counted // 10, 100)


def cell(args, what, nodes, fanout):
    least, cpu, root, per_round = [], [], [], []
    few, many = args.rounds, 3 * args.rounds
    more = all_rounds(many) - all_rounds(few)
    for _ in range(args.runs):
        a, b = (one(args, what, nodes, fanout, n) for n in (few, many))
        least += [a["round"], b["round"]]
        cpu.append((b["cpu"] - a["cpu"]) / more)
        root.append((b["root"] - a["root"]) / more)
        per_round = [(y - x) / more for x, y in zip(a["links"], b["links"])]
    row = [what, nodes, fanout, f"{min(least):.0f}", f"{statistics.median(cpu):.0f}", f"{statistics.median(root):.0f}",
           *(f"{n:.1f}" for n in per_round[:2]), *(f"{n:.0f}" for n in per_round[2:])]
    print("| " + " | ".join(map(str, row)) + " |", flush=True)


def main():
    args = arguments()
    print("| what | nodes | fanout | round, us | CPU, us | root's CPU, us | messages in | out | bytes in | out |")
    print("|---|---|---|---|---|---|---|---|---|---|")
    for what in args.what.split(","):
        for nodes in numbers(args.nodes):
            for fanout in numbers(args.fanout):
                cell(args, what, nodes, fanout)


if __name__ == "__main__":
    main()
