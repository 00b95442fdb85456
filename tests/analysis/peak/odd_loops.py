"""Training loops that are not the usual one, each a few steps: ``python odd_loops.py NAME``.

Each takes the truth inside itself (``truth.take`` of tests/pytorch/programs).
"""

import sys
from typing import Any

import torch
import torch.nn.functional as F
from torch import nn
from truth import take

STEPS = 5


def network() -> nn.Module:
    return nn.Sequential(
        nn.Linear(64, 256),
        nn.ReLU(),
        nn.Linear(256, 256),
        nn.LayerNorm(256),
        nn.GELU(),
        nn.Linear(256, 10),
    )


def batch() -> tuple[torch.Tensor, torch.Tensor]:
    return torch.randn(32, 64), torch.randint(10, (32,))


def steps_of(model: nn.Module, optimizer: torch.optim.Optimizer, **options: Any) -> None:
    """The usual loop, but for the options."""
    scaler = torch.amp.GradScaler("cpu") if options.get("amp") else None
    for step in range(STEPS):
        x, y = batch()
        of = {"modules": [model], "optimizers": [optimizer], "inputs": [x, y]}
        if not options.get("clear_last"):
            optimizer.zero_grad(set_to_none=options.get("set_to_none", True))
        with torch.autocast("cpu", torch.bfloat16, enabled=scaler is not None):
            loss = F.cross_entropy(model(x), y)
        take("forward", step, roots=[loss], **of)
        (scaler.scale(loss) if scaler else loss).backward()
        take("backward", step, roots=[loss], **of)
        if scaler:
            scaler.step(optimizer)
            scaler.update()
        else:
            optimizer.step()
        if options.get("clear_last"):
            optimizer.zero_grad()
        take("step", step, roots=[loss], **of)


def zeroed_in_place() -> None:
    model = network()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    steps_of(model, optimizer, set_to_none=False)


def plain_sgd() -> None:
    model = network()
    steps_of(model, torch.optim.SGD(model.parameters(), lr=0.1), clear_last=True)


def mixed_precision() -> None:
    model = network()
    steps_of(model, torch.optim.AdamW(model.parameters()), amp=True)


def optimizers_within_backward() -> None:
    model = network()
    optimizers = {p: torch.optim.AdamW([p]) for p in model.parameters()}

    def update(parameter: torch.Tensor) -> None:
        optimizers[parameter].step()
        optimizers[parameter].zero_grad()

    for parameter in model.parameters():
        parameter.register_post_accumulate_grad_hook(update)
    for step in range(STEPS):
        x, y = batch()
        of = {"modules": [model], "optimizers": list(optimizers.values()), "inputs": [x, y]}
        loss = F.cross_entropy(model(x), y)
        take("forward", step, roots=[loss], **of)
        loss.backward()
        take("backward", step, roots=[loss], **of)


def two_losses_of_one_graph() -> None:
    model = network()
    optimizer = torch.optim.Adam(model.parameters())
    for step in range(STEPS):
        x, y = batch()
        of = {"modules": [model], "optimizers": [optimizer], "inputs": [x, y]}
        optimizer.zero_grad()
        out = model(x)
        first, second = F.cross_entropy(out, y), out.pow(2).mean()
        take("forward", step, roots=[first, second], **of)
        first.backward(retain_graph=True)
        take("backward", step, roots=[first, second], **of)
        second.backward()
        optimizer.step()
        take("step", step, roots=[first, second], **of)


def validation_with_graph() -> None:
    model = network()
    optimizer = torch.optim.Adam(model.parameters())
    for step in range(STEPS):
        x, y = batch()
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        for more in range(2):
            x, y = batch()
            valid = F.cross_entropy(model(x), y)
            of = {"modules": [model], "optimizers": [optimizer], "inputs": [x, y]}
            take("forward", 10 * step + more, roots=[valid, loss], **of)


class Gated(torch.autograd.Function):
    """Saves a tensor for backward, and another one as an attribute."""

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
        ctx.save_for_backward(x)
        ctx.mask = (x > 0).float()
        return x * x

    @staticmethod
    def backward(ctx: Any, gradient: torch.Tensor) -> torch.Tensor:
        (x,) = ctx.saved_tensors
        return 2 * gradient * x * ctx.mask


class WithGate(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.inner = network()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return Gated.apply(self.inner(x))


def function_of_the_program() -> None:
    model = WithGate()
    steps_of(model, torch.optim.Adam(model.parameters()))


def saved_tensors_are_copied() -> None:
    model = network()
    with torch.autograd.graph.saved_tensors_hooks(lambda t: t.clone(), lambda t: t):
        steps_of(model, torch.optim.Adam(model.parameters()))


def three_models_one_after_the_other() -> None:
    for _ in range(3):
        model = network()
        optimizer = torch.optim.Adam(model.parameters())
        steps_of(model, optimizer)


def outputs_are_collected() -> None:
    model = network()
    optimizer = torch.optim.Adam(model.parameters())
    kept = []
    for step in range(STEPS):
        x, y = batch()
        optimizer.zero_grad()
        out = model(x)
        loss = F.cross_entropy(out, y)
        loss.backward()
        optimizer.step()
        kept.append(out.detach())
        of = {"modules": [model], "optimizers": [optimizer], "inputs": [x, y]}
        take("step", step, roots=[loss], **of)


if __name__ == "__main__":
    torch.manual_seed(0)
    torch.set_num_threads(1)
    globals()[sys.argv[1]]()
