"""What docs/seed-map.md says: which tests prove each mechanism."""

from __future__ import annotations

import re
from pathlib import Path

SELECTION = re.compile(r"`([^`]+)`")


def proofs(root: Path) -> dict[str, list[list[str]]]:
    """Mechanism -> what to give to pytest, once for each part of it.

    ``S5`` has two: the runtime's tests and the compiler's. ``S5, compiled`` of the second table has
    those tests alone whose names begin as it says.
    """
    found: dict[str, list[list[str]]] = {}
    text = (root / "docs" / "seed-map.md").read_text(encoding="utf-8")
    for row in re.findall(r"^\| [SB]\d+(?:, compiled)? \|.*$", text, re.MULTILINE):
        cells = [cell.strip() for cell in row.strip("|").split("|")]
        name, named = cells[0], SELECTION.findall(cells[-1])
        if named[0].endswith("_"):
            found[name] = [[*named[1:], "-k", named[0]]]
        else:
            found[name] = [[each] for each in named]
    return found


def proofs_of(mechanism: str, file: str, known: dict[str, list[list[str]]]) -> list[str]:
    """The tests that must catch a mutant in this file; the compiler's part is the second."""
    parts = known[mechanism]
    return parts[-1] if file.startswith("tlmem/compiler/") else parts[0]
