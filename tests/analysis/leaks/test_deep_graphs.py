"""Native memory that grows by the nodes of one graph, in simulated programs."""

import pytest
from support.torch_leaks import TORCH, attribute, local
from support.traces import Program

from tlmem.analysis import analyse
from tlmem.analysis.model import Analysis
from tlmem.recording.format.chains import ChainStep as Step
from tlmem.recording.format.chains import StepKind

STEPS, PER_STEP = 900, 4_000
TOTAL = 30


def node(depth: int, name: str = "AddBackward0") -> Step:
    return Step(StepKind.GRAPH, name, "", depth)


def summed(
    deepens: bool = True, native: int = PER_STEP, sizes: int = 1, in_stairs: bool = False
) -> Analysis:
    """A sum of losses is made in each step, in place of the one before.

    Args:
        deepens: whether it keeps the graph of all steps.
        native: bytes of native memory that each step keeps.
        sizes: how many sizes tensors have.
        in_stairs: whether that is seen in a few large steps, as where samples are rare.
    """
    made = Program(slowdown=1)
    total = made.alloc(TOTAL, 4, TORCH)
    for step in range(STEPS):
        loss = made.alloc(20, 4, TORCH)
        made.temporary(10, 64)
        made.free(made.alloc(11, 8_000 + 64 * (step % sizes), TORCH))
        new = made.alloc(TOTAL, 4, TORCH)
        made.free(total)
        total = new
        stair = 200 * native if step % 200 == 150 else 0
        made.native += stair if in_stairs else native
        made.wait(3_000_000)
        if step % 100 == 99:
            depth = 6 + step if deepens else 6
            made.snapshot(
                ([local("total"), node(depth)], [total], 1.0),
                ([local("mean"), node(depth + 1, "DivBackward0")], [loss], 1.0),
            )
        made.free(loss)
    made.free(total)
    return analyse(made.recording())


def test_a_sum_that_keeps_the_graph_of_each_step_is_a_leak_with_line_and_holder() -> None:
    found = summed()

    assert found.verdict.outcome == "leak"
    assert found.verdict.sentence.startswith(
        "Leak at program.py:30: The autograd graph (AddBackward0) of local variable 'total' of "
        "main() at program.py:12 reaches back over all steps: 105 nodes deep after "
    )
    (named,) = [each for each in found.findings if each.kind == "graph-chain-grows"]
    assert (named.site and named.site.line, named.count) == (TOTAL, 800)
    assert named.holders[0].name == "local variable 'total' of main() at program.py:12"
    assert "loss.item()" in named.fix


@pytest.mark.parametrize("native, outcome", [(PER_STEP, "native"), (0, "stable")])
def test_graphs_that_are_no_deeper_explain_nothing(native: int, outcome: str) -> None:
    found = summed(deepens=False, native=native)

    assert found.verdict.outcome == outcome
    assert not [each for each in found.findings if each.kind == "graph-chain-grows"]


def test_a_graph_that_gets_deeper_is_nothing_to_tell_where_no_memory_grows() -> None:
    """Longer and longer sequences: each graph is freed with its step."""
    assert summed(native=0).verdict.outcome == "stable"


def test_of_several_the_one_is_named_from_which_others_come() -> None:
    made = summed()

    (named,) = [each for each in made.findings if each.kind == "graph-chain-grows"]
    assert "mean" not in named.evidence


@pytest.mark.parametrize("native, outcome", [(PER_STEP, "stable"), (15_000, "cannot-judge")])
def test_native_memory_that_rises_with_new_sizes_is_not_judged(native: int, outcome: str) -> None:
    found = summed(deepens=False, native=native, sizes=STEPS)

    assert found.verdict.outcome == outcome
    assert "sizes for the first time: libraries keep what they prepare" in found.verdict.sentence


def test_native_memory_that_rises_by_more_than_sizes_explain_grows() -> None:
    assert summed(deepens=False, native=200_000, sizes=STEPS).verdict.outcome == "native"


def test_attributes_are_named_as_what_they_are() -> None:
    made = Program(slowdown=1)
    total = made.alloc(TOTAL, 4, TORCH)
    steps = [local("meter"), attribute("__main__.Meter", "total")]
    for step in range(STEPS):
        made.free(made.alloc(11, 8_000, TORCH))
        made.native += PER_STEP
        made.wait(3_000_000)
        if step % 100 == 99:
            made.snapshot(([*steps, node(step)], [total], 1.0))

    assert "attribute 'total' of Meter" in analyse(made.recording()).verdict.sentence


@pytest.mark.parametrize("deepens", [True, False])
def test_ever_deeper_graphs_are_a_leak_where_native_memory_rises_in_stairs(deepens: bool) -> None:
    found = summed(deepens, in_stairs=True)

    assert found.verdict.outcome == ("leak" if deepens else "stable")
