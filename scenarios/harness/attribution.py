"""The page ``docs/attribution.md``: programs of many kinds, and where their memory went.

``python -m tlmem.scenarios.harness.attribution [NAME ...]`` records the programs of
``programs/attribution`` one after the other and prints the page. It exits with 1 when more of the
memory, or of its growth, is unexplained than ``AttributionRow.allowed``.
"""

from __future__ import annotations

import ast
import os
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from tlmem.analysis import Analysis, analyse
from tlmem.analysis.model import Attribution
from tlmem.recording.reader import read
from tlmem.units import format_seconds

PROGRAMS = Path(__file__).resolve().parents[1] / "programs" / "attribution"
ALLOWED_BYTES = 2_000_000
ALLOWED_SHARE = 0.05

HEAD = """\
# Where memory goes

Written by `make attribution`: programs of different kinds are recorded once each, and every part of
their resident memory is explained by `tlmem report`: as it was when the program was judged,
and what it grew by in the steady state. What stays unexplained, the *residual*, should be below
2 MB or 5 % of the growth. What each part is and how it is known stands [below](#parts).

"""
PARTS = """\
## Parts

- **arrays**: tracked memory, NumPy arrays and objects of the runtime, less what was never touched.
  Every allocation and free is known; of blocks from 1 MB on `mincore` tells the untouched pages.
- **pool**: what devices hold and no live object uses: idle buffers, arenas, what a driver keeps.
- **Python**: arenas of Python's small objects, the newest as far as it was touched, and its larger
  blocks.
- **free**: freed by the program, kept by the C allocator, and resident: what is resident in its
  arenas, less what it has handed out.
- **recorder**: tlmem's own memory, as far as it is resident, what is resident of the mapped
  recording, and records on tapes.
- **libraries**: programs and libraries: files with code, their written pages and zeroed data.
- **native**: what the C allocator has handed out to others than arrays and Python, with what it
  adds to each block for itself, as far as it is resident.
- **mapped**: anonymous mappings less all that is known to lie in them: what libraries and the
  program map themselves, by `mmap`, as buffers of BLAS, or in allocators of their own.
- **files**: files mapped without code, such as `np.memmap`, and shared memory.
- **stacks**: memory above a guard page.
- **residual**: resident memory less all of the above; it can be negative.

The kernel lists mappings (`/proc/self/smaps`) at few moments, called pictures: at the begin, at
the end, and as often as it costs at most a third of a percent of the time, or one percent while
memory grows by an eighth and more. Everything else is asked at the same moment, and only such
moments are compared. That list leaves no page out. So the residual is where the kernel, the C
allocator, Python and the recorder contradict each other: arenas of Python that are not touched
yet, full arenas of the C allocator that look like other mappings, and what changed between two
questions of one picture.

Where the kernel gives no such list (macOS), `libraries` is code alone, `mapped` and `stacks` are
part of the residual.

On a busy machine the sampler may have to wait in the middle of a picture while the program goes
on: then, and when the picture before it contradicts itself less, that one is taken.

Limits: what a library maps for itself is `mapped`, but not which library did. Native blocks
that were never touched count as native memory only as far as the kernel shows pages for them. A
forked child has its parent's arrays as well, which its own recording does not know: native there.
Where the sampler waits in the middle of a picture while a program frees what it had, what is gone
by the second question is `mapped` instead of what it was, and the residual does not show it.
"""


@dataclass(frozen=True)
class AttributionRow:
    """One program, recorded: ``parts`` when judged, ``grown`` in its steady state."""

    name: str
    description: str
    seconds: float
    parts: Attribution
    grown: Attribution | None

    @property
    def allowed(self) -> float:
        """How much may be unexplained: 2 MB, or 5 % of the growth if that is more."""
        growth = self.grown.resident_bytes if self.grown is not None else 0
        return max(ALLOWED_BYTES, ALLOWED_SHARE * growth)

    @property
    def closes(self) -> bool:
        """Whether the parts explain memory and growth."""
        residuals = [self.parts.residual_bytes]
        residuals += [self.grown.residual_bytes] if self.grown is not None else []
        known = self.parts.known and self.grown is not None
        return known and all(abs(residual) <= self.allowed for residual in residuals)


class ProgramFailed(Exception):
    """A program could not be run under ``tlmem record``."""


def programs() -> dict[str, Path]:
    """All programs by name."""
    found = sorted(path for path in PROGRAMS.glob("*.py") if path.stem != "__init__")
    return {path.stem.replace("_", "-"): path for path in found}


