"""What was found so far, one JSON object a line; a soak that was ended goes on from there."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import BinaryIO

RUNS = "runs.jsonl"
RECORDINGS = "recordings"
KEPT = "kept"


@dataclass(frozen=True)
class RunRow:
    """One run as one judge sees it.

    ``code`` and ``program`` are digests of tlmem and of the program, ``recorder`` of what recorded
    it; ``outcome`` is the verdict or the decision in one word, ``failed`` when the program could
    not be recorded or read, and ``said`` everything. ``load_average`` is that of the last minute
    when the run was over.
    """

    name: str
    group: str
    seed: int
    judge: str
    code: str
    program: str
    commit: str
    machine: str
    load: str
    right: bool
    outcome: str
    said: str
    wolves: tuple[str, ...]
    seconds: float
    load_average: float = 0.0
    recorder: str = ""

    @property
    def key(self) -> tuple[str, int, str, str, str]:
        """Two rows with the same key are the same run, as the same judge sees it."""
        return self.name, self.seed, self.judge, self.code, self.program

    @property
    def run(self) -> tuple[str, int, str, str]:
        """What rows of the same run have in common."""
        return self.name, self.seed, self.code, self.program


class State:
    """A folder with the rows of all runs, recordings of wrong ones, and those that are kept."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.recordings = folder / RECORDINGS
        self.recordings.mkdir(parents=True, exist_ok=True)
        (folder / KEPT).mkdir(exist_ok=True)
        self.file = folder / RUNS
        self.rows = read_rows(self.file)

    def add(self, *rows: RunRow) -> None:
        """Appends rows, whole: a line that a killed soak left torn is ended first."""
        text = "".join(json.dumps(asdict(row)) + "\n" for row in rows)
        with open(self.file, "a+b") as file:
            if file.tell() and not ends_a_line(file):
                text = "\n" + text
            file.write(text.encode())
        self.rows.extend(rows)


def ends_a_line(file: BinaryIO) -> bool:
    """Whether the last byte of an open file is the end of a line."""
    file.seek(-1, os.SEEK_END)
    return file.read(1) == b"\n"


def read_rows(file: Path) -> list[RunRow]:
    """All whole rows; a torn one, and what is no row, is left out: that run is made again."""
    if not file.exists():
        return []
    rows = []
    for line in file.read_text(encoding="utf-8", errors="replace").splitlines():
        try:
            said = json.loads(line)
            rows.append(RunRow(**{**said, "wolves": tuple(said["wolves"])}))
        except (ValueError, TypeError, KeyError):
            continue
    return rows


def current(rows: Iterable[RunRow], keys: Iterable[tuple[str, int, str, str, str]]) -> list[RunRow]:
    """The rows of these runs in their order, one for each, the last when there are several."""
    found = {row.key: row for row in rows}
    return [found[key] for key in keys if key in found]
