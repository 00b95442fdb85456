"""When objects were made and died, on clocks that noise cannot bend, up to the moment of judging.

Covers: the end of the program's own activity, the moment before its frames unwind, the clocks.
Does not cover: which line grows; see ``growth``. What is alive at the end; see ``leaks``.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from tlmem.analysis.heap_samples import MEMORIES, blocks_of
from tlmem.analysis.own_time import Delays, RunClock, clock_of_run, without_pauses
from tlmem.analysis.places import Places
from tlmem.analysis.rules import RULES
from tlmem.events import FIRST_RUNTIME_DEVICE, TORCH_DEVICES, Device

if TYPE_CHECKING:
    from tlmem.recording.reader import Recording

NEVER = np.iinfo(np.int64).max
"""``died_ns`` of an object that was alive when the recording ended."""
PART_MOMENTS = 100_000
NODE_BYTES = 250
"""A node of an autograd graph has at least so many, in memory of native code."""

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]


@dataclass(frozen=True)
class LineSums:
    """Objects made, objects alive at the end of the recording and their bytes, by line."""

    made: Ints
    live_count: Ints
    live_bytes: Ints


@dataclass(frozen=True)
class Lifetimes:
    """Objects made by the program itself, in order of birth, without those made by imports.

    ``ordinal`` counts every allocation of the recording, ``size`` is in bytes, ``weight`` is how
    many objects a row stands for (more than 1 only where a size limit thinned the list of live
    objects). ``sums`` are there when a size limit folded old events. ``clocks`` has one row per
    clock (own time, allocations, bytes) and one column per object. ``run`` is the program's own
    time between events, too, ``delays`` what is left out of it. ``begin_ns`` to ``cut_ns`` is the
    program's run, ``unwinding_ns`` the earliest moment at which its frames may unwind as it ends,
    ``judged_ns`` the last one at which what it holds is still held. ``folded`` says that the oldest
    objects are known only if they lived for long, ``lost_ns`` until when none are known that were
    freed; 0: all are. ``runtime`` says which objects are a
    runtime's (tlmem's own tensors, views and structs, or those of one that sends probes) and not
    arrays, ``torch`` which are PyTorch's; ``foreign_noun`` is what those that are neither are
    called. ``first_ns`` is when the first object was made, if events were folded. ``with_graph``
    says of which tensors a snapshot saw that they keep an autograd graph; None: of none.
    """

    born: Ints
    died: Ints
    size: Ints
    site: NDArray[Any]
    died_site: NDArray[Any]
    group: NDArray[np.int32]
    ordinal: Ints
    weight: Ints
    sums: LineSums | None
    clocks: Floats
    delays: Delays
    run: RunClock
    begin_ns: int
    cut_ns: int
    unwinding_ns: int
    judged_ns: int
    runtime: NDArray[np.bool_]
    torch: NDArray[np.bool_]
    folded: bool = False
    lost_ns: int = 0
    foreign_noun: str = "array"
    first_ns: int | None = None
    with_graph: NDArray[np.bool_] | None = None

    def kept_bytes(self, rows: Ints) -> Ints:
        """What objects keep, each: their bytes, and at least a node of the graph they keep."""
        size = self.size[rows]
        return size if self.with_graph is None else size + NODE_BYTES * self.with_graph[rows]

    @property
    def run_seconds(self) -> float:
        """Length of the program's run in seconds."""
        return max(0, self.cut_ns - self.begin_ns) / 1e9

    @property
    def is_short(self) -> bool:
        """Whether the program worked for too short a time to tell growth from a cache."""
        return self.work_seconds < RULES.shortest_run_s

    @property
    def work_seconds(self) -> float:
        """Length of the run from the first object on: imports may take longer than the work."""
        return max(0, self.cut_ns - self.first_made_ns) / 1e9

    @property
    def first_made_ns(self) -> int:
        """When the program made its first object; without any, when it began."""
        first = int(self.born[0]) if len(self) else self.begin_ns
        return first if self.first_ns is None else min(first, self.first_ns)

    @property
    def work_begin_ns(self) -> int:
        """When the program's own work began: at its first array, but not late in the run."""
        latest = self.begin_ns + RULES.span * (self.cut_ns - self.begin_ns)
        return max(self.begin_ns, min(self.first_made_ns, int(latest)))

    def progress(self, time_ns: Ints) -> list[Floats]:
        """How far the program had come at each time: without its pauses, and by allocations.

        Empty when there are too few allocations to tell, or none in the last part of the run. Few
        folded objects are known, so gaps between them do not count as pauses, and the allocations
        in a gap are assumed to be evenly spaced.
        """
        late_ns = self.work_begin_ns + RULES.reach * (self.judged_ns - self.work_begin_ns)
        if len(self) < RULES.few_survivors or self.born[-1] < late_ns:
            return []
        if not self.folded:
            return [np.interp(time_ns, self.born, clock) for clock in self.clocks[:2]]
        known = np.append(self.first_made_ns, self.born)
        own, allocations = self.delays.left_out_of(known), np.append(0.0, self.clocks[1])
        return [np.interp(time_ns, known, clock) for clock in (own, allocations)]

    @property
    def clocks_begin(self) -> Floats:
        """What each clock said when the program made its first object."""
        if not self.folded:
            return self.clocks[:, 0]
        return np.array([self.run.at(self.first_made_ns), 0.0, 0.0])

    def noun(self, group: int) -> str:
        """What the objects of a line are called: arrays, tensors of PyTorch, or both: objects.

        Those of the runtime are objects, those of a snapshot of PyTorch's CUDA allocator blocks.
        """
        mine = self.group == group
        if self.runtime[mine].any():
            return "object"
        of_torch = self.torch[mine]
        if not of_torch.any() or self.foreign_noun != "array":
            return self.foreign_noun
        return "tensor" if of_torch.all() else "object"

    @property
    def nouns(self) -> str:
        """What the program's objects are called when no line is meant: arrays, tensors, or both."""
        foreign = f"{self.foreign_noun}s"
        if not self.torch.any() or foreign != "arrays":
            return foreign
        return "tensors" if self.torch.all() else "arrays or tensors"

    def __len__(self) -> int:
        return len(self.born)


