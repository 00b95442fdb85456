"""Digests by this process, by others, and by any executor."""

import os
import resource
import sys
from collections.abc import Callable
from concurrent.futures import Executor, Future
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path

import pytest
from support.fleets import write_fleet

import tlmem
from tlmem.errors import TlmemError
from tlmem.fleets import engine
from tlmem.fleets.comparing import FleetAnalysis
from tlmem.fleets.fleet import to_frame


class Watched(Executor):
    """Does each task at once, and counts how many wait."""

    def __init__(self) -> None:
        self.sizes: list[int] = []

    def submit(self, task: Callable, /, *words: object, **more: object) -> Future:
        future: Future = Future()
        self.sizes.append(len(words[0]))  # type: ignore[arg-type]
        future.set_result(task(*words, **more))
        return future


def test_processes_give_the_answer_of_one(
    run_folder: Path, found: FleetAnalysis, monkeypatch
) -> None:
    monkeypatch.setattr(engine, "FEWEST_FOR_PROCESSES", 2)

    assert tlmem.fleet(run_folder).analyse(jobs=2) == found


def test_an_executor_gives_the_same_answer(run_folder: Path, found: FleetAnalysis) -> None:
    watched = Watched()

    assert tlmem.fleet(run_folder).analyse(watched) == found
    assert sum(watched.sizes) == 8
    assert max(watched.sizes) <= engine.FILES_PER_TASK


def test_the_order_is_that_of_ranks_and_not_of_files(tmp_path: Path) -> None:
    folder = write_fleet(tmp_path / "run", 3, steps=10)
    os.rename(folder / "r0000.tlm", folder / "z.tlm")
    ranks = [process.rank for process in tlmem.fleet(folder).analyse(jobs=1).processes]

    assert ranks == [0, 1, 2]


def test_files_that_cannot_be_read_are_named_and_the_others_analysed(tmp_path: Path) -> None:
    folder = write_fleet(tmp_path / "run", 2, steps=10)
    (folder / "text.tlm").write_text("not a recording")
    (folder / "empty.tlm").write_bytes(b"")
    found = tlmem.fleet(folder).analyse()

    assert len(found.processes) == 2
    assert [(os.path.basename(each.path), each.exit_code) for each in found.unreadable] == [
        ("empty.tlm", 3),
        ("text.tlm", 2),
    ]


def test_where_nothing_can_be_read_the_first_reason_is_given(tmp_path: Path) -> None:
    for name in ("a.tlm", "b.tlm"):
        (tmp_path / name).write_bytes(b"")

    with pytest.raises(
        TlmemError, match=r"a.tlm is empty .* \(2 recordings, none can be read\)"
    ) as caught:
        tlmem.fleet(tmp_path).analyse()
    assert caught.value.exit_code == 3


@pytest.mark.skipif(not os.path.isdir("/proc/self/fd"), reason="open files are counted in /proc")
def test_more_recordings_than_may_be_open_are_analysed(tmp_path: Path) -> None:
    folder = write_fleet(tmp_path / "run", 12, steps=2)
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    open_now = max(map(int, os.listdir("/proc/self/fd"))) + 1
    files = tlmem.fleet(folder)
    files.analyse(jobs=1)
    resource.setrlimit(resource.RLIMIT_NOFILE, (open_now + 4, hard))
    try:
        found = files.analyse(jobs=1)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))

    assert len(found.processes) == 12


class Deadly(Watched):
    """Processes of which one ends, and with it the pool, when it is given a certain file."""

    def __enter__(self) -> "Deadly":
        return self

    def submit(self, task: Callable, /, *words: object, **more: object) -> Future:
        if any(name.endswith("r0002.tlm") for name in words[0]):  # type: ignore[attr-defined]
            future: Future = Future()
            future.set_exception(BrokenProcessPool("a process ended"))
            return future
        return super().submit(task, *words, **more)


def test_a_recording_that_ends_its_worker_is_named_and_the_others_analysed(
    run_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Such as one that the system ends for want of memory."""
    monkeypatch.setattr(engine, "FEWEST_FOR_PROCESSES", 2)
    monkeypatch.setattr(engine, "_pool", lambda workers: Deadly())
    files = tlmem.fleet([run_folder / f"r{rank:04}.tlm" for rank in range(4)])
    found = files.analyse(jobs=2)

    assert [process.rank for process in found.processes] == [0, 1, 3]
    assert "ended the process that analysed it" in found.unreadable[0].sentence


def test_progress_is_called_for_each_recording(run_folder: Path) -> None:
    calls: list[tuple[int, int]] = []
    files = [run_folder / f"r{rank:04}.tlm" for rank in range(2)]
    tlmem.fleet(files).analyse(jobs=1, progress=lambda done, of: calls.append((done, of)))

    assert calls == [(1, 2), (2, 2)]


def test_processes_as_a_table_have_a_row_each(found: FleetAnalysis) -> None:
    table = to_frame(found)

    assert table["rank"].tolist() == list(range(8))
    assert table.loc[table["outcome"] == "leak", "name"].tolist() == ["rank 5 (node b, pid 20005)"]


@pytest.mark.parametrize("address", ["dask://", "ray://a:1", "localhost:8786"])
def test_an_engine_that_is_not_known_is_refused(address: str) -> None:
    with pytest.raises(engine.NoExecutor, match="write dask://HOST:PORT"):
        with engine.executor_at(address):
            pass


def test_dask_that_is_not_installed_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(engine.NoExecutor, match=r"pip install 'tlmem\[dask\]'"):
        with engine.executor_at("dask://127.0.0.1:8786"):
            pass
