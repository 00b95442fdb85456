"""Whole trainings on data made here: they learn, they stay flat, and they agree with NumPy."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from runtime.trace import live_objects, statistics

import tlmem
from tlmem.optim import SGD, Adam


def now() -> tuple[Any, ...]:
    """What must be the same at each boundary of a step."""
    stats, found = tlmem.tape().stats(), statistics()
    return found.current_count, found.current_bytes, stats.records, tlmem.scope_depth()


def moons(count: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Points of two half circles, and which of the two each belongs to."""
    random = np.random.default_rng(seed)
    label = np.arange(count) % 2
    angle = random.uniform(0, np.pi, count)
    x = np.where(label, 1 - np.cos(angle), np.cos(angle))
    y = np.where(label, 0.5 - np.sin(angle), np.sin(angle))
    return np.stack([x, y], 1) + random.normal(0, 0.05, (count, 2)), label


class Perceptron:
    """Two layers; its parameters are a struct."""

    def __init__(self, dtype: str, inside: int = 16) -> None:
        random = np.random.default_rng(1)
        first = random.normal(0, 0.7, (2, inside))
        second = random.normal(0, 0.3, (inside, 2))
        self.parameters = tlmem.struct(
            {
                "w1": tlmem.tensor(first, dtype, requires_grad=True),
                "b1": tlmem.zeros(inside, dtype, requires_grad=True),
                "w2": tlmem.tensor(second, dtype, requires_grad=True),
                "b2": tlmem.zeros(2, dtype, requires_grad=True),
            }
        )

    def __call__(self, x: Any) -> Any:
        p = self.parameters
        return tlmem.relu(x @ p.w1 + p.b1) @ p.w2 + p.b2


def test_a_perceptron_learns_and_each_step_gives_back_what_it_takes(trace) -> None:
    points, labels = moons(64, 2)
    x, target = tlmem.tensor(points, "float32"), tlmem.tensor(labels, "int64")
    model = Perceptron("float32")
    optimizer = Adam(model.parameters, lr=0.02)
    losses, boundaries = [], []
    for _ in tlmem.steps(150):
        boundaries.append(now())
        loss = tlmem.cross_entropy(model(x), target)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
        del loss

    assert losses[-1] < 0.1 * losses[0]
    assert len(set(boundaries[1:])) == 1
    before = now()
    with trace() as t:
        for _ in tlmem.steps(3):
            tlmem.cross_entropy(model(x), target).backward()
            optimizer.step()
    assert now() == before
    assert t.count("ALLOC") == t.count("FREE") > 0


def numpy_losses(steps: int, lr: float, momentum: float) -> list[float]:
    points, labels = moons(32, 3)
    random = np.random.default_rng(1)
    p = [random.normal(0, 0.7, (2, 16)), np.zeros(16), random.normal(0, 0.3, (16, 2)), np.zeros(2)]
    velocity = [np.zeros_like(each) for each in p]
    losses = []
    for _ in range(steps):
        inside = points @ p[0] + p[1]
        hidden = np.maximum(inside, 0)
        logits = hidden @ p[2] + p[3]
        logits = logits - logits.max(1, keepdims=True)
        probability = np.exp(logits) / np.exp(logits).sum(1, keepdims=True)
        losses.append(float(-np.log(probability[np.arange(32), labels]).mean()))
        probability[np.arange(32), labels] -= 1
        out = probability / 32
        back = (out @ p[2].T) * (inside > 0)
        grads = [points.T @ back, back.sum(0), hidden.T @ out, out.sum(0)]
        for i, grad in enumerate(grads):
            velocity[i] = momentum * velocity[i] + grad
            p[i] = p[i] - lr * velocity[i]
    return losses


def test_losses_of_a_perceptron_agree_with_numpy_in_float64() -> None:
    points, labels = moons(32, 3)
    x, target = tlmem.tensor(points, "float64"), tlmem.tensor(labels, "int64")
    model = Perceptron("float64")
    optimizer = SGD(model.parameters, lr=0.1, momentum=0.9)
    losses = []
    for _ in tlmem.steps(60):
        loss = tlmem.cross_entropy(model(x), target)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())

    assert losses == pytest.approx(numpy_losses(60, 0.1, 0.9), rel=1e-9)


# ---- a transformer block ----

TOKENS, LENGTH, BATCH, WIDTH, HEADS = 11, 6, 8, 16, 4


def normal(*shape: int, seed: int) -> Any:
    random = np.random.default_rng(seed)
    values = random.normal(0, shape[0] ** -0.5, shape)
    return tlmem.tensor(values, "float32", requires_grad=True)


