#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""stranger.py WAY ADDRESS PORT [OPTION...] - somebody who has no business at a port of the program's

Does what it is for, says how its connections ended, one line ("WAY: 8 connections, 8 dropped within 10.1 s"), and holds
those that are left until its standard input ends. Ways:

  scan      connects and closes              mute      says nothing
  slow      a byte a second                  http      speaks HTTP
  tls       TLS without a certificate        bare      TLS without the program's first bytes
  false     all right, but with a key that nobody has vouched for
  long      the beginning, then more bytes than a stranger may send
  frame     false, and then a frame that is too large
  psk       TLS with the pre-shared key --key=HEX, and then what --say=WORD,... has: hello:INDEX, large:BYTES, rubbish
  replay    what is in the file --bytes=FILE
  many      --count=N connections at once, one after the other from --from; those that are dropped call again with --again,
            and each says how a peer begins with --say=begin

--from=ADDR[,ADDR...]: where it calls from. --tell: a line for each connection when all has been said on it. Two more are
no strangers:

  record ADDRESS PORT --listen=ADDR:PORT --bytes=FILE    a relay that keeps what its first caller says
  provider --how=HOW WORD...    in place of a provider, whose command line is WORD...: with a key that is vouched for. It
                                joins and does its part for a task that ends at once. HOW: twice (three hellos), huge (a
                                frame), key (it tells the key of the run on standard error), claims (that the next place, which it was
                handed, has joined below the launcher)
