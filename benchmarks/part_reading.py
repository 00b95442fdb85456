"""Part ``reading``: seconds and memory to open ten million events and find what there is."""

from __future__ import annotations

import sys

from benchmarks.measuring import PROGRAMS, Settings, Spread, run, run_for_json, spread, tool
from benchmarks.pages import Section, table

STEPS = {
    "open_s": "open the file",
    "tables_s": "build every table",
    "findings_s": "verdict and findings",
}


def measure(settings: Settings) -> Section:
    """Records ten million events once, then reads them in fresh processes."""
    folder = settings.folder
    path = folder / "ten_million.tlm"
    program = [str(PROGRAMS / "ten_million.py"), str(settings.scale)]
    settings.show("recording ten million events")
    run([*tool("tlmem"), "record", "-q", "-f", "-o", str(path), *program], folder)
    times = max(1, settings.rounds // 2)
    found, reports = [], []
    for _ in range(times):
        settings.show("reading them")
        found.append(run_for_json([sys.executable, PROGRAMS / "opening.py", path], folder))
        reports.append(run([*tool("tlmem"), "report", str(path)], folder))
    rows = [
        [text, _spread([one[step] for one in found])]
        for step, text in {**STEPS, "imports_s": "imports, not in the sum"}.items()
    ]
    totals = [sum(one[step] for step in STEPS) for one in found]
    rows.insert(len(STEPS), ["together", _spread(totals)])
    rows.append(["`tlmem report` as a whole", _spread([done.wall_s for done in reports])])
    peak = Spread.of([one["peak_bytes"] for one in found]).median
    report_peak = spread(reports, "peak_bytes").median
    events, size = found[0]["events"], path.stat().st_size
    path.unlink()
    section = Section("reading")
    section.blocks = [
        f"{events / 1e6:.2f} million events of two threads, {size / 1e6:.1f} MB "
        f"({size / events:.2f} bytes an event), in a fresh process each time, {times} times. "
        f"Peak memory {peak / 1e9:.2f} GB, of `tlmem report` {report_peak / 1e9:.2f} GB.",
        table(["step", "seconds"], rows),
    ]
    if settings.scale >= 1:
        section.values = {
            "reading": Spread.of(totals).median,
            "reading peak": peak / 1e6,
            "report": spread(reports, "wall_s").median,
        }
    return section


def _spread(values: list[float]) -> str:
    found = Spread.of(values)
    if found.median < 0.01:
        return f"{found.median:.4f}"
    return f"{found.median:.2f} ({found.least:.2f} to {found.most:.2f})"
