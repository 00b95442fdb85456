"""A snapshot of PyTorch's allocators as checked columns: nothing in it is trusted.

Covers: every form that the snapshots of PyTorch have had: a dict with ``segments`` and
``device_traces``, a bare list of segments, blocks with ``history``, pinned memory of the host,
annotations as entries of the trace; missing keys, unknown keys, values of the wrong type.
Does not cover: what was alive before the trace (``allocator``), the file (``writer``).
See also: the docstring of ``_snapshot`` in torch/cuda/memory.py, docs/format.md, "PyTorch".
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeGuard

import numpy as np
from numpy.typing import NDArray

from tlmem.errors import TlmemError
from tlmem.importing.frames import Sites
from tlmem.importing.unpickle import NEXT_STEP, CannotImport
from tlmem.recording.format.allocator_state import (
    ACCELERATOR_BITS,
    ALLOCATED,
    BLOCK_DTYPE,
    EXPANDABLE,
    INACTIVE,
    PENDING,
    PINNED_HOST,
    SEGMENT_DTYPE,
    SMALL,
)
from tlmem.recording.format.limits import LARGEST_SIZE

ALLOC, FREE_REQUESTED, FREE_COMPLETED = 0, 1, 2
MAP, UNMAP, SEGMENT_ALLOC, SEGMENT_FREE = 3, 4, 5, 6
OOM, SNAPSHOT, OTHER = 7, 8, 9
ACTIONS = {
    "alloc": ALLOC,
    "free_requested": FREE_REQUESTED,
    "free_completed": FREE_COMPLETED,
    "free": FREE_COMPLETED,
    "segment_alloc": SEGMENT_ALLOC,
    "segment_map": MAP,
    "segment_free": SEGMENT_FREE,
    "segment_unmap": UNMAP,
    "oom": OOM,
    "snapshot": SNAPSHOT,
}
ANNOTATION = "user_defined"
"""Action of older versions: the first frame's name is START or END, its file is the annotation."""
STATES = {
    "inactive": INACTIVE,
    "active_allocated": ALLOCATED,
    "active_pending_free": PENDING,
    "active_awaiting_free": PENDING,
}
MOST_DEVICES = PINNED_HOST
LARGEST_ADDRESS = (1 << ACCELERATOR_BITS) - 1
LATEST_US = 1 << 52
"""Microseconds since 1970, of the year 2112."""
FEWEST_BYTES_EACH = 4
"""A file with fewer bytes for each entry refers to the same ones again and again."""
ENTRIES_OF_ANY_FILE = 10_000
LONGEST_TEXT = 1000
LONGEST_STATE = 40
MOST_STATES = 8
"""Unknown states of blocks that are named."""
MOST_SETTINGS = 200
MOST_METADATA = 10_000
"""Changes of ``user_metadata`` that become marks."""

Ints = NDArray[np.int64]


class EmptySnapshot(TlmemError):
    """A snapshot with neither a trace nor a segment."""

    exit_code = 3


@dataclass(frozen=True)
class Trace:
    """The entries of one accelerator, oldest first, as columns; ``time_us`` is -1 where missing.

    ``size`` is what was asked for, of segments their own. ``room`` is what the device had free when
    memory ran out, -1 elsewhere. ``metadata`` is where the user's text changed, and to what.
    ``pool`` has two numbers for each entry, None where the trace names no pools.
    """

    accelerator: int
    action: NDArray[np.uint8]
    address: Ints
    size: Ints
    stream: Ints
    time_us: Ints
    room: Ints
    site: Ints
    metadata: tuple[tuple[int, str], ...] = ()
    pool: Ints | None = None

    def __len__(self) -> int:
        return len(self.action)


@dataclass(frozen=True)
class Annotation:
    """The begin or end of a phase."""

    name: str
    begins: bool
    time_us: int
    accelerator: int


@dataclass
class Snapshot:
    """All that a snapshot says; ``problems`` are contradictions, a sentence each.

    ``remarks`` are of what says nothing about memory. ``unknown_actions`` are left out of traces:
    they are a problem where what is left does not lead to the segments.
    """

    sites: Sites
    traces: list[Trace] = field(default_factory=list)
    segments: np.ndarray = field(default_factory=lambda: np.empty(0, SEGMENT_DTYPE))
    blocks: np.ndarray = field(default_factory=lambda: np.empty(0, BLOCK_DTYPE))
    annotations: list[Annotation] = field(default_factory=list)
    settings: dict[str, str] = field(default_factory=dict)
    divisions: tuple[int, ...] = ()
    largest_split: int = 2**62
    names: dict[int, str] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)
    remarks: list[str] = field(default_factory=list)
    unknown_actions: int = 0


