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
    import pandas as pd

    from tlmem.recording.reader import Recording

MOST_COPIES = 16
"""A sampled block is replayed as so many at most, larger ones then, as it stands for many."""

Ints = NDArray[np.int64]


@dataclass(frozen=True)
class HeapBlocks:
    """Blocks in order of their births. ``born`` and ``died`` are places in ``time_ns``, the clock
    of arrays with these births and deaths between (``NEVER``: it is alive at the end). ``shift`` is
    the place in it of each event of arrays. ``resized`` is the place among these blocks of the one
    that was resized; -1: it is new, or not every block is known. ``every`` says that none is
    missing; else each stands for others, and sums of ``size`` are estimates.
    """

    size: Ints
    born: Ints
    died: Ints
    born_thread: Ints
    died_thread: Ints
    resized: Ints
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
    resized = _resized(table) if every else np.full(0, -1)
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
        resized=resized if every else np.full(len(born), -1),
        time_ns=np.insert(time_ns, behind, change_ns[order]),
        shift=np.arange(len(time_ns))
        + np.searchsorted(behind, np.arange(len(time_ns)), side="right"),
        every=every,
    )


def _resized(table: pd.DataFrame) -> Ints:
    """The place of the block that each one was before; -1: it is new."""
    found = np.full(len(table), -1, np.int64)
    born, died = table["born_ns"].to_numpy(np.int64), table["died_ns"].to_numpy(np.int64)
    began, gone = (table[f"{end}_thread"].to_numpy(np.int64) for end in ("born", "died"))
    renewed = table["is_resize"].to_numpy(bool)
    for thread in np.unique(began[renewed]):
        mine = np.flatnonzero(renewed & (began == thread))
        ended = np.flatnonzero((died >= 0) & (gone == thread))
        if not len(ended):
            continue
        ended = ended[np.argsort(died[ended], kind="stable")]
        last = np.searchsorted(died[ended], born[mine], side="right") - 1
        mine, last = mine[last >= 0], last[last >= 0]
        _, first = np.unique(last, return_index=True)  # one block is resized only once
        former = ended[last[first]]
        found[mine[first]] = np.where(former != mine[first], former, -1)
    return found
