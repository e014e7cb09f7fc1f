# SPDX-License-Identifier: BSD-3-Clause
"""kinds_stream.py - readers that do not read: of the launcher's output, of input, of PMI replies"""
import os
import signal
import threading
import time

from fault import GONE, UNHARMED, WELL, Fault, Outcome, ended_by, kind

HERE = os.path.dirname(os.path.abspath(__file__))
LINES = 30000  # of a task that writes much: 170 kB, more than all buffers on the way of a task hold
MANY = 400000  # that fill whatever is in between where nobody reads; of eight tasks less than a Stream takes
BYTES = sum(len(str(n)) + 1 for n in range(1, LINES + 1))


class Writes(Fault):
    """Tasks that write much, to standard output or error."""

    moments = ("start",)
    ends_run = False
    bare = True
    to_error = None

    def __init__(self, rng):
        super().__init__(rng)
        self.to_error = rng.random() < 0.3 if self.to_error is None else self.to_error
        self.target = "error" if self.to_error else "output"

    def task(self, client):
        return ["sh", "-c", f"seq 1 {LINES}{' >&2' if self.to_error else ''}; {self.last()}"]

    def last(self):
        return "exit 0"

    def stream(self, run):
        return run.err if self.to_error else run.out

    def wait_moment(self, run):
        run.wait_until(lambda: self.stream(run).data, WELL)
        time.sleep(self.delay * 0.05)

    def note_moment(self, run):
        self.met = self.moment

    def inject(self, run):
        self.stream(run).go.clear()

    def complete(self, run):
        text = bytes(self.stream(run).data)
        if self.to_error:
            text = b"".join(line for line in text.splitlines(True) if not line.startswith(b"pmi-start: "))
        if self.shape.label:
            text = b"".join(line.partition(b": ")[2] for line in text.splitlines(True))
        return "" if len(text) == BYTES * self.shape.ranks else f"{len(text)} of {BYTES * self.shape.ranks} bytes came"


@kind
class PausedReader(Writes):
    name = "paused-reader"
    weight = 4

    def __init__(self, rng):
        super().__init__(rng)
        self.seconds = rng.choice((0.2, 1, 2))
        self.target += f" for {self.seconds} s"

    def after(self, run):
        time.sleep(self.seconds)
        self.stream(run).go.set()

    def outcomes(self):
        return [UNHARMED]


@kind
class GoneReader(Writes):
    """Like a filter, pmi-start ends when nobody reads its output any more."""

    name = "gone-reader"
    weight = 3
    to_error = False

    def last(self):
        return "seq 1 5000000; sleep 600"  # not all is through when the reader goes

    def inject(self, run):
        run.out.stop()

    def limit(self):
        return GONE

    def outcomes(self):
        return [Outcome(141)]


@kind
class DeadReader(Writes):
    """Somebody who has the output and does not read it, while the run is to end: it must all the same."""

    name = "dead-reader"
    weight = 4

    def __init__(self, rng):
        super().__init__(rng)
        self.way = rng.choice(("timeout", "SIGINT", "SIGTERM"))
        self.target += f", {self.way}"

    def options(self):
        return ["--timeout=4s"] if self.way == "timeout" else []

    def last(self):
        return f"seq 1 {MANY}; sleep 600"

    def inject(self, run):
        super().inject(run)
        if self.way != "timeout":
            time.sleep(0.2)
            for launcher in run.cluster.roles()["launcher"]:
                run.cluster.signal(launcher, getattr(signal, self.way))

    def limit(self):
        return (4 if self.way == "timeout" else 0) + GONE

    def outcomes(self):
        if self.way == "timeout":
            return [Outcome(124, "the time limit of 4 s is over .*", silent_too=self.to_error)]
        return [ended_by(getattr(signal, self.way))]


@kind
class Input(Fault):
    """Much standard input for a task that reads none of it."""

    name = "unread-input"
    weight = 2
    moments = ("run",)
    ends_run = False

    def __init__(self, rng):
        super().__init__(rng)
        self.to = rng.choice(("0", "all", str(self.shape.ranks - 1)))
        self.target = f"of rank {self.to}"

    def options(self):
        return [f"--input={self.to}"]

    def run_options(self):
        read_fd, write_fd = os.pipe()
        threading.Thread(target=self._feed, args=(write_fd,), daemon=True).start()
        return {"stdin": read_fd}

    @staticmethod
    def _feed(fd):
        try:
            for _ in range(200):
                os.write(fd, b"x" * 65536)
        except OSError:
            pass
        os.close(fd)

    def inject(self, run):
        pass

    def outcomes(self):
        return [UNHARMED]


@kind
class Flood(Fault):
    """A task that asks and asks and reads no answer; later it does, or ends."""

    name = "flood"
    weight = 3
    passive = True
    moments = ("start",)
    ends_run = False
    bare = True

    def __init__(self, rng):
        super().__init__(rng)
        self.rank = rng.randrange(self.shape.ranks)
        self.way = rng.choice(("reads", "reads", "ends"))
        self.host = self.shape.host_of(self.rank)
        self.target = f"by rank {self.rank} on {self.host}, {self.way} at last"

    def task(self, client):
        return ["/usr/bin/python3", os.path.join(HERE, "flood.py"), str(self.rank), self.way]

    def wait_moment(self, run):
        pass

    def inject(self, run):
        pass

    def outcomes(self):
        if self.way == "ends":
            return [Outcome(1, rf"rank {self.rank} on {self.host} exited before PMI finalize",
                            rf"rank {self.rank} on {self.host} \(pid \d+\) does not read .*")]
        return [UNHARMED]
