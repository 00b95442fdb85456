"""The mutants, read from ``table.txt``: for each mechanism of docs/seed-map.md subtle ways to break
it.

A mutant has the name of the mechanism in the seed map and what goes wrong, the file, and the lines
that change, as in a diff::

    S1: the last release but one frees
    native/memory/object.c
    -    if (count > 0) {
    +    if (count > 1) {

The lines without ``+`` must be in the file exactly once; ``test_mutants.py`` checks it, so a change
of the code must update its mutants here. Write a mutant as an adversary would: a count forgotten on
one of two paths, two steps in the wrong order, a limit that is off by one; not a ``raise``. When no
test can notice a mutant, a line ``equivalent: ...`` below the file says why.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import NamedTuple

TABLE = Path(__file__).with_name("table.txt")
LETTERS = "abcdefghijklmnopqrstuvwxyz"


class Mutant(NamedTuple):
    """One broken mechanism.

    Attributes:
        mechanism: as the seed map calls it: ``S5``, or ``S5, compiled`` for its second table.
        file: the file that it breaks.
        find: lines of the file, there exactly once.
        replacement: what stands there instead.
        breaks: what goes wrong then.
        equivalent: why nothing can be noticed; empty for a mutant that must be caught.
        name: ``S5b``, the second one of its number.
    """

    mechanism: str
    file: str
    find: str
    replacement: str
    breaks: str
    equivalent: str
    name: str

    @property
    def number(self) -> str:
        """``S5`` of ``S5, compiled``."""
        return self.mechanism.partition(",")[0]


def mutants_in(text: str) -> tuple[Mutant, ...]:
    """The mutants of a table."""
    seen: Counter[str] = Counter()
    found = []
    for block in text.strip("\n").split("\n\n"):
        head, file, *lines = block.splitlines()
        mechanism, _, breaks = head.partition(": ")
        equivalent = ""
        if lines[0].startswith("equivalent: "):
            equivalent = lines.pop(0).removeprefix("equivalent: ")
        find = "".join(f"{line[1:]}\n" for line in lines if line[0] in " -")
        replacement = "".join(f"{line[1:]}\n" for line in lines if line[0] in " +")
        number = mechanism.partition(",")[0]
        name = number + LETTERS[seen[number]]
        seen[number] += 1
        found.append(Mutant(mechanism, file, find, replacement, breaks, equivalent, name))
    return tuple(found)


MUTANTS = mutants_in(TABLE.read_text(encoding="utf-8"))
