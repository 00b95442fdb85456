"""Who a recorded process is: its rank, node, worker and process id, in the words of every report.

Covers: the notes that ``tlmem.recorder.identity`` writes, which recordings of an earlier tlmem do
not have. Does not cover: which files are of one program (``family``).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

LONGEST = 60
"""Characters of a host, worker or job that are shown."""
_MOST_DIGITS = 18


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
    parent_pid: int = 0
    host: str = ""
    rank: int | None = None
    local_rank: int | None = None
    world_size: int | None = None
    worker: str = ""
    job: str = ""

    @property
    def name(self) -> str:
        """``Rank 37 (node b, pid 20227)``, ``Worker gw0 (pid 20227)`` or ``Process 20227``."""
        if self.rank is None and not self.worker:
            return f"Process {self.pid}"
        node = [f"node {self.host}"] if self.host and self.rank is not None else []
        whole = f"{self.short} ({', '.join([*node, f'pid {self.pid}'])})"
        return whole[:1].upper() + whole[1:]

    def __str__(self) -> str:
        """The same within a sentence, and the node of a process that has nothing else."""
        if self.rank is None and not self.worker and self.host:
            return f"{self.short} (node {self.host})"
        return lowered(self.name)

    @property
    def short(self) -> str:
        """``rank 37``, ``worker gw0``, ``process 20227``."""
        if self.rank is not None:
            return f"rank {self.rank}"
        return f"worker {self.worker}" if self.worker else f"process {self.pid}"

    @property
    def order(self) -> tuple[object, ...]:
        """What processes are sorted by: ranks first, then workers by number, then process ids."""
        worker = tuple(
            (len(part), part) if part.isdecimal() else (0, part)
            for part in re.split(r"(\d+)", self.worker)
        )
        return (self.rank is None, self.rank or 0, not self.worker, worker, self.host, self.pid)


def identity(notes: Mapping[str, str], pid: int, parent_pid: int = 0) -> Identity:
    """Who the process ``pid`` is, by the notes of its recording (``Recording.info``)."""
    return Identity(
        pid,
        parent_pid,
        _clipped(notes.get("host", "")),
        _number(notes.get("rank", "")),
        _number(notes.get("local_rank", "")),
        _number(notes.get("world_size", "")),
        _clipped(notes.get("worker", "")),
        _clipped(notes.get("job", "")),
    )


def identity_of(recording: Recorded) -> Identity:
    """Who made this recording."""
    return identity(recording.info, recording.pid, recording.parent_pid)


def lowered(name: str) -> str:
    """A name within a sentence."""
    return name[:1].lower() + name[1:]


def _number(text: str) -> int | None:
    whole = text.isascii() and text.isdecimal() and len(text) <= _MOST_DIGITS
    return int(text) if whole else None


def _clipped(text: str) -> str:
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 1]}\N{HORIZONTAL ELLIPSIS}"
