# SPDX-License-Identifier: BSD-3-Clause
"""nodes.py - the nodes of a run that come by themselves (--join): started, some before their launcher, and judged"""
import os
import signal
import subprocess
import threading
import time

from run import is_stopped, surroundings
from shape import EARLY

PATIENCE = 20  # seconds for a launcher, where the fault does not say how long it waits
LOST = 69
ENDED = 5  # seconds for a process of which nothing is left to be reaped


class Nodes:
    def __init__(self, cluster, program, shape, options):
        self.cluster, self.shape = cluster, shape
        self.secret = os.path.join(cluster.dir, "secret")
        told = [o for o in options if o.startswith("--start-timeout=")]
        self.patience = int(told[0].partition("=")[2].rstrip("s")) if told else PATIENCE
        self.argv = [program, f"--secret-file={self.secret}", f"--start-timeout={self.patience}s"]
        self.came, self.errors = {}, {}
        self.thread = threading.Thread(target=self._come, daemon=True)
        if shape.joining() and not os.path.exists(self.secret):
            subprocess.run([program, f"--new-secret={self.secret}"], check=True)

    def start(self):
        """Returns when it is the launcher's turn."""
        if self.shape.joining():
            self.thread.start()
            time.sleep(EARLY)

    def _come(self):
        begun = time.monotonic()
        for node in self.shape.joining():
            time.sleep(max(0.0, begun + EARLY + self.shape.come[node] - time.monotonic()))
            with open(self._words(node), "wb") as err:
                self.came[node] = subprocess.Popen(
                    self.cluster.enter(self.shape.nodes[node]) + self.argv + self.shape.node_options(node),
                    stdin=subprocess.DEVNULL, stdout=err, stderr=err, env=surroundings(), cwd="/")

    def _words(self, node):
        return os.path.join(self.cluster.dir, f"node-{node}.err")

    def words(self, node):
        with open(self._words(node), encoding="utf-8", errors="replace") as err:
            return err.read()

    def all_came(self):
        if self.shape.joining():
            self.thread.join()

    def clean_limit(self, met):
        """Who has not joined looks for a launcher that has gone as long as it is told to."""
        return self.patience + ENDED if self.shape.joining() and met == "start" else 0

    def ended(self):
        return all(process.poll() is not None for process in self.came.values())

    def nudge(self):
        """When the run is over, and nothing is kept stopped on purpose."""
        for process in list(self.came.values()):
            if is_stopped(process):
                process.send_signal(signal.SIGCONT)

    def wrong(self, status, hit, late):
        """What is not right about how they ended, as lines: each as the run did, or for want of it where that failed;
        but for those on the host that was hit, and those that were told of a good end before what came `late`.
        """
        found = []
        for node, process in self.came.items():
            try:
                code = process.wait(ENDED)
            except subprocess.TimeoutExpired:
                found.append(f"node {node} has not ended")
                process.kill()
                process.wait()
                continue
            code = code if code >= 0 else 128 - code
            if self.shape.nodes[node] == hit:
                continue
            if code == 0 and late:
                continue
            if code != status and not (code == LOST and status != 0):
                found.append(f"node {node} has ended with {code}, the run with {status}; its words: {self.words(node)}")
            elif code != 0 and not self.words(node):
                found.append(f"node {node} has ended with {code}, without a word")
        return found
