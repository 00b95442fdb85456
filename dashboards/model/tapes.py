"""What tapes held over time.

Does not cover: ops and passes, which are tables (``tables``).
"""

from __future__ import annotations

from functools import cached_property

import numpy as np

from tlmem.recording.reader import Recording

from .curves import Floats, Grid, Ints, edges
from .view import View


class TapeIndex:
    """The tapes of one recording."""

    def __init__(self, recording: Recording) -> None:
        self._recording = recording

    def prepare(self) -> None:
        """Computes what any stretch of time is answered from."""
        _ = self._saved, self._gradients, self._recording.ops, self._recording.passes

    def saved(self, view: View, width: int) -> Floats:
        """Bytes that tapes held for rules, at the end of each column."""
        return self._saved.at(edges(view, width))

    def gradients(self, view: View, width: int) -> Floats:
        """Bytes that tapes held as gradients, likewise."""
        return self._gradients.at(edges(view, width))

    @cached_property
    def _saved(self) -> Grid:
        return self._grid("saved_bytes")

    @cached_property
    def _gradients(self) -> Grid:
        return self._grid("grad_bytes")

    def _grid(self, name: str) -> Grid:
        def held(times: Ints) -> Floats:
            return np.nan_to_num(self._recording.tape_memory(times)[name].to_numpy(np.float64))

        return Grid(held, int(self._recording.seconds * 1e9))
