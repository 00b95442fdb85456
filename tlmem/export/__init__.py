"""Recordings in the formats of other tools; ``run(path, to, ...)`` is ``tlmem export``.

In: a recording. Out: a file, or a folder of tables, written whole or not at all.
May import: errors, events, units, output, recording, analysis, report.
Third-party: numpy, pandas. Inside functions: pyarrow, prometheus_client.

Each format has a module of its own; ``metrics`` answers Prometheus instead.
See also: docs/how-to/export.md, docs/how-to/prometheus.md.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from tlmem.export import heap_stacks, memory_viz, perfetto, speedscope, table_files
from tlmem.export.table_files import MOST_PROBLEMS, NothingToExport
from tlmem.output.atomic_write import STDOUT, write_file, write_folder
from tlmem.recording.reader import Recording, read, read_for_command
from tlmem.units import format_bytes

Write = Callable[[Recording, Path], Sequence[str]]


@dataclass(frozen=True)
class Target:
    """One format: the ending of its output, and what writes it.

    ``write`` is given the recording and a place, and returns what was left out and what is not
    intact, a sentence each. ``files`` are the names in a folder; empty for a single file.
    ``whole`` says that no event is folded that memory allows to keep; elsewhere a viewer could not
    show more than commands read anyway.
    """

    ending: str
    write: Write
    files: tuple[str, ...] = ()
    whole: bool = False


def _whole(write: Callable[[Recording, Path], str]) -> Write:
    """What writes a recording whose events are read at once; it says itself what it left out."""

    def write_and_say(recording: Recording, place: Path) -> list[str]:
        if recording.event_count == 0:
            raise NothingToExport(
                f"{recording.path} has no event in this time; choose another one with --since "
                "and --until."
            )
        return [write(recording, place), *recording.problems[:MOST_PROBLEMS]]

    return write_and_say


TARGETS = {
    "parquet": Target("-parquet", table_files.write_parquet, table_files.names(".parquet"), True),
    "csv": Target("-csv", table_files.write_csv, table_files.names(".csv"), True),
    "perfetto": Target(".perfetto-trace", _whole(perfetto.write)),
    "speedscope": Target(".speedscope.json", _whole(speedscope.write)),
    "heap-speedscope": Target(".heap.speedscope.json", _whole(heap_stacks.write_speedscope)),
    "heap-collapsed": Target(".heap.collapsed.txt", _whole(heap_stacks.write_collapsed)),
    "memory-viz": Target(".memory-viz.pickle", _whole(memory_viz.write)),
}


def run(
    path: str,
    to: str,
    out: str | None = None,
    since: float | None = None,
    until: float | None = None,
    force: bool = False,
) -> int:
    """Writes a recording in the format ``to`` and says on stderr where; returns 0.

    Raises:
        TlmemError: the recording cannot be read, or the output cannot be written.
    """
    target = TARGETS[to]
    place = Path(out or stem(path) + target.ending)
    to_stdout = out == STDOUT
    recording = (read if target.whole else read_for_command)(path, since, until)
    said: list[str] = []
    written = 0

    def write(beside: Path) -> None:
        nonlocal written
        said.extend(target.write(recording, beside))
        files = [*beside.glob("*")] if target.files else [beside]
        written = sum(file.stat().st_size for file in files)

    if target.files:
        write_folder(place, write, force, target.files)
    else:
        write_file(place, write, force)
    where = "standard output" if to_stdout else place
    sys.stderr.write(f"tlmem: wrote {format_bytes(written)} to {where}\n")
    for sentence in said:
        if sentence:
            sys.stderr.write(f"tlmem: {sentence}\n")
    return 0


def stem(path: str) -> str:
    """The name of a recording without its folder and ending."""
    return Path(path).name.removesuffix(".tlm") or "tlmem"
