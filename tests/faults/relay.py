# SPDX-License-Identifier: BSD-3-Clause
"""relay.py TARGET PORT HERE - stands between a provider and the launcher's port, and does not do as it should

Run in a host's network namespace, where a rule leads what is meant for the launcher here, but for what bears our mark.
It is told what to do by its standard input, a line each, and ends with that: `delay S`, `mute` (it hands nothing on),
`go`, `cut` (both sides are reset), `flip` (the next piece that comes has a wrong bit).
"""
import asyncio
import socket
import struct
import sys

SO_MARK = 36
MARK = 77


class Relay:
    def __init__(self, target, port):
        self.target, self.port = target, port
        self.delay, self.flip = 0.0, False
        self.go = asyncio.Event()
        self.go.set()
        self.sockets = set()

    async def pump(self, source, sink):
        loop = asyncio.get_running_loop()
        pieces = asyncio.Queue()

        async def hand_on():
            while True:
                due, data = await pieces.get()
                await asyncio.sleep(max(0, due - loop.time()))
                await self.go.wait()
                if not data:
                    try:
                        sink.shutdown(socket.SHUT_WR)
                    except OSError:
                        pass
                    return
                try:
                    await loop.sock_sendall(sink, data)
                except OSError:  # reset meanwhile
                    return

        writer = asyncio.create_task(hand_on())
        try:
            while True:
                data = bytearray(await loop.sock_recv(source, 65536))
                if data and self.flip:
                    self.flip = False
                    data[len(data) // 2] ^= 4
                pieces.put_nowait((loop.time() + self.delay, bytes(data)))
                if not data:
                    break
            await writer
        except OSError:
            writer.cancel()
            self.reset(source, sink)

    def reset(self, *sockets):
        for s in sockets:
            if s in self.sockets:
                self.sockets.discard(s)
                s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                s.close()

    async def serve(self, client):
        loop = asyncio.get_running_loop()
        server = socket.socket()
        server.setsockopt(socket.SOL_SOCKET, SO_MARK, MARK)
        server.setblocking(False)
        self.sockets |= {client, server}
        try:
            await loop.sock_connect(server, (self.target, self.port))
        except OSError:
            self.reset(client, server)
            return
        await asyncio.gather(self.pump(client, server), self.pump(server, client))
        self.reset(client, server)

    def command(self, line):
        word = line.split()
        if word[0] == "delay":
            self.delay = float(word[1])
        elif word[0] == "mute":
            self.go.clear()
        elif word[0] == "go":
            self.go.set()
        elif word[0] == "cut":
            self.reset(*list(self.sockets))
        elif word[0] == "flip":
            self.flip = True


async def main(target, port, here):
    relay = Relay(target, port)
    loop = asyncio.get_running_loop()
    listener = socket.socket()
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listener.bind(("", here))
    listener.listen(64)
    listener.setblocking(False)
    reader = asyncio.StreamReader()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    print("ready", flush=True)

    async def accept():
        kept = set()
        while True:
            client, _ = await loop.sock_accept(listener)
            client.setblocking(False)
            task = asyncio.create_task(relay.serve(client))
            kept.add(task)
            task.add_done_callback(kept.discard)

    task = asyncio.create_task(accept())
    while line := await reader.readline():
        relay.command(line.decode())
    task.cancel()


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3])))
