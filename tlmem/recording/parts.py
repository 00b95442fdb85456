"""A recording in parts: each a recording of its own, with the same tables, in bounded memory.

Covers: the parts, and which of their rows are rows of the whole.
Does not cover: where a recording is cut, and what is carried over (``format.live_file``).
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pandas as pd

from tlmem.events import FIRST_RUNTIME_DEVICE, Kind
from tlmem.recording.format import limits
from tlmem.recording.format.blocks import EVENTS_BLOCK
from tlmem.recording.format.live_file import RAW_SLOT, Contents, gather, read_parts
from tlmem.recording.format.segments import Scanner
from tlmem.recording.reader import PART_EVENTS, Recording

ENDING_TABLES = ("objects", "heap")
"""Tables whose rows are in every part in which what they speak of was alive."""
LEDGER_TABLES = ("holders", "scopes", "pools", "ops", "passes", "devices")
"""Tables that are right only when they are made from all events."""
LAST_PART_TABLES = (
    *("site_totals", "threads", "sites", "segments", "blocks", "phases", "requests"),
    *LEDGER_TABLES,
)
"""Tables of which the last part has the whole, as long as there is no ledger."""
_OF_NO_LEDGER = (Kind.ALLOC, Kind.FREE, Kind.REALLOC, Kind.MARK, Kind.SAMPLE, Kind.MISUSE)


def is_long(recording: Recording) -> bool:
    """Whether it has more events than one part; nothing is decoded for that.

    Of so many that no program makes them in so few bytes only the latest are read, at once.
    """
    source = recording._source
    pieces = gather(source, Scanner(source)).directory.of_type(EVENTS_BLOCK, RAW_SLOT)
    most = limits.detail_events(source.size())
    return PART_EVENTS < int(pieces["count"].sum(dtype=np.int64)) <= most


class Part(Recording):
    """One part of a recording.

    Attributes:
        number: of the part, from 0.
        is_last: whether it is the last one.
    """

    def __init__(self, whole: Recording, contents: Contents, number: int, is_last: bool) -> None:
        self.path, self.source_roots = whole.path, whole.source_roots
        self.start, self.stop, self.detail_events = whole.start, whole.stop, whole.detail_events
        self._bounded, self._source = whole._bounded, whole._source
        self._to_keep = whole._to_keep
        self._first_header = contents.header
        self.number, self.is_last = number, is_last
        self.__dict__["_contents"] = contents

    def __repr__(self) -> str:
        return f"<part {self.number} of {str(self.path)!r}>"

    @property
    def folded_events(self) -> int:
        """Events that are only in sums: of a checkpoint in the file."""
        carried = self._contents.carried
        return carried.folded if carried else 0

    @property
    def event_count(self) -> int:
        """Events of the part."""
        contents = self._contents
        return len(contents.timeline) + len(contents.heap) - contents.older_heap

    @property
    def has_ledger(self) -> bool:
        """Whether the part has events of which tables of the ledger are made."""
        timeline = self._contents.timeline
        there = np.bincount(timeline.kind, minlength=256) > 0
        there[list(_OF_NO_LEDGER)] = False
        return bool(there.any()) or bool((timeline.device >= FIRST_RUNTIME_DEVICE).any())

    def rows_of_whole(self, table: str) -> pd.DataFrame:
        """The rows of ``events``, ``objects`` and the like that no later part has again."""
        rows: pd.DataFrame = getattr(self, table)
        if table in ENDING_TABLES and not self.is_last:
            return rows[rows["died_ns"] >= 0]
        return rows


def parts_of(whole: Recording, events: int) -> Iterator[Part]:
    """See ``Recording.parts``.

    Raises:
        ValueError: ``events`` is less than 1.
    """
    if events < 1:
        raise ValueError(f"a part has at least 1 event, not {events}")
    contents = read_parts(whole._source, whole.start, whole.stop, events)
    return (Part(whole, part, number, last) for number, (part, last) in enumerate(contents))
