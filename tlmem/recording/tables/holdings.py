"""Tables of who holds arrays in Python, from the snapshots in a recording.

Covers: which snapshots are whole, chains as rows, the objects that snapshots name.
Does not cover: the records (``format.chains``), words (``chain_text``), lines (``analysis``).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

import numpy as np
import pandas as pd

from tlmem.events import FIRST_RUNTIME_DEVICE, TORCH_DEVICES, Device
from tlmem.recording.format.chains import (
    CACHED,
    CONTAINER,
    TOTALS_GROUP,
    TRIGGERS,
    TYPE,
    UNTRACKED,
    Holding,
    StepKind,
)
from tlmem.recording.tables.chain_text import (
    bound,
    chain_text,
    container_words,
    main_container,
    without_numbers,
    words,
)
from tlmem.recording.tables.schema import frame

ToNs = Callable[[np.ndarray], np.ndarray]
Records = Mapping[tuple[int, int], Holding]

SHARED_HEADER_BYTES = 64
"""Before the data of a tensor that is shared by a file's name: PyTorch counts its users there.

Source: ``map_alloc_alignment`` of ``aten/src/ATen/MapAllocator.cpp``, PyTorch 2.13."""


CONTENTS = {UNTRACKED: "arrays", CONTAINER: "items", CACHED: "cached"}
ALL_CACHES = "lru_caches with a bound"
MOST_TYPES, LEAST_OBJECTS = 64, 10
"""Types that a snapshot names at most, and objects that one must have."""


def whole_holdings(records: Records, span: tuple[int, int]) -> list[Holding]:
    """The groups of whole snapshots of a span of ticks, by snapshot, most bytes first.

    A snapshot without its last record was cut off by a kill, and tells nothing.
    """
    totals = {snapshot for snapshot, group in records if group == TOTALS_GROUP}
    found = [
        holding
        for (snapshot, group), holding in records.items()
        if snapshot in totals and group != TOTALS_GROUP and span[0] <= holding.ticks <= span[1]
    ]
    return sorted(found, key=lambda held: (held.snapshot, -held.held_bytes, held.group))


def holdings_table(holdings: list[Holding], records: Records, to_ns: ToNs) -> pd.DataFrame:
    """One row for each chain of each whole snapshot."""
    mains = [main_container(held.steps) for held in holdings]
    containers = [
        held.steps[at] if at is not None else None for held, at in zip(holdings, mains, strict=True)
    ]
    cut = {held.snapshot for held in records.values() if held.incomplete}
    return frame(
        "holdings",
        {
            **_keys(holdings),
            "time_ns": to_ns(np.array([held.ticks for held in holdings], np.uint64)),
            "trigger": [TRIGGERS.get(held.trigger, f"trigger {held.trigger}") for held in holdings],
            "complete": np.array([held.snapshot not in cut for held in holdings], bool),
            "collecting": np.array([held.collecting for held in holdings], bool),
            "arrays": _whole_numbers(held.arrays for held in holdings),
            "held_bytes": _whole_numbers(held.held_bytes for held in holdings),
            "used_bytes": _whole_numbers(held.used_bytes for held in holdings),
            "device": np.array([held.device for held in holdings], np.uint8),
            "words": [words(held.steps, held.device in TORCH_DEVICES) for held in holdings],
            "chain": [chain_text(held.steps, noun_of(held.device)) for held in holdings],
            "root": [kind_name(held.steps[0].kind) if held.steps else "" for held in holdings],
            "container": [kind_name(step.kind) if step else "" for step in containers],
            "items": _whole_numbers(step.items if step else 0 for step in containers),
            "most": _whole_numbers(bound(held.steps) for held in holdings),
        },
    )


def noun_of(device: int) -> str:
    """What an object on a device is called."""
    return "tensor" if device in TORCH_DEVICES else "array"


def steps_table(holdings: list[Holding]) -> pd.DataFrame:
    """One row for each step of each chain."""
    found = [
        (held.snapshot, held.group, at, kind_name(step.kind), step.type, step.edge, step.items)
        for held in holdings
        for at, step in enumerate(held.steps)
    ]
    names = ("snapshot", "group", "step", "kind", "type", "edge", "items")
    columns = zip(*found, strict=True) if found else ([] for _ in names)
    return frame("holding_steps", dict(zip(names, map(list, columns), strict=True)))


def objects_table(holdings: list[Holding], objects: pd.DataFrame, to_ns: ToNs) -> pd.DataFrame:
    """One row for each object that a snapshot names.

    Args:
        objects: the table of this name; of those at one address the one that was alive is meant.
    """
    times = to_ns(np.array([held.ticks for held in holdings], np.uint64))
    counts = np.array([len(held.addresses) for held in holdings], np.int64)
    address = np.concatenate([np.empty(0, np.uint64), *(held.addresses for held in holdings)])
    own = np.array([held.device >= FIRST_RUNTIME_DEVICE for held in holdings], bool)
    runtime = np.repeat(own, counts)
    keys = {name: np.repeat(column, counts) for name, column in _keys(holdings).items()}
    number = np.full(len(address), -1, np.int64)
    of_runtime = objects["device"].to_numpy(np.uint8) >= FIRST_RUNTIME_DEVICE
    for kind in np.unique(runtime).tolist():
        mine = runtime == kind
        there = np.flatnonzero(of_runtime == kind)
        number[mine] = alive_at(objects, there, address[mine], np.repeat(times, counts)[mine])
    lost = (number < 0) & ~runtime
    mapped = np.flatnonzero(objects["device"].to_numpy(np.uint8) == Device.TORCH_MAPPED)
    begin = address[lost] - np.uint64(SHARED_HEADER_BYTES)
    number[lost] = alive_at(objects, mapped, begin, np.repeat(times, counts)[lost])
    return frame("holding_objects", {**keys, "object": number, "address": address})


def contents_table(
    contents: Records, holdings: Records, span: tuple[int, int], to_ns: ToNs
) -> pd.DataFrame:
    """One row for each large container, each chain of untracked arrays, and what is cached.

    Of whole snapshots of a span of ticks.
    """
    whole = {snapshot for snapshot, group in holdings if group == TOTALS_GROUP}
    cut = {held.snapshot for held in holdings.values() if held.incomplete}
    found = [
        (held, _content_words(held))
        for held in contents.values()
        if held.snapshot in whole and held.what in CONTENTS and span[0] <= held.ticks <= span[1]
    ]
    found = [(held, text) for held, text in found if text]
    found.sort(key=lambda row: (row[0].snapshot, row[0].what, row[0].group))
    kept = [held for held, _ in found]
    return frame(
        "contents",
        {
            **_keys(kept),
            "time_ns": to_ns(np.array([held.ticks for held in kept], np.uint64)),
            "trigger": [TRIGGERS.get(held.trigger, f"trigger {held.trigger}") for held in kept],
            "complete": np.array([held.snapshot not in cut for held in kept], bool),
            "what": [CONTENTS[held.what] for held in kept],
            "count": _whole_numbers(held.arrays for held in kept),
            "most": _whole_numbers(_most_of(held) for held in kept),
            "held_bytes": _whole_numbers(
                0 if held.what == CACHED else held.held_bytes for held in kept
            ),
            "words": [text for _, text in found],
            "name": [without_numbers(text) for _, text in found],
            "chain": [chain_text(held.steps) for held in kept],
        },
    )


def _content_words(held: Holding) -> str:
    """What a content is, in words."""
    if held.what == CACHED:
        return ALL_CACHES
    return container_words(held.steps) if held.what == CONTAINER else words(held.steps)


def _most_of(held: Holding) -> int:
    """How many items a content may have; 0 where no bound is known."""
    if held.what == CACHED:
        return held.held_bytes
    return held.steps[-1].most if held.what == CONTAINER and held.steps else 0


def object_types_table(
    contents: Records, holdings: Records, span: tuple[int, int], to_ns: ToNs
) -> pd.DataFrame:
    """One row for each type that a whole snapshot of a span of ticks counted objects of."""
    whole = {snapshot for snapshot, group in holdings if group == TOTALS_GROUP}
    found = [
        held
        for held in contents.values()
        if held.snapshot in whole
        and held.what == TYPE
        and len(held.steps) == 1
        and span[0] <= held.ticks <= span[1]
    ]
    found.sort(key=lambda held: (held.snapshot, held.group))
    rarest: dict[int, list[int]] = {}
    for held in found:
        rarest.setdefault(held.snapshot, []).append(held.arrays)
    least = {
        snapshot: min(counts) if len(counts) >= MOST_TYPES else LEAST_OBJECTS
        for snapshot, counts in rarest.items()
    }
    return frame(
        "object_types",
        {
            "snapshot": _whole_numbers(held.snapshot for held in found),
            "time_ns": to_ns(np.array([held.ticks for held in found], np.uint64)),
            "type": [held.steps[0].type for held in found],
            "count": _whole_numbers(held.arrays for held in found),
            "rarest": _whole_numbers(least[held.snapshot] for held in found),
        },
    )


def alive_at(
    objects: pd.DataFrame, rows: np.ndarray, address: np.ndarray, time_ns: np.ndarray
) -> np.ndarray:
    """The number of the object of some rows that was alive at each address and time; -1: none."""
    wanted = np.unique(address)
    lay = objects["address"].to_numpy(np.uint64)[rows]
    at = np.searchsorted(wanted, lay).clip(max=max(0, len(wanted) - 1))
    rows = rows[wanted[at] == lay] if len(wanted) else rows[:0]
    if not len(rows):
        return np.full(len(address), -1, np.int64)
    lay = objects["address"].to_numpy(np.uint64)[rows]
    born = objects["born_ns"].to_numpy(np.int64)[rows]
    died = objects["died_ns"].to_numpy(np.int64)[rows]
    # Objects are in order of birth: keys of address and place find the latest birth before a time.
    known, which = np.unique(lay, return_inverse=True)
    order = np.argsort(which.reshape(-1), kind="stable")
    keys = which.reshape(-1)[order] * (len(rows) + 1) + order
    asked = np.searchsorted(known, address).clip(max=len(known) - 1) * (len(rows) + 1)
    asked += np.searchsorted(born, time_ns, side="right")
    at = np.searchsorted(keys, asked) - 1
    row = np.where(at >= 0, order[at], -1)
    there = (row >= 0) & (lay[row] == address)
    there &= (died[row] < 0) | (died[row] >= time_ns)
    return np.where(there, objects.index.to_numpy(np.int64)[rows[row]], -1)


def kind_name(kind: int) -> str:
    """What a kind of step is called: ``lru_cache``, ``view``."""
    try:
        return StepKind(kind).name.lower()
    except ValueError:
        return f"kind {kind}"


def _keys(holdings: list[Holding]) -> dict[str, np.ndarray]:
    return {
        "snapshot": _whole_numbers(held.snapshot for held in holdings),
        "group": _whole_numbers(held.group for held in holdings),
    }


def _whole_numbers(values: Iterable[int]) -> np.ndarray:
    return np.array([min(value, 2**63 - 1) for value in values], np.int64)
