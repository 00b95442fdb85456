import asyncio
import itertools
import sys
import numpy as np

T = float(sys.argv[1]) if len(sys.argv) > 1 else 4.0


class Server:
    def __init__(self):
        self.ids = itertools.count()
        self.connections = {}

    async def handle(self, reader, writer):
        cid = next(self.ids)
        state = np.zeros(700)
        self.connections[cid] = state
        while line := await reader.readline():
            i, v = line.split()
            state[int(i)] += float(v)
            writer.write(b"%f\n" % state.sum())
        writer.close()


async def client(port, k):
    r, w = await asyncio.open_connection("127.0.0.1", port)
    for j in range(5):
        w.write(b"%d %d\n" % ((k * 7 + j) % 700, j))
        await r.readline()
    w.close()
    await w.wait_closed()


async def main():
    s = Server()
    srv = await asyncio.start_server(s.handle, "127.0.0.1", 0)
    port = srv.sockets[0].getsockname()[1]
    n = int(T * 80)
    for k in range(n):
        await client(port, k)
        await asyncio.sleep(0.008)
    srv.close()
    print("served", n)

asyncio.run(main())
