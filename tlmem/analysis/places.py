"""Which line of the user's program every site belongs to.

Covers: the blamed line of each site, groups of sites with the same blamed line, import-time sites.
Does not cover: how the blamed frame is chosen; that is ``Recording.blame_table``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from tlmem.analysis.model import Frame

if TYPE_CHECKING:
    from tlmem.recording import Recording

IMPORT_MACHINERY = "<frozen importlib"
UNKNOWN = Frame("", 0, "")


def place(frame: Frame) -> str:
    """A place in a sentence: base name and line."""
    name = frame.file.rpartition("/")[2]
    return f"{name}:{frame.line}" if name else "a place without a Python stack"


@dataclass(frozen=True)
class Places:
    """The blamed lines of a recording.

    ``group_of_site[site]`` is the number of a site's blamed line in ``frames``; ``importing[site]``
    says that an import statement of the blamed line was still running.
    """

    recording: Recording
    group_of_site: NDArray[np.int32]
    importing: NDArray[np.bool_]
    frames: tuple[Frame, ...]

    @classmethod
    def of(cls, recording: Recording) -> Places:
        """Groups every site of a recording by its blamed line."""
        sites = recording.sites
        numbers = sites.index.to_numpy(np.int64)
        size = int(numbers.max(initial=0)) + 1
        blamed = np.zeros(size, np.int64)
        blamed[numbers] = recording.blame_table.reindex(sites.index).to_numpy(np.int64)
        files = sites["file"].astype(str).to_numpy(object)
        lines = sites["line"].to_numpy(np.int64)
        functions = sites["function"].astype(str).to_numpy(object)
        row_of = np.full(size, -1, np.int64)
        row_of[numbers] = np.arange(len(numbers))

        frames: list[Frame] = []
        known: dict[Frame, int] = {}
        group_of_site = np.zeros(size, np.int32)
        group_of_blamed: dict[int, int] = {}
        for site in range(size):
            target = int(blamed[site])
            group = group_of_blamed.get(target)
            if group is None:
                row = row_of[target] if 0 <= target < size else -1
                frame = UNKNOWN
                if row >= 0 and (files[row] or lines[row]):
                    frame = Frame(files[row], int(lines[row]), functions[row])
                group = group_of_blamed[target] = known.setdefault(frame, len(frames))
                if group == len(frames):
                    frames.append(frame)
            group_of_site[site] = group

        importing = np.zeros(size, bool)
        parents = sites["parent"].to_numpy(np.int64)
        order = np.argsort(sites["depth"].to_numpy(np.int64), kind="stable")
        for row in order.tolist():
            site, parent = int(numbers[row]), int(parents[row])
            if site == blamed[site]:
                continue
            importing[site] = importing[parent] or files[row].startswith(IMPORT_MACHINERY)
        return cls(recording, group_of_site, importing, tuple(frames))

    def stack(self, site: int) -> tuple[Frame, ...]:
        """The whole stack of a site, innermost first."""
        return tuple(
            Frame(frame["file"], int(frame["line"]), frame["function"])
            for frame in self.recording.stack(site)
        )

    @property
    def count(self) -> int:
        """Number of blamed lines."""
        return len(self.frames)
