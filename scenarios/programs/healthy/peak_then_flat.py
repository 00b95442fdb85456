"""Much memory for a moment at the start, little from then on: a peak is no present (B20)."""

import numpy as np

OUTCOME = "stable"


def prepare() -> np.ndarray:
    """The principal axis of points that need a hundred megabytes only here."""
    points = np.random.default_rng(20).normal(size=(1_500_000, 8))
    centred = points - points.mean(axis=0)
    return np.linalg.eigh(centred.T @ centred)[1][:, -1]


def main() -> None:
    axis, total = prepare(), 0.0
    for step in range(20_000):
        row = np.full(8, step / 7) * axis
        total += float(row.sum())
    print(f"{total:.3e}")


if __name__ == "__main__":
    main()
