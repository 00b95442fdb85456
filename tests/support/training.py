"""Training loops that never ran, as recordings: events of PyTorch's blocks with their stacks.

Covers: stacks as those of PyTorch 2.13, allocations and frees, module paths, marks. Each call is
one event, 1 microsecond after the one before.
"""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from support import writer

from tlmem.recording.reader import Recording, read

TICKS_PER_EVENT, START = 2_000, 1_000_000
ALLOC, FREE, MARK, MODULE_PATH, AUTOGRAD = 1, 2, 32, 37, 38
NUMPY, TORCH, PROBE, MAPPED, ACCELERATOR, CPU = 1, 2, 3, 4, 5, 16
SCRIPT, SITE = "/home/ada/train.py", "/usr/lib/python3.11/site-packages/"
LIBRARY = f"{SITE}torch/"

Frame = tuple[str, str, int]
Stack = tuple[Frame, ...]
"""Frames, outermost first: file, function, line."""


def at(line: int, function: str = "main") -> Stack:
    """The program's own code."""
    return ((SCRIPT, "<module>", 1), (SCRIPT, function, line))


def torch(file: str, function: str, line: int = 1) -> Frame:
    """A frame of PyTorch."""
    return (f"{LIBRARY}{file}", function, line)


CALL = (
    torch("nn/modules/module.py", "Module._wrapped_call_impl", 1776),
    torch("nn/modules/module.py", "Module._call_impl", 1787),
)


def forward(line: int = 30, name: str = "Net", caller: int = 60) -> Stack:
    """In the forward of a module of the program."""
    return (*at(caller), *CALL, (SCRIPT, f"{name}.forward", line))


def init(line: int = 20, name: str = "Net") -> Stack:
    """A layer made in the constructor of a module of the program."""
    layer = torch("nn/modules/linear.py", "Linear.__init__", 108)
    return (*at(50), (SCRIPT, f"{name}.__init__", line), layer)


def raw_init(line: int = 21, name: str = "Net") -> Stack:
    """A tensor made by the constructor of a module of the program itself."""
    return (*at(50), (SCRIPT, f"{name}.__init__", line))


def backward(line: int = 70) -> Stack:
    """In the autograd engine."""
    return (
        *at(line),
        torch("_tensor.py", "Tensor.backward", 630),
        torch("autograd/__init__.py", "backward", 364),
        torch("autograd/graph.py", "_engine_run_backward", 865),
    )


def seed(line: int = 70) -> Stack:
    """The gradient of the root."""
    make = torch("autograd/__init__.py", "_make_grads", 226)
    return (*backward(line)[:-1], make)


def recomputed(line: int = 30, name: str = "Net") -> Stack:
    """A forward within a backward pass."""
    again = torch("utils/checkpoint.py", "_checkpoint_hook.__init__.<locals>.unpack_hook", 1170)
    return (*backward(), again, *CALL, (SCRIPT, f"{name}.forward", line))


def optimizer(line: int = 80, file: str = "optim/adamw.py", function: str = "AdamW.step") -> Stack:
    """In the step of an optimizer."""
    wrapper = torch("optim/optimizer.py", "Optimizer.profile_hook_step.<locals>.wrapper", 526)
    return (*at(line), wrapper, torch(file, function, 220))


def zero_grad(line: int = 90) -> Stack:
    """In ``zero_grad`` of an optimizer."""
    return (*at(line), torch("optim/optimizer.py", "Optimizer.zero_grad", 1030))


def data(line: int = 55) -> Stack:
    """In a data loader, which calls a collate function of the program."""
    step = torch("utils/data/dataloader.py", "_BaseDataLoaderIter.__next__", 733)
    return (*at(line), step, (SCRIPT, "collate", 12))


def deepcopy(of_parameter: bool = False, line: int = 52) -> Stack:
    """In ``copy.deepcopy`` of a tensor or a parameter."""
    file, name = ("nn/parameter.py", "Parameter") if of_parameter else ("_tensor.py", "Tensor")
    copy = ("/usr/lib/python3.11/copy.py", "deepcopy", 153)
    return (*at(line), copy, torch(file, f"{name}.__deepcopy__", 80))


