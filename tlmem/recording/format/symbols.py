"""The names in a recording: code, call sites, their source lines, threads, notes, labels, chains.

Covers: what the meta records say. Does not cover: where the records lie (``segments``), which
frame of a stack is blamed (``tables.blame``).
"""

from __future__ import annotations

import struct
from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np

from tlmem.recording.format.allocator_state import unpack
from tlmem.recording.format.blocks import LAST_RECORD, MetaRecord
from tlmem.recording.format.chains import Holding, parse
from tlmem.recording.format.limits import LARGEST_THREAD, LONGEST_NAME, LONGEST_NOTE
from tlmem.recording.format.sanitize import plain, whole

CODE, SITE, THREAD, NOTE, LABEL, HOLDING, LINE, CONTENT, STATE = 1, 2, 3, 4, 5, 6, 7, 8, 9
NO_STACK, CUT_ROOT = 0, 1
FIRST_SITE = 2
"""Sites 0 (no Python stack) and 1 (root of stacks that were cut) have no frame."""

LAYOUT = "\n\t"
"""What may stand in the note ``command``: that of ``-c`` is a whole program."""
LONGEST_LINE = 256
MOST_LINES, MOST_LINE_BYTES = 65_536, 8 << 20
"""Characters of one source line; source lines of a recording, and their bytes. The recorder writes
half as many bytes at most."""
_WORDS = {CODE: 4, SITE: 4, NOTE: 2, LABEL: 2, LINE: 3}
_THREAD = struct.Struct("<IIQQ")


@dataclass(frozen=True)
class Code:
    """A function, class body or module: where it is defined."""

    file: str
    function: str
    first_line: int


@dataclass(frozen=True)
class ThreadName:
    """A thread as the recorder saw it first."""

    os_id: int
    name: str
    main: bool
    first_ticks: int


