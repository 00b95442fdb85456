"""Lines that grow, each with what the ledger says of its survivors: the ground of leak classes.

Covers: which objects survive at a growing line, who holds them when it is judged, who did before.
Does not cover: whether a line grows (``growth``), what kind of leak it is (``analysis.leaks``).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from tlmem.analysis.growth.growing_sites import GrowingSite
from tlmem.analysis.holders.runtime_holders import holders_in, together
from tlmem.analysis.holders.snapshots import (
    PYTHON,
    Chain,
    Look,
    Snapshots,
    holders_of,
    objects_with_graph,
)
from tlmem.analysis.lifetimes import Lifetimes
from tlmem.analysis.model import Finding, Holder, StackFrame
from tlmem.analysis.places import Places, allocated_at, place
from tlmem.analysis.rules import RULES
from tlmem.events import TAPE_OP_BITS, HolderKind
from tlmem.units import format_count

if TYPE_CHECKING:
    from tlmem.recording.reader import Recording

MOST_LINES = 20
"""Growing lines that are looked at, worst first."""
FEW = 0.1
"""A holder of fewer of the survivors than this share is not named in a sentence."""
MOST_NAMES = 3
EVERY = slice(None)

Ints = NDArray[np.int64]


def with_graphs(lives: Lifetimes, recording: Recording) -> Lifetimes:
    """The same, with which tensors snapshots saw keep an autograd graph."""
    if not lives.torch.any():
        return lives
    return replace(lives, with_graph=np.isin(lives.ordinal, objects_with_graph(recording)))


@dataclass(frozen=True)
class Survivors:
    """A growing line and its survivors.

    ``rows`` are the survivors in the ``Lifetimes``; ``known`` of them are in the ledger, which has
    none of arrays and none of what a size limit folded. ``now`` are the rows of the ledger that
    hold one at ``judged_ns`` and ``before`` those that did earlier; ``holders`` are the same
    as ``now`` in words, most objects first, and then those in Python: of the ``chains`` that held
    survivors when a snapshot last saw them. ``looks`` are what snapshots before the end saw.
    """

    recording: Recording
    places: Places
    growth: GrowingSite
    lives: Lifetimes
    judged_ns: int
    rows: Ints
    known: int
    now: pd.DataFrame
    before: pd.DataFrame
    holders: tuple[Holder, ...]
    chains: tuple[Chain, ...] = ()
    looks: tuple[Look, ...] = ()

    @property
    def line(self) -> StackFrame:
        """The line that makes them."""
        return self.places.frames[self.growth.group]

    @property
    def noun(self) -> str:
        """The survivors in words, such as ``1,500 objects allocated at model.py:10``."""
        what = self.lives.noun(self.growth.group)
        count = self.growth.survivors
        text = f"{format_count(count)} {what}{'' if count == 1 else 's'} allocated "
        text += allocated_at(self.line)
        if 0 < self.known < RULES.nearly_all * len(self.rows):
            text += (
                f", judged by the {format_count(self.known)} whose holders are in the recording,"
            )
        return text

    def held_only_by(self, *kinds: HolderKind) -> bool:
        """Whether nearly all of the survivors are held by holders of these kinds and no others."""
        if self.known < RULES.fewest_survivors:
            return False
        fits = self.now["kind"].isin([int(kind) for kind in kinds])
        others = self.now.loc[~fits, "object"].nunique()
        return self.now["object"].nunique() - others >= RULES.nearly_all * self.known

    def nearly_all(self, rows: pd.DataFrame) -> bool:
        """Whether nearly all of the survivors are among these rows of the ledger."""
        return (
            self.known >= RULES.fewest_survivors
            and rows["object"].nunique() >= RULES.nearly_all * self.known
        )

    @property
    def holder_names(self) -> str:
        """Who holds most of them by the ledger, at most ``MOST_NAMES``, in a sentence."""
        named = [holder for holder in self.holders if holder.kind not in ("none", PYTHON)]
        names = [holder.name for holder in named if holder.count >= FEW * len(self.rows)]
        return " and ".join(names[:MOST_NAMES])

    @property
    def taken_at(self) -> str:
        """Where the first of these took most of what it holds, in a sentence."""
        known = (holder for holder in self.holders if holder.kind not in ("none", PYTHON))
        site = next((holder.site for holder in known), None)
        return place(site) if site is not None else "a place that is not in the recording"

    def finding(self, kind: str, evidence: str, severity: str = "warning") -> Finding:
        """What a class says of this line."""
        growth = self.growth
        return Finding(
            kind=kind,
            severity=severity,
            count=growth.survivors,
            bytes=growth.bytes,
            evidence=evidence,
            object=growth.example,
            site=self.line,
            stack=self.places.stack(growth.site),
            holders=self.holders,
            slope_bytes_per_s=growth.slope_bytes_per_s,
        )


def is_torch(line: Survivors) -> bool:
    """Whether the survivors of a line are PyTorch's tensors."""
    return len(line.rows) > 0 and bool(line.lives.torch[line.rows].all())


