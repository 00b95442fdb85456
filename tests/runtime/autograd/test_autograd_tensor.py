"""What a tensor says of gradients: who needs one, what it is, what may be written, what errors say.

The values of gradients are tested in ``test_gradients``, what tapes hold in ``test_tape_promises``.
"""

import copy
import gc
import pickle
import threading
import warnings
import weakref

import numpy as np
import pytest

import tlmem
from tlmem.runtime.core import lib
from tlmem.runtime.tensors import core_ops


def leaf(*values: float, dtype: str = "float64") -> tlmem.Tensor:
    return tlmem.tensor(list(values), dtype, requires_grad=True)


# ---- who needs a gradient ----


def test_a_result_needs_a_gradient_when_an_operand_does() -> None:
    a, b = leaf(1, 2), tlmem.tensor([3.0, 4.0], "float64")

    assert (a.requires_grad, b.requires_grad) == (True, False)
    assert (a + b).requires_grad and not (b + b).requires_grad
    assert not (a > b).requires_grad and not a.argmax().requires_grad
    assert a.is_leaf and b.is_leaf and not (a * b).is_leaf


@pytest.mark.parametrize(
    "make",
    [
        lambda: tlmem.zeros(3, requires_grad=True),
        lambda: tlmem.ones(3, requires_grad=True),
        lambda: tlmem.full(3, 0.5, requires_grad=True),
        lambda: tlmem.empty(3, requires_grad=True),
        lambda: tlmem.randn(3, requires_grad=True),
        lambda: tlmem.arange(3.0, requires_grad=True),
        lambda: tlmem.tensor([1.0], requires_grad=True),
        lambda: tlmem.zeros_like(tlmem.ones(3), requires_grad=True),
        lambda: tlmem.ones(3).requires_grad_(),
    ],
)
def test_every_factory_makes_leaves(make) -> None:
    made = make()

    assert made.requires_grad and made.is_leaf and made.grad is None


@pytest.mark.parametrize("dtype", ["int64", "bool"])
def test_only_fractions_have_gradients(dtype: str) -> None:
    a = tlmem.ones(3, dtype)

    with pytest.raises(tlmem.WrongDtype, match="only float32 and float64"):
        a.requires_grad = True
    with pytest.raises(tlmem.WrongDtype, match="cannot have a gradient"):
        tlmem.ones(3, dtype, requires_grad=True)
    assert not a.requires_grad


def test_a_leaf_can_stop_being_one_and_a_result_cannot() -> None:
    a = leaf(1, 2)
    b = a * 2.0

    with pytest.raises(tlmem.NotDifferentiable, match=r"use t\.detach\(\)"):
        b.requires_grad = False
    del b
    a.requires_grad = False
    assert not a.requires_grad and not (a * 2.0).requires_grad
    with pytest.raises(tlmem.NotDifferentiable, match="needs no gradient; set requires_grad"):
        a.backward(a)


def test_detach_is_the_same_memory_without_history() -> None:
    a = leaf(1, 2)
    b = a * 3.0
    c = b.detach()

    assert c.tolist() == [3, 6] and not c.requires_grad and c.is_view
    assert np.shares_memory(c.numpy(), b.numpy())
    d = b[1:].detach()
    assert d.tolist() == [6]


def test_a_moved_name_takes_its_history_along() -> None:
    a = leaf(1, 2)
    b = tlmem.move(a * 3.0)

    b.sum().backward()
    assert a.grad is not None and a.grad.tolist() == [3, 3]


# ---- gradients ----


def test_gradients_add_up_over_passes() -> None:
    a = leaf(1, 2)

    for expected in ([2, 4], [4, 8]):
        (a * a).sum().backward()
        assert a.grad is not None and a.grad.tolist() == expected


def test_a_name_of_a_gradient_outlives_its_tape() -> None:
    with tlmem.Tape("short"):
        a = leaf(1, 2)
        (a * a).sum().backward()
        kept = a.grad
        assert kept is not None
        tlmem.clear_grads()
        assert a.grad is None
        assert kept.tolist() == [2, 4]

    assert kept.tolist() == [2, 4] and a.grad is None


def test_a_gradient_is_written_without_touching_that_of_another() -> None:
    a, b = leaf(1, 2), leaf(3, 4)
    (a + b).backward(tlmem.tensor([5.0, 6.0], "float64"))

    for each in (a.grad, b.grad):
        assert each is not None
        each *= 2.0
    assert (a.grad.tolist(), b.grad.tolist()) == ([10, 12], [10, 12])  # type: ignore[union-attr]


