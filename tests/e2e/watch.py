#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""watch.py WAY ... - what of a run's secrets can be seen from outside of its processes; run outside of the hosts, as root

  watch RECORD     until standard input ends or says something: all that shows on any host in arguments, in environments,
                   in new files (/tmp, /dev/shm, /run, the home) and in files without a name that processes have open, and,
                   seen by an ordinary user, the arguments of every process of the machine
  shared PID PID   what two processes that are connected may have as secrets, as lines in hex: whatever 32 bytes both have
                   in their memory and that look random. The keys of links are among them, what those were made of, but
                   also tables of libraries and what is public, as certificates are
  holds PID FILE   is what FILE has in the memory of this process?
  find RECORD      the lines of standard input (in hex), raw, in hex or in base64, in what was recorded: says where
  keys RECORD      words that look like keys, in what was recorded on the hosts
"""
import base64
import os
import pickle
import re
import select
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../hosts"))
import traces  # noqa: E402

HERE = os.path.dirname(os.path.abspath(__file__))
# The checkout and the build may lie below one of the folders; what other tests write there is none of the program's.
SHOWN = {os.path.realpath(f"{HERE}/../.."), os.path.realpath(os.environ.get("E2E_BUILD", HERE))}
FOLDERS = ("tmp", "dev/shm", "run", "root")
NOBODY = 65534
SECRET = 32
PAGE = 4096
KEY = rb"(?<![0-9A-Za-z+/_-])(?<!SHA256:)(?!/)(?:[0-9a-fA-F]{32,}|[0-9A-Za-z+/_-]{43}=?)(?![0-9A-Za-z+/_-])"
LOOKS_RANDOM = 24, 6  # different values in that many bytes, where tables have fewer, and no ASCII, where text has none


def read(path, length=1 << 20):
    try:
        with open(path, "rb") as file:
            return file.read(length)
    except OSError:
        return b""


def is_over(seconds):
    return bool(select.select([0], [], [], seconds)[0])


def inits():
    return {host: pid for host in os.listdir(f"{traces.STATE}/pid") if (pid := traces.init_pid(host)) is not None}


def nameless(folder):
    """What a process has open that has no name but that in /proc."""
    try:
        for number in os.listdir(f"{folder}/fd"):
            if os.readlink(f"{folder}/fd/{number}").startswith("/memfd:"):
                yield read(f"{folder}/fd/{number}")
    except OSError:
        return


def look_at_processes(root, host, seen):
    for pid in filter(str.isdigit, os.listdir(f"{root}/proc")):
        folder = f"{root}/proc/{pid}"
        seen.add((f"{host} argument", read(f"{folder}/cmdline")))
        seen.add((f"{host} environment", read(f"{folder}/environ")))
        seen.update((f"{host} nameless", data) for data in nameless(folder))


def files(root):
    """Path, size and time of every file below the folders; the clusters' own folders are none of the program's."""
    for folder in FOLDERS:
        for at, below, names in os.walk(f"{root}/{folder}"):
            below[:] = [name for name in below if not name.startswith("pmi-start-") and name != "netns"
                        and f"{at}/{name}"[len(root):] not in SHOWN]
            for name in names:
                try:
                    status = os.lstat(f"{at}/{name}")
                except OSError:
                    continue
                if (status.st_mode & 0o170000) == 0o100000:
                    yield f"{at}/{name}", status.st_size, status.st_mtime_ns


def watch_as_nobody(pipe):
    """Arguments of all processes, as somebody sees them who has no business with any."""
    os.setgroups([])
    os.setresgid(NOBODY, NOBODY, NOBODY)
    os.setresuid(NOBODY, NOBODY, NOBODY)
    parent, seen, over = os.getppid(), set(), False
    while not over:
        if os.getppid() != parent:  # which was killed
            return
        over = is_over(0.02)
        for pid in filter(str.isdigit, os.listdir("/proc")):
            if pid != str(os.getpid()):
                seen.add(("anybody argument", read(f"/proc/{pid}/cmdline")))
    with os.fdopen(pipe, "wb") as file:
        pickle.dump(seen, file)


def watch(record):
    ours, theirs = os.pipe()
    child = os.fork()
    if child == 0:
        watch_as_nobody(theirs)
        os._exit(0)
    os.close(theirs)
    roots = {host: f"/proc/{pid}/root" for host, pid in inits().items()}
    before = {root: set(files(root)) for root in roots.values()}
    seen, over, round_at = set(), False, 0
    print("watching", flush=True)
    while not over:  # once more when it is said to be
        over = is_over(0.005)
        for host, root in roots.items():
            look_at_processes(root, host, seen)
        if over or time.monotonic() - round_at > 0.05:
            round_at = time.monotonic()
            for host, root in roots.items():
                for new in set(files(root)) - before[root]:
                    seen.add((f"{host} file {new[0][len(root):]}", read(new[0])))
    with os.fdopen(ours, "rb") as file:
        seen |= pickle.load(file)
    os.waitpid(child, 0)
    os.read(0, 100)
    with open(record, "wb") as file:
        pickle.dump(seen, file)
    print(f"seen: {len(seen)}", flush=True)


def memory(pid):
    """What a process may have written, but for what it shares with others."""
    with open(f"/proc/{pid}/maps", encoding="ascii") as maps, open(f"/proc/{pid}/mem", "rb") as mem:
        for line in maps:
            where, rights, *_, inode = line.split(None, 5)[:5]
            if rights[:2] != "rw" or rights[3] != "p" or inode != "0":
                continue
            begin, end = (int(text, 16) for text in where.split("-"))
            try:
                mem.seek(begin)
                yield mem.read(end - begin)
            except (OSError, ValueError):
                continue


def stretches(part):
    """What is in pages that are not empty, as most are of a thread's stack."""
    at = None
    for page in range(0, len(part) + PAGE, PAGE):
        if part[page:page + PAGE].strip(b"\0"):
            at = page if at is None else at
        elif at is not None:
            yield part[at:page]
            at = None


