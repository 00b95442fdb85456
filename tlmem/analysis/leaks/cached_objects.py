"""Growth of Python's heap while an ``lru_cache`` or a ``deque`` with a bound fills.

Until it is full, it grows like a leak. Snapshots tell how many items the largest containers have
and may have, and count what all caches have together: what they hold need not be arrays.

Covers: rises of Python's heap that what came into such a container may account for. Does not cover:
lines of arrays (``bounded_caches``), bounds that a program keeps itself by taking items out,
whether Python's heap rises (``process_growth``).
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
from tlmem.recording.tables.holdings import ALL_CACHES
from tlmem.units import format_bytes, format_count, format_seconds

if TYPE_CHECKING:
    from tlmem.recording.reader import Recording


@dataclass(frozen=True)
class CachedObjects:
    """A rise, and the items that a container gained meanwhile: now ``count`` of at most ``most``.

    ``name`` is the container's, or that of all caches.
    """

    rise: Rise
    name: str
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
                f"{format_seconds(self.rise.seconds)}, while {format_count(self.more)} items came "
                f"into {self.name}: {format_count(self.count)} of at most "
                f"{format_count(self.most)} now. Until such a container is full, it grows like a "
                "leak."
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
    """What has a bound and gained most items, from the last snapshot before a rise on; or None.

    A single container is named if it gained most of what all caches did.
    """
    table = recording.contents
    found = []
    for (name, _), rows in table[table["most"] > 0].groupby(["name", "what"], sort=True):
        # Of several of one name in a snapshot, the largest.
        rows = rows.sort_values(["time_ns", "count"]).groupby("time_ns").tail(1)
        times = rows["time_ns"].to_numpy(np.int64)
        first = max(0, int(np.searchsorted(times, rise.since_ns, side="right")) - 1)
        counts, most = rows["count"].to_numpy(np.int64)[first:], int(rows["most"].iloc[-1])
        goes_on = len(counts) > 1 and counts[-2] < counts[-1] < most
        goes_on = goes_on and counts[-1] >= RULES.filled * most
        if goes_on and counts[-1] - counts[0] >= FEWEST_MORE:
            more = int(counts[-1] - counts[0])
            found.append(CachedObjects(rise, str(name), more, int(counts[-1]), most))
    largest = max((each.more for each in found), default=0)
    found = [each for each in found if each.more >= RULES.majority * largest]
    return min(found, key=lambda each: (each.name == ALL_CACHES, -each.more), default=None)


def may_account(found: CachedObjects, recording: Recording, lives: Lifetimes) -> bool:
    """Whether so many items may be what grew: by their bytes, or by the objects that grew."""
    rise = found.rise
    if found.more * RULES.python_per_array >= rise.bytes:
        return True
    until_ns = rise.since_ns + round(rise.seconds * 1e9)
    types = growing_types(recording, rise.since_ns, until_ns, lives.begin_ns)
    if types is None:
        return False
    return not types or found.more >= LEAST_OF_ALL * types[0].more
