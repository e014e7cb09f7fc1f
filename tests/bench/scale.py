#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""scale.py - how long does a start on many hosts take, where the logins decide? Real providers, stand-in logins

    scale.py --build=DIR [--nodes=64,256] [--how=NAMES] [--stretch=50] [--runs=N] [--width=K]

Run `make bench-scale` instead. scale_login.c takes the place of ssh: a login lasts 0.25 s, of which its caller is busy
for 16 ms, which is what it costs with curve25519; both are slept. All of the rest is real: providers, keys,
connections, tree, one task `true` a host. But all of it runs on this machine, so both times are made --stretch times as
long: with 50 the thousand providers, at 12 ms of CPU each, are not what decides. Times in the table are divided by it.

NAMES of --how: flat, tree (--rsh-tree, with --width its own width), hydra (mpiexec.hydra -launcher-exec), openmpi
(mpirun.openmpi, agent for plm_rsh, which has a tree of logins by itself). A launcher that is not there, or fails, has
no row. `all in` is the time until our launcher says that all nodes are in; `whole` is from start to exit, of whatever
launcher. The bounds: flat, a caller that begins a login each 16 ms; tree, N(t) = N(t - g) + N(t - t_s), in which every
host that is up goes on logging in to others.
"""
import argparse
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

LOGIN, GAP = 0.25, 0.016  # seconds
LIMIT = 3600


def arguments():
    parser = argparse.ArgumentParser(description="starts by stand-in logins")
    parser.add_argument("--build", required=True)
    parser.add_argument("--nodes", default="64,256")
    parser.add_argument("--how", default="flat,tree,hydra,openmpi")
    parser.add_argument("--stretch", type=float, default=50)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--width", type=int, default=0)
    return parser.parse_args()


def flat_bound(nodes):
    return (nodes - 1) * GAP + LOGIN


def tree_bound(nodes):
    """The first t at which the launcher has brought up so many. Its own place is no node."""
    step = GAP / 8
    gap, login = 8, round(LOGIN / step)
    count = []  # N(t), the launcher included
    t = 0
    while True:
        count.append(1 if t < login else count[t - gap] + count[t - login])
        if count[t] > nodes:
            return t * step
        t += 1


def has_tree(pmi_start):
    return subprocess.run([pmi_start, "--rsh-tree", "-H", "a", "--print-hosts"], stdout=subprocess.DEVNULL,
                          stderr=subprocess.DEVNULL, check=False).returncode == 0


def command(args, how, nodes, login):
    """The words, or None: it is not there."""
    ours = [os.path.join(args.build, "pmi-start"), "-v", f"--hostlist=n[0-{nodes - 1}]", f"--rsh-command={login}",
            "--rsh-attach=yes", f"--rsh-fanout={nodes}", f"--start-timeout={LIMIT}"]
    names = ",".join(f"n{i}" for i in range(nodes))
    tree = "--rsh-tree" if args.width == 0 else f"--rsh-tree={args.width}"
    words = {
        "flat": ours + ["true"],
        "tree": ours + [tree, "true"],
        "hydra": ["mpiexec.hydra", "-launcher", "ssh", "-launcher-exec", login, "-hosts", names, "-n", str(nodes),
                  "-ppn", "1", "true"],
        "openmpi": ["mpirun.openmpi", "--allow-run-as-root", "--mca", "plm_rsh_agent", login, "--host", names,
                    "-n", str(nodes), "true"],
    }[how]
    return words if shutil.which(words[0]) and (how != "tree" or has_tree(words[0])) else None


def run(args, how, nodes):
    """(all in, whole, CPU of all processes) in seconds as measured; None: no such launcher; else False: it failed."""
    with tempfile.TemporaryDirectory() as folder:
        words = command(args, how, nodes, os.path.join(args.build, "tests/bench/scale_login"))
        if words is None:
            return None
        env = dict(os.environ, SCALE_DIR=folder, SCALE_LOGIN_US=str(round(LOGIN * args.stretch * 1e6)),
                   SCALE_GAP_US=str(round(GAP * args.stretch * 1e6)))
        before, began, all_in, last = os.times(), time.monotonic(), None, ""
        with subprocess.Popen(words, env=env, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                              stderr=subprocess.PIPE, text=True) as p:
            for line in p.stderr:
                last = line.strip()
                if last == f"pmi-start: all {nodes} nodes are in":
                    all_in = time.monotonic() - began
        whole = time.monotonic() - began
    if p.returncode != 0:
        print(f"scale.py: {how}, {nodes} nodes: status {p.returncode}: {last}", file=sys.stderr)
        return False
    after = os.times()
    used = after.children_user + after.children_system - before.children_user - before.children_system
    return all_in, whole, used


def row(args, how, nodes):
    """False: ours failed."""
    tried = [run(args, how, nodes) for _ in range(args.runs)]
    found = [r for r in tried if r]
    good = False not in tried or how in ("hydra", "openmpi")
    if not found:
        return good
    bound = tree_bound(nodes) if how in ("tree", "openmpi") else flat_bound(nodes)
    all_in, whole = (None if found[0][i] is None else statistics.median(r[i] for r in found) / args.stretch
                     for i in (0, 1))
    best = whole if all_in is None else all_in
    print(f"| {nodes} | {how} | {'-' if all_in is None else f'{all_in:.3f}'} | {whole:.3f} | {bound:.3f} | "
          f"{best / bound:.2f} | {statistics.median(r[2] for r in found) / nodes * 1000:.1f} |", flush=True)
    return good


def main():
    args = arguments()
    print(f"Times in seconds, as if nothing were stretched; measured {args.stretch:g} times as long. Medians of "
          f"{args.runs}.\n")
    print("| hosts | how | all in | whole | bound | to the bound | CPU a host, ms |")
    print("|---|---|---|---|---|---|---|")
    good = True
    for nodes in map(int, args.nodes.split(",")):
        for how in args.how.split(","):
            good = row(args, how, nodes) and good
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
