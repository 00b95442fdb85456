"""What a recorded program could have needed: ``tlmem plan``, as text and as JSON.

Covers: which memory is planned, what each way of placing needs, which lines stand at the peak, what
has to be said beside it, and how it is written. Does not cover: the planner, which is handed in;
the picture (``plots.plan``). See also: docs/how-to/plan.md.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from tlmem.analysis.memory.attribution import Moments
from tlmem.analysis.memory.devices import with_devices
from tlmem.analysis.model import StackFrame
from tlmem.analysis.places import Places, place
from tlmem.errors import TlmemError
from tlmem.planning.buffers import (
    HOST,
    MOST_OBJECTS,
    UNIT_BYTES,
    PlannedLives,
    around_the_peak,
    memories,
    on_sections,
)
from tlmem.planning.peak_lines import BY_OWNERSHIP, MOST_LINES, PeakLine, peak_lines
from tlmem.planning.placing import WAYS
from tlmem.report.json import document, frame_dict
from tlmem.report.text import wrap
from tlmem.units import format_bytes, format_count, format_seconds

if TYPE_CHECKING:
    from tlmem.recording.reader import Recording

Ints = NDArray[np.int64]

SCHEMA = 1
MOST_SHOWN = 10
MOST_RELATIVES = 5
LEAST_SHARE = 0.01
"""Of the peak: what would spare less is not worth advising."""
IN_WORDS = {
    "first-fit": "linear scan: each in the first gap, as they come",
    "best-fit": "linear scan: each in the tightest gap, as they come",
    "slot-sharing": "slot sharing: a slot is as large as the largest that it serves",
    "size-classes": "a pool of size classes that keeps what is freed",
    "without-reuse": "no reuse at all",
}
"""Ways of placing, in the order of a table whose first rows need least."""
LEGEND = (
    "alive for: up to the peak; stay for: from the peak until they are freed; lowered to: the "
    "peak if all that the line makes ended as early as can be, arrays with the next free, "
    "objects of the runtime with the last event in which somebody took or gave them back."
)


class NoSuchMemory(TlmemError):
    """The recording has no object in the memory that was asked for."""

    exit_code = 2


@dataclass(frozen=True)
class Placement:
    """What a planner returns: the fields of ``tlmem.Plan``."""

    offsets: NDArray[np.uint64]
    peak_bytes: int
    lower_bound_bytes: int
    proven: bool


Planner = Callable[[Ints], Placement]
"""Takes rows of (first, last, size, alignment), both ends inclusive."""


@dataclass(frozen=True)
class Planned:
    """What is known of one memory of a recording.

    ``lives`` are all its objects, ``part`` those that were placed, ``group`` the line of each of
    these in ``frames``. ``ways`` are bytes by the names of ``placing.WAYS``. ``resident_bytes`` is
    what arrays, and what allocators and pools kept beside them, had of resident memory when that
    was highest; None where it was not sampled. ``others`` are the peaks of other memories.
    ``earlier`` is a higher peak, bytes and ns, in events of which only sums are known.
    """

    recording: Recording
    lives: PlannedLives
    part: PlannedLives
    placed: Placement
    ways: dict[str, int]
    lines: list[PeakLine]
    group: NDArray[np.int32]
    frames: tuple[StackFrame, ...]
    resident_bytes: int | None
    others: dict[str, int]
    earlier: tuple[int, int] | None

    @property
    def best(self) -> PeakLine | None:
        """The line whose shorter lives lower the peak most; None when no line does."""
        return lowest(self.lines, self.lives.peak_bytes)

    @property
    def best_freed(self) -> PeakLine | None:
        """That of the lines whose objects are freed while the program runs."""
        freed = [line for line in self.lines if line.stays_ns is not None]
        return lowest(freed, self.lives.peak_bytes)


def lowest(lines: Sequence[PeakLine], peak_bytes: int) -> PeakLine | None:
    """The line that lowers a peak most, the larger one of several."""
    best = min(lines, key=lambda line: (line.lowered_bytes, -line.bytes), default=None)
    return best if best is not None and best.lowered_bytes < peak_bytes else None


def find(
    recording: Recording, planner: Planner, memory: str | None = None, most: int = MOST_OBJECTS
) -> Planned:
    """Plans the objects of a recording.

    Args:
        memory: by name; the one with the highest peak when none is named.
        most: so many objects are placed, those nearest to the peak.
    Raises:
        NoSuchMemory: there is no object in that memory.
    """
    recording.release_events()
    every = memories(recording)
    lives = chosen_memory(recording, every, memory)
    part = around_the_peak(lives, most)
    rows = np.column_stack(
        [part.first, part.last, part.units, np.full(len(part), UNIT_BYTES, np.int64)]
    )
    places = Places.of(recording)
    born_site = recording.objects["born_site"].to_numpy(np.int64)
    site = born_site[part.row] if len(part) else born_site[:0]
    site = np.where((part.row >= 0) & (site < len(places.group_of_site)), site, 0)
    return Planned(
        recording=recording,
        lives=lives,
        part=part,
        placed=planner(rows),
        ways={name: way(part.first, part.last, part.units) for name, way in WAYS.items()},
        lines=peak_lines(recording, places, lives),
        group=places.group_of_site[site],
        frames=places.frames,
        resident_bytes=resident_bytes(recording),
        others={each.memory: each.peak_bytes for each in every if each is not lives},
        earlier=earlier_peak(recording, lives, len(every)),
    )


def chosen_memory(
    recording: Recording, every: list[PlannedLives], memory: str | None
) -> PlannedLives:
    """The memory that is meant; an empty one when the recording has no objects at all."""
    found = [lives for lives in every if memory is None or lives.memory == memory]
    if found:
        return found[0]
    if memory is not None:
        there = ", ".join(each.memory for each in every) or "none"
        raise NoSuchMemory(
            f"{recording.path} has no object in memory '{memory}'; memories with objects: {there}."
        )
    nothing = np.zeros(0, np.int64)
    return on_sections(HOST, nothing, nothing, nothing, nothing)


def resident_bytes(recording: Recording) -> int | None:
    """What objects, and what is kept for them, had of resident memory when it was highest."""
    moments = Moments(with_devices(recording))
    if len(moments.rows) == 0:
        return None
    parts = moments.parts(moments.highest())
    own = parts.tracked_bytes - parts.untouched_bytes + parts.pool_bytes
    return max(0, own + parts.allocator_free_bytes)


def earlier_peak(
    recording: Recording, lives: PlannedLives, memories: int
) -> tuple[int, int] | None:
    """A higher peak, bytes and ns, of which only sums are known, in a recording of one memory."""
    totals = recording.totals
    if recording.fold is None or memories > 1 or totals.peak_bytes <= lives.peak_bytes:
        return None
    return int(totals.peak_bytes), int(totals.peak_ns)


def render_text(found: Planned) -> str:
    """The report for people, with a line feed at its end."""
    return "\n\n".join(blocks(found)) + "\n"


def blocks(found: Planned) -> Iterator[str]:
    """Paragraphs and tables, the most important first."""
    yield wrap(summary(found))
    if len(found.lives):
        yield ways_block(found)
        yield lines_block(found)
        sentences = list(advice(found))
        if sentences:
            yield "\n".join(wrap(sentence) for sentence in sentences)
    notes = list(remarks(found))
    if notes:
        yield "\n".join(wrap(note) for note in notes)


def summary(found: Planned) -> str:
    """What was needed, what a plan needs, what the program took, in one sentence."""
    if len(found.lives) == 0:
        return (
            f"{found.recording.path} holds no object with bytes of its own, so there is nothing to "
            "plan."
        )
    placed, part = found.placed, found.part
    of = "objects" if found.lives.memory == HOST else f"objects of {found.lives.memory}"
    words = (
        f"The program's {of} needed at most {format_bytes(found.lives.peak_bytes)} at once, "
        f"{format_seconds(found.lives.peak_ns / 1e9)} after the start; no plan needs less than "
        f"{format_bytes(placed.lower_bound_bytes)}, and one of "
    )
    is_least = placed.peak_bytes == placed.lower_bound_bytes
    words += "just that" if is_least else format_bytes(placed.peak_bytes)
    words += " was found" if part.is_whole else f" was found for {scope(found)}"
    if placed.proven and not is_least:
        words += ", the least that there can be"
    if found.resident_bytes is not None:
        words += (
            f"; its own allocations took up to {format_bytes(found.resident_bytes)} of resident "
            "memory, with what allocators and pools kept"
        )
    return f"{words}."


def ways_block(found: Planned) -> str:
    """What every way of placing needs, beside the lower bound."""
    bound = max(1, found.placed.lower_bound_bytes)
    rows = [f"Needed for {scope(found)}", f"{'bytes':>11} {'of the least':>13}"]
    told = {"live": bound, "planned": found.placed.peak_bytes, **found.ways}
    words = {
        "live": f"alive at once, in multiples of {UNIT_BYTES} bytes: no plan needs less",
        "planned": "planned: offsets in one block",
        **IN_WORDS,
    }
    rows += [
        f"{format_bytes(told[name]):>11} {f'{told[name] / bound:.3f}x':>13}  {text}"
        for name, text in words.items()
    ]
    return "\n".join(rows)


def scope(found: Planned) -> str:
    """Which objects were placed."""
    part = found.part
    if part.is_whole:
        return f"all {format_count(part.of)} objects" if part.of > 1 else "the only object"
    count = len(part) + max(0, part.merged - 1)
    return f"the {format_count(count)} of {format_count(part.of)} objects nearest to the peak"


def lines_block(found: Planned) -> str:
    """The lines whose objects are alive at the peak."""
    head = (
        f"{'bytes':>11} {'objects':>9} {'alive for':>11} {'stay for':>11} {'lowered to':>11}  line"
    )
    rows = ["At the peak", head]
    rows += [line_row(line) for line in found.lines[:MOST_SHOWN]]
    hidden = found.lives.peak_bytes - sum(line.bytes for line in found.lines[:MOST_SHOWN])
    if hidden:
        rows.append(f"{format_bytes(hidden):>11} of other lines")
    return "\n".join([*rows, wrap(LEGEND, "  ")])


def line_row(line: PeakLine) -> str:
    """One line of the table; of several objects the middle one's times."""
    stays = "to the end" if line.stays_ns is None else format_seconds(line.stays_ns / 1e9)
    return (
        f"{format_bytes(line.bytes):>11} {format_count(line.count):>9} "
        f"{format_seconds(line.age_ns / 1e9):>11} {stays:>11} "
        f"{format_bytes(line.lowered_bytes):>11}  {where(line)}"
    )


