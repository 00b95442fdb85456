"""Every op's gradient is that of finite differences, whatever its inputs look like in memory."""

from __future__ import annotations

import gc
from collections.abc import Iterator

import numpy as np
import pytest
from runtime.autograd.gradient_table import OPS
from runtime.autograd.gradients import (
    LAYOUTS,
    Random,
    close,
    difference_along,
    differences,
    gradients,
    shown,
    value,
)

import tlmem

TRIALS = 12
LONGER = 16
LONG = 45
ROUNDED = 1e-7
"""In float64: what differences cut off and round, times the second and third derivatives."""


@pytest.fixture(autouse=True)
def tape_is_empty_again() -> Iterator[None]:
    """What a test recorded has gone with its tensors, and with those of a caught error's frames."""
    yield
    gc.collect()
    found = tlmem.tape().stats()
    assert (found.records, found.leaves, found.grads, found.saved_bytes) == (0, 0, 0, 0)


@pytest.mark.parametrize("name", OPS)
def test_gradient_is_that_of_finite_differences_in_every_layout(name: str) -> None:
    op = OPS[name]
    for number in range(TRIALS):
        random = Random(number, 1)
        trial = op.make(random)
        seed = random.normal(value(op, trial, trial.arrays).shape)
        expected = differences(op, trial, seed)
        for layout, view in LAYOUTS.items():
            _, found = gradients(op, trial, seed, view)
            for array, actual, wanted in zip(trial.arrays, found, expected, strict=True):
                place = view(array)[2]
                assert close(actual, place(wanted), ROUNDED), (number, layout, shown(op, trial))


@pytest.mark.parametrize("name", OPS)
def test_gradient_of_longer_rows_is_that_of_differences_along_a_way(name: str) -> None:
    op = OPS[name]
    for number in range(LONGER):
        random = Random(number, 7, longest=LONG)
        trial = op.make(random)
        seed = random.normal(value(op, trial, trial.arrays).shape)
        ways = [random.normal(array.shape) for array in trial.arrays]
        expected = difference_along(op, trial, seed, ways)
        for layout, view in LAYOUTS.items():
            _, found = gradients(op, trial, seed, view)
            parts = zip(trial.arrays, found, ways, strict=True)
            products = [each * view(array)[2](way) for array, each, way in parts]
            actual = sum(float(each.sum()) for each in products)
            size = 1 + sum(float(np.abs(each).sum()) for each in products)
            assert abs(actual - expected) < ROUNDED * size, (number, layout, shown(op, trial))


@pytest.mark.parametrize("name", OPS)
def test_gradient_of_a_sum_is_expanded_and_comes_to_the_same(name: str) -> None:
    op = OPS[name]
    for number in range(TRIALS):
        trial = op.make(Random(number, 2))
        output, found = gradients(op, trial, None)
        _, expected = gradients(op, trial, np.ones(output.shape))
        for actual, wanted in zip(found, expected, strict=True):
            assert close(actual, wanted, 1e-13), (number, shown(op, trial))


@pytest.mark.parametrize("name", OPS)
def test_float32_gives_the_gradient_of_float64_rounded(name: str) -> None:
    op = OPS[name]
    for number in range(TRIALS):
        random = Random(number, 3)
        trial = op.make(random)
        seed = random.normal(value(op, trial, trial.arrays).shape)
        output, expected = gradients(op, trial, seed)
        rounded, found = gradients(op, trial, seed, dtype="float32")
        assert close(rounded, output, 3e-5), (number, shown(op, trial))
        for actual, wanted in zip(found, expected, strict=True):
            assert close(actual, wanted, 3e-5), (number, shown(op, trial))


