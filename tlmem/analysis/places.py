"""Which line of the user's program every site belongs to.

Covers: the blamed line of each site, groups of sites with the same blamed line, or of code without
a file that the same line runs (``cells``), import-time sites, call paths.
Does not cover: how the blamed frame is chosen; that is ``Recording.blame_table``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from tlmem.analysis.cells import Cells, cells_of, is_stable
from tlmem.analysis.model import StackFrame
from tlmem.events import CPLUSPLUS, OLDER, WORKSPACE
from tlmem.units import format_count

if TYPE_CHECKING:
    from tlmem.recording.reader import Recording

IMPORT_MACHINERY = "<frozen importlib"
UNKNOWN = StackFrame("", 0, "")
CODE_CELLS = "<code cells>"
"""File of the place of cells that a library runs: a notebook, doctest, a console."""


def place(frame: StackFrame) -> str:
    """A place in a sentence: base name and line; of cells how many there are, and who runs them."""
    name = frame.file.rpartition("/")[2]
    if frame.cells:
        where = "code cells" if name == CODE_CELLS else f"cells run at {name}:{frame.line}"
        return f"{format_count(frame.cells)} {where}"
    if frame.file == CPLUSPLUS:
        is_line = frame.function not in (OLDER, WORKSPACE)
        return f"{frame.function} (C++)" if is_line else frame.function
    return f"{name}:{frame.line}" if name else "a place without a Python stack"


def is_line(frame: StackFrame) -> bool:
    """Whether it is a line of a file. Frames of C++ have only a name."""
    return bool(frame.file) and frame.file != CPLUSPLUS


def with_function(frame: StackFrame) -> str:
    """``model.py:10 forward``, as tables have it; only the name where there is no line."""
    if not frame.file:
        return "no Python stack"
    return f"{place(frame)} {frame.function}" if is_line(frame) else place(frame)


def in_full(frame: StackFrame) -> str:
    """``/home/ada/model.py:10 in forward``, as stacks have it; only the name without a line."""
    return f"{frame} in {frame.function}" if is_line(frame) else place(frame)


def allocated_at(frame: StackFrame) -> str:
    """Where something was made: ``at model.py:10``, ``in 300 cells run at notebook.py:12``."""
    return f"{'in' if frame.cells else 'at'} {place(frame)}"


@dataclass(frozen=True)
class Places:
    """The blamed lines of a recording.

    ``group_of_site[site]`` is the number of a site's blamed line in ``frames``; ``importing[site]``
    says that an import statement of the blamed line was still running; ``blamed[site]`` and
    ``parents[site]`` are its blamed site and its caller's, 0 for none. Cells that are one place are
    one group; ``line_of_site`` has the line of each, ``None`` where that is the same.
    """

    recording: Recording
    group_of_site: NDArray[np.int32]
    importing: NDArray[np.bool_]
    blamed: NDArray[np.int64]
    parents: NDArray[np.int64]
    frames: tuple[StackFrame, ...]
    line_of_site: NDArray[np.int32] | None = None

    @classmethod
    def of(cls, recording: Recording) -> Places:
        """Groups every site of a recording by its blamed line."""
        sites = recording.sites
        numbers = sites.index.to_numpy(np.int64)
        size = int(numbers.max(initial=0)) + 1
        blamed = np.zeros(size, np.int64)
        blamed[numbers] = recording.blame_table.reindex(sites.index).to_numpy(np.int64)
        files = sites["file"].to_numpy(object)
        lines = sites["line"].to_numpy(np.int64)
        functions = sites["function"].to_numpy(object)
        source = recording.source_line
        row_of = np.full(size, -1, np.int64)
        row_of[numbers] = np.arange(len(numbers))

        frames: list[StackFrame] = []
        known: dict[StackFrame, int] = {}
        group_of_site = np.zeros(size, np.int32)
        group_of_blamed: dict[int, int] = {}
        for site in range(size):
            target = int(blamed[site])
            group = group_of_blamed.get(target)
            if group is None:
                row = row_of[target] if 0 <= target < size else -1
                frame = UNKNOWN
                if row >= 0 and (files[row] or lines[row]):
                    frame = StackFrame(files[row], int(lines[row]), functions[row], source)
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
        parent_of = np.zeros(size, np.int64)
        parent_of[numbers] = parents
        # A caller that is not in the recording ends a path, as the outermost one does.
        parent_of[(parent_of < 0) | (row_of[np.clip(parent_of, 0, size - 1)] < 0)] = 0
        lines_of = group_of_site
        if not all(is_stable(frame.file) for frame in frames):
            rows = zip(files.tolist(), lines.tolist(), functions.tolist(), strict=True)
            known_lines = dict(zip(numbers.tolist(), rows, strict=True))
            made = recording.objects["born_site"].to_numpy(np.int64)
            group_of_site = group_of_site.copy()
            named = {site: row[0] for site, row in known_lines.items()}
            for cells in cells_of(named, blamed, parent_of, known_lines, made):
                group_of_site[cells.sites] = len(frames)
                caller = known_lines[cells.caller] if cells.caller else None
                frames.append(_frame_of(cells, caller, recording))
        return cls(recording, group_of_site, importing, blamed, parent_of, tuple(frames), lines_of)

    def stack(self, site: int) -> tuple[StackFrame, ...]:
        """The whole stack of a site, innermost first."""
        return tuple(
            StackFrame(
                frame["file"], int(frame["line"]), frame["function"], self.recording.source_line
            )
            for frame in self.recording.stack(site)
        )

    def blamed_frame(self, site: int) -> StackFrame:
        """The blamed line of a site; an unknown one where the recording does not have the site.

        Of one of many cells it is the cell's own line.
        """
        return self.frames[self.lines[site if 0 <= site < len(self.lines) else 0]]

    @property
    def lines(self) -> NDArray[np.int32]:
        """The number of each site's own line, where ``group_of_site`` has that of many cells."""
        return self.group_of_site if self.line_of_site is None else self.line_of_site

    def paths(
        self, sites: NDArray[Any], depth: int
    ) -> tuple[NDArray[np.int64], list[tuple[StackFrame, ...]]]:
        """Numbers, from 1, the call paths of sites by up to ``depth`` callers of the blamed line.

        Callers are the user's own frames, nearest first; a line that calls twice is one caller.

        Returns:
            The number of each site's path, and the callers of path 1, 2 and so on.
        """
        known: dict[tuple[int, ...], int] = {}
        numbers = []
        for site in sites.tolist():
            # What a caller is blamed on is the nearest frame of the user's outwards from it, which
            # may be far: frames of libraries are not walked through one by one.
            caller = int(self.blamed[self.parents[self.blamed[site]]])
            callers: list[int] = []
            while caller > 1 and len(callers) < depth:
                callers.append(int(self.group_of_site[caller]))
                caller = int(self.blamed[self.parents[caller]])
            numbers.append(known.setdefault(tuple(callers), len(known) + 1))
        paths = [tuple(self.frames[group] for group in callers) for callers in known]
        return np.array(numbers, np.int64), paths

    def inner_lines(self, sites: NDArray[Any]) -> tuple[NDArray[np.int64], list[StackFrame | None]]:
        """Numbers, from 1, the innermost lines of sites: where a library allocated for the line.

        Returns:
            The number of each site's innermost line, and line 1, 2 and so on; None for the blamed
            line itself.
        """
        # A damaged event may name a site that the recording does not have.
        rows = self.recording.sites.reindex(sites)
        rows = rows.fillna({"file": "", "line": 0, "function": ""})
        known: dict[StackFrame | None, int] = {}
        numbers = []
        columns = (sites.tolist(), rows["file"], rows["line"], rows["function"])
        for site, file, line, function in zip(*columns, strict=True):
            frame = StackFrame(file, int(line), function, self.recording.source_line)
            itself = site == self.blamed[site]
            numbers.append(known.setdefault(None if itself else frame, len(known) + 1))
        return np.array(numbers, np.int64), list(known)

    @property
    def count(self) -> int:
        """Number of blamed lines."""
        return len(self.frames)


def _frame_of(
    cells: Cells, caller: tuple[str, int, str] | None, recording: Recording
) -> StackFrame:
    """The place that many cells are: the line that runs them, apart from what it makes itself."""
    if caller is None:
        return StackFrame(CODE_CELLS, 0, "code that a library runs", cells=cells.count)
    file, line, function = caller
    return StackFrame(
        file, int(line), f"code run by {function}", recording.source_line, cells=cells.count
    )
