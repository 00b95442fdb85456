"""A fleet as a comment on an issue or a pull request: the odd one out, groups, outliers.

Covers: Markdown as GitHub and GitLab show it, cut to the length that they take.
"""

from __future__ import annotations

from collections.abc import Sequence

from tlmem.analysis.model import StackFrame
from tlmem.fleets.comparing import FleetAnalysis, Group, Spread
from tlmem.report.fleet.text import MISSING, MOST_OUTLIERS, MOST_UNREADABLE
from tlmem.report.fleet.words import counts, members, selector, unreadable, z_of
from tlmem.report.markdown import GROWS, SIGNS, cell, code, fitted, place, words
from tlmem.units import format_bytes, format_count

MOST_GROUPS = 30


def render(found: FleetAnalysis, paths: Sequence[str]) -> str:
    """The comment, with a line feed at its end."""
    outcome = next(iter(found.verdicts))
    blocks = [
        f"### {SIGNS.get(outcome, GROWS)} tlmem: {words(counts(found))}",
        words(found.sentence),
        groups_table(found),
    ]
    if found.outliers:
        blocks.append(outliers_table(found))
    if missing := unreadable(found):
        listed = [f"- {words(each.sentence)}" for each in found.unreadable[:MOST_UNREADABLE]]
        blocks.append("\n".join([f"{MISSING}: {words(missing)}", "", *listed]))
    if word := selector(found, found.worst):
        blocks.append(f"*`tlmem report` with `--process` {code(word)} shows it in full.*")
    return fitted(blocks)


def groups_table(found: FleetAnalysis) -> str:
    """A row for each group of alike processes."""
    growth = f"growth per {words(found.step or 's')}"
    lines = [
        f"| verdict | line | processes | {growth} | {found.peak_name} | who |",
        "|---|---|--:|--:|--:|---|",
    ]
    for group in found.groups[:MOST_GROUPS]:
        grows = group.processes[0].grows or group.outcome == "cannot-judge"
        lines.append(
            f"| {group.outcome} | {cell(_place(group))} | {format_count(len(group.processes))} | "
            f"{_range(group.growth if grows else None)} | {_range(group.peak)} | "
            f"{cell(words(_who(group)))} |"
        )
    more = len(found.groups) - MOST_GROUPS
    return "\n".join(lines) + (f"\n\nand {more} more groups" if more > 0 else "")


def outliers_table(found: FleetAnalysis) -> str:
    """Processes unlike the others, a row for each value that is odd."""
    lines = ["| outlier | of | value | median | z |", "|---|---|--:|--:|--:|"]
    for each in found.outliers[:MOST_OUTLIERS]:
        lines.append(
            f"| {cell(words(each.process.name))} | {words(each.metric)} | "
            f"{format_bytes(each.value)} | {format_bytes(each.median)} | {words(z_of(each.z))} |"
        )
    more = len(found.outliers) - MOST_OUTLIERS
    return "\n".join(lines) + (f"\n\nand {more} more" if more > 0 else "")


def _who(group: Group) -> str:
    return group.processes[0].name if len(group.processes) == 1 else members(group.processes)


def _place(group: Group) -> str:
    line = group.line
    return place(StackFrame(line.file, line.line, line.function)) if line else ""


def _range(spread: Spread | None) -> str:
    """``801 kB``, or ``790 kB to 810 kB`` where they differ."""
    if spread is None:
        return ""
    low, high = format_bytes(spread.low), format_bytes(spread.high)
    return high if low == high else f"{low} to {high}"
