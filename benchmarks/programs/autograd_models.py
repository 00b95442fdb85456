"""Models that are trained with tlmem and with PyTorch: the same operations, in the words of each.

A model is made once for a library; ``loss()`` computes forward, ``step()`` is all of a training
step. Weights begin with the same numbers in both, so that their losses agree.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import tlmem
import tlmem.optim

try:
    import torch
except ImportError:
    torch = None

RATE = 0.05
Array = np.ndarray


class Ours:
    """The words of tlmem. A weight of a layer is stored as [in, out]."""

    name = "tlmem"
    relu = staticmethod(tlmem.relu)
    gelu = staticmethod(tlmem.gelu)
    matmul = staticmethod(tlmem.matmul)
    softmax = staticmethod(tlmem.softmax)
    cross_entropy = staticmethod(tlmem.cross_entropy)
    permute = staticmethod(tlmem.permute)
    linear = staticmethod(tlmem.linear)

    @staticmethod
    def data(array: Array) -> Any:
        return tlmem.tensor(array, None)

    @staticmethod
    def weight(array: Array) -> Any:
        return tlmem.tensor(array, None, requires_grad=True)

    layer = weight

    @staticmethod
    def layer_norm(x: Any, weight: Any, bias: Any) -> Any:
        return tlmem.layer_norm(x, weight, bias)

    @staticmethod
    def sgd(weights: list[Any]) -> Any:
        return tlmem.optim.SGD(weights, lr=RATE)

    @staticmethod
    def clear(optimiser: Any) -> None:
        optimiser.clear_grads()


class Theirs:
    """The words of PyTorch. A weight of a layer is stored as [out, in], as its own layers do."""

    name = "torch"
    if torch:
        relu = staticmethod(torch.relu)
        gelu = staticmethod(torch.nn.functional.gelu)
        matmul = staticmethod(torch.matmul)
        softmax = staticmethod(torch.softmax)
        cross_entropy = staticmethod(torch.nn.functional.cross_entropy)
        permute = staticmethod(torch.permute)
        linear = staticmethod(torch.nn.functional.linear)

    @staticmethod
    def data(array: Array) -> Any:
        return torch.from_numpy(array.copy())

    @staticmethod
    def weight(array: Array) -> Any:
        return torch.from_numpy(array.copy()).requires_grad_()

    @staticmethod
    def layer(array: Array) -> Any:
        return torch.from_numpy(array.T.copy()).requires_grad_()

    @staticmethod
    def layer_norm(x: Any, weight: Any, bias: Any) -> Any:
        return torch.nn.functional.layer_norm(x, weight.shape, weight, bias)

    @staticmethod
    def sgd(weights: list[Any]) -> Any:
        return torch.optim.SGD(weights, lr=RATE)

    @staticmethod
    def clear(optimiser: Any) -> None:
        optimiser.zero_grad()


class Model:
    """Weights, a batch, and how they are trained."""

    def __init__(self, library: Any) -> None:
        self.library = library
        self.random = np.random.default_rng(11)
        self.weights: list[Any] = []
        self.data: list[Any] = []
        self.build()
        self.optimiser = library.sgd(self.weights)

    def build(self) -> None:
        """Fills weights and data."""
        raise NotImplementedError

    def loss(self) -> Any:
        """Forward."""
        raise NotImplementedError

    def step(self) -> None:
        """Forward, backward, update; gradients go."""
        self.loss().backward()
        self.optimiser.step()
        self.library.clear(self.optimiser)

    def normal(self, *shape: int) -> Array:
        """Numbers of the size that weights begin with."""
        numbers = self.random.standard_normal(shape) / np.sqrt(shape[0])
        return numbers.astype(np.float32)

    def dense(self, inputs: int, outputs: int) -> tuple[Any, Any]:
        """Weight and bias of a layer."""
        weight = self.library.layer(self.normal(inputs, outputs))
        bias = self.library.weight(np.zeros(outputs, np.float32))
        self.weights += [weight, bias]
        return weight, bias

    def given(self, array: Array) -> Any:
        """Something that is not trained."""
        self.data.append(self.library.data(array))
        return self.data[-1]


class MLP(Model):
    """Layers with relu between them, and cross entropy at the end."""

    sizes = (16, 32, 10)
    batch = 32

    def build(self) -> None:
        pairs = zip(self.sizes[:-1], self.sizes[1:], strict=True)
        self.layers = [self.dense(*pair) for pair in pairs]
        self.x = self.given(self.normal(self.batch, self.sizes[0]))
        self.target = self.given(self.random.integers(0, self.sizes[-1], self.batch))

    def loss(self) -> Any:
        library, x = self.library, self.x
        for weight, bias in self.layers[:-1]:
            x = library.relu(library.linear(x, weight, bias))
        return library.cross_entropy(library.linear(x, *self.layers[-1]), self.target)


class SmallBatch(MLP):
    """The same with as little arithmetic as possible."""

    batch = 8


class LargeMLP(MLP):
    """Where arithmetic is nearly everything."""

    sizes = (1024, 1024, 1024, 1024)
    batch = 512


class Transformer(Model):
    """One block: attention, then two layers, each with a norm before and a sum after."""

    batch, length, width, heads = 4, 32, 64, 4

    def build(self) -> None:
        width = self.width
        self.norms = [self.norm(), self.norm()]
        self.projection, self.output = self.dense(width, 3 * width), self.dense(width, width)
        self.up, self.down = self.dense(width, 4 * width), self.dense(4 * width, width)
        shape = (self.batch, self.length, width)
        self.x = self.given(self.random.standard_normal(shape).astype(np.float32))
        self.wanted = self.given(self.random.standard_normal(shape).astype(np.float32))

    def norm(self) -> tuple[Any, Any]:
        """Weight and bias of a norm."""
        made = [np.ones(self.width, np.float32), np.zeros(self.width, np.float32)]
        pair = tuple(self.library.weight(array) for array in made)
        self.weights += pair
        return pair

    def attention(self, x: Any) -> Any:
        """Written out, so that both compute and save the same things."""
        library = self.library
        each = self.width // self.heads
        joined = library.linear(x, *self.projection)
        split = joined.reshape(self.batch, self.length, 3, self.heads, each)
        turned = library.permute(split, (2, 0, 3, 1, 4))
        query, key, value = turned[0], turned[1], turned[2]
        scores = library.matmul(query, key.swapaxes(2, 3)) * each**-0.5
        mixed = library.matmul(library.softmax(scores, -1), value)
        back = library.permute(mixed, (0, 2, 1, 3))
        return library.linear(back.reshape(self.batch, self.length, self.width), *self.output)

    def loss(self) -> Any:
        library, x = self.library, self.x
        x = x + self.attention(library.layer_norm(x, *self.norms[0]))
        hidden = library.gelu(library.linear(library.layer_norm(x, *self.norms[1]), *self.up))
        error = x + library.linear(hidden, *self.down) - self.wanted
        return (error * error).mean()


class LargeTransformer(Transformer):
    """Twice as long and six times as wide."""

    batch, length, width, heads = 4, 64, 384, 6


class Queens(Model):
    """N-Queens by gradient descent, an epoch at a time; the scenario ``nqueens``."""

    def build(self) -> None:
        row, column = np.indices((8, 8))
        lines = np.arange(15).reshape(15, 1, 1)
        self.anti = self.given((row + column == lines).astype(np.float32))
        self.main = self.given((row - column + 7 == lines).astype(np.float32))
        board = self.random.standard_normal((8, 8)).astype(np.float32)
        self.board = self.library.weight(board)
        self.weights = [self.board]

    def loss(self) -> Any:
        library = self.library
        p = library.softmax(self.board, 1)
        total = ((p.sum(0) - 1.0) ** 2).sum()
        layers = p.reshape(1, 8, 8)
        for mask in (self.anti, self.main):
            total = total + (library.relu((layers * mask).sum(2).sum(1) - 1.0) ** 2).sum()
        return total + 0.05 * (p * (1.0 - p)).sum()

    def step(self) -> None:
        """The new board is computed with gradients on, then cut off."""
        self.loss().backward()
        self.board = (self.board - 0.5 * self.board.grad).detach()
        self.board.requires_grad_()


MODELS: dict[str, Callable[[Any], Model]] = {
    "mlp 8": SmallBatch,
    "mlp 32": MLP,
    "queens": Queens,
    "transformer": Transformer,
    "large transformer": LargeTransformer,
    "large mlp": LargeMLP,
}
LIBRARIES = [Ours, *([Theirs] if torch else [])]


def products(model: type[MLP] = LargeMLP) -> Callable[[], None]:
    """The matrix products of one step of the large MLP, by NumPy, into memory that is there."""
    random = np.random.default_rng(3)
    calls = []
    for at, (inputs, outputs) in enumerate(zip(model.sizes[:-1], model.sizes[1:], strict=True)):
        x = random.random((model.batch, inputs), dtype=np.float32)
        weight = random.random((inputs, outputs), dtype=np.float32)
        y, dx, dw = (np.empty_like(a) for a in (x @ weight, x, weight))
        calls += [(x, weight, y), (x.T, y, dw), *([(y, weight.T, dx)] if at else [])]

    def multiply() -> None:
        for left, right, out in calls:
            np.matmul(left, right, out=out)

    return multiply
