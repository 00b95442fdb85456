"""What stale-view returns is the tensor's own array, which keeps the memory alive."""

import numpy as np
from tlmem.scenarios.harness.switch import long_enough

import tlmem

OUTCOME = "stable"
RECORD = "--zombie"


def array_over(tensor: tlmem.Tensor) -> np.ndarray:
    """As bindings of other libraries make it."""
    return tensor.numpy()


def image_of(step: int) -> np.ndarray:
    with tlmem.scope("image"):
        return array_over(tlmem.full((64, 64), float(step)))


def main() -> None:
    total = 0.0
    for step in long_enough(4000):
        with tlmem.scope("step"):
            total += float(tlmem.full((64, 64), float(step)).numpy().sum())
    image = image_of(7)
    total += float(image[0].sum())
    print(f"{total:.3e}")


if __name__ == "__main__":
    main()