def looks_random(data):
    return len(set(data)) >= LOOKS_RANDOM[0] and sum(byte >> 7 for byte in data) >= LOOKS_RANDOM[1]


def shared(first, second):
    have = set()
    for part in (piece for whole in memory(first) for piece in stretches(whole)):
        have.update(part[at:at + SECRET] for at in range(0, len(part) - SECRET, 8))
    have = {data for data in have if looks_random(data)}
    both = set()
    for part in (piece for whole in memory(second) for piece in stretches(whole)):
        both.update(data for at in range(len(part) - SECRET) if (data := part[at:at + SECRET]) in have)
    for data in sorted(both):
        print(data.hex())


def holds(pid, name):
    secret = read(name)
    sys.exit(not any(secret in part for part in memory(pid)))


def forms(secret):
    """How 32 bytes may be written. In base64 the last byte's digits depend on what follows."""
    text = secret.hex()
    for form in (base64.b64encode(secret), base64.urlsafe_b64encode(secret)):
        yield form[:SECRET * 4 // 3]
    yield from (secret, text.encode(), text.upper().encode())


def recorded(record):
    with open(record, "rb") as file:
        return pickle.load(file)


def find(record):
    seen = recorded(record)
    for line in sys.stdin:
        for form in forms(bytes.fromhex(line)):
            for where, data in sorted(seen):
                if form in data:
                    print(f"{where}: {line.strip()} in {data[:300]!r}")


def keys(record):
    found = set()
    for where, data in recorded(record):
        if where.startswith("anybody") or " file /run/" in where:  # of the machine, where others may have their keys
            continue
        found.update(re.findall(KEY, data))
    print(*sorted(word.decode() for word in found), sep="\n")


{"watch": watch, "shared": shared, "holds": holds, "find": find, "keys": keys}[sys.argv[1]](*sys.argv[2:])
