"""What each policy says of ownership, on the events of compiled functions: S5, S6, S16 to S19, S23,
S24, S30, and the bugs B10, B12, B15 and B16 that such code invites."""

from __future__ import annotations

import gc
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest
from runtime.trace import Row, Trace, Tracer, live_objects

import tlmem
from tlmem.compiler.policies import POLICIES, SOUND

SAYING = [name for name in SOUND if POLICIES[name].is_explicit]
saying = pytest.mark.parametrize("policy", SAYING)


@dataclass
class Layer:
    w: Any
    b: Any


def tensor(*shape: int, seed: int = 0) -> Any:
    return tlmem.randn(shape, seed=seed)


def acquired(t: Trace) -> list[Row]:
    """Rows of acquires, but those of views, which hold the memory they look into."""
    return [row for row in t.rows("ACQUIRE") if not row[2].startswith("view")]


# ---- S5, S6: names ----


def test_s05_a_second_name_acquires_and_the_end_of_the_call_lets_both_go(trace: Tracer) -> None:
    @tlmem.compile(policy="v1")
    def function(x):
        y = x * 2
        z = y
        return (y + z).sum().item()

    x = tensor(3)
    with trace(x=x) as t:
        function(x)

    ((_, name, holder, count),) = acquired(t)
    assert (holder, count) == ("z", 2)
    assert t.of(name) == ["ALLOC", "REGISTER", "ACQUIRE", "RELEASE", "RELEASE", "FREE"]
    assert t.counts(name) == [1, 1, 2, 1, 0, 0]
    assert t.of(name).count("FREE") == 1


def test_s05_the_last_use_of_the_first_name_acquires_nothing(trace: Tracer) -> None:
    def function(x):
        y = x * 2
        z = y
        return (z + 1).sum().item()

    x, counts = tensor(3), {}
    for policy in ("v1", "v3"):
        compiled = tlmem.compile(policy=policy)(function)
        with trace(x=x) as t:
            compiled(x)
        counts[policy] = len(acquired(t))
        assert t.misuses() == []

    assert counts == {"v1": 1, "v3": 0}


@saying
def test_s05_a_first_name_that_is_read_again_keeps_its_value(policy: str, trace: Tracer) -> None:
    @tlmem.compile(policy=policy)
    def function(x):
        y = x * 2
        z = y
        w = z + 1  # the last use of z, not of what it names
        return w + y

    x = tensor(3).requires_grad_()  # what may need a gradient is in no slot
    with trace(x=x) as t:
        result = function(x)

    assert [row[2:] for row in acquired(t)] == [("z", 2)]
    assert result.tolist() == (x * 2 + 1 + x * 2).tolist()


def test_s06_a_name_that_gets_another_value_frees_the_old_one_at_once(trace: Tracer) -> None:
    @tlmem.compile(policy="v1")
    def function(x):
        y = x + 1
        y = x - 1
        return y * 3

    x = tensor(3)
    with trace(x=x) as t:
        kept = function(x)

    kinds = [kind for kind, _ in t.pairs("ALLOC", "FREE")]
    assert kinds == ["ALLOC", "ALLOC", "FREE", "ALLOC", "FREE"]
    assert kept.tolist() == ((x - 1) * 3).tolist()


@saying
def test_s06_a_name_that_gets_its_own_value_is_no_event(policy: str, trace: Tracer) -> None:
    @tlmem.compile(policy=policy)
    def function(x):
        y = x.T
        y = y
        return y + 1

    x = tensor(3, 3)
    with trace(x=x) as t:
        result = function(x)

    assert acquired(t) == []
    assert result.tolist() == (x.T + 1).tolist()


@saying
def test_s06_in_a_swap_each_name_has_its_new_value_before_it_lets_go_of_the_old(
    policy: str, trace: Tracer
) -> None:
    @tlmem.compile(policy=policy)
    def function(x):
        a = x + 1
        b = x * 2
        a, b = b, a
        return a - b

    x = tensor(3)
    with trace(x=x) as t:
        result = function(x)

    assert t.misuses() == []
    assert result.tolist() == (x * 2 - (x + 1)).tolist()


# ---- S16, S17, S18: structs ----


def test_s16_s17_s18_a_struct_holds_its_fields_and_returns_alone(trace: Tracer) -> None:
    @tlmem.compile(policy="v1")
    def make(x):
        a = x * 2
        b = x + 1
        return Layer(a, b)

    x = tensor(3)
    with trace(x=x) as t, tlmem.scope("caller"):
        made = make(x)
        t.name(made=made, a=made.w, b=made.b)
        assert (made.count, made.w.count, made.b.count) == (1, 1, 1)
        assert made.w.tolist() == (x * 2).tolist()

    assert t.counts("a") == [1, 1, 2, 1, 0, 0]
    assert acquired(t) == [("ACQUIRE", "a", "field", 2), ("ACQUIRE", "b", "field", 2)]
    assert [row[1] for row in t.rows("UNREGISTER")] == ["made"]
    frees = [name for kind, name in t.pairs("FREE")]
    assert sorted(frees[-3:]) == ["a", "b", "made"]
    assert frees[-1] == "made"


