"""What can be said of a recording before its events are read: its header, notes and samples.

Covers: a first screen in a fraction of a second, for a file of any size, and following a file that
is being written. Does not cover: anything that follows from events of objects (``loading``).

Threads that allocate write millions of events; the thread that samples memory writes few. Only
threads with few events are decoded here.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from tlmem.events import EVENT_DTYPE
from tlmem.recording.format.blocks import (
    EVENTS_BLOCK,
    EVENTS_PER_SLOT,
    SLOT_BYTES,
    SLOT_HEADER_BYTES,
)
from tlmem.recording.format.checkpoint import read_checkpoint
from tlmem.recording.format.live_file import RAW_SLOT, Contents, gather, read_names
from tlmem.recording.format.pairing import live_memory, pair
from tlmem.recording.format.segments import OPEN, Scanner, Source
from tlmem.recording.format.symbols import NOTE, Names
from tlmem.recording.format.timeline import Loader, without_heap
from tlmem.recording.reader import STATE_NAMES
from tlmem.recording.tables.memory import samples_table

MOST_EVENTS = 300_000
"""So many events are decoded at most: about 20 ms."""


@dataclass(frozen=True)
class Glance:
    """What is known at once; ``samples`` is the table of that name, without what only events show.

    ``events`` is exact for a sealed file and for one that is being written.
    """

    path: Path
    pid: int
    parent_pid: int
    created_unix_ns: int
    state: str
    events: int
    lost_events: int
    seconds: float
    info: dict[str, str]
    samples: pd.DataFrame

    @property
    def script(self) -> str:
        """Base name of the program, or of the file where that was not recorded."""
        return script_name(self.info, self.path)

    @property
    def running(self) -> bool:
        """The recording was not ended: the program still runs, or was killed."""
        return self.state == STATE_NAMES[OPEN]


def script_name(info: dict[str, str], path: Path) -> str:
    """What a recorded program is called on screen: its script, module or command."""
    script = info.get("script", "").rstrip("/").rpartition("/")[2]
    return script or " ".join(info.get("command", "").split())[:40] or path.name


def glance(path: Path, scanner: Scanner | None = None) -> Glance:
    """Looks at a recording without reading most of it.

    Args:
        scanner: one of an earlier look at the same file, which knows what has not changed.
    Raises:
        TlmemError: the file is missing, no recording, or damaged beyond use.
    """
    source = scanner.source if scanner else Source(path)
    pieces = gather(source, scanner or Scanner(source))
    header, directory = pieces.header, pieces.directory
    problems: list[str] = []
    checkpoint = read_checkpoint(source, directory.of_type(3), header.fold_number, problems)
    events = directory.of_type(EVENTS_BLOCK, RAW_SLOT)
    few = _of_quiet_threads(events)
    timeline = Loader(source, header, pieces.copies).load(few, checkpoint.consumed, whole=False)
    timeline, heap = without_heap(timeline)
    contents = Contents(header, timeline, heap, Names(), checkpoint)
    known = checkpoint.known()
    pairing = pair(timeline, known)
    live = live_memory(pairing, known, 0, 0)
    samples = samples_table(timeline, pairing, live, checkpoint, contents.header.to_ns)
    unknown = [name for name in ("tracked", "tracked_count") if len(few) < len(events)]
    samples = samples.assign(**dict.fromkeys(unknown, np.nan))
    last = max(int(header.last_ticks), int(timeline.ticks.max(initial=header.first_ticks)))
    closed = events[events["closed"] != 0]
    counted = int(closed["count"].astype(np.int64).sum()) + int(header.folded_events)
    for offset in events["offset"][events["closed"] == 0].tolist():
        counted += _committed(pieces.copies.get(offset) or source.read(offset, SLOT_BYTES))
    return Glance(
        path=path,
        pid=header.pid,
        parent_pid=header.parent_pid,
        created_unix_ns=header.created_unix_ns,
        state=STATE_NAMES.get(header.state, "open"),
        events=header.total_events or counted,
        lost_events=header.lost_events,
        seconds=float(contents.header.to_ns(np.array([last], np.uint64))[0]) / 1e9,
        info=dict(read_names(source, directory, problems, only=NOTE).notes),
        samples=samples,
    )


def _committed(slot: bytes) -> int:
    """Events in a slot that is still being written."""
    room = max(len(slot) - SLOT_HEADER_BYTES, 0) // EVENT_DTYPE.itemsize
    events = np.frombuffer(slot, EVENT_DTYPE, min(room, EVENTS_PER_SLOT), SLOT_HEADER_BYTES)
    return int(np.count_nonzero(events["kind"]))


def _of_quiet_threads(events: np.ndarray) -> np.ndarray:
    """The pieces of the threads with fewest events, as many threads as stay below the limit."""
    counts = events["count"].astype(np.int64)
    threads, which = np.unique(events["thread"], return_inverse=True)
    per_thread = np.bincount(which, weights=counts, minlength=len(threads))
    order = np.argsort(per_thread, kind="stable")
    within = np.cumsum(per_thread[order]) <= MOST_EVENTS
    return events[np.isin(events["thread"], threads[order[within]])]
