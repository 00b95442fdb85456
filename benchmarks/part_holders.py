"""Part ``holders``: CPU time of a snapshot of who holds what, with PyTorch and 300,000 objects."""

from __future__ import annotations

import importlib.util
import statistics

from benchmarks.measuring import PROGRAMS, Settings, run_for_json, tool
from benchmarks.pages import Section, table

SNAPSHOTS = 20


def measure(settings: Settings) -> Section:
    """Snapshots one after the other in a recorded process; the first of each process is left out.

    ``scale`` is of the number of objects that the program adds PyTorch's own to.
    """
    section = Section("holders")
    if not importlib.util.find_spec("torch"):
        section.blocks.append("PyTorch is not installed: pip install 'tlmem[torch]' brings it.")
        return section
    rows, medians = [], []
    for turn in range(settings.rounds):
        command = [*tool("tlmem"), "record", "-q", "-f", "-o", str(settings.folder / "own.tlm")]
        program = [str(PROGRAMS / "holders.py"), str(SNAPSHOTS + 1), str(settings.scale)]
        found = run_for_json([*command, *program], settings.folder)
        taken = found["ms"][1:]
        medians.append(statistics.median(taken))
        settings.show(f"holders, process {turn + 1}: {medians[-1]:.1f} ms")
        cells = [f"{value:.1f}" for value in (medians[-1], min(taken), max(taken))]
        rows.append([f"process {turn + 1}", f"{found['tracked']:,}", f"{found['met']:,}", *cells])
    section.values["holders, snapshot"] = statistics.median(medians)
    section.blocks += [
        f"CPU ms of a snapshot in its thread, {SNAPSHOTS} in each process: a model with its "
        "optimizer, and records of the program's own. Most objects are PyTorch's.",
        table(["", "tracked", "met", "median", "least", "most"], rows),
    ]
    return section
