# SPDX-License-Identifier: BSD-3-Clause
"""shape.py - what kind of run a fault meets: hosts, tree, logins, tasks and what they speak; all drawn from the seed"""
import shlex

from cluster import LOGIN

EXCHANGE = ["exchange", "2", "60", "5", "fresh"]
FOR_EVER = "600000"
LONG_MS = 2500  # with --keep-going nothing ends a run that goes on for ever, so it lasts as long as a fault needs
TAG = 7
EARLY = 0.4
WEIGHTS = {"rsh": 6, "local": 3, "one": 1, "serve": 2, "join": 2}
EVERY = ("rsh", "local", "one", "serve", "join")


def steps(*parts):
    """pmi_client's steps, each a list of words."""
    words = []
    for part in parts:
        words += ([","] if words else []) + [str(word) for word in part]
    return words


def address(host):
    """Of a host of the campaign, where it comes from as a rank."""
    return "10.88.0.1" if host == LOGIN else f"10.88.1.{int(host[1:]) + 1}"


class Shape:
    """One way to run three to eight ranks. kind: rsh (ssh logins), local (played nodes), one (a single node), serve
    (ranks from elsewhere: COMMAND starts them by ssh), join (hosts whose nodes come by themselves, some of them early).

    wire: what the ranks speak, 1 (PMI-1.1), 1.2 (with a barrier of a group in which some wait for one that is late)
    or 2; spawned: how many ranks the job has that one of them spawns, 0: it spawns none.
    """

    def __init__(self, rng, kinds, own=None, bare=False):
        self.kind = rng.choices(kinds, [WEIGHTS[k] for k in kinds])[0]
        self.own = rng.random() < 0.5 if own is None else own  # is the launcher's host one of the nodes?
        self.ppn = rng.choice((1, 1, 2))
        self.fanout = rng.choice((1, 2, 32, 32))
        self.attach = rng.choice(("auto", "auto", "yes"))
        self.pdsh = rng.random() < 0.6
        self.label = rng.random() < 0.2
        self.rough = rng.random() < 0.3  # tasks that heed no TERM, with daemons
        self.run_ms = rng.randint(100, 400)
        self.keep_going = rng.random() < 0.25
        self.connect = rng.choices(("fd", "port", "both"), (5, 2, 2))[0]
        self.tree = rng.choices(("", "--rsh-tree", "--rsh-tree=1", "--rsh-tree=2"), (6, 1, 2, 1))[0]
        if self.kind in ("rsh", "serve", "join"):
            self.nodes = ([LOGIN] if self.own else []) + ["h0", "h1", "h2"]
        else:
            self.nodes = [LOGIN] * (4 if self.kind == "local" else 1)
            self.ppn = 3 if self.kind == "one" else self.ppn
        self.ranks = len(self.nodes) * self.ppn
        if self.kind == "serve":
            self.rough, self.connect = False, "fd"  # not pmi-start's to end; always that port
        if self.kind != "rsh":
            self.tree = ""
        self.port = 20000 + rng.randrange(10000)
        self.come = [rng.uniform(-EARLY, EARLY) for _ in self.nodes]  # by themselves, seconds after the launcher
        self._draw_use(rng, bare)

    def _draw_use(self, rng, bare):
        """What the ranks do with PMI; where the fault has tasks of its own (bare): nothing."""
        self.wire = rng.choices(("1", "1.2", "2"), (4, 3, 3))[0]
        self.spawned = rng.choice((0, 0, 0, 1, 2, 3))
        self.spawner = rng.randrange(self.ranks)
        self.group = sorted(rng.sample(range(self.ranks), rng.randint(2, self.ranks)))
        self.late = rng.choice(self.group)
        if bare:
            self.wire, self.spawned = "1", 0
        if self.wire != "1.2":
            self.group = []

    def options(self):
        if self.kind == "rsh":
            options = ["--bootstrap=rsh", "-H", ",".join(self.nodes), f"--rsh-attach={self.attach}"]
        elif self.kind == "join":
            options = ["--bootstrap=manual", "-H", ",".join(self.nodes), f"--port={self.port}"]
        elif self.kind == "local":
            options = [f"--nodes={len(self.nodes)}"]
        elif self.kind == "serve":
            options = ["--serve=10.88.0.0/16", f"-n{self.ranks}", "--start-timeout=20s"]
        else:
            options = []
        if self.kind != "serve":
            options += [f"--ppn={self.ppn}", f"--fanout={self.fanout}"]
            options += [self.tree] if self.tree else []
        options += ["--kill-grace=1s"]
        options += ["--label"] if self.label else []
        options += ["--keep-going"] if self.keep_going else []
        options += [f"--pmi-connect={self.connect}"] if self.connect != "fd" else []
        return options + (["--pmi-subversion=2"] if self.wire == "1.2" else [])

    def node_options(self, node):
        """Of a node that comes by itself."""
        return [f"--join=10.88.0.1:{self.port}", f"--node={node}", f"--nodes={len(self.nodes)}"]

    def joining(self):
        """The numbers of those nodes, by when they come."""
        if self.kind != "join":
            return []
        return sorted((n for n, host in enumerate(self.nodes) if host != LOGIN), key=lambda n: self.come[n])

    # --- who is who

    def host_of(self, rank):
        return self.nodes[rank // self.ppn]

    def at(self, rank):
        """Where messages say that a rank is."""
        host = self.host_of(rank)
        return f"at {address(host)}" if self.kind == "serve" else f"on {host}"

    def ranks_at(self, host):
        return [r for r in range(self.ranks) if self.host_of(r) == host]

    def spawned_job(self):
        """The number of the job that is spawned: those that are there from the start come first."""
        return 2 if self.kind == "serve" else 1

    # --- what the tasks do

    def command(self, client, words, child=None):
        """The command line of the tasks, or what starts them. `child`: the words of a spawned job's."""
        argv = [client] + (["--style=mpich"] if self.wire == "1.2" else ["--pmi2"] if self.wire == "2" else [])
        child = child or self.child_finite()
        # A step `spawn` stands for the request, which holds the path of the program.
        ready = [self._request(argv + child) if word == "SPAWN" else word for word in words]
        return argv + ready if self.kind != "serve" else ["sh", "-c", self._by_ssh(argv + ready)]

    def _by_ssh(self, argv):
        # ssh waits for ever where its host falls silent during the key exchange; with --keep-going nobody ends COMMAND.
        patience = "timeout 20 " if self.keep_going else ""
        lines = []
        for rank in range(self.ranks):
            host = self.host_of(rank)
            env = f"env PMI_PORT=$PMI_PORT PMI_ID={rank} "
            if host == LOGIN:
                lines.append(f"{env}{shlex.join(argv)} &")
            else:
                lines.append(f'{patience}ssh -n -o BatchMode=yes {host} "exec {env}"{shlex.quote(shlex.join(argv))} &')
        return "\n".join(lines + ["wait", "exit 0"])

    def _request(self, argv):
        n = self.spawned
        if self.wire == "2":
            args = "".join(f"argv{i}={word};" for i, word in enumerate(argv[1:]))
            return (f"cmd=spawn;ncmds=1;preputcount=0;subcmd={argv[0]};maxprocs={n};argc={len(argv) - 1};{args}"
                    "infokeycount=0;")
        args = "".join(f"arg{i}={word}\n" for i, word in enumerate(argv[1:], 1))
        return (f"mcmd=spawn\nnprocs={n}\nexecname={argv[0]}\ntotspawns=1\nspawnssofar=1\n{args}"
                f"argcnt={len(argv) - 1}\npreput_num=0\ninfo_num=0\nendcmd")

    def nap(self, ms):
        """A rank that nobody would end when the server is gone looks after that."""
        return ["hold" if self.kind == "serve" else "sleep", ms]

    def begin(self):
        """Up to the point where all are in."""
        rough = [["deaf"], ["daemonize", "1", "quiet"], ["daemonize", "1", "loud"]] if self.rough else []
        spawn = [["on", self.spawner], ["raw", "SPAWN"], ["all"]] if self.spawned else []
        return [["init"], *self._lenient(), *rough, EXCHANGE, *spawn, ["print", "ready"]]

    def enter_group(self, ranks):
        members = ",".join(str(r) for r in self.group)
        ranks = ",".join(str(r) for r in ranks)
        return [["on", ranks], ["group", f"{members}:{TAG}"], ["all"]] if self.group and ranks else []

    def early(self):
        return [r for r in self.group if r != self.late]

    def end(self):
        return [EXCHANGE, ["print", "ending"], ["finalize"], ["print", "done"]]

    def finite(self, ms=None):
        """Tasks that come to their end. All have said `ready` before any says `ending`."""
        late = [self.late] if self.group else []
        return steps(*self.begin(), *self.enter_group(self.early()), self.nap(ms or self.run_ms),
                     *self.enter_group(late), *self.end())

    def endless(self):
        if self.keep_going:
            return self.finite(LONG_MS)
        return steps(*self.begin(), *self.enter_group(self.early()), self.nap(FOR_EVER))

    def child_finite(self, ms=None):
        return steps(["init"], *self._lenient(), EXCHANGE, ["sleep", ms or self.run_ms], EXCHANGE, ["finalize"],
                     ["print", "child-done"])

    def child_endless(self):
        if self.keep_going:
            return self.child_finite(LONG_MS)
        return steps(["init"], EXCHANGE, ["sleep", FOR_EVER])

    def _lenient(self):
        return [["lenient"]] if self.keep_going else []

    def __str__(self):
        text = {"rsh": "ssh", "local": "played"}.get(self.kind, self.kind) + f",{self.ranks} ranks"
        if self.kind in ("rsh", "local", "join"):
            text += f",fanout {self.fanout}"
        text += ",launcher apart" if self.kind in ("rsh", "join") and not self.own else ""
        if self.kind == "rsh":
            text += ",attached" if self.attach == "yes" else ""
            text += "" if self.pdsh else ",no pdsh"
            text += f",{self.tree[2:]}" if self.tree else ""
        text += ",rough" if self.rough else ""
        text += ",keep-going" if self.keep_going else ""
        text += f",{self.connect}" if self.connect != "fd" else ""
        text += f",PMI-{self.wire}" if self.wire != "1" else ""
        return text + (f",spawns {self.spawned}" if self.spawned else "")
