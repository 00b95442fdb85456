"""Serve matrix requests of in-process asyncio clients over socket pairs, with connections opening and closing in waves."""
import asyncio
import socket
import struct

import numpy as np


async def read_frame(reader):
    head = await reader.readexactly(4)
    (size,) = struct.unpack("!I", head)
    return await reader.readexactly(size)


def write_frame(writer, payload):
    writer.write(struct.pack("!I", len(payload)) + payload)


class Server:
    def __init__(self):
        self.sessions = {}
        self.served = 0

    async def handle(self, cid, sock):
        reader, writer = await asyncio.open_connection(sock=sock)
        state = np.zeros((64, 64))
        self.sessions[cid] = state
        try:
            while True:
                frame = await read_frame(reader)
                if not frame:
                    break
                x = np.frombuffer(frame, dtype=np.float64).reshape(64, 64)
                state *= 0.5
                state += x
                write_frame(writer, state.tobytes())
                await writer.drain()
                self.served += 1
        finally:
            del self.sessions[cid]
            writer.close()
            await writer.wait_closed()


async def client(cid, sock, requests):
    rng = np.random.default_rng(cid)
    reader, writer = await asyncio.open_connection(sock=sock)
    answers = []
    for _ in range(requests):
        write_frame(writer, rng.random((64, 64)).tobytes())
        await writer.drain()
        answers.append(np.frombuffer(await read_frame(reader), dtype=np.float64))
        await asyncio.sleep(0.04)
    write_frame(writer, b"")
    await writer.drain()
    writer.close()
    await writer.wait_closed()
    return float(np.mean([a.mean() for a in answers]))


async def main():
    server = Server()
    means = []
    for wave in range(7):
        jobs = []
        for i in range(10):
            cid = wave * 10 + i
            left, right = socket.socketpair()
            jobs.append(server.handle(cid, left))
            jobs.append(client(cid, right, 12 + (i % 4)))
        results = await asyncio.gather(*jobs)
        means.append(float(np.mean([r for r in results if r is not None])))
        await asyncio.sleep(0.05)
    print("served", server.served, "open", len(server.sessions), "mean", round(float(np.mean(means)), 4))


if __name__ == "__main__":
    asyncio.run(main())