def test_s16_a_field_takes_over_what_is_not_used_again(trace: Tracer) -> None:
    def make(x):
        a = x * 2
        b = x + 1
        return Layer(a, b)

    x, acquires = tensor(3), {}
    for policy in ("v2", "v3", "v5"):
        compiled = tlmem.compile(policy=policy)(make)
        with trace(x=x) as t:
            made = compiled(x)
            assert (made.w.count, made.b.count) == (1, 1)
        acquires[policy] = len(acquired(t))

    assert acquires == {"v2": 2, "v3": 0, "v5": 0}


@saying
def test_s16_a_field_acquires_what_is_read_again(policy: str, trace: Tracer) -> None:
    @tlmem.compile(policy=policy)
    def function(x):
        y = x * 2
        s = Layer(y, x)
        s.w = x + 1  # the field lets go of y
        return y + s.w

    x = tensor(3).requires_grad_()  # what may need a gradient is in no slot
    with trace(x=x) as t:
        result = function(x)

    assert t.misuses() == []
    assert result.tolist() == (x * 2 + (x + 1)).tolist()


@saying
def test_s16_s17_the_end_of_a_call_lets_go_of_all_that_a_variable_names(policy: str) -> None:
    @tlmem.compile(policy=policy)
    def function(layer, x):
        layer.w = x
        both = (layer.w, layer.b)
        return both

    with tlmem.scope("caller"):
        x, b = tensor(3), tensor(3)
        layer = tlmem.struct(Layer(b, b))
        function(layer, x)
        assert [each.split(" ")[0] for each in (*x.holders(), *b.holders())] == 2 * [
            "scope",
            "field",
        ]


@saying
def test_s18_fields_of_a_returned_struct_are_held_by_it_alone(policy: str) -> None:
    @tlmem.compile(policy=policy)
    def make(x):
        y = x * 2
        return Layer(y, x + 1)

    x = tensor(3).requires_grad_()  # what may need a gradient is in no slot
    with tlmem.scope("caller") as caller:
        made = make(x)
        assert [each.split(" ")[0] for each in made.w.holders()] == ["field"]
        assert [each.split(" ")[0] for each in made.holders()] == ["scope"]
        assert caller.count == 1


@saying
def test_s18_b16_a_struct_that_goes_round_gains_no_count(policy: str) -> None:
    @tlmem.compile(policy=policy)
    def step(layer, x):
        h = layer.w * 0.5 + x
        return Layer(h, layer.b)

    with tlmem.scope("outer"):
        x, layer = tensor(3), tlmem.struct(Layer(tensor(3), tensor(3)))
        b = layer.b
        counts = set()
        for _ in range(5):
            layer = step(layer, x)
            counts.add((layer.w.count, layer.count))
        assert len(counts) == 1
        assert layer.b is b


@saying
def test_b16_overwriting_a_field_frees_nothing_that_the_new_value_needs(policy: str) -> None:
    @tlmem.compile(policy=policy)
    def grow(layer, x):
        layer.w = layer.w + x
        old = layer.w
        layer.w = old * 2
        return old + layer.w

    x, start = tensor(3), tensor(3, seed=1)
    layer = tlmem.struct(Layer(start, x))
    result = grow(layer, x)

    old = start + x
    assert result.tolist() == (old + old * 2).tolist()
    assert layer.w.tolist() == (old * 2).tolist()


# ---- S19, B10: arguments ----


@saying
def test_s19_b10_an_argument_is_borrowed_also_when_its_name_is_used_again(
    policy: str, trace: Tracer
) -> None:
    @tlmem.compile(policy=policy)
    def function(x, n):
        for _ in range(n):
            x = x + 1
        return x.sum().item()

    x = tensor(3)
    with trace(x=x) as t:
        function(x, 4)
        assert x.count == 1

    assert t.of("x") == []
    assert t.count("ALLOC") == t.count("FREE")


@saying
def test_s19_an_argument_that_comes_back_stays_where_the_caller_has_it(policy: str) -> None:
    @tlmem.compile(policy=policy)
    def same(x):
        return x

    global given_back
    given_back = same

    @tlmem.compile(policy=policy)
    def through(x):
        y = given_back(x)
        return y

    with tlmem.scope("outer") as outer:
        x = tensor(3)
        with tlmem.scope("inner"):
            assert same(x) is through(x) is x
        assert (x.alive, x.holders()) == (True, [f"scope 'outer' #{outer.id}"])


