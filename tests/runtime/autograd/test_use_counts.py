"""``Tape.use_counts``: how often each value is still read by a rule (S63)."""

from __future__ import annotations

import gc

import pytest

import tlmem


def three() -> tlmem.Tensor:
    return tlmem.tensor([1.0, 2.0, 3.0], requires_grad=True)


def test_a_chain_of_operations_on_one_input_counts_each_value_once() -> None:
    """The seed counts the second input of an operation that has none: its first value."""
    leaf = three()
    with tlmem.Tape("t") as t:
        a = tlmem.exp(leaf)
        b = tlmem.sin(a)
        c = tlmem.sum(b)
        assert t.use_counts() == [1, 1, 1, 0]
        assert t.use_counts(leaf, a, b, c) == [1, 1, 1, 0]
        c.backward()
        assert t.use_counts(leaf, a, b, c) == [0, 0, 0, 0]


def test_each_input_of_each_record_counts() -> None:
    leaf = three()
    with tlmem.Tape("t") as t:
        square = leaf * leaf
        shifted = leaf + square
        other = shifted * square
        plain = tlmem.ones(3)
        assert t.use_counts(leaf, square, shifted, other, plain) == [3, 2, 1, 0, 0]
        assert sum(t.use_counts()) == 6
        del other
        gc.collect()
        assert t.use_counts(leaf, square, shifted) == [3, 1, 0]


def test_operations_on_constants_count_nothing() -> None:
    leaf = three()
    with tlmem.Tape("t") as t:
        x = tlmem.ones(3) * 2 + 1
        with tlmem.no_grad():
            y = leaf * 2
        assert sum(t.use_counts()) == t.stats().records == 0
        assert t.use_counts(x, y, leaf) == [0, 0, 0]


def test_counts_fall_in_the_middle_of_a_pass() -> None:
    seen, leaf = [], three()

    def rule(context, gradient):
        seen.append(t.use_counts(leaf, first))
        return gradient

    @tlmem.op(backward=rule)
    def watched(context, x):
        return x * 1

    with tlmem.Tape("t") as t:
        first = leaf * 2
        result = tlmem.sum(watched(first) * first)
        assert t.use_counts(leaf, first) == [1, 2]
        result.backward()
        assert seen == [[1, 1]]  # the product has run, the op itself and what is before it have not
        assert t.use_counts(leaf, first) == [0, 0]


def test_a_graph_that_is_retained_keeps_its_counts() -> None:
    leaf = three()
    with tlmem.Tape("t") as t:
        result = tlmem.sum(leaf * leaf)
        before = t.use_counts()
        result.backward(retain_graph=True)
        assert t.use_counts() == before
        result.backward()
        assert set(t.use_counts()) == {0}


def test_many_values_in_the_order_in_which_they_came() -> None:
    leaf = three()
    with tlmem.Tape("t") as t:
        values, x = [leaf], leaf
        for _ in range(1000):
            x = x * 0.5
            values.append(x)
        del values[100:200]
        gc.collect()
        expected = [1] * 1000 + [0]
        assert t.use_counts() == expected
        assert t.use_counts(*values) == [1] * (len(values) - 1) + [0]
        tlmem.sum(x).backward()
        assert set(t.use_counts(*values)) == {0}


def test_after_a_reset_and_of_a_tape_that_has_ended_there_are_none() -> None:
    leaf = three()
    with tlmem.Tape("t") as t:
        kept = leaf * 2
        t.reset()
        assert t.use_counts() == []
        assert t.use_counts(kept) == [0]
    assert t.use_counts() == []


def test_asking_puts_nothing_on_the_tape() -> None:
    leaf = three()
    with tlmem.Tape("t") as t:
        assert t.use_counts(leaf) == [0]
        assert (t.use_counts(), t.stats().leaves) == ([], 0)


def test_what_is_not_a_tensor_is_a_type_error() -> None:
    with pytest.raises(TypeError, match="use_counts takes tensors, not int"):
        tlmem.tape().use_counts(3)
