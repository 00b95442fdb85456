import sys
import time
import random
import numpy as np

T = float(sys.argv[1]) if len(sys.argv) > 1 else 4.0


class App:
    def __init__(self):
        self.sessions = {}

    def login(self, sid):
        self.sessions[sid] = {"cart": np.zeros((16, 8)), "log": []}

    def request(self, sid, r):
        s = self.sessions[sid]
        s["cart"][r.randrange(16), r.randrange(8)] += 1
        if r.random() < 0.06:
            raise KeyError("no such item")

    def logout(self, sid):
        del self.sessions[sid]


app = App()
r = random.Random(0)
errors = 0
active = []
for i in range(int(T * 260)):
    sid = "%016x" % r.getrandbits(64)
    app.login(sid)
    active.append(sid)
    if len(active) > 15:
        s = active.pop(0)
        try:
            for _ in range(3):
                app.request(s, r)
            app.logout(s)
        except KeyError:
            errors += 1
    time.sleep(0.0033)
print("errors", errors)
