"""Leaks by who owns what: ``over-retained``, ``floating``, ``field-forgotten``,
``view-pins-base``, ``scope-not-left``, ``cache-only-grows``.

Covers: growing lines whose survivors have one kind of holder. Does not cover: tapes
(``tapes``), pools (``pools``). See also: docs/findings/, a page for each class.
"""

from __future__ import annotations

import numpy as np
import pandas as pd

from tlmem.analysis.holders.survivors import Survivors
from tlmem.analysis.leaks.python_objects import container_named, views_reach, what_views_use
from tlmem.analysis.lifetimes import NEVER
from tlmem.analysis.model import Finding
from tlmem.analysis.places import place
from tlmem.analysis.rules import RULES
from tlmem.events import HolderKind, Kind
from tlmem.units import format_count

YOUNG_SHARE = 0.1
"""Objects that died younger than this share of the usual survivor's age were never kept."""
FEW_LET_GO = 0.02
"""With fewer objects let go than this share of the survivors, what keeps them only grows."""


def over_retained(line: Survivors) -> Finding | None:
    """A count that a named holder acquired and did not release, while the other holders did."""
    if not line.held_only_by(HolderKind.FOREIGN):
        return None
    floating = line.before["kind"] == int(HolderKind.FLOATING)
    if not line.nearly_all(line.before[~floating]):
        return None
    taken, given = acquires_at(line, HolderKind.FOREIGN)
    return line.finding(
        "over-retained",
        f"{line.noun} are held only by {line.holder_names}, which acquired "
        f"{format_count(taken)} at {line.taken_at} and released {format_count(given)}; all other "
        "holders have released them.",
    )


def acquires_at(line: Survivors, kind: HolderKind) -> tuple[int, int]:
    """How often objects were acquired at the line of most survivors, and how many were released."""
    ledger, judged_ns = line.recording.holders, line.judged_ns
    ledger = ledger[(ledger["kind"] == int(kind)) & (ledger["begin_ns"] <= judged_ns)]
    held = line.now[line.now["kind"] == int(kind)]
    lines, counts = np.unique(lines_of(line, held), return_counts=True)
    same = ledger[lines_of(line, ledger) == lines[np.argmax(counts)]]
    ended = (same["end_ns"] >= 0) & (same["end_ns"] <= judged_ns)
    return len(same), int(ended.sum())


def lines_of(line: Survivors, rows: pd.DataFrame) -> np.ndarray:
    """The blamed line at which each row of the ledger began, as a number."""
    group_of = line.places.group_of_site
    site = rows["begin_site"].to_numpy(np.int64)
    return group_of[np.where(site < len(group_of), site, 0)]


def floating(line: Survivors) -> Finding | None:
    """Objects without a holder: promoted or unregistered and not registered again, or never."""
    if not line.held_only_by(HolderKind.FLOATING):
        return None
    given_up = line.before[line.before["ended_by"].isin([int(Kind.PROMOTE), int(Kind.UNREGISTER)])]
    if line.nearly_all(given_up):
        why = f"they were promoted or unregistered at {line.taken_at} and not acquired again"
    else:
        why = "most of them were never acquired"
    return line.finding("floating", f"{line.noun} have no holder: {why}, so nothing frees them.")


def field_forgotten(line: Survivors) -> Finding | None:
    """Objects that only fields of structs hold: whoever used the structs has left them alive."""
    if not line.held_only_by(HolderKind.FIELD):
        return None
    return line.finding(
        "field-forgotten",
        f"{line.noun} are held only by {line.holder_names}, set at {line.taken_at}: a struct "
        "that is not released keeps its fields.",
    )


def scope_not_left(line: Survivors) -> Finding | None:
    """Objects of scopes, or frames of functions, that are still entered."""
    scopes = (HolderKind.SCOPE, HolderKind.FRAME)
    if not line.held_only_by(*scopes, HolderKind.VIEW):
        return None
    held = line.now[line.now["kind"].isin([int(kind) for kind in scopes])]
    if not line.nearly_all(held):
        return None
    table = line.recording.scopes
    table = table[table.index.isin(held["number"])]
    if not len(table):
        return None
    sites, counts = np.unique(table["enter_site"].to_numpy(np.int64), return_counts=True)
    entered = place(line.places.blamed_frame(int(sites[np.argmax(counts)])))
    name = line.holder_names.partition(" and ")[0]
    return line.finding(
        "scope-not-left",
        f"{line.noun} are held by {name}, "
        + (
            f"entered at {entered} and not left: what is registered in it stays until it ends."
            if len(table) == 1
            else f"of which {format_count(len(table))} were entered, most at {entered}, and never "
            "left."
        ),
    )


