"""Where random numbers come from when the program gives no seed, and how the same ones come again.

The process has one seed and one counter; whoever draws takes as many numbers of the counter as it
needs, so no two draws have the same. What a block draws in a stream of its own depends on nothing
else, and running it again in that stream draws the same.

Covers: seeds for ``randn`` and ``dropout``, streams. Does not cover: the numbers themselves.
See also: docs/reference/tape.md, "Memory or time".
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager

_MOST = (1 << 63) - 1
_WORD = (1 << 64) - 1


class _Stream:
    """A seed, and how many numbers of its counter were drawn."""

    __slots__ = ("counter", "seed")

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self.counter = 0


class _Here(threading.local):
    """The stream of the block that the calling thread is in; None: the process's."""

    stream: _Stream | None = None


_lock = threading.RLock()  # may be entered again, by garbage collection
_process = _Stream(int.from_bytes(os.urandom(8), "little") & _MOST)
_here = _Here()


def draw(count: int = 1) -> tuple[int, int]:
    """A seed, and the first of so many numbers of its counter that nobody else gets.

    Both are below 2**63.
    """
    stream = _here.stream
    if stream is not None:
        return _take(stream, count)
    with _lock:
        drawn = _take(_process, count)
    return drawn


def new_stream() -> int:
    """The seed of a stream that nobody else has."""
    seed, number = draw()
    word = (seed ^ number * 0xD1342543DE82EF95) & _WORD
    word = (word ^ word >> 32) * 0xDABA0B6EB09322E3 & _WORD
    return (word ^ word >> 32) & _MOST


@contextmanager
def in_stream(seed: int) -> Iterator[None]:
    """Inside the block this thread draws from the begin of a stream."""
    outer = _here.stream
    _here.stream = _Stream(seed)
    try:
        yield
    finally:
        _here.stream = outer


def _take(stream: _Stream, count: int) -> tuple[int, int]:
    first = stream.counter
    stream.counter = (first + count) & _MOST
    return stream.seed, first
