"""What happened in a block, as rows that a test can write down.

Covers: recording a block of a test to a file, reading it, giving objects and holders the names that
the test uses. Does not cover: what the tables of a recording are (``tests/recording``).

A row is ``(kind, name, argument, count)``, for example ``("REGISTER", "a", "scope s", 1)``:
the kind of event, the object's name, bytes of an ALLOC or else the holder in words, the count after
the event. A scope has its label as name, ``scope`` and its order of entry without one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tlmem.recorder import Recorder
from tlmem.recording.format.live_file import read_contents
from tlmem.recording.format.segments import Source, read_header
from tlmem.runtime import core

FIRST_OWN_DEVICE = 16
KINDS = (
    "NONE ALLOC FREE REALLOC ACQUIRE RELEASE REGISTER UNREGISTER PROMOTE ESCAPE SCOPE_ENTER "
    "SCOPE_EXIT FRAME_ENTER FRAME_EXIT SLOT_GET SLOT_GROW POOL_HIT POOL_MISS POOL_PUT POOL_DROP "
    "POOL_PRUNE POOL_RESERVE DEVICE_ALLOC DEVICE_FREE TAPE_RECORD TAPE_SAVE TAPE_UNSAVE "
    "BACKWARD_BEGIN BACKWARD_END DETACH RESET CLEAR_GRADS MARK SAMPLE MISUSE HOLDERS COPY"
).split()
NUMBER = {name: number for number, name in enumerate(KINDS)}
OF_SCOPES = {"SCOPE_ENTER", "SCOPE_EXIT", "FRAME_ENTER", "FRAME_EXIT"}
WITH_HOLDER = {"ACQUIRE", "RELEASE", "REGISTER", "UNREGISTER", "PROMOTE", "ESCAPE", "MISUSE"}
POOL = {"POOL_HIT", "POOL_MISS", "POOL_PUT", "POOL_DROP", "POOL_PRUNE"}
MISUSE = (
    "none,use after free,double free,over release,stale record,double register,"
    "unpaired register,no frame,unbalanced scope,unbalanced frame,outlives frame,double pool,"
    "pooled while held,wrong device,not in scope,in place on saved,second backward"
).split(",")
WORDS = {
    core.HANDLE: "handle",
    core.FIELD: "field",
    core.POOL: "pool",
    core.FRAME: "frame",
    core.TAPE: "tape",
    core.EXPORT: "export",
}

Row = tuple[str, str, Any, int]


def handle_of(subject: Any) -> int:
    """The handle of a tensor, struct or number."""
    return subject if isinstance(subject, int) else int(subject.handle)


class Trace:
    """Events of a block. They can be read once the block has ended."""

    def __init__(self) -> None:
        self._names: dict[int, str] = {}
        self._scopes: dict[int, str] = {}
        self._events: list[tuple[str, int, int, int, int]] = []
        self.read = False

    def name(self, **objects: Any) -> None:
        """Gives objects the names they have in rows; inside the block, while they are alive."""
        self._names.update({handle_of(subject): name for name, subject in objects.items()})

    def fill(self, path: Path) -> None:
        """Reads what was recorded."""
        source = Source(path)
        found = read_contents(source, None, None, None)
        assert found.problems == []
        assert read_header(source).lost_events == 0
        events = found.timeline
        columns = (events.kind, events.object, events.arg, events.count, events.device)
        for kind, subject, arg, count, device in zip(*(c.tolist() for c in columns), strict=True):
            word = KINDS[kind]
            if device in range(1, FIRST_OWN_DEVICE) or word in ("MARK", "SAMPLE"):
                continue
            self._events.append((word, subject, arg, count, device))
            if word == "SCOPE_ENTER":
                text = core.label_text(arg) if arg else f"scope {len(self._scopes) + 1}"
                self._scopes[subject] = text
        self.read = True

    # ---- what a test asks ----

    def rows(self, *kinds: str, driver: bool = False) -> list[Row]:
        """Rows in the order of events.

        Args:
            kinds: only these; all of them when none is given.
            driver: also what happens below objects: device memory and its buffers.
        """
        assert self.read, "the block has not ended"
        rows = []
        for kind, subject, arg, count, _ in self._events:
            below = kind.startswith("DEVICE_") or kind == "POOL_RESERVE"
            below |= kind in POOL and subject == 0 and arg >> 56 != core.POOL
            if (driver or not below) and (not kinds or kind in kinds):
                rows.append((kind, self._name(kind, subject), self._argument(kind, arg), count))
        return rows

    def pairs(self, *kinds: str) -> list[tuple[str, str]]:
        """``(kind, name)`` in the order of events."""
        return [row[:2] for row in self.rows(*kinds)]

    def of(self, name: str) -> list[str]:
        """The kinds of the events of one object."""
        return [kind for kind, subject, _, _ in self.rows() if subject == name]

    def counts(self, name: str) -> list[int]:
        """The object's count after each event that says one, ALLOC to FREE."""
        told = {"ALLOC", "FREE", *WITH_HOLDER} - {"MISUSE"}
        return [
            count for kind, subject, _, count in self.rows() if subject == name and kind in told
        ]

    def count(self, kind: str) -> int:
        """How many events of a kind there were."""
        assert kind in NUMBER, kind
        return sum(event[0] == kind for event in self._events)

    def bytes_of(self, kind: str) -> int:
        """Sum of the arguments of a kind: bytes, for ALLOC and COPY."""
        return sum(event[2] for event in self._events if event[0] == kind)

    def misuses(self) -> list[tuple[str, str]]:
        """``(object, what)`` of each misuse."""
        return [(subject, MISUSE[code]) for _, subject, _, code in self.rows("MISUSE")]

    # ---- names ----

    def _name(self, kind: str, subject: int) -> str:
        if kind in OF_SCOPES:
            return self._scopes.get(subject, f"scope #{subject}")
        return self._object(subject)

    def _object(self, handle: int) -> str:
        if handle == 0:
            return ""
        return self._names.setdefault(handle, f"object {len(self._names) + 1}")

    def _argument(self, kind: str, arg: int) -> Any:
        if kind in WITH_HOLDER or kind in POOL:
            return self._holder(arg)
        if kind in ("SLOT_GET", "SLOT_GROW"):
            return self._scopes.get(arg, f"frame #{arg}")
        return core.label_text(arg) if kind == "SCOPE_ENTER" else arg

    def _holder(self, value: int) -> str:
        kind, number = value >> 56, value & (1 << 56) - 1
        if kind == core.SCOPE:
            return f"scope {self._scopes.get(number, f'#{number}')}".replace("scope scope", "scope")
        if kind == core.VIEW:
            return f"view {self._object(number)}"
        if kind in (core.REGISTRY, core.FOREIGN):
            text = core.label_text(number) if number < 1 << 32 else ""
            return text or f"{'registry' if kind == core.REGISTRY else 'foreign'} {number}"
        return WORDS.get(kind, "floating" if kind == core.FLOATING else "")


