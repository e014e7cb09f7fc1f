#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""campaign.py - run many jobs, do something bad to each, and look whether each ends as it should

    campaign.py --build=DIR [--seed=S] [--count=N] [--lanes=L] [--kind=NAME] [--shape=WORDS] [--report=DIR] [--list]

One line a run (TAP). Run `make faults N=1000 SEED=S` instead; README.md says more. Everything that a run does follows
from its seed, but for what the machine makes of it.
"""
import argparse
import multiprocessing
import os
import queue
import signal
import sys
import time

import fault
import kinds_link  # noqa: F401 (its kinds enter themselves)
import kinds_process  # noqa: F401
import kinds_room  # noqa: F401
import kinds_stream  # noqa: F401
import kinds_task  # noqa: F401
from cluster import Cluster
from trial import Trial

HOSTS = 3


def arguments():
    parser = argparse.ArgumentParser(description="fault campaign of pmi-start")
    parser.add_argument("--build", required=True, help="where pmi-start was built")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=100)
    parser.add_argument("--lanes", type=int, default=3, help="clusters side by side")
    parser.add_argument("--kind", help="only faults of this name: seeds that draw another are passed over")
    parser.add_argument("--shape", help="only runs in whose description (in brackets) this is")
    parser.add_argument("--report", help="folder for the output of runs that went wrong")
    parser.add_argument("--list", action="store_true", help="only say what each seed would do")
    return parser.parse_args()


def lane(number, args, seeds, results):
    """One cluster, and runs on it, one after the other."""
    # A shell that put us into the background had this ignored, which would be the launcher's business, too.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    signal.signal(signal.SIGHUP, signal.SIG_DFL)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    prefix = f"pf{os.getpid()}-"
    cluster = Cluster(f"/run/pmi-start-faults.{os.getpid()}", prefix, HOSTS, args.build)
    try:
        cluster.up()
        before = cluster.traces()
        while True:
            try:
                seed = seeds.get_nowait()
            except queue.Empty:
                break
            trial = Trial(cluster, args.build, fault.draw(seed), seed)
            trial.run()
            if trial.wrong:
                trial.keep(args.report)
                cluster.down()
                cluster.up()
                before = cluster.traces()
            results.put((seed, not trial.wrong, trial.line(), trial.wrong, trial.verdict))
        after = cluster.traces()
        if after != before:
            changed = sorted(set(before) ^ set(after))
            results.put((-1, False, f"lane {number}: left behind or lost", changed, "leftover"))
    except Exception as why:  # pylint: disable=broad-except
        results.put((-1, False, f"lane {number}: the campaign itself failed: {why!r}", [], "broken"))
        raise
    finally:
        cluster.down()
        results.put(None)


def chosen(args):
    def wanted(drawn):
        return args.kind in (None, drawn.name) and (args.shape or "") in str(drawn.shape)

    return [s for s in range(args.seed, args.seed + args.count) if wanted(fault.draw(s))]


def show(counts, seed, good, line, wrong):
    counts["runs"] += seed >= 0
    number = sum(counts[k] for k in ("runs", "broken"))
    print(f"{'ok' if good else 'not ok'} {number} - {line}", flush=True)
    for text in wrong:
        print("# " + text.replace("\n", "\n# "), flush=True)


def main():
    args = arguments()
    args.build = os.path.abspath(args.build)
    args.report = os.path.abspath(args.report or os.path.join(args.build, "faults"))
    seeds = chosen(args)
    if args.list:
        for seed in seeds:
            drawn = fault.draw(seed)
            print(f"seed {seed}: {drawn.says()} [{drawn.shape}]")
        return 0
    begun = time.monotonic()
    # Those that take long go first, so that no lane is left with one at the end.
    seeds.sort(key=lambda s: (not fault.draw(s).slow, s))
    todo, results = multiprocessing.Queue(), multiprocessing.Queue()
    for seed in seeds:
        todo.put(seed)
    time.sleep(0.1)  # a queue's feeder thread must have begun before anybody may find it empty
    lanes = [multiprocessing.Process(target=lane, args=(i, args, todo, results)) for i in range(args.lanes)]
    for process in lanes:
        process.start()
    signal.signal(signal.SIGTERM, lambda *_: [process.terminate() for process in lanes])
    counts = {"runs": 0, "broken": 0, "hang": 0, "leftover": 0, "cause": 0, "status": 0}
    failed, left = 0, len(lanes)
    while left > 0:
        try:
            result = results.get(timeout=10)
        except queue.Empty:
            if not any(process.is_alive() for process in lanes):
                print("# every lane was ended by somebody else")
                break
            continue
        if result is None:
            left -= 1
            continue
        seed, good, line, wrong, verdict = result
        failed += not good
        if verdict in counts:
            counts[verdict] += 1
        show(counts, seed, good, line, wrong)
    for process in lanes:
        process.join()
    print(f"1..{counts['runs'] + counts['broken']}")
    print(f"# {counts['runs']} runs, seeds {args.seed} to {args.seed + args.count - 1}, in "
          f"{time.monotonic() - begun:.0f} s: {counts['hang']} hangs, {counts['leftover']} leftovers, "
          f"{counts['cause']} wrong causes, {counts['status']} wrong statuses")
    return 1 if failed or counts["runs"] != len(seeds) else 0


if __name__ == "__main__":
    sys.exit(main())
