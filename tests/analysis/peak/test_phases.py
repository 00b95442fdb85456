"""Which phase a stack is in: from frames as those of PyTorch, callers before those they called."""

from pathlib import Path

import pytest
from support import training
from support.training import LIBRARY, SCRIPT, Loop, Stack

from tlmem.analysis.peak.blocks import blocks_of
from tlmem.analysis.peak.phases import Phase, meaning_of_frame, site_phases

MODULE_IN_BACKWARD = (*training.backward(), *training.CALL, (SCRIPT, "Net.forward", 31))
NESTED = (*training.recomputed(), training.torch("autograd/graph.py", "_engine_run_backward"))
STACKS: dict[str, tuple[Stack, Phase]] = {
    "the program": (training.at(10), Phase.USER),
    "forward": (training.forward(), Phase.FORWARD),
    "a layer in __init__": (training.init(), Phase.INIT),
    "backward": (training.backward(), Phase.BACKWARD),
    "the gradient of the root": (training.seed(), Phase.SEED),
    "checkpointing": (training.recomputed(), Phase.RECOMPUTED),
    "a module called by backward": (MODULE_IN_BACKWARD, Phase.RECOMPUTED),
    "backward in what is computed again": (NESTED, Phase.BACKWARD),
    "optimizer": (training.optimizer(), Phase.OPTIMIZER),
    "an optimizer of the program": (
        (*training.optimizer()[:-1], (SCRIPT, "Lion.step", 5)),
        Phase.OPTIMIZER,
    ),
    "forward in a closure of an optimizer": (
        (*training.optimizer(function="LBFGS.step"), *training.forward()),
        Phase.FORWARD,
    ),
    "forward of a model, called as a method": (
        (*training.at(10), (SCRIPT, "Net.forward", 30)),
        Phase.FORWARD,
    ),
    "forward of a layer, called as a method": (
        (*training.at(10), training.torch("nn/modules/linear.py", "Linear.forward")),
        Phase.FORWARD,
    ),
    "a function named forward in a data set": (
        (*training.data(), (SCRIPT, "forward", 7)),
        Phase.DATA,
    ),
    "a function named forward in backward": (
        (*training.backward(), (SCRIPT, "Square.forward", 8)),
        Phase.BACKWARD,
    ),
    "zero_grad": (training.zero_grad(), Phase.ZERO_GRAD),
    "zero_grad of a module": (
        (*training.at(9), training.torch("nn/modules/module.py", "Module.zero_grad")),
        Phase.ZERO_GRAD,
    ),
    "to()": (
        (*training.at(9), training.torch("nn/modules/module.py", "Module.to.<locals>.convert")),
        Phase.INIT,
    ),
    "load_state_dict": (
        (*training.at(9), training.torch("nn/modules/module.py", "Module.load_state_dict")),
        Phase.INIT,
    ),
    "nn.init": ((*training.at(9), training.torch("nn/init.py", "normal_")), Phase.INIT),
    "a lazy parameter in forward": (
        (
            *training.forward(),
            training.torch("nn/parameter.py", "UninitializedTensorMixin.materialize"),
        ),
        Phase.INIT,
    ),
    "a data loader": (training.data(), Phase.DATA),
    "deep copy": (training.deepcopy(), Phase.COPY),
    "deep copy of a parameter": (training.deepcopy(True, 53), Phase.INIT),
    "deep copy of a buffer with it": (training.deepcopy(False, 53), Phase.INIT),
    "deep copies of layers in __init__": (
        (*training.init(), training.torch("_tensor.py", "Tensor.__deepcopy__")),
        Phase.INIT,
    ),
    "a schedule of the learning rate": (
        (*training.at(9), training.torch("optim/lr_scheduler.py", "LambdaLR.__init__")),
        Phase.USER,
    ),
    "the end of autocast": (
        (*training.at(9), training.torch("amp/autocast_mode.py", "autocast.__exit__")),
        Phase.CASTS,
    ),
    "clipping": (
        (*training.at(9), training.torch("nn/utils/clip_grad.py", "clip_grad_norm_")),
        Phase.USER,
    ),
}


