"""Who a recorded process is: its rank, node, worker and process id, in the words of every report.

Covers: the notes ``host``, ``rank``, ``local_rank``, ``world_size`` and ``worker`` of a recording,
which one of an earlier tlmem does not have. Does not cover: where the recorder takes them from.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

LONGEST = 60
"""Characters of a host or worker that are shown."""
_MOST_DIGITS = 9


@dataclass(frozen=True)
class Identity:
    """A process: ``pid``, and what its notes say; empty or None where they say nothing."""

    pid: int
    host: str = ""
    rank: int | None = None
    local_rank: int | None = None
    world_size: int | None = None
    worker: str = ""

    def __str__(self) -> str:
        """``rank 37 (node b, pid 20227)``, ``worker gw0 (pid 12)``, ``process 20227 (node b)``."""
        node = [f"node {self.host}"] if self.host else []
        if self.rank is None and not self.worker:
            return self.short + (f" ({node[0]})" if node else "")
        return f"{self.short} ({', '.join([*node, f'pid {self.pid}'])})"

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


def identity(notes: Mapping[str, str], pid: int) -> Identity:
    """Who the process ``pid`` is, by the notes of its recording (``Recording.info``)."""
    return Identity(
        pid,
        _clipped(notes.get("host", "")),
        _number(notes.get("rank", "")),
        _number(notes.get("local_rank", "")),
        _number(notes.get("world_size", "")),
        _clipped(notes.get("worker", "")),
    )


def _number(text: str) -> int | None:
    whole = text.isascii() and text.isdecimal() and len(text) <= _MOST_DIGITS
    return int(text) if whole else None


def _clipped(text: str) -> str:
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 1]}\N{HORIZONTAL ELLIPSIS}"
