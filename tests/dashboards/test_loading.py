"""A recording read by several threads at once."""

import threading
from pathlib import Path
from types import TracebackType

import pytest
from tlmem.dashboards.model.loading import Loaded


class ToldLock:
    """A lock that says when somebody asks for it."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self.asked = threading.Semaphore(0)

    def __enter__(self) -> None:
        self.asked.release()
        self._lock.acquire()

    def __exit__(
        self, kind: type | None, error: BaseException | None, where: TracebackType | None
    ) -> None:
        self._lock.release()


def test_two_threads_that_ask_for_the_same_do_not_wait_for_each_other(
    story: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    loaded = Loaded(story)
    lock = ToldLock()
    monkeypatch.setattr(loaded, "_lock", lock)
    found = []

    with lock:
        lock.asked.acquire()
        other = threading.Thread(target=lambda: found.append(loaded.places), daemon=True)
        other.start()
        lock.asked.acquire()
        mine = loaded.places
    other.join()

    assert found == [mine] and found[0] is mine


def test_what_screens_begin_with_is_there_once_it_was_prepared(story: Path) -> None:
    loaded = Loaded(story)
    loaded.read_events()
    loaded.analyse()
    loaded.prepare()

    assert {"lanes", "frames", "scopes", "pools", "tapes", "places"} <= set(loaded.__dict__)
    objects = {finding.object for finding in loaded.analysis.findings} - {None}
    assert objects and objects <= set(loaded._lives)
