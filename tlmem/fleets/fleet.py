"""``tlmem.fleet(paths).analyse()``: any number of recordings, from Python."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from concurrent.futures import Executor
from pathlib import Path

import pandas as pd

from tlmem.errors import TlmemError
from tlmem.fleets.comparing import FleetAnalysis, Unreadable
from tlmem.fleets.digest import Digest
from tlmem.fleets.engine import digests
from tlmem.fleets.members import AnyPath, files_of


class Fleet:
    """Recordings that belong together; ``files`` are their paths, none of them is open."""

    def __init__(self, files: Iterable[Path]) -> None:
        self.files = tuple(files)

    def __repr__(self) -> str:
        return f"<tlmem.Fleet of {len(self.files)} recordings>"

    def __len__(self) -> int:
        return len(self.files)

    def analyse(
        self,
        executor: Executor | None = None,
        jobs: int | None = None,
        progress: Callable[[int, int], None] | None = None,
    ) -> FleetAnalysis:
        """Analyses every recording and keeps about 1 kB of each; one is open at a time and process.

        Args:
            executor: does the work, such as ``distributed.Client(...).get_executor()``; its workers
                need tlmem and see the files under the same paths. None: processes of this machine,
                for which a script needs ``if __name__ == "__main__":`` as for
                ``concurrent.futures.ProcessPoolExecutor``.
            jobs: how many of these processes; None: one for each core. 1: this process alone.
            progress: is called with how many are done, and of how many.
        Raises:
            TlmemError: none of the recordings can be read; that of the first one. Others are in
                ``unreadable``.
        """
        processes: list[Digest] = []
        unreadable: list[Unreadable] = []
        for found in digests(self.files, executor, jobs):
            (processes if isinstance(found, Digest) else unreadable).append(found)  # type: ignore[arg-type]
            if progress is not None:
                progress(len(processes) + len(unreadable), len(self.files))
        unreadable.sort(key=lambda each: each.path)
        if not processes:
            raise nothing_readable(unreadable)
        processes.sort(key=lambda process: (process.identity.order, process.path))
        return FleetAnalysis(tuple(processes), tuple(unreadable))


def nothing_readable(unreadable: list[Unreadable]) -> TlmemError:
    """What to say when no recording of several can be read."""
    first = unreadable[0]
    more = f" ({len(unreadable)} recordings, none can be read)" if len(unreadable) > 1 else ""
    error = TlmemError(f"{first.sentence}{more}")
    error.exit_code = first.exit_code
    return error


def fleet(paths: AnyPath | Iterable[AnyPath]) -> Fleet:
    """The recordings in a folder, of a pattern, or of several paths, with their families.

    Args:
        paths: a file stands for its whole family, a folder for every ``.tlm`` file in it and below,
            a pattern such as ``run/*.tlm`` for what it matches.
    Raises:
        MissingFile: a folder has no recordings, or a pattern matches nothing.
        TooManyEvents: there are more than 100,000 recordings.
    """
    return Fleet(files_of(paths))


def to_frame(found: FleetAnalysis) -> pd.DataFrame:
    """One row for each process: the columns of its digest but for lines and curves."""
    left_out = ("lines", "tracked_curve", "resident_curve")
    rows = [
        {key: value for key, value in process.to_dict().items() if key not in left_out}
        for process in found.processes
    ]
    return pd.DataFrame(rows)
