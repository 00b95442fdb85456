"""Simulated programs of PyTorch that leak losses, and the chains that a snapshot saw hold them."""

from collections.abc import Callable
from typing import Any

from support.traces import Program

from tlmem.analysis import analyse
from tlmem.analysis.leaks.cures import FIXES
from tlmem.analysis.model import Finding
from tlmem.events import Device
from tlmem.recording.format.chains import ChainStep as Step
from tlmem.recording.format.chains import StepKind

STEPS = 400
OBJECTS = 4 * STEPS
TORCH, MAPPED, NUMPY = Device.TORCH, Device.TORCH_MAPPED, Device.NUMPY
MAIN = "main\n/home/user/program.py\n12"
INPUTS, ACTIVATIONS, LOSSES, OTHERS = 10, 20, 30, 40
"""Lines of the simulated program."""


def local(name: str) -> Step:
    return Step(StepKind.LOCAL, MAIN, name)


def listed(items: int) -> Step:
    return Step(StepKind.LIST, "list", "[]", items)


def keyed(items: int, key: str = "") -> Step:
    return Step(StepKind.DICT, "dict", f"['{key}']" if key else "[]", items)


def attribute(of: str, name: str) -> Step:
    return Step(StepKind.INSTANCE, of, name)


def graph(node: str = "NllLossBackward0") -> Step:
    return Step(StepKind.GRAPH, node)


LINEAR = "torch.nn.modules.linear.Linear"
ADAM = "torch.optim.adam.Adam"
GRADIENT = attribute("torch.nn.parameter.Parameter", "grad")
STATES = Step(StepKind.DICT, "collections.defaultdict", "[]", 300)
HOOK = [
    local("net"),
    attribute("__main__.Net", "_modules"),
    keyed(2, "features"),
    attribute("torch.nn.modules.container.Sequential", "_forward_hooks"),
    Step(StepKind.DICT, "collections.OrderedDict", "[0]", 1),
]
PROBE = [
    *HOOK,
    Step(StepKind.METHOD, "method", "__self__"),
    attribute("__main__.Probe", "outputs"),
    listed(300),
]
ADAPTERS = [
    local("model"),
    attribute("__main__.Adapted", "_modules"),
    keyed(2, "adapters"),
    attribute("torch.nn.modules.container.ModuleList", "_modules"),
    keyed(300),
    attribute(LINEAR, "_parameters"),
    keyed(2),
]


def program(
    *holders: list[Step],
    used: float = 1.0,
    whole: bool = True,
    device: int = TORCH,
    others: int = TORCH,
    also: Callable[[list[int]], list[tuple[list[Step], list[int], float]]] = lambda losses: [],
    before: Callable[[Program], None] = lambda program: None,
) -> Program:
    """In each step an input, an activation and a loss are made and kept.

    A snapshot after three quarters of the steps sees, by ``holders``, what keeps the losses: in as
    many parts as there are holders. Of inputs and activations it sees nothing.
    """
    made = Program()
    losses: list[int] = []
    for step in range(STEPS):
        made.alloc(INPUTS, 8_000, others)
        made.alloc(ACTIVATIONS, 16_000, TORCH)
        losses.append(made.alloc(LOSSES, 4_000, device))
        made.temporary(90)
        made.wait(1_000_000)
        if step + 1 == 3 * STEPS // 4:
            before(made)
            parts = [losses[n :: len(holders)] for n in range(len(holders))]
            seen = [(steps, part, used) for steps, part in zip(holders, parts, strict=True)]
            if seen or also(losses):
                made.snapshot(*seen, *also(losses), whole=whole)
    return made


def classes(made: Program, change: Callable[[Any], None] = lambda recording: None) -> dict:
    """The class of each line, as a finding."""
    recording = made.recording()
    change(recording)
    found = [found for found in analyse(recording).findings if found.kind in FIXES]
    return {finding.site.line: finding for finding in found if finding.site is not None}


def of_losses(*holders: list[Step], **more: Any) -> Finding:
    return classes(program(*holders, **more))[LOSSES]


HISTORY = [local("history"), listed(300), graph()]