def looked_at(x):
    return x.sum().item()


@saying
def test_s19_b10_an_argument_that_is_named_or_passed_on_stays_where_the_caller_has_it(
    policy: str,
) -> None:
    @tlmem.compile(policy=policy)
    def function(x):
        y = x
        return looked_at(x) + y.sum().item()

    with tlmem.scope("caller") as caller:
        x = tensor(3)
        function(x)
        assert x.holders() == [f"scope 'caller' #{caller.id}"]
    assert not x.alive


@saying
def test_s19_an_argument_stays_the_callers_when_the_call_fails(policy: str, trace: Tracer) -> None:
    @tlmem.compile(policy=policy)
    def function(x):
        y = x + 1
        x = y
        raise ValueError("as planned")

    x = tensor(3)
    with trace(x=x) as t:
        with pytest.raises(ValueError, match="as planned"):
            function(x)

    assert (t.of("x"), x.count) == ([], 1)
    assert tlmem.scope_depth() == 0


def test_s19_a_caller_acquires_an_argument_that_comes_back_exactly_once(trace: Tracer) -> None:
    @tlmem.compile(policy="v2")
    def same(x):
        return x

    global given_back
    given_back = same

    @tlmem.compile(policy="v2")
    def caller(x):
        y = given_back(x)
        return (y + 1).sum().item()

    x = tensor(3)
    with trace(x=x) as t:
        caller(x)

    assert t.of("x") == ["ACQUIRE", "RELEASE"]
    assert t.counts("x") == [2, 1]


# ---- S23, B12: over-retain ----


def squares(x):
    a = x * x
    b = a + a
    return (a * b).sum().item()


def test_s23_b12_reads_that_acquire_are_never_released(trace: Tracer) -> None:
    x, told = tensor(3), {}
    for policy in ("v3", "v3-overretain"):
        compiled = tlmem.compile(policy=policy)(squares)
        before = live_objects()
        with trace(x=x) as t:
            compiled(x)
        held = [row for row in acquired(t) if row[2] == "struct Tensor"]
        told[policy] = len(held), t.count("ALLOC") - t.count("FREE")
        for handle in live_objects() - before:
            tlmem.runtime.core.lib.tlm_free(handle)
        while x.count > 1:
            tlmem.release(x, "struct Tensor")

    acquires, left = told["v3-overretain"]
    assert told["v3"] == (0, 0)
    assert left == 4  # a, b, their product and its sum
    assert acquires >= 5


@saying
def test_b12_what_is_acquired_is_released(policy: str, trace: Tracer) -> None:
    @tlmem.compile(policy=policy)
    def function(x, n):
        y = x * 2
        kept = (y, x)
        for i in range(n):
            z = y
            if i == 1:
                continue
            y = z + 1
            if i == 3:
                break
        first, second = kept
        return first + second, y

    x = tensor(3)
    with trace(x=x) as t:
        for n in (0, 1, 2, 5):
            function(x, n)

    assert t.misuses() == []
    assert t.count("ALLOC") == t.count("FREE")
    assert x.count == 1


@saying
def test_b12_what_is_acquired_is_released_when_the_call_fails(policy: str, trace: Tracer) -> None:
    @tlmem.compile(policy=policy)
    def function(x, n):
        y = x * 2
        kept = (y, x)
        z = x
        if n:
            raise KeyError(n)
        return kept, z

    x = tensor(3)
    with trace(x=x) as t, pytest.raises(KeyError):
        function(x, 1)

    assert x.holders()[1:] == []
    assert (t.misuses(), t.count("ALLOC") - t.count("FREE")) == ([], 0)


# ---- S24: gradients at the latch ----


@pytest.fixture
def seen() -> list[bool]:
    """Whether there was no gradient, each time that ``note`` was called."""
    return []


@pytest.fixture
def note(seen: list[bool]) -> Callable[[Any], None]:
    """Looks at the gradient of its argument; compiled functions call it."""

    def note(w):
        seen.append(w.grad is None)

    return note


def test_s24_gradients_are_cleared_at_the_latch_of_a_for_not_on_break_and_not_of_a_while(
    seen: list[bool], note: Callable[[Any], None]
) -> None:
    @tlmem.compile
    def train(x, w, n):
        for i in range(n):
            note(w)
            (x * w).sum().backward()
            if i == 1:
                continue
            if i == 3:
                break

    @tlmem.compile
    def turns(x, w, n):
        while n > 0:
            n = n - 1
            note(w)
            (x * w).sum().backward()

    x, w = tensor(3), tlmem.ones(3, requires_grad=True)
    train(x, w, 9)
    assert seen == [True] * 4
    assert w.grad is not None

    tlmem.clear_grads()
    seen.clear()
    turns(x, w, 3)
    assert seen == [True, False, False]
    tlmem.clear_grads()


