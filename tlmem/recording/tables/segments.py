"""What caching allocators had when a snapshot was taken: segments, blocks, phases, requests.

Covers: the tables ``segments``, ``blocks``, ``phases`` and ``requests``; empty for recordings that
were not made from a snapshot. Does not cover: blocks over time, which are objects like any other.
See also: docs/format.md, "PyTorch".
"""

from __future__ import annotations

import numpy as np
import pandas as pd

from tlmem.events import Device
from tlmem.recording.format.allocator_state import (
    ACCELERATOR_BITS,
    ALLOCATED,
    BLOCKS,
    EXPANDABLE,
    INACTIVE,
    NEVER_REUSABLE,
    PENDING,
    PHASES,
    REQUESTED,
    SEGMENTS,
    SMALL,
    UNKNOWN_TIME,
    USE_DTYPE,
    USES,
    rows_of,
)
from tlmem.recording.format.symbols import Names
from tlmem.recording.tables.schema import frame

STATE_NAMES = {INACTIVE: "free", ALLOCATED: "allocated", PENDING: "waiting"}
"""Of blocks; ``waiting`` was freed while work of another stream may still use it."""
AT_ITS_FREE = -2
"""``reusable`` of a block that may serve again as soon as it is freed."""
PROBLEM = "problem."
"""Notes with what contradicts itself in an imported file begin with it."""


def segments_table(names: Names) -> pd.DataFrame:
    """One row for each segment. What it has is the sum of its parts."""
    rows = rows_of(names.states, SEGMENTS)
    number, counts = np.unique(rows_of(names.states, BLOCKS)["segment"], return_counts=True)
    blocks = np.zeros(len(rows), np.int64)
    known = number < len(rows)
    blocks[number[known]] = counts[known]
    total, allocated, active, requested = (
        rows[name].astype(np.int64) for name in ("total", "allocated", "active", "requested")
    )
    used = active > 0
    return frame(
        "segments",
        {
            "accelerator": rows["accelerator"],
            "address": rows["address"],
            "pool_owner": rows["pool_owner"],
            "pool_number": rows["pool_number"],
            "stream": rows["stream"],
            "small": rows["flags"] & SMALL > 0,
            "expandable": rows["flags"] & EXPANDABLE > 0,
            "blocks": blocks,
            "total_bytes": total,
            "allocated_bytes": allocated,
            "requested_bytes": requested,
            "rounding_bytes": allocated - requested,
            "waiting_bytes": active - allocated,
            "split_free_bytes": np.where(used, total - active, 0),
            "whole_free_bytes": np.where(used, 0, total),
            "site": rows["site"],
        },
    )


def blocks_table(names: Names, objects: pd.DataFrame) -> pd.DataFrame:
    """One row for each block of the segments, with the object that it is.

    Args:
        objects: the table of the recording.
    """
    rows, segments = rows_of(names.states, BLOCKS), rows_of(names.states, SEGMENTS)
    rows = rows[rows["segment"] < len(segments)]
    accelerator = segments["accelerator"][rows["segment"]]
    states = [STATE_NAMES.get(state, f"state {state}") for state in rows["state"].tolist()]
    key = accelerator.astype(np.uint64) << np.uint64(ACCELERATOR_BITS) | rows["address"]
    return frame(
        "blocks",
        {
            "accelerator": accelerator,
            "segment": rows["segment"],
            "address": rows["address"],
            "size_bytes": rows["size"],
            "requested_bytes": rows["requested"],
            "state": np.array(states, object),
            "site": rows["site"],
            "object": np.where(rows["state"] == ALLOCATED, _objects_at(objects, key), -1),
        },
    )


def _objects_at(objects: pd.DataFrame, key: np.ndarray) -> np.ndarray:
    """The object that is alive at each of some addresses of accelerators; -1 for none."""
    alive = objects["device"].to_numpy() == Device.TORCH_ACCELERATOR
    alive &= objects["died_ns"].to_numpy() < 0
    address = objects["address"].to_numpy(np.uint64)[alive]
    if not len(address):
        return np.full(len(key), -1, np.int64)
    order = np.argsort(address, kind="stable")
    address, number = address[order], objects.index.to_numpy(np.int64)[alive][order]
    place = np.searchsorted(address, key).clip(max=len(address) - 1)
    return np.where(address[place] == key, number[place], -1)


def phases_table(names: Names) -> pd.DataFrame:
    """One row for each annotation of the program: a step, a forward pass."""
    rows = rows_of(names.states, PHASES)
    ended = rows["end"] != UNKNOWN_TIME
    labels = [names.labels.get(number, f"label {number}") for number in rows["label"].tolist()]
    return frame(
        "phases",
        {
            "label": np.array(labels, object),
            "index": rows["index"],
            "accelerator": rows["accelerator"],
            "begin_ns": rows["begin"],
            "end_ns": np.where(ended, rows["end"], 0).astype(np.int64) - ~ended,
        },
    )


def requests_table(names: Names) -> pd.DataFrame:
    """What was asked for in each allocation, where blocks are larger."""
    rows = rows_of(names.states, REQUESTED)
    uses = rows_of(names.states, USES)
    if len(uses) != len(rows):  # of one stream and pool, or a part is missing
        uses = np.zeros(len(rows), USE_DTYPE)
        reusable = np.full(len(rows), AT_ITS_FREE, np.int64)
    else:
        never = uses["reusable"] == NEVER_REUSABLE
        reusable = np.where(never, 0, uses["reusable"]).astype(np.int64) - never
    return frame(
        "requests",
        {
            "object": np.arange(len(rows)),
            "requested_bytes": rows["requested"],
            "stream": uses["stream"],
            "pool_owner": uses["pool_owner"],
            "pool_number": uses["pool_number"],
            "reusable": reusable,
        },
    )


def contradictions(names: Names) -> list[str]:
    """What contradicts itself in the file that the recording was made from."""
    return [text for key, text in names.notes.items() if key.startswith(PROBLEM)]
