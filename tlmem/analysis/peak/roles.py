"""What each block of memory is for: weights, gradients, activations and others.

Covers: the role of every block, from what the program was doing when it allocated the block, when
it freed it, and what came between. Does not cover: phases of stacks (``phases``); names of tensors
from snapshots, which come in as ``names`` and have the last word.

| allocated, freed | forward | backward | zero_grad, later | optimizer | never |
|---|---|---|---|---|---|
| while a module is made | temporary | temporary | weights | weights | weights |
| forward | temporary | activations | kept by Python | kept by Python | kept by Python |
| backward | gradients | temporary; later: activations | gradients | gradients | gradients |
| forward within backward | temporary | recomputed | kept by Python | kept | kept |
| optimizer | optimizer state | optimizer state | state | temporary | optimizer state |
| data loader | inputs | inputs | inputs or kept | inputs | inputs |
| program's own code | inputs | activations | inputs or kept | temporary | inputs or kept |
| for cuBLAS | workspaces | workspaces | workspaces | workspaces | workspaces |

*Temporary* means in the same pass: what a later forward pass frees was kept by Python meanwhile.
Of blocks that are older than the trace of a snapshot it is unknown where they were allocated.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import IntEnum

import numpy as np
from numpy.typing import NDArray

from tlmem.analysis.lifetimes import NEVER
from tlmem.analysis.peak.blocks import Blocks, Curve, Ints, Mask, numbers_in
from tlmem.analysis.peak.passes import Passes
from tlmem.analysis.peak.phases import Phase
from tlmem.events import FIRST_RUNTIME_DEVICE, Device

FEWEST_RELEASED = 3
"""Blocks that one statement frees together, at least, when it lets a graph go."""
FEWEST_PLACES = 4
"""Lines and call paths, at least, that allocated these, where none is known to be of a graph."""
LEAST_SHARE_OF_PLACES = 0.25
"""Of the lines and call paths of a forward pass so many keep something that backward will need; a
cache of keys and values is filled at few of them."""
MOST_STATES = 2
"""Blocks that an optimizer keeps for each weight."""
FEWEST_WEIGHTS = 3
"""Weights of a model, at least, whose states the program may keep itself: fewer sizes may agree
with those of anything."""
FEWEST_REPLACED = 3
"""Steps, at least, in which a line replaced a block for each of them."""
LONGEST_INPUT_STEPS = 2
"""An input that the program makes while it trains is gone after so many more steps."""
LONGEST_INPUT_RUNS = 10
"""One that it makes for a model that it does not train, after so many more runs of its modules."""
LONGEST_LOADED_STEPS = 10
"""A batch of a data loader, after so many more steps: some are loaded ahead."""


class Role(IntEnum):
    """What a block is for, in the order of reports."""

    WEIGHTS = 0
    GRADIENTS = 1
    OPTIMIZER_STATE = 2
    ACTIVATIONS = 3
    RECOMPUTED = 4
    TEMPORARIES = 5
    INPUTS = 6
    KEPT = 7
    WORKSPACES = 8
    NUMPY = 9
    OBJECTS = 10


NAMES = {
    Role.WEIGHTS: "weights",
    Role.GRADIENTS: "gradients",
    Role.OPTIMIZER_STATE: "optimizer state",
    Role.ACTIVATIONS: "activations",
    Role.RECOMPUTED: "recomputed",
    Role.TEMPORARIES: "temporaries",
    Role.INPUTS: "inputs",
    Role.KEPT: "kept by Python",
    Role.WORKSPACES: "workspaces",
    Role.NUMPY: "NumPy arrays",
    Role.OBJECTS: "objects",
}

Roles = NDArray[np.int8]
_OF_THE_PROGRAM = (Phase.USER, Phase.INIT, Phase.COPY, Phase.DATA)
_OPEN = (Role.INPUTS, Role.KEPT, Role.WEIGHTS, Role.TEMPORARIES)
_OF_A_STEP = (Phase.FORWARD, Phase.BACKWARD, Phase.RECOMPUTED, Phase.OPTIMIZER)


@dataclass(frozen=True)
class Named:
    """What a snapshot knows of a block: its role, and who holds it, in words.

    ``path`` leads to a module that the block is in, from the class of a model on, as far as it is
    known; ``root`` tells this model from others of its class. Both are empty where no module is
    known.
    """

    role: Role
    name: str = ""
    path: tuple[str, ...] = ()
    root: str = ""


def roles_of(blocks: Blocks, passes: Passes, names: Mapping[int, Named] | None = None) -> Roles:
    """The role of each block.

    Args:
        names: of objects, by their numbers; what they say overrides what follows from phases.
    """
    role = np.full(len(blocks), Role.KEPT, np.int8)
    role[blocks.device == Device.NUMPY] = Role.NUMPY
    role[(blocks.device >= FIRST_RUNTIME_DEVICE) | (blocks.device == Device.PROBE)] = Role.OBJECTS
    for made, decide in _DECIDE.items():
        rows = np.flatnonzero(blocks.torch & (blocks.born_phase == made))
        if len(rows):
            role[rows] = decide(_Lives(blocks, passes, rows))
    _graphs_let_go(role, blocks, passes)
    _seen_before(role, blocks, passes)
    _of_the_open_pass(role, blocks, passes)
    _replaced_in_a_step(role, blocks)
    is_named = np.zeros(len(blocks), bool)
    places = numbers_in(blocks, list(names or ()))
    for place, named in zip(places.tolist(), (names or {}).values(), strict=True):
        if place >= 0:
            role[place], is_named[place] = named.role, True
    _weights_of_the_program(role, blocks, passes, ~is_named)
    _state_of_the_program(role, blocks, passes, ~is_named)
    _state_before_the_trace(role, blocks, passes)
    return role


class _Lives:
    """The ends of some blocks, and what came between."""

    def __init__(self, blocks: Blocks, passes: Passes, rows: Ints) -> None:
        self.passes, self.begin = passes, blocks.begin
        self.born, self.died = blocks.born[rows], blocks.died[rows]
        self.ended = blocks.died_phase[rows]
        self.in_backward = blocks.died_in_backward[rows]
        self.from_backward = blocks.born_in_backward[rows]
        self.never = self.ended == Phase.NEVER
        self.runs = passes.begun_between(self.born, self.died)
        self.next = passes.next_phase(self.born)

    def ended_in(self, *phases: Phase) -> Mask:
        return np.isin(self.ended, phases)

    @property
    def same_run(self) -> Mask:
        return self.passes.run_of(self.born) == self.passes.run_of(self.died)

    @property
    def steps(self) -> Ints:
        """How many steps begin during each life."""
        last = np.searchsorted(self.passes.steps, self.died, side="left")
        return last - np.searchsorted(self.passes.steps, self.born, side="right")

    @property
    def early(self) -> Mask:
        """Which ones were seen being made before the first forward or backward pass."""
        first = self.passes.first[self.passes.first >= self.begin]
        return (self.born >= self.begin) & (self.born < (first[0] if len(first) else NEVER))

    def chosen(self, otherwise: Role, *cases: tuple[Mask, Role]) -> Roles:
        """The role of the first case that holds for each."""
        role = np.full(len(self.born), otherwise, np.int8)
        for mask, of_case in reversed(cases):
            role[mask] = of_case
        return role


def _init(lives: _Lives) -> Roles:
    within = lives.ended_in(Phase.FORWARD, Phase.BACKWARD, Phase.RECOMPUTED) & (lives.steps <= 1)
    brief = ~lives.never & ((lives.runs == 0) | within)
    return lives.chosen(Role.WEIGHTS, (brief, Role.TEMPORARIES))


def _copied(lives: _Lives) -> Roles:
    brief = ~lives.never & (lives.runs == 0)
    return lives.chosen(Role.KEPT, (brief, Role.TEMPORARIES))


def _data(lives: _Lives) -> Roles:
    brief = lives.ended_in(Phase.DATA) & (lives.runs == 0)
    long = lives.steps > LONGEST_LOADED_STEPS
    return lives.chosen(Role.INPUTS, (brief, Role.TEMPORARIES), (long, Role.KEPT))


def _forward(lives: _Lives) -> Roles:
    outside = lives.passes.outside
    left = np.searchsorted(outside, lives.died, "left") - np.searchsorted(outside, lives.born)
    return lives.chosen(
        Role.KEPT,
        (lives.in_backward & ~lives.never, Role.ACTIVATIONS),
        (lives.ended_in(Phase.FORWARD) & (left == 0), Role.TEMPORARIES),
        (lives.ended_in(Phase.INIT, Phase.CASTS), Role.TEMPORARIES),
        (lives.ended_in(Phase.USER) & (lives.runs == 0), Role.TEMPORARIES),
    )


def _backward(lives: _Lives) -> Roles:
    same = lives.passes.pass_of(lives.born) == lives.passes.pass_of(lives.died)
    return lives.chosen(
        Role.GRADIENTS,
        (lives.never, Role.GRADIENTS),
        (lives.in_backward & same, Role.TEMPORARIES),
        (lives.in_backward, Role.ACTIVATIONS),
    )


def _recomputed(lives: _Lives) -> Roles:
    rules = lives.passes.rules
    used = np.searchsorted(rules, lives.died, "left") > np.searchsorted(rules, lives.born)
    return lives.chosen(
        Role.KEPT,
        (lives.ended_in(Phase.RECOMPUTED) & ~used, Role.TEMPORARIES),
        (lives.in_backward & ~lives.never, Role.RECOMPUTED),
    )


def _optimizer(lives: _Lives) -> Roles:
    brief = lives.ended_in(Phase.OPTIMIZER) & lives.same_run
    after = lives.ended_in(Phase.USER) & (lives.runs == 0)
    # The loss in a closure that the optimizer calls, unless a backward pass called the optimizer.
    saved = lives.ended_in(Phase.BACKWARD, Phase.RECOMPUTED) & ~lives.from_backward
    return lives.chosen(
        Role.OPTIMIZER_STATE, (brief | after, Role.TEMPORARIES), (saved, Role.ACTIVATIONS)
    )


def _passing(lives: _Lives) -> Roles:
    return lives.chosen(Role.TEMPORARIES)


def _seed(lives: _Lives) -> Roles:
    later = lives.passes.pass_of(lives.born) != lives.passes.pass_of(lives.died)
    return lives.chosen(
        Role.TEMPORARIES, (lives.in_backward & ~lives.never & later, Role.ACTIVATIONS)
    )


def _for_cublas(lives: _Lives) -> Roles:
    return lives.chosen(Role.WORKSPACES)


def _buckets(lives: _Lives) -> Roles:
    brief = ~lives.never & (lives.runs == 0)
    return lives.chosen(Role.GRADIENTS, (brief, Role.TEMPORARIES))


def _users(lives: _Lives) -> Roles:
    feeds = lives.next == Phase.FORWARD
    long = (lives.steps > LONGEST_INPUT_STEPS) | lives.never
    if not len(lives.passes.steps):
        long |= lives.runs > LONGEST_INPUT_RUNS
    if len(lives.passes.first) == 0:
        return lives.chosen(Role.KEPT)
    return lives.chosen(
        Role.KEPT,
        (lives.in_backward & ~lives.never, Role.ACTIVATIONS),
        (lives.ended_in(Phase.ZERO_GRAD), Role.GRADIENTS),
        (lives.ended_in(*_OF_THE_PROGRAM) & (lives.runs == 0), Role.TEMPORARIES),
        (lives.ended_in(Phase.OPTIMIZER), Role.TEMPORARIES),
        (lives.early, Role.INPUTS),
        (feeds & ~long, Role.INPUTS),
    )


_DECIDE = {
    Phase.USER: _users,
    Phase.INIT: _init,
    Phase.COPY: _copied,
    Phase.DATA: _data,
    Phase.FORWARD: _forward,
    Phase.BACKWARD: _backward,
    Phase.RECOMPUTED: _recomputed,
    Phase.OPTIMIZER: _optimizer,
    Phase.ZERO_GRAD: _passing,
    Phase.SEED: _seed,
    Phase.BUCKETS: _buckets,
    Phase.LIBRARY: _for_cublas,
}


def _graphs_let_go(role: Roles, blocks: Blocks, passes: Passes) -> None:
    """Finds activations that no backward pass freed: the program let go of their graph.

    One statement then frees many blocks of a forward pass, one directly after the other.
    """
    passing = blocks.torch & (blocks.died < NEVER)
    rows = np.flatnonzero(passing)
    if len(rows) == 0:
        return
    born = np.flatnonzero(blocks.torch & (blocks.born >= 0))
    at = np.concatenate((blocks.died[rows], blocks.born[born]))
    thread = np.concatenate((blocks.died_thread[rows], blocks.born_thread[born]))
    site = np.concatenate((blocks.died_site[rows], np.full(len(born), -1)))
    block = np.concatenate((rows, np.full(len(born), -1)))
    order = np.lexsort((at, thread))
    site, thread, block = site[order], thread[order], block[order]
    fresh = (site[1:] != site[:-1]) | (thread[1:] != thread[:-1])
    group = np.concatenate(([0], np.cumsum(fresh)))[block >= 0]
    freed = block[block >= 0]
    ended = np.isin(blocks.died_phase[freed], (Phase.USER, Phase.FORWARD))
    ended &= np.isin(role[freed], (Role.KEPT, Role.TEMPORARIES, Role.INPUTS))
    made = blocks.born_phase[freed]
    group, freed, made = group[ended], freed[ended], made[ended]
    # What the program made itself belongs to it when it is younger than the first of the pass.
    start = np.full(int(group.max(initial=0)) + 1, NEVER)
    of_pass = made == Phase.FORWARD
    np.minimum.at(start, group[of_pass], blocks.born[freed[of_pass]])
    ended = of_pass | ((made == Phase.USER) & (blocks.born[freed] > start[group]))
    group, freed = group[ended], freed[ended]
    groups = int(group.max(initial=0)) + 1
    # The last one is the root, which the program held: its graph goes before its own memory.
    last = np.full(groups, -1)
    np.maximum.at(last, group, blocks.died[freed])
    inner = blocks.died[freed] < last[group]
    group, freed = group[inner], freed[inner]
    together = np.bincount(group, minlength=groups)
    # Pairs as one number each: rows of several are sorted while no other thread may run.
    sites = int(blocks.born_site.max(initial=0)) + 1
    pairs = np.unique(group * sites + blocks.born_site[freed].clip(min=0))
    places = np.bincount(pairs // sites, minlength=groups)
    # Layers of one list share their stack: of these the size tells which one it was.
    saved = np.flatnonzero(role == Role.ACTIVATIONS)
    _, size = np.unique(blocks.size, return_inverse=True)
    kind = (size * sites + blocks.born_site.clip(min=0))[np.concatenate((saved, freed))]
    of_graphs = np.isin(kind[len(saved) :], kind[: len(saved)])
    known = np.bincount(group, weights=of_graphs, minlength=groups)
    whole = (together >= FEWEST_RELEASED) & ((places >= FEWEST_PLACES) | (2 * known > together))
    # A forward pass frees its own temporaries one after the other, too: a graph outlives the pass.
    outlived = passes.begun_between(blocks.born[freed], blocks.died[freed]) > 0
    outside = np.searchsorted(passes.users, blocks.died[freed], "left")
    outlived |= outside > np.searchsorted(passes.users, blocks.born[freed])
    role[freed[whole[group] & outlived]] = Role.ACTIVATIONS


def _seen_before(role: Roles, blocks: Blocks, passes: Passes) -> None:
    """Of what is alive because the recording ends: the role that it had in earlier steps.

    A program ends with the inputs of its last step; a process may be killed within a step.
    """
    if len(passes.first) == 0:
        return
    open_end = blocks.torch & (blocks.died == NEVER) & (blocks.born >= 0)
    late = passes.steps[-2] if len(passes.steps) > 1 else passes.first[0]
    if not len(passes.steps):
        late = passes.first[-LONGEST_INPUT_RUNS:][0]
    chosen = open_end & (blocks.born_phase == Phase.USER) & (blocks.born > late)
    if not blocks.sealed:
        begin = passes.steps[-1] if len(passes.steps) else passes.first[0]
        chosen |= open_end & (blocks.born >= begin) & np.isin(blocks.born_phase, _OF_A_STEP)
    rows = np.flatnonzero(chosen)
    if len(rows) == 0:
        return
    ended = np.flatnonzero(blocks.torch & (blocks.died < NEVER))
    wanted, place = np.unique(blocks.born_site[rows], return_inverse=True)
    at = np.searchsorted(wanted, blocks.born_site[ended]).clip(max=len(wanted) - 1)
    mine = wanted[at] == blocks.born_site[ended]
    bytes_of = np.bincount(
        at[mine] * len(Role) + role[ended[mine]],
        weights=blocks.size[ended[mine]],
        minlength=len(wanted) * len(Role),
    ).reshape(len(wanted), len(Role))
    found = bytes_of.sum(axis=1)[place] > 0
    role[rows[found]] = bytes_of.argmax(axis=1)[place[found]]
    # Of a first pass that never came to its end, what it has is taken for what it saves.
    unknown = ~found & (blocks.born_phase[rows] == Phase.FORWARD)
    role[rows[unknown]] = Role.ACTIVATIONS


def _of_the_open_pass(role: Roles, blocks: Blocks, passes: Passes) -> None:
    """Finds activations of a forward pass whose backward pass a snapshot came before."""
    if not blocks.snapshot or len(passes.phase) == 0 or passes.phase[-1] != Phase.FORWARD:
        return
    mine = blocks.torch & (blocks.born >= passes.opens[-1]) & (blocks.born_phase == Phase.FORWARD)
    kept = mine & (blocks.died == NEVER) & (role == Role.KEPT)
    places = len(np.unique(blocks.born_site[kept]))
    if places >= max(FEWEST_PLACES, LEAST_SHARE_OF_PLACES * len(np.unique(blocks.born_site[mine]))):
        role[kept] = Role.ACTIVATIONS


def _replaced_in_a_step(role: Roles, blocks: Blocks) -> None:
    """Finds states that are older than the trace: an optimizer frees them as it makes new ones."""
    old = blocks.torch & (blocks.born < blocks.begin)
    freed = old & (role == Role.TEMPORARIES) & (blocks.died_phase == Phase.OPTIMIZER)
    if freed.any():
        made = np.unique(blocks.asked[role == Role.OPTIMIZER_STATE])
        role[freed & np.isin(blocks.asked, made)] = Role.OPTIMIZER_STATE


def _state_before_the_trace(role: Roles, blocks: Blocks, passes: Passes) -> None:
    """Finds states that were made before the trace and are changed in place: no event tells.

    They are as many of each size as there are weights of it, or twice as many, and all are left.
    """
    old = blocks.torch & (blocks.born < blocks.begin)
    if not old.any() or not (passes.phase == Phase.OPTIMIZER).any():
        return
    if (role == Role.OPTIMIZER_STATE).any():
        return
    for memory in np.unique(blocks.memory[old]).tolist():
        mine = old & (blocks.memory == memory)
        weights = mine & (role == Role.WEIGHTS)
        sizes, needed = np.unique(blocks.asked[weights], return_counts=True)
        rest = mine & (role == Role.KEPT) & (blocks.died == NEVER) & np.isin(blocks.asked, sizes)
        have_sizes, have = np.unique(blocks.asked[rest], return_counts=True)
        if len(sizes) < FEWEST_WEIGHTS or not np.array_equal(sizes, have_sizes):
            continue
        if any(np.array_equal(have, needed * each) for each in range(1, MOST_STATES + 1)):
            role[rest] = Role.OPTIMIZER_STATE


def _weights_of_the_program(role: Roles, blocks: Blocks, passes: Passes, among: Mask) -> None:
    """Finds weights that no module made, as ``torch.randn(..., requires_grad=True)``.

    Each gradient belongs to a weight of its size. Where there are more gradients of a size than
    weights, the oldest blocks of that size which live on are the missing ones.
    """
    made = np.isin(blocks.born_phase, (Phase.USER, Phase.COPY))
    there = among & blocks.torch & made & np.isin(role, (Role.INPUTS, Role.KEPT))
    there &= blocks.died > (int(passes.first[-1]) if len(passes.first) else 0)
    for memory in np.unique(blocks.memory[role == Role.GRADIENTS]).tolist():
        _weights_in_memory(role, blocks, blocks.memory == memory, there)


def _weights_in_memory(role: Roles, blocks: Blocks, mine: Mask, there: Mask) -> None:
    """The same in one memory: a replica of the model has weights and gradients of its own."""
    gradients = np.flatnonzero(mine & (role == Role.GRADIENTS))
    curve = Curve.of(blocks.size[gradients], blocks.born[gradients], blocks.died[gradients])
    moment = curve.highest[1]
    alive = mine & blocks.alive(moment)
    sizes, needed = np.unique(blocks.asked[alive & (role == Role.GRADIENTS)], return_counts=True)
    have_sizes, have = np.unique(blocks.asked[alive & (role == Role.WEIGHTS)], return_counts=True)
    counted = dict(zip(have_sizes.tolist(), have.tolist(), strict=True))
    there = alive & there & (blocks.born < moment)
    rows = np.flatnonzero(there & np.isin(blocks.asked, sizes))
    rows = rows[np.argsort(blocks.born[rows], kind="stable")]
    for size, count in zip(sizes.tolist(), needed.tolist(), strict=True):
        missing = count - counted.get(size, 0)
        if missing > 0:
            role[rows[blocks.asked[rows] == size][:missing]] = Role.WEIGHTS


def _state_of_the_program(role: Roles, blocks: Blocks, passes: Passes, among: Mask) -> None:
    """Finds momentum and averages of weights that the program keeps itself, one for each weight.

    Certain are those that one line replaces after each backward pass, as
    ``velocity[p] = 0.9 * velocity[p] + p.grad`` does: optimizer state, as are the ones that it
    replaces first. What is changed in place leaves no event: where a line made, before training
    began, a block for each gradient, of its size, and all of them live on, they are not inputs but
    kept by Python.
    """
    sizes = _sizes_of_gradients(role, blocks)
    if len(sizes) < FEWEST_WEIGHTS or not len(passes.steps):
        return
    open_role = blocks.torch & among & np.isin(role, _OPEN)
    own = np.isin(blocks.born_phase, (Phase.USER, Phase.COPY)) & np.isin(blocks.asked, sizes)
    there = open_role & own
    born_step = np.searchsorted(passes.steps, blocks.born, side="right")
    died_step = np.searchsorted(passes.steps, blocks.died, side="left")
    lasts = (blocks.died == NEVER) | (died_step > born_step)
    first = passes.first[0] if len(passes.first) else NEVER
    after_backward = np.zeros(len(blocks), bool)
    run = passes.run_of(blocks.born)
    before = run >= 0
    after_backward[before] = np.isin(passes.phase[run[before]], (Phase.BACKWARD, Phase.OPTIMIZER))
    for site in np.unique(blocks.born_site[there & lasts & after_backward]).tolist():
        mine = np.flatnonzero(there & lasts & after_backward & (blocks.born_site == site))
        steps, counts = np.unique(born_step[mine], return_counts=True)
        # The last ones go when the program lets go of all of them.
        ended = (blocks.died[mine] < NEVER) & (born_step[mine] < steps[-1])
        ends = np.unique(blocks.died_site[mine[ended]])
        at_once = (died_step[mine] == born_step[mine] + 1)[ended]
        whole = [
            number
            for number, count in zip(steps.tolist(), counts.tolist(), strict=True)
            if count == len(sizes)
            and np.array_equal(np.sort(blocks.asked[mine[born_step[mine] == number]]), sizes)
        ]
        if len(whole) < max(FEWEST_REPLACED, len(steps) - 1):
            continue
        if len(ends) != 1 or not at_once.all():
            continue
        role[mine] = Role.OPTIMIZER_STATE
        early = there & (blocks.born < first) & (blocks.died_site == ends[0])
        if np.array_equal(np.sort(blocks.asked[early]), sizes):
            role[early] = Role.OPTIMIZER_STATE
    waiting = there & (blocks.born < first) & (role == Role.INPUTS)
    # The program's own frames end, and with them what they hold, behind the last step.
    waiting &= blocks.died > passes.steps[-1]
    for site in np.unique(blocks.born_site[waiting]).tolist():
        mine = np.flatnonzero(waiting & (blocks.born_site == site))
        if np.array_equal(np.sort(blocks.asked[mine]), sizes):
            role[mine] = Role.KEPT


def _sizes_of_gradients(role: Roles, blocks: Blocks) -> NDArray[np.int64]:
    """Bytes of each gradient when there were most of them, rising."""
    gradients = np.flatnonzero(role == Role.GRADIENTS)
    if len(gradients) == 0:
        return np.zeros(0, np.int64)
    curve = Curve.of(blocks.size[gradients], blocks.born[gradients], blocks.died[gradients])
    alive = blocks.alive(curve.highest[1]) & (role == Role.GRADIENTS)
    return np.sort(blocks.asked[alive].astype(np.int64))
