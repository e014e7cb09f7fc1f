#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""no_memory.py BUILD FOLDER SEED COUNT [SECONDS] - runs in each of which some process finds no memory for a moment

Run as root where nothing else of pmi-start's runs. Three providers on this machine, and a launcher that is none of
them; which process it is, at which of its allocations and for how many, is drawn from the seed, as is what the ranks do. Each
run must come to its end in time, with the right output or with a status and a line that names memory or the host on which
it was short, nobody may have crashed, and no process may be left. After SECONDS no other is begun. libuv and OpenSSL may call abort() where they find no
memory themselves; pmi-start may not. One line a run that is not so, and one at the end.
"""
import bisect
import json
import os
import random
import re
import signal
import subprocess
import sys
import time

LIMIT = 90  # seconds; --timeout ends a run before
START = int(os.environ.get("NO_MEMORY_START", "10"))  # --start-timeout: who sweeps by hand has no time for more than 3
RANKS = 3
# Allocations of the program's own code in one run, roughly: what is drawn may be more, and then nothing fails.
ROLES = {"launcher": 700, "worker": 450, "keeper": 150, "login": 60}
ALL_OF_THEM = 20  # so many times as many with those of the libraries
MEMORY = re.compile(r"memory|malloc failure")


class Symbols:
    """Which function of the program an offset lies in; `own` are the names of those that are not the libraries'."""

    def __init__(self, program, own):
        lines = subprocess.run(["nm", "-n", "--defined-only", program], check=True, capture_output=True, text=True).stdout
        found = [line.split() for line in lines.splitlines()]
        found = [(int(f[0], 16), f[2]) for f in found if len(f) == 3 and f[1] in "tTwW"]
        self.at, self.names = [f[0] for f in found], [f[1] for f in found]
        self.own = own

    def name(self, offset):
        i = bisect.bisect_right(self.at, offset) - 1
        inside = 0 <= i < len(self.at) - 1 and offset < self.at[-1] + 4096
        return self.names[i].split(".")[0] if inside else "-"

    def own_code(self):
        """From where to where it lies: linked ahead of the archives of the libraries, in one piece but for what is rare."""
        own = [name.split(".")[0] in self.own for name in self.names] + [False]
        begin, best = None, (0, 0)
        for i, mine in enumerate(own):
            if mine and begin is None:
                begin = i
            elif not mine and begin is not None and not any(own[i:i + 5]):
                best = max(best, (i - begin, begin))
                begin = None
        return self.at[best[1]], self.at[best[1] + best[0]] - 1

    def names_of(self, words):
        return [name for name in (self.name(int(w, 16) - 1) for w in words) if name not in ("-", "_init", "_fini")]


def own_functions(build):
    names = set()
    for archive in ("server", "bootstrap", "conf", "io", "common"):
        text = subprocess.run(["nm", "--defined-only", f"{build}/lib{archive}.a"], check=True, capture_output=True,
                              text=True).stdout
        names |= {f[2].split(".")[0] for f in map(str.split, text.splitlines()) if len(f) == 3 and f[1] in "tT"}
    return names


def processes():
    found = set()
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/stat", encoding="ascii", errors="replace") as file:
                text = file.read()
        except OSError:
            continue
        if text[text.index("(") + 1:text.rindex(")")] in ("pmi-start", "pmi-keeper", "pmi_client") and text.split(") ")[1][0] != "Z":
            found.add(int(pid))
    return found


