"""What memory consisted of at its peak, or at another moment: by role, module and line.

Covers: one computation for each memory and moment, its rows and sentences as they are shown.
Does not cover: roles, modules, holders and replays themselves; see ``tlmem.analysis.peak``.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import islice

from tlmem.analysis.model import StackFrame
from tlmem.analysis.peak.explained import Explained, Known, LineSum, RoleSum, explain_known
from tlmem.analysis.places import place, with_function
from tlmem.recording.reader import Recording
from tlmem.report.peak import change_text, holder_words, module_parts, role_list, sentence
from tlmem.units import format_bytes, format_count, format_seconds, parse_bytes

from .bars import share_bar
from .tables import MOST_ROWS, TableData

ROLE, MODULE, LINE = "role", "module", "line"
BAR = 8
MOST_PARTS = 3
MOST_NAMED = 2
MOST_KEPT = 64
"""So many moments are kept once they were computed."""
NO_ROLES = "no roles: no module, backward pass or optimizer of PyTorch; l shows lines"
NO_MODULES = "no modules: PyTorch ran none; l shows lines"


@dataclass(frozen=True)
class MomentShown:
    """What was alive in one memory: a sentence, a table for each of role, module and line.

    ``by`` is the table to begin with; ``memories`` are all there are, the one with the highest peak
    first; ``time_ns`` is the moment. ``lines`` are the lines of the table of lines, with all that
    is known of each in ``about``; ``lower`` says, of the peak, what would have made it lower.
    """

    sentence: str
    tables: dict[str, TableData]
    lower: tuple[str, ...]
    notes: tuple[str, ...]
    by: str
    memory: str
    memories: tuple[str, ...]
    time_ns: int
    is_peak: bool = True
    lines: tuple[StackFrame, ...] = ()
    about: tuple[str, ...] = field(default=(), repr=False)
    sizes: dict[str, tuple[int, ...]] = field(default_factory=dict, repr=False)

    def matching(self, by: str, words: str) -> list[int]:
        """The rows of a table that have each of some words, in any case.

        ``>1MB`` and ``<64kB`` are bytes that a row has more or less than.
        """
        wanted = [(word, _limit(word)) for word in words.casefold().split()]
        sizes = self.sizes[by]

        def fits(number: int, row: tuple[str, ...]) -> bool:
            text = " ".join(row).casefold()
            return all(
                word in text
                if limit is None
                else word[0] == "<"
                and sizes[number] < limit
                or word[0] == ">"
                and sizes[number] > limit
                for word, limit in wanted
            )

        return [number for number, row in enumerate(self.tables[by].rows) if fits(number, row)]


def _limit(word: str) -> int | None:
    """The bytes of ``>1MB``; None when the word does not set a limit."""
    try:
        return parse_bytes(word[1:]) if word[:1] in ("<", ">") else None
    except ValueError:
        return None


MOST_BLOCKS_KEPT = 250_000
"""What is known of more blocks, about 240 bytes of each, is read anew for each moment."""
Born = tuple[int, int]


class MomentIndex:
    """The moments of one recording; cheap to make, computed when asked for, in any thread.

    It has a lock of its own: what takes seconds holds up nothing else that is asked of a recording.
    """

    def __init__(self, recording: Recording) -> None:
        self._recording = recording
        self._lock = threading.Lock()
        self._known: Known | None = None
        self._shown: dict[tuple[object, ...], MomentShown] = {}

    def prepare(self) -> None:
        """Reads what any moment is answered from, unless it would be too much to keep."""
        with self._lock:
            if self._is_kept:
                _ = self._all_known().blocks.by_peak

    def shown(
        self,
        memory: str | None = None,
        at_ns: int | None = None,
        born_ns: Born | None = None,
        thread: int | None = None,
    ) -> MomentShown:
        """What was alive in a memory at a moment.

        Args:
            memory: by name; None for the one with the highest peak.
            at_ns: None for the peak, or, of a generation, for the moment of judging.
            born_ns: only what was allocated between these two moments.
            thread: only what this one allocated.
        """
        key = (memory, at_ns, born_ns, thread)
        with self._lock:
            known = self._all_known()
            if key not in self._shown:
                blocks = known.blocks
                names = tuple(blocks.memories[number] for number in blocks.by_peak)
                found = explain_known(known, at_ns, memory, born_ns, held=True, thread=thread)
                while len(self._shown) >= MOST_KEPT:
                    del self._shown[next(iter(self._shown))]
                self._shown[key] = _shown(found, names)
            return self._shown[key]

    @property
    def _is_kept(self) -> bool:
        return len(self._recording.objects) <= MOST_BLOCKS_KEPT

    def _all_known(self) -> Known:
        known = self._known or Known.of(self._recording)
        if self._is_kept:
            self._known = known
        return known


def _shown(found: Explained, memories: tuple[str, ...]) -> MomentShown:
    listed = found.lines[:MOST_ROWS]
    return MomentShown(
        sentence=_sentence(found),
        tables={ROLE: roles(found), MODULE: modules(found), LINE: lines(found)},
        lower=tuple(_gain(found, number) for number in range(len(found.lowered))),
        notes=tuple(_notes(found)),
        by=ROLE if found.phased else LINE,
        memory=found.memory,
        memories=memories,
        time_ns=found.moment.time_ns,
        is_peak=found.is_peak,
        lines=tuple(each.site for each in listed),
        about=tuple(_about(found, each) for each in listed),
        sizes={
            ROLE: tuple(each.bytes for each in found.roles),
            MODULE: _module_sizes(found),
            LINE: tuple(each.bytes for each in listed),
        },
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


def _module_sizes(found: Explained) -> tuple[int, ...]:
    """Bytes of the rows of ``modules``."""
    inside = [each.bytes for each in found.modules if each.path][:MOST_ROWS]
    outside = [each for each in found.modules if not each.path]
    return (*inside, *(size for each in outside for size in each.roles.values()))


def lines(found: Explained) -> TableData:
    """What each line's blocks have, most bytes first, with who held them and since when."""
    rows = []
    for each in islice(found.lines, MOST_ROWS):
        size, share, count = _numbers(found, each.bytes, format_count(each.count))
        named = ", ".join(holder.name for holder in each.holders[:MOST_NAMED])
        since = format_seconds(each.since_ns / 1e9)
        kept_for = role_list(each.roles, MOST_PARTS) if found.phased else ""
        rows.append((size, share, with_function(each.site), named or "–", since, count, kept_for))
    note = _left_out(len(found.lines), "lines")
    heads = ("bytes", "share", "line", "held by", "since", "blocks")
    return TableData((*heads, "roles" if found.phased else ""), rows, NUMBERS, note)


def _about(found: Explained, each: LineSum) -> str:
    """All that is known of a line's blocks: where, since when, who held them, and how."""
    site = each.site
    blocks = "block" if each.count == 1 else "blocks"
    text = [f"{site} in {site.function}" if site.file else "no Python stack"]
    text += [f"    {site.text}"] if site.text else []
    text.append(
        f"{format_bytes(each.bytes)} in {format_count(each.count)} {blocks}, the oldest allocated "
        f"after {format_seconds(each.since_ns / 1e9)}"
        + (f"; {role_list(each.roles, MOST_PARTS)}" if found.phased else "")
    )
    for holder in each.holders:
        text.append(holder_words(holder))
        text += [f"    {holder.chain}"] if holder.chain else []
    return "\n".join(text)


NUMBERS = ("bytes", "since", "blocks", "own")


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
    if found.count:
        return sentence(found)
    when = "" if found.is_peak else f" after {format_seconds(found.moment.time_ns / 1e9)}"
    return f"Nothing was alive{when}." if when else "Nothing was allocated."


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
