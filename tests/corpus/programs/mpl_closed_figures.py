import io
import sys
import numpy as np
import matplotlib
matplotlib.use("Agg")
from matplotlib import pyplot as plt

T = float(sys.argv[1]) if len(sys.argv) > 1 else 4.0
written = 0
for frame in range(int(T * 10)):
    rng = np.random.default_rng(frame)
    img = rng.random((60, 80))
    fig = plt.figure(figsize=(2.5, 2))
    ax = fig.add_subplot(111)
    ax.imshow(img, cmap="viridis")
    ax.set_title("frame %d" % frame)
    out = io.BytesIO()
    fig.savefig(out, format="png", dpi=50)
    plt.close(fig)
    written += out.tell() > 0
print("frames", written)
