"""The queue of queue-of-threads has a bound, and one thread more reads it."""

import queue
import threading

import numpy as np

OUTCOME = "stable"
SAMPLES = 8000


def produce(results: "queue.Queue[np.ndarray]", seed: int) -> None:
    chance = np.random.default_rng(seed)
    for _ in range(SAMPLES):
        sample = chance.random(2_000)
        results.put(np.sort(sample))


def consume(results: "queue.Queue[np.ndarray]", count: int, totals: list[float]) -> None:
    for _ in range(count):
        totals[0] += float(results.get()[-1])


def main() -> None:
    results: queue.Queue[np.ndarray] = queue.Queue(maxsize=64)
    totals = [0.0]
    threads = [threading.Thread(target=produce, args=(results, seed)) for seed in range(2)]
    threads.append(threading.Thread(target=consume, args=(results, 2 * SAMPLES, totals)))
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    print(f"{totals[0]:.3e}")


if __name__ == "__main__":
    main()
