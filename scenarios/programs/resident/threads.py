"""Four threads at once, each with arrays of its own in an arena of its own."""

import threading
import time

import numpy as np


def work(seed: int) -> None:
    chance = np.random.default_rng(seed)
    kept = []
    for _ in range(40):
        kept += [np.ones(int(n)) for n in chance.integers(500, 12_000, 8)]
        kept = kept[-200:]
        time.sleep(0.01)


def main() -> None:
    threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    time.sleep(0.1)


if __name__ == "__main__":
    main()
