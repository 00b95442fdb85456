"""Work in threads: what is found at once is shown at once, everything else later."""

import threading
from collections.abc import Callable
from typing import Any

from tlmem.dashboards.background import Background

LONG_S = 60.0


class FakeApp:
    """Takes what threads hand over; ``show_all`` does what the application's thread would do."""

    def __init__(self) -> None:
        self.calls: list[tuple[Any, ...]] = []
        self.called = threading.Semaphore(0)

    def call_from_thread(self, *call: Any) -> None:
        self.calls.append(call)
        self.called.release()

    def show_next(self) -> None:
        self.called.acquire()
        show, *words = self.calls.pop(0)
        show(*words)


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
