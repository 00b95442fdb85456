"""A tensor is registered where it is made, and its wrapper takes it as it is."""

import tlmem

OUTCOME = "stable"


class Wrapped:
    """Leaves what it wraps to the scope that it is in."""

    def __init__(self, tensor: tlmem.Tensor) -> None:
        self.tensor = tensor


def main() -> None:
    total = 0.0
    for step in range(16_000):
        with tlmem.scope("step"):
            batch = tlmem.full((16, 64), step)
            total += float(Wrapped(batch).tensor.sum().item())
    print(f"{total:.3e}")


if __name__ == "__main__":
    main()
