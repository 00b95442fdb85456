"""Where a text typed into "go to" leads: a moment, an event, an object, a mark, a generation.

Covers: what can be typed. Raises a sentence that says so where it leads nowhere.
"""

from __future__ import annotations

from dataclasses import dataclass

from tlmem.errors import TlmemError
from tlmem.recording.reader import Recording
from tlmem.units import format_count, format_seconds, parse_seconds

from .lanes import Lanes

HINT = "12, 1:30, 20ms, #object, e1009 (event), epoch 3 (mark); 3..12: born between them"
BETWEEN = ".."


class NoSuchPlace(TlmemError):
    """What was typed names no moment, object, event or mark of the recording."""


@dataclass(frozen=True)
class Destination:
    """A moment, and the object that is meant, if one is.

    Of a generation ``born_ns`` are the moments between which it was allocated; without a moment of
    its own (``A..B``) ``time_ns`` is None, and that of judging is meant.
    """

    time_ns: int | None
    object: int | None = None
    born_ns: tuple[int, int] | None = None


def go_to(text: str, recording: Recording, lanes: Lanes) -> Destination:
    """What a text means.

    Raises:
        NoSuchPlace: nothing of this recording.
    """
    word = text.strip()
    if BETWEEN in word:
        return _generation(word, recording, lanes)
    if word.startswith("#"):
        return _object(word[1:], lanes)
    if word[:1] in "eE" and word[1:].isdecimal():
        return _event(int(word[1:]), recording)
    seconds = parse_seconds(word)
    if seconds is None:
        return _mark(word, recording)
    if seconds > recording.seconds:
        length = format_seconds(recording.seconds)
        raise NoSuchPlace(f"{word} is not in the recording, which lasts {length}")
    return Destination(int(seconds * 1e9))


def _generation(word: str, recording: Recording, lanes: Lanes) -> Destination:
    """``A..B``, or ``A..B..C``: allocated between A and B, and alive at C."""
    times = [go_to(part, recording, lanes).time_ns for part in word.split(BETWEEN)]
    if len(times) > 3:
        raise NoSuchPlace(
            f"'{word}' has more than three moments; A..B..C: born in A to B, alive at C"
        )
    first, last = sorted(time or 0 for time in times[:2])
    return Destination(times[2] if len(times) == 3 else None, born_ns=(first, last))


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
    labels, indices = marks["label"].astype(object), marks["index"].astype(str).astype(object)
    indexed = (labels + " " + indices == word) | (labels + ":" + indices == word)
    found = marks[indexed | (labels == word)]
    if not len(found):
        raise NoSuchPlace(f"'{word}' is nothing to go to; type {HINT}")
    return Destination(int(found["time_ns"].iloc[0]))
