# SPDX-License-Identifier: BSD-3-Clause
"""run.py - one run of pmi-start on a cluster: started, watched, waited for"""
import os
import re
import signal
import subprocess
import threading
import time

from cluster import LOGIN

TICK = 0.01


class Stream:
    """One output of the launcher: read by a thread of its own, unless it is paused, into memory."""

    def __init__(self):
        self.read_fd, self.write_fd = os.pipe()
        self.data = bytearray()
        self.go = threading.Event()
        self.go.set()
        self.stopped = False
        self.thread = threading.Thread(target=self._read, daemon=True)

    def start(self):
        os.close(self.write_fd)
        self.thread.start()

    def _read(self):
        while True:
            self.go.wait()
            try:
                piece = os.read(self.read_fd, 65536)
            except OSError:
                return
            if not piece:
                return
            self.data += piece
            if self.stopped or len(self.data) > 64 << 20:
                os.close(self.read_fd)
                return

    def stop(self):
        """As a reader that goes, with the next piece that comes."""
        self.stopped = True

    def text(self):
        return self.data.decode(errors="replace")


def surroundings(more=()):
    """The environment of a user on one of the hosts."""
    env = {k: v for k, v in os.environ.items() if not k.startswith(("PMI", "HOSTS_", "MAKE", "MFLAGS"))}
    return {**env, "HOME": "/root", "USER": "root", "LOGNAME": "root", **dict(more)}


def is_stopped(process):
    """nsenter(1) stops itself when what it has entered for is stopped, and must not stay so for ever."""
    try:
        with open(f"/proc/{process.pid}/stat", encoding="ascii", errors="replace") as f:
            return f.read().rpartition(")")[2].split()[0] == "T"
    except (OSError, IndexError):
        return False


class Run:
    def __init__(self, cluster, argv, env=(), stdin=subprocess.DEVNULL, stdout=None):
        self.cluster, self.argv, self.env, self.stdin, self.stdout_file = cluster, argv, dict(env), stdin, stdout
        self.out, self.err = Stream(), Stream()
        self.process = None
        self.started = self.ended = None

    def start(self):
        self.started = time.monotonic()
        self.process = subprocess.Popen(
            self.cluster.enter(LOGIN) + self.argv, stdin=self.stdin, env=surroundings(self.env), cwd="/",
            stdout=self.out.write_fd if self.stdout_file is None else self.stdout_file, stderr=self.err.write_fd)
        for stream in (self.out, self.err):
            stream.start()
        if isinstance(self.stdin, int) and self.stdin >= 0:
            os.close(self.stdin)

    def over(self):
        if self.ended is None and self.process.poll() is not None:
            self.ended = time.monotonic()
        return self.ended is not None

    def wait_until(self, condition, limit):
        """Until it holds (its value), or the run or the time is over (None)."""
        end = time.monotonic() + limit
        while time.monotonic() < end:
            value = condition()
            if value:
                return value
            if self.over():
                return None
            time.sleep(TICK)
        return None

    def wait_end(self, deadline):
        """The exit status as a shell has it; None: it has not ended by then."""
        while not self.over():
            if time.monotonic() > deadline:
                return None
            self._nudge()
            time.sleep(TICK)
        for stream in (self.out, self.err):
            stream.go.set()
            stream.thread.join(5)
        code = self.process.returncode
        return code if code >= 0 else 128 - code

    def _nudge(self):
        if is_stopped(self.process) and not self.launcher_stopped():
            self.process.send_signal(signal.SIGCONT)

    def launcher_stopped(self):
        return any(p.state == "T" and p.comm == "pmi-start" for p in self.cluster.processes([LOGIN]))

    def count(self, word):
        """How many tasks have printed it."""
        return len(re.findall(rb"^(?:[\d.]+: )?" + word.encode() + rb"$", bytes(self.out.data), re.M))

    def own_lines(self):
        """What pmi-start said itself."""
        return [line[11:] for line in self.err.text().splitlines() if line.startswith("pmi-start: ")]
