"""A moment of a recording, and everything that was alive then: by role, module and line.

Covers: which moment is meant, the sums, which step and phase it was in; the same of what was
allocated between two moments alone (a generation). Every sum adds up to the bytes that were alive.
Does not cover: text; see ``report.peak``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from tlmem.analysis.holders.snapshots import Snapshots
from tlmem.analysis.lifetimes import alive_at, lifetimes
from tlmem.analysis.model import Holder, StackFrame
from tlmem.analysis.peak.blocks import HOST, Blocks, Ints, blocks_of
from tlmem.analysis.peak.held import holders_by_line
from tlmem.analysis.peak.lowering import Lowering, Path, Replay, lowerings
from tlmem.analysis.peak.modules import Modules, modules_of, with_parameters
from tlmem.analysis.peak.names import names_of
from tlmem.analysis.peak.passes import Passes, passes_of
from tlmem.analysis.peak.phases import IN_WORDS, Phase
from tlmem.analysis.peak.roles import NAMES, Named, Role, Roles, roles_of
from tlmem.analysis.places import Places
from tlmem.errors import TlmemError
from tlmem.units import parse_seconds

if TYPE_CHECKING:
    from tlmem.recording.reader import Recording

_INDEXED = re.compile(r"(.*)[: ](-?[0-9]{1,18})", re.DOTALL)
_NAMED_MARKS = 5
"""So many labels are named when there is none of the name that was asked for."""
MOST_HELD = 100
"""Of so many lines, those with most bytes, it is found out who held what they allocated."""
BEFORE_THE_TRACE = "when the trace began"
"""What a program was doing at the only moment that is known of a snapshot without allocations."""
BETWEEN = ".."
"""Stands between the two moments of a generation."""


class NoSuchMemory(TlmemError):
    """The recording has no object in the memory that was asked for."""

    exit_code = 2


class NoSuchMoment(TlmemError):
    """The recording has no mark of that name, and it is not a time of it."""

    exit_code = 2


@dataclass(frozen=True)
class Moment:
    """When something was, and what the program was doing.

    ``event`` is a position in the table of events. ``phase`` is in words, empty where PyTorch is
    not used; ``module`` is the one that was running, as far as it is known; ``site`` the line.
    ``step`` of ``steps`` is 0 of 0 without a training loop. ``mark`` is the last one before.
    """

    event: int
    time_ns: int
    phase: str = ""
    module: str = ""
    site: StackFrame | None = None
    step: int = 0
    steps: int = 0
    mark: tuple[str, int] | None = None


@dataclass(frozen=True)
class RoleSum:
    """What is alive in one role; ``modules`` and ``lines`` are its parts, most bytes first."""

    role: str
    bytes: int
    count: int
    modules: tuple[tuple[Path, int], ...] = ()
    lines: tuple[tuple[StackFrame, int], ...] = ()
    names: tuple[str, ...] = ()


@dataclass(frozen=True)
class ModuleSum:
    """What is alive of one module and those in it; ``own`` is without those.

    ``path`` is from the root on, and empty for what is of no known module.
    """

    path: Path
    bytes: int
    own: int
    roles: dict[str, int]


@dataclass(frozen=True)
class LineSum:
    """What is alive of what one line allocated, the oldest of it after ``since_ns``.

    ``holders`` are those of that moment, as far as they are known and were asked for.
    """

    site: StackFrame
    bytes: int
    count: int
    roles: dict[str, int]
    since_ns: int = 0
    holders: tuple[Holder, ...] = ()


@dataclass(frozen=True)
class MarkSum:
    """What is alive of what was allocated after marks of one label, or before the first mark."""

    label: str
    first: int
    last: int
    bytes: int
    count: int


@dataclass(frozen=True)
class Lowered:
    """A change that would have lowered the peak to ``bytes``, and where the peak is then."""

    kind: str
    bytes: int
    saved: int
    modules: tuple[Path, ...]
    group: Path
    moment: Moment


@dataclass(frozen=True)
class Explained:
    """What one memory consisted of at one moment.

    ``is_peak`` says that it is the highest level of the memory. ``others`` are the peaks of other
    memories, in bytes. ``earlier`` is a higher peak, bytes and ns, in events of which only sums are
    known. ``estimated``: the list of live objects was thinned by a size limit. ``phased`` says that
    PyTorch's blocks are there and that modules, backward passes or optimizers are known, from which
    their roles follow; ``training`` that there are backward passes. ``born`` are the two moments
    between which everything was allocated that counts, in ns; None: whenever it was.
    """

    recording: Recording
    memory: str
    moment: Moment
    bytes: int
    count: int
    is_peak: bool
    peak_bytes: int
    roles: tuple[RoleSum, ...] = ()
    modules: tuple[ModuleSum, ...] = ()
    lines: tuple[LineSum, ...] = ()
    marks: tuple[MarkSum, ...] = ()
    lowered: tuple[Lowered, ...] = ()
    others: dict[str, int] = field(default_factory=dict)
    roots: int = 1
    phased: bool = False
    training: bool = False
    earlier: tuple[int, int] | None = None
    estimated: bool = False
    born: tuple[int, int] | None = None

    def module_text(self, path: Path) -> str:
        """A path as it is written; the root is left out where there is only one."""
        names = path[1:] if self.roots == 1 and len(path) > 1 else path
        return ".".join(names)


@dataclass(frozen=True)
class Known:
    """What is known of a recording before a moment is chosen."""

    recording: Recording
    blocks: Blocks
    passes: Passes
    modules: Modules
    role: Roles
    places: Places
    names: Mapping[int, Named]

    @cached_property
    def judged_ns(self) -> int:
        """The last moment at which what the program holds is still held."""
        return int(lifetimes(self.recording, self.places).judged_ns)

    @cached_property
    def snapshots(self) -> Snapshots:
        """The recording's snapshots of holders."""
        return Snapshots(self.recording)

    @classmethod
    def of(
        cls,
        recording: Recording,
        names: Mapping[int, Named] | None = None,
        release_events: bool = False,
    ) -> Known:
        """Reads a recording.

        Args:
            names: roles and names of objects, by number; those of the recording's snapshots when
                none are given.
            release_events: see ``blocks_of``.
        """
        blocks = blocks_of(recording, release_events)
        passes = passes_of(blocks)
        names = names_of(recording, blocks, passes) if names is None else names
        role = roles_of(blocks, passes, names)
        modules = modules_of(recording, blocks)
        return cls(
            recording=recording,
            blocks=blocks,
            passes=passes,
            modules=with_parameters(modules, blocks, passes, role, names),
            role=role,
            places=Places.of(recording),
            names=names,
        )