def record(name: str, path: Path) -> AttributionRow:
    """Records a program in a process of its own and says where its memory went.

    Raises:
        ProgramFailed: it failed, or left no recording.
        TlmemError: the recording cannot be read.
    """
    tree = ast.parse(path.read_text(encoding="utf-8"))
    options: list[str] = next(
        (
            ast.literal_eval(node.value).split()
            for node in tree.body
            if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "OPTIONS"
        ),
        [],
    )
    with tempfile.TemporaryDirectory(prefix="tlmem-attribution-") as folder:
        file = os.path.join(folder, f"{name}.tlm")
        command = [sys.executable, "-m", "tlmem", "record", "-q", *options, "-o", file, str(path)]
        finished = subprocess.run(command, capture_output=True, text=True, check=False)
        if finished.returncode != 0 or not os.path.exists(file):
            last = (finished.stderr.strip() or "no message").splitlines()[-1]
            raise ProgramFailed(
                f"{name} could not be recorded (exit code {finished.returncode}: {last})"
            )
        recording = read(file)
        found: Analysis = analyse(recording)
        return AttributionRow(
            name=name,
            description=(ast.get_docstring(tree) or "").partition("\n")[0],
            seconds=recording.seconds,
            parts=found.attribution,
            grown=found.growth.parts if found.growth is not None else None,
        )


COLUMNS = (
    ("arrays", lambda parts: parts.tracked_bytes - parts.untouched_bytes),
    ("pool", lambda parts: parts.pool_bytes),
    ("Python", lambda parts: parts.python_bytes),
    ("free", lambda parts: parts.allocator_free_bytes),
    ("recorder", lambda parts: parts.recorder_bytes + parts.tape_bytes),
    ("libraries", lambda parts: parts.library_bytes),
    ("native", lambda parts: parts.native_bytes),
    ("mapped", lambda parts: parts.mapped_bytes),
    ("files", lambda parts: parts.file_bytes + parts.shared_bytes),
    ("stacks", lambda parts: parts.stack_bytes),
    ("residual", lambda parts: parts.residual_bytes),
)


def numbers(parts: Attribution) -> list[str]:
    """Resident memory and its parts, in MB."""
    sizes = [parts.resident_bytes, *(part(parts) for _, part in COLUMNS)]
    return [f"{size / 1e6:.1f}".replace("-0.0", "0.0") for size in sizes]


def page(rows: list[AttributionRow]) -> str:
    """The whole page, in markdown."""
    closed = sum(row.closes for row in rows)
    kinds = [
        f"| `{row.name}` | {row.description} | {format_seconds(row.seconds)} |" for row in rows
    ]
    names = " | ".join(name for name, _ in COLUMNS)
    ruler = "|---|" + "--:|" * (len(COLUMNS) + 1)
    level = [f"| `{row.name}` | {' | '.join(numbers(row.parts))} |" for row in rows]
    growth = [growth_row(row) for row in rows]
    return "\n".join(
        [
            HEAD + "## Programs\n\n| program | what it does | ran for |\n|---|---|--:|",
            *kinds,
            f"\n## Growth in the steady state: {closed} of {len(rows)} explained\n",
            f"MB. *of growth* is the residual as a share of it.\n\n| program | grown by | {names} "
            "| of growth | |",
            ruler + "--:|---|",
            *growth,
            f"\n## When judged\n\nMB.\n\n| program | resident | {names} |",
            ruler,
            *level,
            "\n" + PARTS,
        ]
    )


def growth_row(row: AttributionRow) -> str:
    """What one program grew by, and whether that is explained."""
    grown = row.grown
    if grown is None:
        return f"| `{row.name}` |{' |' * (len(COLUMNS) + 1)} | **no two moments** |"
    share = abs(grown.residual_bytes) / max(1, abs(grown.resident_bytes))
    cells = " | ".join(numbers(grown))
    return f"| `{row.name}` | {cells} | {share:.1%} | {'yes' if row.closes else '**no**'} |"


def main(names: list[str]) -> int:
    """Prints the page of some programs, or of all.

    Returns:
        0 when all is explained; 1 when it is not; 2 for a name that is none.
    Raises:
        ProgramFailed: a program could not be recorded.
    """
    known = programs()
    for name in names:
        if name not in known:
            sys.stderr.write(
                f"tlmem: there is no program '{name}'; these are: {', '.join(known)}.\n"
            )
            return 2
    rows = [record(name, path) for name, path in known.items() if not names or name in names]
    sys.stdout.write(page(rows))
    return 0 if all(row.closes for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