def lifetimes(recording: Recording, places: Places, older: bool = False) -> Lifetimes:
    """The objects of a recording, ready to be judged.

    Args:
        older: whether those are among them that an imported trace did not see being made. Nothing
            is known of when that was.
    """
    table = recording.objects
    born = table["born_ns"].to_numpy(np.int64)
    died = table["died_ns"].to_numpy(np.int64)
    begin_ns, cut_ns = program_span(recording, born, died, table["born_thread"].to_numpy(np.int64))
    told = columns_of(recording)
    born, died, size = told["born_ns"], told["died_ns"], told["size_bytes"]
    site, died_site, weight = told["born_site"], told["died_site"], told.get("weight")

    if len(site) and int(site.max()) >= len(places.group_of_site):
        site = np.where(site < len(places.group_of_site), site, 0)
    own = (born <= cut_ns) & ~places.importing[site]
    if is_imported(recording) and not older:
        own &= born >= begin_ns
    ordinal, device = told["object"], told["device"]
    if not own.all():
        born, died, size = born[own], died[own], size[own]
        site, died_site, ordinal, device = site[own], died_site[own], ordinal[own], device[own]
        weight = weight[own] if weight is not None else None
    died = np.where(died < 0, NEVER, died)
    delays = Delays.of(recording.samples)
    moments = recording.samples["time_ns"].to_numpy(np.int64)
    run = clock_of_run(moments, begin_ns, cut_ns, delays)
    unwinding_ns = begin_of_unwinding(born, died, run, cut_ns)
    return Lifetimes(
        born=born,
        died=died,
        size=size,
        site=site,
        died_site=died_site,
        group=places.group_of_site[site],
        ordinal=ordinal,
        weight=np.broadcast_to(1, len(born)) if weight is None else weight,
        sums=exact_sums(recording, places, places.group_of_site, places.count)
        if recording.fold is not None
        else None,
        clocks=clocks(delays.left_out_of(born), np.arange(len(born)), size)
        if recording.fold is None
        else clocks_of_folded(recording, run, born, ordinal, size),
        delays=delays,
        run=run,
        begin_ns=begin_ns,
        cut_ns=cut_ns,
        unwinding_ns=unwinding_ns,
        judged_ns=min(
            moment_of_judging(born, died, size, cut_ns, unwinding_ns),
            moment_of_heap(recording, places, cut_ns, unwinding_ns),
        ),
        runtime=(device >= FIRST_RUNTIME_DEVICE) | (device == Device.PROBE),
        torch=np.isin(device, TORCH_DEVICES),
        folded=recording.fold is not None,
        lost_ns=recording.lost_ns,
        foreign_noun="block" if is_imported(recording) else "array",
        first_ns=first_birth(recording, places),
    )


