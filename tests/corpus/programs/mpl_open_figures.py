import io
import sys
import warnings
import numpy as np
import matplotlib
matplotlib.use("Agg")
import matplotlib.pyplot as plt

T = float(sys.argv[1]) if len(sys.argv) > 1 else 4.0
warnings.filterwarnings("ignore")
x = np.linspace(0, 10, 3000)


def plot(day):
    fig, ax = plt.subplots(figsize=(3, 2), dpi=60)
    noise = np.random.default_rng(day).standard_normal(x.size)
    ax.plot(x, np.sin(x + day) + noise)
    buf = io.BytesIO()
    fig.savefig(buf, format="png")
    return len(buf.getvalue())


days = int(T * 14)
sizes = [plot(d) for d in range(days)]
print("reports", len(sizes))
