import io
import time
import numpy as np

results = {}


def compute(seconds):
    t0 = time.monotonic()
    i = 0
    while time.monotonic() - t0 < seconds:
        results[f"case-{i:05d}"] = np.linspace(0, 1, 20_000) ** (i % 5)
        i += 1
        time.sleep(0.004)


def save():
    n = 0
    for k in sorted(results):
        buf = io.BytesIO()
        np.save(buf, results[k])
        n += len(buf.getvalue())
    names = sorted(results)
    results.clear()
    return names, n


def report(names, n, seconds):
    t0 = time.monotonic()
    while time.monotonic() - t0 < seconds:
        lines = [f"{x:<20}{n:>12d}" for x in names]
        "\n".join(lines)
        time.sleep(0.004)


compute(1.6)
names, n = save()
report(names, n, 2.6)
print(len(names) > 0)