"""
import hashlib
import select
import socket
import ssl
import struct
import subprocess
import sys
import tempfile
import threading
import time

PROLOGUE = b"pmistart\0\1\0\1\0\0\0\0"
HELLO, READY, EXITED, FINISHED, JOINED, JOB, GO, END, PING, PONG = 1, 4, 7, 16, 30, 67, 68, 71, 128, 129
PATIENCE = 15  # seconds until a connection counts as held


def frame(kind, **body):
    """A message whose body is a msgpack map of numbers, lists of one number, truths and text."""
    data = bytes([0x80 | len(body)])
    for key, value in body.items():
        data += bytes([0xA0 | len(key)]) + key.encode()
        if isinstance(value, bool):
            data += b"\xc3" if value else b"\xc2"
        elif isinstance(value, list):
            data += b"\x91\xce" + struct.pack(">I", *value)
        elif isinstance(value, int):
            data += b"\xcf" + struct.pack(">Q", value)
        else:
            data += bytes([0xA0 | len(value)]) + value.encode()
    return struct.pack(">IHH", len(data), kind, 0) + data


def hello(run, index, instance):
    return frame(HELLO, run=run, index=index, instance=instance, attached=True, version_low=1, version_high=1,
                 release="0")


def words_of(options):
    """The bytes that --say stands for."""
    data = b""
    for word in filter(None, options.get("say", "").split(",")):
        word, _, number = word.partition(":")
        if word == "hello":
            data += hello(1, int(number), 99)
        elif word == "large":
            data += struct.pack(">IHH", int(number), HELLO, 0) + bytes(1000)
        else:
            data += {"begin": PROLOGUE, "rubbish": struct.pack(">IHH", 4, HELLO, 0) + b"\xc1\xff\x00\x81"}[word]
    return data


def connect(where, source=None):
    return socket.create_connection(where, timeout=PATIENCE, source_address=(source, 0) if source else None)


def receive(s, length):
    data = b""
    while len(data) < length:
        more = s.recv(length - len(data))
        if not more:
            raise EOFError
        data += more
    return data


class Key:
    """A key pair with a certificate, as the program makes them for itself."""

    def __init__(self):
        with tempfile.TemporaryDirectory() as folder:
            both = f"{folder}/both.pem"
            subprocess.run(
                ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days",
                 "2", "-subj", "/CN=pmi-start", "-keyout", both, "-out", f"{folder}/cert.pem"],
                check=True, stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            with open(f"{folder}/cert.pem", encoding="ascii") as file:
                text = file.read()
            self.context = plain_context()
            self.context.load_cert_chain(f"{folder}/cert.pem", both)
        self.fingerprint = hashlib.sha256(ssl.PEM_cert_to_DER_cert(text)).hexdigest()


def plain_context():
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context


def secure(where, context, source=None):
    s = connect(where, source)
    s.sendall(PROLOGUE)
    receive(s, len(PROLOGUE))
    return context.wrap_socket(s)


class Psk:
    """TLS with a pre-shared key. Python's own cannot do that; openssl's client can, but for the first bytes."""

    def __init__(self, where, source, key):
        self.far = connect(where, source)
        self.far.sendall(PROLOGUE)
        receive(self.far, len(PROLOGUE))
        near = socket.create_server(("127.0.0.1", 0))
        self.client = subprocess.Popen(
            ["openssl", "s_client", "-quiet", "-connect", f"127.0.0.1:{near.getsockname()[1]}", "-tls1_3",
             "-ciphersuites", "TLS_AES_128_GCM_SHA256", "-psk", key, "-psk_identity", "pmi-start"],
            stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.near = near.accept()[0]
        near.close()
        threading.Thread(target=pump, args=(self.near, self.far), daemon=True).start()

    def sendall(self, data):
        self.client.stdin.write(data)
        self.client.stdin.flush()

    def recv(self, length):
        data = self.far.recv(length)
        try:
            self.near.sendall(data)
        except OSError:
            pass
        return data

    def settimeout(self, seconds):
        self.far.settimeout(seconds)

    def close(self):
        self.client.kill()
        self.client.wait()
        self.far.close()


def pump(source, sink, keep=None):
    try:
        while data := source.recv(65536):
            if keep is not None:
                keep.write(data)
                keep.flush()
            sink.sendall(data)
    except OSError:
        pass
    try:
        sink.shutdown(socket.SHUT_WR)
    except OSError:
        pass


def say(s, data):
    try:
        s.sendall(data)
    except OSError:
        pass


def time_to_end(s, word=b"", every=None):
    """Seconds until the other side has closed; None: it has not. Meanwhile `word` is said, a byte each time."""
    begin, said = time.monotonic(), 0
    while (left := begin + PATIENCE - time.monotonic()) > 0:
        s.settimeout(min(left, every or left))
        try:
            if not s.recv(65536):
                return time.monotonic() - begin
        except TimeoutError:
            if every:
                say(s, word[said:said + 1])
                said += 1
        except OSError:
            return time.monotonic() - begin
    return None


def report(way, times):
    over = [t for t in times if t is not None]
    within = f" within {max(over):.1f} s" if over else ""
    print(f"{way}: {len(times)} connections, {len(over)} dropped{within}", flush=True)


# What each way does with one connection; the result is the one to wait on, and what else is said on it, byte by byte.
def call(way, where, source, options):
    if way == "tls":
        return secure(where, plain_context(), source), b""
    if way == "bare":
        s, said = connect(where, source), ssl.MemoryBIO()
        try:
            plain_context().wrap_bio(ssl.MemoryBIO(), said).do_handshake()
        except ssl.SSLWantReadError:
            say(s, said.read())
        return s, b""
    if way in ("false", "frame"):
        s = secure(where, Key().context, source)
        say(s, hello(1, 0, 7) if way == "false" else struct.pack(">IHH", 4097, HELLO, 0) + b"x" * 100)
        return s, b""
    if way == "psk":
        s = Psk(where, source, options["key"])
        say(s, words_of(options))
        return s, b""
    s = connect(where, source)
    if way == "slow":
        return s, PROLOGUE + b"\x16\x03\x01" + bytes(100)
    if way == "http":
        say(s, b"GET / HTTP/1.1\r\nHost: example\r\nUser-Agent: curl/8\r\n\r\n")
    elif way == "long":
        # One record of TLS that never ends: nothing wrong with it but its length.
        say(s, PROLOGUE + (b"\x16\x03\x01\x40\x00\x01\x00\x3f\xfc\x03\x03" + bytes(16373)) * 2)
    elif way == "replay":
        with open(options["bytes"], "rb") as file:
            say(s, file.read())
    return s, b""


def one(way, where, source, options, times, number, held):
    try:
        s, word = call(way, where, source, options)
    except (FileNotFoundError, ConnectionRefusedError, TimeoutError):
        raise
    except (OSError, EOFError):
        times[number] = 0.0
        return
    held.append(s)
    if "tell" in options:
        print(f"{way}: said", flush=True)
    times[number] = time_to_end(s, word, 1 if word else None)


def some(way, where, sources, options):
    """As many as an address may have, at once, each waited for."""
    count = int(options.get("count", 4))
    times, held = [None] * count, []
    threads = [threading.Thread(target=one, args=(way, where, sources[i % len(sources)], options, times, i, held))
               for i in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    report(way, times)
    return held


def scan(where, sources):
    for i in range(40):
        connect(where, sources[i % len(sources)]).close()
    print("scan: 40 connections", flush=True)


def is_over(seconds):
    return bool(select.select([0], [], [], seconds)[0])


def is_open(s):
    try:
        s.setblocking(False)
        return bool(s.recv(100))
    except BlockingIOError:
        return True
    except OSError:
        return False


def many(where, sources, options):
    """Says how many of its connections are open, whenever that has stayed the same for half a second."""
    count, again = int(options["count"]), "again" in options
    held, said, same = [connect(where, sources[i % len(sources)]) for i in range(count)], None, 0
    for s in held:
        say(s, words_of(options))
    while True:
        before = len(held)
        still = []
        for s in held:
            if is_open(s) or is_open(s):  # what was said to it is read first
                still.append(s)
            else:
                s.close()
        held = still
        same = same + 1 if len(held) == before else 0
        if len(held) != said and (same == 10 or again):
            said = len(held)
            print(f"many: {said} open", flush=True)
        for i in range(count - len(held) if again else 0):
            try:
                held.append(connect(where, sources[i % len(sources)]))
                say(held[-1], words_of(options))
            except OSError:
                break
        if is_over(0.05):
            return


def record(where, options):
    address, _, port = options["listen"].rpartition(":")
    with socket.create_server((address, int(port))) as server, open(options["bytes"], "wb") as keep:
        print("record: listening", flush=True)
        while True:
            near = server.accept()[0]
            far = socket.create_connection(where)
            threading.Thread(target=pump, args=(near, far, keep), daemon=True).start()
            threading.Thread(target=pump, args=(far, near), daemon=True).start()
            keep = None


def answer(s):
    """A whole message: its kind and body; of kind None when the connection has ended."""
    try:
        length, kind, _ = struct.unpack(">IHH", receive(s, 8))
        return kind, receive(s, length)
    except (EOFError, OSError):
        return None, b""


def provider(options, words):
    told = dict(word[2:].split("=", 1) for word in words if word.startswith("--"))
    address, _, port = told["pmi-port"].split(",")[0].rpartition(":")
    where, run, index, key = (address, int(port)), int(told["pmi-run"]), int(told["pmi-rank"]), Key()
    print(f"\npmi-start-provider 1 run={run} index={index} key={key.fingerprint}", flush=True)
    s = secure(where, key.context)
    say(s, hello(run, index, 1))
    kind, body = answer(s)
    if options["how"] == "twice":
        second, third = secure(where, key.context), secure(where, key.context)
        say(second, hello(run, index, 1))
        say(third, hello(run, index, 2))
        print(f"the second is answered {answer(second)[0]}, the third {answer(third)[0]}", file=sys.stderr, flush=True)
    elif options["how"] == "huge":
        say(s, struct.pack(">IHH", 65537, READY, 0) + b"x" * 1000)
        print("so much for that", file=sys.stderr, flush=True)
    elif options["how"] == "key":
        at = body.index(b"run_key") + len("run_key") + 2
        print("the key of the run is", body[at:at + 32].hex(), file=sys.stderr, flush=True)
    elif options["how"] == "claims":
        say(s, frame(JOINED, place=[2], parent=[0]))
    while kind is not None:
        kind, body = answer(s)
        if kind == JOB:
            say(s, frame(READY, job=0))
        elif kind == GO:
            say(s, frame(EXITED, job=0, rank=[index], pid=[1], status=[0]))
        elif kind == END:
            say(s, frame(FINISHED))
        elif kind == PING:
            say(s, frame(PONG))


def main(way, *words):
    options = dict((word[2:] + "=").split("=", 1) for word in words if word.startswith("--"))
    options = {name: value.rstrip("=") for name, value in options.items()}
    if way == "provider":
        provider(options, words)
        return
    where, sources = (words[0], int(words[1])), options.get("from", "").split(",")
    if way == "record":
        threading.Thread(target=record, args=(where, options), daemon=True).start()
    elif way == "scan":
        scan(where, sources)
    elif way == "many":
        many(where, sources, options)
        return
    else:
        held = some(way, where, sources, options)
        print(f"{way}: {len(held)} came through", file=sys.stderr)
    while not is_over(60):
        pass


main(*sys.argv[1:])
