"""``more-at-a-time``: a line of which more objects are alive all the time, each of them young.

They may be the last outputs of callbacks that are added and never removed, or the states of a
simulation that grows. What they are held by grows in number; whether that is meant is not known.

Covers: what is said of such a line, and hooks, which are a leak. Does not cover: whether a line is
one; see ``growth.hidden_growth.renewed``.
"""

from __future__ import annotations

from tlmem.analysis.holders.survivors import Survivors
from tlmem.analysis.leaks.python_objects import total
from tlmem.analysis.leaks.torch_graphs import is_hooked
from tlmem.analysis.model import Finding
from tlmem.analysis.places import allocated_at
from tlmem.analysis.rules import RULES
from tlmem.units import format_bytes, format_count


def may_be_meant(line: Survivors) -> bool:
    """Whether it is such a line, and not one of hooks: they are called again in each step."""
    if line.growth.manner != "renewed":
        return False
    hooked = [chain for chain in line.chains if is_hooked(chain.steps)]
    return total(hooked) <= RULES.majority * total(line.chains)


def more_at_a_time(line: Survivors) -> Finding:
    """What is said of it."""
    growth, noun = line.growth, line.lives.noun(line.growth.group)
    held = f" They are held by {line.holders[0].name}." if line.holders else ""
    return growth.info(
        "more-at-a-time",
        line.places,
        f"{format_count(growth.survivors)} {noun}s ({format_bytes(growth.bytes)}) allocated "
        f"{allocated_at(line.line)} are alive at the end. Their number grew evenly, although each "
        f"of them is soon freed and in another one's place: what holds them becomes more.{held}",
    )
