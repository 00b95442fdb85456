"""asyncio session service: each login gets a workspace that expires after a while."""
import asyncio
import sys
import time
from dataclasses import dataclass, field

import numpy as np

T = float(sys.argv[1]) if len(sys.argv) > 1 else 5.0
TTL = 0.25 * T


@dataclass
class Session:
    uid: int
    born: float
    work: np.ndarray
    notes: list = field(default_factory=list)


class Service:
    def __init__(self):
        self.sessions = {}
        self.done = asyncio.Event()
        self.expired = 0

    async def login(self, uid):
        rng = np.random.default_rng(uid)
        work = rng.random((64, 64))
        self.sessions[uid] = Session(uid, time.perf_counter(), work)

    async def query(self, uid):
        s = self.sessions.get(uid)
        if s is None:
            return None
        s.work = np.tanh(s.work @ s.work.T / 64)
        await asyncio.sleep(0)
        return float(np.trace(s.work))

    async def sweeper(self):
        while not self.done.is_set():
            limit = time.perf_counter() - TTL
            for uid in [u for u, s in self.sessions.items() if s.born < limit]:
                del self.sessions[uid]
                self.expired += 1
            await asyncio.sleep(T / 50)


async def main():
    svc = Service()
    sweeper = asyncio.create_task(svc.sweeper())
    start = time.perf_counter()
    uid = 0
    while time.perf_counter() - start < T:
        await svc.login(uid)
        await asyncio.gather(*(svc.query(uid - k * 7) for k in range(4)))
        uid += 1
        await asyncio.sleep(0.004)
    svc.done.set()
    await sweeper
    print("expired", svc.expired > 0, "open less than all:", len(svc.sessions) < uid)


asyncio.run(main())
