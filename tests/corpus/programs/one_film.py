"""A matplotlib animation saved frame by frame in one call."""
import os
import tempfile

import matplotlib
matplotlib.use("Agg")
import numpy as np
from matplotlib import pyplot as plt
from matplotlib.animation import FuncAnimation, PillowWriter
fig, ax = plt.subplots(figsize=(3, 2))
(line,) = ax.plot([], [])
ax.set_xlim(0, 6); ax.set_ylim(-1, 1)
x = np.linspace(0, 6, 400)
def step(i):
    line.set_data(x, np.sin(x + i / 10))
    return (line,)
FuncAnimation(fig, step, frames=150, blit=True).save(os.path.join(tempfile.mkdtemp(), "a.gif"), writer=PillowWriter(fps=20))
