"""Bugs of the seeds about tapes: B7, B9, B14, and B15 where operations are recorded.

docs/bugs.md says what each of them was.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from runtime.autograd.gradient_table import OPS
from runtime.autograd.gradients import Random
from runtime.exits import Left, each_way_out, recorded
from runtime.trace import live_objects, statistics

import tlmem
from tlmem.runtime.errors import BackwardRunning, InPlaceOnSaved, SecondBackward, UseAfterFree

Tensor = tlmem.Tensor


def weights(rows: int = 4, columns: int = 4, seed: int = 1) -> Tensor:
    """A leaf in float64."""
    return tlmem.randn((rows, columns), "float64", seed=seed, requires_grad=True)


def through(rule: Callable[[Tensor], Any]) -> Callable[[Tensor], Tensor]:
    """An identity that does something when its rule runs."""

    def backward(context: object, grad: Tensor) -> Tensor:
        rule(grad)
        return grad

    def forward(context: object, value: Tensor) -> Tensor:
        return value * 1

    return tlmem.op(backward=backward)(forward)


def held_by_tapes() -> tuple[int, ...]:
    """Records, leaves, gradients and bytes that the tape in force holds."""
    now = tlmem.tape().stats()
    return now.records, now.leaves, now.grads, now.saved_bytes, now.grad_bytes


# ---- B7: backward and detach cleared what others could still reach ----


@each_way_out
def test_b7_backward_leaves_what_the_program_holds_as_it_was(leave, trace) -> None:
    with trace() as t:

        def work() -> None:
            leaf, constant = weights(), tlmem.ones((4, 4), "float64")
            hidden = tlmem.relu(leaf @ constant)
            alias, squared = hidden.reshape(16), hidden * hidden
            loss = tlmem.sum(squared)
            held = [leaf, constant, hidden, alias, squared, loss]
            before = [each.tolist() for each in held]
            loss.backward()
            assert [each.tolist() for each in held] == before
            assert leaf.grad is not None
            assert hidden.grad is squared.grad is loss.grad is None

        leave(tlmem.scope("s"), work)

    assert t.misuses() == []
    assert t.count("ALLOC") == t.count("FREE")
    assert held_by_tapes() == (0, 0, 0, 0, 0)
    recorded(trace)


@each_way_out
def test_b7_detach_takes_nothing_from_anybody(leave, trace) -> None:
    with trace() as t:

        def work() -> None:
            leaf, constant = weights(), tlmem.full((4, 4), 2.0, "float64")
            hidden = tlmem.tanh(leaf * constant)
            other = hidden * constant
            held = [leaf, constant, hidden, other]
            before = [each.tolist() for each in held]
            cut = tlmem.detach(hidden)
            assert [each.tolist() for each in held] == before
            assert (cut.tolist(), cut.requires_grad) == (before[2], False)
            tlmem.sum(other).backward()
            slope = 4.0 * (1 - np.tanh(2.0 * leaf.numpy()) ** 2)
            np.testing.assert_allclose(leaf.grad.numpy(), slope)
            del hidden, other
            assert cut.tolist() == before[2]

        leave(tlmem.scope("s"), work)

    assert t.misuses() == []
    assert t.count("DETACH") == 1
    assert t.count("ALLOC") == t.count("FREE")
    recorded(trace)


def test_b7_a_graph_goes_with_the_last_name_of_its_end_and_leaves_stay(trace) -> None:
    leaf = weights()
    with trace(leaf=leaf) as t:
        end = tlmem.exp(leaf * leaf)
        cut = tlmem.detach(end)
        t.name(end=end)
        assert held_by_tapes()[0] == 2
        del end
        assert held_by_tapes()[:4] == (0, 1, 0, 0)
        np.testing.assert_allclose(cut.numpy(), np.exp(leaf.numpy() ** 2))
        del cut

    assert t.of("leaf").count("FREE") == 0
    assert t.of("end").count("FREE") == 1
    recorded(trace)


def looked_at(tensor: Tensor) -> Tensor:
    """A view that is not recorded."""
    with tlmem.no_grad():
        return tensor.reshape(2, 8)[1]


LOOKS: dict[str, Callable[[Tensor], Tensor]] = {
    "detached": tlmem.detach,
    "part of a detached": lambda tensor: tlmem.detach(tensor)[1],
    "a detached part": lambda tensor: tlmem.detach(tensor[1]),
    "not recorded": looked_at,
    "compared": lambda tensor: tensor > 0,
}


@pytest.mark.parametrize("name", LOOKS)
def test_b7_what_only_looks_at_a_result_keeps_its_memory_and_not_its_graph(name: str) -> None:
    leaf = weights()
    result = tlmem.exp(leaf * leaf)
    look = LOOKS[name](result)
    values = look.tolist()
    assert held_by_tapes()[0] >= 2
    del result

    assert held_by_tapes() == (0, 1, 0, 0, 0)
    assert look.tolist() == values
    assert not look.requires_grad


OPERATIONS: list[Callable[[Any, Any, Any], Any]] = [
    lambda engine, a, b: engine.tanh(a + b),
    lambda engine, a, b: engine.tanh(a * b),
    lambda engine, a, b: engine.tanh(a - 2.0 * b),
    lambda engine, a, b: a.reshape(6) if a.shape == (2, 3) else a.reshape(2, 3),
    lambda engine, a, b: engine.sin(a),
]
"""Of tlmem or NumPy and two values of one shape; what they give stays between -2 and 2."""


@given(
    st.lists(
        st.tuples(st.integers(0, 8), st.integers(0, 50), st.integers(0, 50)),
        min_size=5,
        max_size=40,
    )
)
@settings(max_examples=80, deadline=None)
def test_b7_whatever_is_let_go_cut_or_run_back_what_is_held_keeps_its_values(steps: list) -> None:
    """Every value beside what NumPy says; some are dropped, some detached, some are roots."""
    start = np.linspace(-1, 1, 6).reshape(2, 3)
    pairs = [
        (tlmem.tensor(start, "float64", requires_grad=True), start),
        (tlmem.tensor(start + 1, "float64"), start + 1),
    ]
    for action, left, right in steps:
        a, b = pairs[left % len(pairs)], pairs[right % len(pairs)]
        if action < len(OPERATIONS):
            if a[1].shape != b[1].shape:
                b = a
            operation = OPERATIONS[action]
            pairs.append((operation(tlmem, a[0], b[0]), operation(np, a[1], b[1])))
        elif action == 5:
            pairs.append((tlmem.detach(a[0]), a[1]))
        elif action == 6 and len(pairs) > 2:
            del pairs[left % len(pairs)]
        elif a[0].requires_grad:
            try:
                tlmem.sum(a[0]).backward(retain_graph=action == 7)
            except SecondBackward:
                pass
        del a, b
        for tensor, expected in pairs:
            np.testing.assert_allclose(tensor.numpy(), expected)
    pairs.clear()
    del tensor
    assert held_by_tapes()[:4] == (0, 0, 0, 0)


# ---- B9: backward kept raw pointers to nodes ----


def test_b9_the_last_names_of_the_nodes_in_the_list_may_go_in_the_middle_of_a_pass(trace) -> None:
    names: list[Tensor] = []
    with trace() as t:
        leaf = weights()
        at_first = through(lambda grad: names.clear())
        node = leaf * 1.0
        for _ in range(20):
            node = node * 1.5 + leaf
            names.append(node)
        end = tlmem.sum(at_first(node))
        names.append(end)
        del node
        end.backward()
        expected = 1.0
        for _ in range(20):
            expected = expected * 1.5 + 1.0
        np.testing.assert_allclose(leaf.grad.numpy(), expected)
        del end, leaf

    assert t.misuses() == []
    assert t.count("ALLOC") == t.count("FREE")
    recorded(trace)


@pytest.mark.parametrize("name", ["reset", "clear_grads", "detach", "collect", "nested"])
def test_b9_a_rule_that_meddles_with_the_tape_frees_no_node_of_the_pass(name: str, trace) -> None:
    refused: list[str] = []

    def meddle(grad: Tensor) -> None:
        if name == "reset":
            with pytest.raises(BackwardRunning):
                tlmem.tape().reset()
            refused.append(name)
        elif name == "clear_grads":
            tlmem.clear_grads()
        elif name == "detach":
            kept[0] = tlmem.detach(kept[0])
        elif name == "collect":
            kept.clear()
        else:
            with tlmem.enable_grad():
                inner = weights(seed=3)
                tlmem.sum(inner * inner).backward()
                np.testing.assert_allclose(inner.grad.numpy(), 2 * inner.numpy())

    with trace() as t:
        leaf = weights()
        kept = [tlmem.tanh(leaf)]
        middle = through(meddle)(kept[0])
        tlmem.sum(middle * middle).backward()
        expected = 2 * np.tanh(leaf.numpy()) * (1 - np.tanh(leaf.numpy()) ** 2)
        np.testing.assert_allclose(leaf.grad.numpy(), expected)
        kept.clear()
        del middle, leaf

    assert refused == (["reset"] if name == "reset" else [])
    assert t.misuses() == []
    assert t.count("ALLOC") == t.count("FREE")
    recorded(trace)


def test_b9_what_is_freed_by_hand_in_a_pass_is_told_and_never_read(trace) -> None:
    with trace() as t:
        leaf = weights()
        hidden = [tlmem.tanh(leaf)]
        t.name(hidden=hidden[0])
        loss = tlmem.sum(through(lambda grad: hidden[0].free())(hidden[0]))
        with pytest.raises(UseAfterFree):
            loss.backward()
        assert leaf.grad is None
        hidden.clear()
        del loss, leaf

    assert t.misuses() == [("hidden", "use after free")]
    assert t.of("hidden").count("FREE") == 1
    assert held_by_tapes() == (0, 0, 0, 0, 0)
    recorded(trace)


@each_way_out
def test_b9_a_pass_that_ends_in_its_middle_leaves_no_node_behind(leave, trace) -> None:
    def stop(grad: Tensor) -> None:
        raise Left

    with trace() as t:

        def work() -> None:
            leaf = weights()
            shared = tlmem.exp(leaf)
            halves = shared * 0.5, through(stop)(shared)
            with pytest.raises(Left):
                tlmem.sum(halves[0] * halves[1]).backward()
            assert leaf.grad is None
            np.testing.assert_allclose(shared.numpy(), np.exp(leaf.numpy()))

        leave(tlmem.scope("s"), work)

    assert t.misuses() == []
    assert t.count("ALLOC") == t.count("FREE")
    assert held_by_tapes() == (0, 0, 0, 0, 0)
    recorded(trace)


def test_b9_a_chain_of_100_000_nodes_goes_back_and_goes_away_without_recursion() -> None:
    leaf = tlmem.full(1, 1.0, "float64", requires_grad=True)
    before = live_objects()
    for used in (True, False):
        node = leaf
        for _ in range(100_000):
            node = node + 1.0
        if used:
            node.backward()
            assert leaf.grad.tolist() == [1.0]
            tlmem.clear_grads()
        del node
        assert live_objects() == before
        assert held_by_tapes()[0] == 0


# ---- B14: gradients outlived their step ----


@each_way_out
def test_b14_a_gradient_has_no_history_and_ends_with_its_leaf(leave, trace) -> None:
    with trace() as t:

        def work() -> None:
            leaf = weights()
            for _ in range(3):
                tlmem.sum(leaf * leaf).backward()
                slope = leaf.grad
                assert (slope.requires_grad, slope.is_leaf, slope.grad) == (False, True, None)
                assert held_by_tapes()[:3] == (0, 1, 1)
            del slope
            del leaf
            assert held_by_tapes() == (0, 0, 0, 0, 0)

        leave(tlmem.scope("s"), work)

    assert t.misuses() == []
    assert t.count("ALLOC") == t.count("FREE")
    assert recorded(trace).ops["held_count"].sum() == 0


def test_b14_no_intermediate_keeps_a_gradient_unless_it_is_asked_to() -> None:
    leaf = weights()
    first, second = leaf * 2.0, leaf * 3.0
    second.retain_grad()
    tlmem.sum(first * second).backward()

    assert first.grad is None
    np.testing.assert_allclose(second.grad.numpy(), 2.0 * leaf.numpy())
    assert held_by_tapes()[2] == 2
    del second
    assert held_by_tapes()[2] == 1


WAYS_ON: dict[str, bool] = {"end": True, "continue": True, "break": False}


@pytest.mark.parametrize("way", WAYS_ON)
def test_b14_no_gradient_is_there_when_an_iteration_begins(way: str, trace) -> None:
    leaf = weights()
    with trace(leaf=leaf) as t:
        for _ in tlmem.steps(4):
            assert leaf.grad is None
            tlmem.sum(leaf * leaf).backward()
            assert leaf.grad is not None
            if way == "break":
                break
            if way == "continue":
                continue

    assert (leaf.grad is None) is WAYS_ON[way]
    assert t.count("CLEAR_GRADS") == (4 if WAYS_ON[way] else 0)
    recorded(trace)
    tlmem.clear_grads()
    assert held_by_tapes()[2:] == (0, 0, 0)


def test_b14_clear_grads_lets_go_of_every_gradient_and_zero_grad_of_those_others_hold(
    trace,
) -> None:
    leaves = [weights(seed=seed) for seed in range(3)]
    with trace() as t:
        tlmem.sum(leaves[0] * leaves[1] + leaves[2]).backward()
        kept = leaves[0].grad
        values = kept.tolist()
        tlmem.zero_grad()
        assert kept.tolist() == values, "what the program kept is not written to"
        tlmem.clear_grads()
        assert [leaf.grad for leaf in leaves] == [None] * 3
        assert held_by_tapes()[2:] == (0, 0, 0)
        assert kept.tolist() == values
        del kept

    assert t.count("ALLOC") == t.count("FREE")
    recorded(trace)


def test_b14_a_value_written_after_it_was_saved_stops_the_pass_and_keeps_no_gradient(trace) -> None:
    with trace() as t:
        leaf, factor = weights(), tlmem.full((4, 4), 2.0, "float64", requires_grad=True)
        loss = tlmem.sum(tlmem.exp(leaf) * factor)
        with tlmem.no_grad():
            tlmem.multiply(factor, 2.0, out=factor)
        with pytest.raises(InPlaceOnSaved):
            loss.backward()
        assert (leaf.grad, factor.grad) == (None, None)
        del loss, leaf, factor

    assert [what for _, what in t.misuses()] == ["in place on saved"]
    assert held_by_tapes() == (0, 0, 0, 0, 0)
    recorded(trace)


# ---- B15: temporaries that nobody named, of operations that are recorded ----


@pytest.mark.parametrize("name", OPS)
def test_b15_an_operation_and_its_rule_leave_nothing_but_result_and_gradients(
    name: str, trace
) -> None:
    """Three times the same: what is alive after the first and the last is equal, byte by byte."""
    trial = OPS[name].make(Random(7, 1))
    leaves = [tlmem.tensor(array, requires_grad=True) for array in trial.arrays]
    before, levels = live_objects(), []
    with trace() as t:
        for _ in range(3):
            result = OPS[name].ours(*leaves, *trial.others)
            tlmem.sum(result * result).backward()
            grads = [leaf.grad for leaf in leaves if leaf.grad is not None]
            levels.append(
                (len(live_objects() - before), int(statistics().current_bytes), held_by_tapes())
            )
            del result, grads
            tlmem.clear_grads()
            assert live_objects() == before
            assert held_by_tapes()[2:] == (0, 0, 0)

    assert levels[0] == levels[1] == levels[2]
    assert t.count("ALLOC") == t.count("FREE") > 0
    assert t.misuses() == []
    recorded(trace)


EXPRESSIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "scalar - tensor": lambda a: 1.0 - a,
    "scalar / tensor": lambda a: 2.0 / (a + 3.0),
    "chain": lambda a: ((a + 1) * (a - 1) + a * a) / 2,
    "reshape": lambda a: a.reshape(12),
    "reshape of a transposed": lambda a: a.transpose().reshape(12),
    "comprehension": lambda a: [a[i] * 2 for i in range(3)][-1],
    "if-expression": lambda a: a + 1 if a.sum().item() > 0 else a - 1,
}


@each_way_out
@pytest.mark.parametrize("name", EXPRESSIONS)
def test_b15_a_scope_around_each_step_ends_every_temporary_of_forward_and_backward(
    name: str, leave, trace
) -> None:
    leaf = tlmem.arange(12, dtype="float64").reshape(3, 4).copy().requires_grad_()
    before, first = live_objects(), statistics()

    def step() -> None:
        result = EXPRESSIONS[name](leaf)
        tlmem.sum(result * result).backward()
        tlmem.clear_grads()

    with trace():
        for _ in range(3):
            leave(tlmem.scope("step"), step)
            assert live_objects() == before

    now = statistics()
    made, freed = now.total_bytes - first.total_bytes, now.freed_bytes - first.freed_bytes
    assert made == freed > 0
    recorded(trace)
