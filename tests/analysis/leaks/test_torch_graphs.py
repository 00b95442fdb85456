"""Classes of PyTorch's leaks, and words for its chains, from simulated programs."""

import random
from collections.abc import Callable
from typing import Any

import pytest
from support.torch_leaks import (
    ACTIVATIONS,
    ADAM,
    ADAPTERS,
    GRADIENT,
    HISTORY,
    INPUTS,
    LINEAR,
    LOSSES,
    MAPPED,
    NUMPY,
    OTHERS,
    PROBE,
    STATES,
    STEPS,
    TORCH,
    attribute,
    classes,
    graph,
    keyed,
    listed,
    local,
    of_losses,
    program,
)
from support.traces import Program

from tlmem.analysis import analyse, sentences
from tlmem.analysis.growth.process_growth import Rise
from tlmem.analysis.holders import snapshots
from tlmem.analysis.leaks import growing_models
from tlmem.analysis.leaks.cures import fix_of
from tlmem.analysis.lifetimes import lifetimes
from tlmem.analysis.model import Rate
from tlmem.analysis.places import Places
from tlmem.events import Device
from tlmem.recording.format.chains import ChainStep as Step
from tlmem.recording.format.chains import StepKind
from tlmem.recording.tables import chain_text, torch_text
from tlmem.recording.tables.chain_text import without_numbers, words


def test_losses_that_keep_their_graph() -> None:
    found = of_losses(HISTORY)

    assert found.kind == "kept-graph"
    assert found.evidence == (
        "400 tensors allocated at program.py:30 are kept by list 'history' (local variable of "
        "main() at program.py:12, 300 items), each with its autograd graph (NllLossBackward0): the "
        "graph's nodes, and what a backward pass has not freed, stay with it."
    )


@pytest.mark.parametrize("chain, outcome", [(HISTORY, "leak"), (HISTORY[:2], "stable")])
def test_few_losses_of_four_bytes_are_a_leak_where_each_keeps_a_graph(
    chain: list[Step], outcome: str
) -> None:
    made, losses = Program(), []
    for _ in range(150):
        losses.append(made.alloc(LOSSES, 4, TORCH))
        made.temporary(90)
        made.wait(20_000_000)
    made.snapshot((chain, losses, 1.0))

    assert analyse(made.recording()).verdict.outcome == outcome


def test_what_no_object_holds_is_kept_through_the_graphs_of_others() -> None:
    found = classes(program(HISTORY))

    assert {line: finding.kind for line, finding in found.items()} == {
        INPUTS: "kept-graph",
        ACTIVATIONS: "kept-graph",
        LOSSES: "kept-graph",
    }
    assert found[ACTIVATIONS].evidence.startswith(
        "400 tensors allocated at program.py:20 are held by no Python object (a snapshot looked "
        "after "
    )
    assert found[ACTIVATIONS].evidence.endswith(
        "): they are kept through the autograd graphs (NllLossBackward0) that list 'history' "
        "(local variable of main() at program.py:12, 300 items) keeps."
    )


def test_arrays_under_inputs_are_kept_through_graphs_too() -> None:
    found = classes(program(HISTORY, others=NUMPY))[INPUTS]

    assert found.kind == "kept-graph"
    assert found.evidence.startswith("400 arrays allocated at program.py:10 are held by no Python")


def test_tensors_without_a_graph_are_a_cache() -> None:
    found = of_losses([local("history"), listed(300)])

    assert found.kind == "cache-only-grows"
    assert found.evidence.startswith("400 tensors allocated at program.py:30 are kept by list")


def test_no_class_is_said_of_what_a_snapshot_looked_for_where_no_graph_is_kept() -> None:
    """Some of the losses are in a list; native code has the rest, for a reason unknown."""
    found = classes(program([local("history"), listed(300)]))

    assert set(found) == {LOSSES}


