"""Two threads put results into a queue that nobody reads."""

import queue
import threading

import numpy as np

OUTCOME = "leak"
CLASS = "cache-only-grows"
HELD_BY = "deque 'queue' of Queue (local variable 'results' of main() at queue_of_threads.py)"
COUNT = 12_000
BYTES = 192_000_000


def produce(results: "queue.Queue[np.ndarray]", seed: int) -> None:
    chance = np.random.default_rng(seed)
    for _ in range(6000):
        sample = chance.random(2_000)
        results.put(np.sort(sample))  # leaks here


def main() -> None:
    results: queue.Queue[np.ndarray] = queue.Queue()
    threads = [threading.Thread(target=produce, args=(results, seed)) for seed in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    print(f"{results.qsize()} results wait")


if __name__ == "__main__":
    main()
