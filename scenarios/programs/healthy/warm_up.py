"""Everything is loaded first and stays; then the same data are worked on again and again."""

import numpy as np

OUTCOME = "stable"


def load(number: int) -> np.ndarray:
    return np.random.default_rng(number).random(20_000)


def main() -> None:
    data = {number: load(number) for number in range(300)}
    best = 0.0
    for _ in range(40):
        for values in data.values():
            centred = values - values.mean()
            best = max(best, float((centred * centred).sum()))
    print(f"{best:.3f}")


if __name__ == "__main__":
    main()
