import asyncio
import collections
import random
import sys
import numpy as np

T = float(sys.argv[1]) if len(sys.argv) > 1 else 4.0


class Room:
    def __init__(self, rid):
        self.rid = rid
        self.members = set()
        self.backlog = collections.deque(maxlen=20)


async def member(rooms, rid, rng):
    room = rooms.setdefault(rid, Room(rid))
    me = object()
    room.members.add(me)
    for _ in range(rng.randrange(3, 12)):
        room.backlog.append(np.array([rng.random() for _ in range(50)]))
        await asyncio.sleep(0.004)
    room.members.discard(me)
    if not room.members and rooms.get(rid) is room:
        del rooms[rid]


async def main():
    rng = random.Random(42)
    rooms, tasks, peak = {}, set(), 0
    for i in range(int(T * 130)):
        t = asyncio.create_task(member(rooms, rng.randrange(10 ** 5) if i % 3 else i % 4, rng))
        tasks.add(t)
        t.add_done_callback(tasks.discard)
        peak = max(peak, len(rooms))
        await asyncio.sleep(0.0068)
    await asyncio.gather(*tasks)
    print("rooms now", len(rooms))

asyncio.run(main())
