"""Functions and ops that are run again instead of saving what is inside; for bytes see S62."""

from typing import Any

import pytest
from runtime.trace import live_objects

import tlmem


def leaf(*values: float) -> tlmem.Tensor:
    return tlmem.tensor(list(values), requires_grad=True)


def block(x: Any, w: Any, scale: float = 1.0) -> Any:
    return tlmem.tanh(tlmem.sin(x * w) * scale)


def gradients(apply: Any) -> tuple[Any, ...]:
    """Of two inputs, after the same loss."""
    x, w = leaf(0.5, -1.0, 2.0), leaf(3.0, 1.0, 0.25)
    value = apply(x, w)
    (value * value).sum().backward()
    return value.tolist(), x.grad.tolist(), w.grad.tolist()


def test_gradients_are_those_of_the_function_to_the_bit() -> None:
    assert gradients(lambda x, w: tlmem.checkpoint(block, x, w, 0.5)) == gradients(
        lambda x, w: block(x, w, 0.5)
    )
    assert gradients(lambda x, w: tlmem.checkpoint(block, x, w, scale=0.5)) == gradients(
        lambda x, w: block(x, w, 0.5)
    )


def test_only_the_arguments_are_kept() -> None:
    x, w = leaf(0.5, -1.0), leaf(3.0, 1.0)
    kept = tlmem.checkpoint(block, x, w)

    stats = tlmem.tape().stats()
    assert (stats.records, stats.saved_bytes) == (1, x.nbytes + w.nbytes)
    assert kept.requires_grad


def test_checkpoints_may_be_nested_and_follow_each_other() -> None:
    def outer(x: Any, w: Any) -> Any:
        return tlmem.checkpoint(block, tlmem.checkpoint(block, x, w), w) * x

    def plain(x: Any, w: Any) -> Any:
        return block(block(x, w), w) * x

    expected = gradients(plain)
    assert gradients(outer) == expected
    assert gradients(lambda x, w: tlmem.checkpoint(outer, x, w)) == expected
    assert tlmem.tape().stats().records == 0


def test_parameters_may_be_read_from_anywhere_and_the_input_may_need_no_gradient() -> None:
    w = leaf(3.0, 1.0)
    data = tlmem.tensor([0.5, -1.0])

    kept = tlmem.checkpoint(lambda x: block(x, w), data)
    kept.sum().backward()
    found = w.grad.tolist()
    tlmem.clear_grads()
    block(data, w).sum().backward()

    assert found == w.grad.tolist()
    assert data.grad is None


def test_a_failed_pass_leaves_parameters_inside_as_they_were() -> None:
    w, x = leaf(3.0, 1.0), leaf(1.0, 2.0)

    @tlmem.op(backward=lambda context, grad: 1 / 0)
    def fails(context: Any, x: Any) -> Any:
        return x * 1.0

    before = live_objects()
    kept = tlmem.checkpoint(lambda y: y * w, fails(x)).sum()
    with pytest.raises(ZeroDivisionError):
        kept.backward()

    assert (w.grad, x.grad) == (None, None)
    del kept
    assert live_objects() == before


def test_a_result_needs_a_gradient_when_something_was_read_that_does() -> None:
    data, w = tlmem.tensor([0.5, -1.0]), leaf(3.0, 1.0)
    before = tlmem.tape().stats().recorded

    assert not tlmem.checkpoint(lambda x: tlmem.tanh(x * 2) + w.detach(), data).requires_grad
    assert not tlmem.checkpoint(lambda x: x * 2, data * 3).requires_grad
    assert tlmem.tape().stats().recorded == before
    nested = tlmem.checkpoint(lambda x: tlmem.checkpoint(lambda y: y + w, x) * 2, data)
    assert nested.requires_grad
    assert tlmem.checkpoint(lambda x: x.prod() * w.prod(), data).requires_grad
    nested.sum().backward()
    assert w.grad.tolist() == [2.0, 2.0]


