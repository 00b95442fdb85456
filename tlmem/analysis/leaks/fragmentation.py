"""``fragmentation``: what a caching allocator has reserved, free, and cannot hand out in one piece.

A segment goes back to the device when nothing in it is in use. One small block keeps all of it, and
what is free beside that block serves smaller requests only. So memory can run out with much of it
free: the request is larger than the largest free block.

Covers: imported snapshots of CUDA; each accelerator, and the last request that failed.
Does not cover: how the free memory came about over time; live recordings, whose segments are not
known.
See also: docs/findings/fragmentation.md.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from tlmem.analysis.lifetimes import is_imported
from tlmem.analysis.model import Finding, StackFrame
from tlmem.analysis.places import Places, place
from tlmem.units import format_bytes, format_count

if TYPE_CHECKING:
    from tlmem.recording.reader import Recording

PINNED_HOST = 255
"""Not an accelerator but the host's pinned memory (docs/reference/tables.md, segments)."""
SMALL_BYTES = 1 << 20
"""Larger requests are served from segments of large blocks, others from those of small ones."""
LEAST_BYTES = 100_000_000
LEAST_SHARE = 0.2
"""Without a failed request: so much, of what is reserved, must be free beside blocks in use."""
SEGMENTS_FIX = (
    "set PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True (PYTORCH_ALLOC_CONF from 2.9 on) before "
    "the program starts, or allocate what lives long before what comes and goes"
)
EXPANDED_FIX = (
    "segments are expandable already: allocate what lives long before what comes and goes, use "
    "fewer odd sizes (pad batches to a few lengths), or torch.cuda.empty_cache() between phases"
)
_NUMBER = re.compile(r"([a-z_]+)=([0-9]{1,18})\b")


@dataclass(frozen=True)
class Failure:
    """The last request that failed: what was asked for, and what the device had left.

    ``free_bytes`` is -1 where that is not known; ``is_last`` says that no block came or went after.
    """

    requested_bytes: int
    free_bytes: int
    is_last: bool


def fragmentation(recording: Recording, places: Places) -> list[Finding]:
    """A finding for each accelerator whose free memory lies in pieces."""
    if not is_imported(recording) or not len(recording.segments):
        return []
    segments, blocks = recording.segments, recording.blocks
    found = []
    for number in sorted(set(segments["accelerator"].tolist()) - {PINNED_HOST}):
        failure = failure_of(recording.info.get(f"snapshot.{number}", ""))
        mine = segments[segments["accelerator"] == number]
        own = blocks[blocks["accelerator"] == number]
        name = recording.info.get(f"accelerator.{number}", "").split(" ")[0] or "accelerator"
        about = of_one(mine, own, failure, f"{name}:{number}", places)
        found += [about] if about is not None else []
    return found


def failure_of(note: str) -> Failure | None:
    """The last failed request as the importer noted it."""
    numbers = {name: int(text) for name, text in _NUMBER.findall(note)}
    if not numbers.get("oom"):
        return None
    free = numbers.get("oom_free", 0) - 1
    return Failure(numbers.get("oom_requested", 0), free, numbers.get("oom_last", 0) == 1)


def of_one(
    segments: pd.DataFrame,
    blocks: pd.DataFrame,
    failure: Failure | None,
    name: str,
    places: Places,
) -> Finding | None:
    """The finding about one accelerator; None when its free memory is little, or in one piece.

    Where the snapshot was taken when a request had failed: whether it was larger than the largest
    free block of its kind, and not than all of them. Otherwise: whether much of what is reserved is
    free beside blocks in use, and most of that in smaller pieces than the half of it.
    """
    failed = failure if failure is not None and failure.is_last else None
    fits = np.ones(len(segments), bool)
    if failed is not None:
        fits = segments["small"].to_numpy(bool) == (failed.requested_bytes <= SMALL_BYTES)
        fits &= (segments["pool_owner"] == 0).to_numpy() & (segments["pool_number"] == 0).to_numpy()
    numbers = segments.index.to_numpy(np.int64)[fits]
    pieces = blocks[(blocks["state"] == "free") & blocks["segment"].isin(numbers)]
    free, largest = int(pieces["size_bytes"].sum()), _largest(pieces)
    reserved = int(segments["total_bytes"].sum())
    split = int(segments["split_free_bytes"].sum())
    if not len(pieces) or not reserved:
        return None
    if failed is not None:
        left = max(0, failed.free_bytes)
        if not largest < failed.requested_bytes <= free + left or free < left:
            return None
    elif split < max(LEAST_BYTES, LEAST_SHARE * reserved):
        return None
    elif 2 * _largest(pieces[_beside(pieces, segments)]) > split:
        return None
    text = (
        f"{name}: {format_bytes(reserved)} are reserved, {format_bytes(split)} of them free beside "
        f"blocks in use, in {format_count(len(pieces))} piece{'s' if len(pieces) != 1 else ''}, "
        f"the largest of {format_bytes(largest)}"
    )
    if failed is not None:
        text += (
            f"; a request for {format_bytes(failed.requested_bytes)} failed, though "
            f"{format_bytes(free)} were free in segments that it could have used"
        )
    frame, splits = splitting(segments, blocks, places)
    if frame is not None:
        text += f". {splits}"
    is_expanded = bool(segments["expandable"].all())
    return Finding(
        kind="fragmentation",
        severity="warning" if failed is not None else "info",
        count=len(pieces),
        bytes=split,
        evidence=f"{text}.",
        site=frame,
        fix=EXPANDED_FIX if is_expanded else SEGMENTS_FIX,
    )


def _largest(pieces: pd.DataFrame) -> int:
    """Bytes of the largest block; 0 of none."""
    return int(pieces["size_bytes"].max()) if len(pieces) else 0


def _beside(pieces: pd.DataFrame, segments: pd.DataFrame) -> pd.Series:
    """Which free blocks have blocks in use beside them."""
    used = segments.index[segments["split_free_bytes"] > 0]
    return pieces["segment"].isin(used)


def splitting(
    segments: pd.DataFrame, blocks: pd.DataFrame, places: Places
) -> tuple[StackFrame | None, str]:
    """The line whose blocks keep most free memory, and a sentence about it.

    Of a segment, each block in use answers for its share of what is free.
    """
    free = segments["split_free_bytes"]
    used = blocks[(blocks["state"] != "free") & blocks["segment"].isin(segments.index[free > 0])]
    if not len(used):
        return None, ""
    segment = used["segment"].to_numpy(np.int64)
    in_each = used.groupby("segment")["size_bytes"].transform("size").to_numpy(np.float64)
    share = free.reindex(segment).to_numpy(np.float64) / in_each
    sites = used["site"].to_numpy(np.int64)
    lines: dict[StackFrame, list[float]] = {}
    for site in np.unique(sites).tolist():
        frame = places.blamed_frame(site)
        mine = sites == site
        sums = lines.setdefault(replace(frame, source=None), [0.0, 0.0, 0.0])
        sums[0] += float(share[mine].sum())
        sums[1] += int(mine.sum())
        sums[2] += float(used["size_bytes"].to_numpy(np.int64)[mine].sum())
    frame, (kept, count, held) = max(lines.items(), key=lambda item: item[1][0])
    where = f"allocated at {place(frame)}" if frame.file else "whose line is not known"
    text = (
        f"Most of it is kept by {format_count(int(count))} block{'s' if count != 1 else ''}, "
        f"{format_bytes(held)}, {where}: about {format_bytes(kept)} lie beside them"
    )
    return (frame if frame.file else None), text
