"""Which growing lines may only fill a container that has a bound.

An ``lru_cache`` with a ``maxsize``, or a ``deque`` with a ``maxlen``, that is not full before most
of the run is over grows like one that has no bound. Snapshots tell the bound. They tell one way to
an array, though: whether something else keeps it as well shows when the container lets go of it. So
such a line is neither a leak nor healthy.

Covers: growing lines whose survivors snapshots saw in such a container, and in no other that may
have ever more items. Does not cover: bounds that a program keeps itself, by taking items out.
"""

from __future__ import annotations

from tlmem.analysis.holders.snapshots import Chain, holders_of
from tlmem.analysis.holders.survivors import Survivors
from tlmem.analysis.leaks.python_objects import python_holds, seen, total
from tlmem.analysis.model import Finding
from tlmem.analysis.rules import RULES
from tlmem.units import format_bytes


def fills_a_bound(line: Survivors) -> bool:
    """Whether nearly all survivors are in containers that can take no, or few, more of them."""
    bounded = in_bounds(line)
    if not bounded or not python_holds(line):
        return False
    if sum(len(chain.objects) for chain in bounded) < RULES.fewest_survivors:
        return False
    seen_in_all, count = total(line.chains), line.growth.survivors
    if total(bounded) < RULES.all_but_few * seen_in_all or seen_in_all < RULES.majority * count:
        return False
    return count <= RULES.slack * sum(chain.arrays * room(chain) for chain in bounded)


def in_bounds(line: Survivors) -> list[Chain]:
    """The chains through a container with a bound of which it has reached a good part."""
    return [
        chain
        for chain in line.chains
        if chain.most
        and chain.items >= RULES.filled * chain.most
        and chain.arrays <= RULES.most_of_an_item * chain.items
    ]


def room(chain: Chain) -> float:
    """How many times what is in it the container may have."""
    return max(1.0, chain.most / max(1, chain.items))


def bounded_finding(line: Survivors) -> Finding:
    """What is said of such a line: why it cannot be judged, and how large it may become."""
    bounded = in_bounds(line)
    whole = round(sum(chain.held_bytes * room(chain) for chain in bounded))
    return line.finding(
        "bounded-cache",
        f"{line.noun} are kept by {holders_of(bounded)[0].name} (seen after {seen(bounded)}), "
        "which has a maximum size and is not full. Until it is, it grows like a leak; full, it "
        f"holds about {format_bytes(whole)}.",
        severity="info",
    )