def columns_of(recording: Recording) -> dict[str, NDArray[Any]]:
    """What is known of each object, in order of birth, also of those folded after a long life.

    There is a ``weight`` where events were folded.
    """
    table, fold = recording.objects, recording.fold
    names = ("device", "size_bytes", "born_ns", "died_ns", "born_site", "died_site")
    found = {name: table[name].to_numpy() for name in names}
    found["object"] = table.index.to_numpy(np.int64)
    if fold is None:
        return found
    found["weight"] = np.where(table["folded"].to_numpy(bool), fold.get("live_stride") or 1, 1)
    passed = recording.passed
    if not len(passed):
        return found
    before = {name: passed[name].to_numpy() for name in (*names, "weight")}
    before["object"] = passed.index.to_numpy(np.int64)
    order = np.argsort(np.concatenate([before["object"], found["object"]]), kind="stable")
    return {name: np.concatenate([before[name], found[name]])[order] for name in found}


def clocks_of_folded(
    recording: Recording, run: RunClock, born: Ints, ordinal: Ints, size: Ints
) -> Floats:
    """The same clocks when older events were folded.

    Gaps between known objects do not count as pauses. Only the total size of the folded objects is
    known; it is divided evenly among them.
    """
    totals = recording.fold or {}
    older, count = float(totals.get("alloc_bytes", 0)), max(1, int(totals.get("next_object", 0)))
    found = np.empty((3, len(born)))
    found[0] = np.interp(born, run.ticks, run.clock)
    found[1] = ordinal
    new = ordinal >= count
    found[2] = older * (ordinal / count)
    found[2, new] = older + np.cumsum(np.maximum(size[new], 1), dtype=float)
    return found


def first_birth(recording: Recording, places: Places) -> int | None:
    """When a line of the program made its first object, in ns; None where none was folded."""
    if recording.fold is None:
        return None
    totals = recording.site_totals
    sites, first = totals.index.to_numpy(np.int64), totals["first_ns"].to_numpy(np.int64)
    own = (sites < len(places.importing)) & (first >= 0)
    own[own] = ~places.importing[sites[own]]
    return int(first[own].min()) if own.any() else None


def is_imported(recording: Recording) -> bool:
    """Whether a recording was made from a snapshot, which knows no process, only an allocator."""
    return "importer" in recording.info


def alive_at(times: Ints | Floats, born: Ints, died: Ints, amount: NDArray | None = None) -> Floats:
    """How many objects are alive at each of some times, or what they have together.

    Judge, gate, reports and plots count what is alive over time by this and ``alive_by_group``.

    Args:
        times: ascending, in ns.
        born, died: of each object; it is alive from ``born`` until just before ``died``.
        amount: of each object, such as its bytes; one for each when left out.
    """
    return alive_by_group(times, born, died, amount, np.empty(0, np.int32), 1)[0]


