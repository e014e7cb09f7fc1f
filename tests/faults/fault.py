# SPDX-License-Identifier: BSD-3-Clause
"""fault.py - what all faults have in common: when they strike, and which ends of the run are right after them

A kind of fault is a class. Its __init__ draws everything from the seed; inject() does it; outcomes() is its part of the
oracle: the table of exit status and words that are right. What a run says itself must be nothing but the lines of
the outcome, and at least one of them where the outcome has any.
"""
import os
import random
import re
import signal
import time

from cluster import LOGIN
from shape import Shape, address

GRACE = 1.0  # --kill-grace of every run
GONE = GRACE + 5.0  # behind which nothing may be left
LOST = 30.0  # within which a silent host is noticed
WELL = 30.0  # a run to which nothing happens takes a second; a deadline for a busy machine


# One host or several, as messages have them.
ANY = r"(h\d|h\[[0-9,-]+\]|h\d(,h\d)+)"


def busy():
    """What a busy machine may take longer for a start, in whole seconds."""
    return min(20, int(0.25 * os.getloadavg()[0]))


class Outcome:
    """One right end: the status, and patterns of pmi-start's own lines, of which each line must match one."""

    def __init__(self, status, *patterns, silent_too=False):
        self.status, self.patterns, self.silent_too = status, patterns, silent_too

    def fits(self, status, lines):
        if status != self.status:
            return False
        if not lines:
            return not self.patterns or self.silent_too
        return all(any(re.fullmatch(p, line) for p in self.patterns) for line in lines)

    def __str__(self):
        return f"{self.status} {' | '.join(self.patterns) or 'without a word'}"


UNHARMED = Outcome(0)


def lost(host, why=".*"):
    return Outcome(69, f"{host}: lost: {why}")


def ended_by(number):
    """By a signal to the launcher, which says who was awaited where somebody was."""
    name = signal.Signals(number).name.removeprefix("SIG")
    awaited = r"(while hosts were started, waiting for .*|while the nodes got ready|in barrier \d+.*)"
    return Outcome(128 + number, rf"ended by {name} {awaited}", silent_too=True)


def no_word(host):
    """Of a tree of logins, what is said of those that a host was to log in to, from which nothing more comes."""
    return f"{ANY}: login: no word of (it|them) from {host}, to which (it was|they were) left"


def not_started(host):
    """A host that could not be started, at whatever stage."""
    return Outcome(69, f"{host}: (login|start|connect): .*", f"{host}: lost: .*", no_word(host))


def not_come():
    """Of --serve: some that are waited for were not there."""
    return Outcome(1, r"ranks? [\d,-]+ (has|have) not come.*")


