"""Roles and modules from snapshots of holders: what they name, and what they saw without a name.

The programs are loops of ``support.training`` that resume from a checkpoint: the stacks of what was
loaded are those of the program itself, which tell no role.
"""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from support import training
from support.training import Loop

from tlmem.analysis.peak.explained import Known, explain, explain_known
from tlmem.analysis.peak.names import role_of_chain
from tlmem.analysis.peak.roles import NAMES, Role
from tlmem.recording.format.chains import ChainStep, StepKind
from tlmem.recording.reader import Recording

UNIT = 16_384
Steps = list[tuple[int, str, str, int]]
PARAMETER = "torch.nn.parameter.Parameter"


def variable(name: str) -> tuple[int, str, str, int]:
    return (StepKind.MODULE, "__main__", name, 0)


def attribute(of: str, name: str) -> tuple[int, str, str, int]:
    return (StepKind.INSTANCE, of, name, 0)


def keyed(items: int, key: str = "", of: str = "dict") -> tuple[int, str, str, int]:
    return (StepKind.DICT, of, f"['{key}']" if key else "[]", items)


ADAM: Steps = [
    variable("opt"),
    attribute("torch.optim.adam.Adam", "state"),
    keyed(4, of="collections.defaultdict"),
]
STATES = [*ADAM, keyed(3)]
NET: Steps = [
    variable("net"),
    attribute("__main__.Net", "_modules"),
    keyed(2, "base"),
    attribute("torch.nn.modules.linear.Linear", "_parameters"),
    keyed(2),
]
CHECKPOINT: Steps = [variable("checkpoint"), keyed(2, "net"), keyed(4)]


def loaded(line: int = 15) -> training.Stack:
    """In ``torch.load``."""
    return (*training.at(line), training.torch("serialization.py", "load", 1500))


def steps_of(loop: Loop, count: int, weights: int = 2) -> None:
    """Training in which gradients are cleared before each forward pass, and no state is made."""
    gradients: list[int] = []
    for _ in range(count):
        loop.free_all(gradients, training.zero_grad())
        for number in range(weights):
            saved = loop.alloc(training.forward(), 64, node=2 * (number + 1))
            loop.free(saved, training.backward())
        gradients = [loop.alloc(training.backward(), UNIT) for _ in range(weights)]
        loop.free(loop.alloc(training.optimizer(), 64), training.optimizer())
    loop.free_all(gradients, training.zero_grad())


def sums(recording: Recording) -> dict[str, int]:
    """Bytes of each role at the peak, without those of 0."""
    found = explain(recording)
    assert sum(each.bytes for each in found.roles) == found.bytes == found.peak_bytes
    return {each.role: each.bytes for each in found.roles if each.bytes}


class Resumed(Loop):
    """Two weights; states for them and some other tensors are loaded from a checkpoint."""

    def __init__(self, states: int = 4, others: int = 0) -> None:
        super().__init__()
        self.weights = [self.alloc(training.init(), UNIT) for _ in range(2)]
        self.others = [self.alloc(loaded(), UNIT) for _ in range(others)]
        self.states = [self.alloc(loaded(), UNIT) for _ in range(states)]
        steps_of(self, 2)

    def end(self, folder: Path) -> Recording:
        """Trains on and has its peak at the end."""
        steps_of(self, 2)
        self.alloc(training.at(99), 100 * UNIT)
        return self.recorded(folder / "a.tlm")


def test_without_a_snapshot_loaded_states_are_what_the_stack_says(tmp_path: Path) -> None:
    assert "optimizer state" not in sums(Resumed().end(tmp_path))


def test_states_of_a_checkpoint_are_those_of_the_optimizer(tmp_path: Path) -> None:
    loop = Resumed()
    loop.snapshot((STATES, loop.states, 64), (ADAM, loop.weights, 64))
    found = sums(loop.end(tmp_path))

    assert found["optimizer state"] == 4 * UNIT
    assert found["weights"] == 2 * UNIT