def alive_by_group(
    times: Ints | Floats,
    born: Ints,
    died: Ints,
    amount: NDArray | None,
    group: NDArray[np.int32],
    groups: int,
) -> Floats:
    """The same of each group of objects.

    Args:
        group: of each object, from 0 to ``groups`` - 1; not looked at where there is one.
        groups: how many there are.
    Returns:
        One row for each group, one column for each time.
    """
    width = len(times) + 1
    change = np.zeros(groups * width)
    piece = max(PART_MOMENTS, groups * width)  # at a time, so that copies take little memory
    for start in range(0, len(born), piece):
        some = slice(start, start + piece)
        weights = None if amount is None else amount[some]
        for moments, add in ((born, np.add), (died, np.subtract)):
            key = np.searchsorted(times, moments[some], side="left")
            if groups > 1:
                key += group[some].astype(np.int64) * width
            add(change, np.bincount(key, weights, minlength=groups * width), out=change)
    level = change.reshape(groups, width)[:, :-1]
    return np.cumsum(level, axis=1, out=level)


def tracked_over_time(lives: Lifetimes) -> Iterator[tuple[Ints, Floats]]:
    """Bytes of tracked objects after each birth and death up to the moment of judging, in parts.

    A part is times (ns, ascending) and the bytes at each of them; it has at most about
    ``PART_MOMENTS`` births. What was folded is known as far as it stayed alive.
    """
    born, died, size, weight = lives.born, lives.died, lives.size, lives.weight
    if not (born[1:] >= born[:-1]).all():
        births = np.argsort(born)
        born, died, size, weight = born[births], died[births], size[births], weight[births]
    deaths = np.argsort(died)[: np.count_nonzero(died <= lives.judged_ns)]
    ended = died[deaths]
    ends = born[PART_MOMENTS::PART_MOMENTS]
    ends = np.append(np.unique(ends[ends <= lives.judged_ns]), lives.judged_ns + 1)
    before, first, gone = 0.0, 0, 0
    for end in ends.tolist():
        last = int(np.searchsorted(born, end))
        lost = int(np.searchsorted(ended, end))
        new, old = slice(first, last), deaths[gone:lost]
        close = [lives.judged_ns] if end > lives.judged_ns else []
        times = np.sort(np.concatenate((born[new], died[old], np.array(close, np.int64))))
        times = times[np.append(True, times[1:] != times[:-1])[: len(times)]]
        change = np.zeros(len(times))
        for rows, moments, sign in ((new, born, 1.0), (old, died, -1.0)):
            at = np.searchsorted(times, moments[rows])
            change += sign * np.bincount(at, size[rows] * weight[rows], len(times))
        held = before + np.cumsum(change)
        first, gone = last, lost
        if len(held):
            before = float(held[-1])
            yield times, held


def exact_sums(
    recording: Recording, places: Places, group_of_site: NDArray, groups: int
) -> LineSums:
    """Exact sums of every group of sites, whatever a size limit folded."""
    totals = recording.site_totals
    numbers = totals.index.to_numpy(np.int64)
    known = numbers < len(places.group_of_site)
    known[known] = ~places.importing[numbers[known]]
    group = group_of_site[numbers[known]]

    def by_group(name: str) -> Ints:
        values = totals[name].to_numpy(np.int64)[known]
        return np.bincount(group, weights=values, minlength=groups).astype(np.int64)

    return LineSums(by_group("alloc_count"), by_group("live_count"), by_group("live_bytes"))


def program_span(recording: Recording, born: Ints, died: Ints, thread: Ints) -> tuple[int, int]:
    """Begin and end of the program's own run in ns.

    The end is where the script's code ended, or the last event: of a file without that mark, and
    of a program whose threads go on allocating after it.
    """
    begin = recording.begin_ns if recording.begin_ns is not None else 0
    last = max(int(born.max(initial=0)), int(died.max(initial=0)), round(recording.seconds * 1e9))
    end = recording.end_ns
    if end is None or end < begin:
        return begin, max(begin, last)
    late = born > end
    # What the main thread makes when its code has ended belongs to the end, as what atexit calls.
    after = np.count_nonzero(late & (thread != recording.end_thread)) if late.any() else 0
    if after > max(50, 0.1 * len(born)):
        return begin, max(begin, last)
    return begin, end


