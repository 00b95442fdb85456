# "gc.disable() for latency": request <-> response cycles with a payload are never collected
import gc, time
import numpy as np
gc.disable()
rng = np.random.default_rng(32)
class Request:
    def __init__(self, n):
        self.body = rng.random(9000)  # LEAK
        self.response = None
class Response:
    def __init__(self, req):
        self.request = req; req.response = self
        self.score = float(req.body.mean())
def handle(n):
    r = Request(n)
    scratch = [rng.random(20_000) for _ in range(4)]
    if n % 10 == 0:                       # debug requests carry a back reference
        return Response(r).score
    return float(r.body.mean()) + len(scratch)
t0 = time.monotonic(); s = 0
for i in range(800):
    s += handle(i)
    time.sleep(max(0, t0 + i * 0.01 - time.monotonic()))
print(s)
