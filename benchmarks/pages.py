"""Markdown: tables, and the parts of docs/benchmarks.md that a run of the benchmarks replaces."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path


@dataclass
class Section:
    """What one part has to say.

    ``blocks`` are paragraphs and tables in order; ``values`` are the numbers that have a target or
    are compared with the last run, by name.
    """

    name: str
    blocks: list[str] = field(default_factory=list)
    values: dict[str, float] = field(default_factory=dict)

    @property
    def text(self) -> str:
        """The section in Markdown."""
        return "\n\n".join(self.blocks)


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A Markdown table; the first column is text, the others are numbers."""
    lines = ["| " + " | ".join(head) + " |"]
    lines.append("|---" + "|--:" * (len(head) - 1) + "|")
    lines += ["| " + " | ".join(row) + " |" for row in rows]
    return "\n".join(lines)


def replace(page: Path, name: str, text: str) -> None:
    """Puts ``text`` between the marks of the section ``name``, at the end when it has none yet."""
    first, last = f"<!-- begin {name} -->", f"<!-- end {name} -->"
    whole = page.read_text(encoding="utf-8") if page.exists() else ""
    if first not in whole:
        whole = f"{whole.rstrip()}\n\n{first}\n{last}\n"
    before, _, rest = whole.partition(first)
    _, _, after = rest.partition(last)
    page.write_text(f"{before}{first}\n{text}\n{last}{after}", encoding="utf-8")