class Fault:
    name = "?"
    weight = 1
    kinds = ("rsh", "local", "one", "join")  # of shapes that it can meet
    moments = ("start", "run", "end")
    slow = False  # takes half a minute by its nature
    ends_run = True  # where it strikes while tasks run, they need not come to their end by themselves
    own = None
    passive = False  # it is in the run itself or in its surroundings, from the start
    bare = False  # its tasks are its own, and no pmi_client

    def __init__(self, rng):
        self.rng = rng
        self.shape = Shape(rng, self.kinds, self.own, self.bare)
        self.moment = rng.choice(self.moments)
        self.delay = rng.random()
        self.target = ""
        self.host = LOGIN
        self.struck = None  # when
        self.missed = False  # what it was to hit was not there
        self.met = "start"  # the moment as it was

    # --- what the run is

    def endless(self):
        """Or, with --keep-going, long enough."""
        return self.ends_run and self.moment == "run"

    def task(self, client):
        shape = self.shape
        if self.endless():
            return shape.command(client, shape.endless(), shape.child_endless())
        return shape.command(client, shape.finite())

    def options(self):
        return []

    def wrap(self, argv):
        """The launcher's command line: limits go in front."""
        return argv

    def env(self):
        return {}

    def run_options(self):
        """For Run()."""
        return {}

    def prepare(self, cluster):
        """Before the start; undone by recover()."""

    # --- when

    def wait_moment(self, run):
        """At the start within the time that a start takes; else counted from what the tasks say."""
        if self.moment == "start":
            time.sleep(self.delay * (0.9 if self.shape.kind == "rsh" else 0.3))
        elif self.moment == "run":
            run.wait_until(lambda: run.count("ready") == self.shape.ranks, WELL)
            time.sleep(self.delay * 0.2)
        else:
            run.wait_until(lambda: run.count("ending") > 0, WELL)
            time.sleep(self.delay * 0.15)

    def note_moment(self, run):
        """What the run is at, as its output has it; what is on its way makes it later than it looks."""
        if run.over():
            self.met = "over"
        elif run.count("ending") > 0:
            self.met = "end"
        elif run.count("ready") > 0:
            self.met = "run"
        else:
            self.met = "start"

    # --- what

    def inject(self, run):
        raise NotImplementedError

    def after(self, run):
        """While the run goes on: what is to be taken back before its end."""

    def limit(self):
        """Seconds from the fault to the end of the run, as documented."""
        return WELL

    def recover(self, cluster):
        """When the run is over: take back what the hosts must be free of."""

    def clean_limit(self):
        """Seconds from the end of the run until nothing is left."""
        return GONE

    def outcomes(self):
        raise NotImplementedError

    def outcomes_missed(self):
        """Where it came too late, or what it was to hit was not there."""
        return self.outcomes() if self.passive else [UNHARMED]

    def complete(self, run):
        """What else must be so where the run has ended with 0: every task came to its end, and that was seen."""
        done, children = run.count("done"), run.count("child-done")
        if not self.shape.ranks - self.unanswered() <= done <= self.shape.ranks:
            return f"{done} of {self.shape.ranks} tasks said that they are done"
        refused = any("cannot be spawned" in line or "to spawn is refused" in line for line in run.own_lines())
        if children != (0 if refused else self.shape.spawned):
            return f"{children} of {self.shape.spawned} spawned tasks said that they are done"
        return ""

    def unanswered(self):
        """How many ranks may have been hit between their finalize, which ends them for the server, and its answer."""
        return 0

    def survived(self, run, victims):
        """With --keep-going all but so many come to their end, too, as far as they get."""
        ended = run.count("done") + run.count("broken") + run.count("child-done")
        all_of_them = self.shape.ranks + self.shape.spawned
        return "" if ended >= all_of_them - victims else f"only {ended} of {all_of_them} tasks went on to their end"

    def went_on(self, run):
        """What else must be so with --keep-going where the status is not 0."""
        return ""

    def ranks_lost(self):
        """Of --serve: those of this host, in one of the ways in which a connection ends."""
        ranks = "|".join(str(r) for r in self.shape.ranks_at(self.host))
        return Outcome(1, rf"rank ({ranks}) at {address(self.host)} (closed PMI before finalize|was lost before .*)")

    def by_tree(self):
        """Of a tree of logins: what is said besides, where logins failed that were made again by others. A host is
        named that was hit, or one whose login it was; with which of them it was about, where any may be hit.
        """
        if not self.shape.tree or self.met != "start":
            return []
        hit = self.hit_at_start()
        left = r"\d+ hosts? (is|are) left to others"
        return [rf"{ANY}: logins from here fail \({hit}: .*\), {left}",
                rf"{hit}: cannot log in to others \(.*\), {left}",
                rf"{hit}: logins from here fail \({ANY}: .*\), {left}", rf"{ANY}: login: its turn did not come",
                rf"({ANY}: )?{hit}: lost while hosts were logged in to from it \(.*\), "
                r"trying again there and for \d+ behind it"]

    def hit_at_start(self):
        """Of which host failed logins may be; a pattern."""
        return self.host

    def says(self):
        """What it was, for the report."""
        return f"{self.name} at {self.moment}" + (f" {self.target}" if self.target else "")


KINDS = []


def kind(cls):
    """Enter a class into the list of kinds."""
    KINDS.append(cls)
    return cls


def draw(seed):
    """The fault of a seed."""
    rng = random.Random(seed)
    cls = rng.choices(KINDS, [k.weight for k in KINDS])[0]
    return cls(rng)


class FromTheStart(Fault):
    """Surroundings that are bad from the start to the end of the run."""

    moments = ("start",)
    ends_run = False
    passive = True

    def wait_moment(self, run):
        pass

    def inject(self, run):
        pass

    def limit(self):
        return 2 * WELL