def test_the_gradient_of_a_sum_can_be_written_to() -> None:
    a = leaf(1, 2, 3)
    a.sum().backward()
    assert a.grad is not None

    a.grad[1] = 5.0
    assert a.grad.tolist() == [1, 5, 1]


def test_a_gradient_can_be_set_and_taken_away() -> None:
    a = leaf(1, 2)
    a.grad = tlmem.tensor([7.0, 8.0], "float64")
    (a * 1.0).sum().backward()

    assert a.grad is not None and a.grad.tolist() == [8, 9]
    a.grad = None
    assert a.grad is None


@pytest.mark.parametrize(
    ("gradient", "error", "words"),
    [
        (lambda: tlmem.ones(3, "float64"), tlmem.WrongShape, r"cannot have shape \[3\]"),
        (lambda: tlmem.ones(2), tlmem.WrongDtype, "cannot be float32"),
        (lambda: 1.0, TypeError, "a gradient is a tlmem.Tensor, not float"),
    ],
)
def test_what_cannot_be_a_gradient_is_refused(gradient, error, words) -> None:
    a = leaf(1, 2)
    b = a * 2.0

    with pytest.raises(error, match=words):
        a.grad = gradient()
    with pytest.raises(error, match=words):
        b.backward(gradient())
    assert a.grad is None


def test_several_elements_need_a_gradient_to_go_back_from() -> None:
    a = leaf(1, 2)

    with pytest.raises(tlmem.WrongShape, match=r"2 elements, not one; give backward\(\) a tensor"):
        (a * 2.0).backward()


def test_the_gradient_of_a_result_is_kept_on_request() -> None:
    a = leaf(1, 2)
    b, c = a * 2.0, a * 3.0
    b.retain_grad()
    (b * c).sum().backward()

    assert b.grad is not None and b.grad.tolist() == [3, 6]
    assert c.grad is None


def test_zero_grad_fills_or_lets_go() -> None:
    a = leaf(1, 2)
    (a * a).sum().backward()
    a.zero_grad()
    assert a.grad is not None and a.grad.tolist() == [0, 0]

    kept = a.grad
    a.zero_grad()
    assert kept.tolist() == [0, 0] and a.grad is None


# ---- dtypes, operands ----


def test_operands_of_several_dtypes_are_converted_on_the_tape() -> None:
    a = tlmem.tensor([1.0, 2.0], requires_grad=True)
    whole, double = tlmem.tensor([2, 3], "int64"), tlmem.tensor([0.5, 0.25], "float64")

    (a * whole * double).sum().backward()
    assert a.grad is not None
    assert (a.grad.dtype, a.grad.tolist()) == ("float32", [1.0, 0.75])


def test_numbers_and_arrays_are_operands() -> None:
    a = leaf(1, 2)
    total = (2 * a + np.float32(1) - np.array([1.0, 2.0]) / a + True).sum()
    total.backward()

    assert a.grad is not None and a.grad.tolist() == [3, 2.5]
    assert total.item() == 2 + 4 + 2 - 2 + 2


def test_an_array_is_a_factor_on_either_side() -> None:
    a = tlmem.tensor([1.0, 2.0], requires_grad=True)
    ahead = np.array([[1, 2], [3, 4]], "float32") @ a
    behind = a @ np.array([5.0, 6.0])

    assert (type(ahead), ahead.dtype, ahead.tolist()) == (tlmem.Tensor, "float32", [5, 11])
    assert (type(behind), behind.dtype, behind.item()) == (tlmem.Tensor, "float64", 17)
    (ahead.sum() + behind).backward()
    assert a.grad is not None and a.grad.tolist() == [4 + 5, 6 + 6]


def test_arrays_alone_are_no_product_of_tensors() -> None:
    with pytest.raises(TypeError, match="not ndarray and ndarray"):
        tlmem.matmul(np.ones((2, 2)), np.ones((2, 2)))
    with pytest.raises(TypeError, match="not Tensor and list"):
        tlmem.matmul(leaf(1, 2), [1, 2])  # type: ignore[arg-type]


def test_an_index_out_of_range_is_an_error_of_the_index() -> None:
    with pytest.raises(IndexError, match="out of bounds"):
        leaf(1, 2)[5]


