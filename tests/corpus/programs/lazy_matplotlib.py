import io
import time
import numpy as np

t0 = time.monotonic()
data = np.zeros(2_000)
while time.monotonic() - t0 < 1.0:
    data += np.random.default_rng(0).normal(size=2_000) * 0.01
    time.sleep(0.003)

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt

n = 0
t1 = time.monotonic()
while time.monotonic() - t1 < 2.6:
    fig, ax = plt.subplots(figsize=(3, 2))
    ax.plot(data)
    buf = io.BytesIO()
    fig.savefig(buf, format="png", dpi=60)
    plt.close(fig)
    n += len(buf.getvalue())
print(n > 0)
