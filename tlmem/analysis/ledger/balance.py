"""The tree of stacks with what was acquired under each frame, released, and left without a pair.

Covers: pairing by object and holder up to one moment, sums for every frame of every stack, choosing
objects by the line that made them. Does not cover: how a tree looks (``report``).

An object of the runtime, or of a program that sends probes, is taken by each of its holders; one
that is never acquired keeps no holder. An array, whose holders are Python's own, is acquired by its
allocation and released by its free.
"""

from __future__ import annotations

from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from tlmem.analysis.holders.runtime_holders import NOT_KNOWN
from tlmem.analysis.lifetimes import NEVER, lifetimes
from tlmem.analysis.model import StackFrame
from tlmem.analysis.places import Places, place
from tlmem.errors import TlmemError
from tlmem.events import FIRST_RUNTIME_DEVICE, Device, HolderKind
from tlmem.recording.format.symbols import CUT_ROOT, NO_STACK

if TYPE_CHECKING:
    from tlmem.recording.reader import Recording

MOST_HOLDERS = 5
MOST_SUGGESTED = 5
TOP = -1
PYTHON, PROGRAM = "Python", "the program"
"""Who holds what is in no ledger: arrays, whose holders are Python's own; memory of other runtimes
that name no holders."""

_NUMBERED = (HolderKind.SCOPE, HolderKind.FRAME, HolderKind.TAPE)
"""Each of these is a new holder every time; what they have in common is their label or op."""

Ints = NDArray[np.int64]


class NoSuchSite(TlmemError):
    """No object of the recording was made at the line that was asked for."""

    exit_code = 2


@dataclass(frozen=True, slots=True)
class Node:
    """One frame, called from the node above it; sums include all nodes below.

    ``taken`` and ``given_back`` are numbers of acquires and releases, ``unpaired`` those of
    ``taken`` without a release anywhere up to the moment, of ``objects`` different objects with
    ``bytes``.
    ``holders`` are who took what is unpaired exactly here, most first, with how many.
    """

    frame: StackFrame
    taken: int
    given_back: int
    unpaired: int
    objects: int
    bytes: int
    holders: tuple[tuple[str, int], ...]
    children: tuple[Node, ...]


@dataclass(frozen=True)
class Balance:
    """The trees of a recording, most unpaired first.

    ``time_ns`` is the moment up to which was counted; ``at_exit`` says that it is the end of the
    recording. ``site`` is what was asked for, None for everything. Of ``folded_events`` only
    objects that are alive are counted. With ``problems`` (a sentence each) what has no pair may
    only have lost it: the event that gave it back is not in the recording.
    """

    time_ns: int
    at_exit: bool
    site: str | None
    folded_events: int
    problems: tuple[str, ...]
    taken: int
    given_back: int
    unpaired: int
    objects: int
    bytes: int
    roots: tuple[Node, ...]


@dataclass(frozen=True)
class Acquires:
    """One row for each acquire up to the moment: of which object, where, by whom.

    ``end_site`` is -1 for what was not released.
    """

    object: Ints
    site: Ints
    end_site: Ints
    holder: NDArray[np.object_]

    def of(self, chosen: NDArray[np.bool_]) -> Acquires:
        """Those of some rows."""
        return Acquires(
            self.object[chosen], self.site[chosen], self.end_site[chosen], self.holder[chosen]
        )


def balance(recording: Recording, site: str | None = None, at_exit: bool = False) -> Balance:
    """The balance of everything that was taken.

    Args:
        site: count objects only that were made at lines that match; see ``matching``.
        at_exit: up to the end of the recording, after the program's frames have unwound, instead of
            up to the moment at which reports judge the program.
    Raises:
        NoSuchSite: nothing was made at such a line; the message names lines that there are.
    """
    return recording.kept(
        ("balance", site, at_exit), lambda: _balance(recording, site, at_exit), True
    )


