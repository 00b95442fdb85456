"""Validate a stream of measurement chunks and print a summary of the failures at the end of the run."""
import time

import numpy as np


class ChunkError(ValueError):
    pass


class Report:
    def __init__(self):
        self.ok = 0
        self.failures = []

    def failed(self, index, error):
        self.failures.append((index, error))

    def summary(self):
        kinds = {}
        for _, error in self.failures:
            kinds[str(error)] = kinds.get(str(error), 0) + 1
        return {"ok": self.ok, **kinds}


def spectrum(chunk):
    centred = chunk - chunk.mean()
    power = np.abs(np.fft.rfft(centred)) ** 2
    if power[40:80].sum() > 0.12 * power.sum():
        raise ChunkError("interference")
    return float(power.max())


def check(rng, index):
    chunk = rng.normal(size=4096)
    if index % 6 == 1:
        chunk += 3.0 * np.sin(np.arange(4096) * 0.09)
    if index % 13 == 0:
        chunk[5] = np.nan
    if np.isnan(chunk).any():
        raise ChunkError("missing values")
    return spectrum(chunk)


def main():
    rng = np.random.default_rng(77)
    report = Report()
    best = 0.0
    for index in range(900):
        try:
            best = max(best, check(rng, index))
            report.ok += 1
        except ChunkError as error:
            report.failed(index, error)
        time.sleep(0.005)
    print(report.summary(), "best", round(best, 1))


if __name__ == "__main__":
    main()
