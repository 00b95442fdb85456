"""Children are forked while the parent grows; each has a recording of its own."""

import os

import numpy as np


def child(table: np.ndarray) -> None:
    table *= 2
    kept = [np.full(10_000, float(step)) for step in range(200)]
    for _ in range(100):
        np.sqrt(np.arange(100_000.0)).sum()
    assert len(kept) == 200


def main() -> None:
    kept = []
    for step in range(600):
        kept.append(np.full(5_000, float(step)))
        np.sqrt(np.arange(100_000.0)).sum()
        if step % 200 == 100:
            pid = os.fork()
            if pid == 0:
                child(np.ones(500_000))
                os._exit(0)
            os.waitpid(pid, 0)
    print(len(kept))


if __name__ == "__main__":
    main()
