"""Who made the mappings that the kernel lists, and how much was mapped by others than tlmem knows.

Covers: further columns beside the samples, from the moments at which the kernel was asked; resident
pages of mapped files (``np.memmap``, ``mmap``) that grew, which is not a leak, as the kernel takes
them back when it must, and shared memory that grew without being judged to. Does not cover: the
parts of resident memory, see ``attribution``; shared memory that grows, see ``process_growth``;
which files, as a recording has sums by kind of mapping.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from tlmem.analysis.model import Attribution, Change, Finding
from tlmem.units import format_bytes, format_seconds

Floats = NDArray[np.float64]
Taken = Callable[[str], Floats]

ANONYMOUS = ("library_data", "stacks", "allocator_resident", "mapped")
"""The metrics that make up anonymous memory, taken together in a *mapping snapshot*."""

ARENA_BYTES = 1 << 20
"""Of Python's arenas, of which it touches one after the other."""
LEAST_BYTES = 8_000_000
LEAST_SHARE = 0.15
"""Of resident memory: less is not worth a sentence."""


def mapping_snapshots(samples: pd.DataFrame) -> NDArray[np.bool_]:
    """Which samples are mapping snapshots: those in which the kernel listed its mappings."""
    if "mapped" not in samples:
        return np.zeros(len(samples), bool)
    return samples["mapped"].notna().to_numpy()


def with_mappings(samples: pd.DataFrame) -> pd.DataFrame:
    """The samples with what only the mappings tell, in bytes, in each mapping
    snapshot.

    ``listed`` is all anonymous memory. ``mapped_by_others`` are mappings of unknown
    origin: what libraries and the program mapped themselves (``mmap``, an allocator of their own).
    ``allocator_kept`` is free and resident in the C allocator's arenas. ``native_untouched`` is of
    blocks that it handed out to native code, ``idle_untouched`` of what devices hold unused,
    ``python_untouched`` of Python's newest arena and of its larger blocks: what is not resident.
    ``mappings_ns`` is its time. Where a mapping snapshot has no ``anon`` of its own, it is
    ``listed``.

    ``samples`` may have the columns of ``devices.with_devices``; without mapping
    snapshots they are returned as they are.
    """
    chosen = mapping_snapshots(samples)
    if not chosen.any():
        return samples
    carried = samples.ffill().bfill()

    def taken(name: str) -> Floats:
        if name not in carried:
            return np.zeros(int(chosen.sum()))
        return np.nan_to_num(carried[name].to_numpy(np.float64)[chosen])

    def column(values: Floats) -> Floats:
        every = np.full(len(samples), np.nan)
        every[chosen] = values
        return every

    listed = np.sum([taken(name) for name in ANONYMOUS], axis=0)
    untouched = untouched_of_mapped(taken)
    blocks = taken("malloc_mapped") - untouched
    ours = taken("recorder_resident") + on_devices(taken) + beside_allocator(taken)
    others = taken("mapped") - taken("python_arena") - ours - blocks
    native = np.clip(blocks - (taken("tracked") - taken("untouched")), 0.0, None)
    in_use = taken("malloc_used") - taken("malloc_mapped") - (taken("untouched") - untouched)
    kept = np.clip(taken("allocator_resident") - in_use, 0.0, taken("malloc_free"))
    idle = np.clip(-others, 0.0, np.minimum(taken("device_unused"), on_devices(taken)))
    blocks_untouched = np.clip(-others - idle, 0.0, native)
    in_arenas, of_python = untouched_in_arenas(taken, in_use)
    newest = np.minimum(taken("python_arena"), ARENA_BYTES)
    return samples.assign(
        anon=samples["anon"].fillna(pd.Series(column(listed), samples.index)),
        listed=column(listed),
        mapped_by_others=column(np.maximum(others, 0.0)),
        allocator_kept=column(kept),
        idle_untouched=column(idle),
        native_untouched=column(blocks_untouched + in_arenas),
        python_untouched=column(
            np.clip(-others - idle - blocks_untouched, 0.0, newest) + of_python
        ),
        mappings_ns=column(samples["time_ns"].to_numpy(np.float64)[chosen]),
    )


def on_devices(taken: Taken) -> Floats:
    """What devices hold that the C allocator did not give them."""
    held = taken("device_objects") + taken("device_unused") - taken("device_host")
    return np.maximum(held, 0.0)


def beside_allocator(taken: Taken) -> Floats:
    """Arrays that are not the C allocator's: under ``--zombie`` many have pages of their own."""
    arrays = taken("tracked") - taken("device_objects")
    return np.maximum(arrays + taken("python_large") - taken("malloc_used"), 0.0)


def untouched_of_mapped(taken: Taken) -> Floats:
    """How much of what arrays never touched lies in blocks that the C allocator mapped singly.

    Its heap was touched before, unless more of it is handed out than resident.
    """
    in_heap = taken("malloc_used") - taken("malloc_mapped") - taken("allocator_resident")
    in_heap = np.clip(in_heap, 0.0, taken("untouched"))
    return np.minimum(taken("untouched") - in_heap, taken("malloc_mapped"))


def untouched_in_arenas(taken: Taken, in_use: Floats) -> tuple[Floats, Floats]:
    """How much of what the C allocator's arenas handed out is not resident: to native code, Python.

    A parser that takes 4 kB for each tree and writes to the first page has a quarter of it. What
    is more than native code has is of Python's larger blocks, such as a ``bytes`` of 160 kB of
    which a decompressor wrote the begin.

    Args:
        in_use: what the arenas handed out, but for what is known to be untouched.
    """
    resident = taken("allocator_resident")
    arrays = taken("tracked") - taken("device_objects") + taken("device_host")
    others = np.maximum(arrays - taken("untouched"), 0.0) + taken("python_large")
    native = np.maximum(in_use - np.maximum(others - taken("malloc_mapped"), 0.0), 0.0)
    missing = np.where(resident > 0, np.maximum(in_use - resident, 0.0), 0.0)
    of_native = np.minimum(missing, native)
    return of_native, np.clip(missing - of_native, 0.0, taken("python_large"))


def mapped_file_findings(
    level: Attribution, growth: Change | None, shared_is_judged: bool = False
) -> list[Finding]:
    """One finding each for files and for shared memory that grew by a good part of ``level``.

    Args:
        shared_is_judged: shared memory has a finding of its own.
    """
    if growth is None or not growth.parts.known:
        return []
    least = max(LEAST_BYTES, LEAST_SHARE * level.resident_bytes)
    seconds = (growth.end_s or 0.0) - (growth.begin_s or 0.0)
    return [
        Finding(
            kind="mapped-files",
            severity="info",
            count=0,
            bytes=grown,
            evidence=(
                f"Resident pages of {what} grew by {format_bytes(grown)} in "
                f"{format_seconds(seconds)}: {why}"
            ),
            slope_bytes_per_s=grown / seconds if seconds > 0 else None,
        )
        for what, why, grown in (
            (
                "mapped files (np.memmap, mmap)",
                "they are copies of files on disk, which the kernel drops when memory is short; "
                "this is not a leak. To unmap a file, delete the arrays that map it.",
                growth.parts.file_bytes,
            ),
            (
                "shared memory",
                "it stays until every process has unmapped it and it is unlinked.",
                0 if shared_is_judged else growth.parts.shared_bytes,
            ),
        )
        if grown >= least
    ]
