"""Keep web sessions in a dict with a time-to-live and expire them through a heap."""
import hashlib
import heapq
import random
import time

TTL = 45
rng = random.Random(5)
sessions = {}
expiry = []


def login(now, n):
    sid = hashlib.sha256(f"{now}-{n}".encode()).hexdigest()
    sessions[sid] = {
        "user": f"user{rng.randrange(10**6)}",
        "cart": [f"sku-{rng.randrange(10**8)}" for _ in range(rng.randrange(5, 20))],
        "csrf": rng.getrandbits(256),
        "last_seen": now,
    }
    heapq.heappush(expiry, (now + TTL, sid))
    return sid


def touch(sid, now):
    s = sessions.get(sid)
    if s is not None:
        s["last_seen"] = now


def sweep(now):
    dropped = 0
    while expiry and expiry[0][0] <= now:
        _, sid = heapq.heappop(expiry)
        s = sessions[sid]
        if s["last_seen"] + TTL > now:
            heapq.heappush(expiry, (s["last_seen"] + TTL, sid))
        else:
            del sessions[sid]
            dropped += 1
    return dropped


def main():
    total = 0
    recent = []
    for now in range(170):
        fresh = [login(now, n) for n in range(110)]
        recent = (recent + fresh)[-800:]
        for sid in rng.sample(recent, min(80, len(recent))):
            touch(sid, now)
        total += sweep(now)
        time.sleep(0.042)
    print("expired", total, "alive", len(sessions))


main()
