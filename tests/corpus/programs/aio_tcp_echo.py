import asyncio
import struct
import numpy as np


async def handle(reader, writer):
    n = struct.unpack("<q", await reader.readexactly(8))[0]
    a = np.frombuffer(await reader.readexactly(8 * n))
    writer.write(struct.pack("<d", float(a.sum())))
    await writer.drain()
    writer.close()


async def client(port, n):
    r, w = await asyncio.open_connection("127.0.0.1", port)
    w.write(struct.pack("<q", n) + np.arange(n, dtype=float).tobytes())
    s = struct.unpack("<d", await r.readexactly(8))[0]
    w.close()
    await w.wait_closed()
    return s


async def main():
    srv = await asyncio.start_server(handle, "127.0.0.1", 0)
    port = srv.sockets[0].getsockname()[1]
    loop = asyncio.get_running_loop()
    end = loop.time() + 3.0
    k = 0
    while loop.time() < end:
        await asyncio.gather(*(client(port, 2_000 + 100 * (k % 20)) for _ in range(4)))
        k += 1
        await asyncio.sleep(0.004)
    srv.close()
    await srv.wait_closed()


asyncio.run(main())
