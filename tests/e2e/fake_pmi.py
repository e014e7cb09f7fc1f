#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""fake_pmi.py FAULT COMMAND... - run COMMAND as rank 0 of 1 of a PMI server that makes one mistake

The server speaks PMI-1 over PMI_PORT, with as many sessions as come, and PMI-2 if asked to. FAULT is what it does
wrong from the third get on (that is, neither in the first round nor in a warm-up that is too short to have any):
  none         nothing
  wrong        gives another value
  cut          gives a value without its last byte
  longer       gives a value with a byte more
  missing      does not find the key
  silent       never answers
  half         answers half a line
  close        closes the connection
  rubbish      answers what is no PMI
  late-put     puts nothing any more, and says that it did
or, whatever the gets:
  barrier      fails every barrier
  put          refuses every put
  rank         tells the second session another rank
  no-init      refuses init
Ends with COMMAND's status.
"""
import os
import selectors
import socket
import subprocess
import sys

FAULTS_ON_GET = 3


class Server:
    def __init__(self, fault):
        self.fault = fault
        self.kvs = {}
        self.gets = 0
        self.sessions = 0
        self.listener = socket.create_server(("127.0.0.1", 0), backlog=512)
        self.sel = selectors.DefaultSelector()
        self.sel.register(self.listener, selectors.EVENT_READ, None)

    def serve(self, child):
        while child.poll() is None:
            for key, _ in self.sel.select(0.05):
                if key.data is None:
                    sock, _ = self.listener.accept()
                    self.sel.register(sock, selectors.EVENT_READ, {"in": b"", "pmi": 1})
                else:
                    self.read(key.fileobj, key.data)
        return child.returncode

    def close(self, sock):
        self.sel.unregister(sock)
        sock.close()

    def read(self, sock, state):
        try:
            got = sock.recv(65536)
        except ConnectionResetError:
            got = b""
        if not got:
            self.close(sock)
            return
        state["in"] += got
        while True:
            if state["pmi"] == 1:
                line, newline, rest = state["in"].partition(b"\n")
                if not newline:
                    return
                state["in"] = rest
                answer = self.line(line.decode(), state)
            else:
                if len(state["in"]) < 6 or len(state["in"]) < 6 + int(state["in"][:6]):
                    return
                end = 6 + int(state["in"][:6])
                body, state["in"] = state["in"][6:end].decode(), state["in"][end:]
                answer = self.frame(body)
            if answer is None:
                self.close(sock)
                return
            sock.sendall(answer.encode())

    def line(self, line, state):
        words = dict(w.partition("=")[::2] for w in line.split(" "))
        cmd = words["cmd"]
        if cmd == "initack":
            self.sessions += 1
            rank = 1 if self.fault == "rank" and self.sessions == 2 else 0
            return f"cmd=initack\ncmd=set size=1\ncmd=set rank={rank}\ncmd=set debug=0\n"
        if cmd == "init":
            if self.fault == "no-init":
                return "cmd=response_to_init rc=-1\n"
            state["pmi"] = int(words["pmi_version"])
            return f"cmd=response_to_init rc=0 pmi_version={words['pmi_version']} pmi_subversion=1\n"
        if cmd == "put":
            return f"cmd=put_result rc={self.put(words['key'], words['value'])}\n"
        if cmd == "get":
            return self.get(words["key"], lambda v: f"cmd=get_result rc=0 value={v}\n",
                            "cmd=get_result rc=4 msg=no_such_key\n")
        return {
            "get_maxes": "cmd=maxes rc=0 kvsname_max=64 keylen_max=64 vallen_max=1024\n",
            "get_appnum": "cmd=appnum rc=0 appnum=0\n",
            "get_universe_size": "cmd=universe_size rc=0 size=1\n",
            "get_my_kvsname": "cmd=my_kvsname rc=0 kvsname=fake\n",
            "barrier_in": f"cmd=barrier_out rc={-1 if self.fault == 'barrier' else 0}\n",
            "finalize": "cmd=finalize_ack rc=0\n",
        }.get(cmd, f"cmd={cmd}_result rc=-1\n")

    def frame(self, body):
        words = dict(w.partition("=")[::2] for w in body.rstrip(";").split(";"))
        cmd, more = words["cmd"], ""
        if cmd == "fullinit":
            more = "rank=0;size=1;appnum=0;"
        elif cmd == "job-getid":
            more = "jobid=fake;"
        elif cmd == "kvs-put":
            return self.framed(f"cmd=kvs-put-response;rc={self.put(words['key'], words['value'])};")
        elif cmd == "kvs-get":
            return self.get(words["key"],
                            lambda v: self.framed(f"cmd=kvs-get-response;rc=0;found=TRUE;value={v};"),
                            self.framed("cmd=kvs-get-response;rc=0;found=FALSE;"))
        elif cmd == "info-getjobattr":
            more = "found=FALSE;"
        elif cmd == "kvs-fence" and self.fault == "barrier":
            return self.framed("cmd=kvs-fence-response;rc=-1;")
        return self.framed(f"cmd={cmd}-response;{more}rc=0;")

    @staticmethod
    def framed(body):
        return f"{len(body):6}{body}"

    def put(self, key, value):
        if self.fault == "put":
            return -1
        if self.fault != "late-put" or self.gets < FAULTS_ON_GET:
            self.kvs[key] = value
        return 0

    def get(self, key, found, missing):
        self.gets += 1
        value = self.kvs.get(key)
        if value is None:
            return missing
        if self.gets < FAULTS_ON_GET or key.startswith("bench-figures"):
            return found(value)
        other = ("B" if value[-1] == "A" else "A") + ""
        return {
            "wrong": lambda: found(value[:-1] + other),
            "cut": lambda: found(value[:-1]),
            "longer": lambda: found(value + "A"),
            "missing": lambda: missing,
            "silent": lambda: "",
            "half": lambda: found(value)[:12],
            "close": lambda: None,
            "rubbish": lambda: "\x01\x02 what?\n\n\n\n",
        }.get(self.fault, lambda: found(value))()


def main():
    server = Server(sys.argv[1])
    port = server.listener.getsockname()[1]
    env = {k: v for k, v in os.environ.items() if not k.startswith("PMI_")}
    env.update(PMI_PORT=f"127.0.0.1:{port}", PMI_ID="0")
    with subprocess.Popen(sys.argv[2:], env=env) as child:
        sys.exit(server.serve(child))


main()
