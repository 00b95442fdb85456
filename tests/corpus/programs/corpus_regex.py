import re
import time
import zlib
import numpy as np

t0 = time.monotonic()
acc = np.empty(0, dtype=np.uint8)
rng = np.random.default_rng(0)
while time.monotonic() - t0 < 0.8:
    acc = np.concatenate([acc, rng.integers(97, 123, 40_000).astype(np.uint8)])
    time.sleep(0.005)
text = acc[:200_000].tobytes().decode("ascii")
acc = None
words = re.compile(r"[aeiou][^aeiou]+")
hits = 0
while time.monotonic() - t0 < 4.2:
    hits += sum(1 for _ in words.finditer(text))
    hits += len(zlib.compress(text[:50_000].encode(), 1)) % 2
print(hits > 0)
