"""``tlmem.explain``: each ownership operation, and each that is left out with its reason."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest

import tlmem


@dataclass
class Layer:
    w: Any
    b: Any


def forward(x, w):
    h = x @ w
    y = h
    g = tlmem.relu(y) + x
    s = Layer(g, w)
    return s.w


def reasons(policy: str, **given: Any) -> list[tuple[str, str, bool, str]]:
    compiled = tlmem.compile(policy=policy)(forward)
    x, w = tlmem.ones((3, 3)), tlmem.ones((3, 3))
    compiled(x, w)
    found = tlmem.explain(compiled)
    compiled.compiled.clear()
    return [(each.name, each.operation, each.done, each.reason) for each in found.rows]


def test_moves_and_borrows_and_slots_say_why() -> None:
    found = reasons("v3")

    assert ("x", "acquire", False, "borrowed") in found
    assert ("g", "acquire", False, "moved into s at its last use") in found
    assert any(name == "h" and operation == "slot" and done for name, operation, done, _ in found)
    assert any("its memory is not the scope's" in reason for *_, reason in found)


def test_shared_ownership_says_every_acquire() -> None:
    found = reasons("v1")

    assert ("h", "acquire", True, "for y") in found
    assert ("g", "acquire", True, "for a field of s") in found
    assert not any(operation == "slot" for _, operation, _, _ in found)


def test_text_shows_the_lines_of_the_program_and_the_table_has_the_same_rows() -> None:
    compiled = tlmem.compile(policy="v5")(forward)
    found = tlmem.explain(compiled)  # before any call
    text, table = str(found), found.table()

    assert "y = h" in text
    assert "- no acquire x: borrowed" in text
    assert found.done + found.left_out == len(table) == len(found.rows)
    line = forward.__code__.co_firstlineno + 2
    assert set(table.loc[table["line"] == line, "source"]) == {"y = h"}


def test_the_default_policy_tells_what_is_planned() -> None:
    @tlmem.compile
    def plain(x, w):
        h = tlmem.relu(x @ w)
        g = tlmem.tanh(h)
        return g @ w

    x, w = tlmem.ones((4, 4)), tlmem.ones((4, 4))
    plain(x, w)
    found = {
        (each.name, each.operation, each.done): each.reason for each in tlmem.explain(plain).rows
    }
    plain.compiled.clear()

    assert "in the frame at byte" in found["h", "allocate", False]
    assert "slot shared with" in found["g", "allocate", False]
    assert any(operation == "allocate" and done for _, operation, done in found)


def test_loops_that_clear_gradients_say_so() -> None:
    @tlmem.compile
    def train(x, w):
        for _ in range(2):
            (x * w).sum().backward()

    rows = tlmem.explain(train).rows
    assert [each.name for each in rows if each.operation == "clear gradients"] == ["_"]


def test_what_is_not_compiled_is_named() -> None:
    with pytest.raises(TypeError, match=r"forward is none; decorate it with @tlmem\.compile"):
        tlmem.explain(forward)