@pytest.mark.parametrize("name", STACKS)
def test_each_stack_is_in_its_phase(name: str, tmp_path: Path) -> None:
    loop = Loop()
    for stack, _ in STACKS.values():
        loop.alloc(stack, 64)
    recording = loop.recorded(tmp_path / "a.tlm")
    found = site_phases(recording.sites)

    stack, expected = STACKS[name]
    assert Phase(int(found.phase[loop.site(stack)])) == expected


def test_a_constructor_of_a_module_builds_it_also_without_a_layer(tmp_path: Path) -> None:
    """``nn.Parameter(torch.zeros(...))`` in ``Net.__init__``; ``Trainer`` is not a module."""
    loop = Loop()
    loop.alloc(training.raw_init(), 64)
    loop.alloc(training.raw_init(name="Trainer"), 64)
    loop.alloc(training.forward(), 64)
    blocks = blocks_of(loop.recorded(tmp_path / "a.tlm"))

    assert blocks.born_phase.tolist() == [Phase.INIT, Phase.USER, Phase.FORWARD]


def test_threads_of_the_engine_are_in_backward_without_any_frame(tmp_path: Path) -> None:
    loop = Loop()
    loop.names[2] = "pt_autograd_0"
    loop.names[3] = "worker"
    for thread in (2, 3):
        loop.alloc((), 64, thread=thread)
    loop.alloc(training.forward(), 64, thread=2)
    blocks = blocks_of(loop.recorded(tmp_path / "a.tlm"))

    assert blocks.born_phase.tolist() == [Phase.BACKWARD, Phase.USER, Phase.RECOMPUTED]
    assert blocks.born_in_backward.tolist() == [True, False, True]


@pytest.mark.parametrize(
    ("file", "function", "expected"),
    [
        ("/home/ada/optim/adam.py", "Adam.step", Phase.USER),
        ("C:\\site-packages\\torch\\optim\\adam.py", "Adam.step", Phase.OPTIMIZER),
        (f"{LIBRARY}nn/modules/linear.py", "Linear.extra_repr", Phase.USER),
        ("", "", Phase.USER),
        ("/torch/", "", Phase.USER),
    ],
)
def test_what_a_frame_says_by_itself(file: str, function: str, expected: Phase) -> None:
    assert meaning_of_frame(file, function) == expected


def test_the_frames_that_are_known_are_those_of_the_pytorch_that_is_installed() -> None:
    """A version that names them otherwise must be noticed here, not in a report."""
    torch = pytest.importorskip("torch", reason="needs PyTorch: pip install tlmem[torch]")
    from torch.autograd import graph
    from torch.utils import checkpoint

    functions = {
        torch.nn.Module._wrapped_call_impl: 100,
        torch.nn.Module._call_impl: 100,
        torch.nn.Module._apply: Phase.INIT,
        torch.nn.Module.load_state_dict: Phase.INIT,
        torch.nn.Module.zero_grad: Phase.ZERO_GRAD,
        torch.nn.Linear.__init__: Phase.INIT,
        torch.nn.Parameter.__deepcopy__: 102,
        torch.Tensor.__deepcopy__: Phase.COPY,
        torch.Tensor.backward: Phase.BACKWARD,
        torch.autograd.backward: Phase.BACKWARD,
        torch.autograd.grad: Phase.BACKWARD,
        torch.autograd._make_grads: Phase.SEED,
        graph._engine_run_backward: Phase.BACKWARD,
        checkpoint.checkpoint: 101,
        torch.random.get_rng_state: Phase.COPY,
    }
    for function, expected in functions.items():
        inner = getattr(function, "__wrapped__", function)
        code = inner.__code__
        assert meaning_of_frame(code.co_filename, code.co_qualname) == expected, code.co_qualname
