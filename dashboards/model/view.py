"""What the reader of the screens has chosen: a stretch of time, a line, an object, a thread.

Covers: zooming, panning and selecting, always inside the recording. Every screen follows it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

SHORTEST_NS = 1_000
"""The shortest stretch of time: clocks resolve nothing shorter."""

ALMOST_ALL = 0.99
"""A stretch that would be longer than this share becomes all: rounding leaves no edge behind."""


@dataclass(frozen=True)
class View:
    """A stretch of ``start_ns`` to ``stop_ns`` of a recording of ``end_ns``, and what is selected.

    ``line`` is the number of a blamed line, ``object`` that of an object, ``thread`` that of a
    thread; None: not selected. ``cursor_ns`` is a moment inside the stretch. ``moment_ns`` is the
    one that the screen of that name shows (None: the peak), of what was allocated in ``born_ns``
    alone (None: whenever it was).
    """

    end_ns: int
    start_ns: int = 0
    stop_ns: int = 0
    cursor_ns: int = 0
    line: int | None = None
    object: int | None = None
    thread: int | None = None
    moment_ns: int | None = None
    born_ns: tuple[int, int] | None = None

    @classmethod
    def whole(cls, end_ns: int) -> View:
        """All of a recording that lasts ``end_ns``, with the cursor in its middle."""
        end_ns = max(int(end_ns), SHORTEST_NS)
        return cls(end_ns, 0, end_ns, end_ns // 2)

    @property
    def is_whole(self) -> bool:
        """Whether all of the recording is in it."""
        return self.start_ns <= 0 and self.stop_ns >= self.end_ns

    @property
    def length_ns(self) -> int:
        """How long the stretch is."""
        return self.stop_ns - self.start_ns

    def select(self, start_ns: float, stop_ns: float) -> View:
        """The stretch between two moments in either order, as far as it is in the recording."""
        low, high = sorted((int(start_ns), int(stop_ns)))
        low = min(max(low, 0), self.end_ns - SHORTEST_NS)
        high = max(min(high, self.end_ns), low + SHORTEST_NS)
        cursor = min(max(self.cursor_ns, low), high)
        return replace(self, start_ns=low, stop_ns=high, cursor_ns=cursor)

    def zoom(self, factor: float) -> View:
        """A stretch of ``factor`` times the length, with the cursor where it was on the screen."""
        length = min(max(self.length_ns * factor, SHORTEST_NS), self.end_ns)
        if length > ALMOST_ALL * self.end_ns:
            return self.select(0, self.end_ns)
        share = (self.cursor_ns - self.start_ns) / max(self.length_ns, 1)
        start = min(max(self.cursor_ns - share * length, 0), self.end_ns - length)
        return self.select(start, start + length)

    def pan(self, share: float) -> View:
        """The stretch moved by a share of its length; at the ends of the recording it stops."""
        start = self.start_ns + share * self.length_ns
        start = min(max(start, 0), self.end_ns - self.length_ns)
        moved = replace(self, cursor_ns=int(self.cursor_ns + start - self.start_ns))
        return moved.select(start, start + self.length_ns)

    def move_cursor(self, time_ns: float) -> View:
        """The cursor at another moment; beyond the stretch it takes the stretch along."""
        time_ns = int(min(max(time_ns, 0), self.end_ns))
        moved = replace(self, cursor_ns=time_ns)
        if self.start_ns <= time_ns <= self.stop_ns:
            return moved
        shift = time_ns - self.stop_ns if time_ns > self.stop_ns else time_ns - self.start_ns
        return moved.select(self.start_ns + shift, self.stop_ns + shift)

    def show(self, time_ns: int) -> View:
        """The stretch moved so that a moment is in its middle, with the cursor there."""
        start = min(max(time_ns - self.length_ns / 2, 0), self.end_ns - self.length_ns)
        at = min(max(int(time_ns), 0), self.end_ns)
        return replace(self, cursor_ns=at).select(start, start + self.length_ns)

    def grown(self, end_ns: int) -> View:
        """The view of a recording that has become longer; one of all of it stays one of all."""
        if self.is_whole:
            return replace(self, end_ns=end_ns, stop_ns=max(end_ns, SHORTEST_NS))
        return replace(self, end_ns=max(end_ns, self.end_ns))
