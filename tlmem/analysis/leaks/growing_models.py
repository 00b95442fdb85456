"""Which growing lines are parts of a PyTorch model that was extended on purpose, a few times.

Progressive growing, adapters for tasks, deeper networks: each extension brings parameters, their
gradients and two or three states of an optimizer, dozens of tensors at one line. What counts is how
often the model was extended, and that training went on between: fewer extensions than
``few_survivors`` are parts of a model, as are fewer tensors. So are more of them, up to
``many_survivors``, where each made the backward pass do more and was trained for a while before the
next one came: what is used and trained is a model. A module for each step is a leak, and so is a
parameter that only an optimizer still has.

Covers: growing lines whose survivors snapshots saw as parameters of modules, their gradients or
states of an optimizer; when they were made. Does not cover: what kind of leak the others are
(``torch_graphs``).
"""

from __future__ import annotations

from collections.abc import Container, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from tlmem.analysis.holders.snapshots import NATIVE, Chain, Step, holders_of, steps_of
from tlmem.analysis.holders.survivors import Survivors, is_torch
from tlmem.analysis.leaks.python_objects import total
from tlmem.analysis.lifetimes import Lifetimes
from tlmem.analysis.model import Finding
from tlmem.analysis.peak.phases import Phase, site_phases
from tlmem.analysis.rules import RULES
from tlmem.units import format_count

if TYPE_CHECKING:
    from tlmem.recording.reader import Recording

CHILDREN, PARAMETERS, BUFFERS = "_modules", "_parameters", "_buffers"
GRADIENT = "grad"
_GROUPS, _STATE = "param_groups", "state"

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]


# ---- what a chain passes


def module_part(steps: Sequence[Step]) -> str:
    """``_parameters`` or ``_buffers``, as which a module has what a chain ends in; else empty."""
    return next((step.edge for step in steps if step.edge in (PARAMETERS, BUFFERS)), "")


def optimizer_at(steps: Sequence[Step]) -> int | None:
    """The position of an optimizer: of what has groups of parameters, or a dict of their states."""
    kinds = [*(step.kind for step in steps), "", ""]
    for at, (step, after) in enumerate(zip(steps, steps[1:], strict=False)):
        if step.kind != "instance":
            continue
        if step.edge == _STATE and after.type.endswith("defaultdict"):
            if kinds[at + 2] == "dict" or "optim" in step.type.lower():
                return at
        if step.edge == _GROUPS and after.kind == "list":
            if kinds[at + 2] == "dict" or "optim" in step.type.lower():
                return at
    return None


def is_gradient(steps: Sequence[Step]) -> bool:
    """Whether a chain ends in the gradient of a tensor."""
    return steps[-1].kind == "instance" and steps[-1].edge == GRADIENT


def is_parameter_of_optimizer(steps: Sequence[Step], own: Container[str] = ()) -> bool:
    """Whether a chain ends in a parameter that an optimizer has, and not in its state or gradient.

    Snapshots look into optimizers last: such a parameter is in no module or variable.

    Args:
        own: the program's own classes of optimizers, whose names need not say it.
    """
    if is_gradient(steps):
        return False
    before = steps[-2] if len(steps) > 1 else steps[-1]
    if before.edge == _STATE and before.type in own and steps[-1].type.endswith("defaultdict"):
        return True
    at = optimizer_at(steps)
    return at is not None and (steps[at].edge == _GROUPS or at + 2 == len(steps))


def parameters_without_module(recording: Recording, at_ns: int) -> tuple[int, int]:
    """How many parameters only an optimizer had at the snapshot of this time, and how many all."""
    table = recording.holdings
    table = table[(table["time_ns"] == at_ns) & (table["root"] != NATIVE)]
    steps = steps_of(recording.holding_steps)
    keys = zip(table["snapshot"].tolist(), table["group"].tolist(), strict=True)
    chains = [(steps.get(key, ()), int(n)) for key, n in zip(keys, table["arrays"], strict=True)]
    places = [(chain, optimizer_at(chain)) for chain, _ in chains]
    own = {chain[at].type for chain, at in places if at is not None}
    lonely = sum(n for chain, n in chains if chain and is_parameter_of_optimizer(chain, own))
    others = sum(
        n
        for chain, n in chains
        if chain and module_part(chain) == PARAMETERS and not is_gradient(chain)
    )
    return lonely, lonely + others


def is_one_of_many(steps: Sequence[Step]) -> bool:
    """Whether the outermost module, or the optimizer, is an item of a list or dict of several."""
    at = optimizer_at(steps)
    if at is None:
        at = next((at for at, step in enumerate(steps) if step.edge in (PARAMETERS, BUFFERS)), 0)
        while at >= 2 and steps[at - 2].edge == CHILDREN:
            at -= 2
    return any(step.kind in ("list", "dict", "tuple") and step.edge == "[]" for step in steps[:at])


# ---- when a model was extended


