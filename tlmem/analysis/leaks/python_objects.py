"""Leaks by Python objects: ``reference-cycle``, and ``view-pins-base`` of arrays.

Covers: growing lines whose survivors snapshots saw. Does not cover: what the ledger shows
(``ownership``). See also: docs/findings/, a page for each class.

What a snapshot saw is said with the time at which it did: it may be from the middle of the run.
"""

from __future__ import annotations

from collections.abc import Sequence

from tlmem.analysis.holders.snapshots import Chain, holders_of, last_look
from tlmem.analysis.holders.survivors import Survivors
from tlmem.analysis.model import Finding
from tlmem.analysis.rules import RULES
from tlmem.events import HolderKind
from tlmem.units import format_bytes, format_count, format_seconds

SMALL_VIEW = 0.5
"""Views that show less than this share of what they keep are small."""
SPEAKS = 0.2
"""Share of the survivors that a snapshot must have seen to name who holds them."""
PYTHON_HOLDERS = (HolderKind.HANDLE, HolderKind.EXPORT)


def reference_cycle(line: Survivors) -> Finding | None:
    """What only objects that refer to each other hold: nothing reaches them, nothing frees them."""
    of_cycles = only_cycles(line)
    if not of_cycles:
        return None
    return line.finding(
        "reference-cycle",
        f"{line.noun} are held only by {holders_of(of_cycles)[0].name} (seen after "
        f"{seen(of_cycles)}). Only Python's garbage collector can free them, and it is off or runs "
        "too rarely.",
    )


def only_cycles(line: Survivors) -> list[Chain]:
    """The cycles that hold nearly all survivors, which nothing else does; none when others do."""
    of_cycles = [chain for chain in line.chains if chain.root == "cycle" and chain.whole]
    last = last_look(line.looks)
    if not python_holds(line) or not nearly_all(line, of_cycles) or (last and last.by_functions):
        return []  # what functions held before became garbage when frames unwound
    return of_cycles


def array_view_pins_base(line: Survivors) -> Finding | None:
    """Arrays of which only views are left that show a small part."""
    of_views = [chain for chain in line.chains if chain.view]
    if line.lives.runtime[line.rows].any() or not nearly_all(line, of_views):
        return None
    used = what_views_use(of_views)
    if not used:
        return None
    return line.finding(
        "view-pins-base",
        f"{line.noun} are held only by views, kept by {holders_of(of_views)[0].name}: {used}; each "
        "view keeps its whole array alive.",
    )


def what_views_use(of_views: Sequence[Chain]) -> str:
    """What small views use of what they hold, in a sentence; empty of views that are not small."""
    used = sum(chain.used_bytes for chain in of_views)
    held = sum(chain.held_bytes for chain in of_views)
    if used >= SMALL_VIEW * held:
        return ""
    return (
        f"the views of {format_count(total(of_views))} of them, seen after {seen(of_views)}, use "
        f"{format_bytes(used)} of {format_bytes(held)}"
    )


def views_reach(line: Survivors) -> bool:
    """Whether nearly all survivors are reached in Python through views of them."""
    return nearly_all(line, [chain for chain in line.chains if chain.view])


def container_named(line: Survivors) -> tuple[str, float]:
    """Who holds most survivors in Python, in words, and the largest holder's share of them.

    Empty when no snapshot saw enough of the survivors to speak for them. Several holders are meant
    where the share is less than ``RULES.majority``.
    """
    if not line.chains or sum(len(chain.objects) for chain in line.chains) < RULES.fewest_survivors:
        return "", 1.0
    holders, seen_in_all = holders_of(list(line.chains)), total(line.chains)
    if seen_in_all < SPEAKS * line.growth.survivors:
        return "", 1.0
    largest = holders[0]
    share = largest.count / seen_in_all
    if share >= RULES.majority:
        return largest.name, share
    return f"several holders (mixed; the largest is {largest.name}, with {100 * share:.0f}%)", share


def nearly_all(line: Survivors, chains: Sequence[Chain]) -> bool:
    """Whether these are nearly all chains that a snapshot saw, and those most of the survivors."""
    if sum(len(chain.objects) for chain in chains) < RULES.fewest_survivors:
        return False
    seen_in_all = total(line.chains)
    if seen_in_all < RULES.majority * line.growth.survivors:
        return False
    return total(chains) >= RULES.nearly_all * seen_in_all


def total(chains: Sequence[Chain]) -> int:
    """Objects in these chains."""
    return sum(chain.arrays for chain in chains)


def python_holds(line: Survivors) -> bool:
    """Whether only Python holds the survivors: arrays, or objects that handles hold."""
    return not line.lives.runtime[line.rows].any() or line.held_only_by(*PYTHON_HOLDERS)


def seen(chains: Sequence[Chain]) -> str:
    """When the snapshot was taken."""
    return format_seconds(chains[0].time_ns / 1e9)


PYTHON_LEAKS = (reference_cycle, array_view_pins_base)
