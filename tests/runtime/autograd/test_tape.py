"""Tapes as values: which one is in force where, how one ends, what it tells; loops of steps."""

import asyncio
import gc
from threading import Thread
from typing import Any

import pytest

import tlmem
from tlmem import Tape, tape


def leaf() -> tlmem.Tensor:
    return tlmem.tensor([1.0, 2.0], requires_grad=True)


def test_the_tape_of_a_block_is_in_force_in_it_and_ends_with_it() -> None:
    x, process = leaf(), tape()
    with Tape("mine") as mine:
        assert tape() is mine
        with Tape("inner") as inner:
            assert tape() is inner
        assert tape() is mine
        y = (x * x).sum()
        assert (mine.stats().records, mine.closed) == (2, False)

    assert tape() is process
    assert mine.closed
    assert mine.stats().records == 2  # what it held at its end
    assert repr(mine) == "<Tape 'mine': 2 records, 8 bytes saved, ended>"
    with pytest.raises(tlmem.StaleSlot, match="reset or has ended"):
        y.backward()


def test_a_tape_that_has_ended_is_not_used_again() -> None:
    with Tape("gone") as gone:
        pass
    gone.close()

    for use in (gone.reset, gone.clear_grads, gone.zero_grad, gone.__enter__):
        with pytest.raises(tlmem.StaleSlot, match=r"tape 'gone': it has ended; .*tlmem\.Tape"):
            use()


def test_an_exception_ends_the_tape_and_passes_through() -> None:
    x, before = leaf(), tape()
    with pytest.raises(KeyError), Tape() as mine:
        x * 2
        raise KeyError

    assert (mine.closed, tape()) == (True, before)


def test_a_tape_can_be_entered_again_while_it_is_entered() -> None:
    with Tape() as mine:
        with mine:
            assert tape() is mine
        assert (mine.closed, tape()) == (False, mine)

    with tape() as process:
        pass
    assert not process.closed


def test_the_tape_of_the_process_never_ends() -> None:
    with pytest.raises(ValueError, match=r"never ends.*reset\(\)"):
        tape().close()


def test_values_of_two_tapes_do_not_meet() -> None:
    x = leaf()
    outside = x * 2
    with Tape() as mine:
        other = leaf() * 3
        with pytest.raises(tlmem.WrongTape, match="values of two tapes"):
            outside * other
        assert (outside.detach() * other).requires_grad
        assert mine.stats().records == 1
    assert tape().stats().records == 1


def test_a_leaf_comes_over_to_the_tape_that_reads_it_unless_it_has_a_gradient() -> None:
    x = leaf()
    (x * x).sum().backward()
    with Tape():
        with pytest.raises(tlmem.WrongTape):
            x * 2
        tape()
    x.grad = None
    with Tape():
        (x * 3).sum().backward()
        assert x.grad.tolist() == [3.0, 3.0]
    assert x.grad is None
    (x * 2).sum().backward()
    assert x.grad.tolist() == [2.0, 2.0]


def test_reset_and_end_are_refused_while_a_pass_runs() -> None:
    said: list[str] = []

    def rule(context: Any, grad: Any) -> Any:
        for use in (mine.reset, mine.close):
            with pytest.raises(tlmem.BackwardRunning) as caught:
                use()
            said.append(str(caught.value))
        return grad

    @tlmem.op(backward=rule)
    def curious(context: Any, x: Any) -> Any:
        return x * 1.0

    x = leaf()
    with Tape("busy") as mine:
        curious(x).sum().backward()
        assert x.grad.tolist() == [1.0, 1.0]

    assert [text.split(":")[0] for text in said] == [
        "cannot reset tape 'busy'",
        "cannot close tape 'busy'",
    ]


def test_a_task_that_goes_on_after_the_block_records_on_the_tape_of_the_process() -> None:
    x = leaf()
    seen = []

    async def later(go: asyncio.Event) -> None:
        seen.append(tape().name)
        await go.wait()
        seen.append(tape().name)
        (x * x).sum().backward()
        seen.append(x.grad.tolist())

    async def main() -> None:
        go = asyncio.Event()
        with Tape("short"):
            task = asyncio.create_task(later(go))
            await asyncio.sleep(0)
        with Tape("another"):  # may have the number of the one that ended
            go.set()
            await task

    asyncio.run(main())
    assert seen == ["short", "", [2.0, 4.0]]


def test_a_thread_begins_with_the_tape_of_the_process() -> None:
    seen = []
    with Tape("here"):
        thread = Thread(target=lambda: seen.append(tape().name))
        thread.start()
        thread.join()

    assert seen == [""]


def test_a_tape_nobody_names_any_more_ends() -> None:
    x = leaf()
    for _ in range(600):  # more than there can be at a time
        Tape("left")
    gc.collect()
    with Tape():
        assert (x * 2).requires_grad


def test_the_sums_of_a_tape_are_those_of_its_ops() -> None:
    x = leaf()
    with Tape() as mine:
        y = tlmem.exp(x * x) + x
        y.sum().backward(retain_graph=True)
        stats = mine.stats()

    ops = stats.by_op
    assert {name: row.recorded for name, row in ops.items()} == {
        "multiply": 1,
        "exp": 1,
        "add": 1,
        "sum": 1,
    }
    assert stats.recorded == stats.rules == sum(row.rules for row in ops.values()) == 4
    assert (stats.records, stats.leaves, stats.grads, stats.grad_bytes) == (3, 1, 1, 8)
    assert stats.saved_bytes == sum(row.saved_bytes for row in ops.values()) - 8  # x twice


def test_detach_and_backward_are_functions_too() -> None:
    x = leaf()
    y = x * x
    assert tlmem.detach(y).tolist() == y.tolist()
    tlmem.backward(y, tlmem.ones(2), retain_graph=True)
    tlmem.backward(y.sum())

    assert x.grad.tolist() == [4.0, 8.0]


# ---- steps ----


def test_steps_are_numbered_and_can_be_counted_ahead() -> None:
    loop = tlmem.steps(3)
    assert (list(loop), list(loop), repr(loop)) == ([0, 1, 2], [], "steps(3)")
    assert list(tlmem.steps(0)) == []
    ahead = tlmem.steps(5)
    assert ahead.__length_hint__() == 5
    next(ahead)
    assert ahead.__length_hint__() == 4


def test_a_number_of_steps_that_is_none_is_said() -> None:
    with pytest.raises(TypeError, match="whole number, not 2.5"):
        tlmem.steps(2.5)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="-1 steps cannot be made"):
        tlmem.steps(-1)
