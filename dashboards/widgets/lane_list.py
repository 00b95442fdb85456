"""Lanes under each other: lines with what they hold over time, or objects with their lifetimes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from .picture import Cell, Picture
from .rows import Rows

MOST_HEIGHT = 500
"""No screen has more lines: a list of any length asks for so many at most."""


@dataclass(frozen=True)
class Lane:
    """What one row shows: a name at the left, one character for each column, the colour of each."""

    name: str
    bar: str
    colour: str = ""
    name_colour: str = ""


class LaneList(Rows, Picture):
    """A list of lanes; ``lane(row)`` is asked for those on screen only."""

    DEFAULT_CSS = "LaneList { height: 1fr; min-height: 3; }"

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self.cursor_shown = True
        self.below: Sequence[Lane] = ()
        self.nothing = ""
        self._lane: Callable[[int], Lane] = lambda row: Lane("", "")
        self._kept: dict[int, Lane] = {}
        self._room = 1

    def show(
        self,
        count: int,
        lane: Callable[[int], Lane],
        row: int,
        below: Sequence[Lane] = (),
        room: int = MOST_HEIGHT,
    ) -> None:
        """Shows other lanes.

        Args:
            count: how many there are.
            lane: gives the lane of a row.
            row: where the cursor stands.
            below: lanes under that of the cursor, which say more about it.
            room: lines of the screen that the list asks for, however many lanes there are now.
        """
        self._lane, self.below, self._kept = lane, below, {}
        self.set_rows(count, row, len(below))
        if room != self._room:
            self._room = room
            self.refresh(layout=True)

    def get_content_height(self, *_: object) -> int:
        """As many lines as there may be lanes, so that zooming moves nothing."""
        return min(max(self._room, 1), MOST_HEIGHT)

    def forget(self) -> None:
        """The lanes on screen say something else now; they are asked for again."""
        self._kept = {}
        self.refresh()

    def label(self, row: int) -> str:
        """The name of a lane, ``▸`` before that of the cursor."""
        lane, at_cursor = self._on_screen(row)
        if lane is None:
            return self.nothing if row == 0 and not self.count else ""
        room = self.margin - 2
        name = lane.name if len(lane.name) <= room else f"{lane.name[: room - 1]}…"
        return f"{'▸' if at_cursor else ' '}{name:<{room}}"

    def label_colour(self, row: int) -> str:
        """The colour of the name of a lane."""
        lane, _ = self._on_screen(row)
        return lane.name_colour if lane else ""

    def cells(self, row: int) -> Iterable[Cell]:
        """The bar of a lane."""
        lane, _ = self._on_screen(row)
        return ((lane.bar, lane.colour),) if lane else ()

    def _on_screen(self, y: int) -> tuple[Lane | None, bool]:
        """The lane at a line of the screen, and whether the cursor stands on it."""
        at, line = self.row_at(y)
        if at is None:
            return None, False
        if line:
            return self.below[line - 1], False
        if at not in self._kept:
            self._kept[at] = self._lane(at)
        return self._kept[at], at == self.row
