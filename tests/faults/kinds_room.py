# SPDX-License-Identifier: BSD-3-Clause
"""kinds_room.py - what runs out: disks, descriptors, processes, memory; and a clock that jumps"""
import glob
import os
import shutil

from cluster import LOGIN
from fault import UNHARMED, Fault, FromTheStart, Outcome, busy, kind
from kinds_link import HOSTS

SMALL = "/tmp/small"  # a full file system on the launcher's host
PRLIMIT = shutil.which("prlimit") or "/usr/bin/prlimit"  # also where PATH is cut down to that of a host without pdsh
SETPRIV = shutil.which("setpriv") or "/usr/bin/setpriv"
NO_SPACE = r".*No space left on device.*"
FAKETIME = " ".join(glob.glob("/usr/lib/*/faketime/libfaketimeMT.so.1"))


@kind
class FullDisk(FromTheStart):
    name = "full-disk"
    weight = 6

    def __init__(self, rng):
        super().__init__(rng)
        self.way = rng.choice(("output files", "standard output", "trace", "folders"))
        self.target = self.way
        if self.way in ("output files", "standard output"):
            self.shape.spawned = 0

    def options(self):
        return {"output files": [f"--output={SMALL}/%r"], "trace": [f"--pmi-trace={SMALL}/trace"]}.get(self.way, [])

    def task(self, client):
        if self.way in ("output files", "standard output"):
            return ["sh", "-c", "seq 1 50000; exit 0"]
        return super().task(client)

    def run_options(self):
        return {"stdout": os.open("/dev/full", os.O_WRONLY)} if self.way == "standard output" else {}

    def prepare(self, cluster):
        if self.way == "folders":
            for host in cluster.hosts:
                for folder in ("/tmp", "/dev/shm"):
                    cluster.on(host, "mount", "-o", "remount,size=4k", folder)
        cluster.on(LOGIN, "mkdir", "-p", SMALL)
        cluster.on(LOGIN, "mount", "-t", "tmpfs", "-o", "size=8k", "tmpfs", SMALL)

    def recover(self, cluster):
        cluster.on(LOGIN, "umount", SMALL)
        cluster.on(LOGIN, "rmdir", SMALL)
        if self.way == "folders":
            for host in cluster.hosts:
                for folder in ("/tmp", "/dev/shm"):
                    cluster.on(host, "mount", "-o", "remount,size=256m", folder)

    def outcomes(self):
        if self.way in ("output files", "standard output"):
            return [Outcome(1, NO_SPACE)]
        return [Outcome(0, NO_SPACE)] if self.way == "trace" else [UNHARMED]


class Limited(FromTheStart):
    """The launcher, or a host's provider, runs under a limit of setrlimit(2)."""

    words = ""
    values = range(1)
    option = ulimit = ""
    kinds = ("rsh", "local", "join")

    def __init__(self, rng):
        super().__init__(rng)
        self.value = rng.choice(self.values)
        self.host = rng.choice((LOGIN, *HOSTS)) if self.shape.kind == "rsh" else LOGIN
        self.shape.pdsh = self.shape.pdsh or self.host != LOGIN  # its script uses it
        self.target = f"{self.value} at {self.host}"

    def wrap(self, argv):
        return [PRLIMIT, f"--{self.option}={self.value * self.unit}", *argv] if self.host == LOGIN else argv

    unit = 1

    def options(self):
        return [f"--start-timeout={10 + busy()}s"] + ([] if self.host == LOGIN else [f"--rsh-command={self.script}"])

    script = ""

    def prepare(self, cluster):
        """Logins by a script that limits one host. Where the file lies is known before, as the command line is."""
        if self.host != LOGIN:
            self.script = os.path.join(cluster.dir, "limited")
            with open(self.script, "w", encoding="ascii") as f:
                f.write("#!/bin/sh\n"
                        'exec pdsh -R ssh -f 32 -w "$PMI_HOSTLIST" "case %h in '
                        f'{self.host}) ulimit -{self.ulimit};; esac; exec $PMI_PROVIDER --pmi-rank=%n"\n')
            os.chmod(self.script, 0o755)

    def outcomes(self):
        words = rf".*({self.words}).*"
        # The one who asked for a job is told, and the run goes on.
        why = f"of job 1 on {self.host}: cannot be spawned|on .*: its request to spawn is refused"
        refused = Outcome(0, rf"rank \d ({why}): {words}")
        if self.host != LOGIN:
            return [UNHARMED, refused, Outcome(69, f"{self.host}: (start|connect|lost): .*", words),
                    *(Outcome(s, rf"rank \d on {self.host}{words}", words) for s in (1, 126))]
        none_came = [r".*: start: nobody connected within .*"] if self.shape.kind == "join" else []
        return [UNHARMED, refused, *(Outcome(s, words, *none_came) for s in (1, 69, 126))]


@kind
class NoDescriptors(Limited):
    name = "no-descriptors"
    weight = 5
    option = "nofile"
    values = range(4, 40)
    words = "Too many open files|too many open files|No file descriptors available"

    @property
    def ulimit(self):
        return f"n {self.value}"


@kind
class NoMemory(Limited):
    name = "no-memory"
    weight = 4
    option = "as"
    unit = 1 << 20
    values = range(24, 200, 4)
    words = "[Oo]ut of memory|Cannot allocate memory|not enough memory|memory"

    @property
    def ulimit(self):
        return f"v {self.value * 1024}"


@kind
class NoProcesses(FromTheStart):
    """A user of whom no more than a few processes may be; root is above that limit."""

    name = "no-processes"
    weight = 3
    kinds = ("local", "one")

    def __init__(self, rng):
        super().__init__(rng)
        self.shape.rough = False
        self.value = rng.randint(1, 16)
        self.user = 200000 + rng.randrange(100000)
        self.target = f"{self.value} for user {self.user}"

    def wrap(self, argv):
        return [SETPRIV, f"--reuid={self.user}", f"--regid={self.user}", "--clear-groups",
                PRLIMIT, f"--nproc={self.value}", *argv]

    def env(self):
        return {"HOME": "/"}

    def outcomes(self):
        words = r".*Resource temporarily unavailable.*"
        refused = Outcome(0, rf"rank \d of job 1 on login: cannot be spawned: {words}")
        none_came = [r".*: start: nobody connected within .*"] if self.shape.kind == "join" else []
        return [UNHARMED, refused, *(Outcome(s, words, *none_came) for s in (1, 69, 126))]


@kind
class ClockJump(Fault):
    """The time of day jumps by an hour on the launcher's host, as when it is set; intervals go on."""

    name = "clock-jump"
    weight = 3
    ends_run = False

    def __init__(self, rng):
        super().__init__(rng)
        self.jump = rng.choice(("+1h", "-1h", "+400d"))
        self.target = self.jump
        self.file = ""

    def prepare(self, cluster):
        self.file = os.path.join(cluster.dir, "faketime")
        self.write("+0")

    def write(self, text):
        with open(self.file + ".new", "w", encoding="ascii") as f:
            f.write(text + "\n")
        os.rename(self.file + ".new", self.file)

    def env(self):
        return {"LD_PRELOAD": FAKETIME, "FAKETIME_TIMESTAMP_FILE": self.file, "FAKETIME_NO_CACHE": "1",
                "FAKETIME_DONT_FAKE_MONOTONIC": "1", "DONT_FAKE_MONOTONIC": "1", "FAKETIME_DISABLE_SHM": "1"}

    def inject(self, run):
        self.write(self.jump)

    def outcomes(self):
        return [UNHARMED]