def test_states_that_the_snapshot_saw_without_naming_them_follow(tmp_path: Path) -> None:
    """Five of twelve are named, and the others are all that is left of what was loaded."""
    loop = Resumed(states=12)
    loop.snapshot((STATES, loop.states, 5), (ADAM, loop.weights, 64))

    assert sums(loop.end(tmp_path))["optimizer state"] == 12 * UNIT


def test_what_was_loaded_before_them_and_is_kept_does_not_follow(tmp_path: Path) -> None:
    """The weights of the checkpoint: of one stack and one size with the states."""
    loop = Resumed(states=12, others=2)
    loop.snapshot((STATES, loop.states, 5), (CHECKPOINT, loop.others, 1))
    found = Known.of(loop.end(tmp_path))

    assert roles_at(found, loop.states) == ["optimizer state"] * 12
    assert "optimizer state" not in roles_at(found, loop.others)


@pytest.mark.parametrize(("bytes_more", "more"), [(8, 0), (0, 1)])
def test_where_the_others_are_not_certain_only_named_ones_have_the_role(
    bytes_more: int, more: int, tmp_path: Path
) -> None:
    """The bytes do not fit, or a block without a known holder was loaded between them."""
    loop = Resumed(states=12 + more)
    held = [state for number, state in enumerate(loop.states) if number != 7 or not more]
    loop.snapshot((STATES, held, 4), bytes_more=bytes_more)

    assert sums(loop.end(tmp_path))["optimizer state"] == 4 * UNIT


def test_two_optimizers_share_what_a_checkpoint_has(tmp_path: Path) -> None:
    loop = Resumed(states=12)
    other = [variable("other"), *STATES[1:]]
    loop.snapshot((STATES, loop.states[::2], 2), (other, loop.states[1::2], 2))

    assert sums(loop.end(tmp_path))["optimizer state"] == 12 * UNIT


def test_each_time_that_a_program_resumes_is_as_the_one_that_was_seen(tmp_path: Path) -> None:
    """States are loaded three times, with weights that are gone before the next step."""
    loop = Loop()
    for _ in range(2):
        loop.alloc(training.init(), UNIT)
    states: list[int] = []
    every: list[int] = []
    for number in range(3):
        weights = [loop.alloc(loaded(), UNIT) for _ in range(2)]
        loop.free_all(states, training.at(16))
        states = [loop.alloc(loaded(), UNIT) for _ in range(4)]
        loop.free_all(weights, training.at(17))
        every += states
        steps_of(loop, 2)
        if number == 1:
            loop.snapshot((STATES, states, 64))
        steps_of(loop, 2)
    found = Known.of(loop.recorded(tmp_path / "a.tlm"))

    assert roles_at(found, every) == ["optimizer state"] * 12


def test_what_a_snapshot_saw_with_another_holder_speaks_against_it(tmp_path: Path) -> None:
    """Of one stack and one size, some are states and some are in a dict: another may be either."""
    loop = Resumed(states=4, others=2)
    loop.snapshot((STATES, loop.states, 64), (CHECKPOINT, loop.others, 64))
    later = [loop.alloc(loaded(), UNIT) for _ in range(2)]
    recording = loop.end(tmp_path)

    assert "optimizer state" not in roles_at(Known.of(recording), later)


def test_weights_that_the_program_gave_to_a_module(tmp_path: Path) -> None:
    """``load_state_dict(assign=True)``: the old ones go, and clones of theirs take their place."""
    loop = Loop()
    old = [loop.alloc(training.init(), UNIT) for _ in range(2)]
    steps_of(loop, 2)
    clones = [loop.alloc(training.at(12), UNIT) for _ in range(2)]
    loop.free_all(old, training.at(13))
    steps_of(loop, 2)
    loop.snapshot((NET, clones, 64))
    loop.alloc(training.at(99), 100 * UNIT)

    assert sums(loop.recorded(tmp_path / "a.tlm"))["weights"] == 2 * UNIT


def test_the_state_of_a_copied_optimizer_is_no_weight(tmp_path: Path) -> None:
    """``copy.deepcopy((net, optimizer))`` copies both at one line."""
    loop = Loop()
    weights = [loop.alloc(training.deepcopy(of_parameter=True), UNIT) for _ in range(2)]
    states = [loop.alloc(training.deepcopy(), UNIT) for _ in range(4)]
    steps_of(loop, 2)
    loop.snapshot((STATES, states, 64), (ADAM, weights, 64))
    loop.alloc(training.at(99), 100 * UNIT)
    found = sums(loop.recorded(tmp_path / "a.tlm"))

    assert (found["weights"], found["optimizer state"]) == (2 * UNIT, 4 * UNIT)


