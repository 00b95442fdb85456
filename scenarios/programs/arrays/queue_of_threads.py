"""Two threads put results into a queue that nobody reads.

Fixed: The queue of queue-of-threads has a bound, and one thread more reads it.
"""

import queue
import threading

import numpy as np
from tlmem.scenarios.harness.switch import FIXED

OUTCOME = "leak"
CLASS = "cache-only-grows"
HELD_BY = "deque 'queue' of Queue (local variable 'results' of main() at queue_of_threads.py)"
COUNT = 12_000
BYTES = 192_000_000
SAMPLES = 8000 if FIXED else 6000


def produce(results: "queue.Queue[np.ndarray]", seed: int) -> None:
    chance = np.random.default_rng(seed)
    for _ in range(SAMPLES):
        sample = chance.random(2_000)
        results.put(np.sort(sample))  # leaks here


def consume(results: "queue.Queue[np.ndarray]", count: int, totals: list[float]) -> None:
    for _ in range(count):
        totals[0] += float(results.get()[-1])


def main() -> None:
    results: queue.Queue[np.ndarray] = queue.Queue(maxsize=64 if FIXED else 0)
    totals = [0.0]
    threads = [threading.Thread(target=produce, args=(results, seed)) for seed in range(2)]
    if FIXED:
        threads.append(threading.Thread(target=consume, args=(results, 2 * SAMPLES, totals)))
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    print(f"{totals[0]:.3e}, {results.qsize()} results wait")


if __name__ == "__main__":
    main()
