"""What a process of many is called: by its rank or worker name where its launcher gave one.

Covers: the notes that ``tlmem.recorder.identity`` writes. Does not cover: which files are of one
program (``family``).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol


class Recorded(Protocol):
    """What is asked of a recording here."""

    @property
    def info(self) -> dict[str, str]: ...
    @property
    def pid(self) -> int: ...
    @property
    def parent_pid(self) -> int: ...


@dataclass(frozen=True)
class Identity:
    """Who made a recording; texts are empty and numbers None where nothing says it.

    Attributes:
        pid, parent_pid: process ids; that of the parent is 0 when the parent was not recorded.
        host: the name of its machine.
        rank, local_rank: its number among all processes, and among those of its machine.
        world_size: how many processes there are.
        worker: the name that a pool, pytest-xdist, Dask or Ray gave it.
        job: the number that the batch system gave the whole.
    """

    pid: int
    parent_pid: int
    host: str = ""
    rank: int | None = None
    local_rank: int | None = None
    world_size: int | None = None
    worker: str = ""
    job: str = ""

    @property
    def name(self) -> str:
        """``Rank 37 (node b, pid 20227)``, ``Worker gw0 (pid 20227)`` or ``Process 20227``."""
        if self.rank is not None:
            return f"Rank {self.rank} ({f'node {self.host}, ' if self.host else ''}pid {self.pid})"
        return f"Worker {self.worker} (pid {self.pid})" if self.worker else f"Process {self.pid}"


def identity_of(recording: Recorded) -> Identity:
    """Who made this recording."""
    info = recording.info

    def number(key: str) -> int | None:
        text = info.get(key, "")
        return int(text) if text.isascii() and text.isdecimal() and len(text) <= 18 else None

    return Identity(
        recording.pid,
        recording.parent_pid,
        info.get("host", ""),
        number("rank"),
        number("local_rank"),
        number("world_size"),
        info.get("worker", ""),
        info.get("job", ""),
    )


def lowered(name: str) -> str:
    """A name within a sentence."""
    return name[:1].lower() + name[1:]
