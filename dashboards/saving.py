"""What is on screen as files: a picture, and the rows of its table.

Covers: names that are free, SVG and CSV beside each other in the current folder. Does not cover:
tables of a whole recording; see ``tlmem export``.
"""

from __future__ import annotations

import csv
from collections.abc import Iterable
from pathlib import Path

from tlmem.output.atomic_write import write_file

from .model.tables import TableData

FORMULAS = ("=", "+", "-", "@", "\t", "\r")
"""A text that begins so could be run by a spreadsheet; it gets an apostrophe before it."""
MOST_NAMES = 10_000


def save(
    folder: Path, stem: str, screen: str, picture: str, table: TableData | None
) -> tuple[Path, ...]:
    """Writes ``STEM-SCREEN.svg``, and with a table ``STEM-SCREEN.csv``; numbered where one exists.

    Returns:
        The files that were written.
    Raises:
        CannotWrite: there is no room or no right.
    """
    base = next(
        name
        for name in _names(folder, f"{stem}-{screen}")
        if not any(name.with_name(name.name + end).exists() for end in (".svg", ".csv"))
    )
    written = [base.with_name(base.name + ".svg")]
    write_file(written[0], lambda path: path.write_text(picture, encoding="utf-8"), False)
    if table is not None and table.rows:
        written.append(base.with_name(base.name + ".csv"))
        write_file(written[1], lambda path: _write_rows(path, table), False)
    return tuple(written)


def _names(folder: Path, base: str) -> Iterable[Path]:
    yield folder / base
    yield from (folder / f"{base}-{number}" for number in range(2, MOST_NAMES))


def _write_rows(path: Path, table: TableData) -> None:
    with path.open("w", encoding="utf-8", newline="") as file:
        out = csv.writer(file)
        out.writerow(head or "roles" for head in table.heads)
        for row in table.rows:
            out.writerow(
                text if head in table.numbers else _harmless(text)
                for head, text in zip(table.heads, row, strict=True)
            )


def _harmless(text: str) -> str:
    return f"'{text}" if text.startswith(FORMULAS) else text
