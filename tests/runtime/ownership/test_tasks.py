"""Scopes in asyncio tasks and threads, each with a stack of its own: S37, C12."""

import asyncio
import gc
import subprocess
import sys
import threading
import time

import pytest
from runtime.trace import live_objects, statistics

from tlmem.runtime import contexts
from tlmem.runtime.errors import UnbalancedScope
from tlmem.runtime.ownership.frame import framed, get_buffer
from tlmem.runtime.ownership.scope import (
    current_scope_id,
    register,
    run_async,
    scope,
    scope_depth,
    scope_tensor_count,
)
from tlmem.runtime.tensors.factories import empty, ones


def test_run_async_returns_the_coroutines_own_result_and_frees_the_rest() -> None:
    result = object()
    kept = []

    async def body() -> object:
        kept.append(empty(1))
        await asyncio.sleep(0)
        assert scope_depth() == 1
        kept.append(empty(1))
        return result

    assert asyncio.run(run_async(body, "async")) is result
    assert [each.alive for each in kept] == [False, False]


def test_run_async_passes_an_exception_through_and_frees_all() -> None:
    problem = ValueError("mine")
    kept = []

    async def body() -> None:
        kept.append(empty(1))
        await asyncio.sleep(0)
        raise problem

    async def main() -> None:
        with pytest.raises(ValueError) as caught:
            await run_async(body)
        assert caught.value is problem
        assert scope_depth() == 0

    asyncio.run(main())
    assert not kept[0].alive


def test_run_async_takes_a_function_not_a_coroutine() -> None:
    async def body() -> None: ...

    async def main() -> None:
        coroutine = body()
        with pytest.raises(TypeError, match="without calling it"):
            await run_async(coroutine)
        coroutine.close()
        with pytest.raises(TypeError):
            await run_async(lambda: 3)
        assert scope_depth() == 0

    asyncio.run(main())


def test_two_interleaved_tasks_each_free_exactly_their_own(trace) -> None:
    async def task(name: str, mine: asyncio.Event, other: asyncio.Event) -> None:
        with scope(name):
            t.name(**{f"{name}1": empty(1)})
            other.set()
            await mine.wait()
            mine.clear()
            t.name(**{f"{name}2": empty(1)})
            assert scope_tensor_count() == 2
            other.set()

    async def main() -> None:
        a, b = asyncio.Event(), asyncio.Event()
        await asyncio.gather(task("a", a, b), task("b", b, a))

    with trace() as t:
        asyncio.run(main())

    rows = t.rows("REGISTER", "RELEASE", "SCOPE_ENTER", "SCOPE_EXIT")
    assert [row[:2] for row in rows[:2]] == [("SCOPE_ENTER", "a"), ("REGISTER", "a1")]
    for name in "ab":
        own = [row[:3] for row in rows if row[1].startswith(name)]
        assert own == [
            ("SCOPE_ENTER", name, name),
            ("REGISTER", f"{name}1", f"scope {name}"),
            ("REGISTER", f"{name}2", f"scope {name}"),
            ("RELEASE", f"{name}2", f"scope {name}"),
            ("RELEASE", f"{name}1", f"scope {name}"),
            ("SCOPE_EXIT", name, 2),
        ]


def test_fifty_tasks_in_any_order_end_with_nothing_left_and_every_depth_their_own() -> None:
    async def work(number: int) -> None:
        for step in range(number % 5 + 1):
            with scope(f"task {number}") as outer:
                tensors = [empty(number + 1) for _ in range(3)]
                await asyncio.sleep(0.001 * ((number * 7 + step) % 3))
                with scope("inner"):
                    tensors.append(empty(2))
                    await asyncio.sleep(0)
                    assert scope_depth() == 2
                assert current_scope_id() == outer.id
                assert [each.alive for each in tensors] == [True, True, True, False]
                await asyncio.sleep(0)
            assert not any(each.alive for each in tensors)
            assert scope_depth() == 0

    async def main() -> None:
        await asyncio.gather(*(work(number) for number in range(50)))

    before, first = live_objects(), statistics()
    asyncio.run(main())
    now = statistics()

    rounds = sum(number % 5 + 1 for number in range(50))
    assert live_objects() == before
    assert now.total_count - first.total_count == now.freed_count - first.freed_count == 4 * rounds


def test_a_task_does_not_see_the_scope_of_the_task_that_started_it() -> None:
    async def child() -> int:
        with scope("child"):
            return scope_depth()

    async def main() -> None:
        with scope("parent"):
            a = empty(1)
            assert await asyncio.create_task(child()) == 1
            assert (scope_depth(), a.alive) == (1, True)

    with scope("thread"):
        asyncio.run(main())
        assert scope_depth() == 1


def test_s37_what_an_operation_makes_first_in_a_task_is_not_the_threads() -> None:
    x = ones(3)

    async def main():
        return x + 1

    with scope("thread") as outer:
        made = asyncio.run(main())
        assert outer.count == 0

    assert made.tolist() == [2.0] * 3


def test_a_tensor_made_in_a_task_without_a_scope_belongs_to_its_handle() -> None:
    async def main():
        return empty(1)

    with scope("thread"):
        a = asyncio.run(main())
        assert [text.split(" #")[0] for text in a.holders()] == ["handle"]
        register(a)

    assert not a.alive


def test_a_cancelled_task_leaves_its_scopes() -> None:
    kept = []

    async def work() -> None:
        with scope("outer"), scope("inner"):
            kept.append(empty(1))
            await asyncio.sleep(60)

    async def main() -> None:
        task = asyncio.create_task(work())
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert (kept[0].alive, scope_depth()) == (False, 0)

    asyncio.run(main())


