"""The messages between parts of the application."""

from __future__ import annotations

from dataclasses import dataclass

from textual.message import Message

from .model.view import View


@dataclass
class StageChanged(Message):
    """More of the recording has been read or analysed, or another process is looked at."""


@dataclass
class ViewChanged(Message):
    """The stretch of time, or what is selected, has changed."""

    view: View

    def can_replace(self, message: Message) -> bool:
        """Only the last of several in a row counts."""
        return isinstance(message, ViewChanged)


@dataclass
class RowChosen(Message):
    """A row of a list was chosen with enter or a click; ``of`` is the id of the list."""

    row: int
    of: str | None = None


@dataclass
class RowSeen(Message):
    """The cursor of a list stands on another row; ``of`` is the id of the list."""

    row: int
    of: str | None = None


@dataclass
class TimePicked(Message):
    """A moment was clicked in a picture; with ``until`` a stretch was dragged."""

    time_ns: int
    until_ns: int | None = None


@dataclass
class Zoomed(Message):
    """The wheel asks for a shorter or longer stretch around a moment."""

    time_ns: int
    factor: float


@dataclass
class PlaceTyped(Message):
    """A place in time was typed: a moment, an object, an event, a mark, a generation."""

    text: str
