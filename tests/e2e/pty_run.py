#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""pty_run.py SCRIPT COMMAND [ARG...] - run a job-control shell's foreground job on a terminal and type into it

SCRIPT is a list of steps, separated by ';', done in order while the output is copied to ours:
    wait:TEXT   until TEXT has been printed (30 s at most)
    next:TEXT   the same, where only what came since something was typed counts
    type:TEXT   type it; ^C, ^Z, ^D and ^\\ are the control keys, \\n is return
    stopped     until the job has been stopped; then `fg` brings it on again
    fg          continue it in the foreground
    bg          continue it in the background
    pause:MS    let time pass
    exists:FILE until there is such a file, for a test that looks at something else meanwhile
    touch:FILE  make an empty file, for what waits for it
    size:R,C    make the terminal R rows by C columns
    cook        make it as it was found, as a shell does when its job has been stopped
    raw         until the terminal is raw; `cooked` until it is not, be it after COMMAND has ended
COMMAND is started by a small shell of ours as a process group of its own in the terminal's foreground, as bash would;
the shell stays until the end, as the terminal of a session whose leader has gone is nobody's to put right.
Exits with COMMAND's status, or 128 plus the signal that ended it; with 1 if the terminal is not left as it was found.
"""
import os
import pty
import select
import signal
import sys
import termios
import time

LIMIT = 30.0
QUIET = 0.2  # s without output after which no more comes; the kernel hands over what was written a little later


class Job:
    def __init__(self, argv):
        self.seen = b""
        self.status = None
        self.leader, self.control_w = self._start(argv)

    def _start(self, argv):
        """The child is the session's leader, our little shell; it starts the job and obeys one-letter orders."""
        order_r, order_w = os.pipe()
        self.report_r, report_w = os.pipe()
        pid, self.tty = pty.fork()
        if pid == 0:
            os.close(order_w)
            os.close(self.report_r)
            shell(argv, order_r, report_w)
        os.close(order_r)
        os.close(report_w)
        self.found = termios.tcgetattr(self.tty)
        os.write(order_w, b"s")
        return pid, order_w

    def pump(self, seconds):
        """Copy what comes for at most `seconds`; the shell's reports are taken on the way."""
        ready, _, _ = select.select([self.tty, self.report_r], [], [], seconds)
        if self.tty in ready:
            try:
                data = os.read(self.tty, 65536)
            except OSError:
                data = b""
            self.seen += data
            os.write(1, data)
        if self.report_r in ready:
            report = os.read(self.report_r, 64).decode().split()
            for word in report:
                if word == "stopped":
                    self.stopped = True
                else:
                    self.status = int(word)
        return bool(ready)

    stopped = False
    typed_at = 0

    def until(self, what, condition, past_end=False):
        """Wait for it; what another process does to the terminal may come after the job's end: `past_end`."""
        end = time.monotonic() + LIMIT
        while not condition():
            if time.monotonic() > end:
                sys.exit(f"pty_run: no {what} within {LIMIT:g} s")
            if self.status is not None and not past_end and not self.pump(QUIET):
                sys.exit(f"pty_run: ended with {self.status} before {what}")
            self.pump(0.05)

    def end(self):
        """Copy what there is yet, and let the little shell go. Until then the terminal has its session, as it would have."""
        while self.status is None:
            self.pump(1.0)
        while self.pump(QUIET):
            pass
        left = termios.tcgetattr(self.tty)
        os.close(self.control_w)
        os.waitpid(self.leader, 0)
        if left != self.found:
            sys.exit("pty_run: the terminal is not left as it was found")
        return self.status

    def step(self, text):
        name, _, arg = text.strip().partition(":")
        arg = arg.encode().replace(b"\\n", b"\n")
        if name == "wait":
            self.until(f"'{arg.decode()}'", lambda: arg in self.seen)
        elif name == "next":
            self.until(f"'{arg.decode()}'", lambda: arg in self.seen[self.typed_at:])
        elif name == "type":
            self.typed_at = len(self.seen)
            for key, code in ((b"^C", b"\3"), (b"^Z", b"\32"), (b"^D", b"\4"), (b"^\\", b"\34")):
                arg = arg.replace(key, code)
            os.write(self.tty, arg)
        elif name == "stopped":
            self.until("stop", lambda: self.stopped)
        elif name in ("fg", "bg"):
            self.stopped = False
            os.write(self.control_w, name[0].encode())
        elif name == "exists":
            self.until(f"file {arg.decode()}", lambda: os.path.exists(arg))
        elif name == "touch":
            open(arg, "w").close()
        elif name == "size":
            termios.tcsetwinsize(self.tty, tuple(int(n) for n in arg.split(b",")))
        elif name == "cook":
            termios.tcsetattr(self.tty, termios.TCSANOW, self.found)
        elif name in ("raw", "cooked"):
            wanted = name == "cooked"
            self.until(name, lambda: bool(termios.tcgetattr(self.tty)[3] & termios.ICANON) == wanted, past_end=wanted)
        elif name == "pause":
            end = time.monotonic() + int(arg) / 1000
            while time.monotonic() < end:
                self.pump(max(0.0, end - time.monotonic()))
        else:
            sys.exit(f"pty_run: no step '{text}'")


def shell(argv, order_r, report_w):
    """Session leader: run argv as a foreground job, report its stops and its end."""
    signal.signal(signal.SIGTTOU, signal.SIG_IGN)
    os.read(order_r, 1)  # start
    job = os.fork()
    if job == 0:
        os.setpgid(0, 0)
        os.tcsetpgrp(0, os.getpid())
        # A background job of a script, which we may run in, has INT and QUIT ignored; one on a terminal has not.
        for number in (signal.SIGTTOU, signal.SIGINT, signal.SIGQUIT):
            signal.signal(number, signal.SIG_DFL)
        os.close(order_r)
        os.close(report_w)
        os.execvp(argv[0], argv)
    while True:
        _, status = os.waitpid(job, os.WUNTRACED)
        if os.WIFSTOPPED(status):
            os.tcsetpgrp(0, os.getpid())
            os.write(report_w, b"stopped ")
            if os.read(order_r, 1) == b"f":
                os.tcsetpgrp(0, job)
            os.killpg(job, signal.SIGCONT)
            continue
        code = os.WEXITSTATUS(status) if os.WIFEXITED(status) else 128 + os.WTERMSIG(status)
        os.write(report_w, str(code).encode())
        while os.read(order_r, 1):
            pass
        os._exit(0)


def main():
    job = Job(sys.argv[2:])
    for text in sys.argv[1].split(";"):
        if text.strip():
            job.step(text)
    sys.exit(job.end())


main()
