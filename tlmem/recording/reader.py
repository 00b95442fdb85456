"""A recording: opened cheaply, its tables built when first asked for.

Covers: ``read``, the attributes of ``Recording``, what is intact and what is not.
Does not cover: columns of the tables (``schema``) or the format of the file (docs/format.md).
"""

from __future__ import annotations

import html
import os
import threading
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, TypeVar, cast

import numpy as np
import pandas as pd

from tlmem.errors import EmptyRecording
from tlmem.recording import family
from tlmem.recording.available_memory import (
    available_memory,
    give_back_freed_memory,
    keep_freed_memory,
)
from tlmem.recording.format import kept_sums, limits
from tlmem.recording.format.chains import Holding
from tlmem.recording.format.checkpoint import FoldTotals
from tlmem.recording.format.kept_sums import KeptSums
from tlmem.recording.format.live_file import (
    Contents,
    gather,
    is_empty,
    read_contents,
    read_names,
)
from tlmem.recording.format.pairing import Known, Pairing, live_memory
from tlmem.recording.format.segments import (
    OPEN,
    SEALED,
    STOPPED,
    FileHeader,
    Scanner,
    Source,
    read_header,
)
from tlmem.recording.format.symbols import Names
from tlmem.recording.kept_answers import NOTHING, KeptAnswers, Question
from tlmem.recording.source_lines import SourceLines, real_folders
from tlmem.recording.tables import holdings, memory, object_events, runtime, segments, tapes
from tlmem.recording.tables.blame import SiteTable, site_table
from tlmem.recording.tables.device_memory import DeviceChanges, device_memory
from tlmem.recording.tables.holder_names import HolderNames
from tlmem.recording.tables.ledger import (
    Ledger,
    count_problems,
    holder_problems,
    ledger_of,
    owned_lives,
)
from tlmem.units import format_bytes, format_count, format_seconds

if TYPE_CHECKING:
    from pyarrow import RecordBatchReader

    from tlmem.recording.parts import Part

_OF_EVENTS = (
    *("_names", "sites", "heap", "holders", "scopes", "misuses", "passes", "holdings", "contents"),
    *("object_types", "_device_changes", "_fold_totals", "passed"),
)
"""What an analysis asks for that is made of events, besides small attributes."""
_OF_OBJECTS = ("object_devices", "holding_objects")
"""The same that is made of the table of objects."""
PART_EVENTS = 500_000
"""Events in a part of a recording, if nothing else is asked for."""
Answer = TypeVar("Answer")
STATE_NAMES = {OPEN: "open", SEALED: "sealed", STOPPED: "stopped"}


def read(
    path: str | os.PathLike[str],
    start: float | None = None,
    stop: float | None = None,
    *,
    detail_events: int | None = None,
    source_roots: Sequence[str | os.PathLike[str]] = (),
) -> Recording:
    """Opens a recording; its tables are read when first asked for.

    A file that is still written, was killed, cut or damaged gives what is intact; what is not is
    in ``Recording.problems``.

    Args:
        path: the file.
        start, stop: seconds since the start of the recording. Only what happened from ``start`` to
            ``stop`` is read then, and memory that was alive before counts as unknown.
        detail_events: keep about this many of the latest events in detail and fold older ones while
            they are read, in bounded memory. Sums and the live set stay exact; of samples and marks
            every second one is dropped when there are more than 400,000 and 100,000, and misuses
            beyond the first 1,000 are only counted. None: every event is kept, of a file of up to
            2 MB as many of the latest as 500 MB of memory are enough for.
        source_roots: folders whose files may be read for source lines that the recording does not
            have. No file that a recording names is opened otherwise.
    Raises:
        MissingFile: it, or a folder, does not exist or cannot be opened.
        NotARecording: it is something else.
        EmptyRecording: it has no events.
        DamagedRecording: nothing in it can be trusted.
        UnsupportedVersion: its format is newer than this tlmem.

    A table that is asked for raises ``TablesTooLarge`` if there is not enough memory for it.
    """
    return Recording(Path(path), start, stop, detail_events, source_roots, bounded=False)


