"""Native memory that grows while PyTorch's tensors come in sizes that were not there before.

Libraries below PyTorch prepare code, plans and scratch memory for the sizes that they meet, and
keep them: sequences of random lengths let native memory rise evenly for as long as new lengths
come, which may be the whole of a run. A leak of a few kilobytes in each step looks the same.

Covers: rises that new sizes account for. Does not cover: whether native
memory rises (``process_growth``).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from tlmem.analysis.growth.process_growth import Resident, Rise
from tlmem.analysis.lifetimes import Lifetimes
from tlmem.analysis.rules import RULES


@dataclass(frozen=True)
class NewSizes:
    """A rise of native memory, and how many sizes of tensors came for the first time meanwhile."""

    rise: Rise
    count: int


def without_new_sizes(resident: Resident, lives: Lifetimes) -> tuple[Resident, NewSizes | None]:
    """What the samples say but for such a rise, and that rise."""
    for rise in resident.rises:
        if rise.kind != "native" or rise.sampled:
            continue
        count = count_of(lives, rise)
        if count >= RULES.few_survivors and rise.bytes <= count * RULES.native_per_size:
            others = tuple(other for other in resident.rises if other is not rise)
            return replace(resident, rises=others), NewSizes(rise, count)
    return resident, None


def count_of(lives: Lifetimes, rise: Rise) -> int:
    """How many sizes of tensors came for the first time while it lasted."""
    if lives.folded:
        return 0
    rows = np.flatnonzero(lives.torch)
    _, first = np.unique(lives.size[rows], return_index=True)
    born = lives.born[rows[first]]
    end_ns = rise.since_ns + rise.seconds * 1e9
    return int(np.count_nonzero((born >= rise.since_ns) & (born <= end_ns)))
