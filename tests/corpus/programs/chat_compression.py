"""Compress chat messages per connection with zlib streams while clients connect and disconnect."""
import random
import time
import zlib

import numpy as np

rng = random.Random(58)
nprng = np.random.default_rng(58)
streams = {}
online = []


def connect(n):
    cid = f"conn-{n}"
    streams[cid] = zlib.compressobj(6, zlib.DEFLATED, -15)
    online.append(cid)


def message():
    return nprng.integers(32, 110, size=700, dtype=np.uint8).tobytes()


def send(cid):
    c = streams[cid]
    return len(c.compress(message()) + c.flush(zlib.Z_SYNC_FLUSH))


def disconnect():
    cid = online.pop(rng.randrange(len(online)))
    return cid


def main():
    for n in range(30):
        connect(n)
    sent = 0
    for tick in range(160):
        if tick % 3 != 0:
            n += 1
            connect(n)
            disconnect()
        for _ in range(20):
            sent += send(rng.choice(online))
        time.sleep(0.042)
    print(sent, len(online))


main()