def where(line: PeakLine) -> str:
    """A line of the program, with its function."""
    return f"{place(line.site)} {line.site.function}".strip()


def advice(found: Planned) -> Iterator[str]:
    """Whose shorter lives would lower the peak most, and by how much."""
    best, freed = found.best, found.best_freed
    if best is None or share_of(found, best) < LEAST_SHARE:
        yield f"Shorter lives at no single line would lower the peak by {100 * LEAST_SHARE:.0f}%."
        return
    yield gain(found, best, f"Shorter lives at {place(best.site)} would lower the peak most")
    if freed is not None and freed is not best and share_of(found, freed) >= LEAST_SHARE:
        yield gain(found, freed, f"Of what is freed while the program runs, at {place(freed.site)}")


def share_of(found: Planned, line: PeakLine) -> float:
    """The share of the peak that shorter lives at a line would spare."""
    return 1 - line.lowered_bytes / found.lives.peak_bytes


def gain(found: Planned, line: PeakLine, begin: str) -> str:
    """What shorter lives at one line would gain, as far as can be known."""
    saved = found.lives.peak_bytes - line.lowered_bytes
    words = f"{begin}: by at most {format_bytes(saved)} ({100 * share_of(found, line):.0f}%)"
    if line.stays_ns is None:
        words += "; most of what it makes is never freed"
    elif line.idle_ns is not None:
        words += f"; they live {format_seconds(line.idle_ns / 1e9)} after their last use"
    if line.known_by == BY_OWNERSHIP:
        return f"{words}. Uses are known from ownership events, which arithmetic does not leave."
    return f"{words}. When arrays are last used is not recorded."


