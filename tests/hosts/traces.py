#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""traces.py [HOST...] - list what is on the hosts (all of them without names): every process but the sshd that is the
host, every file in /tmp, /dev/shm and the home, every socket that listens or is connected

One line a thing, "HOST KIND ...", sorted: two listings compared show what came or went between them. All is read from
outside, through /proc: nothing is started on a host, and a listing of a dozen costs less than one login.
"""
import ipaddress
import os
import struct
import sys

STATE = os.environ.get("HOSTS_DIR", "/run/pmi-start-hosts")
FOLDERS = ("/tmp", "/dev/shm", "/root")
ESTABLISHED, CLOSED, LISTEN = "01", "07", "0A"  # states in /proc/net
ACCEPTS = 1 << 16  # a Unix socket's flag


def text_of(path):
    """What a file of /proc holds; '' where its process has gone."""
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read()
    except OSError:
        return ""


def started_at(pid):
    fields = text_of(f"/proc/{pid}/stat").rpartition(")")[2].split()
    return fields[19] if fields else None


def init_pid(host):
    """The pid, seen from here, of a host's first process, or None; common.sh says what a record holds."""
    record = text_of(f"{STATE}/pid/{host}").split()
    if len(record) == 4 and started_at(record[2]) == record[3]:
        return record[2]
    return None


def namespace(pid):
    try:
        return os.readlink(f"/proc/{pid}/ns/pid")
    except OSError:
        return None


class Processes:
    """Every process that there is, and the host each is on."""

    def __init__(self, inits):
        self.hosts = {namespace(pid): host for host, pid in inits.items()}
        self.inits = set(inits.values())
        self.found = {}
        for pid in filter(str.isdigit, os.listdir("/proc")):
            lines = text_of(f"/proc/{pid}/status").splitlines()
            self.found[pid] = dict(line.partition(":\t")[::2] for line in lines)

    def host(self, pid):
        """That of its namespace, or, for one in a namespace inside, that of its parent."""
        while pid in self.found:
            if host := self.hosts.get(namespace(pid)):
                return host
            pid = self.found[pid].get("PPid")
        return None

    def lines(self):
        """Each with its number on the host."""
        depth = max((len(self.found[pid]["NSpid"].split()) for pid in self.inits if pid in self.found), default=0)
        for pid, status in self.found.items():
            numbers = status.get("NSpid", "").split()
            if pid in self.inits or len(numbers) < depth:
                continue
            host = self.host(pid)
            if host is not None:
                args = text_of(f"/proc/{pid}/cmdline").rstrip("\0").replace("\0", " ").replace("\n", " ")
                yield f"{host} process {numbers[depth - 1]} {status['Name']} {args}"


def files(host, pid):
    """What find -xdev lists below the folders."""
    for folder in FOLDERS:
        root = f"/proc/{pid}/root"
        try:
            device = os.stat(root + folder).st_dev
        except OSError:
            continue
        for at, folders, names in os.walk(root + folder):
            for name in folders + names:
                yield f"{host} file {at[len(root):]}/{name}"
            folders[:] = [name for name in folders if same_device(os.path.join(at, name), device)]


def same_device(path, device):
    try:
        return os.lstat(path).st_dev == device
    except OSError:
        return False


def address(text):
    """An address and port as in /proc/net/tcp: words of 32 bits in the machine's order."""
    digits, _, port = text.partition(":")
    packed = b"".join(struct.pack("=I", int(digits[i:i + 8], 16)) for i in range(0, len(digits), 8))
    ip = ipaddress.ip_address(packed)
    return f"[{ip}]:{int(port, 16)}" if ip.version == 6 else f"{ip}:{int(port, 16)}"


def sockets(host, pid):
    for kind in ("tcp", "tcp6", "udp", "udp6"):
        for line in text_of(f"/proc/{pid}/net/{kind}").splitlines()[1:]:
            _, here, there, state = line.split()[:4]
            if state == LISTEN or (state == CLOSED and kind.startswith("udp")):
                yield f"{host} socket {kind} LISTEN {address(here)}"
            elif state == ESTABLISHED:
                yield f"{host} socket {kind} established {address(here)} {address(there)}"
    for line in text_of(f"/proc/{pid}/net/unix").splitlines()[1:]:
        fields = line.split(None, 7)
        if int(fields[3], 16) & ACCEPTS:
            yield f"{host} socket unix LISTEN {fields[7] if len(fields) > 7 else fields[6]}"


def main():
    names = sys.argv[1:] or sorted(os.listdir(f"{STATE}/pid"))
    inits = {host: pid for host in names if (pid := init_pid(host)) is not None}
    lines = list(Processes(inits).lines())
    for host, pid in inits.items():
        lines += files(host, pid)
        lines += sockets(host, pid)
    sys.stdout.write("".join(line + "\n" for line in sorted(lines)))


if __name__ == "__main__":
    main()
