"""Freed memory goes to the quarantine of ``--zombie``, which keeps it for a while."""

import numpy as np

OPTIONS = "--zombie=32MB"


def main() -> None:
    kept, total = [], 0.0
    for step in range(20_000):
        table = np.full(4_000, float(step))
        total += float(np.sqrt(table).sum())
        if step % 40 == 0:
            kept.append(table)
    print(f"{total:.6e} {len(kept)}")


if __name__ == "__main__":
    main()