def remarks(found: Planned) -> Iterator[str]:
    """What a reader has to know beside the numbers, a sentence each."""
    recording, part = found.recording, found.part
    if not part.is_whole and len(part):
        before = format_seconds((found.lives.peak_ns - int(part.time_ns[0])) / 1e9)
        after = format_seconds((int(part.time_ns[-1]) - found.lives.peak_ns) / 1e9)
        merged = (
            f", the {format_count(part.merged)} smallest of them as one block"
            if part.merged
            else ""
        )
        yield (
            f"Placed were the objects alive from {before} before the peak to {after} after it"
            f"{merged}; nowhere else is more alive at once. --objects says how many are placed."
        )
    if found.earlier is not None:
        held, at_ns = found.earlier
        yield (
            f"Of events before {format_seconds(recording.horizon_ns / 1e9)} only sums are known: "
            f"there was a higher peak, {format_bytes(held)}, {format_seconds(at_ns / 1e9)} after "
            "the start, of which nothing more can be said."
        )
    for memory, held in found.others.items():
        yield (
            f"Memory {memory}, with at most {format_bytes(held)} at once, is another block: "
            f"--memory {memory} plans it."
        )
    if not recording.sealed:
        yield "The recording has no end: what was not freed by then counts as alive."
    yield from relatives(found)
    yield from (f"problem: {problem}" for problem in recording.problems)


