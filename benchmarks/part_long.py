"""Part ``long``: what commands need for 10, 50 and 200 million events, and memray for as many.

The first report of a recording makes sums of it, which the second one finds. Quoted is CPU time,
user and system, as it is nearly the same on a machine that does other work.
"""

from __future__ import annotations

import os
from pathlib import Path

from benchmarks.measuring import PROGRAMS, Run, Settings, interleave, run, spread, tool
from benchmarks.pages import Section, table

SIZES = (1, 5, 20)
"""Of ``ten_million.py``."""
COMMANDS = ("report", "peak", "plan", "stats")
LONGEST = ("report",)
"""Commands of the largest size, as each takes a minute."""
AGAIN = ("report", "check", "stats")
KEPT = "TLMEM_LONG_RECORDINGS"
"""A folder in which recordings are found, and left, as those of 200 million take minutes."""
LEAST_ITEMS = 128
"""Of an array beside memray: 1 kB, as NumPy hands out smaller ones again by itself."""


def measure(settings: Settings) -> Section:
    """Records the sizes where they are not there, and reads each as if for the first time."""
    folder = Path(os.environ.get(KEPT, settings.folder))
    rows = []
    values: dict[str, float] = {}
    for size in SIZES:
        path = folder / f"long_{size}.tlm"
        if not path.exists():
            settings.show(f"recording {10 * size * settings.scale:g} million events")
            program = [PROGRAMS / "ten_million.py", str(size * settings.scale)]
            run([*tool("tlmem"), "record", "-q", "-f", "-o", path, *program], settings.folder)
        rows.append(_row(settings, size, path, values))
    section = Section("long")
    section.blocks = [
        "CPU s and peak MB of a command that finds no sums; *again* after the first report.",
        table(
            ["million events", "file, MB", *COMMANDS, *(f"{name} again" for name in AGAIN)],
            rows,
        ),
        "Beside memray: ten million events of arrays of 1 kB and more, by turns. CPU s, peak MB.",
        table(["command", "CPU s", "peak MB", "file, MB"], _beside_memray(settings)),
    ]
    if settings.scale >= 1:
        section.values = values
    return section


def _row(settings: Settings, size: int, path: Path, values: dict[str, float]) -> list[str]:
    first: dict[str, Run] = {}
    again: dict[str, Run] = {}
    for name in LONGEST if size == SIZES[-1] else COMMANDS:
        Path(f"{path}.sums").unlink(missing_ok=True)
        first[name] = _read(settings, name, path)
        if name == "report":
            again = {each: _read(settings, each, path) for each in AGAIN}
    values[f"long {size}"] = first["report"].cpu_s
    values[f"long {size} peak"] = max(done.peak_bytes for done in first.values()) / 1e6
    values[f"long {size} again"] = again["report"].cpu_s
    return [
        f"{10 * size * settings.scale:g}",
        f"{path.stat().st_size / 1e6:.1f}",
        *(_text(first[name]) if name in first else "" for name in COMMANDS),
        *(_text(done) for done in again.values()),
    ]


def _read(settings: Settings, name: str, path: Path) -> Run:
    budget = ["--budget", "peak=1TB"] if name == "check" else []
    out = [] if name == "check" else ["-o", settings.folder / "out.txt"]
    done = run([*tool("tlmem"), name, path, *budget, *out], settings.folder)
    settings.show(f"{name} of {path.name}: {_text(done)}")
    return done


def _text(done: Run) -> str:
    return f"{done.cpu_s:.1f}, {done.peak_bytes / 1e6:.0f}"


def _beside_memray(settings: Settings) -> list[list[str]]:
    """Recording and reading the same program by both, in turns."""
    folder = settings.folder
    ours, theirs = folder / "beside.tlm", folder / "beside.bin"
    program = [str(PROGRAMS / "ten_million.py"), str(settings.scale), str(LEAST_ITEMS)]

    def report(name: str) -> Run:
        Path(f"{ours}.sums").unlink(missing_ok=True)
        return run([*tool("tlmem"), name, ours, "-o", folder / "out.txt"], folder)

    def theirs_read(name: str) -> Run:
        out = ["-f", "-o", folder / "out.html"] if name == "flamegraph" else []
        return run([*tool("memray"), name, *out, theirs], folder)

    cases = {
        "tlmem record -q": lambda: run(
            [*tool("tlmem"), "record", "-q", "-f", "-o", ours, *program], folder
        ),
        "memray run": lambda: run(
            [*tool("memray"), "run", "-q", "-f", "-o", theirs, *program], folder
        ),
        "tlmem report": lambda: report("report"),
        "memray flamegraph": lambda: theirs_read("flamegraph"),
        "tlmem stats": lambda: report("stats"),
        "memray stats": lambda: theirs_read("stats"),
    }
    times = max(1, settings.rounds // 3)
    found = interleave(cases, dict.fromkeys(cases, times), settings.show)
    files = {"tlmem record -q": ours, "memray run": theirs}
    rows = []
    for name, runs in found.items():
        cpu, peak = spread(runs, "cpu_s"), spread(runs, "peak_bytes")
        size = f"{files[name].stat().st_size / 1e6:.1f}" if name in files else ""
        rows.append(
            [
                f"`{name}`",
                f"{cpu.median:.1f} ({cpu.least:.1f} to {cpu.most:.1f})",
                f"{peak.median / 1e6:.0f}",
                size,
            ]
        )
    return rows
