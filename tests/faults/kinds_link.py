# SPDX-License-Identifier: BSD-3-Clause
"""kinds_link.py - what a network does: cut for good or for a while, loss, low rate, delay, resets, strangers"""
import os
import subprocess
import sys
import time

from cluster import LOGIN
from fault import GONE, LOST, UNHARMED, WELL, Fault, FromTheStart, Outcome, busy, kind, lost, not_come, not_started
from relay import MARK
from shape import address

HERE = os.path.dirname(os.path.abspath(__file__))
HOSTS = ("h0", "h1", "h2")
STRANGERS = r"\d+ connections? of strangers (was|were) dropped during the start"
TOO_LATE = r"10\.88\.1\.\d:\d+ comes too late, and was turned away"
# A provider that cannot reach another one is taken by the launcher, which says so.
MOVED = r"node \d cannot reach its parent node \d .*, taking it at the launcher"


class OnLink(Fault):
    kinds = ("rsh", "join")

    def __init__(self, rng):
        super().__init__(rng)
        self.host = self.target = rng.choice(HOSTS)
        self.port = self.shape.port


def rules(cluster, host, *lines, hook="input", kind_of="filter"):
    """One chain of nft(8) rules on a host."""
    name = f"{hook}_{kind_of}"
    text = "\n".join([f"table inet faults {{\nchain {name} {{",
                      f"type {kind_of} hook {hook} priority {0 if kind_of == 'filter' else -100}; policy accept;",
                      *lines, "}\n}\n"])
    cluster.on(host, "nft", "-f", "-", text=text)


def no_rules(cluster, host):
    cluster.on_quietly(host, "nft", "delete", "table", "inet", "faults")


def unanswered(fault):
    """See Fault.unanswered(): those that come over the link."""
    return len(fault.shape.ranks_at(fault.host)) if fault.shape.kind == "serve" else 0


@kind
class CutForGood(OnLink):
    name = "cut-for-good"
    weight = 1.2
    kinds = ("rsh", "serve", "join")
    slow = True

    def __init__(self, rng):
        super().__init__(rng)
        self.cut = False

    def options(self):
        return [f"--start-timeout={6 + busy()}s"]

    def inject(self, run):
        run.cluster.cable(self.host, "down")
        self.cut = True

    def limit(self):
        return LOST + GONE

    def recover(self, cluster):
        if self.cut:
            cluster.cable(self.host, "up")

    def clean_limit(self):
        return LOST + GONE  # on its other side, from when it was cut; and what ssh has to do with it

    def outcomes(self):
        serve = self.shape.kind == "serve"
        gone = self.ranks_lost() if serve else lost(self.host)
        if self.met == "start":
            if serve:
                return [gone, not_come()]
            return [not_started(self.host), Outcome(69, f"{self.host}: lost: .*", MOVED)]
        return [gone] if self.endless() else [gone, UNHARMED]

    def unanswered(self):
        return unanswered(self)


@kind
class CutForAWhile(OnLink):
    name = "cut"
    weight = 8
    kinds = ("rsh", "serve", "join")
    ends_run = False

    def __init__(self, rng):
        super().__init__(rng)
        self.seconds = rng.choice((0.1, 0.3, 0.3, 1, 1, 2, 5))
        self.target = f"{self.host} for {self.seconds} s"

    def inject(self, run):
        run.cluster.cable(self.host, "down")

    def after(self, run):
        time.sleep(self.seconds)
        run.cluster.cable(self.host, "up")

    def limit(self):
        return 2 * WELL

    def outcomes(self):
        return [UNHARMED, Outcome(0, MOVED)]


class BadNetwork(FromTheStart, OnLink):
    def options(self):
        """Logins of ranks may take long then."""
        return ["--start-timeout=60s"] if self.shape.kind == "serve" else []

    def outcomes(self):
        return [UNHARMED]


@kind
class Loss(BadNetwork):
    name = "loss"
    weight = 5
    kinds = ("rsh", "serve", "join")

    def __init__(self, rng):
        super().__init__(rng)
        self.percent = rng.choice((1, 3, 5, 10))
        self.target = f"{self.percent}% at {self.host}"

    def prepare(self, cluster):
        drop = f'iifname "eth0" numgen random mod 100 < {self.percent} drop'
        rules(cluster, self.host, drop)
        rules(cluster, self.host, drop.replace("iifname", "oifname"), hook="output")

    def recover(self, cluster):
        no_rules(cluster, self.host)

    def limit(self):
        return 3 * WELL

    def outcomes(self):
        return [UNHARMED, Outcome(0, MOVED)]


@kind
class Rate(BadNetwork):
    name = "rate"
    weight = 4
    kinds = ("rsh", "serve", "join")

    def __init__(self, rng):
        super().__init__(rng)
        self.kbit = rng.choice((100, 300, 1000))
        self.target = f"{self.kbit} kbit/s at {self.host}"

    def prepare(self, cluster):
        limit = ["root", "tbf", "rate", f"{self.kbit}kbit", "burst", "5kb", "latency", "2s"]
        cluster.on(self.host, "tc", "qdisc", "add", "dev", "eth0", *limit)
        cluster.on(LOGIN, "tc", "qdisc", "add", "dev", f"v{self.host}", *limit)

    def recover(self, cluster):
        cluster.on_quietly(self.host, "tc", "qdisc", "del", "dev", "eth0", "root")
        cluster.on_quietly(LOGIN, "tc", "qdisc", "del", "dev", f"v{self.host}", "root")