def relatives(found: Planned) -> Iterator[str]:
    """Other processes have memory of their own."""
    files = [path.name for path in found.recording.family]
    if files:
        named = ", ".join(files[:MOST_RELATIVES])
        more = f" and {len(files) - MOST_RELATIVES} more" if len(files) > MOST_RELATIVES else ""
        yield f"Other processes of the program are planned from their own files: {named}{more}."


def render_json(found: Planned) -> str:
    """One JSON object, with a line feed at its end."""
    return document(to_dict(found))


def to_dict(found: Planned) -> dict[str, Any]:
    """A plan as plain dicts, lists, texts and numbers."""
    recording, lives, part = found.recording, found.lives, found.part
    return {
        "schema": SCHEMA,
        "recording": {
            "path": str(recording.path),
            "complete": recording.complete,
            "problems": list(recording.problems),
        },
        "memory": lives.memory,
        "other_memories": [{"memory": name, "peak_bytes": n} for name, n in found.others.items()],
        "peak_bytes": lives.peak_bytes,
        "peak_seconds": seconds(lives.peak_ns),
        "peak_before_detail": None
        if found.earlier is None
        else {"bytes": found.earlier[0], "seconds": seconds(found.earlier[1])},
        "resident_bytes": found.resident_bytes,
        "planned": {
            "objects": len(part) + max(0, part.merged - 1),
            "of": part.of,
            "merged": part.merged,
            "from_seconds": seconds(part.time_ns[0]) if len(part) else None,
            "to_seconds": seconds(part.time_ns[-1]) if len(part) else None,
        },
        "lower_bound_bytes": found.placed.lower_bound_bytes,
        "plan_bytes": found.placed.peak_bytes,
        "proven": found.placed.proven,
        "ways": {name.replace("-", "_") + "_bytes": held for name, held in found.ways.items()},
        "at_peak": [line_dict(line) for line in found.lines[:MOST_LINES]],
    }


def line_dict(line: PeakLine) -> dict[str, Any]:
    """One line at the peak."""
    return {
        "site": frame_dict(line.site if line.site.file else None),
        "count": line.count,
        "bytes": line.bytes,
        "object": line.object,
        "alive_seconds": seconds(line.age_ns),
        "stays_seconds": None if line.stays_ns is None else seconds(line.stays_ns),
        "lowered_peak_bytes": line.lowered_bytes,
        "known_by": line.known_by,
        "idle_seconds": None if line.idle_ns is None else seconds(line.idle_ns),
    }


def seconds(ns: int) -> float:
    """A time in seconds, to the nanosecond."""
    return round(int(ns) / 1e9, 9)
