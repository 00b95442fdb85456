"""Audio windows from a memory-mapped recording; failures are collected to be shown at the end."""
import os
import sys
import tempfile
import time

import numpy as np

T = float(sys.argv[1]) if len(sys.argv) > 1 else 5.0
RATE = 8000
WIN = 4096


class ClippedError(ValueError):
    pass


def record(path, seconds=30):
    rng = np.random.default_rng(0)
    t = np.arange(RATE * seconds) / RATE
    sig = 0.6 * np.sin(2 * np.pi * 440 * t) + rng.normal(0, 0.15, t.size)
    (sig * 32767).clip(-32768, 32767).astype(np.int16).tofile(path)


def analyse(raw):
    win = raw.astype(np.float64) / 32768.0
    spec = np.abs(np.fft.rfft(win * np.hanning(WIN)))
    power = spec**2
    if np.abs(win).max() > 0.99:
        raise ClippedError(f"clipped, power {power.sum():.0f}")
    return int(power.argmax()) * RATE / WIN


def main():
    rng = np.random.default_rng(1)
    failed, pitches = [], []
    with tempfile.TemporaryDirectory() as tmp:
        path = os.path.join(tmp, "rec.pcm")
        record(path)
        audio = np.memmap(path, dtype=np.int16, mode="r")
        start = time.perf_counter()
        while time.perf_counter() - start < T:
            at = int(rng.integers(0, audio.size - WIN))
            try:
                pitches.append(analyse(audio[at:at + WIN]))
            except ClippedError as exc:
                failed.append((at, exc))
            time.sleep(0.002)
        del audio
    print("pitches", len(pitches) >= 0, "failed", len(failed) > 0)


main()
