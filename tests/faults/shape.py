# SPDX-License-Identifier: BSD-3-Clause
"""shape.py - what kind of run a fault meets: hosts, tree, logins, tasks; all of it drawn from the seed"""
from cluster import LOGIN

EXCHANGE = ["exchange", "2", "60", "5", "fresh"]


def steps(*parts):
    """pmi_client's steps, each a list of words."""
    words = []
    for part in parts:
        words += ([","] if words else []) + part
    return words


class Shape:
    """One way to run four to eight ranks. kind: rsh (ssh logins), local (played nodes), one (a single node)."""

    def __init__(self, rng, kinds, own=None):
        self.kind = rng.choices(kinds, [{"rsh": 6, "local": 3, "one": 1}[k] for k in kinds])[0]
        self.own = rng.random() < 0.5 if own is None else own  # is the launcher's host one of the nodes?
        self.ppn = rng.choice((1, 1, 2))
        self.fanout = rng.choice((1, 2, 32, 32))
        self.attach = rng.choice(("auto", "auto", "yes"))
        self.pdsh = rng.random() < 0.6
        self.label = rng.random() < 0.2
        self.rough = rng.random() < 0.3  # tasks that heed no TERM, with daemons
        self.run_ms = rng.randint(100, 400)
        if self.kind == "rsh":
            self.nodes = ([LOGIN] if self.own else []) + ["h0", "h1", "h2"]
        else:
            self.nodes = [LOGIN] * (4 if self.kind == "local" else 1)
            self.ppn = 3 if self.kind == "one" else self.ppn
        self.ranks = len(self.nodes) * self.ppn

    def options(self):
        if self.kind == "rsh":
            options = ["--bootstrap=rsh", "-H", ",".join(self.nodes), f"--rsh-attach={self.attach}"]
        elif self.kind == "local":
            options = [f"--nodes={len(self.nodes)}"]
        else:
            options = []
        options += [f"--ppn={self.ppn}", f"--fanout={self.fanout}", "--kill-grace=1s"]
        return options + (["--label"] if self.label else [])

    def rank_on(self, node):
        return node * self.ppn

    def finite(self):
        """Tasks that come to their end. All have said `ready` before any says `ending`."""
        return steps(["init"], *self._rough(), EXCHANGE, ["print", "ready"], ["sleep", str(self.run_ms)], EXCHANGE,
                     ["print", "ending"], ["finalize"], ["print", "done"])

    def endless(self):
        return steps(["init"], *self._rough(), EXCHANGE, ["print", "ready"], ["sleep", "600000"])

    def _rough(self):
        return [["deaf"], ["daemonize", "1", "quiet"], ["daemonize", "1", "loud"]] if self.rough else []

    def __str__(self):
        text = {"rsh": "ssh", "local": "played", "one": "one"}[self.kind] + f",{self.ranks} ranks"
        if self.kind != "one":
            text += f",fanout {self.fanout}"
        if self.kind == "rsh":
            text += ("" if self.own else ",launcher apart") + (",attached" if self.attach == "yes" else "")
            text += "" if self.pdsh else ",no pdsh"
        return text + (",rough" if self.rough else "")