def _balance(recording: Recording, site: str | None, at_exit: bool) -> Balance:
    places = Places.of(recording)
    moment = NEVER if at_exit else lifetimes(recording, places).judged_ns
    acquires = acquires_until(recording, moment)
    if site is not None:
        acquires = acquires.of(_made_at(recording, places, acquires, site))
    open_rows = acquires.end_site < 0
    size = recording.objects["size_bytes"]
    distinct = np.unique(acquires.object[open_rows])
    return Balance(
        time_ns=round(recording.seconds * 1e9) if at_exit else moment,
        at_exit=at_exit,
        site=site,
        folded_events=recording.folded_events,
        problems=tuple(recording.problems),
        taken=len(acquires.object),
        given_back=int((~open_rows).sum()),
        unpaired=int(open_rows.sum()),
        objects=len(distinct),
        bytes=int(size.reindex(distinct).fillna(0).sum()),
        roots=_tree(recording, places, acquires),
    )


def acquires_until(recording: Recording, moment: int) -> Acquires:
    """What was acquired up to a moment, and where it was released until then."""
    held, objects = recording.holders, recording.objects
    ended = (held["end_ns"] >= 0) & (held["end_ns"] <= moment)
    # What floated for a while was handed on, not taken.
    taken = (held["begin_ns"] <= moment) & ~((held["kind"] == HolderKind.FLOATING) & ended)
    arrays = objects[~objects.index.isin(held["object"]) & (objects["born_ns"] <= moment)]
    freed = (arrays["died_ns"] >= 0) & (arrays["died_ns"] <= moment)
    held, ended = held[taken], ended[taken]
    name = np.where(held["kind"].isin(_NUMBERED), *_without_and_with_numbers(held["holder"]))
    return Acquires(
        object=np.concatenate([held["object"], arrays.index]).astype(np.int64),
        site=np.concatenate([held["begin_site"], arrays["born_site"]]).astype(np.int64),
        end_site=np.concatenate(
            [
                np.where(ended, held["end_site"].astype(np.int64), -1),
                np.where(freed, arrays["died_site"].astype(np.int64), -1),
            ]
        ),
        holder=np.concatenate([name, _unnamed(arrays)]),
    )


def _without_and_with_numbers(
    holders: pd.Series,
) -> tuple[NDArray[np.object_], NDArray[np.object_]]:
    """Names of holders without their numbers, and as they are; equal names are one object."""
    codes, found = pd.factorize(holders)
    names = np.asarray(found, object)
    once: dict[str, str] = {}
    bare = np.empty(len(names), object)
    for at, name in enumerate(names):
        head, mark, number = name.rpartition(" #")
        short = head if mark and number.isdecimal() else name
        bare[at] = once.setdefault(short, short)
    return bare[codes], names[codes]


def _unnamed(objects: pd.DataFrame) -> NDArray[np.object_]:
    """Who holds objects that are in no ledger; of a runtime's, the first events were folded."""
    device = objects["device"].to_numpy()
    holder = np.full(len(objects), PROGRAM, object)
    holder[np.isin(device, (Device.NUMPY, Device.TORCH))] = PYTHON
    holder[device >= FIRST_RUNTIME_DEVICE] = NOT_KNOWN
    return holder


def matching(frame: StackFrame, pattern: str) -> bool:
    """Whether a line is meant by a pattern.

    ``model.py:30``, ``model.py`` and ``Layer.forward`` mean that line, the lines of that file (the
    end of its path is enough) and those of that function; with ``*`` or ``?`` in it the pattern is
    compared with the whole of ``FILE:LINE`` and of the function.
    """
    path = frame.file.replace("\\", "/")
    line = f"{path}:{frame.line}"
    if "*" in pattern or "?" in pattern:
        return fnmatchcase(line, pattern) or fnmatchcase(frame.function, pattern)
    if not path:
        return False
    end = "/" + pattern.lstrip("/")
    return f"/{line}".endswith(end) or f"/{path}".endswith(end) or frame.function == pattern