def explain(
    recording: Recording,
    at: str | None = None,
    memory: str | None = None,
    names: Mapping[int, Named] | None = None,
    born: str | None = None,
    held: bool = False,
) -> Explained:
    """What was alive at the peak of a recording, or at another moment.

    Args:
        at: a time in seconds since the start (``1.5``, ``20ms``, ``1:30``), or a mark: ``epoch``
            for the one of this label at which most was alive, ``epoch:3`` or ``epoch 3`` for the
            one with this index.
        memory: by name; the one with the highest peak when none is named.
        names: roles and names of objects, by number; those of the recording's snapshots when
            none are given.
        born: two such moments with ``..`` between them: only what was allocated between them
            counts, and without ``at`` the moment is that of judging.
        held: the lines with most bytes have holders.
    Raises:
        NoSuchMemory: there is no object in that memory.
        NoSuchMoment: there is no such mark or time.
    """

    def made() -> Explained:
        known = Known.of(recording, names, release_events=True)
        return explain_known(known, at, memory, born, held)

    return made() if names is not None else recording.kept(("peak", at, memory, born, held), made)


At = str | int
"""A moment: as it is typed, or in ns since the start."""


def explain_known(
    known: Known,
    at: At | None = None,
    memory: str | None = None,
    born: str | tuple[int, int] | None = None,
    held: bool = False,
    thread: int | None = None,
) -> Explained:
    """The same of what has been read.

    Args:
        thread: only what this one allocated counts, by its number; None: all threads.
    """
    blocks, recording = known.blocks, known.recording
    chosen = _memory(known, memory)
    if chosen is None:
        moment = Moment(-1, 0)
        if at is not None:
            _event_at(known, np.zeros(0, np.int64), at)
        return Explained(recording, HOST, moment, 0, 0, at is None, 0)
    peak, event = blocks.peaks[chosen]
    rows = np.flatnonzero(blocks.memory == chosen)
    is_peak = at is None and born is None and thread is None
    if at is not None or born is not None:
        event = _event_at(known, rows, known.judged_ns if at is None else at)
    alive = rows[blocks.alive(event)[rows]]
    between = None
    if born is not None:
        first, last = (_event_at(known, rows, each) for each in _two_moments(born))
        alive = alive[(blocks.born[alive] > first) & (blocks.born[alive] <= last)]
        between = (blocks.time_of(first), blocks.time_of(last))
    if thread is not None:
        alive = alive[blocks.born_thread[alive] == thread]
    size = blocks.size[alive]
    lowered = (
        lowerings(Replay(blocks, known.passes, known.modules, known.role, rows)) if is_peak else []
    )
    return Explained(
        recording=recording,
        memory=blocks.memories[chosen],
        moment=_moment(known, event, is_peak),
        bytes=int(size.sum()),
        count=len(alive),
        is_peak=is_peak,
        peak_bytes=peak,
        roles=tuple(_roles(known, alive)),
        modules=tuple(_modules(known, alive)),
        lines=tuple(_lines(known, alive, blocks.time_of(event) if held else None)),
        marks=tuple(_marks(known, alive)),
        lowered=tuple(_lowered(known, each, peak) for each in lowered),
        others={
            name: blocks.peaks[number][0]
            for number, name in enumerate(blocks.memories)
            if number != chosen
        },
        roots=known.modules.roots,
        phased=bool(blocks.torch[rows].any()) and len(known.passes.first) > 0,
        training=known.passes.is_training,
        earlier=_earlier(recording, peak, len(blocks.memories)),
        estimated=blocks.thinned,
        born=between,
    )


