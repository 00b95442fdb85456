"""Writing in place where a gradient may need the former value: what is refused, and by whom.

What else a tensor says of gradients is tested in ``test_autograd_tensor``.
"""

import inspect

import pytest

import tlmem


def line() -> int:
    """The line it is called from."""
    frame = inspect.currentframe()
    assert frame is not None and frame.f_back is not None
    return frame.f_back.f_lineno


def leaf(*values: float, dtype: str = "float64") -> tlmem.Tensor:
    return tlmem.tensor(list(values), dtype, requires_grad=True)


def test_a_value_that_needs_a_gradient_is_not_written_in_place() -> None:
    a = leaf(1, 2)
    b = a * 2.0

    for target in (a, b):
        before = target.tolist()
        for write in (
            lambda t: t.fill(0),
            lambda t: t.__setitem__(0, 9.0),
            lambda t: t.__iadd__(1.0),
            lambda t: tlmem.exp(t.detach(), out=t),
        ):
            with pytest.raises(tlmem.InPlaceOnSaved, match="needs a gradient"):
                write(target)
        assert target.tolist() == before


def test_what_a_tape_saved_is_not_written_in_place() -> None:
    a, b = leaf(1, 2), tlmem.tensor([3.0, 4.0], "float64")
    c = a * b
    saved = line() - 1

    with pytest.raises(tlmem.InPlaceOnSaved) as caught:
        b += 1.0
    written = line() - 1
    assert f"multiply saved it at {__file__}:{saved}" in str(caught.value)
    assert f"in place at {__file__}:{written}" in str(caught.value)
    assert b.tolist() == [3, 4]
    del c
    b += 1.0  # nobody needs it any more
    assert b.tolist() == [4, 5]


def test_a_write_that_was_allowed_is_found_by_the_pass_that_reads_it() -> None:
    a, b = leaf(1, 2), tlmem.tensor([3.0, 4.0], "float64")
    c = (a * b).sum()
    saved = line() - 1
    with tlmem.no_grad():
        b += 1.0
        written = line() - 1

    with pytest.raises(tlmem.InPlaceOnSaved) as caught:
        c.backward()
    assert f"which multiply saved at {__file__}:{saved}" in str(caught.value)
    assert f"was written in place at {__file__}:{written} since" in str(caught.value)
    assert caught.value.object == b.handle and a.grad is None


def test_a_gradient_is_not_lost_in_memory_that_is_written() -> None:
    a, buffer = leaf(1, 2), tlmem.zeros(2, "float64")

    for write in (
        lambda: tlmem.exp(a, out=buffer),
        lambda: buffer.__iadd__(a),
        lambda: buffer.__setitem__(0, a[0]),
        lambda: tlmem.sum(a, 0, True, out=buffer[:1]),
        lambda: tlmem.concat([a], out=buffer),
    ):
        with pytest.raises(tlmem.NotDifferentiable, match="leave out= away"):
            write()
    assert buffer.tolist() == [0, 0]


@pytest.mark.parametrize("use", [lambda a: a.prod(), lambda a: a % 2.0])
def test_a_gradient_that_has_no_rule_is_refused_and_never_dropped(use) -> None:
    a = leaf(1, 2)

    with pytest.raises(tlmem.NotDifferentiable, match="there is no rule for this"):
        use(a)
    assert not use(a.detach()).requires_grad