def _made_at(
    recording: Recording, places: Places, acquires: Acquires, site: str
) -> NDArray[np.bool_]:
    """Which acquires are of objects made at lines that match."""
    born = recording.objects["born_site"].to_numpy(np.int64)
    born = np.where(born < len(places.group_of_site), born, 0)
    group = places.group_of_site[born]
    meant = np.array([matching(frame, site) for frame in places.frames], bool)
    chosen = recording.objects.index[meant[group] | meant[places.lines[born]]]
    if not len(chosen):
        counts = np.bincount(group, minlength=places.count)
        most = [n for n in np.argsort(-counts).tolist() if counts[n] and places.frames[n].file]
        named = ", ".join(place(places.frames[n]) for n in most[:MOST_SUGGESTED])
        raise NoSuchSite(
            f"nothing in {recording.path} was allocated at '{site}'; "
            + (f"most objects were allocated at {named}." if named else "it has no known line.")
        )
    return np.isin(acquires.object, chosen)


def _tree(recording: Recording, places: Places, acquires: Acquires) -> tuple[Node, ...]:
    """The nodes of the outermost frames, most unpaired first, with all below them."""
    same, parents = _one_for_each_line(recording, places)
    still = acquires.end_site < 0
    site, end_site = (
        # What libraries do for a line is that line's doing.
        same[places.blamed[np.where(of < len(same), of, 0)]]
        for of in (acquires.site, acquires.end_site[~still])
    )
    here = _Open(site[still], acquires.object[still], acquires.holder[still])
    taken, given_back, unpaired = (
        _with_all_below(np.bincount(of, minlength=len(parents)), parents)
        for of in (site, end_site, here.site)
    )
    objects, held = _distinct(here, parents, recording.objects["size_bytes"])
    holders = _holders(here)
    used = np.flatnonzero((taken > 0) | (given_back > 0))
    frames = _frames(recording, used)
    below: dict[int, list[Node]] = {}
    # A site is numbered after its caller, so that all below it are there when it is made.
    for number in used[::-1].tolist():
        node = Node(
            frame=frames[number],
            taken=int(taken[number]),
            given_back=int(given_back[number]),
            unpaired=int(unpaired[number]),
            objects=int(objects[number]),
            bytes=int(held[number]),
            holders=holders.get(number, ()),
            children=_sorted(below.pop(number, [])) if number > CUT_ROOT else (),
        )
        top = number <= CUT_ROOT or not parents[number]
        below.setdefault(TOP if top else int(parents[number]), []).append(node)
    return _sorted(below.get(TOP, []))


@dataclass(frozen=True)
class _Open:
    """Acquires without a pair, at the blamed sites."""

    site: Ints
    object: Ints
    holder: NDArray[np.object_]


def _sorted(nodes: list[Node]) -> tuple[Node, ...]:
    return tuple(sorted(nodes, key=lambda n: (-n.unpaired, -n.bytes, -n.taken, n.frame.line)))


def _one_for_each_line(recording: Recording, places: Places) -> tuple[Ints, Ints]:
    """For each site the first one of the same line and callers, and the caller of that one.

    A line that calls twice has two sites; callers of those sites that begin a stack are 0.
    """
    same = np.arange(len(places.parents))
    same[: CUT_ROOT + 1] = NO_STACK
    parents = np.where(places.parents > CUT_ROOT, places.parents, 0)
    known: dict[tuple[int, int, int], int] = {}
    sites = recording.sites
    rows = zip(*(sites[name].tolist() for name in ("code", "line")), strict=True)
    for site, (code, line) in zip(sites.index.tolist(), rows, strict=True):
        if site > CUT_ROOT:
            parents[site] = same[parents[site]]
            same[site] = known.setdefault((int(parents[site]), code, line), site)
    return same, parents


def _with_all_below(counts: Ints, parents: Ints) -> Ints:
    """Counts of sites, each with those of all sites that it called."""
    sums = counts.astype(np.int64)
    for site in range(len(sums) - 1, CUT_ROOT, -1):
        if sums[site] and parents[site]:
            sums[parents[site]] += sums[site]
    return sums