class Transformer:
    """Embedding, one block (attention and a layer of gelu, each with its norm), and logits."""

    def __init__(self) -> None:
        ones = lambda: tlmem.ones(WIDTH, requires_grad=True)  # noqa: E731
        zeros = lambda n: tlmem.zeros(n, requires_grad=True)  # noqa: E731
        self.parameters = tlmem.struct(
            {
                "tokens": normal(TOKENS, WIDTH, seed=1),
                "places": normal(LENGTH, WIDTH, seed=2),
                "norm1": {"weight": ones(), "bias": zeros(WIDTH)},
                "qkv": [normal(WIDTH, WIDTH, seed=3 + i) for i in range(3)],
                "out": normal(WIDTH, WIDTH, seed=6),
                "norm2": {"weight": ones(), "bias": zeros(WIDTH)},
                "up": normal(WIDTH, 4 * WIDTH, seed=7),
                "up_bias": zeros(4 * WIDTH),
                "down": normal(4 * WIDTH, WIDTH, seed=8),
                "logits": normal(WIDTH, TOKENS, seed=9),
            }
        )

    def attention(self, x: Any) -> Any:
        p = self.parameters

        def heads(weight: Any) -> Any:
            made = (x @ weight).reshape((BATCH, LENGTH, HEADS, WIDTH // HEADS))
            return tlmem.permute(made, (0, 2, 1, 3))

        query, key, value = (heads(weight) for weight in p.qkv)
        scores = query @ tlmem.swapaxes(key, 2, 3) * (WIDTH // HEADS) ** -0.5
        mixed = tlmem.permute(tlmem.softmax(scores, -1) @ value, (0, 2, 1, 3))
        return mixed.reshape((BATCH, LENGTH, WIDTH)) @ p.out

    def block(self, x: Any) -> Any:
        p = self.parameters
        x = x + self.attention(tlmem.layer_norm(x, p.norm1.weight, p.norm1.bias))
        inside = tlmem.layer_norm(x, p.norm2.weight, p.norm2.bias) @ p.up + p.up_bias
        return x + tlmem.gelu(inside) @ p.down

    def __call__(self, tokens: Any, policy: str) -> Any:
        p = self.parameters
        x = tlmem.embedding(p.tokens, tokens) + p.places
        if policy == "checkpoint":
            x = tlmem.checkpoint(self.block, x)
        elif policy == "recompute":
            with tlmem.recompute("gelu", "softmax", "add", "multiply"):
                x = self.block(x)
        else:
            x = self.block(x)
        return x @ p.logits


def sequences(seed: int) -> Iterator[tuple[Any, Any]]:
    """Sequences that count upwards from a random begin; the target is the next number."""
    random = np.random.default_rng(seed)
    while True:
        begin = random.integers(0, TOKENS, (BATCH, 1))
        whole = (begin + np.arange(LENGTH + 1)) % TOKENS
        yield tlmem.tensor(whole[:, :-1], "int64"), tlmem.tensor(whole[:, 1:].ravel(), "int64")


def train(policy: str, steps: int) -> tuple[list[float], set[Any]]:
    model, data = Transformer(), sequences(4)
    optimizer = Adam(model.parameters, lr=0.01)
    losses, boundaries = [], []
    for _ in tlmem.steps(steps):
        with tlmem.scope("step"):
            tokens, target = next(data)
            logits = model(tokens, policy).reshape((BATCH * LENGTH, TOKENS))
            loss = tlmem.cross_entropy(logits, target)
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        del tokens, target, logits, loss
        boundaries.append(now())
    return losses, set(boundaries)


def test_a_transformer_block_learns_to_count_and_stays_flat() -> None:
    losses, boundaries = train("save", 80)

    assert losses[0] > 2
    assert losses[-1] < 0.2
    assert len(boundaries) == 1


@pytest.mark.parametrize("policy", ["checkpoint", "recompute"])
def test_a_transformer_block_learns_the_same_under_each_policy(policy: str) -> None:
    losses, boundaries = train(policy, 6)

    assert losses == train("save", 6)[0]
    assert len(boundaries) == 1


def test_an_exception_in_the_middle_of_a_step_leaves_nothing_behind() -> None:
    model, data = Transformer(), sequences(4)
    optimizer = SGD(model.parameters, lr=0.01, momentum=0.9)

    @tlmem.op(backward=lambda context, grad: 1 / 0)
    def breaks(context: Any, x: Any) -> Any:
        context.save(x)
        return x * 1.0

    def step(fails: bool) -> None:
        with tlmem.scope("step"):
            tokens, target = next(data)
            logits = model(tokens, "save").reshape((BATCH * LENGTH, TOKENS))
            loss = tlmem.cross_entropy(breaks(logits) if fails else logits, target)
            loss.backward()
            optimizer.step()

    step(fails=False)
    tlmem.clear_grads()
    before, held = now(), live_objects()
    for fails in (True, False, True):
        try:
            step(fails)
        except ZeroDivisionError:
            assert fails
        tlmem.clear_grads()
        assert now() == before
    assert live_objects() == held