@kind
class NoEdge(BadNetwork):
    """A host that reaches the launcher but no other host: the launcher takes whom the tree would have there."""

    name = "no-edge"
    weight = 1

    def prepare(self, cluster):
        rules(cluster, self.host, "ip saddr 10.88.1.0/24 tcp dport != 22 reject with tcp reset")
        rules(cluster, self.host, "ip daddr 10.88.1.0/24 tcp sport != 22 tcp dport != 22 reject with tcp reset",
              hook="output")

    def recover(self, cluster):
        no_rules(cluster, self.host)

    def outcomes(self):
        return [UNHARMED, Outcome(0, MOVED)]


@kind
class NoWayBack(BadNetwork):
    """Logins work, but the launcher's port cannot be reached."""

    name = "no-way-back"
    weight = 3

    def __init__(self, rng):
        super().__init__(rng)
        self.verdict = rng.choice(("drop", "reject", "reject with tcp reset"))
        self.target = f"{self.verdict} at {self.host}"

    def options(self):
        return [f"--port={self.port}", f"--start-timeout={3 + busy()}s"]

    def prepare(self, cluster):
        rules(cluster, self.host, f"tcp dport {self.port} {self.verdict}", hook="output")

    def recover(self, cluster):
        no_rules(cluster, self.host)

    def limit(self):
        return 3 + WELL

    def outcomes(self):
        if self.shape.kind == "join":
            return [Outcome(69, f"{self.host}: start: nobody connected within .*")]
        # Another host's provider may be its parent, which it reaches.
        return [Outcome(69, f"{self.host}: connect: .*")] + ([UNHARMED] if self.shape.tree else [])


class Helped(OnLink):
    """A fault that a process of our own makes, in a host's network."""

    helper = None

    def start_helper(self, cluster, program, *args):
        self.helper = subprocess.Popen(
            ["ip", "netns", "exec", cluster.prefix + self.host, sys.executable, os.path.join(HERE, program),
             *map(str, args)], stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def tell(self, line):
        self.helper.stdin.write(line.encode() + b"\n")
        self.helper.stdin.flush()

    def stop_helper(self):
        self.helper.stdin.close()
        self.helper.wait()
        self.helper.stdout.close()


@kind
class Relay(Helped):
    """One provider's way to the launcher leads over a relay that delays, stalls, resets, or changes a bit."""

    name = "relay"
    weight = 9
    kinds = ("rsh", "serve")
    helper_port = 5599

    def __init__(self, rng):
        super().__init__(rng)
        self.shape.fanout, self.shape.tree = 32, ""  # so that the connection is the provider's for the whole run
        self.way = rng.choice(("delay", "delay", "stall", "cut", "flip", "mute"))
        if self.way == "mute" and rng.random() < 0.75:
            self.way = "cut"
        if self.shape.kind == "serve" and self.way in ("flip", "mute"):
            self.way = "cut"  # nothing proves what comes, and a peer that only says nothing may do so
        self.seconds = rng.choice((0.01, 0.05, 0.2)) if self.way == "delay" else rng.choice((0.2, 1, 3))
        self.ends_run = self.way in ("cut", "flip", "mute")
        self.slow = self.way == "mute"
        if self.way == "flip":
            self.moment = rng.choice(("start", "run"))
        self.target = f"{self.way} {self.seconds} s at {self.host}"

    def options(self):
        return [f"--port={self.port}", f"--start-timeout={6 + busy()}s"] if self.ends_run else [f"--port={self.port}"]

    def endless(self):
        return self.ends_run and self.moment == "run" and self.way != "flip"

    def prepare(self, cluster):
        self.start_helper(cluster, "relay.py", address(LOGIN), self.port, self.helper_port)
        self.helper.stdout.readline()
        rules(cluster, self.host, f"tcp dport {self.port} meta mark != {MARK} redirect to :{self.helper_port}",
              hook="output", kind_of="nat")
        if self.way == "delay":
            self.tell(f"delay {self.seconds}")

    def inject(self, run):
        if self.way != "delay":
            self.tell("mute" if self.way == "stall" else self.way)

    def after(self, run):
        if self.way == "stall":
            time.sleep(self.seconds)
            self.tell("go")

    def recover(self, cluster):
        no_rules(cluster, self.host)
        self.stop_helper()

    def limit(self):
        return LOST + GONE if self.ends_run else 2 * WELL

    def outcomes(self):
        if self.way in ("delay", "stall"):
            return [UNHARMED]
        serve = self.shape.kind == "serve"
        right = [self.ranks_lost() if serve else lost(self.host)]
        if self.met == "start":
            right += [not_come() if serve else not_started(self.host)]
        if not self.endless():
            right += [UNHARMED]
        if self.way == "flip" and self.met == "start":  # what it changed made it a stranger's; the provider came again
            right += [Outcome(0, STRANGERS)]
        return right

    def unanswered(self):
        return unanswered(self) if self.way == "cut" else 0


@kind
class Stranger(Helped):
    """Somebody at the launcher's port who does not belong there, from before the start to the end."""

    name = "stranger"
    weight = 5
    kinds = ("rsh", "serve", "join")
    passive = True
    moments = ("start",)
    ends_run = False

    def __init__(self, rng):
        super().__init__(rng)
        self.mode = rng.choice(("silent", "half", "rubbish", "flood", "drip", "tls"))
        self.target = f"{self.mode} from {self.host}"

    def options(self):
        return [f"--port={self.port}"]

    def prepare(self, cluster):
        self.start_helper(cluster, "stranger.py", self.mode, address(LOGIN), self.port)

    def wait_moment(self, run):
        pass

    def inject(self, run):
        pass

    def recover(self, cluster):
        self.stop_helper()

    def limit(self):
        return 2 * WELL

    def outcomes(self):
        if self.shape.kind == "serve":
            return [UNHARMED, Outcome(0, rf"a connection from {address(self.host)} is refused: .*")]
        late = [TOO_LATE] if self.shape.kind == "join" else []
        return [UNHARMED, Outcome(0, STRANGERS, *late)]
