"""Ops of the program: what a rule gets, what its errors leave, and what a record holds."""

import gc
import weakref
from threading import Thread
from typing import Any

import pytest
from runtime.trace import live_objects

import tlmem
from tlmem import op


def leaf(*values: float) -> tlmem.Tensor:
    return tlmem.tensor(list(values), requires_grad=True)


def scaled_rule(context: Any, grad: Any) -> tuple[Any, Any]:
    (x,) = context.saved
    return grad * x * 2.0 * context.factor, None


@op(backward=scaled_rule)
def scaled_square(context: Any, x: Any, factor: float) -> Any:
    """Squares and scales."""
    context.save(x)
    context.factor = factor
    return x * x * factor


def test_an_op_computes_saves_and_differentiates() -> None:
    x = leaf(1, 2)
    y = scaled_square(x, 3.0)
    assert y.tolist() == [3.0, 12.0]
    assert tlmem.tape().stats().by_op["scaled_square"].saved_bytes == x.nbytes

    (y * 2).sum().backward()

    assert x.grad.tolist() == [12.0, 24.0]
    assert (scaled_square.__name__, scaled_square.__doc__) == (
        "scaled_square",
        "Squares and scales.",
    )


def test_without_gradients_nothing_is_recorded_and_the_context_goes() -> None:
    before = tlmem.tape().stats().recorded
    with tlmem.no_grad():
        a = scaled_square(leaf(1, 2), 3.0)
    b = scaled_square(tlmem.ones(2), 3.0)

    assert (a.requires_grad, b.requires_grad) == (False, False)
    assert tlmem.tape().stats().recorded == before


def test_what_a_forward_computes_inside_is_not_recorded() -> None:
    before = tlmem.tape().stats().recorded
    scaled_square(leaf(1, 2), 3.0)

    assert tlmem.tape().stats().recorded == before + 1


def test_the_rule_runs_without_recording_and_knows_which_gradients_are_wanted() -> None:
    seen = []

    def rule(context: Any, grad: Any) -> tuple[Any, Any]:
        a, b = context.saved
        seen.append((tlmem.is_grad_enabled(), context.wants))
        return grad * b, grad * a if context.wants[1] else None

    @op(backward=rule, name="times")
    def times(context: Any, a: Any, b: Any) -> Any:
        context.save(a, b)
        return a * b

    x = leaf(2, 3)
    times(x, tlmem.tensor([5.0, 7.0])).sum().backward()

    assert seen == [(False, (True, False))]
    assert x.grad.tolist() == [5.0, 7.0]
    assert repr(times) == "<op 'times'>"


def test_the_output_can_be_saved() -> None:
    @op(backward=lambda context, grad: grad * context.saved[0])
    def exponential(context: Any, x: Any) -> Any:
        y = tlmem.exp(x)
        context.save(y)
        return y

    x = leaf(0.0, 1.0)
    y = exponential(x)
    assert tlmem.tape().stats().saved_objects == 1
    y.sum().backward()

    assert x.grad.tolist() == y.tolist()


def test_an_input_that_is_returned_is_another_value_on_the_tape() -> None:
    @op(backward=lambda context, grad: -grad)
    def reverse(context: Any, x: Any) -> Any:
        return x

    x = leaf(1, 2)
    y = reverse(x)
    assert y is not x
    (y * 3 + x).sum().backward()

    assert x.grad.tolist() == [-2.0, -2.0]


# ---- errors ----


class Mine(Exception):
    pass


def failing(error: BaseException) -> Any:
    def rule(context: Any, grad: Any) -> Any:
        grad * 2
        raise error

    @op(backward=rule)
    def fails(context: Any, x: Any) -> Any:
        context.save(x)
        context.note = [1, 2, 3]
        return x * 2

    return fails


@pytest.mark.parametrize("kind", [Mine, KeyboardInterrupt, SystemExit])
def test_an_exception_of_a_rule_passes_out_as_itself_with_nothing_left(kind: Any) -> None:
    x, w = leaf(1, 2), leaf(3, 4)
    before, error = live_objects(), kind("mine")
    fails = failing(error)
    total = (fails(tlmem.sin(x) * w) * w).sum()

    with pytest.raises(kind) as caught:
        total.backward()

    assert caught.value is error
    assert (x.grad, w.grad) == (None, None)
    del total, caught
    error.__traceback__ = None
    assert live_objects() == before
    assert (tlmem.tape().stats().records, tlmem.tape().stats().saved_bytes) == (0, 0)


