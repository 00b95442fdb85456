"""Digests of many recordings, by an executor: this process, several, or a cluster.

A task is a few file names and its result 1 kB for each, so that recordings stay where they are. Any
executor with ``submit`` serves: of ``concurrent.futures``, Dask's, Ray's, that of MPI.

Covers: cutting the work, a worker that ends in the middle, bounded memory for any number of
recordings. Does not cover: what a digest is (``digest``).
"""

from __future__ import annotations

import multiprocessing
import os
import sys
from collections.abc import Callable, Iterator, Sequence
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
from typing import Any, TypeVar

from tlmem.errors import TlmemError
from tlmem.fleets.comparing import Unreadable
from tlmem.fleets.digest import Digest, from_dict
from tlmem.fleets.kept_digests import digest_and_keep, kept_digest
from tlmem.fleets.members import absolute

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

WAY = "spawn" if sys.platform in ("win32", "darwin") else "forkserver"
"""How processes begin: anew, as those of a fork would share locks with threads that are gone."""

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
        return digest_and_keep(name).to_dict()
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
    files: Sequence[Path],
    executor: Executor | None = None,
    jobs: int | None = None,
    stopped: Callable[[], bool] = lambda: False,
) -> Iterator[Found]:
    """Digests as they become known, in no order.

    Args:
        executor: does the work; None: processes of this machine.
        jobs: how many of them; None: as many as cores. 1, or little work, is done in this process.
        stopped: whether to leave out the rest.
    """
    names = []
    for name in map(str, files):
        kept = kept_digest(name) if executor is None and _is_short(name) else None
        if kept is None:
            names.append(name)
        elif not stopped():
            yield kept
    for _, values in spread(analyse_files, names, executor, jobs, _ended, stopped):
        yield Unreadable(**values) if "exit_code" in values else from_dict(values)


def _is_short(name: str) -> bool:
    """Whether a look at all of its bytes is faster than a process that does it."""
    try:
        return os.path.getsize(name) < SMALL_BYTES
    except OSError:
        return False


def _ended(name: str) -> dict[str, Any]:
    sentence = f"{name} ended the process that analysed it, maybe for want of memory"
    return {"path": name, "sentence": sentence, "exit_code": 3}


Answer = TypeVar("Answer")
Task = Callable[[Sequence[str]], "list[Answer]"]


def spread(
    task: Task[Answer],
    names: Sequence[str],
    executor: Executor | None,
    jobs: int | None,
    ended: Callable[[str], Answer],
    stopped: Callable[[], bool] = lambda: False,
) -> Iterator[tuple[str, Answer]]:
    """Each name with its answer, as they become known.

    Args:
        task: makes a list of answers from a list of names; both travel between processes.
        ended: the answer of a name that ended its process.
        stopped: whether to leave out the rest.
    """
    if executor is not None:
        yield from _by(executor, task, [absolute(name) for name in names], FILES_PER_TASK)
        return
    workers = min(jobs or cores(), len(names))
    if workers <= 1 or _is_little(names):
        for name in names:
            yield name, task([name])[0]
        return
    left = dict.fromkeys(names)
    try:
        with _pool(workers) as pool:
            for name, answer in _by(pool, task, names, FILES_PER_TASK):
                left.pop(name, None)
                yield name, answer
        return
    except BrokenExecutor:
        pass
    for name in left:  # what the process that ended had in hand, and what waited
        if stopped():
            return
        try:
            with _pool(1) as pool:
                yield from _by(pool, task, [name], 1)
        except BrokenExecutor:
            yield name, ended(name)


def _is_little(names: Sequence[str]) -> bool:
    """Whether starting processes would take longer than they save."""
    if len(names) >= FEWEST_FOR_PROCESSES:
        return False
    return sum(os.path.getsize(name) for name in names if os.path.exists(name)) < SMALL_BYTES


def _pool(workers: int) -> ProcessPoolExecutor:
    return ProcessPoolExecutor(workers, mp_context=multiprocessing.get_context(WAY))


def _by(
    executor: Executor, task: Task[Answer], names: Sequence[str], most: int
) -> Iterator[tuple[str, Answer]]:
    """By an executor; never more than ``WAITING_TASKS`` tasks wait there."""
    size = max(1, min(most, len(names) // (4 * cores())))
    parts = [names[at : at + size] for at in range(0, len(names), size)]
    parts.reverse()
    running: dict[Future[list[Answer]], Sequence[str]] = {}
    try:
        while parts or running:
            while parts and len(running) < WAITING_TASKS:
                part = parts.pop()
                running[executor.submit(task, part)] = part
            for future in wait(running, return_when=FIRST_COMPLETED).done:
                yield from zip(running.pop(future), future.result(), strict=True)
    finally:
        for future in running:
            future.cancel()


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
