"""A decision as Markdown: for the step summary of a job, or a comment on a pull request.

Covers: a table of budgets, reasons, and the numbers of the memory plot at some moments.
"""

from __future__ import annotations

import numpy as np

from tlmem.gate.decision import (
    EXIT_PASS,
    OVER,
    PASS,
    UNKNOWN,
    UNSURE,
    BudgetResult,
    Checked,
    Result,
)
from tlmem.gate.growth_rates import curve_of, tracked_at
from tlmem.gate.inputs import Judged
from tlmem.gate.outputs import text
from tlmem.gate.outputs.locations import name_of, path_of, relative
from tlmem.gate.outputs.text import conclusion
from tlmem.report.markdown import code, fitted, words
from tlmem.report.text import is_said
from tlmem.units import format_bytes, format_count, format_seconds

WORDS = {PASS: "pass", OVER: "**over**", UNSURE: "within noise", UNKNOWN: "**not judged**"}
MOMENTS = 11
"""The plot's numbers are given at so many moments, evenly through the run."""
SHADES = "▁▂▃▄▅▆▇█"


def render(checked: Checked) -> str:
    """All programs, each under its own heading."""
    if checked.is_fleet:
        return fitted(fleet(checked))
    blocks = [program(result) for result in checked.results]
    blocks += [f"### {words(str(f.path))}\n\n{words(f.sentence)}" for f in checked.unreadable]
    return "\n\n".join(blocks) + "\n"


def fleet(checked: Checked) -> list[str]:
    """How many processes passed, and each that did not."""
    counts, *_ = text.fleet(checked)
    failed = [result for result in checked.results if result.exit_code != EXIT_PASS]
    blocks = [f"### Memory of {words(counts)}", *(program(result) for result in failed)]
    return blocks + [f"### {words(str(f.path))}\n\n{words(f.sentence)}" for f in checked.unreadable]


def program(result: Result) -> str:
    """One program."""
    name = f"{name_of(result)}, {result.process}" if result.process else name_of(result)
    lines = [f"### Memory of {words(name)}", "", f"**{conclusion(result)}**", ""]
    lines += ["| budget | measured | limit | |", "|---|---|---|---|"]
    lines += [
        f"| {words(row.name)} | {words(row.measured)} | {words(row.limit)} | {WORDS[row.state]} |"
        for row in result.rows
    ]
    for row in result.rows:
        if row.state != PASS:
            lines += ["", *_told(row)]
    lines += [f"\nRefused: {words(doubt.sentence)}" for doubt in result.refused]
    lines += [f"\nAllowed ({doubt.kind}): {words(doubt.sentence)}" for doubt in result.allowed]
    for used in result.used:
        known = f"{code(used.suppression.pattern)} ({words(used.suppression.origin)})"
        amount = f"{format_count(used.objects)} objects, {format_bytes(used.bytes)}"
        lines.append(
            f"\nSuppressed by {known}: {amount}." if used.findings else f"\nUnused: {known}"
        )
    lines += [f"\n{words(note)}" for note in result.notes]
    lines += ["", *curves(result.subject.processes[0])] if result.subject.processes else []
    lines.append("")
    lines.append(f"Recording: {code(path_of(result))}")
    return "\n".join(lines)


def _told(row: BudgetResult) -> list[str]:
    """Why a row did not pass, with the lines to blame."""
    lines = [words(row.sentence)]
    for finding in [f for f in row.findings if f.site][:3]:
        assert finding.site is not None
        place = f"{relative(finding.site.file)}:{finding.site.line}"
        lines.append(f"- {code(place)} in {code(finding.site.function)}")
        if not is_said(finding, row.sentence):
            lines[-1] += f": {words(finding.evidence)}"
    return lines


def curves(judged: Judged) -> list[str]:
    """What the memory plot shows, as numbers."""
    lives = judged.lives
    moments = np.linspace(lives.work_begin_ns, lives.judged_ns, MOMENTS).astype(np.int64)
    columns = {"arrays and tensors": tracked_at(lives, moments, "bytes")}
    for name in ("resident", "native", "python"):
        curve = curve_of(judged, name, "bytes")
        if len(curve.values):
            columns[name] = np.interp(moments, curve.time_ns, curve.values)
    lines = ["<details><summary>Memory over time</summary>", ""]
    lines += [f"| time | {' | '.join(columns)} |", "|---:" * (1 + len(columns)) + "|"]
    for number, moment in enumerate(moments.tolist()):
        cells = [format_bytes(values[number]) for values in columns.values()]
        seconds = format_seconds(max(0.0, (moment - lives.begin_ns) / 1e9))
        lines.append(f"| {seconds} | {' | '.join(cells)} |")
    lines.append(f"| | {' | '.join(_shades(values) for values in columns.values())} |")
    return [*lines, "", "</details>"]


def _shades(values: np.ndarray) -> str:
    """The shape of a curve, from its lowest to its highest value."""
    low, wide = float(values.min()), float(np.ptp(values))
    if not wide:
        return SHADES[0] * len(values)
    return "".join(SHADES[int((value - low) / wide * (len(SHADES) - 1) + 0.5)] for value in values)
