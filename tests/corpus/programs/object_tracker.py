"""Track bright blobs through camera frames with short-lived tracker objects that remember their last patches."""
import time

import numpy as np


class Tracker:
    patches = []
    keep = 8

    def __init__(self, y, x):
        self.y, self.x = y, x
        self.missed = 0

    def update(self, frame):
        y0, x0 = max(0, self.y - 6), max(0, self.x - 6)
        patch = frame[y0:y0 + 12, x0:x0 + 12]
        at = int(patch.argmax())
        self.y = y0 + at // patch.shape[1]
        self.x = x0 + at % patch.shape[1]
        strong = float(patch.max())
        if strong > 0.999:
            self.patches.append(patch)
        else:
            self.missed += 1
        return strong

    def template(self):
        recent = [p for p in self.patches[-self.keep:] if p.shape == (12, 12)]
        return np.mean(recent, axis=0) if recent else None


def capture(rng, shape=(150, 200)):
    return rng.random(shape)


def main():
    rng = np.random.default_rng(29)
    trackers = [Tracker(*map(int, rng.integers(10, 140, 2))) for _ in range(6)]
    contrast = 0.0
    for _ in range(450):
        frame = capture(rng)
        for i, tracker in enumerate(trackers):
            tracker.update(frame)
            if tracker.missed > 12:
                trackers[i] = Tracker(*map(int, rng.integers(10, 140, 2)))
        model = trackers[0].template()
        if model is not None:
            contrast += float(model.std())
        time.sleep(0.009)
    print("contrast", round(contrast, 3))


if __name__ == "__main__":
    main()
