"""Which line of one recording is which line of another one, when the source changed between them.

Covers: lines of the same function of the same file, put into pairs in their order, the more alike
the better. Does not cover: what is compared then (``diff``).

A line is known by its file (as seen from the script or the working directory, so that a checkout
elsewhere does not matter; the scripts themselves stand for each other), the function that it is in,
and its rank among the lines there. Its number says little: code above it may have moved it.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

SCRIPT = "<script>"
_LIBRARIES = ("python.sites", "python.stdlib", "tlmem.path")
_PAIRED, _ALIKE, _SAME_PLACE = 16, 2, 1
"""To pair two lines counts more than how alike they are: rank decides, likeness between ranks."""
_MOST_PAIRS = 250_000


@dataclass(frozen=True)
class Line:
    """What is known of one blamed line: ``offset`` lines below the beginning of its function.

    ``mean_bytes`` of what it makes (None: nothing), ``inside`` the functions that do it there.
    """

    line: int
    offset: int
    mean_bytes: int | None
    inside: frozenset[str]


def file_key(file: str, info: Mapping[str, str]) -> str:
    """A name for a file that is the same on another machine, from the notes of the recording."""
    script = info.get("script", "")
    if script and file == script:
        return SCRIPT
    for note in _LIBRARIES:
        for folder in info.get(note, "").split(os.pathsep):
            if inner := _below(file, folder):
                return f"<{note}>/{inner}"
    around = script.replace("\\", "/").rpartition("/")[0]
    return _below(file, around) or _below(file, info.get("cwd", "")) or file


def _below(file: str, folder: str) -> str:
    """The path of a file inside a folder; empty when it is elsewhere."""
    file, folder = file.replace("\\", "/"), folder.replace("\\", "/").rstrip("/")
    return file[len(folder) + 1 :] if folder and file.startswith(f"{folder}/") else ""


def align(first: Sequence[Line], second: Sequence[Line]) -> list[tuple[int | None, int | None]]:
    """Pairs the lines of one function; both in the order of their numbers.

    As many as possible are paired, in order; of those ways the one in which most are alike.

    Returns:
        Positions in both; None where a line has no counterpart.
    """
    if len(first) * len(second) > _MOST_PAIRS:
        pairs = _by_offset(first, second)
    else:
        pairs = _best(len(first), len(second), lambda a, b: _likeness(first[a], second[b]))
    alone_first = set(range(len(first))) - {a for a, _ in pairs}
    alone_second = set(range(len(second))) - {b for _, b in pairs}
    return [
        *pairs,
        *((a, None) for a in sorted(alone_first)),
        *((None, b) for b in sorted(alone_second)),
    ]


def _likeness(first: Line, second: Line) -> int:
    return (
        _PAIRED
        + _ALIKE * (first.mean_bytes == second.mean_bytes)
        + _ALIKE * (first.inside == second.inside)
        + _SAME_PLACE * (first.offset == second.offset)
    )


def _by_offset(first: Sequence[Line], second: Sequence[Line]) -> list[tuple[int, int]]:
    """Of very many lines: those at the same place in their function."""
    places = {line.offset: place for place, line in enumerate(second)}
    return [(a, places[line.offset]) for a, line in enumerate(first) if line.offset in places]


def _best(rows: int, columns: int, likeness: Callable[[int, int], int]) -> list[tuple[int, int]]:
    """The pairs, rising in both, whose likeness adds up to most."""
    sums = [[0] * (columns + 1) for _ in range(rows + 1)]
    for a in range(rows - 1, -1, -1):
        for b in range(columns - 1, -1, -1):
            paired = likeness(a, b) + sums[a + 1][b + 1]
            sums[a][b] = max(paired, sums[a + 1][b], sums[a][b + 1])
    pairs, a, b = [], 0, 0
    while a < rows and b < columns:
        if sums[a][b] == likeness(a, b) + sums[a + 1][b + 1]:
            pairs.append((a, b))
            a, b = a + 1, b + 1
        elif sums[a][b] == sums[a + 1][b]:
            a += 1
        else:
            b += 1
    return pairs
