"""Cycles through autograd nodes, from simulated programs."""

import pytest
from support.torch_leaks import (
    ACTIVATIONS,
    GRADIENT,
    HISTORY,
    LOSSES,
    attribute,
    classes,
    graph,
    keyed,
    local,
    of_losses,
    program,
)

from tlmem.analysis.leaks import autograd_cycles
from tlmem.recording.format.chains import ChainStep as Step
from tlmem.recording.format.chains import StepKind

CONTEXT = "torch.autograd.function.SwishBackward"
PARAMETER = "torch.nn.parameter.Parameter"


def native(of: str) -> Step:
    return Step(StepKind.OTHER, of)


PACKED = [native("__main__.Packed"), attribute("__main__.Packed", "tensor"), graph("ExpBackward0")]
IN_CONTEXT = [native(CONTEXT), attribute(CONTEXT, "results"), keyed(1, "y"), graph()]
HOOKED = [
    native("collections.OrderedDict"),
    Step(StepKind.DICT, "collections.OrderedDict", "[0]", 1),
    attribute("function __main__.scale", "y"),
    graph(),
]
OF_GRADIENT = [native(PARAMETER), GRADIENT]


def test_what_a_pack_hook_keeps() -> None:
    found = of_losses(PACKED)

    assert found.kind == "hook-cycle"
    assert found.evidence == (
        "400 tensors allocated at program.py:30 are held by nothing that the program can reach (a "
        "snapshot looked after 3.12 s). Autograd nodes hold attribute 'tensor' of Packed (a "
        "Packed) with a tensor of ExpBackward0, whose graph leads back to the node: a cycle "
        "through C++, which Python's garbage collector does not see."
    )


def test_what_the_graphs_in_cycles_keep_is_of_the_class_too() -> None:
    found = classes(program(PACKED))

    assert {finding.kind for finding in found.values()} == {"hook-cycle"}
    assert ACTIVATIONS in found


@pytest.mark.parametrize(
    ("chain", "fix"),
    [
        (PACKED, autograd_cycles.OF_PACK_HOOKS),
        (IN_CONTEXT, autograd_cycles.OF_CONTEXTS),
        (HOOKED, autograd_cycles.OF_TENSOR_HOOKS),
        (OF_GRADIENT, autograd_cycles.OF_CREATED_GRAPHS),
    ],
)
def test_the_fix_is_of_what_holds_the_tensor(chain: list[Step], fix: str) -> None:
    found = of_losses(chain)

    assert (found.kind, found.fix) == ("hook-cycle", fix)


def test_a_variable_with_a_graph_may_keep_them_instead() -> None:
    found = of_losses(PACKED, also=lambda losses: [([local("loss"), graph()], losses[-1:], 1.0)])

    assert found.kind == "hook-cycle"
    assert found.evidence.endswith(
        "If local variable 'loss' of main() at program.py:12 is computed from those of all steps "
        "before, its graph keeps them instead: detach it from step to step."
    )


def test_a_graph_that_an_object_keeps_reaches_back() -> None:
    of_tracker = [local("tracker"), attribute("__main__.Tracker", "state"), graph()]
    found = of_losses(PACKED, also=lambda losses: [(of_tracker, losses[-1:], 1.0)])

    assert found.kind == "graph-chain-grows"


def test_graphs_that_the_program_keeps_hold_such_objects() -> None:
    assert {found.kind for found in classes(program(PACKED, HISTORY)).values()} == {"kept-graph"}


def test_a_gradient_beside_a_variable_with_a_graph_is_no_proof() -> None:
    of_loss = [local("loss"), graph()]
    found = classes(program(OF_GRADIENT, also=lambda losses: [(of_loss, losses[-1:], 1.0)]))

    assert found[LOSSES].kind == "graph-chain-grows"


def test_a_snapshot_that_ended_early_shows_no_cycle() -> None:
    assert LOSSES not in classes(program(PACKED, whole=False))


def test_what_a_graph_saved_is_no_cycle() -> None:
    saved = [native("torch.Tensor"), graph("ReluBackward0")]

    assert LOSSES not in classes(program(saved))