def test_after_a_failed_pass_the_next_one_works() -> None:
    x = leaf(1, 2)
    with pytest.raises(Mine):
        failing(Mine())(x).sum().backward()
    scaled_square(x, 3.0).sum().backward()

    assert x.grad.tolist() == [6.0, 12.0]


def returning(value: Any) -> Any:
    @op(backward=lambda context, grad: value)
    def returns(context: Any, x: Any, y: Any) -> Any:
        return x * y

    return returns


@pytest.mark.parametrize(
    ("value", "kind", "message"),
    [
        ((None,), TypeError, "returned 1 gradient for 2 arguments"),
        ((None, None, None), TypeError, "returned 3 gradients for 2 arguments"),
        (3.0, TypeError, "returned 1 gradient for 2 arguments"),
        ((3.0, None), TypeError, "argument 0 of op 'returns' is a tensor or None, not float"),
        ((None, "three"), tlmem.WrongShape, r"has shape \[3\], and the argument has \[2\]"),
        ((None, "double"), tlmem.WrongDtype, "is float64, and the argument is float32"),
    ],
)
def test_what_a_rule_returns_is_checked(value: Any, kind: Any, message: str) -> None:
    made = {"three": tlmem.ones(3), "double": tlmem.ones(2, "float64")}
    if isinstance(value, tuple):
        value = tuple(made.get(each, each) if isinstance(each, str) else each for each in value)

    with pytest.raises(kind, match=message):
        returning(value)(leaf(1, 2), leaf(3, 4)).sum().backward()


def test_a_gradient_for_what_is_no_tensor_is_refused() -> None:
    @op(backward=lambda context, grad: (grad, grad))
    def power(context: Any, x: Any, n: float) -> Any:
        return x * n

    with pytest.raises(TypeError, match="argument 1 of op 'power' is not a tensor"):
        power(leaf(1), 2.0).backward()


def test_misuse_of_the_decorator_and_of_a_call_is_said() -> None:
    with pytest.raises(TypeError, match=r"@tlmem\.op\(backward=rule\)"):
        op(lambda context, x: x)  # type: ignore[call-arg]
    with pytest.raises(TypeError, match=r"@tlmem\.op\(backward=rule\)"):
        op(backward=3)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="takes tensors by position, not as x="):
        scaled_square(x=leaf(1))
    with pytest.raises(TypeError, match="returned list; with gradients it has one tensor"):
        op(backward=scaled_rule)(lambda context, x: [x])(leaf(1))
    with pytest.raises(TypeError, match="saves tensors, not float"):
        op(backward=scaled_rule)(lambda context, x: context.save(2.0))(leaf(1))


def test_a_context_that_keeps_its_own_result_would_never_go_and_is_refused() -> None:
    @op(backward=scaled_rule)
    def keeps(context: Any, x: Any) -> Any:
        context.y = x * 2
        return context.y

    with pytest.raises(ValueError, match=r"keeps its own result as context\.y.*context\.save"):
        keeps(leaf(1))


def test_what_is_saved_and_written_in_place_is_found_before_the_rule_runs() -> None:
    seen = []

    @op(backward=lambda context, grad: seen.append(1))
    def constant_times(context: Any, x: Any, c: Any) -> Any:
        context.save(c)
        return x * c

    x, c = leaf(1, 2), tlmem.tensor([3.0, 4.0])
    total = constant_times(x, c).sum()
    with pytest.raises(tlmem.InPlaceOnSaved):
        c.fill(1.0)
    with tlmem.no_grad():
        c.fill(1.0)
    with pytest.raises(tlmem.InPlaceOnSaved, match="constant_times"):
        total.backward()

    assert seen == []


def test_a_rule_cannot_write_to_what_it_is_given() -> None:
    def rule(context: Any, grad: Any) -> Any:
        for given in (grad, *context.saved):
            with pytest.raises(ValueError, match="read-only"):
                given.fill(0.0)
        return grad

    @op(backward=rule)
    def same(context: Any, x: Any) -> Any:
        context.save(x)
        return x * 1.0

    x = leaf(1, 2)
    (same(x) * 2).sum().backward()
    assert x.grad.tolist() == [2.0, 2.0]


# ---- what lives how long ----


class Marker:
    pass


