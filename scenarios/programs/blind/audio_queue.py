"""A producer, a consumer and a writer in threads: frames of sound by queues, spectra kept."""

import queue
import threading

import numpy as np

frames: queue.Queue[np.ndarray | None] = queue.Queue(24)
spectra: queue.Queue[np.ndarray | None] = queue.Queue(24)
kept: list[np.ndarray] = []


def produce() -> None:
    rng = np.random.default_rng(17)
    for _n in range(900):
        frames.put(rng.standard_normal(int(rng.integers(8_000, 48_000))).astype(np.float32))
    frames.put(None)


def transform() -> None:
    window = np.hanning(2048).astype(np.float32)
    while (frame := frames.get()) is not None:
        pieces = np.lib.stride_tricks.sliding_window_view(frame, 2048)[::1024] * window
        spectra.put(np.abs(np.fft.rfft(pieces, axis=1)))
    spectra.put(None)


def write() -> None:
    while (spectrum := spectra.get()) is not None:
        kept.append(np.log1p(spectrum[:, ::4]).astype(np.float16))
        if len(kept) == 300:
            kept[:] = [np.concatenate(kept)]


threads = [threading.Thread(target=each) for each in (produce, transform, write)]
for each in threads:
    each.start()
for each in threads:
    each.join()
print(sum(each.nbytes for each in kept))
