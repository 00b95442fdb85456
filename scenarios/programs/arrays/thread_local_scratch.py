"""Threads keep their scratch arrays in thread-local storage, and one more for each request.

Fixed: Threads keep one scratch array each in thread-local storage, and use it again.
"""

import threading

import numpy as np
from tlmem.scenarios.harness.switch import FIXED

OUTCOME = "leak"
CLASS = "cache-only-grows"
HELD_BY = "list 'arrays' (thread-local, variable 'scratch', module __main__)"

scratch = threading.local()


def handle(request: int) -> float:
    if not hasattr(scratch, "arrays"):
        scratch.arrays = []
    if FIXED and scratch.arrays:
        scratch.arrays[-1][:] = request / 7
    else:
        scratch.arrays.append(np.full(2_500, request / 7))  # leaks here
    work = scratch.arrays[-1]
    return float((work * 2).sum())


def serve(results: list[float], requests: int) -> None:
    for request in range(requests):
        results[0] += handle(request)


def main() -> None:
    results = [0.0]
    helper = threading.Thread(target=serve, args=(results, 100))
    helper.start()
    serve(results, 40_000 if FIXED else 9000)
    helper.join()
    print("served" if results[0] > 0 else "idle")


if __name__ == "__main__":
    main()
