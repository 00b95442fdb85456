"""A library in C that only calls ``malloc`` and ``free``: nothing asks more of a heap profiler."""

import ctypes
from collections.abc import Callable


def prepare(path: str) -> dict[str, Callable[[int], object]]:
    """A unit is 10,000 blocks; ``path`` is the compiled library."""
    library = ctypes.CDLL(path)
    library.storm.argtypes = [ctypes.c_long]
    return {"malloc_storm": lambda units: library.storm(10_000 * units)}
