"""In which order many numbers stand.

Covers: stable orders of millions of whole numbers. Sorting values is many times faster than sorting
positions, so value and position are packed into one number where both fit.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]
_BITS = 63


def rising(values: Ints) -> Ints:
    """Positions of values, the smallest first, equal ones in their order."""
    if len(values) < 2:
        return np.arange(len(values))
    least, bits = int(values.min()), (len(values) - 1).bit_length()
    if (int(values.max()) - least).bit_length() + bits > _BITS:
        return np.argsort(values, kind="stable")
    return _packed(values - least, bits)


def falling(values: Ints) -> Ints:
    """Positions of values, the largest first, equal ones in their order."""
    if len(values) < 2:
        return np.arange(len(values))
    most, bits = int(values.max()), (len(values) - 1).bit_length()
    if (most - int(values.min())).bit_length() + bits > _BITS:
        return np.argsort(-values, kind="stable")
    return _packed(most - values, bits)


def _packed(values: Ints, bits: int) -> Ints:
    """The order of values of at most 63 bits less those of a position; overwrites them."""
    values <<= bits
    values |= np.arange(len(values))
    values.sort()
    values &= (1 << bits) - 1
    return values
