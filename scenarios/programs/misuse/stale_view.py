"""An array over the address of a tensor is used when the scope has freed it: seen in quarantine.

Fixed: What stale-view returns is the tensor's own array, which keeps the memory alive.
"""

import ctypes

import numpy as np
from tlmem.scenarios.harness.switch import FIXED, repeat

import tlmem

OUTCOME = "stable"
RECORD = "--zombie"
EXIT = "SIGSEGV"
COUNT = 1


def array_over(tensor: tlmem.Tensor) -> np.ndarray:
    """As bindings of other libraries make it."""
    own = tensor.numpy()
    if FIXED:
        return own
    memory = (ctypes.c_float * tensor.size).from_address(own.ctypes.data)
    return np.ctypeslib.as_array(memory)


def image_of(step: int) -> np.ndarray:
    with tlmem.scope("image"):
        return array_over(tlmem.full((64, 64), float(step)))


def main() -> None:
    total = 0.0
    for step in repeat(8000, fixed=4000):
        with tlmem.scope("step"):
            total += float(tlmem.full((64, 64), float(step)).numpy().sum())
    image = image_of(7)
    total += float(image.flat[0])  # use-after-free here
    print(f"{total:.3e}")


if __name__ == "__main__":
    main()
