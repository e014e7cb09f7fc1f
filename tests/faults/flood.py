# SPDX-License-Identifier: BSD-3-Clause
"""flood.py RANK reads|ends - a task: RANK asks 20,000 times before it reads, or never reads; all others do as usual"""
import os
import select
import socket
import sys
import time

MANY = 20000
rank = os.environ["PMI_RANK"]
if "PMI_FD" in os.environ:
    fd = int(os.environ["PMI_FD"])
else:
    address, _, port = os.environ["PMI_PORT"].partition(":")
    fd = socket.create_connection((address, int(port))).detach()
pipe = os.fdopen(os.dup(fd), "rb")


def ask(line):
    os.write(fd, line + b"\n")
    return pipe.readline()


def write_what_fits(data):
    """For half a second: what does not fit by then waits for us to read."""
    end = time.monotonic() + 0.5
    os.set_blocking(fd, False)
    while data and time.monotonic() < end:
        if select.select([], [fd], [], 0.1)[1]:
            try:
                data = data[os.write(fd, data):]
            except BlockingIOError:
                pass
    return data


if "PMI_FD" not in os.environ:
    ask(b"cmd=initack pmiid=" + os.environ["PMI_ID"].encode())
    for _ in range(3):
        pipe.readline()
ask(b"cmd=init pmi_version=1 pmi_subversion=1")
ask(b"cmd=barrier_in")
if rank == sys.argv[1]:
    request = b"cmd=get_universe_size\n"
    left = write_what_fits(request * MANY)
    if sys.argv[2] == "ends":
        sys.exit(0)
    answers = b""
    while answers.count(b"\n") < MANY:
        ready = select.select([fd], [fd] if left else [], [])
        if ready[1]:
            left = left[os.write(fd, left):]
        if ready[0]:
            answers += os.read(fd, 65536)
            if answers.count(b"\n") > 5000:
                MANY -= answers.count(b"\n")
                answers = answers.rpartition(b"\n")[2]
    os.set_blocking(fd, True)
ask(b"cmd=barrier_in")
ask(b"cmd=finalize")
print("done")
