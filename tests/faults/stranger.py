# SPDX-License-Identifier: BSD-3-Clause
"""stranger.py MODE ADDRESS PORT - somebody who has no business at the launcher's port, until standard input ends

silent: many connections that say nothing; half: as the program would begin, and no further; rubbish: bytes that are
nothing; flood: connect, close, again; drip: a byte at a time; tls: a TLS client without a key of the run.
"""
import os
import select
import socket
import ssl
import sys
import time

PROLOGUE = b"pmistart\0\1\0\1\0\0\0\0"
MANY = 40


def connect(where):
    try:
        s = socket.create_connection(where, timeout=1)
        s.setblocking(False)
        return s
    except OSError:
        return None


def send(s, data):
    try:
        s.send(data)
        return True
    except OSError:
        return False


def try_tls(where):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    try:
        with socket.create_connection(where, timeout=1) as s:
            s.sendall(PROLOGUE)
            s.recv(16)
            with context.wrap_socket(s) as t:
                t.sendall(b"\0\0\0\4\0\1\0\0\x81\xa1a\1")
                t.recv(64)
    except OSError:
        time.sleep(0.01)


def over(seconds):
    ready = select.select([0], [], [], seconds)[0]
    return bool(ready) and not os.read(0, 100)


def main(mode, where):
    words = {"silent": b"", "half": PROLOGUE, "rubbish": os.urandom(3000), "drip": b"", "flood": b"", "tls": b""}[mode]
    held = []
    while not over(0.02):
        if mode == "tls":
            try_tls(where)
            continue
        s = connect(where) if len(held) < MANY else None
        if s is None:
            if mode == "drip":
                held = [h for h in held if send(h, b"p")]
            continue
        if mode == "flood":
            s.close()
            continue
        if words:
            send(s, words)
        held.append(s)


main(sys.argv[1], (sys.argv[2], int(sys.argv[3])))