def _two_moments(born: str | tuple[int, int]) -> tuple[At, At]:
    """The two moments of a generation, the earlier one first where both are times.

    Raises:
        NoSuchMoment: there are not two of them.
    """
    if not isinstance(born, str):
        return min(born), max(born)
    first, between, last = born.partition(BETWEEN)
    if not (between and first.strip() and last.strip()):
        raise NoSuchMoment(
            f"'{born}' is not two moments; write for example 3{BETWEEN}12, or "
            f"'epoch 1{BETWEEN}epoch 2'."
        )
    return first.strip(), last.strip()


def _memory(known: Known, wanted: str | None) -> int | None:
    """The number of the memory that is meant; None when nothing was recorded at all.

    Raises:
        NoSuchMemory: there is no such one.
    """
    memories = known.blocks.memories
    if wanted is None:
        return known.blocks.by_peak[0] if memories else None
    if wanted in memories:
        return memories.index(wanted)
    there = ", ".join(memories[n] for n in known.blocks.by_peak) or "none"
    raise NoSuchMemory(
        f"{known.recording.path} has no object in memory '{wanted}'; memories with objects: "
        f"{there}."
    )


def _earlier(recording: Recording, peak: int, memories: int) -> tuple[int, int] | None:
    """A higher peak, bytes and ns, of which only sums are known, in a recording of one memory."""
    totals = recording.totals
    if recording.fold is None or memories > 1 or totals.peak_bytes <= peak:
        return None
    return int(totals.peak_bytes), int(totals.peak_ns)


# ---- moments ----


def _event_at(known: Known, rows: Ints, at: At) -> int:
    """The last event of a moment.

    Args:
        rows: the blocks of the memory that is meant.
    Raises:
        NoSuchMoment: there is no such mark or time.
    """
    if isinstance(at, int):
        return known.blocks.event_before(at)
    marks = known.recording.marks
    labels = marks["label"].astype(str).to_numpy(object)
    index = marks["index"].to_numpy(np.int64)
    chosen = labels == at
    indexed = _INDEXED.fullmatch(at)
    if not chosen.any() and indexed is not None:
        chosen = (labels == indexed[1]) & (index == int(indexed[2]))
    if chosen.any():
        return _highest_mark(known, rows, marks["time_ns"].to_numpy(np.int64)[chosen])
    wanted = parse_seconds(at)
    seconds = known.recording.seconds
    if wanted is not None:
        if wanted <= seconds:
            return known.blocks.event_before(round(wanted * 1e9))
        raise NoSuchMoment(
            f"{known.recording.path} ends after {seconds:.6g} s; {at} is later. Give a time up to "
            "its end."
        )
    several = list(dict.fromkeys(labels.tolist()))
    there = ", ".join(several[:_NAMED_MARKS]) + (", ..." if several[_NAMED_MARKS:] else "")
    has = f"its marks are: {there}" if several else "it has no marks"
    raise NoSuchMoment(
        f"{known.recording.path} has no mark '{at}', and that is not a time; {has}. Give a mark, "
        "LABEL:INDEX, or seconds since the start."
    )