def read_for_command(
    path: str | os.PathLike[str],
    start: float | None = None,
    stop: float | None = None,
    source_roots: Sequence[str | os.PathLike[str]] = (),
) -> Recording:
    """The same as commands read: of a file of any length at most two million events in detail.

    Sums of what is folded are kept beside the file, or found there: see ``format.kept_sums``.
    """
    return Recording(Path(path), start, stop, limits.DETAIL_OF_COMMANDS, source_roots)


class small(Generic[Answer]):
    """An attribute that is small however long the recording is, and may be kept with its sums.

    It is computed once.
    """

    names: tuple[str, ...] = ()

    def __init__(self, compute: Callable[[Any], Answer]) -> None:
        self._compute, self._name = compute, compute.__name__
        self.__doc__ = compute.__doc__

    def __set_name__(self, owner: type, name: str) -> None:
        """Notes which attributes there are."""
        small.names += (name,)

    def __get__(self, owner: Any, kind: object = None) -> Answer:
        """The attribute, as it was kept if it was."""
        if owner is None:
            return self  # type: ignore[return-value]
        if self._name not in owner.__dict__:
            answers: KeptAnswers | None = owner._answers
            found = answers.find(_attribute(self._name), owner) if answers else NOTHING
            owner.__dict__[self._name] = self._compute(owner) if found is NOTHING else found
        value: Answer = owner.__dict__[self._name]
        return value


