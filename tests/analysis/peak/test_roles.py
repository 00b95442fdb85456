"""What a block is for: each cell of the table of allocations and frees, and what decides beyond it.

The loops around a block are the smallest in which its cell has its meaning.
"""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from support import training
from support.training import Loop, Stack, trained

from tlmem.analysis.peak.blocks import blocks_of
from tlmem.analysis.peak.explained import Known
from tlmem.analysis.peak.passes import passes_of
from tlmem.analysis.peak.roles import NAMES, Named, Role, roles_of

SIZE = 4_096


def brief(loop: Loop, stack: Stack) -> None:
    """Something of a phase, so that it is seen."""
    loop.free(loop.alloc(stack, 64), stack)


def step(loop: Loop) -> None:
    """A whole step in which nothing of the test happens."""
    for stack in (
        training.forward(),
        training.backward(),
        training.optimizer(),
        training.zero_grad(),
    ):
        brief(loop, stack)
        brief(loop, training.at(61))


def role_of(loop: Loop, folder: Path, size: int = SIZE, form: str = "sealed") -> str:
    """The role of the only block of a size; all of several have the same one."""
    recording = loop.recorded(folder / "a.tlm", form)
    blocks = blocks_of(recording)
    found = np.unique(roles_of(blocks, passes_of(blocks))[blocks.size == size])
    assert len(found) == 1
    return NAMES[Role(int(found[0]))]


BORN: dict[str, Callable[[], Stack]] = {
    "init": training.init,
    "forward": training.forward,
    "backward": training.backward,
    "recomputed": training.recomputed,
    "optimizer": training.optimizer,
    "data": training.data,
    "user": lambda: training.at(57),
}
AFTER = ("init", "data", "user", "forward", "recomputed", "backward", "optimizer", "zero_grad")
"""Phases of a step in their order."""
CELLS = {
    ("init", "forward"): "temporaries",
    ("init", "backward"): "temporaries",
    ("init", "zero_grad"): "weights",
    ("init", "optimizer"): "weights",
    ("init", "later"): "weights",
    ("init", "never"): "weights",
    ("forward", "forward"): "temporaries",
    ("forward", "backward"): "activations",
    ("forward", "recomputed"): "activations",
    ("forward", "zero_grad"): "kept by Python",
    ("forward", "optimizer"): "kept by Python",
    ("forward", "later"): "kept by Python",
    ("forward", "later forward"): "kept by Python",
    ("forward", "never"): "kept by Python",
    ("backward", "backward"): "temporaries",
    ("backward", "later backward"): "activations",
    ("backward", "zero_grad"): "gradients",
    ("backward", "optimizer"): "gradients",
    ("backward", "later"): "gradients",
    ("backward", "never"): "gradients",
    ("recomputed", "recomputed"): "temporaries",
    ("recomputed", "backward"): "recomputed",
    ("recomputed", "optimizer"): "kept by Python",
    ("recomputed", "never"): "kept by Python",
    ("optimizer", "optimizer"): "temporaries",
    ("optimizer", "zero_grad"): "optimizer state",
    ("optimizer", "later"): "optimizer state",
    ("optimizer", "later optimizer"): "optimizer state",
    ("optimizer", "never"): "optimizer state",
    ("data", "data"): "temporaries",
    ("data", "forward"): "inputs",
    ("data", "backward"): "inputs",
    ("data", "later"): "inputs",
    ("data", "never"): "inputs",
    ("user", "user"): "temporaries",
    ("user", "forward"): "inputs",
    ("user", "backward"): "activations",
    ("user", "optimizer"): "temporaries",
    ("user", "zero_grad"): "gradients",
    ("user", "later"): "inputs",
}