def test_a_callback_of_the_loop_uses_the_threads_own_scopes() -> None:
    depths = []

    async def main() -> None:
        with scope("task"):
            asyncio.get_running_loop().call_soon(lambda: depths.append(scope_depth()))
            await asyncio.sleep(0)

    asyncio.run(main())
    assert depths == [0]


def test_a_task_that_ends_with_a_scope_entered_frees_what_was_in_it(trace) -> None:
    kept = []

    async def forgetful() -> None:
        scope("forgotten").__enter__()
        kept.append(empty(1))

    with trace() as t:
        asyncio.run(forgetful())
        gc.collect()
        assert scope_depth() == 0  # settles: the task's context is not in force any more

    assert not kept[0].alive
    assert [what for _, what in t.misuses()] == ["unbalanced scope"]


def test_an_async_generator_that_another_task_closes_leaves_its_scope_where_it_was_entered() -> (
    None
):
    kept = []

    async def values():
        with scope("generator"):
            kept.append(empty(1))
            yield 1
            yield 2

    async def first(generator) -> int:
        return await generator.__anext__()

    async def main() -> None:
        generator = values()
        assert await asyncio.create_task(first(generator)) == 1
        assert kept[0].alive
        with scope("own"):
            mine = empty(1)
            await generator.aclose()
            assert (mine.alive, kept[0].alive) == (True, False)

    asyncio.run(main())


def test_frames_are_each_tasks_own() -> None:
    @framed(1)
    async def work(size: int) -> None:
        mine = get_buffer(0, size)
        await asyncio.sleep(0)
        assert get_buffer(0, size).handle == mine.handle

    async def main() -> None:
        await asyncio.gather(*(work(64 * size) for size in range(1, 9)))

    asyncio.run(main())


def test_settling_does_nothing_where_asyncio_was_never_imported() -> None:
    code = (
        "import sys; from tlmem.runtime import contexts; from tlmem.runtime.ownership import scope;"
        "scope.scope_depth(); sys.exit('asyncio' in sys.modules or contexts.in_force() is not None)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_an_ended_task_frees_its_context() -> None:
    async def work() -> None:
        with scope():
            empty(1)

    async def main() -> None:
        for _ in range(20):
            await asyncio.create_task(work())
        contexts.settle()
        assert len(contexts._contexts) <= 2

    asyncio.run(main())


# ---- threads ----


def in_thread(function) -> None:
    """Runs a function in another thread and raises here what it raised."""
    problems = []

    def body() -> None:
        try:
            function()
        except BaseException as error:
            problems.append(error)

    thread = threading.Thread(target=body)
    thread.start()
    thread.join()
    if problems:
        raise problems[0]


def test_a_thread_begins_outside_any_scope_and_its_scopes_are_its_own() -> None:
    def body() -> None:
        assert scope_depth() == 0
        with scope("theirs"):
            a = empty(1)
            assert scope_depth() == 1
        assert not a.alive

    with scope("mine"):
        a = empty(1)
        in_thread(body)
        assert (scope_depth(), a.alive) == (1, True)


def test_a_scope_left_in_another_thread_is_refused_and_stays_entered() -> None:
    with scope("mine") as mine:
        a = empty(1)

        with pytest.raises(UnbalancedScope, match="entered in another thread"):
            in_thread(lambda: mine.__exit__(None, None, None))

        assert (scope_depth(), a.alive) == (1, True)
    assert not a.alive
    assert mine.stats().frees == 1


def test_a_tensor_may_be_registered_in_a_scope_of_another_thread() -> None:
    with scope("mine") as mine:
        a = empty(1)
        in_thread(lambda: mine.register(empty(1)))
        assert mine.count == 2

    assert not a.alive


def test_a_scope_entered_by_a_thread_that_ended_is_left_with_it() -> None:
    kept = []

    def body() -> None:
        scope("forgotten").__enter__()
        kept.append(empty(1))

    in_thread(body)
    deadline = time.monotonic() + 300
    while kept[0].alive:  # the thread ends a moment after it was joined
        assert time.monotonic() < deadline
        time.sleep(0.001)


def test_loops_of_several_threads_do_not_meet() -> None:
    async def work(number: int) -> None:
        for _ in range(10):
            with scope(f"{number}"):
                a = empty(number + 1)
                await asyncio.sleep(0)
                assert (scope_depth(), a.alive) == (1, True)
            assert not a.alive

    async def main() -> None:
        await asyncio.gather(*(work(number) for number in range(10)))

    threads = [threading.Thread(target=lambda: asyncio.run(main())) for _ in range(4)]
    before, first = live_objects(), statistics()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    now = statistics()

    assert live_objects() == before
    assert now.total_count - first.total_count == now.freed_count - first.freed_count == 400


# ---- generators ----


def test_a_generator_that_waits_inside_a_scope_leaves_it_when_it_is_closed() -> None:
    kept = []

    def values():
        with scope("generator"):
            kept.append(empty(1))
            yield 1

    generator = values()
    next(generator)
    assert scope_depth() == 1
    generator.close()

    assert (scope_depth(), kept[0].alive) == (0, False)


def test_a_generator_left_open_across_the_end_of_an_outer_scope_is_told(trace) -> None:
    def values():
        with scope("generator"):
            yield empty(1)

    generator = values()
    with trace() as t:
        with pytest.raises(UnbalancedScope, match="'outer'.*'generator'"):
            with scope("outer"):
                a = next(generator)
        with pytest.raises(UnbalancedScope, match="left already"):
            generator.close()

    assert not a.alive
    assert [what for _, what in t.misuses()] == ["unbalanced scope"] * 2
