"""The course of a training run: forward, backward, optimizer step, in the order of events.

Covers: runs of events of one phase, passes of the autograd engine, numbers of steps; all from
allocations and frees of PyTorch's blocks. Does not cover: phases of stacks (``phases``).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tlmem.analysis.lifetimes import NEVER
from tlmem.analysis.peak.blocks import Blocks, Ints
from tlmem.analysis.peak.phases import Phase

MAIN_PHASES = (Phase.FORWARD, Phase.BACKWARD, Phase.OPTIMIZER, Phase.ZERO_GRAD)
"""What a training step consists of; ``RECOMPUTED`` and ``SEED`` belong to ``BACKWARD``."""
NOT_OF_THE_COURSE = (Phase.NEVER, Phase.DATA, Phase.CASTS, Phase.LIBRARY)
"""What comes in the midst of any phase, and ends none."""
MOST_OF_A_STEP = 2
"""The last step has at most so many times the backward passes of the steps before it."""


@dataclass(frozen=True)
class Passes:
    """What happened when, by positions in the table of events.

    ``first`` is where each run of one of ``MAIN_PHASES`` begins, ``phase`` its phase; what the
    program does itself in between ends a run. ``opens`` is the first event of the runs of
    the same phase that directly precede each run, or of the run itself. ``outside`` are events
    that are not of a forward pass, ``engine`` the first events of passes of the engine, ``rules``
    events of a backward pass itself, ``users`` events of the program's own code. ``steps`` is where
    each step but the first begins.
    """

    first: Ints
    phase: NDArray[np.int8]
    opens: Ints
    outside: Ints
    engine: Ints
    rules: Ints
    users: Ints
    steps: Ints

    def run_of(self, event: Ints) -> Ints:
        """The number of the run that is under way at each event; -1 before the first."""
        return np.searchsorted(self.first, event, side="right") - 1

    def begun_between(self, born: Ints, died: Ints) -> Ints:
        """How many runs begin after the first and before the second of two events."""
        last = np.searchsorted(self.first, died, side="left")
        return last - np.searchsorted(self.first, born, side="right")

    def next_phase(self, event: Ints) -> NDArray[np.int8]:
        """The phase of the run that begins next, ``zero_grad`` left out; ``NEVER``: none does."""
        kept = self.phase != Phase.ZERO_GRAD
        first = self.first[kept]
        phases = np.append(self.phase[kept], np.int8(Phase.NEVER))
        return phases[np.searchsorted(first, event, side="right")]

    def pass_of(self, event: Ints) -> Ints:
        """The number of the engine's pass that began last; -1 before the first."""
        return np.searchsorted(self.engine, event, side="right") - 1

    def step_of(self, event: int) -> int:
        """The number of the step that is under way, from 1."""
        return 1 + int(np.searchsorted(self.steps, event, side="right"))

    @property
    def is_training(self) -> bool:
        """Whether there is a backward pass."""
        return len(self.engine) > 0

    @property
    def count(self) -> int:
        """How many steps there are."""
        return 1 + len(self.steps)


def passes_of(blocks: Blocks) -> Passes:
    """The course of a recording, from the blocks of PyTorch in it."""
    torch = blocks.torch & (blocks.born >= blocks.begin)
    dead = blocks.torch & (blocks.died < NEVER)
    length = len(blocks.time_ns)
    phase = np.full(length, Phase.NEVER, np.int8)
    within = np.zeros(length, bool)
    phase[blocks.born[torch]] = blocks.born_phase[torch]
    within[blocks.born[torch]] = blocks.born_in_backward[torch]
    phase[blocks.died[dead]] = blocks.died_phase[dead]
    within[blocks.died[dead]] = blocks.died_in_backward[dead]
    at = np.flatnonzero(~np.isin(phase, NOT_OF_THE_COURSE))
    phase, within = phase[at], within[at]
    rules = at[phase == Phase.BACKWARD]
    phase[(phase == Phase.RECOMPUTED) | (phase == Phase.SEED)] = Phase.BACKWARD
    main = np.isin(phase, MAIN_PHASES)
    rows, kinds = at[main], phase[main]
    changes = np.diff(kinds, prepend=np.int8(-2)) != 0
    apart = np.diff(np.cumsum(phase == Phase.USER)[main], prepend=0) > 0
    begins = np.flatnonzero(changes | apart)
    opens = rows[np.flatnonzero(changes)[np.cumsum(changes)[begins] - 1]]
    entered = within & ~np.concatenate(([False], within[:-1]))
    first, kinds = rows[begins], kinds[begins]
    return Passes(
        first=first,
        phase=kinds,
        opens=opens,
        outside=at[(phase != Phase.FORWARD) & (phase != Phase.INIT)],
        engine=at[entered],
        rules=rules,
        users=at[phase == Phase.USER],
        steps=_steps(first, kinds, opens, at[entered], is_whole=blocks.sealed),
    )


def _steps(first: Ints, phase: NDArray[np.int8], opens: Ints, engine: Ints, is_whole: bool) -> Ints:
    """Where steps begin: with the forward pass that follows an optimizer, or ``zero_grad``.

    Or with the one before a ``zero_grad`` that is called between forward and backward. An optimizer
    that works in place leaves no event, and a ``zero_grad`` may have nothing to free: of the two
    the one that is seen more often counts. With neither, a forward pass after a backward pass
    begins a step; without modules, each backward pass but the first. Each step has a backward pass,
    but for the last one of a process that was killed: ``is_whole`` says that none was.
    """
    by_optimizer = _after(first, phase, Phase.OPTIMIZER)
    zero = np.flatnonzero(phase == Phase.ZERO_GRAD)
    zero = zero[zero > 0]
    between = zero[phase[zero - 1] == Phase.FORWARD]
    before = opens[between - 1]
    before = before[before > first.min(initial=NEVER)]
    others = phase.copy()
    others[between] = Phase.NEVER
    by_zero = np.unique(np.concatenate((before, _after(first, others, Phase.ZERO_GRAD))))
    best = max((by_optimizer, by_zero), key=len)
    # One that has made its state in the first steps may leave no event in all others.
    ended = np.searchsorted(engine, best[-1:]).sum()
    if len(engine) - ended > MOST_OF_A_STEP * max(1, ended / max(1, len(best))):
        best = _after(first, phase, Phase.BACKWARD)
    return _with_backward(best, engine, is_whole) if (phase == Phase.FORWARD).any() else engine[1:]


def _with_backward(begins: Ints, engine: Ints, is_whole: bool) -> Ints:
    """The begins of steps that have a backward pass, as the step before the first of them has.

    An evaluation does not count as a step, nor does what an optimizer allocates when it is made.
    """
    before = np.searchsorted(engine, begins)
    passed, first = np.unique(before, return_index=True)
    return begins[first[(passed > 0) & ((passed < len(engine)) | (not is_whole))]]


def _after(first: Ints, phase: NDArray[np.int8], kind: Phase) -> Ints:
    """The first forward run after each run of a kind."""
    forward = np.flatnonzero(phase == Phase.FORWARD)
    following = np.searchsorted(forward, np.flatnonzero(phase == kind))
    found = np.unique(following[following < len(forward)])
    return first[forward[found]]