def _distinct(here: _Open, parents: Ints, size: pd.Series) -> tuple[Ints, Ints]:
    """Different objects under each frame, and their bytes.

    An object counts once at each of its sites and, where two of its stacks meet, once less: summed
    up over everything below, that is once under every frame. Nothing is made for each frame of each
    stack; deep stacks of many objects have a hundred million.
    """
    rows = pd.DataFrame({"site": here.site, "object": here.object}).drop_duplicates()
    site, number = rows["site"].to_numpy(np.int64), rows["object"].to_numpy(np.int64)
    held_by = size.reindex(number).fillna(0).to_numpy(np.int64)
    count, held = np.zeros(len(parents), np.int64), np.zeros(len(parents), np.int64)
    np.add.at(count, site, 1)
    np.add.at(held, site, held_by)
    if rows["object"].duplicated().any():
        tree = _Tree(parents)
        order = np.lexsort((tree.place[site], number))
        site, number, held_by = site[order], number[order], held_by[order]
        again = np.flatnonzero(number[1:] == number[:-1])
        meet = tree.meeting(site[again], site[again + 1])
        again, meet = again[meet > 0], meet[meet > 0]
        np.subtract.at(count, meet, 1)
        np.subtract.at(held, meet, held_by[again])
    return _with_all_below(count, parents), _with_all_below(held, parents)


class _Tree:
    """Where stacks meet; site 0 is above those that begin one.

    ``place`` is each site's in a walk through the tree, each site before those that it called: of
    several sites, neighbours in that order meet wherever any two of them do.
    """

    def __init__(self, parents: Ints) -> None:
        # A site is numbered after its caller.
        above = parents.tolist()
        below, place, depth, jump = ([0] * len(above) for _ in range(4))
        for site in range(len(above) - 1, 0, -1):
            below[above[site]] += below[site] + 1
        for site in range(1, len(above)):
            parent = above[site]
            place[site] = place[parent] + below[parent] - below[site]
            below[parent] -= below[site] + 1
            depth[site] = depth[parent] + 1
            # From a site outwards by ever longer jumps: whoever is searched for is found in about
            # as many steps as the depth has binary digits.
            far = jump[parent]
            even = depth[parent] - depth[far] == depth[far] - depth[jump[far]]
            jump[site] = jump[far] if even else parent
        self.place = np.array(place, np.int64)
        self._parents = parents
        self._depth, self._jump = np.array(depth, np.int64), np.array(jump, np.int64)

    def meeting(self, one: Ints, other: Ints) -> Ints:
        """The innermost frame that two stacks have in common, pair by pair; 0 for none."""
        depth, jump, parents = self._depth, self._jump, self._parents
        one, other = (
            np.where(depth[one] > depth[other], one, other),
            np.where(depth[one] > depth[other], other, one),
        )
        while (deeper := depth[one] > depth[other]).any():
            far = jump[one]
            outwards = np.where(depth[far] >= depth[other], far, parents[one])
            one = np.where(deeper, outwards, one)
        while (apart := one != other).any():
            far = jump[one] != jump[other]
            one, other = (
                np.where(apart, np.where(far, jump[side], parents[side]), side)
                for side in (one, other)
            )
        return one


def _holders(here: _Open) -> dict[int, tuple[tuple[str, int], ...]]:
    """Who took what has no pair, at each blamed site."""
    codes, names = pd.factorize(here.holder, sort=True)
    width = max(len(names), 1)
    pairs, counts = np.unique(here.site * width + codes, return_counts=True)
    order = np.lexsort((pairs, -counts, pairs // width))
    sites, holders = np.divmod(pairs[order], width)
    found: dict[int, tuple[tuple[str, int], ...]] = {}
    starts = np.flatnonzero(np.diff(sites, prepend=-1))
    for start, end in zip(starts.tolist(), [*starts[1:].tolist(), len(sites)], strict=False):
        most = slice(start, min(end, start + MOST_HOLDERS))
        named = zip(holders[most].tolist(), counts[order[most]].tolist(), strict=True)
        found[int(sites[start])] = tuple((str(names[code]), count) for code, count in named)
    return found


def _frames(recording: Recording, sites: Ints) -> dict[int, StackFrame]:
    """The innermost frame of each site."""
    table = recording.sites.loc[sites]
    columns = (table[name].tolist() for name in ("file", "line", "function"))
    return {
        site: StackFrame(str(file), int(line), str(function))
        for site, file, line, function in zip(sites.tolist(), *columns, strict=True)
    }
