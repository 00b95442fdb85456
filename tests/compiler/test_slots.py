"""Slots (S11): lives that overlap never share one, and there are no more than needed."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest
from compiler import goldens
from compiler.fixtures import tensor
from compiler.programs import function_of, functions
from hypothesis import given
from hypothesis import strategies as st

from tlmem.compiler.passes.abstract import TensorType
from tlmem.compiler.passes.origins import Life
from tlmem.compiler.passes.slots import (
    ALIGNMENT,
    GOOD_ENOUGH,
    FrameLayout,
    SlotResult,
    layout,
    linear_scan,
)
from tlmem.runtime.core import CPU

MOST = 60
LIVES = st.lists(
    st.tuples(st.integers(0, 40), st.integers(0, 15)).map(lambda each: (each[0], sum(each))),
    max_size=MOST,
)
ARGUMENTS = (tensor(4, 4), tensor(4, 4), tensor(4), 3)


def overlap(one: tuple[int, int], other: tuple[int, int]) -> bool:
    return one[0] <= other[1] and other[0] <= one[1]


@given(LIVES)
def test_s11_lives_that_overlap_never_share_a_slot(lives: list[tuple[int, int]]) -> None:
    found = linear_scan(lives)
    pairs = [(i, j) for j in range(len(lives)) for i in range(j) if overlap(lives[i], lives[j])]

    assert [(i, j) for i, j in pairs if found[i] == found[j]] == []


@given(LIVES)
def test_s11_there_are_as_many_slots_as_lives_overlap_at_most(lives: list[tuple[int, int]]) -> None:
    found = linear_scan(lives)
    most = max((sum(a <= at <= b for a, b in lives) for at, _ in lives), default=0)

    assert len(set(found)) == max(found, default=-1) + 1 == most


def test_s11_frame_has_the_slots_that_are_needed_and_each_its_largest_result() -> None:
    passes = goldens.of(goldens.fixtures.straight)

    assert [each.slot for each in passes.slots.placed] == [0, 1, 0, 1, 0]
    assert passes.slots.sizes == (256, 256)
    assert passes.slots.neighbours(5) == ("h", "%3")


@pytest.mark.parametrize("batch", range(4))
def test_s11_results_of_random_functions_share_only_when_none_is_needed(batch: int) -> None:
    shared = 0
    for _, function in functions(40, 5000 + 40 * batch):
        placed = goldens.Passes(function, ARGUMENTS).slots.placed
        lives = [(each.life.first, each.life.last) for each in placed]
        for j, one in enumerate(placed):
            for i, other in enumerate(placed[:j]):
                if one.slot == other.slot:
                    assert not overlap(lives[i], lives[j])
                    shared += 1

    assert shared > 40


def refused(body: str, *arguments: Any) -> dict[str, str]:
    """Why results of a function ``f(x, n)`` are in no slot, by the variable."""
    lines = "\n".join(f"    {line}" for line in body.splitlines())
    function = function_of(f"def f(x, n):\n{lines}\n", hash(body))
    passes = goldens.Passes(function, arguments or (tensor(4, 4), 3))
    names = {life.memory: life for life in passes.origins.lives}
    found = {}
    for number, why in passes.slots.refused.items():
        assert number in names
        (name,) = passes.shapes.values[number]
        found[name] = why
    return found


def test_what_somebody_else_may_hold_is_in_no_slot() -> None:
    assert refused("y = x + 1\nprint_it(y)\nreturn 0") == {"y": "given to a call that may keep it"}
    assert refused("y = x + 1\ns = Layer(y, 1)\nreturn s") == {"y": "stored in a struct"}
    assert refused("y = x + 1\nz = y.T\nreturn z") == {"y": "returned"}
    assert refused("y = x + 1\nt = (y, 1)\nreturn t") == {"y": "returned"}
    assert refused("y = x + 1\nz = y.detach()\nz.requires_grad_()\nreturn 0") == {
        "y": "held by somebody else afterwards"
    }


def test_what_a_tape_may_keep_is_in_no_slot() -> None:
    weight = tensor(4, 4, grad=True)

    assert refused("y = x.detach() * 2\nz = y @ x\nreturn z.detach().sum()", weight, 1) == {
        "y": "recorded on a tape",
        "z": "it may need a gradient",
        "%3": "returned",
    }
    assert refused("y = (x > 1)\nz = y.sum() + n\nreturn z.item()", weight, 1) == {}


def test_s11_what_needs_a_gradient_on_one_way_only_is_in_no_slot() -> None:
    body = "if n:\n    y = x * 2\nelse:\n    y = x.detach() * 2\nz = y + 1\nreturn z.sum()"
    found = refused(body, tensor(4, 4, grad=True), 1)

    assert found["z"] == "it may need a gradient"


def test_a_result_that_the_next_turn_still_needs_is_in_no_slot() -> None:
    late = "y = x + 1\nfor i in range(n):\n    z = y\n    y = x * 2\n    x = z - y\nreturn x.sum()"
    own = "y = x + 1\nfor i in range(n):\n    y = y @ x\nreturn y.sum()"

    assert refused(late)["y"] == "the result of the last turn is still needed"
    assert refused(own)["y"] == "it is computed from its own last result"
    assert set(refused(own.replace("@", "+")).values()) == {"returned"}


def test_what_is_not_known_costs_a_slot_and_nothing_else() -> None:
    unknown = TensorType(None, "float32", CPU, False)

    assert refused("y = x + 1\nz = y[0] + n\nreturn 0", unknown, 1) == dict.fromkeys(
        ("y", "z"), "its shape or dtype is not known"
    )


# ---- offsets ----


def random_placed(seed: int) -> tuple[SlotResult, ...]:
    r = Random(seed)
    found = []
    for number in range(1, r.randint(2, 60)):
        life = Life(number, number, number + r.randint(0, 8))
        found.append(
            SlotResult(number, f"%{number}", life, 0, r.choice((4, 100, 4096, 1000, 65536)))
        )
    return tuple(found)


def assert_sound(placed: tuple[SlotResult, ...], found: FrameLayout) -> None:
    """No two results that are needed at one place overlap; all are aligned and inside."""
    for j, one in enumerate(placed):
        begin = found.offsets[one.number]
        assert begin % ALIGNMENT == 0
        assert begin + one.nbytes <= found.nbytes
        for other in placed[:j]:
            at = found.offsets[other.number]
            if overlap((one.life.first, one.life.last), (other.life.first, other.life.last)):
                assert at + other.nbytes <= begin or begin + one.nbytes <= at


def test_offsets_keep_what_is_needed_together_apart() -> None:
    for seed in range(60):
        placed = random_placed(seed)
        found = layout(placed)
        assert_sound(placed, found)
        assert found.lower_bound_bytes <= found.nbytes <= found.apart_bytes


def test_frame_is_hardly_larger_than_what_is_needed_at_one_place() -> None:
    ratios = []
    for seed in range(60):
        found = layout(random_placed(seed))
        ratios.append(found.nbytes / found.lower_bound_bytes)

    assert max(ratios) <= GOOD_ENOUGH


@pytest.mark.parametrize("depth, width, rows", [(1, 8, 1), (3, 64, 16), (12, 100, 7), (40, 33, 5)])
def test_frame_of_an_mlp_is_as_small_as_it_can_be(depth: int, width: int, rows: int) -> None:
    lines = [f"    h = tlmem.relu(h @ w + b) * {i + 1}" for i in range(depth)]
    source = "\n".join(["def f(x, w, b):", "    h = x", *lines, "    return h.sum(0) @ w", ""])
    arguments = (tensor(rows, width), tensor(width, width), tensor(width))
    passes = goldens.Passes(function_of(source, depth), arguments)
    assert_sound(passes.slots.placed, passes.layout)

    assert len(passes.slots.placed) == 4 * depth + 1
    assert passes.layout.nbytes <= GOOD_ENOUGH * passes.layout.lower_bound_bytes


def test_frame_of_nothing_is_nothing() -> None:
    assert layout(()) == FrameLayout({}, 0, 0, 0)
