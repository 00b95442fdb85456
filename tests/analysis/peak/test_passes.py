"""Which step of a training loop it is, whatever optimizer and ``zero_grad`` leave of events."""

from pathlib import Path

import pytest
from support import training
from support.training import Loop

from tlmem.analysis.peak.blocks import blocks_of
from tlmem.analysis.peak.passes import passes_of

STEPS = 5


def brief(loop: Loop, stack: training.Stack) -> None:
    loop.free(loop.alloc(stack, 64), stack)


def forward(loop: Loop) -> int:
    """A forward pass, and a loss outside of modules; returns what it saved."""
    brief(loop, training.at(56))
    saved = loop.alloc(training.forward(), 4_096)
    brief(loop, training.at(61))
    return saved


def backward(loop: Loop, saved: int) -> int:
    """A backward pass; returns a gradient."""
    gradient = loop.alloc(training.backward(), 512)
    loop.free(saved, training.backward())
    return gradient


def loop_of(kind: str) -> Loop:
    """Five steps of a kind of loop."""
    loop = Loop()
    gradient = None
    loop.alloc(training.init(), 512)
    for step in range(STEPS):
        clears = gradient is not None
        if kind == "zero_grad first" and clears:
            loop.free(gradient, training.zero_grad())
        saved = forward(loop)
        if kind == "zero_grad before backward" and clears:
            loop.free(gradient, training.zero_grad())
        gradient = backward(loop, saved)
        if kind == "accumulation":
            for _ in range(3):
                loop.free(backward(loop, forward(loop)), training.backward())
        if kind in ("optimizer with temporaries", "accumulation"):
            brief(loop, training.optimizer())
        if kind == "state in the first step" and step == 0:
            loop.alloc(training.optimizer(file="optim/sgd.py", function="SGD.step"), 512)
        if kind == "zero_grad last":
            loop.free(gradient, training.zero_grad())
        if kind == "optimizers within backward":
            for line in range(3):
                inner = (*training.backward(), (training.SCRIPT, "hook", line))
                step_of_one = (*inner, training.torch("optim/adamw.py", "AdamW.step"))
                brief(loop, step_of_one)
                brief(loop, (*inner, training.torch("optim/optimizer.py", "Optimizer.zero_grad")))
                brief(loop, training.backward())
        elif kind not in ("zero_grad first", "zero_grad before backward", "zero_grad last"):
            loop.free(gradient, training.at(85))
    return loop


@pytest.mark.parametrize(
    "kind",
    [
        "optimizer with temporaries",
        "state in the first step",
        "zero_grad first",
        "zero_grad before backward",
        "zero_grad last",
        "accumulation",
        "optimizers within backward",
        "by hand",
    ],
)
def test_the_number_of_steps(kind: str, tmp_path: Path) -> None:
    passes = passes_of(blocks_of(loop_of(kind).recorded(tmp_path / "a.tlm")))

    assert passes.count == STEPS
    assert passes.step_of(0) == 1
    assert passes.is_training


def test_without_modules_each_backward_pass_is_a_step(tmp_path: Path) -> None:
    loop = Loop()
    for _ in range(STEPS):
        saved = loop.alloc(training.at(30), 4_096)
        gradient = backward(loop, saved)
        loop.free(gradient, training.at(31))

    assert passes_of(blocks_of(loop.recorded(tmp_path / "a.tlm"))).count == STEPS


def test_inference_has_one_step_and_no_backward_pass(tmp_path: Path) -> None:
    loop = Loop()
    for _ in range(STEPS):
        brief(loop, training.forward())
        brief(loop, training.at(61))
    passes = passes_of(blocks_of(loop.recorded(tmp_path / "a.tlm")))

    assert (passes.count, passes.is_training) == (1, False)


def test_a_forward_pass_behind_the_last_backward_pass_is_no_step(tmp_path: Path) -> None:
    loop = loop_of("optimizer with temporaries")
    loop.free(forward(loop), training.at(62))
    recording = loop.recorded(tmp_path / "evaluated.tlm")
    passes = passes_of(blocks_of(recording))

    assert passes.count == STEPS
    assert passes.step_of(len(recording.events) - 1) == STEPS


def test_a_process_that_was_killed_in_forward_was_in_a_step_of_its_own(tmp_path: Path) -> None:
    loop = loop_of("optimizer with temporaries")
    forward(loop)
    passes = passes_of(blocks_of(loop.recorded(tmp_path / "killed.tlm", "compact")))

    assert passes.count == STEPS + 1


def test_what_an_optimizer_makes_before_the_first_backward_pass_is_no_step(tmp_path: Path) -> None:
    loop = Loop()
    loop.alloc(training.optimizer(file="optim/adagrad.py", function="Adagrad.__init__"), 512)
    for _ in range(STEPS):
        gradient = backward(loop, forward(loop))
        brief(loop, training.optimizer(file="optim/adagrad.py", function="Adagrad.step"))
        loop.free(gradient, training.at(85))
    passes = passes_of(blocks_of(loop.recorded(tmp_path / "adagrad.tlm")))

    assert passes.count == STEPS


def test_evaluations_between_steps_are_no_steps(tmp_path: Path) -> None:
    loop = Loop()
    for _ in range(STEPS):
        gradient = backward(loop, forward(loop))
        brief(loop, training.optimizer())
        for _ in range(3):
            loop.free(forward(loop), training.at(62))
            brief(loop, training.optimizer(file="optim/sgd.py", function="SGD.add_param_group"))
        loop.free(gradient, training.zero_grad())
    passes = passes_of(blocks_of(loop.recorded(tmp_path / "between.tlm")))

    assert passes.count == STEPS
