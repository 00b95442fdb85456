"""How near the player comes: programs are recorded, and replayed by the malloc that they had.

``python -m tlmem.scenarios.harness.host_replay [NAME ...]`` records the programs of
``programs/resident``, ``usual`` and ``blind`` one after the other, with every block of malloc, and
prints the table of docs/decisions/host-replay.md. It exits with 1 when fewer than ``MOST`` of them
are within 5%.
"""

from __future__ import annotations

import ast
import os
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from tlmem.recording.reader import read
from tlmem.replaying.host_allocators import settings_for
from tlmem.replaying.host_trace import host_trace
from tlmem.replaying.hosts import Agreement, agreement, play

PROGRAMS = Path(__file__).resolve().parents[1] / "programs"
FOLDERS = ("resident", "usual", "blind")
MOST = 30
"""Of the programs; the page says which of them miss, and which were changed after they had."""


@dataclass(frozen=True)
class Compared:
    """One program. ``agreement`` is None where nothing could be compared; ``why`` says why."""

    name: str
    description: str
    changes: int
    threads: int
    agreement: Agreement | None
    why: str

    @property
    def holds(self) -> bool:
        """Whether peak and course are within 5%."""
        return self.agreement is not None and self.agreement.holds


def programs() -> dict[str, Path]:
    """All programs by name."""
    found = sorted(
        path
        for folder in FOLDERS
        for path in (PROGRAMS / folder).glob("*.py")
        if path.stem != "__init__"
    )
    return {path.stem.replace("_", "-"): path for path in found}


def compare(name: str, path: Path) -> Compared:
    """Records a program in a process of its own and replays its arrays.

    Raises:
        subprocess.CalledProcessError: it failed.
        TlmemError: it cannot be replayed here.
    """
    with tempfile.TemporaryDirectory(prefix="tlmem-resident-") as folder:
        file = os.path.join(folder, f"{name}.tlm")
        command = [
            sys.executable,
            "-m",
            "tlmem",
            "record",
            "-q",
            "--heap=all",
            "-o",
            file,
            str(path),
        ]
        subprocess.run(command, capture_output=True, check=True)
        trace = host_trace(read(file))
        answer = play(trace, settings_for("glibc"))
        text = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""
        return Compared(
            name=name,
            description=text.partition("\n")[0],
            changes=trace.changes,
            threads=trace.threads,
            agreement=agreement(trace, answer),
            why=trace.no_comparison,
        )


def table(rows: list[Compared]) -> str:
    """In markdown; MB and percent of the recorded peak."""
    lines = [
        "| program | what it does | events | recorded peak | replayed | peak | mean | samples | |",
        "|---|---|--:|--:|--:|--:|--:|--:|---|",
    ]
    for row in rows:
        near = row.agreement
        if near is None:
            lines.append(f"| `{row.name}` | {row.description} | {row.changes:,} | {row.why} |")
            continue
        lines.append(
            f"| `{row.name}` | {row.description} | {row.changes:,} "
            f"| {near.recorded_peak / 1e6:.1f} | {near.played_peak / 1e6:.1f} "
            f"| {100 * near.peak_error:.1f}% | {100 * near.mean_error:.1f}% | {near.samples} "
            f"| {'' if row.holds else 'missed'} |"
        )
    return "\n".join(lines)


def main(words: list[str]) -> int:
    """Prints the table; 1 when too few programs are near."""
    known = programs()
    rows = [compare(name, known[name]) for name in words or known]
    print(table(rows))
    return 0 if sum(row.holds for row in rows) >= min(MOST, len(rows)) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
