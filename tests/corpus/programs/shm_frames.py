"""Pass video frames through a ring of shared-memory blocks that are created and unlinked."""
import array
import random
import time
from collections import deque
from multiprocessing import shared_memory

rng = random.Random(36)
FRAME = 320 * 240


def produce(n):
    shm = shared_memory.SharedMemory(create=True, size=FRAME)
    pattern = bytes(rng.randrange(256) for _ in range(320))
    shm.buf[:FRAME] = pattern * 240
    return {"seq": n, "shm": shm, "meta": {"ts": n * 0.04, "tags": [f"obj{rng.randrange(10**5)}" for _ in range(300)]}}


def histogram(frame):
    counts = array.array("L", bytes(256 * array.array("L").itemsize))
    for b in frame["shm"].buf[:320]:
        counts[b] += 240
    return counts


def retire(frame):
    frame["shm"].close()
    frame["shm"].unlink()


def main():
    ring = deque()
    total = 0
    for n in range(210):
        ring.append(produce(n))
        total += max(histogram(ring[-1]))
        if len(ring) > 60:
            retire(ring.popleft())
        if n % 70 == 69:
            while len(ring) > 10:
                retire(ring.popleft())
        time.sleep(0.033)
    while ring:
        retire(ring.popleft())
    print("peak sum", total)


if __name__ == "__main__":
    main()
