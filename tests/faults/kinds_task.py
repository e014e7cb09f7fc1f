# SPDX-License-Identifier: BSD-3-Clause
"""kinds_task.py - what tasks do themselves: they end in one of the ways of the manual, or stand still"""
import signal

from cluster import LOGIN
from fault import GONE, WELL, Fault, Outcome, kind
from kinds_process import OnProcess
from shape import EVERY, FOR_EVER, steps


@kind
class StopTask(OnProcess):
    """A task that stands still for good, while the others wait for it in a barrier."""

    name = "stop-task"
    weight = 3
    kinds = EVERY
    moments = ("run",)
    roles = {"task": 1}

    def options(self):
        return ["--timeout=4s"]

    def task(self, client):
        # All are in the barrier but the one that is stopped, which has time enough to be.
        return self.shape.command(client, self.shape.finite() + [",", *steps(self.shape.nap(FOR_EVER))])

    def endless(self):
        return True

    def wait_moment(self, run):
        run.wait_until(lambda: run.count("ready") == self.shape.ranks, WELL)

    def inject(self, run):
        self.hit(run, signal.SIGSTOP)

    def limit(self):
        return 4 + GONE

    def recover(self, cluster):
        """What pmi-start has not started it does not end."""
        if self.process is not None and self.from_elsewhere():
            cluster.signal(self.process, signal.SIGCONT)

    def outcomes_missed(self):
        return [Outcome(124, "the time limit of 4 s is over .*")]

    def outcomes(self):
        over = "the time limit of 4 s is over"
        shape = self.shape
        who = f"{self.rank} {shape.at(self.rank)}"
        if self.spawned:
            who = rf"\d+ of job {shape.spawned_job()} on {self.host}"
        if self.shape.group or self.shape.spawned:
            who = ".*"  # several are waited for in several barriers, and one of them is told
        return [Outcome(124, f"{over} while the tasks ran{self.stopped()}", f"{over} while hosts were started.*",
                        rf"{over} in barrier \d+, not entered by ranks? {who}{self.stopped()}",
                        *([rf"{over} in barrier \d+ of .*{self.stopped()}"] if who == ".*" else []))]

    def stopped(self):
        """It is told that it was stopped, where its node has its process."""
        if self.from_elsewhere():
            return ""
        job = f" of job {self.shape.spawned_job()}" if self.spawned else ""
        return f"; stopped by a signal: rank {self.rank}{job} on {self.host}"


@kind
class TaskEnds(Fault):
    """A task ends the run, in one of the ways of the manual's table; or, with --keep-going, does not end it."""

    name = "task-ends"
    weight = 10
    kinds = EVERY
    moments = ("run",)
    passive = True
    ways = {
        "exit 7": (7, r"{who} \(pid \d+\) exited with status 7"),
        "exit 0": (1, r"{who} exited before PMI finalize"),
        "signal 11": (139, r"{who} \(pid \d+\) was killed by signal 11 \(Segmentation fault\)"),
        "abort 9 {r}-says-so": (9, r"{who} aborted \(9\)(: {r}-says-so)?"),
        "close": (1, r"{who} closed PMI before finalize"),
        "rubbish": (1, r"{who} \(pid \d+\) sent .*"),
    }
    # Of a rank from elsewhere the end of its connection is all that is seen.
    ways_elsewhere = {way: (1, r"{who} closed PMI before finalize") for way in ways} | {
        "abort 9 {r}-says-so": (9, r"{who} aborted \(9\)(: {r}-says-so)?"), "rubbish": (1, r"{who} sent .*")}

    def __init__(self, rng):
        super().__init__(rng)
        shape = self.shape
        self.way = rng.choice(sorted(self.ways))
        if self.way == "close":
            shape.rough = False  # a daemon has the connection, too
        self.child = shape.spawned > 0 and rng.random() < 0.5
        self.rank = rng.randrange(shape.spawned if self.child else shape.ranks)
        self.nap = rng.randint(0, 200)
        job = f" of job {shape.spawned_job()}" if self.child else ""
        self.target = f"rank {self.rank}{job}: {self.way.format(r=self.rank)}"

    def _acts(self, nap):
        """The rank's own way, behind which it does no more."""
        # Nobody would end one from elsewhere that has closed its connection.
        ends = self.shape.keep_going or (self.way == "close" and self.shape.kind == "serve")
        after = [nap(500), ["exit", 0]] if ends else [nap(FOR_EVER)]
        return [nap(self.nap), ["on", self.rank], self.way.format(r=self.rank).split(), *after, ["all"]]

    def task(self, client):
        shape = self.shape
        if self.child:
            last = shape.end()[:1] + [["finalize"], ["print", "child-done"]]
            last = last if shape.keep_going else [["sleep", FOR_EVER]]
            lenient = [["lenient"]] if shape.keep_going else []
            child = steps(["init"], *lenient, *self._acts(lambda ms: ["sleep", ms]), *last)
            return shape.command(client, shape.endless(), child)
        # Who has closed its connection cannot look after it.
        acts = self._acts(lambda ms: ["sleep", ms] if self.way == "close" else shape.nap(ms))
        if shape.keep_going:
            last = [*shape.enter_group(shape.group), *shape.end()]
        else:
            last = [*shape.enter_group(shape.early()), shape.nap(FOR_EVER)]
        return shape.command(client, steps(*shape.begin(), *acts, *last), shape.child_endless())

    def inject(self, run):
        pass

    def limit(self):
        return GONE if not self.shape.keep_going or self.way.startswith("abort") else WELL

    def outcomes(self):
        shape = self.shape
        ways = self.ways_elsewhere if shape.kind == "serve" and not self.child else self.ways
        status, line = ways[self.way]
        if self.child:
            who = rf"rank {self.rank} of job {shape.spawned_job()} on ({'|'.join(sorted(set(shape.nodes + [LOGIN])))})"
        else:
            who = f"rank {self.rank} {shape.at(self.rank)}"
        return [Outcome(status, line.format(r=self.rank, who=who))]

    def went_on(self, run):
        return "" if self.way.startswith("abort") else self.survived(run, 1)
