"""What would have made the peak lower: the recording replayed with one thing changed.

Covers: modules that are checkpointed, gradients that are cleared before forward, a batch of half
the size. Each is a change of when blocks live, or of how large they are, and the new peak is found
over all events. Does not cover: changes of the program that no replay shows.

A checkpointed module frees what it saved when its forward ends, except its output, keeps its input,
and computes forward again just before its backward. Where the recording leaves a choice, the one
that needs more memory is taken, so that a real run is not higher.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from tlmem.analysis.lifetimes import NEVER
from tlmem.analysis.peak.blocks import Blocks, Curve, Ints, Mask
from tlmem.analysis.peak.modules import Modules, is_index
from tlmem.analysis.peak.passes import Passes
from tlmem.analysis.peak.phases import Phase
from tlmem.analysis.peak.roles import Role, Roles

LEAST_SHARE = 0.02
"""Of the peak: what would lower it by less is not said."""
MOST_PATHS = 2_000
"""Paths with the most activations are looked at."""
MOST_CANDIDATES = 24
"""Modules, or groups of them, with the most activations at the peak are replayed."""
MOST_WORK = 2 * 10**8
"""Gradients times steps; with more, clearing gradients is not replayed."""
CHECKPOINT, CLEAR, BATCH = "checkpoint", "clear-gradients", "smaller-batch"

Path = tuple[str, ...]


@dataclass(frozen=True)
class Lowering:
    """One change: the peak it leads to, in bytes, and the event at which that is reached.

    ``modules`` are those that are checkpointed, each by itself, ``group`` their common path with
    ``*`` in place of the index; both are empty for other changes.
    """

    kind: str
    peak_bytes: int
    event: int
    modules: tuple[Path, ...] = ()
    group: Path = ()


@dataclass(frozen=True)
class Replay:
    """The blocks of one memory, and what is alive of them over time."""

    blocks: Blocks
    passes: Passes
    modules: Modules
    role: Roles
    rows: Ints

    @cached_property
    def curve(self) -> Curve:
        """What was alive."""
        return Curve.of(self.size, self.born, self.died)

    @cached_property
    def born(self) -> Ints:
        return self.blocks.born[self.rows]

    @cached_property
    def died(self) -> Ints:
        return self.blocks.died[self.rows]

    @cached_property
    def size(self) -> Ints:
        return self.blocks.size[self.rows]

    @cached_property
    def roles(self) -> Roles:
        return self.role[self.rows]

    @cached_property
    def path(self) -> Ints:
        return self.modules.path[self.rows]

    @cached_property
    def saved(self) -> Mask:
        """Which blocks a forward pass left for backward, with the path of their module."""
        made = self.blocks.born_phase[self.rows] == Phase.FORWARD
        freed = self.blocks.died_in_backward[self.rows]
        return (self.roles == Role.ACTIVATIONS) & made & freed & (self.path >= 0)

    @cached_property
    def releases(self) -> tuple[Ints, Ints]:
        """Blocks that were saved, in the order in which backward freed them; and these events."""
        rows = np.flatnonzero(self.saved)
        rows = rows[np.argsort(self.died[rows], kind="stable")]
        return rows, self.died[rows]


def lowerings(replay: Replay) -> list[Lowering]:
    """What would have lowered the peak by a share that counts, most first."""
    if not replay.passes.is_training:
        return []
    peak, event = replay.curve.highest
    if peak == 0:
        return []
    found = [*_checkpoints(replay, event), *_cleared(replay), *_half_the_batch(replay)]
    found = [each for each in found if peak - each.peak_bytes >= LEAST_SHARE * peak]
    return sorted(_without_lesser(found), key=lambda each: each.peak_bytes)


def _without_lesser(found: list[Lowering]) -> list[Lowering]:
    """Of the checkpoints the best one, and others that do not overlap with one before them."""
    kept: list[Lowering] = []
    for each in sorted(found, key=lambda each: (each.peak_bytes, len(each.modules))):
        nested = any(_overlap(each.modules, other.modules) for other in kept)
        if not nested:
            kept.append(each)
    return kept


def _overlap(some: Sequence[Path], others: Sequence[Path]) -> bool:
    """Whether a module of one list is, or is in, one of the other list."""
    if not some or not others:
        return False
    length = min(len(some[0]), len(others[0]))
    return not {path[:length] for path in some}.isdisjoint(path[:length] for path in others)


# ---- checkpointing ----


def _checkpoints(replay: Replay, event: int) -> Iterator[Lowering]:
    alive = (replay.born <= event) & (event < replay.died) & replay.saved
    held = np.bincount(
        replay.path[alive], weights=replay.size[alive], minlength=len(replay.modules.paths)
    ).astype(np.float64)
    for group, members in candidates(replay.modules.paths, held, LEAST_SHARE):
        changed = checkpointed(replay, members)
        if changed is not None:
            yield Lowering(CHECKPOINT, *changed.highest, tuple(members), group)


def candidates(
    paths: Sequence[Path], held: NDArray[np.float64], least: float
) -> list[tuple[Path, list[Path]]]:
    """Modules, and groups of modules that differ in an index, with enough activations.

    Args:
        paths: of modules that ran.
        held: bytes of activations of each path, without those below it.
        least: share of all these bytes that a candidate has.
    Returns:
        The path of a group, with ``*`` for the index, or of a module; and its members.
    """
    below: dict[Path, float] = {}
    for place in np.argsort(-held, kind="stable")[:MOST_PATHS].tolist():
        path, size = paths[place], float(held[place])
        for length in range(1, len(path) + 1 if size else 0):
            below[path[:length]] = below.get(path[:length], 0.0) + size
    groups: dict[Path, list[Path]] = {}
    for path in below:
        groups.setdefault(path, []).append(path)
        for place, name in enumerate(path):
            if is_index(name):
                groups.setdefault((*path[:place], "*", *path[place + 1 :]), []).append(path)
    total = held.sum()
    sums = {name: sum(below[path] for path in members) for name, members in groups.items()}
    worth = [
        (name, members)
        for name, members in groups.items()
        if sums[name] >= least * total and (len(members) > 1 or "*" not in name)
    ]
    worth.sort(key=lambda each: -sums[each[0]])
    return worth[:MOST_CANDIDATES]


def checkpointed(replay: Replay, members: Sequence[Path]) -> Curve | None:
    """The curve if each of some modules were checkpointed by itself; None: none of them could.

    Args:
        members: their paths, which are of one length.
    """
    length = len(members[0])
    units = {member: unit for unit, member in enumerate(members)}
    paths = replay.modules.paths
    unit_of_path = np.array([units.get(path[:length], -1) for path in paths], np.int64)
    calls = _calls(replay, unit_of_path)
    if calls is None:
        return None
    call, first, last = calls
    count = len(first)
    saved = np.flatnonzero(replay.saved & (call >= 0))
    of = call[saved]
    # The output stays, as what follows has it for its input: the last block that outlives the call.
    outlives = np.flatnonzero((call >= 0) & (replay.died > last[call]))
    output = np.full(count, -1, np.int64)
    output[call[outlives]] = outlives  # rows are in order of birth: the last one is kept
    again = _begin_again(replay, call, count)
    # Forward runs again after the last event before that.
    at = replay.curve.at
    before = at[(np.searchsorted(at, again, side="left") - 1).clip(min=0)]
    kept = saved == output[of]
    fine = (before[of] > last[of]) & ~kept
    saved, of = saved[fine], of[fine]
    if len(saved) == 0:
        return None
    used = np.zeros(count, bool)
    used[of] = True
    begin, end, size = [last[of] + 1], [again[of]], [-replay.size[saved].astype(np.float64)]
    begin.append(before[used])
    end.append(before[used] + 1)
    size.append(_highest_within(replay, first, last)[used])
    entry, until = _inputs(replay, first, again)
    there = used & (entry >= 0)
    begin.append(until[there])
    end.append(again[there])
    size.append(replay.size[entry[there]].astype(np.float64))
    return replay.curve.changed(np.concatenate(begin), np.concatenate(end), np.concatenate(size))


def _calls(replay: Replay, unit_of_path: Ints) -> tuple[Ints, Ints, Ints] | None:
    """The calls of some modules: that of each block (-1: none), and their first and last events.

    Blocks with a path, in order; a call is a row of them that belong to one module, in one run.
    """
    made = replay.blocks.born_phase[replay.rows] == Phase.FORWARD
    rows = np.flatnonzero(made & (replay.path >= 0) & (replay.born >= 0))
    thread = replay.blocks.born_thread[replay.rows][rows]
    rows = rows[np.lexsort((replay.born[rows], thread))]
    thread = np.sort(thread)
    unit = unit_of_path[replay.path[rows]]
    run = replay.passes.run_of(replay.born[rows])
    if not (unit >= 0).any():
        return None
    fresh = np.ones(len(rows), bool)
    fresh[1:] = (unit[1:] != unit[:-1]) | (run[1:] != run[:-1]) | (thread[1:] != thread[:-1])
    number = np.cumsum(fresh & (unit >= 0)) - 1
    inside = unit >= 0
    count = int(number[-1]) + 1
    call = np.full(len(replay.rows), -1, np.int64)
    call[rows[inside]] = number[inside]
    first, last = np.full(count, NEVER), np.full(count, -1, np.int64)
    np.minimum.at(first, number[inside], replay.born[rows[inside]])
    np.maximum.at(last, number[inside], replay.born[rows[inside]])
    return call, first, last


def _begin_again(replay: Replay, call: Ints, count: int) -> Ints:
    """Where forward would run again for each call: after the release before its first one."""
    rows, at = replay.releases
    of = call[rows]
    mine = of >= 0
    start = np.full(count, NEVER)
    np.minimum.at(start, of[mine], at[mine])
    before = np.searchsorted(at, start, side="left") - 1
    previous = np.where(before >= 0, at[before], -1) + 1
    run = replay.passes.run_of(np.minimum(start, NEVER - 1))
    opens = replay.passes.first[run.clip(min=0)] if len(replay.passes.first) else previous
    return np.where(start < NEVER, np.maximum(previous, opens), -1)


def _highest_within(replay: Replay, first: Ints, last: Ints) -> NDArray[np.float64]:
    """The most that a call had of what it allocated itself, in bytes.

    Calls that overlap, of several threads, share what was allocated meanwhile.
    """
    order = np.argsort(first, kind="stable")
    place = np.searchsorted(first[order], replay.born, side="right") - 1
    mine = np.where(place >= 0, order[place.clip(min=0)], -1)
    mine = np.where((mine >= 0) & (replay.born <= last[mine]), mine, -1)
    rows = np.flatnonzero(mine >= 0)
    freed = rows[replay.died[rows] <= last[mine[rows]]]
    at = np.concatenate((replay.born[rows], replay.died[freed]))
    of = np.concatenate((mine[rows], mine[freed]))
    change = np.concatenate((replay.size[rows], -replay.size[freed]))
    sort = np.lexsort((at, of))
    of, level = of[sort], np.cumsum(change[sort])
    starts = np.flatnonzero(np.diff(of, prepend=-1))
    before = np.where(starts > 0, level[starts - 1], 0)
    highest = np.zeros(len(first))
    if len(starts):
        highest[of[starts]] = np.maximum.reduceat(level, starts) - before
    return highest


def _inputs(replay: Replay, first: Ints, again: Ints) -> tuple[Ints, Ints]:
    """The block that each call was most likely given, if it was freed before forward runs again.

    It is the youngest of a forward pass that was alive when the call began.

    Returns:
        Its row, -1 for none, and where it was freed.
    """
    made = replay.blocks.born_phase[replay.rows] == Phase.FORWARD
    rows = np.flatnonzero(made & (replay.path >= 0))
    born = replay.born[rows]
    order = np.argsort(born, kind="stable")
    rows, born = rows[order], born[order]
    found = np.full(len(first), -1, np.int64)
    place = np.searchsorted(born, first, side="left") - 1
    for _ in range(8):  # the youngest ones are often temporaries that are gone by then
        open_ = np.flatnonzero((found < 0) & (place >= 0))
        if len(open_) == 0:
            break
        row = rows[place[open_]]
        alive = replay.died[row] > first[open_]
        found[open_[alive]] = row[alive]
        place[open_] -= 1
    ends = np.where(found >= 0, replay.died[found.clip(min=0)], NEVER)
    return np.where(ends < again, found, -1), ends


# ---- gradients, batch ----


def _cleared(replay: Replay) -> Iterator[Lowering]:
    """Gradients freed by ``zero_grad`` before forward, or zeroed in place and never freed."""
    passes = replay.passes
    rows = np.flatnonzero((replay.roles == Role.GRADIENTS) & (replay.born >= 0))
    if len(rows) == 0 or len(passes.first) == 0:
        return
    begin, end, size = [], [], []
    born, died = replay.born[rows], replay.died[rows]
    ended = replay.blocks.died_phase[replay.rows[rows]]
    # Freed by zero_grad directly after a forward pass, which did not need them.
    run = passes.run_of(np.minimum(died, NEVER - 1))
    zeroed = (ended == Phase.ZERO_GRAD) & (run > 0)
    before = np.where(zeroed, run - 1, 0)
    early = zeroed & (passes.phase[before] == Phase.FORWARD) & (passes.opens[before] > born)
    begin.append(passes.opens[before[early]])
    end.append(died[early])
    size.append(-replay.size[rows[early]].astype(np.float64))
    # Alive from step to step: needed from where backward has computed them to the optimizer only.
    steps = _between_steps(passes)
    following = np.searchsorted(steps[0], born, side="right")
    opened = np.append(passes.first[steps[1]], NEVER)[following]
    long = np.flatnonzero((following < len(steps[0])) & (died > opened))
    added = _added(replay)
    for opens, backward in (
        zip(*steps, strict=True) if len(long) * len(steps[0]) < MOST_WORK else ()
    ):
        there = long[(born[long] < opens) & (died[long] > passes.first[backward])]
        begin.append(np.full(len(there), opens))
        end.append(_computed(replay, rows[there], added, int(backward)))
        size.append(-replay.size[rows[there]].astype(np.float64))
    if sum(len(each) for each in size) == 0:
        return
    changed = replay.curve.changed(np.concatenate(begin), np.concatenate(end), np.concatenate(size))
    yield Lowering(CLEAR, *changed.highest)


def _between_steps(passes: Passes) -> tuple[Ints, Ints]:
    """The first event of the forward pass after each optimizer, and the run of its backward."""
    optimizer = np.flatnonzero(passes.phase == Phase.OPTIMIZER)
    forward = np.append(np.flatnonzero(passes.phase == Phase.FORWARD), NEVER)
    backward = np.append(np.flatnonzero(passes.phase == Phase.BACKWARD), NEVER)
    one = forward[np.searchsorted(forward, optimizer)]
    other = backward[np.searchsorted(backward, optimizer)]
    follows = np.flatnonzero((one < other) & (other < NEVER))
    # Several optimizers that work one after the other are followed by the same passes.
    one, first = np.unique(one[follows], return_index=True)
    return passes.first[one], other[follows[first]]


def _added(replay: Replay) -> tuple[Ints, Ints]:
    """Temporaries of backward passes, in order of birth, and where they were allocated."""
    made = replay.blocks.born_phase[replay.rows] == Phase.BACKWARD
    rows = np.flatnonzero(made & (replay.roles == Role.TEMPORARIES))
    rows = rows[np.argsort(replay.born[rows], kind="stable")]
    return rows, replay.born[rows]


def _computed(replay: Replay, gradients: Ints, added: tuple[Ints, Ints], run: int) -> Ints:
    """Where a backward pass has computed each gradient that it adds to one that is there.

    What is added is a temporary of the same size, which otherwise would be the gradient itself. Of
    more of them than gradients the first are taken; of fewer, the pass needs the rest from its
    begin.

    Args:
        gradients: rows of them.
        added: as ``_added`` returns them.
        run: the number of the pass among the runs.
    """
    first = replay.passes.first
    opens = int(first[run])
    closes = int(first[run + 1]) if run + 1 < len(first) else NEVER
    between = np.searchsorted(added[1], (opens, closes))
    rows = added[0][between[0] : between[1]]
    rows = rows[np.argsort(replay.size[rows], kind="stable")]
    size, wanted = replay.size[rows], replay.size[gradients]
    order = np.argsort(wanted, kind="stable")
    rank = np.empty(len(wanted), np.int64)
    rank[order] = np.arange(len(wanted)) - np.searchsorted(wanted[order], wanted[order])
    place = np.searchsorted(size, wanted) + rank
    fits = np.flatnonzero(place < np.searchsorted(size, wanted, side="right"))
    computed = np.full(len(wanted), opens)
    computed[fits] = replay.died[rows[place[fits]]]
    return computed


def _half_the_batch(replay: Replay) -> Iterator[Lowering]:
    """What grows with the batch at half its size.

    That are activations, inputs, and temporaries of forward and backward, but for those that are as
    large as a weight, which are of weights.
    """
    roles = replay.roles
    asked = replay.blocks.asked[replay.rows]
    fixed = np.unique(asked[(roles == Role.WEIGHTS) | (roles == Role.GRADIENTS)])
    made = replay.blocks.born_phase[replay.rows]
    passing = (roles == Role.TEMPORARIES) & np.isin(
        made, (Phase.FORWARD, Phase.BACKWARD, Phase.RECOMPUTED)
    )
    passing &= ~np.isin(asked, fixed)
    scales = np.isin(roles, (Role.ACTIVATIONS, Role.RECOMPUTED)) | passing
    scales |= (roles == Role.INPUTS) & (replay.died < NEVER)
    if not (roles == Role.ACTIVATIONS).any():
        return
    rows = np.flatnonzero(scales)
    changed = replay.curve.changed(
        replay.born[rows], replay.died[rows], -(replay.size[rows] // 2).astype(np.float64)
    )
    yield Lowering(BATCH, *changed.highest)
