"""Texts that every format of a fleet's page has: counts, who is in a group, the next command.

Covers: plain text. Does not cover: how a page looks; see ``text``, ``markdown`` and ``html``.
"""

from __future__ import annotations

import shlex
from collections.abc import Sequence

from tlmem.fleets.comparing import FleetAnalysis, Group, Spread
from tlmem.fleets.digest import Digest
from tlmem.units import format_bytes, format_count

MOST_NAMED = 12
"""Names, or ranges of ranks, that a list of processes has."""
LARGEST_Z = 1000
MOST_WORDS = 3
"""A command with more files than this is not repeated; the file of the worst process is named."""


def counts(found: FleetAnalysis) -> str:
    """``64 processes on 4 nodes: 1 leak, 63 stable``."""
    count = len(found.processes)
    nodes = f" on {found.nodes} nodes" if found.nodes > 1 else ""
    each = ", ".join(f"{format_count(n)} {outcome}" for outcome, n in found.verdicts.items())
    return f"{processes(count)}{nodes}: {each}"


def processes(count: int) -> str:
    """``1 process``, ``64 processes``."""
    return f"{format_count(count)} process{'' if count == 1 else 'es'}"


def unreadable(found: FleetAnalysis) -> str:
    """How many recordings are missing from the page; empty when none is."""
    missing = len(found.unreadable)
    if not missing:
        return ""
    of = len(found.processes) + missing
    return f"{format_count(missing)} of {format_count(of)} recordings cannot be read."


def members(group: Sequence[Digest]) -> str:
    """``ranks 0–36, 38–63``; processes without a rank by their short names."""
    ranks = sorted({one.rank for one in group if one.rank is not None})
    unique = len(ranks) == sum(one.rank is not None for one in group)
    ranges: list[list[int]] = []
    for rank in ranks if unique else ():
        if ranges and rank == ranges[-1][1] + 1:
            ranges[-1][1] = rank
        else:
            ranges.append([rank, rank])
    named = [str(a) if a == b else f"{a}\N{EN DASH}{b}" for a, b in ranges]
    others = [one.identity.short for one in group if one.rank is None or not unique]
    shown = named[:MOST_NAMED]
    text = f"rank{'' if named == [str(ranks[0])] else 's'} {', '.join(shown)}" if shown else ""
    left = len(named) - len(shown) + max(0, len(others) - MOST_NAMED + len(shown))
    some = others[: MOST_NAMED - len(shown)]
    text = ", ".join([*([text] if text else []), *some])
    return text + (f" and {format_count(left)} more" if left else "")


def z_of(z: float) -> str:
    """A robust z; beyond any that can be compared only how far that is."""
    return f"{z:.1f}" if z < LARGEST_Z else f"> {LARGEST_Z:,}"


def title(group: Group) -> str:
    """``leak at ranks.py:12 in step: 16 processes``."""
    where = ""
    if group.line and group.place:
        where = f" at {group.line.file}:{group.line.line} in {group.line.function}"
    return f"{group.outcome}{where}: {processes(len(group.processes))}"


def rows(found: FleetAnalysis, group: Group) -> list[tuple[str, Spread]]:
    """What is compared within a group, by name. Growth of what does not grow is left out."""
    grows = group.processes[0].grows or group.outcome == "cannot-judge"
    growth = f"growth per {found.step or 's'}"
    all_rows = [
        (growth, group.growth if grows else None),
        ("kept by the line", group.alive if group.line else None),
        (found.peak_name, group.peak),
    ]
    return [(name, spread) for name, spread in all_rows if spread is not None]


def commands(found: FleetAnalysis, paths: Sequence[str]) -> list[tuple[str, str]]:
    """What to run next, and what that shows."""
    worst = found.worst
    word = selector(found, worst)
    few = len(paths) <= MOST_WORDS and word
    files = shlex.join(paths)
    one = f"{files} --process {shlex.quote(word)}" if few else shlex.quote(worst.path)
    listed = [(f"tlmem report {one}", f"{worst.name} in full")]
    if len(paths) <= MOST_WORDS:
        listed.append((f"tlmem tui {files}", "memory of every process over time"))
    return listed


def selector(found: FleetAnalysis, process: Digest) -> str:
    """What ``--process`` takes for a process: its rank, worker or process id; empty: none of them
    is its alone."""
    for word in (process.rank, process.worker, process.pid):
        if word not in (None, "") and found.find(str(word)) == [process]:
            return str(word)
    return ""


def value(amount: float) -> str:
    """Bytes, with a sign where they shrink."""
    return format_bytes(amount)