def test_without_a_snapshot_nothing_is_said_of_graphs() -> None:
    found = classes(program())

    assert {finding.kind for finding in found.values()} == {"cache-only-grows"}


def test_a_graph_that_is_kept_by_few_of_many_is_no_reason() -> None:
    """Nine in ten of the losses are numbers in tensors without a graph."""
    found = of_losses(*[[local("plain"), listed(270)]] * 9, HISTORY)

    assert found.kind == "cache-only-grows"


def test_tensors_that_only_native_code_holds_are_parts_of_a_graph() -> None:
    """A graph keeps the Python object of an intermediate result with its memory."""
    native = [Step(StepKind.OTHER, "torch.Tensor"), graph("ReluBackward0")]
    found = of_losses(HISTORY, native, native)

    assert found.kind == "kept-graph"
    assert "list 'history'" in found.evidence


@pytest.mark.parametrize("seen_after", [(), (3,), (STEPS // 2,), (3, STEPS // 2)])
def test_contexts_in_a_list_are_told_whenever_there_were_snapshots(seen_after) -> None:
    """A run may have been searched at its end alone, or before much was kept."""
    made, kept = Program(), []
    of_steps = [local("h"), graph("AddmmBackward0")]
    native = [Step(StepKind.OTHER, "torch.Tensor")]
    for step in range(STEPS):
        kept.append(made.alloc(ACTIVATIONS, 16_000, TORCH))
        made.temporary(90)
        made.wait(1_000_000)
        if step in seen_after:
            made.snapshot((of_steps, kept[-1:], 1.0), whole=False)
    contexts = [Step(StepKind.MODULE, "__main__", "seen"), listed(STEPS)]
    made.snapshot((native, kept, 1.0), trigger=5)
    made.look((contexts, STEPS, 0))
    made.count(**{"__main__.GateBackward": STEPS})

    found = classes(made)[ACTIVATIONS]

    assert found.kind == "kept-graph"
    assert "There are 400 contexts GateBackward, and about as many items in list" in found.evidence


def one_graph(
    name: str = "state",
) -> Callable[[list[int]], list[tuple[list[Step], list[int], float]]]:
    return lambda losses: [([local(name), graph("AddBackward0")], losses[-1:], 1.0)]


def test_one_tensor_whose_graph_reaches_back_over_all_steps() -> None:
    found = classes(program(also=one_graph()))

    assert {finding.kind for finding in found.values()} == {"graph-chain-grows"}
    assert "there are few tensors with an autograd graph" in found[LOSSES].evidence
    assert "that of local variable 'state' of main() at program.py:12." in found[LOSSES].evidence


def test_local_variables_of_libraries_are_not_named_for_it() -> None:
    inner = Step(StepKind.LOCAL, "forward\n/lib/torch/nn/modules/container.py\n3", "input")

    def also(losses: list[int]) -> list[tuple[list[Step], list[int], float]]:
        return [([inner, graph("ReluBackward0")], losses[-2:-1], 1.0), *one_graph()(losses)]

    evidence = classes(program(also=also))[ACTIVATIONS].evidence

    assert "'input'" not in evidence
    assert "'state'" in evidence


def of_others(losses: list[int]) -> list[tuple[list[Step], list[int], float]]:
    """A tensor with a graph that is made at line 90."""
    return [([local("state"), graph("AddBackward0")], [losses[-1] + 1], 1.0)]


def test_a_snapshot_that_was_cut_short_is_not_enough_where_nothing_speaks_for_a_graph() -> None:
    assert classes(program(also=of_others, whole=False)) == {}


def test_it_is_where_the_latest_one_of_a_line_has_a_graph() -> None:
    found = classes(program(also=one_graph(), whole=False))

    assert {finding.kind for finding in found.values()} == {"graph-chain-grows"}


def in_forward(recording: Any) -> None:
    """Makes the line of activations one that a module calls."""
    sites = recording.sites
    module = ("/lib/torch/nn/modules/module.py", "Module._call_impl")
    rows = sites["line"] == ACTIVATIONS
    sites.loc[rows, ["file", "function"]] = module


def test_it_is_where_forward_passes_made_what_nothing_holds() -> None:
    found = classes(program(also=of_others, whole=False), in_forward)

    assert {finding.kind for finding in found.values()} == {"graph-chain-grows"}
    texts = [finding.evidence for finding in found.values()]
    assert any(", in the forward pass, are held by no Python object" in text for text in texts)
    assert all("and ended before it had seen everything)" in text for text in texts)


def test_weights_are_not_said_to_be_kept_by_a_graph() -> None:
    """What an optimizer allocates is not saved for a backward pass."""

    def in_optimizer(recording: Any) -> None:
        rows = recording.sites["line"] == INPUTS
        recording.sites.loc[rows, ["file", "function"]] = ("/x/torch/optim/adam.py", "Adam.step")

    found = classes(program(HISTORY), in_optimizer)

    assert sorted(finding.kind for finding in found.values()) == ["kept-graph", "kept-graph"]


def retaining(text: str) -> tuple[Callable[[Program], None], Callable[[Any], None]]:
    """In each step line 70 calls a backward pass; the second function says what is on it."""

    def change(recording: Any) -> None:
        sites = recording.sites
        engine = sites.index[sites["line"] == 71][0]
        caller = sites.index[sites["line"] == 70][0]
        sites.loc[engine, ["file", "function"]] = ("/lib/torch/autograd/graph.py", ENGINE)
        sites.loc[engine, "parent"] = caller
        sites.loc[engine, "depth"] = 2
        recording.source_line = lambda file, line, function: text if line == 70 else ""

    return lambda program: None, change


ENGINE = "_engine_run_backward"


def with_passes(every: int) -> Program:
    """The same program with a backward pass after so many steps."""
    made = Program()
    losses: list[int] = []
    made.temporary(70)
    for step in range(STEPS):
        made.alloc(INPUTS, 8_000, TORCH)
        made.alloc(ACTIVATIONS, 16_000, TORCH)
        losses.append(made.alloc(LOSSES, 4_000, TORCH))
        made.wait(1_000_000)
        if step % every == every - 1:
            made.temporary(71)
        if step + 1 == 3 * STEPS // 4:
            made.snapshot((HISTORY, losses, 1.0))
    return made


@pytest.mark.parametrize("option", ["retain_graph", "create_graph"])
def test_a_backward_pass_that_retains_its_graph(option: str) -> None:
    _, change = retaining(f"loss.backward({option} = True)")
    found = classes(with_passes(1), change)

    assert {line: finding.kind for line, finding in found.items()} == {
        INPUTS: "retained-graph",
        ACTIVATIONS: "retained-graph",
        LOSSES: "kept-graph",
    }
    assert f"it is run with {option}=True at program.py:70, and does not" in (
        found[ACTIVATIONS].evidence
    )
    assert "The graphs (NllLossBackward0) are kept by list 'history'" in found[INPUTS].evidence
    fix = fix_of(found[ACTIVATIONS])
    assert fix.startswith("leave retain_graph off") == (option == "retain_graph")
    assert ("torch.autograd.grad(loss, parameters, create_graph=True)" in fix) == (
        option == "create_graph"
    )


@pytest.mark.parametrize(
    "text",
    [
        "loss.backward()",
        "loss.backward(retain_graph=False)",
        "grads = torch.autograd.grad(loss, parameters, create_graph=True)",
    ],
)
def test_a_backward_pass_that_does_not_retain_its_graph(text: str) -> None:
    found = classes(with_passes(1), retaining(text)[1])

    assert {finding.kind for finding in found.values()} == {"kept-graph"}


def test_a_pass_that_retains_its_graph_is_not_that_of_an_evaluation() -> None:
    """Of many losses that are made between two passes, none is followed by its own."""
    found = classes(with_passes(40), retaining("loss.backward(retain_graph=True)")[1])

    assert {finding.kind for finding in found.values()} == {"kept-graph"}


def test_what_a_hook_keeps() -> None:
    found = of_losses([*PROBE, graph("ReluBackward0")])

    assert found.kind == "hook-keeps"
    assert (
        "are kept by list 'outputs' of Probe (a forward hook of 'features' of 'net' (Net, local "
        "variable of main() at program.py:12), 300 items), each with its autograd graph "
        "(ReluBackward0): in each step the hook keeps"
    ) in found.evidence


def test_what_the_graphs_keep_of_frames_that_an_exception_keeps() -> None:
    raised = [
        local("errors"),
        listed(300),
        Step(StepKind.EXCEPTION, "FloatingPointError", "__traceback__"),
        Step(StepKind.LOCAL, "forward\n/home/user/program.py\n40", "h"),
        graph("MulBackward0"),
    ]
    found = classes(program(raised))

    assert "through the autograd graphs (MulBackward0) that list" in found[ACTIVATIONS].evidence
    assert "drop its frames" in fix_of(found[ACTIVATIONS])


def test_what_the_graphs_keep_that_a_hook_keeps() -> None:
    found = classes(program([*PROBE, graph("ReluBackward0")]))

    assert {finding.kind for finding in found.values()} == {"hook-keeps"}
    assert "through the autograd graphs (ReluBackward0) that list 'outputs' of Probe" in (
        found[ACTIVATIONS].evidence
    )


def test_hooks_of_all_modules() -> None:
    steps = [
        Step(StepKind.MODULE, "torch.nn.modules.module", "_global_forward_hooks"),
        Step(StepKind.DICT, "collections.OrderedDict", "[0]", 1),
        Step(StepKind.CLOSURE, "__main__.watch.<locals>.hook", "seen"),
        listed(300),
    ]
    found = of_losses(steps)

    assert found.kind == "hook-keeps"
    assert (
        "list 'seen' (closure variable of hook(), a forward hook of all modules, 300 items)"
        in found.evidence
    )


@pytest.mark.parametrize(
    ("steps", "what"),
    [
        (ADAPTERS, "parameters"),
        ([*ADAPTERS, GRADIENT], "gradients of the parameters"),
        ([*ADAPTERS[:-2], attribute(LINEAR, "_buffers"), keyed(2)], "buffers"),
    ],
)
def test_modules_that_are_added(steps: list[Step], what: str) -> None:
    found = of_losses(steps)

    assert found.kind == "modules-grow"
    assert (
        f"are {what} in 'adapters' of 'model' (Adapted, local variable of main() at "
        "program.py:12, 300 modules): modules are added"
    ) in found.evidence


def test_a_model_of_few_modules_does_not_grow() -> None:
    few = [step if step.items < 300 else keyed(6) for step in ADAPTERS]

    assert of_losses(few).kind == "cache-only-grows"


def test_buffers_that_one_module_gets_are_no_more_modules() -> None:
    found = of_losses([local("net"), attribute(LINEAR, "_buffers"), keyed(300)])

    assert found.kind == "cache-only-grows"


@pytest.mark.parametrize(
    ("steps", "outcome"), [(ADAPTERS, "cannot-judge"), ([local("x"), listed(300)], "leak")]
)
def test_modules_for_keys_that_come_to_an_end_may_be_a_cache(
    steps: list[Step], outcome: str
) -> None:
    """Adapters are made on demand, and ever fewer requests need a new one."""
    made, chance = Program(), random.Random(1)
    adapters: dict[int, int] = {}
    for step in range(1600):
        key = chance.randrange(800)
        if key not in adapters:
            adapters[key] = made.alloc(LOSSES, 8_000, TORCH)
        made.temporary(90, 100_000)
        made.wait(1_000_000)
        if step == 1500:
            made.snapshot((steps, [*adapters.values()], 1.0))

    assert analyse(made.recording()).verdict.outcome == outcome


def test_a_later_look_that_ended_early_takes_nothing_back_of_modules() -> None:
    """It saw the graph of the last step's loss, and ended before it came to the modules."""
    made = Program()
    losses: list[int] = []
    for step in range(STEPS):
        losses.append(made.alloc(LOSSES, 8_000, TORCH))
        made.temporary(90)
        made.wait(1_000_000)
        if step == STEPS // 4:
            made.snapshot((ADAPTERS, [*losses], 1.0), whole=False)
        if step == 3 * STEPS // 4:
            loss = made.alloc(OTHERS, 4, TORCH)
            made.snapshot(([local("loss"), graph()], [loss], 1.0), whole=False)
            made.free(loss)

    assert classes(made)[LOSSES].kind == "modules-grow"


OPTIMIZER = [local("opt"), attribute(ADAM, "state"), STATES, keyed(3, "exp_avg")]


def parameters_in(*chain: Step) -> Callable[[list[int]], list[tuple[list[Step], list[int], float]]]:
    """The inputs of a program are seen as parameters that something holds."""
    return lambda losses: [([*chain], [loss - 2 for loss in losses], 1.0)]


@pytest.mark.parametrize(
    ("steps", "text"),
    [
        (OPTIMIZER, "state 'exp_avg' of optimizer 'opt' (Adam, {}300 parameters)"),
        ([*OPTIMIZER[:-1], keyed(3)], "states of optimizer 'opt' (Adam, {}300 parameters)"),
        (OPTIMIZER[:-1], "parameters in optimizer 'opt' (Adam, {}300 parameters)"),
        (
            [
                local("opt"),
                attribute(ADAM, "param_groups"),
                listed(300),
                keyed(9, "params"),
                listed(2),
            ],
            "parameters in optimizer 'opt' (Adam, {}300 groups)",
        ),
    ],
)
def test_an_optimizer_that_keeps_what_it_was_given(steps: list[Step], text: str) -> None:
    found = of_losses(steps, also=parameters_in(*OPTIMIZER[:-1]))

    assert found.kind == "optimizer-outlives-params"
    assert text.format("local variable of main() at program.py:12, ") in found.evidence
    assert "parameters are in no module any more" in found.evidence


@pytest.mark.parametrize(
    ("chain", "kind"),
    [
        (ADAPTERS, "modules-grow"),
        ([local("heads"), listed(300), attribute(LINEAR, "_parameters"), keyed(2)], "modules-grow"),
        (OPTIMIZER[:-1], "optimizer-outlives-params"),
        ([*OPTIMIZER[:-1], GRADIENT], "modules-grow"),
    ],
)
def test_states_of_parameters_that_modules_have_or_the_optimizer_alone(
    chain: list[Step], kind: str
) -> None:
    """A gradient that only the optimizer reaches is that of a parameter which was met before."""
    assert of_losses(OPTIMIZER, also=parameters_in(*chain)).kind == kind


def test_states_that_grow_for_a_few_parameters_are_no_more_modules() -> None:
    model = [local("net"), attribute(LINEAR, "_parameters"), keyed(4)]
    found = of_losses(OPTIMIZER, also=lambda losses: [(model, [n - 2 for n in losses[:4]], 1.0)])

    assert found.kind == "cache-only-grows"


def test_shared_memory() -> None:
    found = of_losses([local("hardest"), listed(300)], device=MAPPED, used=0.1)

    assert found.kind == "shared-memory-kept"
    assert "are in shared memory or mapped files, kept by list 'hardest' (" in found.evidence
    assert "use 120 kB of 1.20 MB" in found.evidence


def test_views_of_large_storages() -> None:
    found = of_losses([local("rows"), listed(300)], used=0.1)

    assert found.kind == "view-pins-base"
    assert "each view keeps its whole storage alive" in found.evidence


@pytest.mark.parametrize("used", [1.0, 0.6])
def test_views_of_the_greater_part_are_no_reason(used: float) -> None:
    assert of_losses([local("rows"), listed(300)], used=used).kind == "cache-only-grows"


def test_tensors_in_garbage_cycles() -> None:
    cycle = Step(StepKind.CYCLE, "__main__.Node", "Node.parent -> Node.children[] -> Node", 3)
    found = of_losses([cycle, attribute("__main__.Node", "data"), graph()])

    assert found.kind == "reference-cycle"
    assert found.evidence.startswith("400 tensors allocated at program.py:30 are held only by a")


def test_the_nouns_of_a_line() -> None:
    made = program([local("rows"), listed(300)], others=NUMPY)
    made_of_both = [found for found in analyse(made.recording()).findings if found.site]
    evidence = {found.site.line: found.evidence for found in made_of_both if found.site}

    assert evidence[INPUTS].startswith("400 of 400 arrays allocated at program.py:10")
    assert analyse(made.recording()).verdict.sentence.startswith(
        "Leak at program.py:20: 400 of 400 tensors allocated here were never freed."
    )


def test_a_line_that_makes_both_makes_objects() -> None:
    made = Program()
    for _ in range(STEPS):
        made.alloc(10, 8_000, TORCH)
        made.temporary(10)
        made.wait(1_000_000)

    assert "400 of 800 objects allocated here" in analyse(made.recording()).verdict.sentence


def nouns_of(*devices: int) -> str:
    made = Program()
    for device in devices:
        made.alloc(10, 8_000, device)
    recording = made.recording()
    return lifetimes(recording, Places.of(recording)).nouns


def test_the_nouns_of_a_program() -> None:
    assert nouns_of(NUMPY, NUMPY) == "arrays"
    assert nouns_of(TORCH, MAPPED, Device.TORCH_ACCELERATOR) == "tensors"
    assert nouns_of(NUMPY, TORCH) == "arrays or tensors"


def test_sentences_about_the_process_use_these_nouns() -> None:
    """A running sum of losses keeps nodes of graphs, which no line allocates."""
    rise = Rise("native", 6_000_000, 1.0, 0, Rate(6e6, 5e6, 7e6))
    text = sentences.rising(rise, 0, "arrays or tensors")

    assert text.startswith("Memory outside arrays, tensors and Python grew by 6.00 MB in 1.00 s")
    assert text.endswith("as kept by total += loss: add loss.item().")
    assert "PyTorch" not in sentences.rising(rise, 0)
    assert " 20 tensors from one line (10 with " in sentences.stable(1.0, 1e6, nouns="tensors")


# ---- words

NET = [local("net"), attribute("__main__.Net", "_modules"), keyed(2, "layer1")]
WEIGHT = [*NET, attribute(LINEAR, "_parameters"), keyed(2, "weight")]
PLACE = "local variable of main() at program.py:12"
WORDS = {
    "parameter": (WEIGHT, f"parameter 'layer1.weight' of 'net' (Net, {PLACE})"),
    "gradient": (
        [*WEIGHT, GRADIENT],
        f"gradient of parameter 'layer1.weight' of 'net' (Net, {PLACE})",
    ),
    "buffer": (
        [local("bn"), attribute("torch.nn.BatchNorm1d", "_buffers"), keyed(3, "running_mean")],
        f"buffer 'running_mean' of 'bn' (BatchNorm1d, {PLACE})",
    ),
    "parameters of a layer": (
        [*NET, attribute(LINEAR, "_parameters"), keyed(2)],
        f"parameters in 'layer1' of 'net' (Net, {PLACE}, 2 parameters)",
    ),
    "parameters of a model": (
        [*NET[:2], keyed(5), attribute(LINEAR, "_parameters"), keyed(2, "weight")],
        f"parameters of 'net' (Net, {PLACE}, 5 modules)",
    ),
    "modules in a list": (
        [local("heads"), listed(40), attribute(LINEAR, "_parameters"), keyed(2)],
        f"parameters of Linear (in list 'heads', {PLACE}, 40 items)",
    ),
    "attribute of a module": (
        [*NET, attribute("__main__.Layer", "cache"), listed(40)],
        f"list 'cache' of Layer ('layer1' of 'net' (Net, {PLACE}), 40 items)",
    ),
    "attribute of one of many modules": (
        [*NET[:2], keyed(5), attribute("__main__.Layer", "cache"), listed(40)],
        f"list 'cache' of Layer (a module of 'net' (Net, {PLACE}), 40 items)",
    ),
    "gradients in an optimizer": (
        [*OPTIMIZER[:-1], GRADIENT],
        f"gradients of the parameters in optimizer 'opt' (Adam, {PLACE}, 300 parameters)",
    ),
    "gradient of a variable": (
        [local("x"), attribute("torch.Tensor", "grad")],
        "attribute 'grad' of Tensor (local variable 'x' of main() at program.py:12)",
    ),
    "state of another object": (
        [local("game"), attribute("__main__.Game", "state"), keyed(3, "board")],
        "dict 'state' of Game (local variable 'game' of main() at program.py:12, 3 items) "
        "through key 'board'",
    ),
    "graph": (
        [local("rows"), listed(3), graph("torch::autograd::AddBackward0")],
        f"list 'rows' ({PLACE}, 3 items), with the autograd graph (torch::autograd::AddBackward0)",
    ),
}


@pytest.mark.parametrize("case", WORDS)
def test_words(case: str) -> None:
    steps, text = WORDS[case]

    assert words(steps, is_tensor=True) == text


@pytest.mark.parametrize("name", ["state", "_parameters"])
def test_arrays_are_of_no_optimizer_or_module(name: str) -> None:
    steps = [local("game"), attribute("__main__.Game", name), STATES]

    assert words(steps) == (
        f"defaultdict '{name}' of Game (local variable 'game' of main() at program.py:12, "
        "300 items)"
    )


def test_a_dict_of_tensors_is_not_the_state_of_an_optimizer() -> None:
    steps = [local("game"), attribute("__main__.Game", "state"), STATES]

    assert words(steps, is_tensor=True).startswith("defaultdict 'state' of Game (local variable")
    assert of_losses(steps).kind == "cache-only-grows"


def test_an_optimizer_of_the_program_itself() -> None:
    steps = [local("opt"), attribute("__main__.Lion", "state"), STATES, keyed(1, "momentum")]

    assert of_losses(steps, also=parameters_in(*steps[:-1])).kind == "optimizer-outlives-params"
    assert words(steps, is_tensor=True).startswith("state 'momentum' of optimizer 'opt' (Lion, ")


def test_another_dict_that_is_called_hooks_is_none() -> None:
    steps = [local("app"), attribute("__main__.App", "_webhooks"), keyed(300)]

    assert of_losses(steps).kind == "cache-only-grows"


def test_numbers_of_modules_may_change_in_the_words_for_one_holder() -> None:
    assert without_numbers(words(ADAPTERS, True)) == without_numbers(
        words([keyed(7) if step.items == 300 else step for step in ADAPTERS], True)
    )


def test_both_sides_agree_on_the_words_before_a_node_of_a_graph() -> None:
    """The reading of a recording and its analysis do not import each other."""
    assert snapshots.WITH_GRAPH == chain_text.WITH_GRAPH
    assert StepKind.GRAPH.name.lower() == snapshots.GRAPH
    assert StepKind.OTHER.name.lower() == snapshots.NATIVE
    assert {growing_models.PARAMETERS, growing_models.BUFFERS} == set(torch_text.OF_MODULES)
    assert growing_models.CHILDREN == torch_text.CHILDREN