@pytest.mark.parametrize("name", OPS)
def test_gradient_is_computed_for_the_inputs_that_want_one_only(name: str) -> None:
    op = OPS[name]
    for number in range(TRIALS):
        random = Random(number, 4)
        trial = op.make(random)
        seed = random.normal(value(op, trial, trial.arrays).shape)
        _, expected = gradients(op, trial, seed)
        for chosen in range(len(trial.arrays)):
            tensors = [tlmem.tensor(array, None) for array in trial.arrays]
            tensors[chosen].requires_grad_()
            op.ours(*tensors, *trial.others).backward(tlmem.tensor(seed, None))
            given = [tensor.grad for tensor in tensors]
            assert [at for at, each in enumerate(given) if each is not None] in ([], [chosen])
            actual = np.zeros(expected[chosen].shape)
            if given[chosen] is not None:
                actual = np.array(given[chosen].numpy())
            assert close(actual, expected[chosen], 1e-13), (number, chosen, shown(op, trial))


@pytest.mark.parametrize("name", OPS)
def test_op_is_on_the_tape_under_its_name(name: str) -> None:
    op = OPS[name]
    with tlmem.Tape("names") as tape:
        trial = op.make(Random(5))
        tensors = [tlmem.tensor(array, None, requires_grad=True) for array in trial.arrays]
        output = op.ours(*tensors, *trial.others)
        found = {each for each, row in tape.stats().by_op.items() if row.records}
        assert found == set(op.records or {name})
        del output, tensors


def test_value_used_several_times_gets_the_sum_of_its_gradients() -> None:
    x = tlmem.tensor([0.5, -1.5, 2.0], "float64", requires_grad=True)

    (x * x + x.exp() * x - x / 2.0).sum().backward()

    values = np.array([0.5, -1.5, 2.0])
    expected = 2 * values + np.exp(values) * (1 + values) - 0.5
    assert np.allclose(x.grad.numpy(), expected, rtol=1e-14, atol=0)


def test_both_inputs_may_be_one_tensor() -> None:
    for op, expected in ((tlmem.add, 2.0), (tlmem.subtract, 0.0), (tlmem.multiply, 6.0)):
        x = tlmem.tensor([3.0], "float64", requires_grad=True)
        op(x, x).sum().backward()
        assert x.grad.tolist() == [expected]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_dropout_passes_on_the_gradient_of_what_it_kept(dtype: str) -> None:
    x = tlmem.tensor(1 + np.arange(2000.0).reshape(40, 50), dtype, requires_grad=True)

    y = tlmem.dropout(x, 0.25)
    (y * 3.0).sum().backward()

    kept = np.array(y.detach().numpy()) / np.array(x.detach().numpy())
    assert np.allclose(kept[kept != 0], 4 / 3, rtol=1e-6)
    assert 0.7 < np.mean(kept != 0) < 0.8
    assert np.allclose(x.grad.numpy(), 3 * kept, rtol=1e-6)


def test_dropout_that_does_not_train_passes_everything_on() -> None:
    x = tlmem.ones((3, 4), requires_grad=True)

    tlmem.dropout(x, 0.9, training=False).sum().backward()

    assert x.grad.tolist() == [[1.0] * 4] * 3


@pytest.mark.parametrize("there, back", [("float32", "float64"), ("float64", "float32")])
def test_conversion_passes_the_gradient_on_in_the_dtype_it_came_from(there: str, back: str) -> None:
    x = tlmem.tensor([1.0, 2.0], there, requires_grad=True)

    (x.astype(back) * 3.0).sum().backward()

    assert (x.grad.dtype, x.grad.tolist()) == (there, [3.0, 3.0])


def test_view_without_elements_can_be_read_whatever_its_steps() -> None:
    x = tlmem.zeros((3, 0, 2), requires_grad=True)

    y = x[::-1, :, ::-1].unsqueeze(1)
    y.sum().backward()

    assert (y.detach().numpy().shape, x.grad.shape) == ((3, 1, 0, 2), (3, 0, 2))


def test_pass_that_needs_what_was_freed_by_hand_names_that() -> None:
    x = tlmem.ones((2,), requires_grad=True)
    middle = x * 2.0
    loss = (middle * middle).sum()
    freed = middle.handle
    middle.free()

    with pytest.raises(tlmem.UseAfterFree, match=f"object {freed}, which a rule needs, was freed"):
        loss.backward()

    assert x.grad is None