def test_a_mask_chooses_elements_with_a_gradient() -> None:
    a = leaf(1, -2, 3)
    (a[a > 0] * 2.0).sum().backward()

    assert a.grad is not None and a.grad.tolist() == [2, 0, 2]


def test_floating_point_errors_follow_errstate() -> None:
    a = tlmem.tensor([1.0, 0.0])
    with pytest.warns(RuntimeWarning, match="divide by zero encountered in divide") as caught:
        1.0 / a
    assert caught[0].filename == __file__
    with np.errstate(all="raise"), pytest.raises(FloatingPointError, match="in log"):
        tlmem.log(a)
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("error")
        assert (1.0 / a).tolist() == [1.0, float("inf")]


@pytest.mark.parametrize(
    ("shape", "classes"), [((4,), 2), ((3, 4), [0, 3, 1]), ((2, 4, 3), [[0, 1, 2], [3, 2, 1]])]
)
def test_cross_entropy_takes_the_classes_along_the_second_axis(shape, classes) -> None:
    logits = tlmem.randn(shape, "float64", seed=1, requires_grad=True)
    target = tlmem.tensor(classes, "int64")
    each = tlmem.cross_entropy(logits, target, reduction="none")
    axis = 0 if len(shape) == 1 else 1
    chosen = np.expand_dims(np.array(classes), axis)
    values = np.array(logits.detach().numpy())
    expected = np.log(np.exp(values).sum(axis)) - np.take_along_axis(values, chosen, axis).squeeze(
        axis
    )

    assert each.shape == target.shape
    assert np.allclose(each.detach().numpy(), expected)
    tlmem.cross_entropy(logits, target, "sum").backward()
    assert logits.grad is not None and abs(logits.grad.sum().item()) < 1e-12


def test_conversions_inside_a_function_end_with_it() -> None:
    a = tlmem.tensor([1.0, 2.0], requires_grad=True)
    double = tlmem.tensor([0.5, 0.25], "float64")
    array = np.array([1.0, 2.0], "float32")
    with tlmem.scope("step") as s:
        a * double, a * array, a.std(), a[a > 0]
        tlmem.cross_entropy(a.detach(), 0)
        assert s.stats().allocations == 7  # five results, a mask, a detached name


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda a: pickle.loads(pickle.dumps(a))])
def test_a_copy_of_a_leaf_is_a_leaf(copied) -> None:
    a = leaf(1, 2)
    b = copied(a)
    (b * 2.0).sum().backward()

    assert b.is_leaf and b.grad is not None and a.grad is None
    assert not copied(a.detach()).requires_grad


def test_a_pooled_tensor_forgets_that_it_was_a_leaf() -> None:
    pool = tlmem.TensorPool(4)
    a = tlmem.zeros(3, requires_grad=True)
    (a * 2.0).sum().backward()
    pool.release(a)

    b = tlmem.zeros(3, pool=pool)
    assert b is a and not b.requires_grad and b.grad is None


def test_linear_is_a_product_and_a_sum_in_one_record() -> None:
    with tlmem.Tape("linear") as tape:
        x = tlmem.randn((2, 3, 4), "float64", seed=1, requires_grad=True)
        w = tlmem.randn((4, 5), "float64", seed=2, requires_grad=True)
        b = tlmem.randn(5, "float64", seed=3, requires_grad=True)
        y = tlmem.linear(x, w, b)
        assert tape.stats().records == 1
        y.sum().backward()
        found = [np.array(each.grad.numpy()) for each in (x, w, b)]  # type: ignore[union-attr]
        tlmem.clear_grads()
        z = x @ w + b
        z.sum().backward()

        assert np.allclose(y.detach().numpy(), z.detach().numpy())
        for each, gradient in zip((x, w, b), found, strict=True):
            assert each.grad is not None and np.allclose(each.grad.numpy(), gradient)
    with pytest.raises(tlmem.WrongShape, match="linear"):
        tlmem.linear(x.detach(), x.detach())


def test_operands_of_two_devices_are_refused_with_a_gradient_too() -> None:
    a, b = leaf(1, 2), tlmem.zeros(2, "float64", device="sim-metal")

    with pytest.raises(tlmem.WrongDevice, match="different device"):
        a + b
    with pytest.raises(tlmem.WrongDevice, match="different device"):
        tlmem.cross_entropy(tlmem.zeros((2, 3)), tlmem.zeros(2, "int64", device="sim-metal"))
    moved = a.to("sim-metal")
    (moved + b).sum().backward()
    assert a.grad is not None and (a.grad.tolist(), a.grad.device) == ([1, 1], "cpu")