@pytest.mark.parametrize(("born", "died"), CELLS)
def test_each_cell_of_the_table(born: str, died: str, tmp_path: Path) -> None:
    loop = Loop()
    step(loop)
    made = loop.alloc(BORN[born](), SIZE)
    stacks = {**BORN, "zero_grad": training.zero_grad}
    later = died.partition("later")[2].strip()
    if died in stacks:
        # The phases between the two, each with something else.
        order = AFTER[AFTER.index(born) + 1 : AFTER.index(died)] if born != died else ()
        for name in order:
            if name in ("forward", "backward", "optimizer"):
                brief(loop, stacks[name]())
        loop.free(made, stacks[died]())
    elif died != "never":
        if born in ("init", "data", "user"):
            step(loop)
        brief(loop, training.at(61))
        brief(loop, training.forward())
        brief(loop, training.backward())
        brief(loop, training.optimizer())
        brief(loop, training.at(61))
        if later == "backward":
            brief(loop, training.forward())
        loop.free(made, stacks[later]() if later else training.at(62))
    step(loop)

    assert role_of(loop, tmp_path) == CELLS[born, died]


def test_a_loop_has_every_role_in_its_place(tmp_path: Path) -> None:
    loop = trained(steps=3, blocks=2, unit=16_384, batch=4)
    known = Known.of(loop.recorded(tmp_path / "a.tlm"))
    names = np.array([NAMES[Role(int(role))] for role in known.role])

    assert training.sizes_by(names, known.blocks.size) == {
        "activations": 3 * 2 * 2 * 4 * 16_384,
        "gradients": 3 * 2 * 16_384,
        "inputs": 3 * 4 * 16_384,
        "kept by Python": 3 * 64,
        "optimizer state": 4 * 16_384,
        "temporaries": 3 * (2 * 16_384 + 64 + 2 * 4 * 16_384 + 16_384),
        "weights": 2 * 16_384,
    }


def test_weights_that_the_program_made_itself_are_found_by_their_gradients(
    tmp_path: Path,
) -> None:
    """Two tensors with gradients of their size, and one of that size without."""
    loop = Loop()
    for _ in range(3):
        loop.alloc(training.at(40), SIZE)
    for _ in range(3):
        brief(loop, training.forward())
        gradients = [loop.alloc(training.backward(), SIZE) for _ in range(2)]
        brief(loop, training.optimizer())
        loop.free_all(gradients, training.zero_grad())
    known = Known.of(loop.recorded(tmp_path / "a.tlm"))
    names = [NAMES[Role(int(role))] for role in known.role[known.blocks.size == SIZE]]

    assert names[:3] == ["weights", "weights", "inputs"]
    assert set(names[3:]) == {"gradients"}


def test_a_graph_that_a_statement_lets_go_of_was_activations(tmp_path: Path) -> None:
    """Validation without ``no_grad``: no backward pass frees what forward passes saved."""
    loop = Loop()
    for _ in range(4):
        saved = [loop.alloc(training.forward(line), SIZE) for line in (31, 32, 33, 34, 35)]
        root = loop.alloc(training.at(61), 8)
        loop.free_all([*saved, root], training.at(62))
    recording = loop.recorded(tmp_path / "a.tlm")
    known = Known.of(recording)

    assert set(known.role[known.blocks.size == SIZE].tolist()) == {Role.ACTIVATIONS}
    assert Role.ACTIVATIONS not in known.role[known.blocks.size == 8]


def test_layers_of_one_list_share_a_stack_and_their_outputs_do_not_share_a_role(
    tmp_path: Path,
) -> None:
    """``nn.Sequential`` calls its layers at one line; the program collects the last outputs."""
    loop = Loop()
    outputs = []
    for _ in range(5):
        saved = [loop.alloc(training.forward(31), 8_192) for _ in range(3)]
        outputs.append(loop.alloc(training.forward(31), SIZE))
        loop.free_all(saved, training.backward())
        brief(loop, training.optimizer())
    loop.free_all(outputs, training.at(95))

    assert role_of(loop, tmp_path) == "kept by Python"


def test_a_loss_in_a_closure_of_an_optimizer_is_saved_for_backward(tmp_path: Path) -> None:
    loop = Loop()
    closure = (*training.optimizer(function="LBFGS.step"), (training.SCRIPT, "closure", 40))
    for _ in range(3):
        brief(loop, training.forward())
        loop.free(loop.alloc(closure, SIZE), training.backward())
        brief(loop, training.optimizer())

    assert role_of(loop, tmp_path) == "activations"