class Tracer:
    """Makes traces; a test gets one as the fixture ``trace``."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.made = 0

    @contextmanager
    def __call__(self, **objects: Any) -> Iterator[Trace]:
        """Records the block. ``objects`` were made before it and get these names."""
        self.made += 1
        path = self.folder / f"trace-{self.made}.tlm"
        found = Trace()
        found.name(**objects)
        # To look for holders is to go through every Python object of the test run, 0.2 s.
        recorder = Recorder(path, rss_interval=0, holders="off")
        recorder.start()
        try:
            yield found
        finally:
            recorder.stop()
        found.fill(path)


def live_objects() -> set[int]:
    """Handles of all objects that are alive."""
    room = 1024
    while True:
        out = core.ffi.new("tlm_object[]", room)
        count = core.lib.tlm_objects_alive(out, room)
        if count <= room:
            return {int(handle) for handle in out[0:count]}
        room = int(count) + 1024


def statistics(device: int = 0) -> Any:
    """``tlm_runtime_statistics`` now."""
    found = core.ffi.new("tlm_runtime_statistics *")
    core.lib.tlm_runtime_stats(device, found)
    return found


def described(handles: Iterable[int]) -> list[str]:
    """Objects with their holders, for the message of a test that left some behind."""
    return [
        f"object {handle}, held by {[core.holder_text(h) for h in core.holders_of(handle)]}"
        for handle in handles
    ]
