"""A Dask scheduler and workers, each a process of its own, for tests."""

import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

LONGEST_S = 300


class Cluster:
    """``address`` is what ``--on`` takes; ``workers`` are processes that may be ended."""

    def __init__(self, address: str, workers: list[subprocess.Popen[bytes]]) -> None:
        self.address = address
        self.workers = workers


@contextmanager
def cluster(folder: Path, workers: int) -> Iterator[Cluster]:
    """Starts a scheduler and workers on this machine, and ends them."""
    said = folder / "scheduler.json"
    processes: list[subprocess.Popen[bytes]] = []

    def start(name: str, *words: str) -> subprocess.Popen[bytes]:
        log = (folder / f"{name}.log").open("wb")
        command = [sys.executable, "-m", *words]
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        processes.append(process)
        return process

    try:
        start(
            "scheduler",
            *("distributed.cli.dask_scheduler", "--host", "127.0.0.1", "--port", "0"),
            *("--no-dashboard", "--scheduler-file", str(said)),
        )
        until(said.exists)
        started = [
            start(
                f"worker{number}",
                *("distributed.cli.dask_worker", "--scheduler-file", str(said)),
                *("--nthreads", "1", "--no-nanny", "--no-dashboard"),
                *("--local-directory", str(folder / f"worker{number}")),
            )
            for number in range(workers)
        ]
        address = json.loads(said.read_text())["address"]
        yield Cluster(address.replace("tcp://", "dask://"), started)
    finally:
        for process in processes:
            process.kill()
        for process in processes:
            process.wait()


def until(is_so: Callable[[], bool]) -> None:
    """Waits until something is so."""
    end = time.monotonic() + LONGEST_S
    while not is_so():
        assert time.monotonic() < end, f"not so after {LONGEST_S} s"
        time.sleep(0.02)
