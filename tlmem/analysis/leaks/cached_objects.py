"""Growth of Python's heap while an ``lru_cache`` with a bound fills.

Until such a cache is full, it grows like a leak. Snapshots count what all of them have together: no
single one has to be found, and what they hold need not be arrays.

Covers: rises of Python's heap that what was cached meanwhile may account for. Does not cover: lines
of arrays (``bounded_caches``), bounds that a program keeps itself by taking items out, whether
Python's heap rises (``process_growth``).
See also: ``holders.object_types``, which types became more.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from tlmem.analysis.growth.process_growth import Resident, Rise
from tlmem.analysis.holders.object_types import FEWEST_MORE, LEAST_OF_ALL, growing_types
from tlmem.analysis.lifetimes import Lifetimes
from tlmem.analysis.model import Finding
from tlmem.analysis.rules import RULES
from tlmem.units import format_bytes, format_count, format_seconds

if TYPE_CHECKING:
    from tlmem.recording.reader import Recording


@dataclass(frozen=True)
class CachedObjects:
    """A rise, and the items that caches gained meanwhile: now ``count`` of at most ``most``."""

    rise: Rise
    more: int
    count: int
    most: int

    def finding(self) -> Finding:
        """What is said of it."""
        return Finding(
            kind="filling-cache",
            severity="info",
            count=self.more,
            bytes=self.rise.bytes,
            evidence=(
                f"Python's heap grew by {format_bytes(self.rise.bytes)} in "
                f"{format_seconds(self.rise.seconds)}, while functions with an lru_cache of "
                f"limited size cached {format_count(self.more)} more results. They have "
                f"{format_count(self.count)} of at most {format_count(self.most)} now. Until such "
                "a cache is full, it grows like a leak."
            ),
            slope_bytes_per_s=self.rise.rate.value,
        )


def without_cached(
    resident: Resident, recording: Recording, lives: Lifetimes
) -> tuple[Resident, CachedObjects | None]:
    """What the samples say but for such a rise, and that rise."""
    for rise in resident.rises:
        found = cached_meanwhile(rise, recording) if rise.kind == "python" else None
        if found is not None and may_account(found, recording, lives):
            others = tuple(other for other in resident.rises if other is not rise)
            return replace(resident, rises=others), found
    return resident, None


def cached_meanwhile(rise: Rise, recording: Recording) -> CachedObjects | None:
    """What caches with a bound gained from the last snapshot before a rise on; None if nothing."""
    table = recording.contents
    rows = table[table["what"] == "cached"].sort_values("time_ns")
    times = rows["time_ns"].to_numpy(np.int64)
    counts, most = rows["count"].to_numpy(np.int64), rows["most"].to_numpy(np.int64)
    first = max(0, int(np.searchsorted(times, rise.since_ns, side="right")) - 1)
    if len(rows) - first < 2:
        return None
    more = int(counts[-1] - counts[first])
    goes_on = counts[-1] > counts[-2] and counts[-1] < most[-1]
    if more < FEWEST_MORE or not goes_on:
        return None
    return CachedObjects(rise, more, int(counts[-1]), int(most[-1]))


def may_account(found: CachedObjects, recording: Recording, lives: Lifetimes) -> bool:
    """Whether so many results may be what grew: by their bytes, or by the objects that grew."""
    rise = found.rise
    if found.more * RULES.python_per_array >= rise.bytes:
        return True
    until_ns = rise.since_ns + round(rise.seconds * 1e9)
    types = growing_types(recording, rise.since_ns, until_ns, lives.begin_ns)
    if types is None:
        return False
    return not types or found.more >= LEAST_OF_ALL * types[0].more
