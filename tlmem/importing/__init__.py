"""Recordings from files of other tools; ``run(path, out, force)`` is ``tlmem import``.

In: a memory snapshot of PyTorch, which is read without running anything in it. Out: a recording.
``unpickle`` (bytes to plain values) < ``snapshot`` (to checked columns) < ``allocator`` (what was
alive when the trace began, sizes of blocks) < ``convert`` (to events); ``writer`` writes the file.
May import: errors, events, units, output, recording.format.
Third-party: numpy.

See also: docs/how-to/cuda-snapshots.md, docs/format.md.
"""

from __future__ import annotations

import gc
import sys
from pathlib import Path

from tlmem.importing.convert import Imported, recording_of
from tlmem.importing.snapshot import parse
from tlmem.importing.unpickle import CannotImport, load
from tlmem.output.atomic_write import STDOUT, write_file
from tlmem.units import counted, format_bytes

MOST_PROBLEMS = 3
"""So many contradictions and remarks are printed; the report prints all of them."""

__all__ = ["CannotImport", "Imported", "import_snapshot", "run"]


def import_snapshot(path: str | Path) -> Imported:
    """The recording that a snapshot makes, ready to be written.

    Raises:
        CannotImport: the file cannot be read, or is not a snapshot.
        EmptySnapshot: it has neither a trace nor a segment.
    """
    path = Path(path)
    collecting = gc.isenabled()
    gc.disable()  # millions of plain values are made, and none of them is garbage
    try:
        return recording_of(parse(load(path), path), path.name)
    finally:
        if collecting:
            gc.enable()


def run(path: str, out: str | None = None, force: bool = False) -> int:
    """Writes the recording of a snapshot, says on stderr what is in it, and returns 0.

    Raises:
        TlmemError: the snapshot cannot be read, or the recording cannot be written.
    """
    made = import_snapshot(path)
    place = Path(out or f"{Path(path).stem or 'snapshot'}.tlm")
    where = "standard output" if out == STDOUT else place
    write_file(place, lambda beside: beside.write_bytes(made.data), force)
    for sentence in (
        f"wrote {format_bytes(len(made.data))} to {where}: {counted(made.segments, 'segment')}, "
        f"{counted(made.entries, 'trace entry')}, {counted(made.base, 'block')} older than "
        "the trace",
        *[*made.problems, *made.remarks][:MOST_PROBLEMS],
        *([] if out == STDOUT else [f"next: tlmem report {place}"]),
    ):
        sys.stderr.write(f"tlmem: {sentence}\n")
    return 0
