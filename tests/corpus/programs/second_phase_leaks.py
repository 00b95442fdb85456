import time
import numpy as np


def load(seconds):
    end = time.monotonic() + seconds
    s = 0.0
    while time.monotonic() < end:
        s += np.random.default_rng(3).random(50_000).mean()
        time.sleep(0.005)
    return s


def train(seconds, w):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        w -= 0.01 * np.tanh(w)
        time.sleep(0.003)


class Evaluator:
    predictions = []

    def run(self, seconds, w):
        end = time.monotonic() + seconds
        i = 0
        while time.monotonic() < end:
            self.predictions.append(np.maximum(w * i, 0))
            i += 1
            time.sleep(0.005)


w = np.linspace(-1, 1, 15_000)
load(0.5)
train(1.0, w)
Evaluator().run(2.9, w)
