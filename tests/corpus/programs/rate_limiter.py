"""Limit request rates per client address and score the request mix with a small numeric model."""
import random
import time
from collections import deque

import numpy as np

WINDOW = 50


class ClientState:
    def __init__(self, address, now):
        self.address = address
        self.first_seen = now
        self.stamps = deque(maxlen=20)
        self.agents = set()
        self.flags = {"blocked": False, "score": 0.0, "note": f"first seen at {now} from {address}"}


class Limiter:
    def __init__(self):
        self.clients = {}

    def allow(self, address, agent, now):
        state = self.clients.get(address)
        if state is None:
            state = self.clients[address] = ClientState(address, now)
        while state.stamps and state.stamps[0] < now - WINDOW:
            state.stamps.popleft()
        state.stamps.append(now)
        state.agents.add(agent)
        state.flags["score"] = len(state.stamps) / WINDOW
        return len(state.stamps) < 10


def main():
    rnd = random.Random(2)
    limiter = Limiter()
    denied = 0
    model = np.zeros(512)
    for now in range(620):
        features = np.zeros(512)
        for _ in range(22):
            if rnd.random() < 0.3:
                address = f"10.0.0.{rnd.randrange(60)}"
            else:
                address = "%d.%d.%d.%d" % tuple(rnd.randrange(1, 255) for _ in range(4))
            agent = f"agent/{rnd.randrange(30)}"
            denied += not limiter.allow(address, agent, now)
            features[hash(len(address)) % 512] += 1
        model = 0.95 * model + 0.05 * features
        time.sleep(0.007)
    print("denied", denied, "model", round(float(model.sum()), 3))


if __name__ == "__main__":
    main()
