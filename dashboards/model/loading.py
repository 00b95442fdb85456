"""One recording with all that screens ask of it, each thing computed once and when first asked for.

Covers: reading in an order that shows something early, one lock, the family of processes.
Does not cover: threads and screens (``app``); every call here may take seconds and belongs into a
worker.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from tlmem.analysis import Analysis, analyse
from tlmem.analysis.leaks.alive_at_end import alive_in
from tlmem.analysis.ledger.history import History, NoSuchObject, life_of
from tlmem.analysis.memory.devices import with_devices
from tlmem.analysis.places import Places, place
from tlmem.errors import TlmemError
from tlmem.recording import family
from tlmem.recording.reader import read_for_command
from tlmem.report.kinds import kind_name

from .findings import MARKS
from .frame_table import FrameTable
from .glance import Glance, glance, script_name
from .lanes import Lanes
from .layers import Layers, combined, layers_of
from .moments import MomentIndex
from .pools import PoolIndex
from .scopes import ScopeIndex
from .tapes import TapeIndex
from .time_axis import epochs_of

SERIOUS = ("error", "warning")
MOST_LIVES = 50
"""Of so many findings, the most important ones, the life of the object is read beforehand."""


Value = TypeVar("Value")


@dataclass(frozen=True)
class FoundLine:
    """What was found about a line: the sign of its severity, its name, one sentence."""

    sign: str
    name: str
    evidence: str


class kept(Generic[Value]):
    """A property that is computed once, under the lock of its owner.

    That of ``functools`` has a lock of its own up to Python 3.11, taken before that of the owner:
    two threads of which one has each would wait for ever.
    """

    def __init__(self, compute: Callable[[Any], Value]) -> None:
        self._compute = compute
        self._name = compute.__name__
        self.__doc__ = compute.__doc__

    def __get__(self, owner: Any, kind: object = None) -> Value:
        with owner._lock:
            if self._name not in owner.__dict__:
                owner.__dict__[self._name] = self._compute(owner)
        value: Value = owner.__dict__[self._name]
        return value


class Loaded:
    """A recording; cheap to make, everything else is read when it is first asked for.

    Raises:
        TlmemError: the file is missing, no recording, empty or damaged beyond use.
    """

    def __init__(self, path: Path, source_roots: Sequence[str] = ()) -> None:
        self.path = path
        self.first_look: Glance = glance(path)
        self.recording = read_for_command(path, source_roots=source_roots)
        self.moments = MomentIndex(self.recording)
        self._lock = threading.RLock()
        self._lives: dict[int, History | None] = {}

    @property
    def script(self) -> str:
        """Base name of the program."""
        return script_name(self.first_look.info, self.path)

    @property
    def end_ns(self) -> int:
        """When the recording ends."""
        seconds = self.recording.seconds if self.is_read else self.first_look.seconds
        return int(seconds * 1e9)

    @property
    def is_read(self) -> bool:
        """Whether the events have been read."""
        return "layers" in self.__dict__

    @property
    def is_analysed(self) -> bool:
        """Whether findings are there."""
        return "analysis" in self.__dict__

    def read_events(self) -> None:
        """Reads everything that pictures need."""
        with self._lock:
            _ = self.recording.objects, self.recording.site_totals, self.recording.totals
            _ = self.recording.marks, self.recording.threads, self.recording.complete
            _ = self.layers

    def analyse(self) -> None:
        """Computes verdict and findings."""
        with self._lock:
            _ = self.recording.scopes, self.recording.sites, self.analysis

    @kept
    def layers(self) -> Layers:
        """Where resident memory is over time."""
        return layers_of(with_devices(self.recording))

    @kept
    def places(self) -> Places:
        """The lines of the program."""
        return Places.of(self.recording)

    @kept
    def lanes(self) -> Lanes:
        """Lifetimes of all objects."""
        return Lanes(self.recording, self.places)

    @kept
    def epochs(self) -> list[NDArray[np.int64]]:
        """Times of marks that may divide the run."""
        return epochs_of(self.recording.marks)

    @kept
    def frames(self) -> FrameTable:
        """The frames of all sites."""
        return FrameTable(self.recording.sites, self.recording.source_line)

    @kept
    def scopes(self) -> ScopeIndex:
        """Scopes and frames over time."""
        return ScopeIndex(self.recording.scopes)

    @kept
    def pools(self) -> PoolIndex:
        """Pools and devices over time."""
        return PoolIndex(self.recording)

    @kept
    def tapes(self) -> TapeIndex:
        """Tapes over time."""
        return TapeIndex(self.recording)

    @kept
    def analysis(self) -> Analysis:
        """Verdict, attribution and findings."""
        return analyse(self.recording)

    @kept
    def found_lines(self) -> dict[int, FoundLine]:
        """Lines of the program by number, with the most serious error or warning about each."""
        numbers = {frame: number for number, frame in enumerate(self.places.frames)}
        found: dict[int, FoundLine] = {}
        for finding in self.analysis.findings:
            line = numbers.get(finding.site) if finding.site is not None else None
            if line is not None and finding.severity in SERIOUS:
                sign = MARKS[finding.severity][0]
                found.setdefault(line, FoundLine(sign, kind_name(finding.kind), finding.evidence))
        return found

    @kept
    def alive_when_judged(self) -> tuple[int, int]:
        """Objects and bytes that were alive when the program was judged."""
        counts, held = alive_in(self.recording, self.places)
        return int(counts.sum()), int(held.sum())

    def history(self, number: int) -> History | None:
        """The life of an object; None of one that the recording does not list.

        It is worked out anew: to keep it beside the recording would take longer, as the whole file
        is read for that.
        """
        with self._lock:
            if number not in self._lives:
                try:
                    self._lives[number] = life_of(self.recording, str(number), self.places)
                except NoSuchObject:
                    self._lives[number] = None
            return self._lives[number]

    def prepare(self) -> None:
        """Computes what the other screens begin with, so that they are there when asked for.

        What keys ask for first comes first, and the lock is free in between.
        """
        _ = self.frames, self.scopes, self.lanes
        self.lanes.prepare()
        self.pools.prepare()
        self.tapes.prepare()
        _ = self._empty
        self.moments.prepare()
        for finding in self.analysis.findings[:MOST_LIVES]:
            if finding.object is not None:
                self.history(finding.object)

    @property
    def empty_screens(self) -> tuple[str, ...]:
        """Names of screens that have nothing to show; none before ``prepare`` has ended."""
        return self._empty if "_empty" in self.__dict__ else ()

    @kept
    def _empty(self) -> tuple[str, ...]:
        recording = self.recording
        things = {
            "scopes": (recording.scopes,),
            "pools": (recording.pools, recording.devices),
            "tape": (recording.ops, recording.passes),
        }
        return tuple(name for name, tables in things.items() if not any(map(len, tables)))

    @property
    def detail_from_ns(self) -> int:
        """From when on every object is known: before, those that were freed are only in sums."""
        return self.recording.horizon_ns if self.is_read else 0

    def worst_place(self) -> str:
        """Where the most important finding is, in words that fit behind a verdict.

        Empty when that finding has no place: the next one is about something else.
        """
        findings = self.analysis.findings if self.is_analysed else ()
        if not findings or findings[0].site is None or not findings[0].site.file:
            return ""
        finding, where = findings[0], place(findings[0].site)
        if finding.severity not in SERIOUS:
            return f"kept at {where}"
        stable = self.analysis.verdict.outcome == "stable"
        return f"but {finding.kind} at {where}" if stable else f"at {where}"


def family_layers(members: Sequence[Loaded], shown: Loaded) -> Layers:
    """Where the memory of all processes of a family is, on the clock of one of them.

    Reads the events of those that have not been read. Pages that processes share are counted in
    each of them; a process counts from its first sample to its last one.
    """
    for member in members:
        member.read_events()
    began = shown.first_look.created_unix_ns
    return combined(
        [(member.first_look.created_unix_ns - began, member.layers, True) for member in members]
    )


def family_of(path: Path) -> list[Path]:
    """A recording and those of the processes that it started, those that cannot be read left out.

    Raises:
        TlmemError: ``path`` itself cannot be read.
    """
    glance(path)
    members = [path]
    for child in family.find(path):
        try:
            glance(child)
        except TlmemError:
            continue
        members.append(child)
    return members