def ops_of(rows: pd.DataFrame) -> Ints:
    """The op of each row of the ledger whose holder is a tape."""
    return rows["number"].to_numpy(np.int64) >> TAPE_OP_BITS


def survivors_of_lines(
    recording: Recording, places: Places, lives: Lifetimes, growths: list[GrowingSite]
) -> list[Survivors]:
    """Growing lines with what keeps them, in their order."""
    if not growths:
        return []
    snapshots = Snapshots(recording)
    return [survivors_of_line(recording, places, lives, growth, snapshots) for growth in growths]


def survivors_of_line(
    recording: Recording,
    places: Places,
    lives: Lifetimes,
    growth: GrowingSite,
    snapshots: Snapshots,
) -> Survivors:
    """One of them."""
    rows = surviving_rows(lives, growth)
    # Of what is soon in another one's place a snapshot saw those before.
    line = np.flatnonzero(lives.group == growth.group) if growth.manner == "renewed" else rows
    chains = snapshots.chains_of(lives.ordinal[line])
    judged_ns = when_judged(lives, growth, rows)
    rows = rows[lives.died[rows] > judged_ns]
    objects = lives.ordinal[rows]
    ledger = recording.holders if lives.runtime[rows].any() else recording.holders.iloc[:0]
    ledger = ledger[ledger["object"].isin(objects) & (ledger["begin_ns"] <= judged_ns)]
    ended = (ledger["end_ns"] >= 0) & (ledger["end_ns"] <= judged_ns)
    now = ledger[~ended]
    said = recording.held_at(now["object"].unique(), judged_ns) if len(now) else None
    known = int(ledger["object"].nunique())
    return Survivors(
        recording=recording,
        places=places,
        growth=growth,
        lives=lives,
        judged_ns=judged_ns,
        rows=rows,
        known=known,
        now=now,
        before=ledger[ended],
        holders=together(
            holders_in(said, len(rows), places) if said is not None else (), holders_of(chains)
        ),
        chains=tuple(chains),
        looks=tuple(snapshots.looks_at(objects)),
    )


def when_judged(lives: Lifetimes, growth: GrowingSite, rows: Ints) -> int:
    """When holders are asked for: at the end of the run, if nearly all survivors were there then.

    At the birth of the last one, when a line is judged, that one has no holder yet.
    """
    later = max(growth.judged_ns, lives.judged_ns)
    there = np.count_nonzero(lives.died[rows] > later)
    return later if there >= RULES.nearly_all * len(rows) else growth.judged_ns


def surviving_rows(lives: Lifetimes, growth: GrowingSite, among: Ints | slice = EVERY) -> Ints:
    """Objects of a line, of its call path if only that one grows, alive when it is judged.

    Args:
        among: the rows of ``lives`` that are looked at.
    """
    rows = np.flatnonzero(
        (lives.group[among] == growth.group)
        & (lives.born[among] <= growth.judged_ns)
        & (lives.died[among] > max(growth.judged_ns, lives.unwinding_ns))
    )
    rows = rows if isinstance(among, slice) else among[rows]
    return rows[growth.is_of(lives, rows)]
