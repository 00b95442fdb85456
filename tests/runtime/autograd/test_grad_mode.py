"""Recording or not: in blocks, decorated functions, generators, tasks and threads."""

import asyncio
from threading import Thread

import pytest

import tlmem
from tlmem import enable_grad, is_grad_enabled, no_grad
from tlmem.runtime.core import lib


def leaf() -> tlmem.Tensor:
    return tlmem.ones(2, requires_grad=True)


def test_nothing_is_recorded_in_no_grad_and_again_in_enable_grad() -> None:
    x = leaf()
    with no_grad():
        assert not is_grad_enabled()
        assert not (x * 2).requires_grad
        with enable_grad():
            assert is_grad_enabled()
            assert (x * 2).requires_grad
        assert not is_grad_enabled()

    assert is_grad_enabled()
    assert (x * 2).requires_grad


def test_in_place_updates_are_allowed_in_no_grad() -> None:
    x = leaf()
    with no_grad():
        x += 1
        x[0] = 5.0

    assert x.tolist() == [5.0, 2.0]


def test_an_exception_puts_the_mode_back() -> None:
    with pytest.raises(KeyError), no_grad():
        raise KeyError
    assert is_grad_enabled()


def test_one_object_can_be_entered_again_while_it_is_entered() -> None:
    mode = no_grad()
    with mode:
        with mode:
            pass
        assert not is_grad_enabled()
    assert is_grad_enabled()


def test_a_decorated_function_has_the_mode_in_each_call_and_keeps_its_name() -> None:
    @no_grad()
    def ask(x: int, *, y: int) -> tuple[bool, int]:
        """Asks."""
        return is_grad_enabled(), x + y

    assert ask(1, y=2) == (False, 3)
    assert (ask.__name__, ask.__doc__) == ("ask", "Asks.")
    assert is_grad_enabled()


def test_a_decorator_needs_no_parentheses() -> None:
    @no_grad
    def outside(x: int) -> tuple[bool, bool, int]:
        return is_grad_enabled(), inside(), x

    @enable_grad
    def inside() -> bool:
        return is_grad_enabled()

    assert outside(3) == (False, True, 3)
    assert outside.__name__ == "outside"
    assert is_grad_enabled()


def test_a_decorated_generator_has_the_mode_only_while_it_runs() -> None:
    ended = []

    @no_grad()
    def values():
        try:
            got = yield is_grad_enabled()
            try:
                yield got, is_grad_enabled()
            except KeyError:
                yield "caught", is_grad_enabled()
            return "end"
        finally:
            ended.append(is_grad_enabled())

    run = values()
    assert next(run) is False
    assert is_grad_enabled()
    assert run.send(7) == (7, False)
    assert run.throw(KeyError()) == ("caught", False)
    with pytest.raises(StopIteration) as stop:
        next(run)
    assert stop.value.value == "end"

    other = values()
    next(other)
    other.close()
    assert ended == [False, False]
    assert is_grad_enabled()


def test_a_decorated_coroutine_has_the_mode_across_its_awaits_and_its_task_alone() -> None:
    seen = []

    @no_grad()
    async def without() -> bool:
        await asyncio.sleep(0)
        seen.append(("inside", is_grad_enabled()))
        await asyncio.sleep(0)
        return is_grad_enabled()

    async def beside() -> None:
        for _ in range(3):
            seen.append(("beside", is_grad_enabled()))
            await asyncio.sleep(0)

    async def both() -> bool:
        found, _ = await asyncio.gather(without(), beside())
        return found

    assert asyncio.run(both()) is False
    assert set(seen) == {("inside", False), ("beside", True)}


def test_an_asynchronous_generator_cannot_be_decorated() -> None:
    async def values():
        yield 1

    with pytest.raises(TypeError, match="values is an asynchronous generator"):
        no_grad()(values)
    with pytest.raises(TypeError, match="values is an asynchronous generator"):
        no_grad(values)
    for decorate in (no_grad(), no_grad):
        with pytest.raises(TypeError, match=r"@tlmem\.no_grad above"):
            decorate(3)


def test_a_thread_that_is_started_inside_begins_with_gradients_on() -> None:
    seen = []
    with no_grad():
        thread = Thread(target=lambda: seen.append(is_grad_enabled()))
        thread.start()
        thread.join()

    assert seen == [True]


def test_a_block_left_in_another_thread_changes_no_mode_there() -> None:
    def values():
        with no_grad():
            yield

    run = values()
    next(run)
    seen = []

    def end() -> None:
        run.close()
        seen.append(is_grad_enabled())

    thread = Thread(target=end)
    thread.start()
    thread.join()

    assert seen == [True]
    assert lib.tlm_grad_mode(1) == 0  # the thread that entered it has not left it
