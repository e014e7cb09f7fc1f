# SPDX-License-Identifier: BSD-3-Clause
"""cluster.py - the hosts of tests/hosts as the campaign sees them: their processes, files, sockets and cables

Everything is read from outside, through /proc/PID/root of a host's first process, as a look costs no process that way
and may be repeated every few milliseconds. Pids are those of the host itself, as in pmi-start's messages.
"""
import os
import shutil
import signal
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
SCRIPTS = os.path.normpath(os.path.join(HERE, "..", "hosts"))
sys.path.append(SCRIPTS)
import traces  # noqa: E402 pylint: disable=wrong-import-position
LOGIN = "login"
NSENTER = shutil.which("nsenter") or "/usr/bin/nsenter"


class Proc:
    """One process: as it was when it was looked at."""

    def __init__(self, host, pid, ppid, state, comm, args, leads):
        self.host, self.pid, self.ppid, self.state, self.comm, self.args = host, pid, ppid, state, comm, args
        self.leads = leads  # a session, as a task does and a daemon that it left does not

    def __str__(self):
        return f"{self.host} process {self.pid} {self.comm} {self.state} {' '.join(self.args)}"


def read(path):
    try:
        with open(path, "rb") as f:
            return f.read().decode(errors="replace")
    except OSError:
        return ""


def is_provider(proc):
    return any(a.startswith(("--pmi-port=", "--join=")) for a in proc.args)


class Cluster:
    """One cluster of `count` hosts h0 .. and login, made by up.sh."""

    def __init__(self, state_dir, prefix, count, show):
        self.dir, self.prefix, self.count = state_dir, prefix, count
        self.env = dict(os.environ, HOSTS_DIR=state_dir, HOSTS_PREFIX=prefix, HOSTS_SHOW=show, HOSTS_FASTKEX="1")
        self.init = {}
        self.hosts = [LOGIN] + [f"h{i}" for i in range(count)]

    def script(self, name, *args):
        subprocess.run([os.path.join(SCRIPTS, name), *args], env=self.env, check=True, stdin=subprocess.DEVNULL)

    def up(self):
        """Start what does not run; needed again after crash()."""
        self.script("up.sh", str(self.count))
        for host in self.hosts:
            self.init[host] = read(f"{self.dir}/pid/{host}").split()[2]

    def down(self):
        self.script("down.sh")

    def crash(self, host):
        self.script("down.sh", host)

    def traces(self):
        """What tests/hosts/traces.py sees."""
        out = subprocess.run([os.path.join(SCRIPTS, "traces.py")], env=self.env, check=True, stdout=subprocess.PIPE)
        return out.stdout.decode(errors="replace").splitlines()

    # --- running things there

    def enter(self, host):
        """Words in front of a command that is to run on a host."""
        return [NSENTER, "-t", self.init[host], "-m", "-u", "-i", "-n", "-p", "--"]

    def on(self, host, *words, text=None):
        run = subprocess.run(self.enter(host) + list(words), input=text, text=True, check=False,
                             stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        if run.returncode != 0:
            raise RuntimeError(f"{' '.join(words)} on {host}: {run.stdout.strip()}")
        return run.stdout

    def on_quietly(self, host, *words):
        subprocess.run(self.enter(host) + list(words), check=False, stdin=subprocess.DEVNULL,
                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def cable(self, host, state):
        """A host whose cable is out is silent, where one that crashed answers with resets."""
        subprocess.run(["ip", "-n", f"{self.prefix}login", "link", "set", f"v{host}", state], check=True)

    # --- looking

    def root(self, host):
        return f"/proc/{self.init[host]}/root"

    def processes(self, hosts=None):
        """All of some hosts but their first ones."""
        found = []
        for host in hosts or self.hosts:
            proc = self.root(host) + "/proc"
            try:
                pids = [name for name in os.listdir(proc) if name.isdigit() and name != "1"]
            except OSError:
                continue
            for pid in pids:
                head, _, tail = read(f"{proc}/{pid}/stat").rpartition(")")
                if tail:
                    state, ppid, _, session = tail.split()[:4]
                    args = read(f"{proc}/{pid}/cmdline").rstrip("\0").split("\0")
                    found.append(Proc(host, int(pid), int(ppid), state, head.partition("(")[2], args,
                                      session == pid))
        return found

    def environ(self, proc):
        return read(f"{self.root(proc.host)}/proc/{proc.pid}/environ").split("\0")

    def signal(self, proc, number):
        """False where it has gone meanwhile."""
        try:
            fd = os.open(f"{self.root(proc.host)}/proc/{proc.pid}", os.O_RDONLY | os.O_DIRECTORY)
        except OSError:
            return False
        try:
            signal.pidfd_send_signal(fd, number)
            return True
        except OSError:
            return False
        finally:
            os.close(fd)

    def holdings(self):
        """What is on the hosts, as lines; two of them compared show what came or went between."""
        found = [f"{p.host} process {p.pid} {p.comm} {' '.join(p.args)}" for p in self.processes()]
        for host in self.hosts:
            found += traces.files(host, self.init[host])
            found += traces.sockets(host, self.init[host])
        return set(found)

    # --- pmi-start's own processes

    def keepers(self, hosts=None):
        return [p for p in self.processes(hosts) if p.comm == "pmi-keeper"]

    def roles(self):
        """The processes of a run: lists by role. A provider's `waiter` is what the login started, while it is there."""
        every = self.processes()
        by_pid = {(p.host, p.pid): p for p in every}
        roles = {name: [] for name in ("launcher", "own-keeper", "worker", "keeper", "waiter", "ssh", "sshd", "task",
                                     "command")}
        for p in every:
            provider = is_provider(p)
            parent = by_pid.get((p.host, p.ppid))
            if p.comm == "pmi-keeper" and parent is not None and parent.comm == "pmi-keeper":
                continue  # a task that is being born
            if p.comm == "pmi-keeper" and parent is not None:
                roles["keeper" if is_provider(parent) else "own-keeper"].append(p)
                roles["worker" if is_provider(parent) else "launcher"].append(parent)
            elif p.comm in ("ssh", "pdsh"):
                roles["ssh"].append(p)
            elif p.comm == "sshd":
                roles["sshd"].append(p)
            elif p.comm == "pmi_client" and parent is not None and parent.comm != "pmi-keeper":
                if self._has(p, "PMI_ID=") and not self._has(p, "PMI_RANK="):
                    roles["task"].append(p)  # a rank from elsewhere
            elif parent is not None and parent.comm == "pmi-keeper" and p.leads and p.comm != "pmi-start":
                if self._has(p, "PMI_RANK="):
                    roles["task"].append(p)
                elif self._has(p, "PMI_PORT="):
                    roles["command"].append(p)  # of --serve; or a script that logs in
            elif p.comm == "pmi-start" and provider and self._waits_for_worker(p, every):
                roles["waiter"].append(p)
        return roles

    @staticmethod
    def _waits_for_worker(proc, every):
        return any(c.ppid == proc.pid and c.host == proc.host and c.comm == "pmi-start" for c in every)

    def _has(self, proc, variable):
        return any(v.startswith(variable) for v in self.environ(proc))