def test_s24_a_loop_that_goes_backward_in_a_branch_clears_gradients_too(
    seen: list[bool], note: Callable[[Any], None]
) -> None:
    @tlmem.compile
    def train(x, w, n):
        for i in range(n):
            note(w)
            if i > 0:
                (x * w).sum().backward()

    train(tensor(3), tlmem.ones(3, requires_grad=True), 4)
    assert seen == [True] * 4


def test_s24_gradients_can_be_kept() -> None:
    @tlmem.compile(clear_grads=False)
    def train(x, w):
        for _ in range(3):
            (x * w).sum().backward()

    x, w = tensor(3), tlmem.ones(3, requires_grad=True)
    train(x, w)
    assert w.grad is not None
    assert w.grad.tolist() == pytest.approx((x * 3).tolist())
    tlmem.clear_grads()


# ---- S30: promote and register ----


def test_s30_a_result_is_promoted_and_registered_and_never_acquired(trace: Tracer) -> None:
    @tlmem.compile(policy="v5")
    def inner(x):
        return tlmem.relu(x)

    global halved
    halved = inner

    @tlmem.compile(policy="v5")
    def outer(x):
        y = halved(x)
        return y

    x = tensor(3)
    with trace(x=x) as t, tlmem.scope("caller"):
        y = outer(x)
        t.name(y=y)
        assert y.count == 1

    handed_over = ["PROMOTE", "REGISTER"] * 2
    assert t.of("y") == ["ALLOC", "REGISTER", *handed_over, "RELEASE", "FREE"]
    assert t.counts("y") == [1, 1, 1, 1, 1, 1, 0, 0]
    assert acquired(t) == []


# ---- B15: temporaries ----


@saying
def test_b15_temporaries_without_a_name_end_with_their_call_or_before(
    policy: str, trace: Tracer
) -> None:
    @tlmem.compile(policy=policy)
    def function(x, flag):
        y = 1 - x * 2 if flag else x.reshape(3, 1).reshape(3)
        return tlmem.relu(3 - y).sum().item()

    x = tensor(3)
    with trace(x=x) as t:
        for flag in (True, False, True):
            function(x, flag)

    assert t.count("ALLOC") == t.count("FREE")
    assert t.misuses() == []


def test_b15_the_last_use_frees_not_the_end_of_the_call(trace: Tracer) -> None:
    def function(x, w):
        h = x @ w
        g = tlmem.relu(h.reshape(6, 6))
        total = g.sum()
        return (total * w).sum().item()

    x, w, peaks = tensor(6, 6), tlmem.ones((6, 6), requires_grad=True), {}
    for policy in ("v1", "v5"):
        compiled = tlmem.compile(policy=policy)(function)
        with trace(x=x, w=w) as t, tlmem.no_grad():
            compiled(x, w)
        alive = most = 0
        for kind, *_ in t.rows("ALLOC", "FREE"):
            alive += 1 if kind == "ALLOC" else -1
            most = max(most, alive)
        assert alive == 0
        peaks[policy] = most

    assert peaks["v5"] < peaks["v1"]


def test_b15_a_temporary_without_a_name_is_freed_behind_its_last_use(trace: Tracer) -> None:
    @tlmem.compile(policy="v5")
    def function(x):
        return ((x + 1) + 2).sum().item()

    x = tensor(100).requires_grad_()  # what may need a gradient is in no slot
    with trace(x=x) as t:
        function(x)

    big = [name for _, name, size, _ in t.rows("ALLOC") if size == 400]
    events = t.pairs("ALLOC", "FREE")
    third = [pair for pair in events if pair[0] == "ALLOC"][2]
    assert len(big) == 2
    assert events.index(("FREE", big[0])) < events.index(third)


# ---- what is given away ----


@saying
def test_what_is_kept_elsewhere_outlives_the_call(policy: str) -> None:
    class Model:
        pass

    kept: list[Any] = []

    @tlmem.compile(policy=policy)
    def function(model, x):
        h = x + 1
        kept.append(h)
        model.state = x * 2
        return h

    model, x = Model(), tensor(3)
    result = function(model, x)

    assert kept[0] is result
    assert result.tolist() == (x + 1).tolist()
    assert model.state.tolist() == (x * 2).tolist()
    del kept[:], result
    gc.collect()


@saying
def test_results_go_to_out(policy: str, trace: Tracer) -> None:
    @tlmem.compile(policy=policy)
    def function(x, w):
        h = tlmem.relu(x @ w)
        return h @ w

    x, w, out = tensor(4, 4), tensor(4, 4, seed=1), tensor(4, 4)
    expected = function(x, w)
    with trace(out=out) as t:
        assert function(x, w, out=out) is out

    assert out.tolist() == expected.tolist()
    assert t.of("out") == []
