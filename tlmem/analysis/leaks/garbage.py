"""Which growing lines only make garbage that Python's collector has not looked for yet.

Objects in a reference cycle that nothing reaches stay until the collector looks at all of them. It
counts containers: in a short run, or with few large objects, it never comes that far, and the line
that made them grows until then. That is no leak while the collector is on.

What is garbage at the end of the run may have been held until then by a function that returned:
that it was garbage before, a snapshot in the run must have seen, unless the line is of a module,
whose variables stay.

Covers: growing lines whose survivors snapshots saw in such cycles. Does not cover: cycles that it
will not find, as it is off or what there was is frozen; see ``python_objects``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from tlmem.analysis.growth.growing_sites import GrowingSite, is_early
from tlmem.analysis.holders.snapshots import holders_of, last_look
from tlmem.analysis.holders.survivors import MOST_LINES, Survivors, survivors_of_lines
from tlmem.analysis.leaks.bounded_caches import fills_a_bound
from tlmem.analysis.leaks.filling_caches import fills_up, is_full
from tlmem.analysis.leaks.growing_models import Training, is_extended
from tlmem.analysis.leaks.more_at_a_time import may_be_meant
from tlmem.analysis.leaks.ownership import lets_go
from tlmem.analysis.leaks.python_objects import only_cycles, seen
from tlmem.analysis.lifetimes import Lifetimes
from tlmem.analysis.model import Finding
from tlmem.analysis.places import Places
from tlmem.analysis.rules import RULES
from tlmem.units import format_count, format_rate

if TYPE_CHECKING:
    from tlmem.recording.reader import Recording

LARGE_BYTES = 10_000_000
"""Garbage of so many bytes is worth a warning, as the collector counts objects, not bytes."""
MODULE = "<module>"
"""Function of code whose variables stay when it is over."""


def containers_between(notes: Mapping[str, str]) -> int | None:
    """How many containers are made before the collector looks at all that are not old.

    None when it will not find what there is: frozen, the first threshold 0, all of them as good as
    infinite, or not known.
    """
    try:
        first, *others = (int(text) for text in notes["gc.threshold"].split(","))
        frozen = int(notes["gc.frozen"])
    except (KeyError, ValueError):
        return None
    count = first
    for threshold in others:
        count *= max(1, threshold)
    return count if 0 < count <= RULES.most_containers and frozen <= 0 else None


@dataclass(frozen=True)
class Sorted:
    """Growing lines with what keeps them: those that leak, and those of garbage.

    ``unclear`` are those whose survivors are garbage now, but may have been held by functions that
    have returned since, ``filling`` those that may only fill a cache, ``extended`` those of a model
    that is extended now and then, ``renewed`` those with more and more objects that are all young,
    ``full`` those of caches that are full.
    """

    leaks: list[Survivors]
    garbage: list[Survivors]
    unclear: list[Survivors]
    filling: list[Survivors] = field(default_factory=list)
    extended: list[Survivors] = field(default_factory=list)
    renewed: list[Survivors] = field(default_factory=list)
    full: list[Survivors] = field(default_factory=list)


def sort_lines(
    recording: Recording, places: Places, lives: Lifetimes, growths: list[GrowingSite]
) -> Sorted:
    """The growing lines, worst first; of those that leak at most ``MOST_LINES``.

    None when events are lost or missing: then who holds what is not known for sure.
    """
    if recording.lost_events or recording.missing_events:
        return Sorted([], [], [])
    lines = survivors_of_lines(recording, places, lives, growths[:MOST_LINES])
    if len(growths) > MOST_LINES and any(map(waits_for_collector, lines)):
        lines += survivors_of_lines(recording, places, lives, growths[MOST_LINES:])
    found = Sorted([], [], [])
    training = Training(recording)
    for line in lines:
        waits = waits_for_collector(line)
        if is_full(line):
            found.full.append(line)
        elif fills_a_bound(line) or fills_up(line):
            found.filling.append(line)
        elif waits and (were_cyclic(line) or line.line.function == MODULE):
            found.garbage.append(line)
        elif waits and (were_in_modules(line) or lets_go(line)):
            found.unclear.append(line)
        elif is_extended(line, training):
            found.extended.append(line)
        elif is_early(line.growth, lives):
            found.filling.append(line)
        elif may_be_meant(line):
            found.renewed.append(line)
        else:
            found.leaks.append(line)
    del found.leaks[MOST_LINES:]
    return found


def were_cyclic(line: Survivors) -> bool:
    """Whether some snapshot saw most survivors in cycles before the program ended."""
    return any(look.mostly_cyclic for look in line.looks)


def were_in_modules(line: Survivors) -> bool:
    """Whether the last snapshot before the end saw them held by variables of modules."""
    last = last_look(line.looks)
    return last is not None and last.by_modules


def waits_for_collector(line: Survivors) -> bool:
    """Whether nearly all survivors are garbage, and fewer than the collector lets stand."""
    room = containers_between(line.recording.info)
    cycles = only_cycles(line)
    if room is None or not cycles or not all(chain.collecting for chain in cycles):
        return False
    return line.growth.survivors <= room


def garbage_finding(line: Survivors) -> Finding:
    """What is said of a line of garbage: no leak, and when it goes."""
    room = containers_between(line.recording.info) or 0
    found = line.finding(
        "reference-cycle",
        f"{line.noun} are garbage, not a leak: {held(line)}. Python's garbage collector is on and "
        "frees them in its next full collection, when about "
        f"{format_count(room)} more containers (lists, dicts, instances) were created than freed; "
        "in large programs later, when these are a quarter of the old ones. Until then they grow "
        f"by {format_rate(line.growth.slope_bytes_per_s)}.",
    )
    return replace(found, severity="warning" if line.growth.bytes >= LARGE_BYTES else "info")


def unclear_finding(line: Survivors) -> Finding:
    """What is said of a line whose survivors may have been held by the program before."""
    before = (
        "and has freed others of this line; whether a function held these until it returned is "
        "unknown, as no snapshot was taken before."
    )
    if were_in_modules(line):
        before = (
            "and frees what the program lets go of; when it let go of these is unknown: the last "
            "snapshot before the end saw others of this line in variables."
        )
    return line.finding(
        "reference-cycle",
        f"{line.noun} are garbage at the end: {held(line)}. Python's garbage collector is on "
        f"{before}",
    )


def held(line: Survivors) -> str:
    """By which cycle, and when that was seen, as part of a sentence."""
    cycles = only_cycles(line)
    return f"held only by {holders_of(cycles)[0].name} (seen after {seen(cycles)})"


def arrays_in_cycles(recording: Recording) -> int:
    """How many arrays the latest whole look at Python's objects saw in cycles."""
    table = recording.holdings
    table = table[table["complete"]]
    if not len(table):
        return 0
    latest = table[table["snapshot"] == table["snapshot"].max()]
    return int(latest.loc[latest["root"] == "cycle", "arrays"].sum())