def _highest_mark(known: Known, rows: Ints, times: Ints) -> int:
    """The event of the mark at which most was alive, the first of several."""
    events = known.blocks.mark_events
    at = np.searchsorted(known.blocks.time_ns[events], times, side="left")
    there = at < len(events)
    found = np.where(there, events[np.minimum(at, len(events) - 1)] if len(events) else -1, -1)
    # A mark that a size limit folded has no event of its own.
    exact = there & (known.blocks.time_ns[found] == times)
    found = np.where(exact, found, np.searchsorted(known.blocks.time_ns, times, "right") - 1)
    found = np.unique(found)
    level = alive_at(
        found, known.blocks.born[rows], known.blocks.died[rows], known.blocks.size[rows]
    )
    return int(found[int(level.argmax())]) if len(found) else -1


def _moment(known: Known, event: int, is_peak: bool) -> Moment:
    """What the program was doing at an event, or last before it."""
    blocks = known.blocks
    time = blocks.time_of(event)
    mark = _mark_before(known, time)
    born, died = blocks.born <= event, blocks.died <= event
    last_born = int(np.where(born, blocks.born, -1).argmax()) if born.any() else -1
    last_died = int(np.where(died, blocks.died, -1).argmax()) if died.any() else -1
    if last_born < 0:
        return Moment(event, time, mark=mark)
    if event < blocks.begin:
        return Moment(event, time, BEFORE_THE_TRACE, mark=mark)
    freed = last_died >= 0 and blocks.died[last_died] > blocks.born[last_born]
    block = last_died if freed else last_born
    site = int((blocks.died_site if freed else blocks.born_site)[block])
    phase = Phase(int((blocks.died_phase if freed else blocks.born_phase)[block]))
    torch = bool(blocks.torch[block])
    # Of folded events it is not known how many steps there were.
    training = torch and known.passes.is_training and known.recording.fold is None
    frame = known.places.blamed_frame(site)
    return Moment(
        event=event,
        time_ns=time,
        phase=IN_WORDS.get(phase, "") if torch and len(known.passes.first) else "",
        module="" if freed else known.modules.of(block),
        site=frame if frame.file else None,
        step=known.passes.step_of(event) if training else 0,
        steps=known.passes.count if training else 0,
        mark=mark,
    )


def _mark_before(known: Known, time_ns: int) -> tuple[str, int] | None:
    marks = known.recording.marks
    times = marks["time_ns"].to_numpy(np.int64)
    before = int(np.searchsorted(times, time_ns, side="right")) - 1
    if before < 0:
        return None
    row = marks.iloc[before]
    return str(row["label"]), int(row["index"])


# ---- sums ----


def _roles(known: Known, alive: Ints) -> Iterable[RoleSum]:
    """What is alive in each role, in the order of ``Role``; the usual ones also with 0 bytes."""
    blocks, role = known.blocks, known.role[alive]
    size = blocks.size[alive]
    group = _groups(known, alive)
    used = {int(each) for each in np.unique(role).tolist()}
    trained = {Role.WEIGHTS, Role.GRADIENTS, Role.OPTIMIZER_STATE, Role.ACTIVATIONS}
    if known.passes.is_training and used & trained:
        used |= trained
    for number in sorted(used):
        mine = role == number
        lines = _largest(group[mine], size[mine])
        paths = _largest(known.modules.path[alive][mine], size[mine])
        names = (
            [
                known.names[int(each)].name
                for each in blocks.number[alive[mine]].tolist()
                if int(each) in known.names
            ]
            if known.names
            else []
        )
        yield RoleSum(
            role=NAMES[Role(number)],
            bytes=int(size[mine].sum()),
            count=int(mine.sum()),
            modules=tuple((known.modules.paths[path], total) for path, total in paths if path >= 0),
            lines=tuple((known.places.frames[line], total) for line, total in lines),
            names=tuple(dict.fromkeys(name for name in names if name)),
        )


