"""Does the simulator do what the recorded allocator did? Reserved memory over time says so.

Covers: the comparison with the segments of a snapshot, under its own settings and from its own
start. Does not cover: what follows from it; the command refuses to answer above ``MOST_ERROR``.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tlmem.replaying.cuda import SMALL, Simulator
from tlmem.replaying.trace import ALLOC, FREE, MOST_ERROR, WAIT, Recorded, Trace
from tlmem.units import format_count

Ints = NDArray[np.int64]


@dataclass(frozen=True)
class Parting:
    """The first moment at which both differ by more than ``MOST_ERROR``; bytes, and the block."""

    time_ns: int
    block: int
    replayed_bytes: int
    recorded_bytes: int


@dataclass(frozen=True)
class Proof:
    """How near the replay came to the recorded allocator, as shares of the recorded peak.

    ``error`` is the difference of the peaks or the mean difference after an allocation, whichever
    is larger; ``largest`` is the largest difference after any one of them. ``compared`` is the
    number of allocations, ``placed`` how many of them lie where the recorded allocator put them, of
    expandable segments at the same distance from their begin. ``recorded_peak`` and
    ``replayed_peak`` are bytes after an allocation. ``parting`` is None where no difference is
    above ``MOST_ERROR``.
    """

    error: float
    largest: float
    recorded_peak: int
    replayed_peak: int
    compared: int
    placed: int
    parting: Parting | None
    problems: tuple[str, ...]

    @property
    def holds(self) -> bool:
        """Whether answers may be given."""
        return self.error <= MOST_ERROR


def prove(trace: Trace) -> Proof | None:
    """Compares; None when nothing of the recorded allocator is known.

    Raises:
        MemoryError: no memory for the replay.
        Contradiction: the recording contradicts itself.
    """
    recorded = trace.recorded
    if recorded is None or recorded.reserved.max(initial=-1) <= 0:
        return None
    simulator = Simulator(recorded.settings, trace, recorded)
    problems = list(recorded.problems)
    if simulator.misfits:
        problems.append(
            f"{format_count(simulator.misfits)} segments that are older than the trace contradict "
            "others, and are left out of the comparison"
        )
    lost = np.array(sorted(simulator.missing), np.int64)
    events, times, reserved = recorded.events, recorded.time_ns, recorded.reserved
    if len(lost):
        kept = ~(np.isin(events["kind"], (ALLOC, FREE, WAIT)) & np.isin(events["block"], lost))
        events, times, reserved = events[kept], times[kept], reserved[kept]
    steps = simulator.run(events, with_steps=True)
    assert steps is not None
    at = np.flatnonzero((events["kind"] == ALLOC) & (reserved >= 0))
    mine, real = steps["reserved"][at].astype(np.int64), reserved[at]
    peak = int(real.max())
    apart = np.abs(mine - real) / max(1, peak)
    wide = np.flatnonzero(apart > MOST_ERROR)
    parting = None
    if len(wide):
        first = int(wide[0])
        event = at[first]
        parting = Parting(
            int(times[event]),
            int(events["block"][event]),
            int(mine[first]),
            int(real[first]),
        )
    return Proof(
        error=max(abs(int(mine.max()) - peak) / max(1, peak), float(apart.mean())),
        largest=float(apart.max()),
        recorded_peak=peak,
        replayed_peak=int(mine.max()),
        compared=len(at),
        placed=placed(trace, recorded, events[at], steps["address"][at].astype(np.int64)),
        parting=parting,
        problems=tuple(problems),
    )


def placed(trace: Trace, recorded: Recorded, events: np.ndarray, address: Ints) -> int:
    """How many allocations the replay put where the recorded allocator did.

    Args:
        events: the allocations.
        address: where the replay put each one.
    """
    apart = address - recorded.address[events["block"]]
    if not recorded.settings.expandable_segments:
        return int((apart == 0).sum())
    # A replay begins an expandable segment at a place of its own; the next one of the same lane and
    # kind follows when the last is gone. A block that lies elsewhere in between is out of place.
    lane = events["lane"].astype(np.int64) * 2 + (trace.size[events["block"]] <= SMALL)
    pairs, first, count = np.unique(
        np.column_stack([lane, apart]), axis=0, return_index=True, return_counts=True
    )
    last = len(lane) - 1 - np.unique(np.column_stack([lane, apart])[::-1], axis=0,
                                     return_index=True)[1]  # fmt: skip
    end: dict[int, int] = {}
    found = 0
    for row in np.argsort(first).tolist():
        kind = int(pairs[row, 0])
        if first[row] > end.get(kind, -1):
            end[kind] = int(last[row])
            found += int(count[row])
    return found
