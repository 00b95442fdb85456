"""Models that are extended in the course of training, told from leaks, in simulated programs."""

from typing import Any

import pytest
from support.torch_leaks import (
    ADAPTERS,
    LINEAR,
    LOSSES,
    STATES,
    TORCH,
    attribute,
    keyed,
    listed,
    local,
)
from support.traces import Program

from tlmem.analysis import analyse
from tlmem.analysis.model import Analysis
from tlmem.recording.format.chains import ChainStep as Step

STEPS, PARTS = 400, 4
BACKWARD = 70
ADAM = "torch.optim.adam.Adam"
OPTIMIZER = [local("opt"), attribute(ADAM, "state"), STATES]
STATE = [*OPTIMIZER, keyed(3)]
GRADIENTS = [*ADAPTERS, attribute("torch.nn.parameter.Parameter", "grad")]
BUFFERS = [*ADAPTERS[:-2], attribute(LINEAR, "_buffers"), keyed(2)]
LAYERS = [local("layers"), listed(16), attribute(LINEAR, "_parameters"), keyed(2)]


def trained(
    chain: list[Step],
    every: int = 25,
    works: bool = True,
    lonely: bool = False,
    steps: int = STEPS,
) -> Analysis:
    """Now and then four tensors are added to a model, which ``chain`` holds.

    Args:
        every: steps from one time to the next.
        works: whether each makes a backward pass do more.
        lonely: whether some parameters are seen that only an optimizer has.
        steps: training steps in all; fewer take longer.
    """
    made = Program(slowdown=10 * STEPS // steps)
    parts: list[int] = []
    others = [made.alloc(90, 8_000, TORCH) for _ in range(30)] if lonely else []
    for step in range(steps):
        if step % every == every - 1:
            parts += [made.alloc(LOSSES, 40_000, TORCH) for _ in range(PARTS)]
        for _ in range(1 + (len(parts) if works else 0)):
            made.free(made.alloc(BACKWARD, 8_000, TORCH))
        made.free(made.alloc(30, 8_000, TORCH))
        made.wait(1_000_000)
        if step == steps - 2:
            seen = [(chain, parts, 1.0), *([(OPTIMIZER, others, 1.0)] if lonely else [])]
            made.snapshot(*seen)
    recording: Any = made.recording()
    engine = ("/lib/torch/autograd/graph.py", "_engine_run_backward")
    recording.sites.loc[recording.sites["line"] == BACKWARD, ["file", "function"]] = engine
    return analyse(recording)


@pytest.mark.parametrize("chain", [ADAPTERS, STATE, GRADIENTS])
def test_a_model_that_is_extended_sixteen_times_is_stable(chain: list[Step]) -> None:
    found = trained(chain)

    assert found.verdict.outcome == "stable", found.verdict.sentence
    assert "A model is extended now and then: 2.56 MB at program.py:30" in found.verdict.sentence
    said = [finding for finding in found.findings if finding.kind == "growing-model"]
    assert [(finding.severity, finding.count) for finding in said] == [("info", 16 * PARTS)]
    assert "made in 16 of 375 training steps" in said[0].evidence


def test_a_model_is_extended_more_often_where_each_part_is_trained() -> None:
    """Twenty-two times, each after twenty steps, and each makes the backward pass do more."""
    assert trained(ADAPTERS, every=20, steps=450).verdict.outcome == "stable"


LEAKS: dict[str, dict[str, Any]] = {
    "often": {"chain": ADAPTERS, "every": 16},
    "often, of parts that no step uses": {
        "chain": ADAPTERS,
        "every": 20,
        "steps": 450,
        "works": False,
    },
    "in every step of few": {"chain": ADAPTERS, "every": 1, "steps": 16},
    "by an optimizer alone": {"chain": STATE, "lonely": True},
    "as buffers": {"chain": BUFFERS},
    "as models in a list that no step uses": {"chain": LAYERS, "works": False},
    "as tensors": {"chain": [local("kept"), listed(64)]},
}


@pytest.mark.parametrize("case", LEAKS)
def test_what_is_kept_otherwise_is_a_leak(case: str) -> None:
    found = trained(**LEAKS[case])

    assert found.verdict.outcome == "leak", found.verdict.sentence
    assert not [finding for finding in found.findings if finding.kind == "growing-model"]


def test_layers_in_a_list_that_each_step_uses_are_a_model() -> None:
    assert trained(LAYERS).verdict.outcome == "stable"


def test_modules_of_a_tree_need_not_be_used_in_each_step() -> None:
    """An adapter for each task is used in its task alone."""
    assert trained(ADAPTERS, works=False).verdict.outcome == "stable"