def _modules(known: Known, alive: Ints) -> Iterable[ModuleSum]:
    """What is alive of each module, callers before those in them; last what is of none."""
    size, role = known.blocks.size[alive], known.role[alive]
    table = _table(known.modules.path[alive] + 1, len(known.modules.paths) + 1, role, size)
    below: dict[Path, NDArray[np.int64]] = {}
    own: dict[Path, int] = {}
    for place in np.flatnonzero(table[1:].sum(axis=1)).tolist():
        path = known.modules.paths[place]
        own[path] = int(table[place + 1].sum())
        for length in range(1, len(path) + 1):
            sums = below.setdefault(path[:length], np.zeros(len(Role), np.int64))
            sums += table[place + 1]
    for path in sorted(below, key=_natural):
        yield ModuleSum(path, int(below[path].sum()), own.get(path, 0), _named(below[path]))
    if table[0].any():
        yield ModuleSum((), int(table[0].sum()), int(table[0].sum()), _named(table[0]))


def _lines(known: Known, alive: Ints, held_ns: int | None) -> Iterable[LineSum]:
    """What is alive of each line, most bytes first.

    Args:
        held_ns: the moment, where holders are asked for.
    """
    blocks, places = known.blocks, known.places
    size, group = blocks.size[alive], _groups(known, alive)
    table = _table(group, places.count, known.role[alive], size)
    counts = np.bincount(group, minlength=places.count)
    since = np.full(places.count, np.iinfo(np.int64).max)
    np.minimum.at(since, group, blocks.born_ns[alive])
    largest = _largest(group, size)
    holders: dict[int, tuple[Holder, ...]] = {}
    if held_ns is not None:
        objects = blocks.number[alive], blocks.device[alive], group
        lines = [line for line, _ in largest[:MOST_HELD]]
        holders = holders_by_line(known.recording, places, known.snapshots, objects, lines, held_ns)
    for line, total in largest:
        yield LineSum(
            site=places.frames[line],
            bytes=total,
            count=int(counts[line]),
            roles=_named(table[line]),
            since_ns=int(since[line]),
            holders=holders.get(line, ()),
        )


def _marks(known: Known, alive: Ints) -> Iterable[MarkSum]:
    """What is alive by the label of the last mark before its allocation, most bytes first."""
    marks = known.recording.marks
    if len(marks) == 0:
        return
    times = marks["time_ns"].to_numpy(np.int64)
    labels = marks["label"].astype(str).to_numpy(object)
    index = marks["index"].to_numpy(np.int64)
    names, of_mark = np.unique(labels.astype(str), return_inverse=True)
    before = np.searchsorted(times, known.blocks.born_ns[alive], side="right") - 1
    label = np.where(before >= 0, of_mark[before.clip(min=0)] + 1, 0)
    size = known.blocks.size[alive]
    for number, total in _largest(label, size):
        mine = label == number
        seen = index[before[mine].clip(min=0)]
        yield MarkSum(
            label=str(names[number - 1]) if number else "",
            first=int(seen.min()) if number else 0,
            last=int(seen.max()) if number else 0,
            bytes=total,
            count=int(mine.sum()),
        )


def _lowered(known: Known, change: Lowering, peak: int) -> Lowered:
    return Lowered(
        kind=change.kind,
        bytes=change.peak_bytes,
        saved=peak - change.peak_bytes,
        modules=change.modules,
        group=change.group,
        moment=_moment(known, change.event, True),
    )


def _groups(known: Known, alive: Ints) -> NDArray[np.int64]:
    """The blamed line of each block."""
    site = known.blocks.born_site[alive]
    site = np.where((site >= 0) & (site < len(known.places.group_of_site)), site, 0)
    return known.places.group_of_site[site].astype(np.int64)


def _largest(group: Ints, size: Ints) -> list[tuple[int, int]]:
    """Groups with their bytes, most first."""
    if len(group) == 0:
        return []
    least = int(group.min())
    sums = np.bincount(group - least, weights=size).astype(np.int64)
    order = np.argsort(-sums, kind="stable")
    return [(int(n) + least, int(sums[n])) for n in order.tolist() if sums[n]]


def _table(group: Ints, groups: int, role: Roles, size: Ints) -> NDArray[np.int64]:
    """Bytes of each group in each role."""
    key = group * len(Role) + role
    sums = np.bincount(key, weights=size, minlength=groups * len(Role))
    return sums.astype(np.int64).reshape(groups, len(Role))


def _named(sums: NDArray[np.int64]) -> dict[str, int]:
    """Bytes by the names of roles, without those of 0."""
    return {NAMES[Role(n)]: int(total) for n, total in enumerate(sums.tolist()) if total}


def _natural(path: Path) -> list[tuple[int, int, str]]:
    """So that ``h.10`` is behind ``h.9``."""
    return [
        (0, int(name), "") if name.isascii() and name.isdigit() else (1, 0, name) for name in path
    ]
