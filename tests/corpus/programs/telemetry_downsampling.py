"""Downsample telemetry into raw, minute and hour tiers with bounded length and draw a chart from time to time."""
import io
import time
from collections import deque

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np


class Tiers:
    def __init__(self):
        self.raw = deque(maxlen=240)
        self.minutes = deque(maxlen=60)
        self.hours = deque(maxlen=10)
        self.open_minute = []
        self.open_hour = []

    def push(self, block):
        self.raw.append(block)
        self.open_minute.append(block)
        if len(self.open_minute) == 4:
            stacked = np.stack(self.open_minute)
            row = np.stack([stacked.min(0), stacked.mean(0), stacked.max(0)])
            self.open_minute = []
            self.minutes.append(row)
            self.open_hour.append(row)
            if len(self.open_hour) == 12:
                self.hours.append(np.mean(self.open_hour, axis=0))
                self.open_hour = []


def chart(tiers):
    fig, ax = plt.subplots(figsize=(3, 2), dpi=60)
    ax.plot([row[1].mean() for row in tiers.minutes])
    ax.fill_between(
        range(len(tiers.minutes)), [r[0].min() for r in tiers.minutes], [r[2].max() for r in tiers.minutes], alpha=0.3
    )
    out = io.BytesIO()
    fig.savefig(out, format="png")
    plt.close(fig)
    return len(out.getvalue())


def main():
    rng = np.random.default_rng(33)
    tiers = Tiers()
    drawn = 0
    for t in range(1100):
        channel = 20 + np.sin(t / 60) + rng.normal(0, 0.4, 2500)
        tiers.push(channel)
        if t % 140 == 139:
            drawn += chart(tiers) > 0
        time.sleep(0.0035)
    print("raw", len(tiers.raw), "minutes", len(tiers.minutes), "hours", len(tiers.hours), "charts", drawn)


if __name__ == "__main__":
    main()
