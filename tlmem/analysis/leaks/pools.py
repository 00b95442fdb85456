"""Leaks by a pool: ``pool-never-hits``.

Covers: growing lines whose survivors lie in a pool that never hands them out; freed buffers
that a growing device keeps and never uses.
Does not cover: whether a device grows; see ``growth.process_growth``.
See also: docs/findings/pool-never-hits.md.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tlmem.analysis.holders.survivors import Survivors
from tlmem.analysis.model import Finding
from tlmem.events import HolderKind
from tlmem.units import format_bytes, format_count

if TYPE_CHECKING:
    from tlmem.recording.reader import Recording

FEW_HITS = 0.02
"""A pool that serves fewer requests than this share of what it gets is not used."""
LEAST_BYTES = 1_000_000
"""A device that keeps less is not worth a word."""


def pool_never_hits(line: Survivors) -> Finding | None:
    """Objects in a pool that grows and hands none of them out again."""
    if not line.held_only_by(HolderKind.POOL):
        return None
    held = line.now[line.now["kind"] == int(HolderKind.POOL)]
    number = int(held["number"].mode().iloc[0])
    pools = line.recording.pools
    pool = pools[pools["pool"] == number]
    if not len(pool):
        return None
    hits, misses, puts = (int(pool[name].iloc[0]) for name in ("hits", "misses", "puts"))
    if hits > FEW_HITS * puts:
        return None
    asked = (
        f"served {format_count(hits)} of {format_count(hits + misses)} requests"
        if hits + misses
        else "was never asked for one"
    )
    return line.finding(
        "pool-never-hits",
        f"{line.noun} are in {line.holder_names}, put there at {line.taken_at}: it received "
        f"{format_count(puts)} and {asked}.",
    )


def buffers_never_hit(recording: Recording) -> list[Finding]:
    """Devices that keep freed buffers and use none of them again; asked when devices grow."""
    pools = recording.pools
    unused = pools[
        (pools["pool"] < 0)
        & (pools["hits"] <= FEW_HITS * pools["puts"])
        & (pools["kept_bytes"] >= LEAST_BYTES)
    ]
    return [
        Finding(
            kind="pool-never-hits",
            severity="warning",
            count=int(row["kept_count"]),
            bytes=int(row["kept_bytes"]),
            evidence=(
                f"{row['name']} are kept and not reused: of {format_count(row['puts'])} that "
                f"were freed {format_count(row['hits'])} were used again, and "
                f"{format_bytes(row['kept_bytes'])} are kept."
            ),
        )
        for row in unused.to_dict("records")
    ]


POOLS = (pool_never_hits,)
