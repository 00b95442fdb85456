# batch job keeps rare failures "for the report"; the traceback pins the frame with the batch
import time
import numpy as np
rng = np.random.default_rng(21)
failures = []
def transform(batch):
    norm = batch / batch.std(axis=0)
    if norm[0, 0] > 1.65:
        raise ValueError("row out of range")
    return norm.mean()
def handle(i):
    batch = rng.standard_normal((400, 200))  # LEAK
    for _ in range(2):
        rng.standard_normal((300, 300)).sum()
    return transform(batch)
t0 = time.monotonic(); ok = 0
for i in range(800):
    try:
        ok += handle(i)
    except ValueError as e:
        failures.append((i, e))
    time.sleep(max(0, t0 + i * 0.01 - time.monotonic()))
print(ok, len(failures))