class Recording:
    """A recording and its tables; see ``docs/reference/tables.md`` for their columns.

    What a table holds is what was in the file when the first one was asked for: the tables of one
    ``Recording`` always fit each other, also while the file is still written.
    """

    def __init__(
        self,
        path: Path,
        start: float | None = None,
        stop: float | None = None,
        detail_events: int | None = None,
        source_roots: Sequence[str | os.PathLike[str]] = (),
        bounded: bool = True,
    ) -> None:
        self.path = path
        self.source_roots = real_folders(source_roots)
        self._bounded = bounded
        self._to_keep = threading.local()
        self.start, self.stop, self.detail_events = start, stop, detail_events
        self._source = Source(path)
        self._first_header = read_header(self._source)
        if is_empty(self._source, self._first_header):
            raise EmptyRecording(f"{path} holds no events; {_why_empty(self._first_header)}")

    def __repr__(self) -> str:
        return f"<tlmem.Recording {str(self.path)!r} {self.state}>"

    def _repr_html_(self) -> str:
        """What a notebook shows: what was recorded, and how much memory it had."""
        totals = self.totals
        rows = {
            "recording": f"{self.path} ({self.state}{'' if self.complete else ', not complete'})",
            "command": self.info.get("command", ""),
            "events": f"{format_count(self.event_count)} in {format_seconds(self.seconds)}",
            "allocated": f"{format_bytes(totals.total_bytes)} in "
            f"{format_count(totals.total_count)} objects",
            "peak": f"{format_bytes(totals.peak_bytes)} in {format_count(totals.peak_count)}",
            "at the end": f"{format_bytes(totals.current_bytes)} in "
            f"{format_count(totals.current_count)}",
        }
        cells = "".join(
            f"<tr><th style='text-align: left'>{name}</th>"
            f"<td style='text-align: left'>{html.escape(value)}</td></tr>"
            for name, value in rows.items()
            if value
        )
        return f"<table>{cells}</table>"

    # ---- what the header says ----

    @property
    def _header(self) -> FileHeader:
        contents = self.__dict__.get("_contents")
        return contents.header if contents is not None else self._first_header

    @property
    def pid(self) -> int:
        """The recorded process."""
        return self._first_header.pid

    @property
    def parent_pid(self) -> int:
        """The recorded process this one was forked or spawned from; 0 for the first of a family."""
        return self._first_header.parent_pid

    @property
    def created_unix_ns(self) -> int:
        """Wall clock at the start."""
        return self._first_header.created_unix_ns

    @property
    def limit_bytes(self) -> int:
        """Size the file had to keep to; 0: none."""
        return self._first_header.limit_bytes

    @property
    def state(self) -> str:
        """``sealed`` after a clean end, ``stopped`` when it ended early, else ``open``."""
        return STATE_NAMES.get(self._header.state, "open")

    @property
    def sealed(self) -> bool:
        """Whether the program ended cleanly."""
        return self._header.state == SEALED

    @property
    def lost_events(self) -> int:
        """Events that could not be recorded."""
        return self._header.lost_events

    # ---- what is intact ----

    @small
    def problems(self) -> list[str]:
        """What is not intact, a sentence each. Asking for it reads the whole recording."""
        return [
            *self._contents.problems,
            *self._ownership[1],
            *segments.contradictions(self._names),
        ]

    @small
    def missing_events(self) -> int:
        """Events that the file should hold, between others that it does hold, and does not."""
        return self._contents.missing_events

    @property
    def complete(self) -> bool:
        """Sealed, nothing lost, nothing damaged, no count that contradicts the events.

        Asking for it reads the whole recording.
        """
        return self.sealed and self.lost_events == 0 and not self.problems

    @small
    def folded_events(self) -> int:
        """Events that are only in sums: of a checkpoint in the file, or folded while reading."""
        return self._contents.checkpoint.totals.events

    @small
    def event_count(self) -> int:
        """Events read, and those that were folded."""
        contents = self._contents
        of_heap = len(contents.heap) - contents.older_heap
        return len(contents.timeline) + of_heap + self.folded_events

    @small
    def seconds(self) -> float:
        """From the start of the recording to the last thing in it."""
        timeline, header = self._contents.timeline, self._header
        last = max(
            header.last_ticks if header.calibrated else 0,
            self._contents.checkpoint.totals.horizon_ticks,
            int(timeline.ticks.max(initial=0)),
            int(self._contents.heap.ticks.max(initial=0)),
        )
        return float(self._to_ns(np.array([last], np.uint64))[0]) / 1e9

    @cached_property
    def info(self) -> dict[str, str]:
        """Notes about the run: command, script, cwd, python, numpy, exit and others."""
        return dict(self._names.notes)

    @cached_property
    def labels(self) -> dict[int, str]:
        """Texts of labels, by number: names of marks, scopes, modules of PyTorch."""
        return dict(self._names.labels)

    @small
    def fold(self) -> dict[str, int] | None:
        """Sums of the events that were folded; None when every event is in the file."""
        checkpoint = self._contents.checkpoint
        return vars(checkpoint.totals).copy() if checkpoint.number else None

    @small
    def horizon_ns(self) -> int:
        """Time up to which events were folded; 0 when none were."""
        ticks = self._contents.checkpoint.totals.horizon_ticks
        return int(self._to_ns(np.array([ticks], np.uint64))[0]) if ticks else 0

    @cached_property
    def family(self) -> list[Path]:
        """Recordings of the processes that this one started, and theirs."""
        return family.find(self.path)

    # ---- tables ----

    @cached_property
    def events(self) -> pd.DataFrame:
        """Every event, in time order."""
        return memory.events_table(self._contents.timeline, self._pairing, self._to_ns)

    @cached_property
    def objects(self) -> pd.DataFrame:
        """Every allocation and when it was freed."""
        return _objects_of(self._contents)

    @cached_property
    def passed(self) -> pd.DataFrame:
        """Objects that were folded, and freed before that after a long life.

        They are in no other table; what the judge says of a line needs to know that they were.
        """
        return memory.passed_table(self._contents.checkpoint, self._to_ns)

    @small
    def lost_ns(self) -> int:
        """What was freed until this time is lost, as an older version folded it; 0: nothing is."""
        ticks = self._contents.checkpoint.lost_ticks
        return int(self._to_ns(np.array([ticks], np.uint64))[0]) if ticks else 0

    @small
    def object_devices(self) -> frozenset[int]:
        """Numbers of the devices that objects are of."""
        return frozenset(self.objects["device"].unique().tolist())

    @cached_property
    def heap(self) -> pd.DataFrame:
        """Sampled blocks of native code and of Python's heap; see ``record --heap``."""
        return memory.heap_table(self._contents.heap, self._names.notes, self._to_ns)

    @small
    def heap_count(self) -> int:
        """Rows of ``heap``."""
        return len(self.heap)

    @property
    def heap_sampled(self) -> bool:
        """Whether blocks of the heap were sampled, if only there had been some."""
        return "heap.rate" in self._names.notes

    @property
    def heap_rate(self) -> float:
        """One block of ``heap`` was sampled for so many bytes in the mean; 1: every block was."""
        return memory.heap_rate(self._names.notes)

    @small
    def heap_from_ns(self) -> int:
        """Of samples of the heap before only blocks that were alive then are known; 0: all are."""
        ticks = self._contents.checkpoint.totals.heap_from_ticks
        return int(self._to_ns(np.array([ticks], np.uint64))[0]) if ticks else 0

    @small
    def samples(self) -> pd.DataFrame:
        """Resident memory and its parts over time."""
        return self._over_time[0]

    @cached_property
    def sites(self) -> pd.DataFrame:
        """Call sites: frames with their callers."""
        return memory.sites_table(self._names, self._site_table)

    @small
    def site_totals(self) -> pd.DataFrame:
        """Exact sums for each call site, folded events included."""
        contents = self._contents
        return memory.site_totals_table(
            contents.timeline, self._pairing, contents.checkpoint, self._site_table, self._to_ns
        )

    @small
    def _marks(self) -> tuple[pd.DataFrame, int | None, int | None, int]:
        return memory.marks_table(
            self._contents.timeline, self._contents.checkpoint, self._names, self._to_ns
        )

    @property
    def marks(self) -> pd.DataFrame:
        """The program's own marks."""
        return self._marks[0]

    @property
    def begin_ns(self) -> int | None:
        """When the program's own code began; None when that was not recorded."""
        return self._marks[1]

    @property
    def end_ns(self) -> int | None:
        """When the program's own code had ended; None when it was killed before."""
        return self._marks[2]

    @property
    def end_thread(self) -> int:
        """The thread on which that was, the main one; 0 when it is not known."""
        return self._marks[3]

    @small
    def threads(self) -> pd.DataFrame:
        """Threads that recorded something."""
        contents = self._contents
        of_heap = contents.heap.thread[contents.older_heap :]
        threads = (contents.timeline.thread, of_heap)
        return memory.threads_table(threads, contents.checkpoint, self._names, self._to_ns)

    @cached_property
    def holders(self) -> pd.DataFrame:
        """The ledger: who held which object, from when to when."""
        return runtime.holders_table(
            self._contents.timeline, self._pairing, self._ledger, self._holder_names, self._to_ns
        )

    @cached_property
    def holdings(self) -> pd.DataFrame:
        """Chains of Python objects that held arrays when snapshots were taken."""
        return holdings.holdings_table(self._holdings, self._names.holdings, self._to_ns)

    @cached_property
    def holding_steps(self) -> pd.DataFrame:
        """The chains of ``holdings``, step by step."""
        return holdings.steps_table(self._holdings)

    @cached_property
    def holding_objects(self) -> pd.DataFrame:
        """Objects that snapshots found in chains."""
        return holdings.objects_table(self._holdings, self.objects, self._to_ns)

    @cached_property
    def contents(self) -> pd.DataFrame:
        """Items of the largest containers, and arrays over memory that is not tracked."""
        return holdings.contents_table(
            self._names.contents, self._names.holdings, self._contents.span, self._to_ns
        )

    @cached_property
    def object_types(self) -> pd.DataFrame:
        """Objects of each of the commonest types, as snapshots counted them."""
        return holdings.object_types_table(
            self._names.contents, self._names.holdings, self._contents.span, self._to_ns
        )

    @cached_property
    def scopes(self) -> pd.DataFrame:
        """Scopes and frames of functions."""
        return runtime.scopes_table(
            self._contents.timeline, self._ledger, self._names.labels, self._to_ns
        )

    @cached_property
    def misuses(self) -> pd.DataFrame:
        """What the program did wrong, such as uses after free."""
        return runtime.misuses_table(
            self._contents.timeline,
            self._pairing,
            self._known,
            self._contents.checkpoint,
            self._holder_names,
            self._to_ns,
        )

    @cached_property
    def pools(self) -> pd.DataFrame:
        """Pools of objects and the freed buffers of devices."""
        return runtime.pools_table(
            self._contents.timeline, self._pairing, self._ledger, self._holder_names
        )

    @cached_property
    def ops(self) -> pd.DataFrame:
        """Ops that were recorded on tapes, and what tapes held for them."""
        return tapes.ops_table(
            self._contents.timeline, self._pairing, self._ledger, self._holder_names
        )

    @cached_property
    def passes(self) -> pd.DataFrame:
        """Backward passes."""
        return tapes.passes_table(self._contents.timeline, self._pairing, self._ledger, self._to_ns)

    @cached_property
    def devices(self) -> pd.DataFrame:
        """What the drivers of devices handed out."""
        return runtime.devices_table(self._contents.timeline)

    @cached_property
    def segments(self) -> pd.DataFrame:
        """Segments of caching allocators when a snapshot was taken, each as a sum of its parts."""
        return segments.segments_table(self._names)

    @cached_property
    def blocks(self) -> pd.DataFrame:
        """Blocks of these segments."""
        return segments.blocks_table(self._names, self.objects)

    @cached_property
    def phases(self) -> pd.DataFrame:
        """Annotations of the program with begin and end."""
        return segments.phases_table(self._names)

    @cached_property
    def requests(self) -> pd.DataFrame:
        """What was asked for in each allocation of an imported snapshot."""
        return segments.requests_table(self._names)

    @small
    def totals(self) -> memory.Totals:
        """Current, peak and total memory, exact with folded events."""
        return self._over_time[1]

    @property
    def unknown_frees(self) -> int:
        """Frees of memory older than the recording."""
        return self.totals.unknown_frees

    # ---- one part after another ----

    def parts(self, events: int = PART_EVENTS) -> Iterator[Part]:
        """The recording as parts of about so many events, in time order, in bounded memory.

        A part is a ``Recording`` of its own with the same tables. In turn,

        * ``events``, ``samples``, ``marks``, ``misuses`` and the tables of snapshots are, one part
          below the other, those of the whole;
        * ``objects`` and ``heap`` have what was alive at any time of the part, what is older first:
          what lives on has a row with ``died_ns`` -1 in each part but its last one, so that the
          rows with an end, and all rows of the last part, are those of the whole;
        * ``site_totals``, ``threads`` and ``totals`` are sums from the start of the recording to
          the end of the part; those of the last one are those of the whole;
        * ``holders``, ``scopes``, ``pools``, ``ops``, ``passes`` and ``devices`` know only the
          events of the part.

        Args:
            events: about so many in each part, at least 1. 500,000 take about 100 MB.

        Raises:
            DamagedRecording: as ``tlmem.read``.
        """
        from tlmem.recording.parts import parts_of

        return parts_of(self, events)

    def to_arrow(self, table: str = "events", events: int = PART_EVENTS) -> RecordBatchReader:
        """A table as Arrow record batches, made while they are read, in bounded memory.

        DuckDB, Polars, Dask and pandas read it without a copy on disk. ``objects`` and ``heap``
        are in the order in which their rows end. Tables of the runtime's ledger (``holders``,
        ``scopes``, ``pools``, ``ops``, ``passes``, ``devices``) are made whole.

        Args:
            table: the name of a table.
            events: see ``parts``.

        Raises:
            ValueError: there is no table of this name.
            MissingLibrary: pyarrow is not installed.
            TablesTooLarge: a table that is made whole takes more memory than is available.
        """
        from tlmem.recording.arrow import reader_of

        return reader_of(self, table, events)

    # ---- at one moment ----

    def held_at(self, objects: np.ndarray, time_ns: int) -> pd.DataFrame:
        """Who held which of these objects (numbers): one row for each count that has a name.

        Returns:
            ``object``, ``kind`` of the holder, ``holder`` in words without its number, ``site``
            where it took the object.
        """
        return runtime.held_at(
            self._contents.timeline,
            self._pairing,
            self._ledger,
            self._holder_names,
            self._to_ns,
            objects,
            time_ns,
        )

    def history(self, object: int) -> pd.DataFrame:
        """Every event about one object (its number), acquires and releases paired by holder.

        Returns:
            ``event`` (row of ``events``), ``time_ns``, ``thread``, ``kind``, ``resize``,
            ``failed``, ``holder`` in words, ``size_bytes``, ``count`` after it, ``site``,
            ``ended_by``, ``began_at`` (rows of this table, -1: none) and ``unpaired``.
        """
        return object_events.history_table(
            self._contents.timeline,
            self._pairing,
            self._known,
            self._ledger,
            self._holder_names,
            self._to_ns,
            object,
        )

    def times_ns(self, ticks: np.ndarray) -> np.ndarray:
        """Nanoseconds since the start of some times of the recording's own clock."""
        return self._to_ns(ticks)

    def event_clock(self) -> object_events.EventClock:
        """When objects begin and end, as positions in ``events``, without making that table."""
        contents = self._contents
        return object_events.event_clock(contents.timeline, self._pairing)

    def device_memory(self, times_ns: np.ndarray) -> pd.DataFrame:
        """Bytes at each of some times: what devices had handed out, what live objects used of it.

        Returns:
            ``objects``, ``handed_out``, ``host`` (from the C allocator); NaN where it was folded.
        """
        return device_memory(
            self._device_changes, self.objects, self._fold_totals, times_ns, self.horizon_ns
        )

    @cached_property
    def _device_changes(self) -> DeviceChanges:
        return DeviceChanges.of(self._contents.timeline, self._to_ns)

    @cached_property
    def _fold_totals(self) -> FoldTotals:
        return self._contents.checkpoint.totals

    def tape_memory(self, times_ns: np.ndarray) -> pd.DataFrame:
        """What tapes held at each of some times, for rules and as gradients.

        Returns:
            ``saved_count`` objects and ``saved_bytes`` for rules, each object once, and
            ``grad_count`` and ``grad_bytes`` of gradients; NaN where it was folded.
        """
        return tapes.tape_memory(
            self._contents.timeline,
            self._pairing,
            self._ledger,
            times_ns,
            self.horizon_ns,
            self._to_ns,
        )

    # ---- stacks ----

    def stack(self, site: int) -> list[dict[str, Any]]:
        """The frames of a site, innermost first: ``file``, ``line``, ``function`` each."""
        return [
            {"file": file, "line": line, "function": function}
            for file, line, function in self.frames_of(site)
        ]

    def frames_of(self, site: int) -> Iterator[tuple[str, int, str]]:
        """File, line and function of the frames of a site, innermost first, as far as one asks."""
        sites, codes = self._names.sites, self._names.codes
        while site in sites:
            site, code_number, line = sites[site]
            code = codes.get(code_number)
            yield (code.file, line, code.function) if code else ("", line, "")

    def blame(self, site: int) -> dict[str, Any] | None:
        """The innermost frame of a site in the user's code; the innermost of all when none is."""
        blamed = int(self.blame_table.get(site, 0))
        for file, line, function in self.frames_of(blamed):
            return {"file": file, "line": line, "function": function}
        return None

    @cached_property
    def blame_table(self) -> pd.Series:
        """For each site, the site of its innermost frame in the user's code."""
        return self.sites["blamed"]

    # ---- source lines ----

    def source_line(self, file: str, line: int, function: str = "") -> str:
        """The text of a line of the program; empty where it is not known.

        Args:
            file, line, function: as in the table ``sites``.
        """
        return self.source_lines.line(file, line, function)

    @cached_property
    def source_lines(self) -> SourceLines:
        """What was recorded of the program's source, and where else it may be read."""
        return SourceLines(
            self._names.codes,
            self._names.lines,
            self.source_roots,
            self.info.get("cwd", ""),
            self.created_unix_ns + int(self.seconds * 1e9),
        )

    # ---- how it is read ----

    @cached_property
    def _contents(self) -> Contents:
        about = (self._source, self.start, self.stop, self.detail_events, self._bounded)
        if not self._bounded:
            return read_contents(*about, available_memory)
        keep_freed_memory()
        contents = read_contents(*about, None, KeptSums(self.path, self._source.size()))
        give_back_freed_memory()
        keep_freed_memory()
        contents.pairing  # noqa: B018 - made here, of many arrays that are small enough to be kept
        give_back_freed_memory()
        return contents

    # ---- answers that are kept with its sums ----

    def kept(
        self, question: Question, answer: Callable[[], Answer], with_attributes: bool = False
    ) -> Answer:
        """What ``answer`` returns, from the sums where it is kept there; kept, if it was long work.

        Args:
            question: says all that the answer depends on besides this recording.
            with_attributes: keep small attributes of the recording with it.
        """
        found = self._answers.find(question, self) if self._answers else NOTHING
        if found is not NOTHING:
            return cast(Answer, found)
        around: dict[Question, object] | None = getattr(self._to_keep, "answers", None)
        to_keep = self._to_keep.answers = {} if around is None else around
        try:
            made = answer()
            if self._answers and self.keeps_answers:
                names = small.names if with_attributes else ()
                to_keep.update({_attribute(name): getattr(self, name) for name in names})
                to_keep[question] = made
                if around is None:
                    # At once, as the whole recording is read to see that it is still the same.
                    self._answers.keep(to_keep, self)
        finally:
            self._to_keep.answers = around
        return made

    @property
    def keeps_answers(self) -> bool:
        """Whether ``kept`` keeps answers: the recording is long, and has ended."""
        return self._answers is not None and self.event_count >= kept_sums.LEAST_EVENTS

    def release_events(self) -> None:
        """Gives back the memory of a long recording's events, once tables were made of them.

        ``objects`` and what is small stays. What else needs events reads them again, so the
        recording must have ended; those of one with holders are needed, and stay.
        """
        if not self.keeps_answers:
            return
        for name in (*small.names, *_OF_EVENTS):
            if name not in _OF_OBJECTS:
                getattr(self, name)
        if not len(self.holders):
            # The objects come last, when there is room for them.
            contents = self._contents.of_objects()
            for name in ("_contents", "_over_time", "_ownership", "_holder_names", "_known"):
                self.__dict__.pop(name, None)
            give_back_freed_memory()
            self.__dict__.setdefault("objects", _objects_of(contents))
            del contents
        for name in ("objects", *_OF_OBJECTS):
            getattr(self, name)
        give_back_freed_memory()

    @cached_property
    def _answers(self) -> KeptAnswers | None:
        """What is kept; None where it may change, or depends on other files or on a range."""
        whole = self._bounded and self.start is None and self.stop is None
        if not whole or self.source_roots or self._first_header.state == OPEN:
            return None
        return KeptAnswers(self._source, (self.detail_events,))

    @cached_property
    def _names(self) -> Names:
        answers = None if "_contents" in self.__dict__ else self._answers
        if answers is None or answers.find(_attribute("event_count"), self) is NOTHING:
            return self._contents.names
        return read_names(self._source, gather(self._source, Scanner(self._source)).directory, [])

    @cached_property
    def _site_table(self) -> SiteTable:
        return site_table(self._names)

    @cached_property
    def _known(self) -> Known:
        return self._contents.checkpoint.known()

    @property
    def _pairing(self) -> Pairing:
        return self._contents.pairing

    @cached_property
    def _over_time(self) -> tuple[pd.DataFrame, memory.Totals]:
        """What needs live memory after each event, which is not kept."""
        contents, pairing, folded = self._contents, self._pairing, self._contents.checkpoint.totals
        live = live_memory(pairing, self._known, folded.current_bytes, folded.current_count)
        about = (contents.timeline, pairing, live, contents.checkpoint, self._to_ns)
        return memory.samples_table(*about), memory.totals_of(*about)

    @cached_property
    def _ownership(self) -> tuple[Ledger, list[str]]:
        """The ledger, and what in it does not add up where nothing is missing."""
        timeline = self._contents.timeline
        lives = owned_lives(timeline, self._pairing, self._known)
        ledger = ledger_of(lives)
        if self.lost_events or self.missing_events:
            return ledger, []
        return ledger, [*count_problems(timeline, lives), *holder_problems(timeline, ledger)]

    @property
    def _ledger(self) -> Ledger:
        return self._ownership[0]

    @cached_property
    def _holdings(self) -> list[Holding]:
        return holdings.whole_holdings(self._names.holdings, self._contents.span)

    @cached_property
    def _holder_names(self) -> HolderNames:
        return HolderNames(self._contents.timeline, self._names.labels, self._names.notes)

    @cached_property
    def _to_ns(self) -> Callable[[np.ndarray], np.ndarray]:
        return self._contents.header.to_ns


def _objects_of(contents: Contents) -> pd.DataFrame:
    about = (contents.timeline, contents.pairing, contents.checkpoint, contents.header.to_ns)
    return memory.objects_table(*about, contents.carried)


def _attribute(name: str) -> Question:
    return ("attribute", name)


def _why_empty(header: FileHeader) -> str:
    if header.state == OPEN:
        return "it has just been started, or was cut or damaged before the first one"
    return "nothing was recorded, or it was cut or damaged"