def unread(what: str, count: int) -> str:
    """That parts of a snapshot are left out, as a sentence."""
    return f"cannot be read in the snapshot, and left out: {what} ({count:,})"


def parse(value: Any, path: Path) -> Snapshot:
    """The columns of an unpickled value.

    Raises:
        CannotImport: it is not a snapshot.
        EmptySnapshot: it is one of a program that used no accelerator.
    """
    if type(value) is list and (not value or type(value[0]) is dict):
        value = {"segments": value}
    keys = ("segments", "device_traces", "host_segments", "host_traces")
    if type(value) is not dict or not any(_is_list(value.get(key)) for key in keys):
        found = f"a {type(value).__name__}" if type(value) is not dict else "a dict without them"
        raise CannotImport(
            f"{path} is not a snapshot: it has no 'segments' and no 'device_traces' but is {found};"
            f" {NEXT_STEP}"
        )
    return _Parser(path.stat().st_size if path.exists() else 0, path).parse(value)


class _Parser:
    """Reads one snapshot; counts what is wrong by what it is."""

    def __init__(self, file_bytes: int, path: Path) -> None:
        self.made = Snapshot(Sites())
        self.wrong: Counter[str] = Counter()
        self.path = path
        self.room = ENTRIES_OF_ANY_FILE + file_bytes // FEWEST_BYTES_EACH
        self.said: Counter[str] = Counter()
        self.found: Counter[str] = Counter()
        self.unread_annotations = 0
        self.unknown_states: Counter[tuple[str, str]] = Counter()
        self.wrong_segments = 0
        self.first_wrong: int | None = None
        self.misplaced = self.too_small = 0
        self.requests: dict[int, dict[int, int]] = {}

    def parse(self, value: dict[Any, Any]) -> Snapshot:
        made = self.made
        for accelerator, entries in enumerate(self._traces(value.get("device_traces"))):
            if accelerator >= MOST_DEVICES:
                self.wrong[f"traces beyond the first {MOST_DEVICES} devices"] += 1
                continue
            self._trace(accelerator, entries)
        host = value.get("host_traces")
        if _is_list(host) and any(map(_is_list, host)):
            host = [entry for entries in host if _is_list(entries) for entry in entries]
        if _is_list(host) and host:
            self._trace(PINNED_HOST, host)
        segments: list[tuple[Any, ...]] = []
        blocks: list[tuple[Any, ...]] = []
        for key, host_memory in (("segments", False), ("host_segments", True)):
            listed = value.get(key)
            for segment in listed if _is_list(listed) else ():
                self._segment(segment, segments, blocks, host_memory)
        made.segments = np.array(segments, SEGMENT_DTYPE)
        made.blocks = np.array(blocks, BLOCK_DTYPE)
        annotations = value.get("external_annotations")
        for annotation in annotations if _is_list(annotations) else ():
            self._annotation(annotation)
        settings = value.get("allocator_settings")
        if type(settings) is dict:
            self._settings(settings)
        if not len(made.segments) and not any(len(trace) for trace in made.traces):
            self._say_empty()
        made.problems += self._contradictions()
        made.problems += [unread(what, count) for what, count in sorted(self.wrong.items())]
        if self.unread_annotations:
            made.remarks.append(unread("annotations", self.unread_annotations))
        made.remarks += [
            f"blocks in the state '{state}', which is unknown and taken as {as_what}: {count:,}"
            for (state, as_what), count in sorted(self.unknown_states.items())
        ]
        if self.made.sites.cut:
            made.problems.append("the stacks of the snapshot have too many frames; some were cut")
        return made

    def _say_empty(self) -> None:
        wrong = sum(self.wrong.values()) + self.made.unknown_actions + self.unread_annotations
        if wrong:
            raise EmptySnapshot(
                f"{self.path} is a snapshot, but too damaged to use: {wrong} parts of it cannot be "
                f"read and nothing is left; {NEXT_STEP}"
            )
        raise EmptySnapshot(
            f"{self.path} has no segment and no trace entry: the program used no accelerator "
            "memory until then; take the snapshot later"
        )

    # ---- traces ----

    def _traces(self, listed: Any) -> Iterable[Sequence[Any]]:
        if listed is None:
            return []
        if not _is_list(listed):
            self.wrong["'device_traces' that is not a list"] += 1
            return []
        if listed and all(type(entry) is dict for entry in listed):
            return [listed]  # of one device, without the list around it
        wrong = sum(each is not None and not _is_list(each) for each in listed)
        self._count("traces that are not lists", wrong)
        return [each if _is_list(each) else [] for each in listed]

    def _trace(self, accelerator: int, listed: Sequence[Any]) -> None:
        entries = [entry for entry in listed if type(entry) is dict]
        self._spend(len(listed))
        self._count("trace entries that are not dicts", len(listed) - len(entries))
        actions = [entry.get("action") for entry in entries]
        known = np.array(
            [ACTIONS.get(a, OTHER) if type(a) is str else OTHER for a in actions], np.uint8
        )
        for row in np.flatnonzero(known == OTHER).tolist():
            if actions[row] == ANNOTATION:
                self._annotation_entry(entries[row], accelerator)
            else:
                self.made.unknown_actions += 1
        time_us = self._column(entries, "time_us", -1, 0, LATEST_US, "times", missing=True)
        address = self._column(entries, "addr", -1, 0, LARGEST_ADDRESS, "addresses", missing=True)
        size = self._column(entries, "size", -1, 0, LARGEST_SIZE, "sizes")
        stream = self._column(entries, "stream", 0, -(2**62), 2**63 - 1, "streams", missing=True)
        room = self._column(entries, "device_free", -1, 0, LARGEST_SIZE, "sizes", missing=True)
        sites = self.made.sites
        if any("category" in entry for entry in entries):
            # Made of a profile; the last device is the CPU, and it has entries in all of them.
            self.made.names[accelerator] = "cpu"
        site = np.fromiter((sites.of(e.get("frames")) for e in entries), np.int64, len(entries))
        sound = known != OTHER
        lost = sound & (known != SNAPSHOT) & (size < 0)
        lost |= sound & (known < OOM) & (address < 0)
        self._count("trace entries without an address or a size", int(lost.sum()))
        sound &= ~lost
        kept = np.flatnonzero(sound)
        metadata = [(entry.get("user_metadata"), row) for row, entry in enumerate(entries)]
        self.made.traces.append(
            Trace(
                accelerator,
                known[kept],
                address[kept],
                np.maximum(size[kept], 0),
                stream[kept],
                time_us[kept],
                room[kept],
                site[kept],
                self._changes(metadata, sound),
                self._pools(entries, kept),
            )
        )

    def _pools(self, entries: Sequence[dict[Any, Any]], kept: Ints) -> Ints | None:
        """The pools of the entries that are kept; None where none of them names one."""
        if not any("pool_id" in entry for entry in entries):
            return None
        named = [entry.get("pool_id") for entry in entries]
        none = (0, 0)
        pairs = [
            (_number(pool[0]), _number(pool[1])) if _is_list(pool) and len(pool) == 2 else none
            for pool in named
        ]
        return np.array(pairs, np.int64).reshape(-1, 2)[kept]

    def _changes(
        self, texts: list[tuple[Any, int]], sound: NDArray[np.bool_]
    ) -> tuple[tuple[int, str], ...]:
        """Where the user's text changes, as positions among the sound entries."""
        position = np.cumsum(sound) - 1
        found: list[tuple[int, str]] = []
        last = ""
        for text, row in texts:
            if type(text) is not str or text == last or not sound[row]:
                continue
            last = text
            if text and len(found) < MOST_METADATA:
                found.append((int(position[row]), text[:LONGEST_TEXT]))
        return tuple(found)

    def _column(
        self,
        entries: Sequence[dict[Any, Any]],
        key: str,
        default: int,
        least: int,
        most: int,
        what: str,
        missing: bool = False,
    ) -> Ints:
        """One value of each entry; ``default`` where it is missing or cannot be."""
        values: list[Any] = [entry.get(key) for entry in entries]
        if set(map(type, values)) <= {int}:
            if not values or (min(values) >= least and max(values) <= most):
                return np.array(values, np.int64)
        column = np.full(len(values), default, np.int64)
        wrong = 0
        for row, value in enumerate(values):
            if type(value) is float and value.is_integer() and abs(value) < 2**62:
                value = int(value)
            if type(value) is int and least <= value <= most:
                column[row] = value
            else:
                wrong += value is not None or not missing
        self._count(what, wrong)
        return column

    # ---- the state at the end ----

    def _segment(
        self,
        segment: Any,
        segments: list[tuple[Any, ...]],
        blocks: list[tuple[Any, ...]],
        host: bool,
    ) -> None:
        if type(segment) is not dict:
            self.wrong["segments that are not dicts"] += 1
            return
        accelerator = PINNED_HOST if host else _whole(segment.get("device", 0), MOST_DEVICES - 1)
        address = _whole(segment.get("address"), LARGEST_ADDRESS)
        total = _whole(segment.get("total_size"), LARGEST_SIZE)
        if accelerator is None or address is None or total is None:
            self.wrong["segments without an address, a size or a device"] += 1
            return
        number, first = len(segments), len(blocks)
        listed = segment.get("blocks")
        if not _is_list(listed):
            self._count("lists of blocks", listed is not None)
            listed = []
        self._spend(len(listed))
        at = address
        for each in listed:
            row = self._block(each, at, number, accelerator)
            if row is None:
                self.wrong["blocks"] += 1
            else:
                self.misplaced += row[0] != at
                blocks.append(row)
                at = row[0] + row[1]
        said = {
            key: _whole(segment.get(f"{key}_size"), LARGEST_SIZE)
            for key in ("allocated", "active", "requested")
        }
        used = [row for row in blocks[first:] if row[5] != INACTIVE]
        allocated = sum(row[1] for row in used if row[5] == ALLOCATED)
        asked = sum(row[2] for row in used if row[5] == ALLOCATED)
        active = sum(row[1] for row in used)
        if listed:
            found = {"allocated": allocated, "active": active, "covered": at - address}
            asked_of_active = sum(row[2] for row in used)
            found["requested"] = asked if said["requested"] == asked else asked_of_active
            self._compare(address, {**said, "covered": total}, found)
        else:
            allocated = said["allocated"] or 0
            active = max(said["active"] or 0, allocated)
            asked = min(said["requested"] or allocated, allocated)
        flags = EXPANDABLE if segment.get("is_expandable") is True else 0
        flags |= SMALL if segment.get("segment_type") == "small" else 0
        pool = segment.get("segment_pool_id")
        owner, pool_number = (
            (_number(pool[0]), _number(pool[1])) if _is_list(pool) and len(pool) == 2 else (0, 0)
        )
        segments.append(
            (
                *(address, total, allocated, active, asked, _number(segment.get("stream"))),
                *(owner, pool_number, self.made.sites.of(segment.get("frames")), accelerator),
                *(flags, 0),
            )
        )

    def _compare(self, address: int, said: dict[str, int | None], found: dict[str, int]) -> None:
        """Takes note of a segment whose own sums are not those of its blocks."""
        wrong = {
            key: value
            for key, value in said.items()
            if value is not None and value != found[key] and (value or key != "requested")
        }
        if not wrong:
            return
        self.first_wrong = address if self.first_wrong is None else self.first_wrong
        self.wrong_segments += 1
        for key, value in wrong.items():
            self.said[key] += value
            self.found[key] += found[key]

    def _contradictions(self) -> list[str]:
        """What segments say of themselves, beside the sums of their blocks, as a sentence."""
        found = [
            f"{count:,} block{'s' if count > 1 else ''} of {len(self.made.blocks):,} in the "
            f"segments {what}"
            for count, what in (
                (self.misplaced, "do not lie where the one before ends"),
                (self.too_small, "are smaller than what was asked for"),
            )
            if count
        ]
        if self.first_wrong is None:
            return found
        words = {"covered": "in all", "allocated": "allocated", "active": "active",
                 "requested": "requested"}  # fmt: skip
        sums = [
            f"{self.found[key]:,} of {self.said[key]:,} bytes {words[key]}"
            for key in words
            if key in self.said
        ]
        count = self.wrong_segments
        return [
            *found,
            f"{count:,} segment{'s' if count > 1 else ''} of {len(self.made.segments):,} "
            f"contradict{'' if count > 1 else 's'} the blocks in "
            f"{'them' if count > 1 else 'it'}, which add up to {', '.join(sums)}; the first is at "
            f"{self.first_wrong:#x}",
        ]

    def _block(self, block: Any, at: int, segment: int, accelerator: int) -> tuple[Any, ...] | None:
        if type(block) is not dict:
            return None
        address = _whole(block.get("address", at), LARGEST_ADDRESS)
        size = _whole(block.get("size"), LARGEST_SIZE)
        state = block.get("state")
        if address is None or size is None or type(state) is not str:
            return None
        if state not in STATES:  # of a version to come
            number = ALLOCATED if state.startswith("active") else INACTIVE
            as_what = "allocated" if number == ALLOCATED else "free"
            if len(self.unknown_states) < MOST_STATES:
                self.unknown_states[state[:LONGEST_STATE], as_what] += 1
        else:
            number = STATES[state]
        frames, asked = block.get("frames"), block.get("requested_size")
        history = block.get("history")
        if _is_list(history) and history and type(history[0]) is dict:
            # The latest use of the block stands first.
            frames = frames if frames is not None else history[0].get("frames")
            asked = history[0].get("real_size") if asked is None else asked
        requested = _whole(asked, LARGEST_SIZE)
        if number == INACTIVE:
            requested = 0
        elif requested is None:
            requested = min(self._requests(accelerator).get(address, size), size)
        elif requested > size:
            self.too_small += 1
            requested = size
        return address, size, requested, segment, self.made.sites.of(frames), number, b""

    def _requests(self, accelerator: int) -> dict[int, int]:
        """By address, what the last allocation in the trace of an accelerator asked for."""
        if accelerator not in self.requests:
            found: dict[int, int] = {}
            for trace in self.made.traces:
                if trace.accelerator == accelerator:
                    rows = trace.action == ALLOC
                    at, size = trace.address[rows].tolist(), trace.size[rows].tolist()
                    found.update(zip(at, size, strict=True))
            self.requests[accelerator] = found
        return self.requests[accelerator]

    # ---- the rest ----

    def _annotation(self, annotation: Any) -> None:
        if type(annotation) is not dict:
            self.unread_annotations += 1
            return
        stage, name = annotation.get("stage"), annotation.get("name")
        time_us = _whole(annotation.get("time_us"), LATEST_US)
        if type(name) is not str or stage not in ("START", "END") or time_us is None:
            self.unread_annotations += 1
            return
        accelerator = _whole(annotation.get("device", 0), MOST_DEVICES - 1) or 0
        self._spend(1)
        self.made.annotations.append(
            Annotation(name[:LONGEST_TEXT], stage == "START", time_us, accelerator)
        )

    def _annotation_entry(self, entry: dict[Any, Any], accelerator: int) -> None:
        frames = entry.get("frames")
        frame = frames[0] if _is_list(frames) and frames else None
        if type(frame) is not dict:
            self.unread_annotations += 1
            return
        self._annotation(
            {
                "stage": frame.get("name"),
                "name": frame.get("filename"),
                "time_us": entry.get("time_us"),
                "device": accelerator,
            }
        )

    def _settings(self, settings: dict[Any, Any]) -> None:
        for key, value in list(settings.items())[:MOST_SETTINGS]:
            if type(key) is not str:
                continue
            if type(value) is dict and key == "roundup_power2_divisions":
                self.made.divisions = _divisions(value)
                value = ",".join(f"{k}:{v}" for k, v in list(value.items())[:32])
            if key == "max_split_size" and type(value) is int and value > 0:
                self.made.largest_split = value
            if type(value) in (str, int, float, bool):
                self.made.settings[key[:LONGEST_TEXT]] = str(value)[:LONGEST_TEXT]
        names = settings.get("tlmem_devices")
        if type(names) is str:
            self.made.names |= dict(enumerate(names[:LONGEST_TEXT].split(", ")))

    def _spend(self, count: int) -> None:
        self.room -= count
        if self.room < 0:
            raise CannotImport(
                f"{self.path} refers to the same entries again and again, more than a file of its "
                "length can have: it is damaged or forged"
            )

    def _count(self, what: str, count: int) -> None:
        if count:
            self.wrong[what] += int(count)


def _divisions(value: dict[Any, Any]) -> tuple[int, ...]:
    """Divisions of a power of two for sizes from 1 MiB, 2 MiB, ... on; empty: none."""
    found = [_whole(value.get(str(1 << power)), 1 << 20) or 0 for power in range(16)]
    return tuple(found) if any(found) else ()


def _is_list(value: Any) -> TypeGuard[Sequence[Any]]:
    return type(value) in (list, tuple)


def _whole(value: Any, most: int) -> int | None:
    """A number from 0 to ``most``, else None."""
    return value if type(value) is int and 0 <= value <= most else None


def _number(value: Any) -> int:
    """Any number that fits into 64 bits, else 0."""
    return value if type(value) is int and -(2**63) <= value < 2**63 else 0
