"""Training steps in PyTorch: tiny, ``a + b``, GPT blocks, a ResNet; plain or under its tools."""

import contextlib
import ctypes
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

import torch
import torch.nn.functional as F
from torch import nn

LAST = [0.0]
M_TRIM_THRESHOLD, M_MMAP_THRESHOLD = -1, -3
"""Of ``mallopt``, as glibc's ``malloc.h`` numbers them."""
torch.set_num_threads(1)
torch.manual_seed(0)


class Block(nn.Module):
    """One block of a decoder, as in GPT-2."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.ln_1, self.ln_2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.fc, self.proj = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Attention and a feed-forward layer, each added to what comes in."""
        batch, time_, width = x.shape
        parts = self.qkv(self.ln_1(x)).split(width, 2)
        q, k, v = (p.view(batch, time_, self.heads, -1).transpose(1, 2) for p in parts)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(y.transpose(1, 2).reshape(x.shape))
        return x + self.proj(F.gelu(self.fc(self.ln_2(x))))


class GPT(nn.Module):
    """Four blocks of width 128; head and embedding have one weight."""

    def __init__(self) -> None:
        super().__init__()
        self.wte, self.ln_f = nn.Embedding(256, 128), nn.LayerNorm(128)
        self.h = nn.ModuleList([Block(128, 4) for _ in range(4)])
        self.head = nn.Linear(128, 256, bias=False)
        self.head.weight = self.wte.weight

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        """Scores of the next token."""
        x = self.wte(tokens)
        for block in self.h:
            x = block(x)
        return self.head(self.ln_f(x))


class Residual(nn.Module):
    """Two convolutions around a shortcut."""

    def __init__(self, inside: int, outside: int, stride: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(inside, outside, 3, stride, 1, bias=False)
        self.bn1, self.bn2 = nn.BatchNorm2d(outside), nn.BatchNorm2d(outside)
        self.conv2 = nn.Conv2d(outside, outside, 3, 1, 1, bias=False)
        self.short = nn.Conv2d(inside, outside, 1, stride, bias=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """The sum of both ways."""
        y = self.bn2(self.conv2(F.relu(self.bn1(self.conv1(x)))))
        return F.relu(y + self.short(x))


def step_of(
    model: nn.Module, optimizer: torch.optim.Optimizer, x: torch.Tensor, y: torch.Tensor
) -> Callable[[], None]:
    """One step of training on one batch."""

    def step() -> None:
        scores = model(x)
        loss = F.cross_entropy(scores.flatten(0, -2), y.flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

    return step


def keep_freed_memory() -> None:
    """Lets glibc keep what a step frees, so that none of it is a page fault in the next step."""
    if sys.platform == "linux":
        library = ctypes.CDLL(None)
        library.mallopt(M_MMAP_THRESHOLD, 1 << 25)
        library.mallopt(M_TRIM_THRESHOLD, 1 << 30)


def loops() -> dict[str, tuple[Callable[[], Any], int]]:
    """Loop -> what is repeated, and how often for a unit."""
    tiny = nn.Sequential(nn.Linear(32, 64), nn.ReLU(), nn.Linear(64, 10))
    gpt = GPT()
    resnet = nn.Sequential(
        Residual(3, 16, 1), Residual(16, 32, 2), nn.AdaptiveAvgPool2d(1), nn.Flatten(),
        nn.Linear(32, 10),
    )  # fmt: skip
    a, b = torch.ones(10), torch.ones(10)
    classes, tokens = torch.randint(0, 10, (16,)), torch.randint(0, 256, (8, 64))
    images, rows = torch.randn(16, 3, 32, 32), torch.randn(16, 32)
    sgd, adam = torch.optim.SGD, torch.optim.AdamW
    resnet_step = step_of(resnet, sgd(resnet.parameters(), 0.01), images, classes)
    return {
        "tiny": (step_of(tiny, sgd(tiny.parameters(), 0.01), rows, classes), 10),
        "add": (lambda: a + b, 50),
        "gpt": (step_of(gpt, adam(gpt.parameters()), tokens, tokens), 1),
        "resnet": (resnet_step, 1),
        "resnet_kept": (resnet_step, 1),
    }


@contextlib.contextmanager
def watched(tool: str) -> Iterator[Callable[[], None]]:
    """The tool that was asked for; what it yields is called after each step."""
    if tool == "profiler":
        from torch.profiler import ProfilerActivity, profile

        options = {"profile_memory": True, "with_stack": True, "record_shapes": True}
        with profile(activities=[ProfilerActivity.CPU], **options):
            yield lambda: None
    elif tool == "memtracker":
        from torch.distributed._tools.mem_tracker import MemTracker

        tracker = MemTracker()
        with tracker:
            yield tracker.reset_mod_stats
    else:
        yield lambda: None


def prepare(tool: str = "none") -> dict[str, Callable[[int], object]]:
    """The loops, under a tool that is switched on for a turn."""

    def repeated(name: str, work: Callable[[], Any], steps: int) -> Callable[[int], object]:
        def play(units: int) -> None:
            if name == "resnet_kept":
                keep_freed_memory()
            with watched(tool) as after:
                began = time.process_time()
                for _ in range(units * steps):
                    work()
                    after()
                LAST[0] = time.process_time() - began

        return play

    return {name: repeated(name, work, steps) for name, (work, steps) in loops().items()}


def spent() -> float:
    """CPU seconds of the last turn's steps, without starting and stopping a tool."""
    return LAST[0]
