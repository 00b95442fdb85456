"""Lines of a snapshot whose survivors were made in one pass: what it saves stays until it is over.

A forward pass keeps what its backward pass needs, a backward pass makes gradients, the first step
of an optimizer its state: within one of them memory rises as evenly as with a leak. The trace of a
snapshot may be all within one pass, so a line is judged only when several passes left survivors.

Covers: growing lines of imported snapshots. Does not cover: programs that were recorded as a whole,
which show what the pass leaves when it is over.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from tlmem.analysis.growth.growing_sites import GrowingSite
from tlmem.analysis.lifetimes import Lifetimes, is_imported
from tlmem.analysis.model import Finding
from tlmem.analysis.peak.blocks import blocks_of
from tlmem.analysis.peak.passes import passes_of
from tlmem.analysis.peak.phases import Phase
from tlmem.analysis.places import Places, allocated_at
from tlmem.analysis.rules import RULES
from tlmem.units import counted, format_bytes, format_count

if TYPE_CHECKING:
    from tlmem.recording.reader import Recording

WHERE = {
    Phase.FORWARD: "one forward pass, which keeps what its backward pass needs",
    Phase.BACKWARD: "one backward pass, which makes the gradients",
    Phase.OPTIMIZER: "one step of the optimizer, which makes its state once",
}
"""The passes that keep memory, in words."""
PASSING = (*WHERE, Phase.RECOMPUTED, Phase.SEED)


@dataclass(frozen=True)
class OnePass:
    """Lines that grow within one pass, the one with most bytes first, and which."""

    growths: tuple[GrowingSite, ...]
    phase: Phase

    def finding(self, lives: Lifetimes, places: Places) -> Finding:
        """What is said of them."""
        growth, *others = self.growths
        frame = places.frames[growth.group]
        beside = ""
        if others:
            beside = (
                f", and {format_count(sum(each.survivors for each in others))} "
                f"({format_bytes(sum(each.bytes for each in others))}) at "
                f"{counted(len(others), 'other line')}"
            )
        return growth.info(
            "one-pass",
            places,
            f"{format_count(growth.survivors)} {lives.noun(growth.group)}s "
            f"({format_bytes(growth.bytes)}) allocated {allocated_at(frame)} were kept{beside}, "
            f"within {WHERE[self.phase]}.",
        )


def within_one_pass(
    recording: Recording, lives: Lifetimes, growths: list[GrowingSite]
) -> list[OnePass]:
    """Those of the growing lines of a snapshot of which nearly all survivors are of one pass.

    Passes are in the order of their lines, each with all of them.
    """
    if not is_imported(recording) or not growths:
        return []
    blocks = blocks_of(recording)
    passes = passes_of(blocks)
    if not len(passes.first):
        return []
    found: dict[tuple[int, Phase], list[GrowingSite]] = {}
    for growth in growths:
        if growth.rows is None or not len(growth.rows):
            continue
        mine = np.isin(blocks.number, lives.ordinal[growth.rows])
        mine &= np.isin(blocks.born_phase, PASSING)
        run = passes.run_of(blocks.born[mine])
        opens, counts = np.unique(passes.opens[run], return_counts=True)
        if not len(counts) or counts.max() < RULES.nearly_all * len(growth.rows):
            continue
        begin = int(opens[counts.argmax()])
        phase = Phase(int(passes.phase[run[passes.opens[run] == begin][0]]))
        if phase in WHERE:
            found.setdefault((begin, phase), []).append(growth)
    return [OnePass(tuple(lines), phase) for (_, phase), lines in found.items()]
