import asyncio
import numpy as np


class Server:
    def __init__(self):
        self.table = {}

    async def serve(self, sid):
        self.table[sid] = np.random.default_rng(sid).random(20_000)
        await asyncio.sleep(0.001 if sid % 4 else 0.5)
        del self.table[sid]

    async def run(self, seconds):
        loop = asyncio.get_running_loop()
        end = loop.time() + seconds
        sid = 0
        while loop.time() < end:
            try:
                await asyncio.wait_for(self.serve(sid), 0.008)
            except asyncio.TimeoutError:
                pass
            sid += 1


server = Server()
asyncio.run(server.run(3.8))
print(len(server.table) > 0)
