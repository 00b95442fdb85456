"""The life of one object: what happened to it, who took it, who gave it back, who still has it.

Covers: finding an object by its number, handle or address; its steps, paired by holder.
Does not cover: which events speak of it (``Recording.history``), how it looks (``report``).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from tlmem.analysis.model import StackFrame
from tlmem.analysis.places import Places, place
from tlmem.errors import TlmemError
from tlmem.events import DEVICE_NAMES, FIRST_RUNTIME_DEVICE, KIND_NAMES, SATURATED_COUNT, Kind
from tlmem.units import format_bytes

if TYPE_CHECKING:
    from tlmem.recording.reader import Recording

MOST_SUGGESTED = 3
_COUNTED = (Kind.ALLOC, Kind.FREE, *range(Kind.ACQUIRE, Kind.ESCAPE + 1))


class NoSuchObject(TlmemError):
    """The recording does not know the object that was asked for."""

    exit_code = 2


@dataclass(frozen=True)
class HistoryStep:
    """One event of a life; ``number`` counts from 1.

    ``count`` is the reference count after it, None where there is none; ``bytes`` those of what
    begins. ``ended_by`` and ``began_at`` are numbers of other steps, 0 for none: the one that gives
    back what this one takes, that took what this one gives back. ``unpaired``: nobody ever gives
    back what this one takes. ``site`` is the blamed frame, ``stack`` is innermost first.
    """

    number: int
    time_ns: int
    thread: int
    event: str
    holder: str
    count: int | None
    bytes: int
    site: StackFrame
    stack: tuple[StackFrame, ...]
    ended_by: int
    began_at: int
    unpaired: bool


@dataclass(frozen=True)
class Seen:
    """Who held an object in Python when a snapshot was taken, in words and step by step."""

    time_ns: int
    trigger: str
    holder: str
    chain: str


@dataclass(frozen=True)
class History:
    """The life of one object; ``died_ns`` is -1 while it is alive.

    ``owned`` says that its holders were recorded; ``folded`` that its first events were folded, so
    that only its birth is known of them. ``resized_from`` and ``resized_to`` are numbers of other
    objects, -1 for none. ``others`` lay at the same address. ``python`` are the snapshots that name
    it, in order. With ``problems`` (a sentence each) steps may be missing.
    """

    object: int
    address: int
    device: str
    runtime: bool
    bytes: int
    born_ns: int
    died_ns: int
    made: StackFrame
    folded: bool
    owned: bool
    resized_from: int
    resized_to: int
    others: tuple[int, ...]
    problems: tuple[str, ...]
    steps: tuple[HistoryStep, ...]
    python: tuple[Seen, ...] = ()

    @property
    def held(self) -> tuple[HistoryStep, ...]:
        """The acquires without a release."""
        return tuple(step for step in self.steps if step.unpaired)


def history(recording: Recording, which: str, places: Places | None = None) -> History:
    """The life of an object.

    Args:
        places: those of the recording, where they are at hand; else they are made anew.
        which: its number, as reports print it, or ``0x`` and its handle or address. Of several
            objects at one address: the one that is alive, else the last one.
    Raises:
        NoSuchObject: there is none; the message names the largest that are alive.
    """
    return recording.kept(("history", which), lambda: life_of(recording, which, places), True)


def life_of(recording: Recording, which: str, places: Places | None = None) -> History:
    """The same as ``history``, worked out anew and not kept.

    Raises:
        NoSuchObject: as ``history``.
    """
    number, others = find_object(recording, which)
    row = recording.objects.loc[[number]].to_dict("records")[0]
    places = places or Places.of(recording)
    steps = _steps(recording, places, number)
    resized_to = recording.objects.index[recording.objects["resized_from"] == number]
    return History(
        object=number,
        address=int(row["address"]),
        device=DEVICE_NAMES.get(int(row["device"]), f"device {int(row['device'])}"),
        runtime=bool(row["device"] >= FIRST_RUNTIME_DEVICE),
        bytes=int(row["size_bytes"]),
        born_ns=int(row["born_ns"]),
        died_ns=int(row["died_ns"]),
        made=_frame_of(places, int(row["born_site"])),
        folded=bool(row["folded"]),
        owned=any(step.holder for step in steps),
        resized_from=int(row["resized_from"]),
        resized_to=int(resized_to[0]) if len(resized_to) else -1,
        others=others,
        problems=tuple(recording.problems),
        steps=steps,
        python=seen_in_python(recording, number),
    )


def seen_in_python(recording: Recording, number: int) -> tuple[Seen, ...]:
    """The chains in which snapshots found an object, in order of time."""
    named = recording.holding_objects
    named = named[named["object"] == number]
    table = recording.holdings.merge(named, on=["snapshot", "group"])
    return tuple(
        Seen(int(row["time_ns"]), str(row["trigger"]), str(row["words"]), str(row["chain"]))
        for row in table.sort_values("snapshot", kind="stable").to_dict("records")
    )


def find_object(recording: Recording, which: str) -> tuple[int, tuple[int, ...]]:
    """The number of an object, and of the others at its address.

    Raises:
        NoSuchObject: there is none, or ``which`` is neither a number nor an address.
    """
    objects, text = recording.objects, which.strip().removeprefix("#")
    try:
        value = int(text, 16 if text.lower().startswith("0x") else 10)
    except ValueError:
        raise NoSuchObject(
            f"'{which}' is neither the number of an object nor 0x and a handle or address; "
            f"{_suggestion(recording)}."
        ) from None
    if not text.lower().startswith("0x") and value in objects.index:
        return value, ()
    there = objects[objects["address"].to_numpy() == np.uint64(value % (1 << 64))]
    if not len(there):
        raise NoSuchObject(
            f"{recording.path} has no object {which.strip()}; {_suggestion(recording)}."
        )
    alive = there[there["died_ns"] < 0]
    number = int((alive if len(alive) else there).index[-1])
    return number, tuple(int(other) for other in there.index if other != number)


def _suggestion(recording: Recording) -> str:
    """What else could be asked for."""
    objects = recording.objects
    if not len(objects):
        return "no object is listed in it"
    known = f"numbers go from {int(objects.index.min())} to {int(objects.index.max())}"
    if recording.fold:
        known += ", and of those that were freed before events were folded nothing is known"
    alive = objects[objects["died_ns"] < 0].nlargest(MOST_SUGGESTED, "size_bytes")
    if not len(alive):
        return f"{known}; none is alive at the end"
    largest = []
    for number, row in alive.iterrows():
        frame = recording.blame(int(row["born_site"]))
        where = place(StackFrame(frame["file"], frame["line"], frame["function"])) if frame else ""
        size = format_bytes(float(row["size_bytes"]))
        largest.append(f"{number} ({', '.join(word for word in (size, where) if word)})")
    return f"{known}; the largest that are alive at the end: {', '.join(largest)}"


def _frame_of(places: Places, site: int) -> StackFrame:
    return places.blamed_frame(site)


def _steps(recording: Recording, places: Places, number: int) -> tuple[HistoryStep, ...]:
    stacks: dict[int, tuple[StackFrame, ...]] = {}
    found = []
    table = recording.history(number)
    owned = (table["holder"] != "").any()
    misuses = dict(zip(recording.misuses["time_ns"], recording.misuses["misuse"], strict=True))
    for at, row in enumerate(table.to_dict("records"), 1):
        site, kind = int(row["site"]), int(row["kind"])
        if site not in stacks:
            stacks[site] = places.stack(site)
        event = KIND_NAMES.get(kind, f"kind {kind}")
        if kind == Kind.MISUSE:
            event = str(misuses.get(row["time_ns"], event))
        if row["resize"] or row["failed"]:
            event = f"{'failed ' if row['failed'] else ''}resize"
        counted = owned and kind in _COUNTED and row["count"] < SATURATED_COUNT
        found.append(
            HistoryStep(
                number=at,
                time_ns=int(row["time_ns"]),
                thread=int(row["thread"]),
                event=event,
                holder=str(row["holder"]),
                count=int(row["count"]) if counted else None,
                bytes=int(row["size_bytes"]),
                site=_frame_of(places, site),
                stack=stacks[site],
                ended_by=int(row["ended_by"]) + 1,
                began_at=int(row["began_at"]) + 1,
                unpaired=bool(row["unpaired"]),
            )
        )
    return tuple(found)
