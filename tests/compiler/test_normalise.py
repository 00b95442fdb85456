"""Containers called Tensor (S29): taken off at the boundary, and never treated as structs."""

from __future__ import annotations

from dataclasses import dataclass, make_dataclass
from typing import Annotated, Any

import pytest
from runtime.trace import Tracer

import tlmem
from tlmem.compiler import front, ir
from tlmem.compiler.compiled import compile
from tlmem.compiler.errors import NotCompilable
from tlmem.compiler.passes.abstract import UNKNOWN, PlainType, TensorType
from tlmem.compiler.passes.normalise import argument, normalised
from tlmem.compiler.signature import annotated, arguments_of
from tlmem.compiler.walking import walk
from tlmem.runtime.core import CPU


@dataclass
class Tensor:
    """What a program might call so."""

    data: Any


def doubled(x: Tensor) -> Any:
    y = x.data * 2
    z = Tensor(y)
    return z.data + x.data


def wrapped(x: Any) -> Any:
    return Tensor(x + 1)


def written(x: Tensor) -> Any:
    x.data = x.data + 1
    return x


def passes(function: Any) -> ir.Function:
    return normalised(front.read(function), function.__globals__.get)


def test_s29_no_statement_behind_the_boundary_is_about_a_container() -> None:
    function = passes(doubled)
    kinds = {type(each) for each in walk(function.body)}

    assert kinds & {ir.MakeStruct, ir.GetField, ir.SetField} == set()
    assert [each.number for each in walk(function.body)] == [
        each.number for each in walk(front.read(doubled).body)
    ]


def test_s29_the_tensor_in_a_container_stands_for_it() -> None:
    t = tlmem.ones(3)
    inner = tlmem.struct(Tensor(t))

    assert argument(Tensor(t)) is t
    assert argument(inner) is t
    assert argument(t) is t
    assert argument(5) == 5
    inner.free()


def test_s29_a_container_produces_events_of_tensors_only(trace: Tracer) -> None:
    function = compile(doubled)
    x = tlmem.ones((2, 2))
    container = tlmem.struct(Tensor(x))
    assert function(x).tolist() == function(container).tolist() == [[3, 3], [3, 3]]
    with trace(x=x, container=container) as plain:
        function(x)
    with trace(x=x, container=container) as t:
        function(container)
    container.free()
    function.compiled.clear()

    assert t.of("container") == t.of("x") == []
    assert t.pairs() == plain.pairs()


def renamed(x: Tensor) -> Any:
    y = x
    z = Tensor(y.data + 1)
    w = z
    return w.data * y.data


def test_s29_another_name_of_a_container_is_the_tensor_too() -> None:
    kinds = {type(each) for each in walk(passes(renamed).body)}
    function = compile(renamed)
    made = function(Tensor(tlmem.ones(2)))
    function.compiled.clear()

    assert kinds & {ir.MakeStruct, ir.GetField, ir.SetField} == set()
    assert made.tolist() == [2, 2]


def test_s29_a_result_is_the_tensor() -> None:
    function = compile(wrapped)
    made = function(tlmem.ones(2))
    function.compiled.clear()

    assert made.tolist() == [2, 2]


def test_s29_what_cannot_stand_for_one_tensor_is_refused() -> None:
    several = make_dataclass("Tensor", ["data", "grad"])

    with pytest.raises(TypeError, match="with 2 fields.*pass the tensor itself"):
        argument(several(tlmem.ones(2), None))
    with pytest.raises(TypeError, match="pass the tensor itself"):
        argument(Tensor(5))
    with pytest.raises(NotCompilable, match="write to the field of a container called Tensor"):
        passes(written)


def test_annotations_say_shapes() -> None:
    expected = TensorType((4, 8), "float32", CPU, False, True)

    assert annotated("float32[4, 8]") == annotated("Float32[4,8]") == expected
    assert annotated("tlmem.Float32[4, 8]") == expected
    assert annotated(Annotated[tlmem.Tensor, "float32[4, 8]"]) == expected
    assert annotated("bool[]") == TensorType((), "bool", CPU, False, True)
    assert annotated(int) == PlainType(int)
    assert annotated("complex64[3]") is annotated(None) is annotated(Tensor) is UNKNOWN


def planned(x: Float32[4, 8], n: int, y):  # type: ignore[no-untyped-def] # noqa: F821
    return x * n + y


def test_annotations_of_a_function_are_read_without_a_call() -> None:
    assert arguments_of(front.read(planned)) == {
        "x": TensorType((4, 8), "float32", CPU, False, True),
        "n": PlainType(int),
    }
