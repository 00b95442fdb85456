"""Part ``holders``: CPU time of snapshots of who holds what, with PyTorch and 300,000 objects."""

from __future__ import annotations

import importlib.util
import statistics

from benchmarks.measuring import PROGRAMS, Settings, run_for_json, tool
from benchmarks.pages import Section, table

SNAPSHOTS, SECONDS, LEAST_SECONDS = 20, 20, 2


def measure(settings: Settings) -> Section:
    """Snapshots in a recorded process: those that are asked for, but for the first; then its own.

    ``scale`` is of the number of objects that the program adds PyTorch's own to, and of the time
    in which the recorder takes its own.
    """
    section = Section("holders")
    if not importlib.util.find_spec("torch"):
        section.blocks.append("PyTorch is not installed: pip install 'tlmem[torch]' brings it.")
        return section
    rows: list[list[str]] = []
    medians: dict[str, list[float]] = {"asked": [], "own": []}
    for turn in range(settings.rounds):
        command = [*tool("tlmem"), "record", "-q", "-f", "-o", str(settings.folder / "own.tlm")]
        program = [str(PROGRAMS / "holders.py"), str(SNAPSHOTS + 1)]
        program += [str(max(LEAST_SECONDS, SECONDS * settings.scale)), str(settings.scale)]
        found = run_for_json([*command, *program], settings.folder)
        cells = [f"process {turn + 1}", f"{found['tracked']:,}", f"{found['met']:,}"]
        for way, taken in (("own", found["own"]), ("asked", found["asked"][1:])):
            medians[way].append(statistics.median(taken))
            cells += [str(len(taken))] if way == "own" else []
            cells += [f"{value:.1f}" for value in (medians[way][-1], min(taken), max(taken))]
        settings.show(f"holders, process {turn + 1}: {medians['own'][-1]:.1f} ms")
        rows.append(cells)
    section.values["holders, own"] = statistics.median(medians["own"])
    section.values["holders, asked"] = statistics.median(medians["asked"])
    section.blocks += [
        "CPU ms of a snapshot in its thread. *Own* ones the recorder takes by itself, in "
        f"{SECONDS} s in which the program keeps a tensor each millisecond: they end when most of "
        "its memory was found, and now and then one counts the objects of each type. Those that "
        f"are asked for, {SNAPSHOTS} in each process, look through everything and count each time. "
        "A model with its optimizer, and records of the program's own; most objects are PyTorch's.",
        table(
            ["", "tracked", "met", "own", "median", "least", "most"]
            + ["asked: median", "least", "most"],
            rows,
        ),
    ]
    return section
