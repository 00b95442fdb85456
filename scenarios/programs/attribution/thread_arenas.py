"""Eight threads allocate and free small blocks, each in an arena of its own, and keep some."""

import threading

import numpy as np

kept: list[np.ndarray] = []


def work(seed: int) -> None:
    rng = np.random.default_rng(seed)
    for _ in range(150):
        blocks = [np.ones(int(size)) for size in rng.integers(50, 4000, 200)]
        kept.extend(blocks[::20])


def main() -> None:
    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    print(len(kept))


if __name__ == "__main__":
    main()