def test_values_in_the_context_go_with_the_record() -> None:
    kept: list[Any] = []

    @op(backward=lambda context, grad: grad)
    def marks(context: Any, x: Any) -> Any:
        context.marker = Marker()
        kept.append(weakref.ref(context.marker))
        return x * 1.0

    x = leaf(1)
    marks(x).backward()
    assert kept[0]() is None  # its rule has run

    y = marks(x)
    assert kept[1]() is not None
    del y  # nobody can go back through it
    assert kept[1]() is None

    tlmem.clear_grads()
    with tlmem.Tape() as tape:
        z = marks(x)
        tape.reset()
        assert kept[2]() is None
        del z


def test_with_retain_graph_the_rule_runs_again_with_what_it_saved() -> None:
    x = leaf(1, 2)
    y = scaled_square(x, 3.0).sum()
    y.backward(retain_graph=True)
    y.backward()

    assert x.grad.tolist() == [12.0, 24.0]


def test_a_gradient_that_is_somebodys_tensor_stays_as_it_is() -> None:
    mine = tlmem.tensor([5.0, 7.0])

    @op(backward=lambda context, grad: mine)
    def gives_mine(context: Any, x: Any) -> Any:
        return x * 1.0

    x = leaf(1, 2)
    for _ in range(2):
        gives_mine(x).sum().backward()
    x.grad.fill(0.0)
    (gives_mine(tlmem.negative(x)) * 1.0).sum().backward()

    assert mine.tolist() == [5.0, 7.0]
    assert x.grad.tolist() == [-5.0, -7.0]


def test_what_a_rule_makes_inside_a_scope_ends_with_the_rule() -> None:
    alive = []

    def rule(context: Any, grad: Any) -> Any:
        alive.append(len(live_objects()))
        noise = [tlmem.ones(100) for _ in range(10)]
        assert all(each.alive for each in noise)
        return grad * 2

    @op(backward=rule)
    def noisy(context: Any, x: Any) -> Any:
        return x * 2

    x = leaf(1, 2)
    with tlmem.scope("outside"):
        y = noisy(noisy(x))
        y.backward(tlmem.ones(2))
        assert tlmem.scope_depth() == 1

    assert alive[1] - alive[0] <= 1
    assert x.grad.tolist() == [4.0, 4.0]


def test_a_rule_may_go_back_through_a_graph_of_its_own() -> None:
    def rule(context: Any, grad: Any) -> Any:
        (x,) = context.saved
        with tlmem.enable_grad():
            inner = x.detach().requires_grad_()
            (inner * inner * inner).backward(grad)
        return inner.grad

    @op(backward=rule)
    def cube(context: Any, x: Any) -> Any:
        context.save(x)
        return x * x * x

    x = leaf(1, 2)
    cube(x).sum().backward()
    assert x.grad.tolist() == [3.0, 12.0]


def test_views_of_what_is_larger_come_back_as_they_were() -> None:
    got = []

    @op(backward=lambda context, grad: (got.append(context.saved[0].tolist()), grad)[1])
    def looks(context: Any, x: Any) -> Any:
        context.save(x)
        return x * 1.0

    whole = tlmem.arange(12).astype("float32").reshape((3, 4)).requires_grad_()
    looks(tlmem.transpose(whole)[1:3]).sum().backward()

    assert got == [[[1.0, 5.0, 9.0], [2.0, 6.0, 10.0]]]
    assert whole.grad.tolist() == [[0.0, 1.0, 1.0, 0.0]] * 3
    gc.collect()


def test_threads_record_and_go_back_at_the_same_time_each_with_its_own_errors() -> None:
    wrong: list[Any] = []
    before = live_objects()

    def work(number: int) -> None:
        mine = Mine(number)
        fails = failing(mine)
        for _ in range(20):
            x = tlmem.full(3, float(number), requires_grad=True)
            y = tlmem.checkpoint(lambda z: scaled_square(tlmem.negative(z), 2.0), x)
            y.sum().backward()
            if x.grad.tolist() != [4.0 * number] * 3:
                wrong.append(x.grad)
            try:
                fails(x).sum().backward()
            except Mine as error:
                if error is not mine:
                    wrong.append(error)
            else:
                wrong.append("nothing raised")
        mine.__traceback__ = None

    threads = [Thread(target=work, args=(number,)) for number in range(1, 5)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()

    assert wrong == []
    gc.collect()
    assert live_objects() == before
