"""Render monitoring plots to PNG with the object interface; figures are dropped after saving."""
import io
import sys
import time

import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

T = float(sys.argv[1]) if len(sys.argv) > 1 else 5.0


def spectrogram(rng, n=128):
    t = np.arange(n * 64) / 8000
    sig = np.sin(2 * np.pi * (300 + 200 * t) * t) + rng.normal(0, 0.2, t.size)
    frames = sig.reshape(n, 64) * np.hanning(64)
    return np.log1p(np.abs(np.fft.rfft(frames, axis=1))).T


def render(data, title):
    fig = Figure(figsize=(2.4, 1.6), dpi=60)
    FigureCanvasAgg(fig)
    ax = fig.add_subplot()
    ax.imshow(data, aspect="auto", origin="lower")
    ax.plot(data.argmax(axis=0), lw=0.6)
    ax.set_title(title, fontsize=6)
    ax.set_axis_off()
    out = io.BytesIO()
    fig.savefig(out, format="png")
    return out.getvalue()


def main():
    rng = np.random.default_rng(1)
    latest = {}
    start = time.perf_counter()
    n = 0
    while time.perf_counter() - start < T:
        sensor = n % 5
        latest[sensor] = render(spectrogram(rng), f"sensor {sensor}")
        n += 1
        time.sleep(0.004)
    print("plots", n > 0, "latest", len(latest) <= 5)


main()
