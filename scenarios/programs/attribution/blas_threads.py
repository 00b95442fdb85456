"""Matrix products from two threads: BLAS maps buffers of its own; some products are kept."""

import threading

import numpy as np

kept: list[np.ndarray] = []


def work(seed: int) -> None:
    rng = np.random.default_rng(seed)
    left, right = rng.random((160, 160)), rng.random((160, 160))
    for step in range(800):
        product = left @ right
        if step % 40 == 0:
            kept.append(product)


def main() -> None:
    for _ in range(2):
        threads = [threading.Thread(target=work, args=(seed,)) for seed in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    print(len(kept))


if __name__ == "__main__":
    main()