class Loop:
    """Events of a program, in the order of calls."""

    def __init__(self) -> None:
        self.rows: dict[int, list[tuple]] = {1: []}
        self.sites: dict[tuple[int, int, int], int] = {}
        self.codes: dict[tuple[str, str], int] = {}
        self.labels: dict[str, int] = {}
        self.names: dict[int, str] = {1: "main"}
        self.notes: dict[str, str] = {"script": SCRIPT, "python.sites": SITE}
        self.sizes: dict[int, tuple[int, int]] = {}
        self.snapshots: list[bytes] = []
        self.now = START
        self.next_address = 0x10000

    def event(
        self, kind: int, obj: int, arg: int, site: int = 0, device: int = 0, thread: int = 1
    ) -> None:
        """Any event."""
        self.now += TICKS_PER_EVENT
        row = (self.now, obj, arg, site, 0, kind, device)
        self.rows.setdefault(thread, []).append(row)

    def site(self, stack: Stack) -> int:
        """The number of a stack."""
        parent = 0
        for file, function, line in stack:
            code = self.codes.setdefault((file, function), len(self.codes) + 1)
            parent = self.sites.setdefault((parent, code, line), len(self.sites) + 2)
        return parent

    def label(self, text: str) -> int:
        """The number of a label."""
        return self.labels.setdefault(text, len(self.labels) + 1)

    def alloc(
        self,
        stack: Stack,
        size: int,
        path: str = "",
        *,
        device: int = TORCH,
        accelerator: int = 0,
        thread: int = 1,
        node: int | None = None,
    ) -> int:
        """Allocates a block; returns its address, by which it is freed.

        Args:
            path: of its module.
            node: argument of an ``autograd`` event.
        """
        self.next_address += 0x100
        address = self.next_address | accelerator << 56
        self.sizes[address] = (size, device)
        self.event(ALLOC, address, size, self.site(stack), device, thread)
        if path:
            self.event(MODULE_PATH, address, self.label(path), 0, device, thread)
        if node is not None:
            self.event(AUTOGRAD, address, node, 0, device, thread)
        return address

    def free(self, address: int, stack: Stack, thread: int = 1) -> None:
        """Frees a block."""
        self.event(FREE, address, 0, self.site(stack), self.sizes[address][1], thread)

    def free_all(self, addresses: Sequence[int], stack: Stack, thread: int = 1) -> None:
        """Frees blocks, one directly after the other."""
        for address in addresses:
            self.free(address, stack, thread)

    def mark(self, label: str, index: int = 0) -> None:
        """The program's own mark."""
        self.event(MARK, self.label(label), index, self.site(at(99)))

    def snapshot(
        self,
        *chains: tuple[Sequence[tuple], Sequence[int], int],
        bytes_more: int = 0,
        is_whole: bool = True,
    ) -> None:
        """A snapshot of holders: steps, addresses, and how many of these it names, evenly chosen.

        Args:
            bytes_more: added to the bytes that each chain holds.
        """
        self.now += TICKS_PER_EVENT
        number = len(self.snapshots) + 1
        found = b""
        for group, (steps, addresses, most) in enumerate(chains):
            size = sum(self.sizes[address][0] for address in addresses)
            found += writer.holding(
                number,
                group,
                self.now,
                steps,
                addresses[:: -(-len(addresses) // most)],
                trigger=4,
                arrays=len(addresses),
                held_bytes=size + bytes_more,
                used_bytes=size,
                device=TORCH,
            )
        flags = 0 if is_whole else 1
        self.snapshots.append(found + writer.holding_totals(number, self.now, flags=flags))

    def write(self, path: Path, form: str = "sealed") -> Path:
        """Writes the recording; an ``open`` program was killed: form ``compact``."""
        last = self.now - START
        header = writer.Header(
            last_ticks=START + last + 2_000, last_ns=5_000_000 + (last + 2_000) // 2
        )
        sites = sorted((number, *about) for about, number in self.sites.items())
        meta = [
            *(writer.note(*pair) for pair in self.notes.items()),
            *(writer.label(number, text) for text, number in self.labels.items()),
            *(writer.code(number, *about) for about, number in self.codes.items()),
            *(writer.site(*site) for site in sites),
            *(writer.thread(n, name, main=n == 1, os_id=n) for n, name in self.names.items()),
            *self.snapshots,
        ]
        threads = {number: writer.events(rows) for number, rows in self.rows.items() if rows}
        return writer.RecordingWriter(header=header, form=form, meta=meta, threads=threads).write(
            path
        )

    def recorded(self, path: Path, form: str = "sealed") -> Recording:
        """Writes the recording and opens it."""
        return read(self.write(path, form))


def trained(
    steps: int = 4, blocks: int = 4, *, unit: int = 16_384, batch: int = 4, clear: str = "early"
) -> Loop:
    """A net of equal blocks, trained by AdamW: one weight a block, two activations and a temporary.

    Args:
        batch: activations are so many units large, weights one unit.
        clear: when gradients are freed: ``early`` (before forward), ``late`` (before backward).
    """
    loop = Loop()
    weights = [loop.alloc(init(), unit) for _ in range(blocks)]
    states: list[int] = []
    gradients: list[int] = []
    node = 0
    for step in range(steps):
        batch_block = loop.alloc(at(56), batch * unit)
        if clear == "early":
            loop.free_all(gradients, zero_grad())
            gradients = []
        saved: list[tuple[int, int, int]] = []
        for number in range(blocks):
            path = f"Net/h.{number}"
            hidden = loop.alloc(forward(31), batch * unit, f"{path}.fc", node=2 * (node + 1))
            passing = loop.alloc(forward(32), unit, path)
            output = loop.alloc(forward(33), batch * unit, path, node=2 * (node + 2))
            loop.free(passing, forward(33))
            saved.append((hidden, output, node))
            node += 2
        loss = loop.alloc(forward(34), 64)
        if clear == "late":
            loop.free_all(gradients, zero_grad())
            gradients = []
        root = loop.alloc(seed(), 64)
        for hidden, output, first in reversed(saved):
            passing = loop.alloc(backward(), batch * unit, node=2 * (first + 1) + 1)
            loop.free(output, backward())
            gradients.append(loop.alloc(backward(), unit, node=2 * first + 1))
            loop.free(hidden, backward())
            loop.free(passing, backward())
        loop.free(root, backward()[:-1])
        if not step:
            states = [loop.alloc(optimizer(), unit) for _ in range(2 * blocks)]
        passing = loop.alloc(optimizer(), unit)
        loop.free(passing, optimizer())
        loop.free(loss, at(60))
        loop.free(batch_block, at(56))
    del weights, states
    return loop


def sizes_by(names: np.ndarray, sizes: np.ndarray) -> dict[str, int]:
    """Sums of sizes by name."""
    return {str(name): int(sizes[names == name].sum()) for name in np.unique(names)}
