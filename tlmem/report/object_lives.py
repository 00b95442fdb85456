"""Single objects behind findings: the largest and the oldest that a line keeps, each with its life.

Covers: which objects, and where their histories come from. Does not cover: what is in a history
(``analysis.ledger.history``), how it is shown.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from tlmem.analysis.ledger.history import History, life_of
from tlmem.analysis.model import Finding
from tlmem.analysis.places import Places

if TYPE_CHECKING:
    from tlmem.recording.reader import Recording

Ints = NDArray[np.int64]

MOST_OBJECTS = 24
"""Each costs up to 50 ms of a long recording."""


@dataclass(frozen=True)
class Chosen:
    """An object of a finding, and what is special about it."""

    number: int
    why: str


def chosen_objects(
    recording: Recording, findings: Sequence[Finding], moment_ns: int, places: Places | None = None
) -> list[tuple[Chosen, ...]]:
    """For each finding the largest and the oldest object that its line keeps, or its example.

    Where a snapshot saw who holds neither, the largest of those whose holder it saw as well.

    Args:
        findings: most important first; when ``MOST_OBJECTS`` are chosen, others have none.
        moment_ns: what counts as kept.
        places: those of the recording, where they are at hand.
    """
    objects = recording.objects
    places = places or Places.of(recording)
    site = objects["born_site"].to_numpy(np.int64)
    group = places.group_of_site[np.where(site < len(places.group_of_site), site, 0)]
    number = objects.index.to_numpy(np.int64)
    size = objects["size_bytes"].to_numpy(np.int64)
    born, died = objects["born_ns"].to_numpy(np.int64), objects["died_ns"].to_numpy(np.int64)
    alive = (born <= moment_ns) & ((died < 0) | (died > moment_ns))
    group_of = {frame: row for row, frame in enumerate(places.frames)}
    seen = recording.holding_objects["object"].to_numpy(np.int64)
    known: set[int] = set()
    found: list[tuple[Chosen, ...]] = []
    for finding in findings:
        line = group_of.get(finding.site) if finding.site is not None else None
        mine: list[Chosen] = []
        kept = np.flatnonzero(alive & (group == (-1 if line is None else line)))
        if len(kept):
            mine = _of_line(number[kept], size[kept], born[kept], np.isin(number[kept], seen))
        elif finding.object is not None and finding.object in objects.index:
            mine = [Chosen(int(finding.object), "example")]
        if len(known | {each.number for each in mine}) > MOST_OBJECTS:
            mine = []
        known.update(each.number for each in mine)
        found.append(tuple(mine))
    return found


def _of_line(number: Ints, size: Ints, born: Ints, was_seen: NDArray[np.bool_]) -> list[Chosen]:
    """The largest and the oldest of some objects; one whose holders were seen is among them."""
    by_size = np.lexsort((born, ~was_seen, -size))
    largest, oldest = int(by_size[0]), int(np.lexsort((~was_seen, born))[0])
    if largest == oldest:
        found = {largest: "largest and oldest kept"}
    else:
        found = {largest: "largest kept", oldest: "oldest kept"}
    if was_seen.any() and not was_seen[list(found)].any():
        found[int(by_size[was_seen[by_size]][0])] = "largest with a known holder"
    return [Chosen(int(number[row]), why) for row, why in found.items()]


def lives(
    recording: Recording,
    chosen: Sequence[Sequence[Chosen]],
    places: Places | None = None,
) -> dict[int, History]:
    """The histories of chosen objects by number, in the order in which they were chosen."""
    numbers = tuple(dict.fromkeys(each.number for some in chosen for each in some))

    def made() -> dict[int, History]:
        known = places or Places.of(recording)
        return {number: life_of(recording, str(number), known) for number in numbers}

    return recording.kept(("lives", numbers), made) if numbers else {}