@dataclass
class Names:
    """Everything the meta records say, made plain. Later records of a key replace earlier ones."""

    codes: dict[int, Code] = field(default_factory=dict)
    sites: dict[int, tuple[int, int, int]] = field(default_factory=dict)
    """Site -> (parent site, code, line)."""
    threads: dict[int, ThreadName] = field(default_factory=dict)
    notes: dict[str, str] = field(default_factory=dict)
    labels: dict[int, str] = field(default_factory=dict)
    lines: dict[tuple[int, int], str] = field(default_factory=dict)
    """(Code, line) -> its text."""
    line_bytes: int = 0
    holdings: dict[tuple[int, int], Holding] = field(default_factory=dict)
    """(Snapshot, group) -> what a chain of Python objects held."""
    contents: dict[tuple[int, int], Holding] = field(default_factory=dict)
    """(Snapshot, number) -> what a container had, or arrays over memory that is not tracked."""
    states: dict[tuple[int, int], bytes] = field(default_factory=dict)
    """(Table, number of its first row) -> rows of ``allocator_state``."""
    damaged: int = 0
    largest_site: int = 2**32 - 1
    """Sites with higher numbers make no sense: columns are as long as the highest number."""
    chain_steps_left: int = 2**63
    """Chains that have more steps together make no sense: each is an object of its own."""

    def add(self, records: Iterable[MetaRecord | None]) -> None:
        """Takes in records; one that makes no sense is counted in ``damaged``."""
        for record in records:
            try:
                if record is None:
                    raise ValueError
                self._add(record.type, record.payload)
            except (ValueError, struct.error):
                self.damaged += 1

    def cut_deep_stacks(self, most: int) -> bool:
        """Cuts stacks to ``most`` frames, as a recorder does; says whether one was deeper."""
        if len(self.sites) <= most:
            return False
        # After k steps each site points 2**k frames outwards.
        outwards = np.zeros(max(self.sites) + 1, np.int64)
        numbers = np.fromiter(self.sites, np.int64, len(self.sites))
        parents = np.fromiter((row[0] for row in self.sites.values()), np.int64, len(self.sites))
        outwards[numbers] = np.where(parents >= FIRST_SITE, parents, 0)
        for _ in range(most.bit_length() - 1):
            outwards = outwards[outwards]
        if not outwards.any():
            return False
        depth: dict[int, int] = {}
        was_deeper = False
        for site in sorted(self.sites):
            parent, code, line = self.sites[site]
            depth[site] = depth.get(parent, 0) + 1
            if depth[site] > most:
                self.sites[site] = (CUT_ROOT, code, line)
                depth[site], was_deeper = 1, True
        return was_deeper

    def shorten_codes(self, most: int, short: int) -> bool:
        """Cuts all names of files and functions when those of all sites together are too long.

        Each site is a row with both names wherever sites are written out, so that one long name
        is written once for each. Says whether they were cut.

        Args:
            most: so many characters they may have together.
            short: so many are left of each: the end of a file's name, the begin of a function's.
        """
        length = {
            number: len(code.file) + len(code.function) for number, code in self.codes.items()
        }
        if sum(length.values()) * len(self.sites) <= most:
            return False
        if sum(length.get(code, 0) for _, code, _ in self.sites.values()) <= most:
            return False
        for number, code in self.codes.items():
            if length[number] > 2 * short:
                self.codes[number] = Code(
                    code.file[-short:], code.function[:short], code.first_line
                )
        return True

    def _add(self, kind: int, payload: bytes) -> None:
        if kind == THREAD:
            thread, flags, os_id, ticks = _THREAD.unpack_from(payload)
            if thread > LARGEST_THREAD:
                raise ValueError
            name = whole(_text(payload[_THREAD.size :][:LONGEST_NAME]))
            self.threads[thread] = ThreadName(min(os_id, 2**63 - 1), name, bool(flags & 1), ticks)
            return
        if kind in (HOLDING, CONTENT):
            holding = parse(payload)
            self.chain_steps_left -= len(holding.steps) + 1
            if self.chain_steps_left < 0:
                raise ValueError
            found = self.holdings if kind == HOLDING else self.contents
            found[holding.snapshot, holding.group] = holding
            return
        if kind == STATE:
            table, first, rows = unpack(payload)
            self.states[table, first] = rows
            return
        if kind > LAST_RECORD:
            return
        if kind not in _WORDS:
            raise ValueError
        words = struct.unpack_from(f"<{_WORDS[kind]}I", payload)
        rest = payload[4 * len(words) :]
        if kind == SITE:
            site, parent, code, line = words
            if not FIRST_SITE <= site <= self.largest_site or parent >= site:
                raise ValueError
            self.sites[site] = (parent, code, line)
        elif kind == CODE:
            code, first_line, file_bytes, name_bytes = words
            file, name = _split(rest, file_bytes, name_bytes)
            self.codes[code] = Code(plain(file), plain(name), first_line)
        elif kind == NOTE:
            key, value = _split(rest, *words, most=LONGEST_NOTE)
            escaped = whole if key.startswith(("op.", "pool.")) else plain
            self.notes[plain(key)] = escaped(value, LAYOUT if key == "command" else "")
        elif kind == LINE:
            code, line, text_bytes = words
            (text,) = _split(rest, text_bytes)
            self.line_bytes += text_bytes
            is_new = (code, line) not in self.lines
            if self.line_bytes > MOST_LINE_BYTES or (is_new and len(self.lines) == MOST_LINES):
                raise ValueError
            self.lines[code, line] = source_text(text)
        else:
            (text,) = _split(rest, words[1])
            self.labels[words[0]] = whole(text)


def source_text(text: str) -> str:
    """A line of source, made plain: without its indentation, tabs as spaces, of bounded length."""
    return whole(text[:LONGEST_LINE].replace("\t", " ").strip())


def _text(data: bytes) -> str:
    try:
        return data.decode("utf-8", "surrogatepass")
    except UnicodeDecodeError:
        return data.decode("utf-8", "replace")


def _split(data: bytes, *sizes: int, most: int = LONGEST_NAME) -> list[str]:
    if sum(sizes) > len(data):
        raise ValueError
    texts, begin = [], 0
    for size in sizes:
        texts.append(_text(data[begin : begin + min(size, most)]))
        begin += size
    return texts