class Training:
    """The training steps of a recording, from the stacks of its allocations.

    A step begins with the first allocation in a backward pass, or of an optimizer, that follows
    others. Of steps that were folded it is only known how many they were, if each made as many
    objects as later ones.
    """

    def __init__(self, recording: Recording) -> None:
        self._recording = recording
        self._found: tuple[Ints, Floats] | None = None

    def of(self, lives: Lifetimes) -> tuple[Ints, Floats]:
        """When steps began (ns), rising, and what was allocated in each in the backward pass.

        NaN of steps that were folded.
        """
        if self._found is None:
            phase, backward = site_phases(self._recording.sites).of(lives.site)
            known = int(np.searchsorted(lives.born, self._recording.horizon_ns, "right"))
            told = (phase != int(Phase.DATA)) & (np.arange(len(lives)) >= known)
            born, backward = lives.born[told], backward[told]
            training = backward | (phase[told] == int(Phase.OPTIMIZER))
            begins = born[training & ~np.concatenate(([False], training[:-1]))]
            step = np.searchsorted(begins, born[backward], side="right") - 1
            work = np.bincount(step[step >= 0], minlength=len(begins)).astype(np.float64)
            older = folded_steps(lives, known, len(begins))
            self._found = (
                np.concatenate([older, begins]),
                np.concatenate([np.full(len(older), np.nan), work]),
            )
        return self._found


def folded_steps(lives: Lifetimes, known: int, steps: int) -> Ints:
    """About when the steps began that were folded.

    Args:
        known: the first row of ``lives`` that was not folded.
        steps: how many there were from then on.
    """
    if not known or not steps or known == len(lives):
        return np.empty(0, np.int64)
    ordinal = lives.ordinal.astype(np.float64)
    of_a_step = max(1.0, (ordinal[-1] - ordinal[known]) / steps)
    places = np.arange(ordinal[known] - of_a_step, ordinal[0], -of_a_step)[::-1]
    found: Ints = np.interp(places, ordinal, lives.born).astype(np.int64)
    return found


@dataclass(frozen=True)
class Extensions:
    """In how many training steps parts were added to a model, and how many steps there were.

    ``works`` says that the backward pass did more after nearly all of them: the parts are used. Of
    few parts that were all added in folded steps it is believed.
    """

    count: int
    steps: int
    works: bool

    @property
    def are_few(self) -> bool:
        """Whether so many are those of a model that is extended on purpose."""
        if self.count < RULES.few_survivors:
            return self.count <= RULES.majority * self.steps
        are_trained = self.works and self.steps >= RULES.few_survivors * (self.count - 1)
        return are_trained and self.count < RULES.many_survivors


def extensions_of(line: Survivors, training: Training) -> Extensions:
    """When the survivors of a line were made."""
    begins, work = training.of(line.lives)
    rows = line.rows if line.growth.rows is None else line.growth.rows
    step = np.unique(np.searchsorted(begins, line.lives.born[rows], side="right"))
    spans = [work[begin:end] for begin, end in pairwise((0, *step.tolist(), len(work)))]
    seen = [span[~np.isnan(span)] for span in spans]
    usual = [float(np.median(span)) for span in seen if len(span)]
    more = int(np.count_nonzero(np.diff(usual) > 0))
    works = more > 0 and more >= RULES.nearly_all * (len(usual) - 1)
    if line.lives.folded and len(usual) < 2:
        works = len(step) < RULES.few_survivors
    return Extensions(len(step), int(step[-1] - step[0]), works)


def is_of_a_model(chain: Chain) -> bool:
    """Whether a chain ends in a parameter or buffer of a module, its gradient, or a state of it."""
    return bool(module_part(chain.steps)) or (
        optimizer_at(chain.steps) is not None and not is_parameter_of_optimizer(chain.steps)
    )


def is_extended(line: Survivors, training: Training) -> bool:
    """Whether a line's survivors are parts of a model that was extended a few times.

    Models in a list are such parts, too, where each makes a training step do more.
    """
    if not is_torch(line) or line.lives.lost_ns:
        return False
    seen = [chain for chain in line.chains if chain.root != NATIVE]
    of_model = [chain for chain in seen if is_of_a_model(chain)]
    if sum(len(chain.objects) for chain in of_model) < RULES.fewest_survivors:
        return False
    if total(of_model) < RULES.nearly_all * total(seen) or not has_parameters(of_model):
        return False
    lonely, _ = parameters_without_module(line.recording, of_model[0].time_ns)
    if lonely >= RULES.fewest_survivors:
        return False
    found = extensions_of(line, training)
    if not found.are_few:
        return False
    many = total([chain for chain in of_model if is_one_of_many(chain.steps)])
    return found.works or many <= (1 - RULES.nearly_all) * total(of_model)


def has_parameters(chains: Sequence[Chain]) -> bool:
    """Whether these are not buffers alone, in which a program may keep whatever it likes."""
    buffers = [chain for chain in chains if module_part(chain.steps) == BUFFERS]
    return total(buffers) <= RULES.nearly_all * total(chains)


def extended_finding(line: Survivors, training: Training) -> Finding:
    """What is said of such a line."""
    found = extensions_of(line, training)
    return line.finding(
        "growing-model",
        f"{line.noun} are {holders_of(list(line.chains))[0].name}. They were made in "
        f"{format_count(found.count)} of {format_count(found.steps)} training steps: a model that "
        f"is extended now and then, not a leak. From {int(RULES.few_survivors)} times on it is "
        "reported as one, unless each part was trained before the next one came.",
        severity="info",
    )


def extended_findings(recording: Recording, lines: Sequence[Survivors]) -> list[Finding]:
    """What is said of lines that are parts of such models."""
    training = Training(recording)
    return [extended_finding(line, training) for line in lines]
