# SPDX-License-Identifier: BSD-3-Clause
"""kinds_process.py - processes of a run that are killed, stopped for a while, or stopped for good; hosts that crash"""
import signal
import time

from cluster import LOGIN
from fault import ANY, GONE, LOST, UNHARMED, WELL, Fault, Outcome, busy, ended_by, kind, lost, no_word, not_come
from fault import not_started
from shape import EVERY

PATIENCE = 15.0  # for hosts that do not join
KEEPER_KILLED = "its keeper process was killed"


class OnProcess(Fault):
    """Picks a process of a role; at the start it is one that has only just come to be."""

    roles = {"launcher": 2, "own-keeper": 2, "worker": 4, "keeper": 4, "waiter": 2, "ssh": 3, "sshd": 3, "task": 3,
             "command": 2}
    login_roles = ("waiter", "ssh", "sshd")

    def __init__(self, rng):
        super().__init__(rng)
        names = [r for r in self.roles if self.fits(r)]
        self.role = rng.choices(names, [self.roles[r] for r in names])[0]
        if self.role in self.login_roles and not (self.moment == "run" and self.shape.attach == "yes"):
            self.moment = "start"
        if self.role == "waiter":
            self.moment = "start"
        self.pick = rng.random()
        self.process = None
        self.rank = None
        self.spawned = False
        self.target = self.role

    def fits(self, role):
        if self.shape.kind != "rsh" and role in self.login_roles:
            return False
        if (role == "command") != (self.shape.kind == "serve") and role not in ("launcher", "own-keeper", "task"):
            return False
        if self.shape.kind == "one" and role in ("worker", "keeper"):
            return False
        return not (role == "waiter" and self.shape.attach == "yes")

    def wait_moment(self, run):
        if self.moment != "start":
            super().wait_moment(run)
            return
        # As soon as there is one, or a little later, by when others may be there to pick from.
        run.wait_until(lambda: self.find(run), WELL)
        time.sleep(self.delay * self.delay * 0.5)

    def find(self, run):
        return run.cluster.roles()[self.role]

    def choose(self, run):
        found = sorted(self.find(run), key=lambda p: (p.host, p.pid))
        if not found:
            self.missed = True
            return False
        self.process = found[int(self.pick * len(found))]
        self.host = self.process.host
        self.target = f"{self.role} {self.host}:{self.process.pid}"
        for word in run.cluster.environ(self.process) if self.role == "task" else []:
            name, _, value = word.partition("=")
            if name == "PMI_RANK" or (name == "PMI_ID" and self.rank is None):
                self.rank = int(value)
            self.spawned |= name == "PMI_SPAWNED"
        return True

    def hit(self, run, number):
        if not self.choose(run) or not run.cluster.signal(self.process, number):
            self.missed = True

    def from_elsewhere(self):
        """A rank of --serve that it has not spawned."""
        return self.role == "task" and self.shape.kind == "serve" and not self.spawned

    def victim(self):
        """How messages call the task; a pattern."""
        if self.from_elsewhere():
            return f"rank {self.rank} {self.shape.at(self.rank)}"
        job = f" of job {self.shape.spawned_job()}" if self.spawned else ""
        return rf"rank {self.rank}{job} on {self.host} \(pid {self.process.pid}\)"

    def hit_at_start(self):
        """Where the target is a login's process any host that was not in yet may be the one that is hit."""
        return ANY if self.role == "ssh" else self.host

    def name_at_start(self):
        """How a host is called before it is in."""
        return self.host if self.shape.kind in ("rsh", "join") else r"node\d"