def test_the_last_snapshot_that_names_a_block_counts(tmp_path: Path) -> None:
    loop = Resumed()
    loop.snapshot((NET, loop.states, 64))
    steps_of(loop, 1)
    loop.snapshot((STATES, loop.states, 64))

    assert sums(loop.end(tmp_path))["optimizer state"] == 4 * UNIT


def test_names_are_in_the_answer_once_each(tmp_path: Path) -> None:
    loop = Resumed()
    loop.snapshot((STATES, loop.states, 64))
    found = explain(loop.end(tmp_path))
    roles = {each.role: each for each in found.roles}

    assert roles["optimizer state"].names == (
        "states of optimizer 'opt' (Adam, module __main__, 4 parameters)",
    )
    assert roles["kept by Python"].names == ()


GRADIENT = attribute(PARAMETER, "grad")


@pytest.mark.parametrize(
    ("steps", "expected"),
    [
        (ADAM, "weights"),
        (STATES, "optimizer state"),
        ([*ADAM, keyed(3, "exp_avg")], "optimizer state"),
        ([*ADAM, GRADIENT], "gradients"),
        (NET, "weights"),
        ([*NET, GRADIENT], "gradients"),
        ([*NET[:3], attribute("torch.nn.BatchNorm2d", "_buffers"), keyed(3)], "weights"),
        ([variable("x"), attribute("torch.Tensor", "grad")], "gradients"),
        ([variable("agent"), attribute("__main__.Agent", "grad")], None),
        ([variable("agent"), attribute("__main__.Agent", "state"), keyed(3)], None),
        (CHECKPOINT, None),
        ([variable("weights")], None),
        ([(StepKind.CYCLE, "AdamW", "AdamW.state -> Parameter -> AdamW", 0), *STATES[1:]], None),
        ([variable("loss"), (StepKind.GRAPH, "NllLossBackward0", "", 0)], None),
        ([], None),
    ],
)
def test_roles_of_chains(steps: Steps, expected: str | None) -> None:
    found = role_of_chain([ChainStep(*step) for step in steps])

    assert (NAMES[found.role] if found else None) == expected


def frozen(folder: Path, *more: Sequence[tuple[int, str, str, int]]) -> dict[str, int]:
    """Bytes of weights by module: of a model with a frozen part that ``net`` has as ``base``."""
    loop = Loop()
    base = loop.alloc(training.init(), UNIT)
    copies = [loop.alloc(training.init(), UNIT) for _ in more]
    for _ in range(2):
        loop.free(loop.alloc(training.forward(), UNIT, "Net/base"), training.forward())
    loop.snapshot(
        (NET, [base], 64), *((chain, [one], 64) for chain, one in zip(more, copies, strict=True))
    )
    found = explain_known(Known.of(loop.recorded(folder / "a.tlm")))
    return {
        found.module_text(each.path): each.roles["weights"]
        for each in found.modules
        if each.roles.get("weights")
    }


def test_frozen_weights_are_of_the_module_that_holds_them(tmp_path: Path) -> None:
    assert frozen(tmp_path) == {"Net": UNIT, "base": UNIT}


def test_weights_of_one_of_two_models_of_a_class_are_of_no_known_module(tmp_path: Path) -> None:
    assert frozen(tmp_path, [variable("copy"), *NET[1:]]) == {"": 2 * UNIT}


def roles_at(known: Known, addresses: Sequence[int]) -> list[str]:
    """The roles of blocks by their addresses."""
    table = known.recording.objects
    place = {int(address): row for row, address in enumerate(table["address"].tolist())}
    numbers = table.index.to_numpy(np.int64)[[place[address] for address in addresses]]
    rows = np.searchsorted(known.blocks.number, numbers)
    return [NAMES[Role(int(known.role[row]))] for row in rows]
