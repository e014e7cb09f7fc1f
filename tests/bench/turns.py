# SPDX-License-Identifier: BSD-3-Clause
"""turns.py - several ways to do the same on ssh hosts, in turn, so that a drifting machine changes all alike"""
import os
import statistics
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.append(os.path.join(HERE, "..", "faults"))
from cluster import LOGIN, Cluster, traces  # noqa: E402,F401 pylint: disable=wrong-import-position,unused-import
from run import surroundings  # noqa: E402 pylint: disable=wrong-import-position

LIMIT = 300
TICKS = os.sysconf("SC_CLK_TCK")


def numbers(text):
    return [int(word) for word in text.split(",")]


def busy_ms():
    """CPU time of all that this machine has done."""
    fields = traces.text_of("/proc/stat").splitlines()[0].split()[1:]
    user, nice, system, _, _, irq, softirq, *_ = (int(n) for n in fields)
    return (user + nice + system + irq + softirq) * 1000 / TICKS


class Once:
    """One run on the login host: `seconds` to its end; `cpu_ms` of it and of all that it has waited for, which is what
    was started there; `all_ms` of the machine meanwhile; what it said.
    """

    def __init__(self, cluster, argv):
        with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
            busy, begun = busy_ms(), time.monotonic()
            child = subprocess.Popen(["timeout", "-s", "KILL", str(LIMIT), *cluster.enter(LOGIN), *argv],
                                     stdin=subprocess.DEVNULL, stdout=out, stderr=err, env=surroundings())
            _, status, used = os.wait4(child.pid, 0)
            child.returncode = os.waitstatus_to_exitcode(status)
            self.seconds, self.all_ms = time.monotonic() - begun, busy_ms() - busy
            self.cpu_ms = (used.ru_utime + used.ru_stime) * 1000
            out.seek(0)
            err.seek(0)
            self.output = out.read().decode()
            if child.returncode != 0:
                sys.exit(f"{' '.join(argv)}: status {child.returncode}: {err.read().decode(errors='replace')[-500:]}")


def in_turn(cluster, ways, runs):
    """{name: argv} to {name: [Once]}"""
    seen = {name: [] for name in ways}
    for _ in range(runs):
        for name, argv in ways.items():
            seen[name].append(Once(cluster, argv))
    return seen


def median(rows, what):
    return statistics.median(getattr(row, what) for row in rows)


def names_of(hosts):
    """For those that know no brackets."""
    return ",".join(f"h{i}" for i in range(hosts))


def mpirun(hosts, *words):
    return ["mpirun.openmpi", "--allow-run-as-root", "--host", names_of(hosts), "-n", str(hosts), *words]


def on_cluster(build, count, what, do):
    """do(cluster), on one that is there for that long."""
    cluster = Cluster(f"/run/pmi-start-{what}.{os.getpid()}", f"{what[:2]}{os.getpid()}-", count, build)
    try:
        cluster.up()
        do(cluster)
    finally:
        cluster.down()