@kind
class Kill(OnProcess):
    name = "kill"
    weight = 30
    kinds = EVERY

    def endless(self):
        return super().endless() and self.role not in self.login_roles

    def inject(self, run):
        self.hit(run, signal.SIGKILL)

    def options(self):
        return [f"--start-timeout={int(PATIENCE)}s"] if self.only_time_tells() else []

    def only_time_tells(self):
        """A script whose other logins stay says nothing of one that is gone, nor anybody of a node of --join."""
        return self.role in self.login_roles or (self.shape.kind == "join" and self.moment == "start")

    def limit(self):
        if self.only_time_tells():
            return PATIENCE + WELL
        return WELL if self.met == "start" or not self.endless() else GONE

    def outcomes(self):
        at_start = self.met == "start"
        here = "login" if self.shape.kind not in ("rsh", "join") or self.shape.own else "launcher"
        killed = r"was killed by signal 9 \(Killed\)"
        right = {
            "launcher": [Outcome(137)],
            "own-keeper": [lost(here, KEEPER_KILLED)],
            "worker": [lost(self.host)],
            "keeper": [lost(self.host, KEEPER_KILLED)],
            "task": [Outcome(137, f"{self.victim()} {killed}")],
            "command": [Outcome(137, rf"COMMAND \(pid {self.process.pid}\) {killed}")],
            "waiter": [not_started(self.host), UNHARMED],
            # Of an ssh that is killed the script's shell has a word of its own.
            "ssh": [Outcome(69, f"{ANY}: (login|start|connect): .*", "Killed"), Outcome(0, "Killed"), UNHARMED],
            "sshd": [not_started(self.host), UNHARMED],
        }[self.role]
        if self.from_elsewhere():
            right = [Outcome(1, f"{self.victim()} (closed PMI before finalize|was lost before .*)")]
            right += [not_come()] if at_start else []
        if at_start and self.role in ("worker", "keeper"):
            # Before its key has come, another try is made.
            right += [Outcome(69, rf"{self.name_at_start()}: (start|connect): (?!started, but did not reach).*"),
                      lost(self.host), UNHARMED]
        if self.met == "end" or not self.endless():
            right += [UNHARMED]
        return right

    def unanswered(self):
        return 1 if self.from_elsewhere() else 0

    def went_on(self, run):
        return self.survived(run, 1) if self.role == "task" and self.met == "run" and self.endless() else ""


@kind
class Pause(OnProcess):
    """Stopped, and soon let go on: nobody must mind."""

    name = "pause"
    weight = 16
    kinds = EVERY
    ends_run = False

    def __init__(self, rng):
        super().__init__(rng)
        self.seconds = rng.choice((0.05, 0.3, 1, 1, 2, 6))
        self.target += f" {self.seconds} s"

    def inject(self, run):
        self.hit(run, signal.SIGSTOP)
        self.target += f" for {self.seconds} s"

    def after(self, run):
        if self.process is not None:
            time.sleep(self.seconds)
            run.cluster.signal(self.process, signal.SIGCONT)

    def outcomes(self):
        return [UNHARMED]


@kind
class StopLogin(OnProcess):
    """A login that stands still for good."""

    name = "stop-login"
    weight = 3
    kinds = ("rsh",)
    moments = ("start",)
    roles = {"ssh": 2, "sshd": 2, "waiter": 1}

    def options(self):
        return [f"--start-timeout={4 + busy()}s"]

    def inject(self, run):
        self.hit(run, signal.SIGSTOP)

    def limit(self):
        return 8 + WELL

    def recover(self, cluster):
        if self.process is not None:
            cluster.signal(self.process, signal.SIGCONT)

    def outcomes(self):
        host = ANY if self.role == "ssh" else self.host
        return [UNHARMED, Outcome(69, f"{host}: (login|start|connect): .*")]


@kind
class StopWorker(OnProcess):
    """A provider that stands still for good is a host that gives no sign of life."""

    name = "stop-worker"
    weight = 0.7
    slow = True
    moments = ("start", "run")
    kinds = ("rsh", "local", "join")
    roles = {"worker": 1}

    def options(self):
        return [f"--start-timeout={6 + busy()}s"]

    def inject(self, run):
        self.hit(run, signal.SIGSTOP)

    def limit(self):
        return LOST + GONE

    def recover(self, cluster):
        if self.process is not None:
            cluster.signal(self.process, signal.SIGCONT)

    def outcomes(self):
        right = [lost(self.host, r"no sign of life for 2\d s")]
        if self.met == "start":
            moved = r"node \d cannot reach its parent node \d .*, taking it at the launcher"
            right += [Outcome(69, rf"{self.name_at_start()}: (start|connect|login): .*", no_word(self.host)),
                      Outcome(69, rf"{self.host}: lost: .*", moved)]
        if self.met == "end":  # it may have said all that it had to
            right.append(UNHARMED)
        return right


@kind
class StopKeeper(OnProcess):
    """A keeper that stands still for good: its node's tasks cannot be ended by it."""

    name = "stop-keeper"
    weight = 2
    moments = ("run",)
    roles = {"keeper": 2, "own-keeper": 1}

    def options(self):
        return ["--timeout=3s"]

    def inject(self, run):
        self.hit(run, signal.SIGSTOP)

    def limit(self):
        return 3 + GONE + 10

    def outcomes_missed(self):
        return [Outcome(124, "the time limit of 3 s is over .*")]

    def outcomes(self):
        right = [Outcome(124, "the time limit of 3 s is over .*",
                         r"\d+ of \d+ tasks have not ended, giving them up: (ranks? .* on .*|COMMAND)")]
        if self.role == "own-keeper" and not self.shape.own:  # it has no tasks, and all of them may end in time
            right.append(UNHARMED)
        return right