def test_a_computed_tensor_that_is_no_argument_gives_an_error_not_a_wrong_gradient() -> None:
    x = leaf(1.0, 2.0)
    hidden = x * 2
    kept = tlmem.checkpoint(lambda y: y * hidden, x * 3)
    with pytest.raises(
        (tlmem.BackwardRunning, tlmem.SecondBackward), match=r"argument|retain_graph"
    ):
        (kept + hidden).sum().backward()

    assert x.grad is None


def test_dropout_and_unseeded_numbers_inside_are_the_same_again() -> None:
    masks = []

    def noisy(x: Any) -> Any:
        mask = tlmem.dropout(tlmem.ones(64), 0.5) + tlmem.randn(64)
        masks.append(mask.tolist())
        return x * mask

    x = tlmem.ones(64, requires_grad=True)
    first, second = tlmem.checkpoint(noisy, x), tlmem.checkpoint(noisy, x)
    second.sum().backward()
    first.sum().backward()

    assert masks[0] == masks[3]
    assert masks[1] == masks[2]
    assert masks[0] != masks[1]
    assert x.grad.tolist() == (tlmem.tensor(masks[0]) + tlmem.tensor(masks[1])).tolist()


def test_what_a_checkpoint_cannot_do_is_said() -> None:
    x = leaf(1.0)
    with pytest.raises(TypeError, match="returns one tensor, not tuple; stack or concatenate"):
        tlmem.checkpoint(lambda y: (y, y), x)
    with pytest.raises(TypeError, match="takes tensors by position, not as w="):
        tlmem.checkpoint(block, x, w=x)


def test_an_argument_that_is_returned_gets_its_gradient() -> None:
    x = leaf(1.0, 2.0)
    same = tlmem.checkpoint(lambda y: y, x)
    (same * 3).sum().backward()

    assert x.grad.tolist() == [3.0, 3.0]


def test_without_gradients_the_function_is_just_called() -> None:
    x = leaf(1.0)
    before = tlmem.tape().stats().recorded
    with tlmem.no_grad():
        assert not tlmem.checkpoint(lambda y: y * 2, x).requires_grad

    assert tlmem.tape().stats().recorded == before


def test_with_retain_graph_a_checkpoint_runs_again_for_each_pass() -> None:
    x, calls = leaf(1.0, 2.0), []

    def counted(y: Any) -> Any:
        calls.append(1)
        return y * y

    total = tlmem.checkpoint(counted, x).sum()
    total.backward(retain_graph=True)
    total.backward()

    assert (len(calls), x.grad.tolist()) == (3, [4.0, 8.0])


# ---- recompute ----


def test_recompute_chooses_ops_for_its_block_alone() -> None:
    x = tlmem.full((10,), 0.5, requires_grad=True)
    with tlmem.Tape() as tape:
        with tlmem.recompute("exp"):
            with tlmem.recompute("tanh"):
                kept = [tlmem.exp(x), tlmem.tanh(x)]
                assert tape.stats().saved_bytes == x.nbytes
            kept.append(tlmem.tanh(x))
            assert tape.stats().saved_bytes == 2 * x.nbytes
            kept.append(tlmem.exp(x))
            assert tape.stats().saved_bytes == 2 * x.nbytes
        kept.append(tlmem.exp(x))
        assert tape.stats().saved_bytes == 3 * x.nbytes
        del kept


def test_without_names_all_that_can_be_computed_again_is() -> None:
    x = tlmem.full((10,), 0.5, requires_grad=True)
    with tlmem.Tape() as tape, tlmem.recompute():
        y = tlmem.exp(tlmem.tanh(tlmem.sin(x) * 2))
        assert tape.stats().saved_bytes == x.nbytes
        y.sum().backward()
    found = x.grad
    plain = tlmem.full((10,), 0.5, requires_grad=True)
    tlmem.exp(tlmem.tanh(tlmem.sin(plain) * 2)).sum().backward()

    assert found is None  # the tape has ended
    assert plain.grad is not None


def test_an_op_that_is_not_known_is_said_with_those_that_are() -> None:
    with pytest.raises(ValueError, match="op 'tanhh' is not known; those that can are .*tanh"):
        tlmem.recompute("tanhh")