def clocks(born: NDArray[Any], ordinal: Ints, size: Ints) -> Floats:
    """Three ways to say how far a program had come when each object was made, one row each.

    The first one is its own time: ``born`` is without what it waited for a processor.
    Views and structs have no bytes of their own; each counts as one, so that their clock goes on.
    """
    if len(born) == 0:
        return np.zeros((3, 0))
    found = np.empty((3, len(born)))
    found[0] = without_pauses(born)
    found[1] = ordinal
    np.cumsum(np.maximum(size, 1), dtype=float, out=found[2])
    return found


def begin_of_unwinding(born: Ints, died: Ints, run: RunClock, cut_ns: int) -> int:
    """The earliest moment at which an object may be freed because the program ends, in ns.

    What is freed before is freed because it is no longer needed. The last ``unwinding`` share of
    the run may be unwinding. So may a longer part of it in which nothing is made any more and frees
    follow each other up to the end, as large arrays take a while to free; but a program that frees
    through more than ``span`` of its run is at work.

    Args:
        born, died: when objects were made, in ascending order, and when they were freed.
        run: the clock of the run, which ends at ``cut_ns``.
    """
    ticks, clock = run.ticks, run.clock
    share = RULES.unwinding * clock[-1]
    last_part = int(np.interp(clock[-1] - share, clock, ticks))
    if len(born) == 0:
        return last_part
    frees = np.sort(died[(died > born[-1]) & (died <= cut_ns)])
    gaps = np.diff(np.interp(np.append(frees, cut_ns), ticks, clock))
    following = len(gaps) - int(np.argmax(gaps[::-1] > share)) if (gaps > share).any() else 0
    if (
        following == len(frees)
        or np.interp(frees[following], ticks, clock) < (1 - RULES.span) * clock[-1]
    ):
        return last_part
    return min(last_part, int(frees[following]))


def moment_of_heap(recording: Recording, places: Places, cut_ns: int, unwinding_ns: int) -> int:
    """The same moment as ``moment_of_judging`` for what ``record --heap`` sampled.

    A program whose ``main()`` collects dicts has few arrays, or none.
    """
    moments = [cut_ns]
    for memory in MEMORIES if recording.heap_count else ():
        blocks = blocks_of(recording, places, memory, None)
        rows = blocks.of_program(places, cut_ns)
        died = np.where(blocks.died[rows] < 0, NEVER, blocks.died[rows])
        size = blocks.stands_for(rows)
        moments.append(moment_of_judging(blocks.born[rows], died, size, cut_ns, unwinding_ns))
    return min(moments)


def moment_of_judging(
    born: Ints, died: Ints, size: Ints, cut_ns: int, unwinding_ns: int = 0
) -> int:
    """The last moment at which what the program holds is still held, in ns.

    Usually the end of the run. When most of what was usually alive is gone by then, and went when
    the program ended (``main()`` returned), frames have unwound: then the latest allocation at
    which it was still there, or later, as long as nothing is made or freed: a program may compute
    in place what it has. What went before ``unwinding_ns`` was given up by a program that went on.
    """
    if len(born) == 0:
        return cut_ns
    recent = min(len(born), max(8, min(1000, len(born) // 100)))
    last = np.arange(len(born) - recent, len(born))
    # Without the object that is born then, which may be a temporary.
    count = alive_at(born[last], born, died) - 1
    held = alive_at(born[last], born, died, size) - size[last]
    count_left = int(np.count_nonzero(died > cut_ns))
    held_left = int(size[died > cut_ns].sum())
    usual_count, usual_held = np.max(count), np.max(held)
    middle_count, middle_held = np.median(count), np.median(held)
    if min(middle_count, usual_count) <= 0:
        return cut_ns
    if count_left >= RULES.majority * middle_count and held_left >= RULES.majority * middle_held:
        return cut_ns
    there = (count >= RULES.majority * usual_count) & (held >= RULES.majority * usual_held)
    if not there.any():
        there = held >= RULES.majority * usual_held
    latest = int(last[np.flatnonzero(there)[-1]])
    deaths = died[(died > born[latest]) & (died <= cut_ns)]
    later = np.concatenate((born[latest + 1 :], deaths, [cut_ns]))
    moment = max(int(born[latest]), int(later.min()) - 1)
    return moment if moment >= unwinding_ns - 1 else cut_ns
