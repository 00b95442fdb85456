"""Digests of many recordings, by an executor: this process, several, or a cluster.

A task is a few file names and its result 1 kB for each, so that recordings stay where they are. Any
executor with ``submit`` serves: of ``concurrent.futures``, Dask's, Ray's, that of MPI.

Covers: cutting the work, order, a worker that ends in the middle, memory that does not grow with the
number of recordings. Does not cover: what a digest is (``digest``).
"""

from __future__ import annotations

import multiprocessing
import os
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import (
    FIRST_COMPLETED,
    BrokenExecutor,
    Executor,
    Future,
    ProcessPoolExecutor,
    wait,
)
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tlmem.errors import TlmemError
from tlmem.fleets.comparing import Unreadable
from tlmem.fleets.digest import Digest, digest_file, from_dict

FILES_PER_TASK = 8
"""At most: a worker that ends takes so many with it, which are then done again one by one."""
WAITING_TASKS = 64
"""So many tasks at most are handed to an executor and not done; results are kept, tasks are not."""
FEWEST_FOR_PROCESSES = 16
"""With fewer recordings of ``SMALL_BYTES`` starting processes takes longer than they save."""
SMALL_BYTES = 64_000_000
DASK = "dask://"
DASK_TIMEOUT_S = 20
DASK_RETRIES = 3
"""So often Dask begins a task again whose worker was lost."""

Found = Digest | Unreadable


class NoExecutor(TlmemError):
    """The engine that was asked for is not there."""


def analyse_files(names: Sequence[str]) -> list[dict[str, Any]]:
    """The task: digests of some recordings as plain dicts, one after the other.

    Of one that cannot be read: ``path``, ``sentence`` and ``exit_code``.
    """
    return [_analyse_file(name) for name in names]


def _analyse_file(name: str) -> dict[str, Any]:
    try:
        return digest_file(name).to_dict()
    except TlmemError as error:
        return {"path": name, "sentence": str(error), "exit_code": error.exit_code}
    except MemoryError:
        sentence = f"{name} needs more memory than there is; use fewer --jobs"
        return {"path": name, "sentence": sentence, "exit_code": 3}


def cores() -> int:
    """Cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def digests(
    files: Sequence[Path], executor: Executor | None = None, jobs: int | None = None
) -> Iterator[Found]:
    """Digests as they become known, in no order.

    Args:
        executor: does the work; None: processes of this machine.
        jobs: how many of them; None: as many as cores. 1, or little work, is done in this process.
    """
    names = [str(file) for file in files]
    if executor is not None:
        yield from _by(executor, [os.path.abspath(name) for name in names], FILES_PER_TASK)
        return
    workers = min(jobs or cores(), len(names))
    if workers <= 1 or _is_little(names):
        for name in names:
            yield _found(_analyse_file(name))
        return
    yield from _by_processes(names, workers)


def _is_little(names: Sequence[str]) -> bool:
    """Whether starting processes would take longer than they save."""
    if len(names) >= FEWEST_FOR_PROCESSES:
        return False
    return sum(os.path.getsize(name) for name in names if os.path.exists(name)) < SMALL_BYTES


def _by_processes(names: Sequence[str], workers: int) -> Iterator[Found]:
    """By processes of this machine. What one that ended had in hand is tried once more, alone."""
    left = dict.fromkeys(names)
    try:
        with _pool(workers) as pool:
            for found in _by(pool, names, FILES_PER_TASK):
                left.pop(found.path, None)
                yield found
        return
    except BrokenExecutor:
        pass
    for name in list(left):
        try:
            with _pool(1) as pool:
                yield from _by(pool, [name], 1)
        except BrokenExecutor:
            sentence = f"{name} ended the process that analysed it, maybe for want of memory"
            yield Unreadable(name, sentence, 3)


def _pool(workers: int) -> ProcessPoolExecutor:
    """Processes that begin anew: those of a fork would share locks with threads that are gone."""
    way = "spawn" if sys.platform in ("win32", "darwin") else "forkserver"
    return ProcessPoolExecutor(workers, mp_context=multiprocessing.get_context(way))


def _by(executor: Executor, names: Sequence[str], most: int) -> Iterator[Found]:
    """By an executor; never more than ``WAITING_TASKS`` tasks wait there."""
    size = max(1, min(most, len(names) // (4 * cores())))
    tasks = [names[at : at + size] for at in range(0, len(names), size)]
    tasks.reverse()
    running: set[Future[list[dict[str, Any]]]] = set()
    try:
        while tasks or running:
            while tasks and len(running) < WAITING_TASKS:
                running.add(executor.submit(analyse_files, tasks.pop()))
            done, running = wait(running, return_when=FIRST_COMPLETED)
            for future in done:
                for values in future.result():
                    yield _found(values)
    finally:
        for future in running:
            future.cancel()


def _found(values: dict[str, Any]) -> Found:
    return Unreadable(**values) if "exit_code" in values else from_dict(values)


@contextmanager
def executor_at(address: str | None) -> Iterator[Executor | None]:
    """The executor that ``--on`` names, and its end; None for None.

    Raises:
        NoExecutor: it is not ``dask://HOST:PORT``, Dask is not installed, or nothing answers there.
    """
    if address is None:
        yield None
        return
    if not address.startswith(DASK) or address == DASK:
        raise NoExecutor(f"--on {address} is not understood; write dask://HOST:PORT")
    try:
        from distributed import Client
    except ImportError:
        raise NoExecutor(
            "--on dask:// needs Dask, which is not installed; pip install 'tlmem[dask]'"
        ) from None
    try:
        client = Client(f"tcp://{address.removeprefix(DASK)}", timeout=DASK_TIMEOUT_S)
    except (OSError, TimeoutError, ValueError) as error:
        raise NoExecutor(
            f"no Dask scheduler answers at {address}: {error}; start one with dask scheduler"
        ) from None
    try:
        yield client.get_executor(pure=False, retries=DASK_RETRIES)
    finally:
        client.close()