class Run:
    def __init__(self, build, folder, seed, own_code):
        rng = random.Random(seed)
        self.seed, self.build, self.folder = seed, build, folder
        self.role = rng.choice(list(ROLES))
        whose = own_code if rng.random() < 0.8 else (0, 1 << 40)
        top = ROLES[self.role] * (ALL_OF_THEM if whose[0] == 0 else 1)
        self.first = int(top ** rng.random()) if rng.random() < 0.3 else rng.randrange(1, top)
        self.count = rng.choice((1, 1, 1, 3, 20, 1000000))
        self.at = rng.randrange(RANKS)
        self.told = f"{folder}/told"
        self.wish = {"LD_PRELOAD": f"{build}/tests/progs/no_memory.so", "NO_MEMORY": f"{self.role}:{self.first}:{self.count}:{whose[0]:x}:{whose[1]:x}:{self.told}"}
        if self.role == "keeper" and rng.random() < 0.4:
            self.at = -1  # the launcher's
        if self.role == "launcher":
            self.at = -1
        wire = rng.choice((["--style=mpich"], ["--pmi2"], []))
        steps = "init , exchange 3 40 5 fresh , sleep 20 , exchange 2 10 5 fresh , finalize , print done".split()
        self.argv = [f"{build}/pmi-start", "-H", "a,b,c", f"--rsh-command={folder}/script", f"--fanout={rng.choice((1, 32))}",
                     f"--start-timeout={START}s", "--timeout=60s", "--kill-grace=1s",
                     f"--pmi-connect={rng.choice(('fd', 'fd', 'port', 'both'))}", f"--rsh-attach={rng.choice(('auto', 'yes'))}",
                     *(["--label"] if rng.random() < 0.2 else []), *(["--pmi-subversion=2"] if wire == ["--style=mpich"] else []),
                     f"{build}/tests/progs/pmi_client", *wire, *steps]
        self.write_script()

    def write_script(self):
        wish = "env " + " ".join(f"{k}={v}" for k, v in self.wish.items())
        with open(f"{self.folder}/script", "w", encoding="ascii") as file:
            print("#!/bin/sh", *(f'{wish if i == self.at else ""} $PMI_PROVIDER --pmi-rank={i} &' for i in range(RANKS)), "wait",
                  sep="\n", file=file)
        os.chmod(f"{self.folder}/script", 0o755)

    def run(self):
        if os.path.exists(self.told):
            os.unlink(self.told)
        before, begun = processes(), time.monotonic()
        env = dict(os.environ, **(self.wish if self.at < 0 else {}))
        with subprocess.Popen(self.argv, env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              text=True) as p:
            try:
                self.out, self.err = p.communicate(timeout=LIMIT)
                self.status = p.returncode
            except subprocess.TimeoutExpired:
                self.status = None
                p.kill()
                self.out, self.err = p.communicate()
        self.seconds = time.monotonic() - begun
        end = time.monotonic() + 10
        while (left := processes() - before) and time.monotonic() < end:
            time.sleep(0.02)
        self.left = left
        for pid in left:
            os.kill(pid, signal.SIGKILL)

    def judge(self, symbols):
        """What is wrong, or None; sets `where`, which tells of the run."""
        told = []
        if os.path.exists(self.told):
            with open(self.told, encoding="ascii") as file:
                told = [line.split() for line in file]
        stacks = [(t[0], symbols.names_of(t[2:])) for t in told]
        failed = [s for what, s in stacks if what == "failed"]
        self.where = f"{self.role}@{self.at} {self.first}+{self.count}: " + " < ".join(failed[0][:8]) if failed else "nothing failed"
        own = [line for line in self.err.splitlines() if line.startswith("pmi-start: ")]
        aborted = [s for what, s in stacks if what == "aborted"]
        theirs = [s for s in aborted if s and s[0] not in symbols.own]
        if self.status is None:
            return "hang"
        if self.left:
            return f"left {len(self.left)}"
        if any(what == "crashed" for what, _ in stacks):
            return "crash: " + " < ".join(next(s for what, s in stacks if what == "crashed")[:6])
        if len(theirs) < len(aborted):
            return "abort: " + " < ".join(next(s for s in aborted if s not in theirs)[:6])
        if self.status == 0:
            return None if self.out.count("done") == RANKS and self.out.count("all right") == 2 else "wrong output"
        if self.status == -signal.SIGABRT and theirs:
            return None
        if not failed:
            return f"status {self.status} for nothing"
        if self.status not in (1, 69, 126, 127, 124):
            return f"status {self.status}"
        if self.status == 124:
            return "waited for the time limit"
        host = "abc"[self.at] if self.at >= 0 else None
        named = any(MEMORY.search(line) or (host and re.search(rf"\b{host}\b|node {self.at}\b", line)) for line in own)
        return None if named else "not named"


def main(build, folder, seed, count, seconds="1e9"):
    symbols = Symbols(f"{build}/pmi-start", own_functions(build))
    own_code, end, runs = symbols.own_code(), time.monotonic() + float(seconds), 0
    wrong, hit, whole = 0, 0, 0
    for s in range(int(seed), int(seed) + int(count)):
        if time.monotonic() > end:
            break
        runs += 1
        run = Run(build, folder, s, own_code)
        run.run()
        why = run.judge(symbols)
        hit += run.where != "nothing failed"
        whole += run.where != "nothing failed" and run.status == 0
        if why:
            wrong += 1
            print(json.dumps({"seed": s, "wrong": why, "where": run.where, "status": run.status, "seconds": round(run.seconds, 1),
                              "err": run.err[-400:], "out": run.out[-200:] if run.status == 0 else ""}), flush=True)
    print(f"{runs} runs, {hit} of them short of memory, {whole} of these went well all the same, {wrong} wrong", flush=True)
    return wrong > 0 or hit == 0


sys.exit(main(*sys.argv[1:]))
