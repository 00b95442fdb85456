"""Parameters live under their name until they are dropped: S7."""

from collections.abc import Iterator

import pytest

from tlmem.runtime.errors import UseAfterFree
from tlmem.runtime.ownership.parameters import (
    drop_parameter,
    parameter,
    parameter_names,
    register_parameter,
)
from tlmem.runtime.ownership.scope import scope
from tlmem.runtime.ownership.struct import struct
from tlmem.runtime.tensors.factories import empty, ones


@pytest.fixture(autouse=True)
def an_empty_registry() -> Iterator[None]:
    yield
    for name in parameter_names():
        drop_parameter(name)


def test_a_parameter_survives_its_scope_and_is_freed_once_when_it_is_dropped(trace) -> None:
    with trace() as t:
        with scope("s"):
            w = ones(2)
            t.name(w=w)
            assert register_parameter("weight", w) is w
            assert w.count == 2
        assert w.count == 1
        for _ in range(5):
            with scope("step"):
                assert parameter("weight").tolist() == [1.0, 1.0]
        drop_parameter("weight")

    assert t.rows("REGISTER", "ACQUIRE", "RELEASE", "FREE")[:2] == [
        ("REGISTER", "w", "scope s", 1),
        ("ACQUIRE", "w", "weight", 2),
    ]
    assert t.counts("w") == [1, 1, 2, 1, 0, 0]
    assert not w.alive


def test_a_name_registered_again_takes_the_new_value_before_it_drops_the_old() -> None:
    with scope("s"):
        first, second = ones(1), ones(2)
        register_parameter("w", first)
        register_parameter("w", first)
        assert first.count == 2
        register_parameter("w", second)
        assert (first.count, second.count) == (1, 2)

    assert parameter("w") is second
    assert (first.alive, second.alive) == (False, True)


def test_s7_what_only_the_registry_holds_survives_being_registered_again() -> None:
    with scope("s"):
        w = register_parameter("w", ones(2))
    assert w.count == 1

    assert register_parameter("w", parameter("w")) is w
    assert (w.count, w.tolist()) == (1, [1.0, 1.0])


def test_a_struct_is_a_parameter_too_with_all_its_fields() -> None:
    with scope("s"):
        layer = register_parameter("layer", struct({"w": ones(2)}, "Layer"))

    assert layer.w.tolist() == [1.0, 1.0]
    drop_parameter("layer")
    with pytest.raises(UseAfterFree, match="parameter 'layer'"):
        _ = layer.w


def test_names_are_in_the_order_of_registration_and_an_unknown_one_is_told() -> None:
    register_parameter("b", empty(1))
    register_parameter("a", empty(1))

    assert parameter_names() == ["b", "a"]
    for ask in (parameter, drop_parameter):
        with pytest.raises(KeyError, match="'c'.*'b', 'a'"):
            ask("c")


def test_what_cannot_be_a_parameter_is_refused_and_changes_nothing() -> None:
    with scope("gone"):
        gone = empty(1)
    register_parameter("w", kept := empty(1))

    with pytest.raises(UseAfterFree, match="gone"):
        register_parameter("w", gone)
    with pytest.raises(TypeError, match="int"):
        register_parameter("w", 3)
    with pytest.raises(TypeError, match="name of a parameter"):
        register_parameter("", kept)

    assert parameter("w") is kept
    assert parameter_names() == ["w"]
