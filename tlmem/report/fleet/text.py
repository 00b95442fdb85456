"""A fleet for people: the odd one out first, then counts, groups, outliers, the next command.

Covers: one page of at most 100 columns for any number of processes.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from tlmem.fleets.comparing import FleetAnalysis, Group, Spread
from tlmem.report.fleet import words
from tlmem.report.text import wrap
from tlmem.units import format_bytes

MOST_GROUPS = 12
MOST_OUTLIERS = 10
MOST_UNREADABLE = 10
MISSING = "Recordings that cannot be read"


def render(found: FleetAnalysis, paths: Sequence[str]) -> str:
    """The page, with a line feed at its end.

    Args:
        paths: as the user named them, for the next commands.
    """
    return "\n\n".join(blocks(found, paths)) + "\n"


def blocks(found: FleetAnalysis, paths: Sequence[str]) -> Iterable[str]:
    """What is on the page, from above."""
    yield wrap(found.sentence)
    missing = words.unreadable(found)
    yield words.counts(found) + (f"\n{missing}" if missing else "")
    for group in found.groups[:MOST_GROUPS]:
        yield group_block(found, group)
    if len(found.groups) > MOST_GROUPS:
        rest = found.groups[MOST_GROUPS:]
        count = sum(len(group.processes) for group in rest)
        yield f"and {len(rest)} more groups, {words.processes(count)} (--format json has them)"
    if found.outliers:
        yield outliers_block(found)
    yield "\n".join(
        ["Next steps", *(f"  {line}\n      {what}" for line, what in words.commands(found, paths))]
    )
    if found.unreadable:
        yield unreadable_block(found)


def group_block(found: FleetAnalysis, group: Group) -> str:
    """Alike processes: the line, smallest, median and largest values, and whose the largest is."""
    lines = [words.title(group)]
    if group.line and group.line.source:
        lines.append(f"    {group.line.source}")
    shown = words.rows(found, group)
    if len(group.processes) == 1:
        lines += [f"  {name:<20} {format_bytes(spread.high):>9}" for name, spread in shown]
    elif shown:
        lines.append(f"  {'':<20} {'minimum':>9} {'median':>9} {'maximum':>9}")
        lines += [spread_row(name, spread) for name, spread in shown]
    who = group.processes[0].name if len(group.processes) == 1 else words.members(group.processes)
    return "\n".join([*lines, wrap(who, "  ")])


def spread_row(name: str, spread: Spread) -> str:
    """One row of a group."""
    values = (spread.low, spread.median, spread.high)
    amounts = " ".join(f"{format_bytes(amount):>9}" for amount in values)
    whose = f"  {spread.highest.name}" if spread.high > spread.low else ""
    return f"  {name:<20} {amounts}{whose}"


def outliers_block(found: FleetAnalysis) -> str:
    """Processes unlike the others, a row for each value that is odd."""
    lines = [
        "Outliers, by distance from the median in robust deviations (z)",
        f"  {'z':>7} {'value':>9} {'median':>9}",
    ]
    for each in found.outliers[:MOST_OUTLIERS]:
        amounts = f"{format_bytes(each.value):>9} {format_bytes(each.median):>9}"
        lines.append(f"  {words.z_of(each.z):>7} {amounts}  {each.metric}, {each.process.name}")
    if len(found.outliers) > MOST_OUTLIERS:
        lines.append(f"  and {len(found.outliers) - MOST_OUTLIERS} more")
    return "\n".join(lines)


def unreadable_block(found: FleetAnalysis) -> str:
    """Files that are missing from the page, each with its reason."""
    lines = [MISSING]
    lines += [wrap(each.sentence, "  ") for each in found.unreadable[:MOST_UNREADABLE]]
    if len(found.unreadable) > MOST_UNREADABLE:
        more = len(found.unreadable) - MOST_UNREADABLE
        lines.append(f"  and {more} more (--format json has them)")
    return "\n".join(lines)
