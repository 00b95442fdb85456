"""Where a text typed into "go to" leads: a moment, an event, an object, a mark.

Covers: what can be typed. Raises a sentence that says so where it leads nowhere.
"""

from __future__ import annotations

from dataclasses import dataclass

from tlmem.errors import TlmemError
from tlmem.recording.reader import Recording
from tlmem.units import format_count, format_seconds

from .lanes import Lanes

HINT = "seconds (1.25), #object, event e1009, or the name of a mark (epoch 3)"


class NoSuchPlace(TlmemError):
    """What was typed names no moment, object, event or mark of the recording."""


@dataclass(frozen=True)
class Destination:
    """A moment, and the object that is meant, if one is."""

    time_ns: int
    object: int | None = None


def go_to(text: str, recording: Recording, lanes: Lanes) -> Destination:
    """What a text means.

    Raises:
        NoSuchPlace: nothing of this recording.
    """
    word = text.strip()
    if word.startswith("#"):
        return _object(word[1:], lanes)
    if word[:1] in "eE" and word[1:].isdecimal():
        return _event(int(word[1:]), recording)
    try:
        seconds = float(word.removesuffix("s").strip())
    except ValueError:
        return _mark(word, recording)
    if not 0 <= seconds <= recording.seconds:
        length = format_seconds(recording.seconds)
        raise NoSuchPlace(f"{word} is not in the recording, which lasts {length}")
    return Destination(int(seconds * 1e9))


def _object(word: str, lanes: Lanes) -> Destination:
    row = lanes.row_of(int(word)) if word.isdecimal() else None
    if row is None:
        raise NoSuchPlace(
            f"there is no object {word}; {format_count(len(lanes))} are listed, "
            f"from {lanes.number.min(initial=0)} to {lanes.number.max(initial=0)}"
        )
    return Destination(int(lanes.born[row]), int(word))


def _event(number: int, recording: Recording) -> Destination:
    times = recording.events["time_ns"]
    if not 0 <= number < len(times):
        raise NoSuchPlace(
            f"there is no event {number}; they go from 0 to {format_count(len(times) - 1)}"
        )
    return Destination(int(times.iloc[number]))


def _mark(word: str, recording: Recording) -> Destination:
    marks = recording.marks
    names = marks["label"].astype(object) + " " + marks["index"].astype(str).astype(object)
    found = marks[(names == word) | (marks["label"] == word)]
    if not len(found):
        raise NoSuchPlace(f"'{word}' is nothing to go to; type {HINT}")
    return Destination(int(found["time_ns"].iloc[0]))
