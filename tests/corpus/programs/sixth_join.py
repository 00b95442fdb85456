# streaming join with a watermark that stalls (an idle source holds it back) and then catches up; traffic is sinusoidal
import time, math
from collections import defaultdict
import numpy as np
rng = np.random.default_rng(11)
left, right = defaultdict(list), defaultdict(list); wm = 0; matched = 0; t0 = time.monotonic()
for tick in range(800):
    rate = int(5 + 4 * math.sin(tick / 800 * 2 * math.pi * 1.25))
    for _ in range(rate):
        k = int(rng.integers(0, 3000))
        left[k].append((tick, rng.standard_normal(400)))
        if rng.random() < 0.5:
            right[k].append((tick, rng.random(300)))
    ts = tick
    src_b = tick if not 250 < tick < 600 else 250      # source B idle
    wm = max(wm, min(ts, src_b) - 120)
    if tick % 20 == 0:
        for side in (left, right):
            for k in list(side):
                keep = [e for e in side[k] if e[0] >= wm]
                if keep: side[k] = keep
                else: del side[k]
        for k in right:
            if k in left:
                matched += len(left[k])
    time.sleep(max(0, t0 + tick * 0.01 - time.monotonic()))
print(matched, len(left), len(right))