def view_pins_base(line: Survivors) -> Finding | None:
    """Objects that only views into them hold."""
    if not line.held_only_by(HolderKind.VIEW):
        return None
    views = line.now[line.now["kind"] == int(HolderKind.VIEW)]
    used = what_views_use([chain for chain in line.chains if chain.view])
    return line.finding(
        "view-pins-base",
        f"{line.noun} are held only by views, {format_count(len(views))} of them, created at "
        f"{line.taken_at}: {used}{'; ' if used else ''}each view keeps its whole object alive.",
    )


def cache_only_grows(line: Survivors) -> Finding | None:
    """What is kept once is kept for ever: a list, a dict, a cache, or objects in a cycle."""
    if line.growth.manner == "joined":
        return joined_anew(line)
    arrays = not line.lives.runtime[line.rows].any()
    python = (HolderKind.HANDLE, HolderKind.EXPORT, HolderKind.REGISTRY)
    views = line.held_only_by(*python, HolderKind.VIEW) and views_reach(line)
    if not (arrays or views or line.held_only_by(*python)):
        return None
    container, share = container_named(line)
    is_one = share >= RULES.majority
    releases = lets_go(line)
    if releases and not (container and is_one and items_seen(line) >= RULES.fewest_survivors):
        return None
    names = line.holder_names.replace("handle", "their Python handles")
    names = names.replace("and view", "and views") if views else names
    who = "Python objects" if arrays else f"{names}, acquired at {line.taken_at}"
    if container:
        who = container if arrays else f"{who}, in {container}"
        what = "it only grows" if is_one else "they only grow"
    else:
        what = "a list, dict or cache that only grows, or a reference cycle that is not collected"
    is_part = arrays and RULES.majority <= share < RULES.nearly_all
    part = f", {100 * share:.0f}% of them" if is_part else ""
    kept = f"{line.noun} are kept{part} by {who}"
    if releases:
        return line.finding(
            "cache-only-grows",
            f"{kept}. Others of this line that had been kept for a while were released, but the "
            "number that is kept grows.",
        )
    return line.finding(
        "cache-only-grows",
        f"{kept}, and none that was kept for a while was released: {what}.",
    )


def joined_anew(line: Survivors) -> Finding:
    """One array, or a few, with all that ever came, made anew each time that more comes."""
    verb = "is" if line.growth.survivors == 1 else "are"
    kept = f" {verb} kept by {line.holders[0].name}:" if line.holders else f" {verb}"
    return line.finding(
        "cache-only-grows",
        f"{line.noun}{kept} the last of {format_count(line.growth.made)}, each the one before "
        "joined with what came. Nothing is ever left out of it: it only grows.",
    )


def items_seen(line: Survivors) -> int:
    """How many items the container had that holds most survivors; 0 where it is none."""
    largest = max(line.chains, key=lambda chain: chain.arrays)
    return largest.items


def lets_go(line: Survivors) -> bool:
    """Whether objects of the line that had been kept for a time were let go of after all."""
    lives, judged_ns = line.lives, line.judged_ns
    rows = np.flatnonzero((lives.group == line.growth.group) & (lives.born <= judged_ns))
    rows = rows[line.growth.is_of(lives, rows)]
    usual = float(np.median(judged_ns - lives.born[line.rows])) if len(line.rows) else 0.0
    dead = rows[(lives.died[rows] != NEVER) & (lives.died[rows] <= judged_ns)]
    old = np.count_nonzero(lives.died[dead] - lives.born[dead] > YOUNG_SHARE * usual)
    return bool(old > FEW_LET_GO * len(line.rows))


OWNERSHIP = (
    over_retained,
    floating,
    field_forgotten,
    view_pins_base,
    scope_not_left,
    cache_only_grows,
)