def test_nothing_has_steps_of_any_sign() -> None:
    a = tlmem.zeros((3, 0, 2), requires_grad=True)
    b = a[::-1, ::-1, ::-1]

    assert b.detach().numpy().shape == (3, 0, 2)
    b.sum().backward()
    assert a.grad is not None and a.grad.shape == (3, 0, 2)


# ---- lives ----


def test_a_result_in_a_scope_ends_with_it_and_the_tape_keeps_what_it_needs() -> None:
    a = leaf(1, 2)
    with tlmem.scope("step"):
        b = a.exp()
        c = b.sum().escape()
    assert not lib.tlm_scope_current()
    c.backward()

    assert a.grad is not None
    assert np.allclose(a.grad.numpy(), np.exp([1, 2]))


def test_the_history_goes_with_its_last_name() -> None:
    with tlmem.Tape("names") as tape:
        a = leaf(1, 2)
        b = (a * a).exp().sum()
        assert tape.stats().records == 3
        del b
        gc.collect()
        assert (tape.stats().records, tape.stats().saved_bytes) == (0, 0)


def test_a_tensor_on_a_tape_can_be_watched_by_a_weak_reference() -> None:
    a = leaf(1, 2)
    b = a * 2.0
    watched = weakref.ref(b)
    c = b.sum()
    del b

    assert watched() is None
    c.backward()
    assert a.grad is not None and a.grad.tolist() == [2, 2]


def test_memory_of_an_arena_is_not_saved_and_nothing_is_left_of_the_try() -> None:
    with tlmem.Tape("arena") as tape, tlmem.scope("step") as s:
        a = tlmem.arena_empty((3,)).fill(1.0).requires_grad_()
        with pytest.raises(tlmem.InArena, match="record multiply of|compute multiply of"):
            a * a
        assert (tape.stats().records, tape.stats().saved_objects) == (0, 0)
        assert (a * 2.0).requires_grad
        assert s.stats().allocations == 3


def test_a_freed_operand_is_named_with_the_function() -> None:
    a, b = leaf(1, 2), leaf(1, 2)
    b.free()

    with pytest.raises(tlmem.UseAfterFree, match="cannot add tensor float64"):
        a + b
    with pytest.raises(tlmem.UseAfterFree, match="go back from"):
        b.backward()


def test_a_value_of_a_tape_that_was_reset_is_stale() -> None:
    with tlmem.Tape("reset") as tape:
        a = leaf(1, 2)
        b = a * 2.0
        tape.reset()
        with pytest.raises(tlmem.StaleSlot, match="computed on a tape that was reset"):
            b + 1.0
        (a * 2.0).sum().backward()
        assert a.grad is not None and a.grad.tolist() == [2, 2]


def test_values_of_two_tapes_do_not_meet() -> None:
    with tlmem.Tape("outer"):
        a = leaf(1, 2)
        b = a * 2.0
        with tlmem.Tape("inner"), pytest.raises(tlmem.WrongTape, match="values of two tapes meet"):
            b * leaf(1, 2)
        b.sum().backward()
        assert a.grad is not None


def test_a_second_pass_is_refused_unless_the_graph_is_retained() -> None:
    a = leaf(1, 2)
    b = (a * a).sum()
    b.backward(retain_graph=True)
    b.backward()

    assert a.grad is not None and a.grad.tolist() == [4, 8]
    with pytest.raises(tlmem.SecondBackward, match="retain_graph=True"):
        b.backward()


def test_threads_compute_on_one_tape_beside_each_other() -> None:
    w = tlmem.ones((64, 64), requires_grad=True)
    failures: list[BaseException] = []

    def work() -> None:
        try:
            for _ in range(20):
                y = ((w * 2.0) @ w).relu().sum()
                assert y.requires_grad
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert failures == []


def test_ops_know_the_rows_that_python_asks_for() -> None:
    names = "add multiply matmul sum softmax slice reshape cast gelu dropout".split()

    assert all(core_ops.row(name) >= 0 for name in names)
    assert core_ops.row("no such op") == -1
