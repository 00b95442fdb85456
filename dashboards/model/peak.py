"""What memory consisted of at its peak: by role, module and line, and what would lower it.

Covers: one computation for each memory of a recording, its rows and sentences as they are shown.
Does not cover: roles, modules and replays themselves; see ``tlmem.analysis.peak``.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice

from tlmem.analysis.peak.blocks import HOST
from tlmem.analysis.peak.explained import Explained, Known, RoleSum, explain_known
from tlmem.analysis.places import place
from tlmem.recording.reader import Recording
from tlmem.report.peak import change_text, module_parts, role_list, when
from tlmem.units import format_bytes, format_count, format_seconds

from .bars import share_bar
from .tables import MOST_ROWS, TableData

ROLE, MODULE, LINE = "role", "module", "line"
BAR = 8
MOST_PARTS = 3
NO_ROLES = "no roles: no module, backward pass or optimizer of PyTorch; l shows lines"
NO_MODULES = "no modules: PyTorch ran none; l shows lines"


@dataclass(frozen=True)
class PeakShown:
    """The peak of one memory: a sentence, a table for each of role, module and line, sentences.

    ``by`` is the table to begin with; ``memories`` are all there are, the one with the highest peak
    first; ``time_ns`` is the moment.
    """

    sentence: str
    tables: dict[str, TableData]
    lower: tuple[str, ...]
    notes: tuple[str, ...]
    by: str
    memory: str
    memories: tuple[str, ...]
    time_ns: int


class PeakIndex:
    """The peaks of one recording; cheap to make, computed when first asked for, in any thread.

    It has a lock of its own: what takes seconds holds up nothing else that is asked of a recording.
    """

    def __init__(self, recording: Recording) -> None:
        self._recording = recording
        self._lock = threading.Lock()
        self._known: Known | None = None
        self._shown: dict[str | None, PeakShown] = {}

    def shown(self, memory: str | None = None) -> PeakShown:
        """The peak of a memory, by name; None for the one with the highest peak."""
        with self._lock:
            if self._known is None:
                self._known = Known.of(self._recording)
            if memory not in self._shown:
                blocks = self._known.blocks
                names = tuple(blocks.memories[number] for number in blocks.by_peak)
                self._shown[memory] = _shown(explain_known(self._known, None, memory), names)
            return self._shown[memory]


def _shown(found: Explained, memories: tuple[str, ...]) -> PeakShown:
    return PeakShown(
        sentence=_sentence(found),
        tables={ROLE: roles(found), MODULE: modules(found), LINE: lines(found)},
        lower=tuple(_gain(found, number) for number in range(len(found.lowered))),
        notes=tuple(_notes(found)),
        by=ROLE if found.phased else LINE,
        memory=found.memory,
        memories=memories,
        time_ns=found.moment.time_ns,
    )


# ---- tables ----


def roles(found: Explained) -> TableData:
    """What each role has, in the order of reports, with its largest modules or lines."""
    rows = []
    for role in found.roles if found.phased else ():
        numbers = _numbers(found, role.bytes, format_count(role.count))
        rows.append((*numbers, role.role, ", ".join(_parts(found, role))))
    return TableData(("bytes", "share", "blocks", "role", "largest parts"), rows, NUMBERS)


def modules(found: Explained) -> TableData:
    """The tree of modules, then what is of none of them by role."""
    rows = []
    inside = [each for each in found.modules if each.path]
    for each in inside[:MOST_ROWS] if found.phased else ():
        own = format_bytes(each.own) if each.own else ""
        name = "  " * (len(each.path) - 1) + found.module_text(each.path)
        rows.append((*_numbers(found, each.bytes, own), name, role_list(each.roles, MOST_PARTS)))
    for each in found.modules if found.phased else ():
        for role, size in () if each.path else each.roles.items():
            rows.append((*_numbers(found, size, ""), "(of no known module)", role))
    note = _left_out(len(inside), "modules")
    return TableData(("bytes", "share", "own", "module", "roles"), rows, NUMBERS, note)


def lines(found: Explained) -> TableData:
    """What each line's blocks have, most bytes first."""
    rows = []
    for each in islice(found.lines, MOST_ROWS):
        site = each.site
        where = f"{place(site)} {site.function}" if site.file else "no Python stack"
        numbers = _numbers(found, each.bytes, format_count(each.count))
        rows.append((*numbers, where, role_list(each.roles, MOST_PARTS) if found.phased else ""))
    note = _left_out(len(found.lines), "lines")
    heads = ("bytes", "share", "blocks", "line", "roles" if found.phased else "")
    return TableData(heads, rows, NUMBERS, note)


NUMBERS = ("bytes", "blocks", "own")


def _numbers(found: Explained, size: int, third: str) -> tuple[str, str, str]:
    """Bytes, their share as a bar and in percent, and one number more."""
    share = size / found.bytes
    return format_bytes(size), f"{share_bar(share, BAR)} {100 * share:>3.0f}%", third


def _left_out(count: int, what: str) -> str:
    if count <= MOST_ROWS:
        return ""
    return f"of {format_count(count)} {what} the first {format_count(MOST_ROWS)} listed"


def _parts(found: Explained, role: RoleSum) -> Iterator[str]:
    """The modules that a role mostly consists of, or else the lines."""
    known = sum(size for _, size in role.modules)
    if known and 2 * known >= role.bytes:
        for name, size in module_parts(found, role.modules)[:MOST_PARTS]:
            yield f"{name} {size}"
    else:
        for line, total in role.lines[:MOST_PARTS]:
            yield f"{place(line) if line.file else 'no Python stack'} {format_bytes(total)}"


# ---- sentences ----


def _sentence(found: Explained) -> str:
    """How much, when, in which step and phase, at which line."""
    if not found.count:
        return "Nothing was allocated."
    of = "" if found.memory == HOST else f" of {found.memory}"
    blocks = "block" if found.count == 1 else "blocks"
    size = f"{format_bytes(found.bytes)} in {format_count(found.count)} {blocks}"
    return f"Peak{of} {size}, {when(found.moment)}"


def _gain(found: Explained, number: int) -> str:
    """What one change would have led to."""
    change = found.lowered[number]
    share = 100 * change.saved / found.peak_bytes
    phase = f"; then it is {change.moment.phase}" if change.moment.phase else ""
    return (
        f"{change_text(found, change)}: peak {format_bytes(change.bytes)}, "
        f"{format_bytes(change.saved)} ({share:.0f}%) lower{phase}"
    )


def _notes(found: Explained) -> Iterator[str]:
    """What a reader has to know beside the numbers."""
    if found.earlier is not None:
        size, time = found.earlier
        yield (
            f"A higher peak, {format_bytes(size)} at {format_seconds(time / 1e9)}, is among events "
            "of which only sums are known."
        )
    if found.estimated:
        yield "Of the oldest objects only some are known (a size limit): sums are estimates."
