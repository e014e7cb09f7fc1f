# SPDX-License-Identifier: BSD-3-Clause
"""trial.py - one seed: run, fault, end, and what is right or wrong about it"""
import json
import os
import re
import time

from nodes import Nodes
from run import Run

SERVING = r"serving \d ranks at 10\.88\.0\.1:\d+, open to everybody in 10\.88\.0\.0/16"


# What a launcher says of nodes that somebody else is to start.
BY_HAND = r"start these, each on its host:|waiting for .*: \d+ of \d+ are here|\w+: /.* --pmi-port=.*"


def slack():
    """What a busy machine may add to a limit, in seconds."""
    return 3 + 0.5 * os.getloadavg()[0]


class Trial:
    def __init__(self, cluster, build, fault, seed):
        self.cluster, self.build, self.fault, self.seed = cluster, build, fault, seed
        self.wrong, self.verdict = [], ""
        self.status = None
        self.seconds = self.took = self.cleaned = 0.0
        self.pmi_run = None
        self.program = os.path.join(build, "pmi-start")
        self.nodes = None
        self.left = set()

    def argv(self):
        shape = self.fault.shape
        words = [self.program] + shape.options() + self.fault.options()
        words += [f"--secret-file={self.nodes.secret}"] if shape.joining() else []
        words += self.fault.task(os.path.join(self.build, "tests/progs/pmi_client"))
        return self.fault.wrap(words)

    def env(self):
        env = self.fault.env()
        if self.fault.shape.kind == "rsh" and not self.fault.shape.pdsh:
            env["PATH"] = no_pdsh(self.cluster.dir)
        return env

    def run(self):
        fault = self.fault
        before = self.cluster.holdings()
        fault.prepare(self.cluster)
        self.nodes = Nodes(self.cluster, self.program, fault.shape, fault.options())
        run = self.pmi_run = Run(self.cluster, self.argv(), self.env(), **fault.run_options())
        self.nodes.start()
        run.start()
        fault.wait_moment(run)
        fault.note_moment(run)
        fault.struck = time.monotonic()
        if fault.met == "over":
            fault.missed = True
        else:
            fault.inject(run)
            fault.after(run)
        self.status = run.wait_end(time.monotonic() + fault.limit() + slack())
        self.seconds = time.monotonic() - run.started
        self.took = time.monotonic() - fault.struck
        if self.status is None:
            self.evidence()
        fault.recover(self.cluster)
        self.nodes.all_came()
        self.wait_clean(before, max(fault.clean_limit(), self.nodes.clean_limit(fault.met)) + slack())
        self.judge()

    def wait_clean(self, before, limit):
        begun = time.monotonic()
        while True:
            self.nodes.nudge()
            now = self.cluster.holdings()
            self.left = now ^ before
            self.cleaned = time.monotonic() - begun
            if (not self.left and self.nodes.ended()) or self.cleaned > limit or self.status is None:
                return
            time.sleep(0.03)

    def judge(self):
        fault, run = self.fault, self.pmi_run
        lines = run.own_lines()
        if fault.shape.kind == "serve":
            said = [line for line in lines if re.fullmatch(SERVING, line)]
            lines = [line for line in lines if line not in said]
            if len(said) != 1 and run.count("ready") > 0:
                self.say("cause", f"it has said {len(said)} times that it serves")
        if fault.shape.joining():
            lines = [line for line in lines if not re.fullmatch(BY_HAND, line)]
            for text in self.nodes.wrong(self.status, fault.host, fault.met == "end"):
                self.say("status", text)
        lines = [line for line in lines if not any(re.fullmatch(words, line) for words in fault.by_tree())]
        if self.status is None:
            self.say("hang", f"not over {self.took:.1f} s after the fault")
            return
        right = fault.outcomes() if not fault.missed else fault.outcomes_missed()
        if not any(o.status == self.status for o in right):
            self.say("status", f"status {self.status}; right would be: {' or '.join(str(o) for o in right)}")
        elif not any(o.fits(self.status, lines) for o in right):
            self.say("cause", f"its words; right would be: {' or '.join(str(o) for o in right)}")
        if self.status == 0 and fault.complete(run):
            self.say("cause", fault.complete(run))
        if self.status != 0 and fault.shape.keep_going and not fault.missed and fault.went_on(run):
            self.say("cause", fault.went_on(run))
        if self.left:
            self.say("leftover", f"left behind or lost {self.cleaned:.1f} s after the end:\n" +
                     "\n".join(sorted(self.left)))

    def say(self, verdict, text):
        if not self.wrong:
            self.verdict = verdict
        self.wrong.append(text)

    def line(self):
        fault = self.fault
        status = "none" if self.status is None else self.status
        missed = " (missed)" if fault.missed else f", met at {fault.met}" if fault.met != fault.moment else ""
        return (f"seed {self.seed}: {fault.says()}{missed} [{fault.shape}] status {status}, {self.seconds:.1f} s, "
                f"clean after {self.cleaned:.1f} s: {self.verdict or 'right'}")

    def evidence(self):
        """What the processes of a run that hangs are at, before anything is taken back."""
        self.processes = [str(p) for p in self.cluster.processes()]

    processes = ()

    def keep(self, folder):
        folder = os.path.join(folder, f"seed-{self.seed}")
        os.makedirs(folder, exist_ok=True)
        run = self.pmi_run

        def write(name, text):
            with open(os.path.join(folder, name), "w", encoding="utf-8") as f:
                f.write(text)

        write("stdout", run.out.text())
        write("stderr", run.err.text())
        write("verdict", "\n".join([self.line(), *self.wrong, ""]))
        write("command", json.dumps({"argv": run.argv, "env": run.env}, indent=1))
        write("left", "\n".join(sorted(self.left)))
        write("processes", "\n".join(self.processes or [str(p) for p in self.cluster.processes()]))
        self.wrong += [f"it said: {line}" for line in run.own_lines()[:20]]
        self.wrong.append(f"all of it: {folder}; once more: make faults N=1 SEED={self.seed}")


def no_pdsh(folder):
    """A PATH with all that the shipped script needs but pdsh."""
    path = os.path.join(folder, "no-pdsh")
    if not os.path.isdir(path):
        os.makedirs(path)
        for name in ("sh", "env", "awk", "sed", "grep", "xargs", "cat", "cut", "printf", "timeout", "ssh", "seq",
                     "sleep"):
            for where in ("/usr/bin", "/bin"):
                if os.path.exists(f"{where}/{name}") and not os.path.lexists(f"{path}/{name}"):
                    os.symlink(f"{where}/{name}", f"{path}/{name}")
    return path
