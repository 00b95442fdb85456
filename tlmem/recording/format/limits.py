"""How much a file of a given length may hold: every bound that the reader keeps to.

A compressed stream may be a thousand times shorter than what it inflates to, and an index or a
count may say anything. Each such number is compared with the length of the file before memory is
taken for it; docs/format.md, "What a reader bounds", lists the bounds.

Covers: the numbers, and what they were chosen by. Does not cover: where they are compared.
"""

from __future__ import annotations

from tlmem.events import Kind

LEAST_PIECE_BYTES = 128
"""A block is its header at least."""

MOST_EVENTS_PER_BYTE = 8
"""A loop that does nothing but make and drop the same array writes 3.3 events for each byte."""
EVENTS_OF_ANY_FILE = 100_000

SMALL_FILE_BYTES = 2_000_000
DETAIL_OF_SMALL_FILES = 2_000_000
DETAIL_PER_BYTE = 8
"""Events kept one by one, for each byte above ``SMALL_FILE_BYTES``: all there can be."""
MEMORY_OF_SMALL_FILES = 240_000_000
MEMORY_PER_BYTE = 3_000
"""Memory that tables and analyses of what is kept may take; more is folded, oldest first."""
SHARE_OF_LISTED = 0.25
"""Of that memory, objects that were alive when older events were folded may take so much."""
BYTES_OF_AN_OBJECT = 400
BYTES_OF_AN_EVENT = 130
BYTES_OF_KIND: dict[int, int] = {
    Kind.ALLOC: BYTES_OF_AN_OBJECT,
    Kind.REALLOC: BYTES_OF_AN_OBJECT,
    Kind.SCOPE_ENTER: BYTES_OF_AN_OBJECT,
    **dict.fromkeys(range(Kind.ACQUIRE, Kind.ESCAPE + 1), 320),
    Kind.MISUSE: 250,
    Kind.TAPE_RECORD: 250,
    Kind.HOLDERS: 250,
    Kind.BACKWARD_BEGIN: 250,
    Kind.MARK: 200,
}
"""Memory that an event takes in the tables and their analysis, measured with a million of each."""
BYTES_OF_TABLES = 130
"""Memory that an event takes when all tables of a recording are built, measured with arrays."""
EVENTS_OF_ANY_MEMORY = 1_000_000
"""So few are read without a look at how much memory is available."""
EVENTS_BEYOND_DETAIL = 200_000
"""Folding ends in the middle of a block, and goes on to the end of a resize."""
DETAIL_OF_COMMANDS = 2_000_000
"""Commands keep so many at most, of a file of any length: their memory is bounded."""

NAMES_OF_ANY_FILE = 8_000_000
NAMES_PER_BYTE = 8
"""Names inflate to two to four times their size, snapshots of the same chains to ten times."""
LEAST_RECORD_OF_A_SITE = 32

FOLDED_OF_ANY_FILE = 64_000_000
FOLDED_PER_BYTE = 8
"""A checkpoint's entries inflate to three to five times their size, a million alike to more."""
MOST_FOLDED_THREADS = 200_000
MOST_CHECKPOINTS_TRIED = 8

LARGEST_THREAD = 1 << 24
LONGEST_NAME = 65_535
"""Bytes of one file, function, thread or label; the recorder cuts labels there."""
LONGEST_NOTE = 1_000_000
"""Bytes; the command of ``python -c`` is a whole program."""
SHORT_NAME = 120
"""Characters that are left of the names of a file whose names do not fit."""
TEXT_OF_ANY_FILE = 32_000_000
TEXT_PER_BYTE = 16

MOST_STACK_DEPTH = 1024
"""A recorder keeps no more frames of a stack; it cuts deeper ones as the reader does."""
MOST_CHAIN_STEPS = 32
MOST_CHAIN_ADDRESSES = 8192
"""A snapshot is at most 64 kB of records."""
CHAIN_STEPS_OF_ANY_FILE = 200_000
BYTES_PER_CHAIN_STEP = 8
LARGEST_SIZE = 1 << 52
"""No object and no sample is larger; sums of all are below ``LARGEST_SUM``."""
LARGEST_SUM = 1 << 60
LATEST_NS = 1 << 60
"""36 years: no time is later, and the sum of two times is an integer of 64 bits."""


def most_events(file_bytes: int) -> int:
    """So many events can a recorder have written into a file of this length."""
    return EVENTS_OF_ANY_FILE + MOST_EVENTS_PER_BYTE * file_bytes


def detail_events(file_bytes: int) -> int:
    """So many events are kept one by one unless a caller asks for more; older ones are folded."""
    return DETAIL_OF_SMALL_FILES + DETAIL_PER_BYTE * max(file_bytes - SMALL_FILE_BYTES, 0)


def detail_memory(file_bytes: int) -> int:
    """So much memory may tables and analyses take; see ``timeline.memory_of``."""
    return MEMORY_OF_SMALL_FILES + MEMORY_PER_BYTE * max(file_bytes - SMALL_FILE_BYTES, 0)


def most_listed(file_bytes: int) -> int:
    """So many objects that were alive when older events were folded are kept one by one."""
    return int(SHARE_OF_LISTED * detail_memory(file_bytes)) // BYTES_OF_AN_OBJECT


def most_objects_in_python(file_bytes: int) -> int:
    """So many objects are written as dicts of Python, which take a kilobyte each."""
    return 100_000 + max(file_bytes - SMALL_FILE_BYTES, 0) // 8


def most_names(file_bytes: int) -> int:
    """So many bytes of names are read."""
    return NAMES_OF_ANY_FILE + NAMES_PER_BYTE * file_bytes


def most_chain_steps(file_bytes: int) -> int:
    """So many steps of chains of Python objects are kept, each an object in Python."""
    return CHAIN_STEPS_OF_ANY_FILE + file_bytes // BYTES_PER_CHAIN_STEP


def most_shown_names(file_bytes: int) -> int:
    """So many characters the file and function names of all sites together may have."""
    return TEXT_OF_ANY_FILE + TEXT_PER_BYTE * file_bytes


def largest_site(file_bytes: int) -> int:
    """Sites are numbered from 2 in the order of their records, which are names."""
    return most_names(file_bytes) // LEAST_RECORD_OF_A_SITE


def most_folded(file_bytes: int) -> int:
    """So many bytes of a checkpoint are read."""
    return FOLDED_OF_ANY_FILE + FOLDED_PER_BYTE * file_bytes


def most_pieces(file_bytes: int) -> int:
    """So many blocks fit into a file."""
    return file_bytes // LEAST_PIECE_BYTES
