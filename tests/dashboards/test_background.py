"""Work in threads: what is found at once is shown at once, everything else later."""

import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any

from tlmem.dashboards.background import Background

LONG_S = 60.0


class FakeApp:
    """Takes what threads hand over; ``show_next`` does what the application's thread would do."""

    def __init__(self) -> None:
        self.calls: list[tuple[Future[Any], tuple[Any, ...]]] = []
        self.called = threading.Semaphore(0)

    def call_from_thread(self, *call: Any) -> Any:
        """Waits for the result, as Textual's does."""
        found: Future[Any] = Future()
        self.calls.append((found, call))
        self.called.release()
        return found.result(LONG_S)

    def show_next(self) -> None:
        assert self.called.acquire(timeout=LONG_S)
        found, (show, *words) = self.calls.pop(0)
        found.set_result(show(*words))


def background() -> tuple[Background, FakeApp, list[Exception]]:
    app, errors = FakeApp(), []
    return Background(app, errors.append), app, errors  # type: ignore[arg-type]


def test_what_is_found_within_the_patience_is_shown_before_run_returns() -> None:
    works, app, _ = background()
    shown: list[int] = []

    works.run("page", lambda: 7, shown.append, patience_s=LONG_S)

    assert shown == [7] and not works.busy and not app.calls


def test_what_takes_longer_is_handed_to_the_application_later() -> None:
    works, app, _ = background()
    shown: list[bool] = []
    go_on = threading.Event()

    works.run("page", lambda: go_on.wait(LONG_S), shown.append, patience_s=0.001)
    assert not shown and works.is_busy("page")
    go_on.set()
    app.show_next()

    assert shown == [True] and not works.busy


def test_work_that_follows_from_a_result_stays_in_its_thread() -> None:
    works, app, _ = background()
    threads: list[int] = []

    def follow(thread: int) -> None:
        threads.append(thread)
        if len(threads) < 3:
            works.run("reading", threading.get_ident, follow)

    works.run("reading", threading.get_ident, follow)
    for _ in range(3):
        app.show_next()

    assert len(threads) == 3 and len(set(threads)) == 1
    assert threading.get_ident() not in threads and not works.busy


def test_what_follows_is_done_although_a_result_cannot_be_shown() -> None:
    works, app, errors = background()
    shown: list[int] = []

    def show(found: int) -> None:
        works.run("page", lambda: found + 1, shown.append)
        raise ValueError("no such row")

    works.run("page", lambda: 1, show)
    app.show_next()
    app.show_next()

    assert shown == [2] and [str(error) for error in errors] == ["no such row"]
    assert not works.busy


def test_an_error_within_the_patience_is_told_as_any_other() -> None:
    works, app, errors = background()

    works.run("page", lambda: 1 // 0, lambda _: None, patience_s=LONG_S)
    works.run("page", lambda: [][1], lambda _: None)
    app.show_next()

    assert [type(error) for error in errors] == [ZeroDivisionError, IndexError]


def test_of_what_waits_in_a_group_only_the_last_is_done() -> None:
    works, app, _ = background()
    shown: list[object] = []
    go_on = threading.Event()

    def give(value: object) -> Callable[[], object]:
        return lambda: value

    works.run("page", lambda: go_on.wait(LONG_S), shown.append)
    for value in (1, 2, 3):
        works.run("page", give(value), shown.append, patience_s=LONG_S)
    assert not shown
    go_on.set()
    app.show_next()
    app.show_next()

    assert shown == [True, 3]
