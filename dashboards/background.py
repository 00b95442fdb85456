"""Work that takes long, in threads that never hold up a key or the end of the application.

Covers: one thread for each group; of several requests that wait in a group only the last one;
waiting a moment for what is found at once, so that it is shown in the same frame as what the key
did itself, and not one later.
Textual's own thread workers are joined when the application ends; who quits while ten million
events are read should not wait for them, so these are daemon threads. Work that follows from what
other work of its group found stays in its thread: each thread has memory of its own, and what the
earlier work freed serves the later one.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

from textual.app import App

Work = Callable[[], Any]
Show = Callable[[Any], None]


class Background:
    """Runs work and hands what it found to the thread of the application.

    Args:
        app: whose thread shows the results.
        failed: called in that thread when work has raised an exception.
    """

    def __init__(self, app: App[Any], failed: Callable[[Exception], None]) -> None:
        self._app = app
        self._failed = failed
        self._running: set[str] = set()
        self._waiting: dict[str, tuple[Work, Show]] = {}
        self._handing_over: set[str] = set()
        """Groups whose thread waits while what it found is shown."""
        self._next: dict[str, tuple[_Errand, Show]] = {}
        """What such a thread does after that."""

    @property
    def busy(self) -> bool:
        """Whether anything runs or waits."""
        return bool(self._running)

    def is_busy(self, group: str) -> bool:
        """Whether work of a group runs."""
        return group in self._running

    def run(self, group: str, work: Work, show: Show, patience_s: float = 0.0) -> None:
        """Runs work; while another of its group runs it waits, and replaces what waited before.

        Args:
            patience_s: so long this waits for the work to be done. If it is, ``show`` has been
                called when this returns.
        """
        if group in self._running:
            self._waiting[group] = (work, show)
            return
        self._running.add(group)
        errand = _Errand(work, awaited=patience_s > 0)
        if group in self._handing_over and patience_s <= 0:
            self._next[group] = (errand, show)
            return
        threading.Thread(
            target=self._work, args=(group, errand, show), name=f"tlmem {group}", daemon=True
        ).start()
        if patience_s > 0 and errand.is_done_within(patience_s):
            self._done(group, errand, show)

    def _work(self, group: str, errand: _Errand, show: Show) -> None:
        following: tuple[_Errand, Show] | None = (errand, show)
        while following is not None:
            errand, show = following
            if errand.run():
                return  # whoever waited for it shows what it found
            try:
                following = self._app.call_from_thread(self._hand_over, group, errand, show)
            except RuntimeError:
                return  # the application has ended meanwhile

    def _hand_over(self, group: str, errand: _Errand, show: Show) -> tuple[_Errand, Show] | None:
        """In the application's thread: shows a result; what this thread shall do next."""
        self._handing_over.add(group)
        try:
            self._done(group, errand, show)
        except Exception as error:
            self._failed(error)  # what ``show`` has asked for before that is still done
        finally:
            self._handing_over.discard(group)
        return self._next.pop(group, None)

    def _done(self, group: str, errand: _Errand, show: Show) -> None:
        """In the application's thread: shows a result, and goes on with what waits."""
        self._running.discard(group)
        if group in self._waiting:
            self.run(group, *self._waiting.pop(group))
        if errand.error is not None:
            self._failed(errand.error)
        else:
            show(errand.found)


class _Errand:
    """Work and its result, shown by the caller if it waits for it, else by the thread."""

    def __init__(self, work: Work, awaited: bool) -> None:
        self._work = work
        self._ended = threading.Condition()
        self._is_done = False
        self._is_awaited = awaited
        self.found: Any = None
        self.error: Exception | None = None

    def run(self) -> bool:
        """Does the work; returns whether the caller still waits for it."""
        try:
            self.found = self._work()
        except Exception as error:
            self.error = error
        with self._ended:
            self._is_done = True
            self._ended.notify()
            return self._is_awaited

    def is_done_within(self, seconds: float) -> bool:
        """Waits, once; returns whether the work was done by then."""
        with self._ended:
            self._is_awaited = self._ended.wait_for(lambda: self._is_done, seconds)
            return self._is_awaited