def test_outputs_that_a_program_clears_together_were_kept(tmp_path: Path) -> None:
    loop = Loop()
    outputs = []
    for _ in range(6):
        outputs.append(loop.alloc(training.forward(31), SIZE))
        brief(loop, training.at(61))
    brief(loop, training.forward())
    loop.free_all(outputs, training.at(62))

    assert role_of(loop, tmp_path) == "kept by Python"


def test_an_inference_server_keeps_what_the_next_call_replaces(tmp_path: Path) -> None:
    loop = Loop()
    weight = loop.alloc(training.init(), 8_192)
    cache = None
    for _ in range(5):
        longer = loop.alloc(training.forward(31), SIZE)
        if cache is not None:
            loop.free(cache, training.forward(31))
        cache = longer
        brief(loop, training.at(61))
    loop.free(weight, training.at(95))
    recording = loop.recorded(tmp_path / "a.tlm")
    known = Known.of(recording)

    assert set(known.role[known.blocks.size == SIZE].tolist()) == {Role.KEPT}
    assert set(known.role[known.blocks.size == 8_192].tolist()) == {Role.WEIGHTS}


@pytest.mark.parametrize(
    ("form", "expected"), [("sealed", "kept by Python"), ("compact", "activations")]
)
def test_a_process_that_was_killed_in_its_first_forward_pass(
    form: str, expected: str, tmp_path: Path
) -> None:
    loop = Loop()
    loop.alloc(training.init(), 8_192)
    for line in (31, 32):
        loop.alloc(training.forward(line), SIZE)

    assert role_of(loop, tmp_path, form=form) == expected


def test_a_process_that_was_killed_in_backward_has_the_temporaries_of_earlier_steps(
    tmp_path: Path,
) -> None:
    loop = Loop()
    for _ in range(3):
        saved = loop.alloc(training.forward(), 64)
        passing = loop.alloc(training.backward(71), SIZE)
        loop.free(saved, training.backward(71))
        loop.free(passing, training.backward(71))
        brief(loop, training.optimizer())
    brief(loop, training.forward())
    loop.alloc(training.backward(71), SIZE)

    assert role_of(loop, tmp_path, form="compact") == "temporaries"


def test_the_last_batch_has_the_role_of_the_ones_before(tmp_path: Path) -> None:
    loop = Loop()
    for number in range(5):
        batch = loop.alloc(training.at(56), SIZE)
        brief(loop, training.forward())
        brief(loop, training.backward())
        brief(loop, training.optimizer())
        if number < 4:
            loop.free(batch, training.at(56))

    assert role_of(loop, tmp_path) == "inputs"


def test_what_a_program_collects_while_it_trains_is_kept_by_python(tmp_path: Path) -> None:
    loop = Loop()
    kept = []
    for number in range(12):
        kept.append(loop.alloc(training.at(58), SIZE))
        brief(loop, training.forward())
        brief(loop, training.backward())
        brief(loop, training.optimizer())
        brief(loop, training.at(61))
        if number > 6:
            loop.free(kept[number - 6], training.at(59))
    recording = loop.recorded(tmp_path / "a.tlm")
    known = Known.of(recording)
    # The first one was there before anything was trained: it may be an input as well.
    later = known.role[known.blocks.size == SIZE][1:]

    assert {NAMES[Role(int(role))] for role in later} == {"kept by Python"}


def test_other_memory_has_roles_of_its_own(tmp_path: Path) -> None:
    loop = trained(steps=2, blocks=1)
    for device, size in ((training.NUMPY, 4_001), (training.PROBE, 4_002)):
        loop.alloc(training.forward(), size, device=device)
    known = Known.of(loop.recorded(tmp_path / "a.tlm"))

    assert known.role[known.blocks.size == 4_001].tolist() == [Role.NUMPY]
    assert known.role[known.blocks.size == 4_002].tolist() == [Role.OBJECTS]


def test_names_have_the_last_word(tmp_path: Path) -> None:
    recording = trained(steps=2, blocks=1).recorded(tmp_path / "a.tlm")
    blocks = blocks_of(recording)
    names = {0: Named(Role.INPUTS, "x"), 10**6: Named(Role.INPUTS), 3: Named(Role.WEIGHTS)}
    role = roles_of(blocks, passes_of(blocks), names)

    assert role[0] == Role.INPUTS
    assert role[3] == Role.WEIGHTS