@kind
class StopLauncher(OnProcess):
    """A launcher that stands still for good: the other hosts do not wait for it. Then it is killed."""

    name = "stop-launcher"
    weight = 0.5
    slow = True
    kinds = ("rsh", "join")
    moments = ("run",)
    roles = {"launcher": 1}

    def inject(self, run):
        self.hit(run, signal.SIGSTOP)

    def after(self, run):
        hosts = [h for h in run.cluster.hosts if h != LOGIN]
        end = time.monotonic() + LOST + GONE + 5
        while run.cluster.keepers(hosts) and time.monotonic() < end:
            time.sleep(0.2)
        self.target += f", providers gone after {time.monotonic() - self.struck:.1f} s"
        if not run.cluster.keepers(hosts):
            run.cluster.signal(self.process, signal.SIGKILL)

    def outcomes(self):
        return [Outcome(137)]


@kind
class Crash(Fault):
    """A host is gone at once, with all that is on it; its address answers with resets."""

    name = "crash"
    weight = 4
    kinds = ("rsh", "serve", "join")
    moments = ("start", "run")

    def __init__(self, rng):
        super().__init__(rng)
        self.host = self.target = rng.choice(("h0", "h1", "h2"))
        self.crashed = False

    def options(self):
        return [f"--start-timeout={6 + busy()}s"]

    def inject(self, run):
        run.cluster.crash(self.host)
        self.crashed = True

    def limit(self):
        return GONE + 4 if self.met != "start" and self.shape.kind == "rsh" else LOST + GONE

    def recover(self, cluster):
        if self.crashed:
            cluster.up()

    def outcomes(self):
        if self.shape.kind == "serve":
            return [self.ranks_lost()] + ([not_come()] if self.met == "start" else [])
        return [not_started(self.host) if self.met == "start" else lost(self.host)]


@kind
class Signals(Fault):
    """A user who ends a run, stops it, or sends what is for the tasks."""

    name = "signal"
    weight = 8
    kinds = EVERY

    def __init__(self, rng):
        super().__init__(rng)
        self.number = rng.choice((signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGTSTP))
        self.again = rng.random() < 0.3
        self.target = self.number.name + (" twice" if self.again else "")
        self.launcher = None

    def endless(self):
        return super().endless() and self.number != signal.SIGTSTP

    def inject(self, run):
        found = run.wait_until(lambda: run.cluster.roles()["launcher"], WELL)
        if not found:
            self.missed = True
            return
        self.launcher = found[0]
        run.cluster.signal(self.launcher, self.number)
        if self.again and self.number != signal.SIGTSTP:
            time.sleep(self.delay * 0.2)
            run.cluster.signal(self.launcher, self.number)

    def after(self, run):
        if self.launcher is not None and self.number == signal.SIGTSTP:
            time.sleep(0.4)
            run.cluster.signal(self.launcher, signal.SIGCONT)

    def limit(self):
        return WELL if self.number == signal.SIGTSTP else GONE

    def outcomes(self):
        if self.number == signal.SIGTSTP:
            return [UNHARMED]
        ended = ended_by(self.number)
        return [ended] if self.endless() else [ended, UNHARMED]


@kind
class ToldToEnd(OnProcess):
    """A node that has come by itself is told to go, as a pod that is evicted: the run ends, for that reason."""

    name = "told-to-end"
    weight = 1.5
    kinds = ("join",)
    roles = {"worker": 1}

    def __init__(self, rng):
        super().__init__(rng)
        self.number = rng.choice((signal.SIGTERM, signal.SIGINT, signal.SIGHUP))

    def options(self):
        return [f"--start-timeout={6 + busy()}s"]

    def inject(self, run):
        self.hit(run, self.number)
        self.target += f" {self.number.name}"

    def limit(self):
        return 6 + busy() + GONE

    def outcomes(self):
        right = [lost(self.host), Outcome(69, rf"{self.host}: it was told to end: signal {int(self.number)} .*")]
        if self.met == "start":
            right += [Outcome(69, f"{self.host}: start: nobody connected within .*")]
        return right if self.endless() else right + [UNHARMED]


@kind
class Timeout(Fault):
    """--timeout at any moment, with tasks that never end."""

    name = "timeout"
    weight = 4
    kinds = EVERY
    passive = True
    moments = ("start",)

    def __init__(self, rng):
        super().__init__(rng)
        self.ms = rng.randint(50, 1500)
        self.target = f"{self.ms} ms"

    def endless(self):
        return True

    def options(self):
        return [f"--timeout={self.ms}ms"]

    def wait_moment(self, run):
        pass

    def inject(self, run):
        pass

    def limit(self):
        return self.ms / 1000 + GONE

    def outcomes(self):
        return [Outcome(124, rf"the time limit of {self.ms / 1000:g} s is over .*")]
