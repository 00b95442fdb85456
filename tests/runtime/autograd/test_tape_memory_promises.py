"""What ops save, and for how long: S57, S62, S63."""

from collections.abc import Callable
from typing import Any

import pytest
from runtime.trace import Trace, statistics

import tlmem

N = 32
"""Elements of each tensor, float32[4,8]."""
A = 4 * N
"""Bytes of one."""


def inputs() -> tuple[Any, Any]:
    a, b = (tlmem.randn((4, 8), seed=seed) * 0.1 + seed for seed in (1, 2))
    return a.requires_grad_(), b.requires_grad_()


def weight() -> Any:
    return tlmem.ones(8, requires_grad=True)


def whole(*values: Any) -> Any:
    return tlmem.tensor(list(values), "int64")


# op -> how it is used, bytes that its record holds. What is saved is beside it.
SAVED: dict[str, tuple[Callable[[Any, Any], Any], int]] = {
    "add": (lambda a, b: a + b, 0),
    "subtract": (lambda a, b: a - b, 0),
    "negative": (lambda a, b: -a, 0),
    "multiply": (lambda a, b: a * b, 2 * A),  # both inputs
    "divide": (lambda a, b: a / b, 2 * A),  # the divisor, and an input or the output
    "power": (lambda a, b: a**2, A),  # input
    "exp": (lambda a, b: tlmem.exp(a), A),  # output
    "log": (lambda a, b: tlmem.log(a), A),  # input
    "sqrt": (lambda a, b: tlmem.sqrt(a), A),  # output
    "sin": (lambda a, b: tlmem.sin(a), A),  # input
    "cos": (lambda a, b: tlmem.cos(a), A),  # input
    "tanh": (lambda a, b: tlmem.tanh(a), A),  # output
    "sigmoid": (lambda a, b: tlmem.sigmoid(a), A),  # output
    "relu": (lambda a, b: tlmem.relu(a), A),  # output
    "gelu": (lambda a, b: tlmem.gelu(a), A),  # input
    "absolute": (lambda a, b: tlmem.absolute(a), A),  # input
    "maximum": (lambda a, b: tlmem.maximum(a, b), 2 * A),  # both inputs
    "minimum": (lambda a, b: tlmem.minimum(a, b), 2 * A),
    "where": (lambda a, b: tlmem.where(a > b, a, b), N),  # the condition
    "clip": (lambda a, b: tlmem.clip(a, 0.9, 1.1), A),  # input
    "matmul": (lambda a, b: a @ b.reshape((8, 4)), 2 * A),  # both inputs
    "sum": (lambda a, b: a.sum(0), 0),
    "mean": (lambda a, b: a.mean(), 0),
    "max": (lambda a, b: a.max(1), 4 * 8),  # which element, for each of 4 rows
    "min": (lambda a, b: a.min(1), 4 * 8),
    "var": (lambda a, b: a.var(), A),  # input
    "softmax": (lambda a, b: tlmem.softmax(a, 1), A),  # output
    "log_softmax": (lambda a, b: tlmem.log_softmax(a, 1), A),  # output
    # the probabilities and the targets
    "cross_entropy": (lambda a, b: tlmem.cross_entropy(a, whole(0, 1, 2, 3)), A + 4 * 8),
    "reshape": (lambda a, b: a.reshape((2, 16)), 0),
    "permute": (lambda a, b: tlmem.permute(a, (1, 0)), 0),
    "transpose": (lambda a, b: tlmem.transpose(a), 0),
    "broadcast_to": (lambda a, b: tlmem.broadcast_to(a, (3, 4, 8)), 0),
    "slice": (lambda a, b: a[1:3, ::2], 0),
    "concat": (lambda a, b: tlmem.concat([a, b], 1), 0),
    "stack": (lambda a, b: tlmem.stack([a, b], 0), 0),
    # the index
    "gather": (lambda a, b: tlmem.gather(a, 0, tlmem.zeros((2, 8), "int64")), 16 * 8),
    "scatter_add": (lambda a, b: tlmem.scatter_add(a, 0, tlmem.zeros((4, 8), "int64"), b), N * 8),
    "embedding": (lambda a, b: tlmem.embedding(a, whole(0, 3, 3)), 3 * 8),
    # input, weight, and for each row its mean and what it was divided by
    "layer_norm": (lambda a, b: tlmem.layer_norm(a, weight()), A + 8 * 4 + 2 * 4 * 4),
    "dropout": (lambda a, b: tlmem.dropout(a, 0.5), N),  # which elements stay
}


@pytest.mark.parametrize("name", SAVED)
def test_s57_an_op_saves_what_the_table_says(name: str) -> None:
    use, expected = SAVED[name]
    a, b = inputs()

    with tlmem.Tape(name) as tape:
        kept = use(a, b)
        by_op = {op: row.saved_bytes for op, row in tape.stats().by_op.items() if row.saved_bytes}

    assert kept.requires_grad
    assert sum(by_op.values()) == expected
    assert set(by_op) <= {name}


def test_s57_nothing_is_saved_for_an_input_that_needs_no_gradient() -> None:
    a, b = inputs()
    constant = b.detach()
    with tlmem.Tape() as tape:
        for use, expected in (
            (lambda: a * constant, A),  # the constant alone
            (lambda: constant * 2.0, 0),
            (lambda: a * 2.0, 0),
            (lambda: a / constant, A),
            (lambda: a @ constant.reshape((8, 4)), A),
            (lambda: tlmem.where(constant > 1, constant, a), N),
        ):
            kept = use()
            assert tape.stats().saved_bytes == expected
            del kept


