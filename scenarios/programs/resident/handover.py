"""Threads make arrays and end; the first thread drops them later."""

import queue
import threading
import time

import numpy as np


def produce(results: "queue.Queue[np.ndarray]", size: int) -> None:
    for _ in range(20):
        results.put(np.ones(size))
        time.sleep(0.002)


def main() -> None:
    results: queue.Queue[np.ndarray] = queue.Queue()
    for batch in range(6):
        makers = [threading.Thread(target=produce, args=(results, 9_000 + n)) for n in range(3)]
        for maker in makers:
            maker.start()
        for maker in makers:
            maker.join()
        while results.qsize() > 30 * batch:
            results.get()
        time.sleep(0.03)


if __name__ == "__main__":
    main()
