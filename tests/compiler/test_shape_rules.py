"""Every rule against the operation itself: shape, dtype, device, gradient, or that both refuse."""

from dataclasses import replace
from random import Random
from typing import Any

import numpy as np
import pytest
from compiler.random_ops import MAKERS, one, two

import tlmem
from tlmem import _exports as public
from tlmem.compiler.passes import rules_elements
from tlmem.compiler.passes.abstract import UNKNOWN, PlainType, TensorType, abstract, joined, same
from tlmem.compiler.passes.shape_rules import PLAIN, SAME, VIEW, result_of, rules

CALLS = 150
NOT_OF_TENSORS = {"backward", "zero_grad", "retain_grad", "clear_grads", "escape", "tolist"}
OPS = sorted(set(rules()) - NOT_OF_TENSORS)
METHODS = {"T", "abs", "getitem", "flatten", "copy", "astype", "to", "contiguous", "fill"}
METHODS |= {"requires_grad_", "item", "detach"}


def call_of(op: str, r: Random) -> tuple[tuple[Any, ...], dict[str, Any]]:
    maker = MAKERS.get(op, two if op in rules_elements.TWO else one)
    return maker(r)


def perform(op: str, operands: tuple[Any, ...], options: dict[str, Any]) -> Any:
    """What the operation gives; the error that it raises."""
    try:
        with np.errstate(all="ignore"):
            if op == "T":
                return operands[0].T
            if op == "getitem":
                return operands[0][operands[1]]
            if op in METHODS:
                return getattr(operands[0], op)(*operands[1:], **options)
            return getattr(tlmem, op)(*operands, **options)
    except (TypeError, ValueError, IndexError, RuntimeError) as error:
        return error.with_traceback(None)  # which holds the operands


def seen(value: Any) -> Any:
    """An operand as a rule sees it: lists are tuples."""
    return (
        abstract(tuple(map(seen, value)) if isinstance(value, list) else value)
        if not (isinstance(value, tuple | list))
        else tuple(map(seen, value))
    )


def infer(op: str, operands: tuple[Any, ...], options: dict[str, Any]) -> Any:
    try:
        return result_of(op, operands, options)
    except (TypeError, ValueError, IndexError, RuntimeError) as error:
        return error


def contradiction(found: Any, real: Any) -> str:
    """What an abstract result says wrongly of a real one; empty when nothing."""
    if isinstance(real, Exception):
        return ""
    if isinstance(found, Exception):
        return f"refused ({found}), but gives {real!r}"
    if found is UNKNOWN:
        return ""
    if isinstance(found, PlainType):
        return "" if type(real) is found.kind else f"{found} is {real!r}"
    facts = abstract(real)
    for name in ("shape", "dtype", "device", "grad"):
        if getattr(found, name) not in (None, getattr(facts, name)):
            return f"{name} {getattr(found, name)} is {getattr(facts, name)}"
    return "not contiguous" if found.contiguous and not facts.contiguous else ""


@pytest.mark.parametrize("op", OPS)
def test_rule_says_what_the_operation_gives_or_that_it_refuses(op: str) -> None:
    r = Random(op)
    results = refusals = 0
    for _ in range(CALLS):
        operands, options = call_of(op, r)
        found = infer(op, tuple(map(seen, operands)), {n: seen(v) for n, v in options.items()})
        real = perform(op, operands, options)
        about = f"{op}{[seen(each) for each in operands]} {options}: {found} for {real!r}"
        assert contradiction(found, real) == "", about
        if isinstance(real, Exception):
            refusals += 1
            assert isinstance(found, Exception), about
        else:
            results += 1
            assert known(found, real), about

    assert results > CALLS / 10
    assert results + refusals == CALLS


def known(found: Any, real: Any) -> bool:
    """Whether a rule says all that can be known: lengths that hang on elements cannot."""
    if isinstance(found, PlainType):
        return True
    return found.shape is not None and found.dtype is not None


@pytest.mark.parametrize("op", OPS)
def test_rule_is_right_also_when_operands_are_half_known(op: str) -> None:
    r = Random(f"half {op}")
    for _ in range(CALLS):
        operands, options = call_of(op, r)
        given = tuple(forgotten(r, seen(each)) for each in operands)
        found = infer(op, given, {name: forgotten(r, seen(v)) for name, v in options.items()})
        real = perform(op, operands, options)

        assert contradiction(found, real) == "", f"{op}{given} of {operands}: {found}"


def forgotten(r: Random, value: Any) -> Any:
    """A value of which something is not known any more."""
    if isinstance(value, TensorType):
        names = [name for name in ("shape", "dtype", "device", "grad") if r.random() < 0.3]
        return UNKNOWN if r.random() < 0.05 else replace(value, **dict.fromkeys(names))
    if isinstance(value, tuple):
        return tuple(forgotten(r, each) for each in value)
    return r.choice((value, value, PlainType(type(value)), UNKNOWN))


def test_every_function_of_tensors_has_a_rule() -> None:
    modules = "elementwise functions linalg reductions shaping views factories".split()
    named = {
        name
        for name, module in public.MODULE_OF.items()
        if module.removeprefix("tlmem.runtime.") in modules
    }

    assert named - set(rules()) == set()


def tensors_of(values: Any) -> list[Any]:
    """Tensors among operands, also in lists."""
    lists = [each if isinstance(each, list | tuple) else [each] for each in values]
    return [each for part in lists for each in part if isinstance(each, tlmem.Tensor)]


@pytest.mark.parametrize("op", OPS)
def test_rule_says_where_the_memory_of_the_result_is(op: str) -> None:
    r, memory = Random(op), rules()[op].memory
    for _ in range(60):
        operands, options = call_of(op, r)
        real = perform(op, operands, options)
        if isinstance(real, Exception):
            continue
        is_operand = any(real is each for each in operands)
        owners = {each._base_handle or each.handle for each in tensors_of(operands)}
        looks_in = getattr(real, "_base_handle", 0) in owners
        if memory == PLAIN:
            assert not isinstance(real, tlmem.Tensor)
        elif memory == SAME:
            assert is_operand
        elif memory == VIEW:
            assert real.is_view and not is_operand
        elif memory != "either":
            assert not looks_in and not is_operand


@pytest.mark.parametrize("op", sorted(name for name in OPS if rules()[name].out))
def test_rule_says_which_operations_take_a_destination(op: str) -> None:
    r = Random(op)
    written = 0
    for _ in range(300):
        operands, options = call_of(op, r)
        made = infer(op, tuple(map(seen, operands)), {n: seen(v) for n, v in options.items()})
        if isinstance(made, Exception) or made.grad is not False:
            continue
        out = tlmem.empty(made.shape, made.dtype)
        expected, real = (
            perform(op, operands, options),
            perform(op, operands, options | {"out": out}),
        )
        assert real is out
        np.testing.assert_array_equal(real.numpy(), expected.numpy())
        written += 1

    assert written > 5


def test_half_known_values_meet_in_what_they_share() -> None:
    one, other = TensorType((2, 3), "float32", 0, False, True), TensorType((2, 3), "float64", 0)

    assert joined(one, other) == TensorType((2, 3), None, 0, None, False)
    assert joined(1, 2) == PlainType(int)
    assert joined(1, True) is UNKNOWN
    assert joined((1, one), (1, one)) == (1, one)
    assert joined(one, 1) is UNKNOWN
    assert same(joined(0.0, -0.0), PlainType(float))
    assert same(joined(float("nan"), float("nan")), float("nan"))