def test_s57_a_tensor_that_two_records_save_is_there_once() -> None:
    a, _ = inputs()
    with tlmem.Tape() as tape:
        one, two = tlmem.sin(a), a * a
        assert (tape.stats().saved_bytes, tape.stats().saved_objects) == (A, 1)
        assert sum(row.saved_bytes for row in tape.stats().by_op.values()) == 3 * A
        del one
        assert tape.stats().saved_bytes == A
        del two
        assert tape.stats().saved_bytes == 0


# ---- S62 ----

BLOCKS = 6
SIZE = 1000
VECTOR = 4 * SIZE


def block(x: Any) -> Any:
    for _ in range(4):
        x = tlmem.tanh(tlmem.sin(x))
    return x


def saving(x: Any) -> Any:
    return block(x)


def checkpointing(x: Any) -> Any:
    return tlmem.checkpoint(block, x)


def recomputing(x: Any) -> Any:
    with tlmem.recompute("sin", "tanh"):
        return block(x)


def peak_bytes(t: Trace) -> int:
    """The most bytes of tensors that were alive at once."""
    live: dict[str, int] = {}
    peak = 0
    for kind, name, argument, _ in t.rows("ALLOC", "FREE"):
        if kind == "ALLOC":
            live[name] = argument
        else:
            live.pop(name, None)
        peak = max(peak, sum(live.values()))
    return peak


def run(policy: Callable[[Any], Any], trace: Any) -> dict[str, Any]:
    """A chain of blocks forward and back: what was saved, the peak, how much was computed."""
    x = tlmem.full((SIZE,), 0.5, requires_grad=True)
    with trace(x=x) as t, tlmem.Tape(policy.__name__) as tape:
        y = x * 1.0
        for _ in range(BLOCKS):
            y = policy(y)
        total = y.sum()
        del y
        saved = tape.stats().saved_bytes
        total.backward()
        stats = tape.stats()
        gradient = x.grad.tolist()
    return {
        "saved": saved,
        "peak": peak_bytes(t),
        "recorded": stats.recorded,
        "rules": stats.rules,
        "replays": stats.replays,
        "gradient": gradient,
    }


def test_s62_three_policies_trade_memory_for_computation_and_agree_to_the_bit(trace) -> None:
    save, check, again = (run(policy, trace) for policy in (saving, checkpointing, recomputing))

    # The first input and the results of tanh, which sin reads; the inputs of the blocks; the
    # beginning of the chain alone.
    assert save["saved"] == (BLOCKS * 4 + 1) * VECTOR
    assert check["saved"] == BLOCKS * VECTOR
    assert again["saved"] == VECTOR
    assert save["peak"] > 2 * check["peak"] > 4 * again["peak"]
    # Forward ops that ran: each once; once more under checkpoint; many times when computed again.
    ops = BLOCKS * 8 + 2
    assert (save["recorded"], save["rules"], save["replays"]) == (ops, ops, 0)
    assert (check["recorded"], check["rules"], check["replays"]) == (ops + BLOCKS,) * 2 + (0,)
    assert (again["recorded"], again["rules"]) == (ops, ops)
    assert again["replays"] > ops
    assert save["gradient"] == check["gradient"] == again["gradient"]


def test_s62_a_checkpoint_draws_the_same_random_numbers_when_it_runs_again() -> None:
    x = tlmem.ones(SIZE, requires_grad=True)
    y = tlmem.checkpoint(lambda value: tlmem.dropout(value, 0.5), x)
    tlmem.dropout(tlmem.ones(SIZE), 0.5)  # others draw meanwhile
    y.sum().backward()

    kept, wanted = y.numpy() != 0, x.grad.numpy() != 0
    assert (kept == wanted).all()
    assert 0 < kept.sum() < SIZE


# ---- S63 ----


def test_s63_live_bytes_fall_from_rule_to_rule() -> None:
    seen = []

    @tlmem.op(backward=lambda context, grad: (seen.append(statistics().current_bytes), grad)[1])
    def watch(context: Any, x: Any) -> Any:
        return x

    x = tlmem.full((SIZE,), 0.5, requires_grad=True)
    y = x
    for _ in range(5):
        y = watch(tlmem.sin(y))
    total = y.sum()
    del y
    total.backward()

    assert len(seen) == 5
    assert seen == sorted(seen, reverse=True)
    assert len(set(seen)) == 5


def test_s63_the_first_value_of_a_tape_is_freed_though_only_unary_ops_read_it(trace) -> None:
    with trace() as t:
        x = tlmem.full((SIZE,), 0.5, requires_grad=True)
        y = tlmem.sin(x)
        t.name(first=y)
        z = tlmem.sin(tlmem.cos(y))
        del y
        z.sum().backward()
        del z, x

    kinds = [kind for kind, name in t.pairs() if kind.startswith("BACKWARD") or name == "first"]
    assert kinds.index("BACKWARD_BEGIN") < kinds.index("FREE") < kinds.index("BACKWARD_END")
    assert t.of("first").count("TAPE_SAVE") == t.of("first").count("TAPE_UNSAVE") == 1