def test_tensors_of_a_program_without_modules_are_kept_by_python(tmp_path: Path) -> None:
    loop = Loop()
    loop.free(loop.alloc(training.at(10), SIZE), training.at(11))
    loop.alloc(training.at(12), SIZE)

    assert role_of(loop, tmp_path) == "kept by Python"


WEIGHTS = (40_960, 20_480, 4_096)
"""Bytes of the weights of a model, whose momentum the program keeps itself."""


def momentum(loop: Loop, replaced: bool, sizes: tuple[int, ...] = WEIGHTS) -> None:
    """Five steps, with momentum by hand: replaced in each, or changed in place."""
    for size in WEIGHTS:
        loop.alloc(training.init(), size)
    kept = [loop.alloc(training.at(5), size) for size in sizes]
    gradients: list[int] = []
    for _ in range(5):
        brief(loop, training.forward())
        for gradient in gradients:
            loop.free(gradient, training.zero_grad())
        gradients = [loop.alloc(training.backward(), size) for size in WEIGHTS]
        for at, size in enumerate(sizes if replaced else ()):
            new = loop.alloc(training.at(57), size)
            loop.free(kept[at], training.at(58))
            kept[at] = new
        brief(loop, training.at(61))


def roles_by_line(loop: Loop, folder: Path) -> dict[int, set[str]]:
    """Roles of the blocks that the program allocated itself, by their lines."""
    recording = loop.recorded(folder / "a.tlm", "sealed")
    blocks = blocks_of(recording)
    lines = recording.sites["line"].reindex(blocks.born_site).tolist()
    found: dict[int, set[str]] = {}
    for line, role in zip(lines, roles_of(blocks, passes_of(blocks)).tolist(), strict=True):
        found.setdefault(int(line), set()).add(NAMES[Role(role)])
    return {line: roles for line, roles in found.items() if line in (5, 57)}


def test_momentum_that_a_line_replaces_after_each_backward_pass_is_optimizer_state(
    tmp_path: Path,
) -> None:
    loop = Loop()
    momentum(loop, replaced=True)

    assert roles_by_line(loop, tmp_path) == {5: {"optimizer state"}, 57: {"optimizer state"}}


def test_one_that_is_changed_in_place_is_kept_by_python_and_no_input(tmp_path: Path) -> None:
    loop = Loop()
    momentum(loop, replaced=False)

    assert roles_by_line(loop, tmp_path) == {5: {"kept by Python"}}


def test_blocks_that_are_no_match_for_the_gradients_stay_inputs(tmp_path: Path) -> None:
    loop = Loop()
    momentum(loop, replaced=False, sizes=(*WEIGHTS, 40_960))

    assert roles_by_line(loop, tmp_path) == {5: {"inputs"}}


def test_what_a_server_keeps_from_call_to_call_is_no_input(tmp_path: Path) -> None:
    """Its own code makes a cache for each session, which calls of other sessions pass by."""
    loop = Loop()
    loop.alloc(training.init(), 8_192)
    brief(loop, training.forward())
    sessions = []
    for call in range(60):
        batch = loop.alloc(training.at(57), 2_048)
        brief(loop, training.forward())
        if call % 3 == 0 and call < 45:
            sessions.append(loop.alloc(training.at(58), SIZE))
        brief(loop, training.at(61))
        loop.free(batch, training.at(57))
        if call == 50:
            loop.free(sessions[0], training.at(59))

    assert role_of(loop, tmp_path) == "kept by Python"
    assert role_of(loop, tmp_path, size=2_048) == "inputs"


@pytest.mark.parametrize(("steps", "expected"), [(4, "inputs"), (40, "kept by Python")])
def test_a_loaded_batch_that_is_kept_from_step_to_step_is_no_input(
    steps: int, expected: str, tmp_path: Path
) -> None:
    loop = Loop()
    step(loop)
    batch = loop.alloc(training.data(), SIZE)
    for _ in range(steps):
        step(loop)
    loop.free(batch, training.at(59))
    step(loop)

    assert role_of(loop, tmp_path) == expected
