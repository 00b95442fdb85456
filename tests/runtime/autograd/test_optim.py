"""Optimisers: equal to NumPy in float64 and to PyTorch, in place, without new memory, leak-free."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from runtime.trace import live_objects

import tlmem
from tlmem.optim import SGD, Adam

STEPS = 7
SHAPES = [(3, 4), (5,), ()]
SGDS: list[dict[str, Any]] = [
    {"lr": 0.1},
    {"lr": 0.1, "weight_decay": 0.05},
    {"lr": 0.1, "momentum": 0.9},
    {"lr": 0.1, "momentum": 0.9, "weight_decay": 0.05, "nesterov": True},
]
ADAMS: list[dict[str, Any]] = [
    {},
    {"lr": 0.01, "betas": (0.8, 0.95), "eps": 1e-6, "weight_decay": 0.1},
]
CASES = [*((SGD, options) for options in SGDS), *((Adam, options) for options in ADAMS)]


def begins(dtype: str) -> list[np.ndarray]:
    random = np.random.default_rng(5)
    return [random.standard_normal(shape).astype(dtype) for shape in SHAPES]


def grads(dtype: str) -> list[list[np.ndarray]]:
    random = np.random.default_rng(6)
    return [[random.standard_normal(s).astype(dtype) for s in SHAPES] for _ in range(STEPS)]


def sgd_reference(p: Any, all_grads: Any, options: Any) -> Any:
    velocity = 0.0
    for g in all_grads:
        g = g + options.get("weight_decay", 0.0) * p
        if options.get("momentum"):
            velocity = options["momentum"] * velocity + g
            g = g + options["momentum"] * velocity if options.get("nesterov") else velocity
        p = p - options["lr"] * g
    return p


def adam_reference(p: Any, all_grads: Any, options: Any) -> Any:
    (b1, b2), eps = options.get("betas", (0.9, 0.999)), options.get("eps", 1e-8)
    m = v = 0.0
    for step, g in enumerate(all_grads, 1):
        g = g + options.get("weight_decay", 0.0) * p
        m, v = b1 * m + (1 - b1) * g, b2 * v + (1 - b2) * g * g
        mean, square = m / (1 - b1**step), v / (1 - b2**step)
        p = p - options.get("lr", 1e-3) * mean / (np.sqrt(square) + eps)
    return p


def run(kind: Any, options: dict[str, Any], dtype: str) -> list[np.ndarray]:
    params = [tlmem.tensor(each, dtype, requires_grad=True) for each in begins(dtype)]
    optimizer = kind(params, **({"lr": 0.1} | options if kind is SGD else options))
    for step in grads(dtype):
        for parameter, gradient in zip(params, step, strict=True):
            parameter.grad = tlmem.tensor(gradient, dtype)
        optimizer.step()
    return [np.array(each.tolist(), dtype) for each in params]


@pytest.mark.parametrize(("kind", "options"), CASES)
def test_steps_agree_with_numpy_in_float64(kind: Any, options: dict[str, Any]) -> None:
    reference: Callable[..., Any] = sgd_reference if kind is SGD else adam_reference
    found = run(kind, options, "float64")

    for place, value in enumerate(found):
        expected = reference(
            begins("float64")[place], [g[place] for g in grads("float64")], options
        )
        np.testing.assert_allclose(value, expected, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize(("kind", "options"), CASES)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_steps_agree_with_pytorch(kind: Any, options: dict[str, Any], dtype: str) -> None:
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    params = [torch.tensor(each, requires_grad=True) for each in begins(dtype)]
    optimizer = getattr(torch.optim, kind.__name__)(params, **options)
    for step in grads(dtype):
        for parameter, gradient in zip(params, step, strict=True):
            parameter.grad = torch.tensor(gradient)
        optimizer.step()

    for value, parameter in zip(run(kind, options, dtype), params, strict=True):
        close = {"rtol": 2e-6, "atol": 2e-7} if dtype == "float32" else {"rtol": 1e-12}
        np.testing.assert_allclose(value, parameter.detach().numpy(), **close)


# ---- memory ----


@pytest.mark.parametrize("kind", [SGD, Adam])
def test_the_first_step_takes_memory_and_no_later_one(kind: Any, trace) -> None:
    x, w = tlmem.ones(100, requires_grad=True), tlmem.ones(100, requires_grad=True)
    optimizer = kind([x, w], lr=0.01, **({"momentum": 0.9} if kind is SGD else {}))
    for parameter in (x, w):
        parameter.grad = tlmem.ones(100)
    with trace(x=x, w=w) as first:
        optimizer.step()
    with trace(x=x, w=w) as later:
        for _ in range(3):
            optimizer.step()

    kept = 1 if kind is SGD else 2
    assert first.count("ALLOC") == 2 * kept
    assert later.rows() == []
    for holders in (each.holders() for each in optimizer.state(x).values()):
        assert holders == ["optimizer"]


def test_what_is_kept_outlives_scopes_and_ends_with_the_optimiser() -> None:
    before = live_objects()
    with tlmem.scope("setup"):
        x = tlmem.ones(10, requires_grad=True).escape()
        optimizer = SGD([x], lr=0.1, momentum=0.9)
    with tlmem.scope("step"):
        x.grad = tlmem.ones(10)
        optimizer.step()
    optimizer.step()
    assert optimizer.state(x)["velocity"].tolist() == pytest.approx([1.9] * 10)

    x.grad = None
    del optimizer
    assert live_objects() - before == {x.handle}


def test_a_training_step_gives_back_what_it_takes() -> None:
    x = tlmem.ones(10, requires_grad=True)
    optimizer = Adam([x])
    live = []
    for _ in tlmem.steps(5):
        (x * x).sum().backward()
        optimizer.step()
        live.append(len(live_objects()))

    assert len(set(live)) == 1
    optimizer.clear_grads()
    assert x.grad is None


# ---- parameters ----


def test_a_parameter_without_a_gradient_is_left_alone_and_its_steps_do_not_count() -> None:
    x, y = tlmem.ones(2, requires_grad=True), tlmem.ones(2, requires_grad=True)
    late = Adam([x, y], lr=0.1)
    x.grad = tlmem.ones(2)
    late.step()
    assert (y.tolist(), late.state(y)) == ([1.0, 1.0], {})
    x.grad, y.grad = None, tlmem.ones(2)
    late.step()

    fresh = tlmem.ones(2, requires_grad=True)
    fresh.grad = tlmem.ones(2)
    Adam([fresh], lr=0.1).step()
    assert y.tolist() == fresh.tolist() == x.tolist()


@dataclass
class Layer:
    weight: Any
    bias: Any
    name: str


def test_structs_mappings_and_the_registry_are_parameters_each_once() -> None:
    layer = tlmem.struct(
        Layer(tlmem.ones((2, 2), requires_grad=True), tlmem.ones(2, requires_grad=True), "dense")
    )
    extra, plain = tlmem.ones(1, requires_grad=True), tlmem.ones(1)
    net = tlmem.struct({"layers": [layer, layer], "extra": extra, "count": plain})

    assert [each.shape for each in net.parameters()] == [(2, 2), (2,), (1,)]
    assert len(SGD(net, lr=0.1).parameters) == 3
    assert len(SGD({"net": net, "again": extra}, lr=0.1).parameters) == 3
    tlmem.register_parameter("net", net)
    tlmem.register_parameter("extra", extra)
    try:
        assert [each.handle for each in tlmem.parameters()] == [
            each.handle for each in net.parameters()
        ]
        optimizer = SGD(tlmem.parameters(), lr=0.5)
        (layer.weight * layer.bias).sum().backward()
        optimizer.step()
        assert layer.bias.tolist() == [0.0, 0.0]
    finally:
        tlmem.drop_parameter("net")
        tlmem.drop_parameter("extra")


def test_the_gradients_of_a_struct_have_the_names_of_its_fields() -> None:
    layer = tlmem.struct(
        Layer(tlmem.ones((2, 2), requires_grad=True), tlmem.ones(2, requires_grad=True), "dense")
    )
    net = tlmem.struct({"first": layer, "scale": tlmem.ones(1, requires_grad=True)})
    (layer.weight * layer.bias).sum().backward()

    assert net.grad.first.bias.tolist() == [2.0, 2.0]
    assert net.grad["first"]["weight"].tolist() == [[1.0, 1.0], [1.0, 1.0]]
    assert net.grad.scale is None
    assert (list(net.grad), list(layer.grad)) == (["first", "scale"], ["weight", "bias"])
    with pytest.raises(AttributeError, match="field 'name' of struct Layer.* is neither a tensor"):
        layer.grad.name  # noqa: B018
    with pytest.raises(AttributeError, match=r"struct\.bias\.grad"):
        layer.grad.bias = None


# ---- errors ----


def test_a_freed_parameter_is_named_and_no_other_is_updated() -> None:
    x, y = tlmem.ones(2, requires_grad=True), tlmem.ones(3, requires_grad=True)
    optimizer = SGD([x, y], lr=0.1)
    x.grad = tlmem.ones(2)
    y.free()

    with pytest.raises(
        tlmem.UseAfterFree, match=r"update parameter 1 of SGD, tensor float32\[3\].*test_optim"
    ):
        optimizer.step()
    assert x.tolist() == [1.0, 1.0]


@pytest.mark.parametrize(
    ("make", "kind", "message"),
    [
        (lambda: SGD([], 0.1), ValueError, "no parameters"),
        (lambda: SGD([tlmem.ones(2)], 0.1), tlmem.NotDifferentiable, "requires_grad=True"),
        (lambda: SGD(3, 0.1), TypeError, "not int"),
        (lambda: SGD(["w"], 0.1), TypeError, "not str"),
        (lambda: SGD(good(), -1), ValueError, "lr is 0 or more, not -1"),
        (lambda: SGD(good(), float("nan")), ValueError, "lr is 0 or more"),
        (lambda: SGD(good(), 0.1, nesterov=True), ValueError, "momentum=0.9"),
        (lambda: Adam(good(), betas=(0.9, 1.0)), ValueError, r"betas\[1\] is from 0 to below 1"),
        (lambda: Adam(good() * 2), tlmem.NotDifferentiable, "is not a leaf"),
    ],
)
def test_what_cannot_be_optimised_is_said(make: Any, kind: Any, message: str) -> None:
    with pytest.raises(kind, match=message):
        make()


def good() -> Any:
    return tlmem.ones(2, requires_grad=True)


def test_no_room_for_what_is_kept_leaves_every_parameter_as_it_was() -> None:
    with tlmem.limit_device("cpu", limit_bytes=6 * 64) as limited:
        x = tlmem.ones(16, device=limited, requires_grad=True)
        y = tlmem.ones(16, device=limited, requires_grad=True)
        optimizer = SGD([x, y], lr=0.1, momentum=0.9)
        x.grad, y.grad = (tlmem.ones(16, device=limited) for _ in range(2))
        filler = tlmem.ones(16, device=limited)
        with pytest.raises(tlmem.DeviceOutOfMemory):
            optimizer.step()
        assert x.tolist() == y.tolist() == [1.0] * 16
        del filler
        optimizer.step()
        assert x.tolist() == y.tolist() == pytest.approx([0.9] * 16)
        x.grad = y.grad = None
        del x, y, optimizer


def test_an_update_before_a_backward_that_reads_the_parameter_is_found() -> None:
    x, w = tlmem.ones(2, requires_grad=True), tlmem.ones(2, requires_grad=True)
    optimizer = SGD([w], lr=0.1)
    total = (x * w).sum()
    w.grad = tlmem.ones(2)
    optimizer.step()

    with pytest.raises(tlmem.InPlaceOnSaved, match=r"written in place at .*test_optim\.py"):
        total.backward()
