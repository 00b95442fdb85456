"""Blocks of native code and of Python that ``record --heap`` has, as malloc handed them out.

Covers: which of the sampled blocks came from malloc, how many each one stands for, and one clock
for them and the arrays. Does not cover: the arrays (``host_trace``).

Small objects of Python lie in arenas that it maps by itself, and libraries map memory, too; neither
is malloc's, and the recording says which blocks are.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from tlmem.analysis.lifetimes import NEVER
from tlmem.replaying.trace import LARGEST_BLOCK

if TYPE_CHECKING:
    from tlmem.recording.reader import Recording

MOST_COPIES = 16
"""A sampled block is replayed as so many at most, larger ones then, as it stands for many."""

Ints = NDArray[np.int64]


@dataclass(frozen=True)
class HeapBlocks:
    """Blocks in order of their births. ``born`` and ``died`` are places in ``time_ns``, the clock
    of arrays with these births and deaths between (``NEVER``: it is alive at the end). ``shift`` is
    the place in it of each event of arrays. ``every`` says that none is missing; else each stands
    for others, and sums of ``size`` are estimates.
    """

    size: Ints
    born: Ints
    died: Ints
    born_thread: Ints
    died_thread: Ints
    time_ns: Ints
    shift: Ints
    every: bool

    def __len__(self) -> int:
        return len(self.size)


def heap_blocks(recording: Recording, time_ns: Ints) -> HeapBlocks:
    """The blocks of a recording.

    Args:
        time_ns: the time of each event of arrays, ascending.
    """
    table = recording.heap
    every = len(table) > 0 and recording.heap_rate == 1 and recording.fold is None
    table = table[table["of_malloc"] & table["size_bytes"].between(1, LARGEST_BLOCK)]
    size, weight = table["size_bytes"].to_numpy(np.int64), table["weight"].to_numpy(np.float64)
    born, died = table["born_ns"].to_numpy(np.int64), table["died_ns"].to_numpy(np.int64)
    began, gone = (table[f"{end}_thread"].to_numpy(np.int64) for end in ("born", "died"))
    if not every:
        copies = np.clip(np.round(weight), 1, MOST_COPIES).astype(np.int64)
        size = np.maximum(1, np.round(size * weight / copies)).astype(np.int64)
        size, born, died, began, gone = (
            np.repeat(each, copies) for each in (size, born, died, began, gone)
        )
    ended = np.flatnonzero(died >= 0)
    change_ns = np.concatenate([born, died[ended]])
    order = np.argsort(change_ns, kind="stable")
    behind = np.searchsorted(time_ns, change_ns[order], side="right")
    place = np.empty(len(order), np.int64)
    place[order] = behind + np.arange(len(order))
    death = np.full(len(born), NEVER, np.int64)
    death[ended] = place[len(born) :]
    return HeapBlocks(
        size=size,
        born=place[: len(born)],
        died=death,
        born_thread=began,
        died_thread=gone,
        time_ns=np.insert(time_ns, behind, change_ns[order]),
        shift=np.arange(len(time_ns))
        + np.searchsorted(behind, np.arange(len(time_ns)), side="right"),
        every=every,
    )
