"""An array over the address of a tensor is used when the scope has freed it: seen in quarantine."""

import ctypes

import numpy as np

import tlmem

OUTCOME = "stable"
RECORD = "--zombie"
EXIT = "SIGSEGV"
COUNT = 1


def array_over(tensor: tlmem.Tensor) -> np.ndarray:
    """As bindings of other libraries make it."""
    address = tensor.numpy().ctypes.data
    return np.ctypeslib.as_array((ctypes.c_float * tensor.size).from_address(address))


def image_of(step: int) -> np.ndarray:
    with tlmem.scope("image"):
        return array_over(tlmem.full((64, 64), float(step)))


def main() -> None:
    total = 0.0
    for step in range(8000):
        with tlmem.scope("step"):
            total += float(tlmem.full((64, 64), float(step)).numpy().sum())
    image = image_of(7)
    total += float(image[0].item())  # use-after-free here
    print(f"{total:.3e}")


if __name__ == "__main__":
    main()
