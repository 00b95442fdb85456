"""Programs that are still running: which file ``tlmem live`` follows, and what it holds so far.

Covers: finding the file by path, by process, or as the newest one here; waiting for its first
event; cheap looks at every process of a family, full readings now and then, the family's sum, what
lines held at any moment so far.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from tlmem.analysis.model import StackFrame
from tlmem.errors import MissingFile, TlmemError
from tlmem.recording import family
from tlmem.recording.format.segments import OPEN, FileHeader, Scanner, Source, read_header
from tlmem.recording.reader import read
from tlmem.units import format_bytes, format_count, format_rate, format_seconds

from .glance import Glance, glance
from .lanes import LineLane
from .layers import Layers, combined, layers_of
from .loading import Loaded
from .tables import TableData
from .view import View

SUFFIX = ".tlm"
WAIT_S = 0.05

SHARE = 0.2
"""At most this share of the time goes into full readings."""
SOON_S = 0.5
FRESH_S = 3.0
"""A full reading older than this is not drawn any more while the program runs on."""
GROWTH_S = 10.0
SORTS = ("alive", "made", "objects", "growth")
WAYS = {
    True: "running",
    False: "killed?",
}


def find_recording(target: str | None, folder: Path) -> Path:
    """The file that is meant.

    Args:
        target: a path, the number of a process, or None for the newest recording of ``folder`` that
            is still being written.
    Raises:
        MissingFile: there is none; the sentence says what to do.
    """
    if target is None:
        return _newest(folder)
    if not target.isdecimal() or Path(target).exists():
        return Path(target)
    mapped = _mapped_by(int(target))
    if mapped is not None:
        return mapped
    for path, header in _recordings(folder):
        if header.pid == int(target):
            return path
    raise MissingFile(
        f"process {target} writes no recording that can be found; name the file instead"
    )


def wait_for_events(path: Path, sleep: Callable[[float], None] = time.sleep) -> Glance:
    """A first look, once there is something to look at.

    Raises:
        TlmemError: the file is missing, no recording, damaged, or empty and its process has ended.
    """
    while True:
        try:
            read(path)
            return glance(path)
        except TlmemError as error:
            header = _header(path)
            if header is None or header.state != OPEN or not is_running(header.pid):
                raise error
        sleep(WAIT_S)


def is_running(pid: int) -> bool:
    """Whether there is a process of this number on this machine."""
    try:
        os.kill(pid, 0)
    except (ProcessLookupError, OverflowError, ValueError):
        return False
    except OSError:
        return True
    return True


def _newest(folder: Path) -> Path:
    written = [
        (path.stat().st_mtime_ns, path)
        for path, header in _recordings(folder)
        if header.state == OPEN and header.parent_pid == 0 and is_running(header.pid)
    ]
    if not written:
        raise MissingFile(
            f"no recording is being written in {folder}; "
            "name a FILE or a PID (tlmem live --help explains)"
        )
    return max(written)[1]


def _recordings(folder: Path) -> list[tuple[Path, FileHeader]]:
    found = []
    for path in sorted(folder.glob(f"*{SUFFIX}")):
        header = _header(path)
        if header is not None:
            found.append((path, header))
    return found


def _header(path: Path) -> FileHeader | None:
    try:
        return read_header(Source(path))
    except TlmemError:
        return None


def _mapped_by(pid: int) -> Path | None:
    """The recording that a process has mapped, on systems that list mappings."""
    try:
        lines = Path(f"/proc/{pid}/maps").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return None
    for line in lines:
        words = line.split(maxsplit=5)
        if len(words) == 6 and words[5].endswith(SUFFIX):
            header = _header(Path(words[5]))
            if header is not None and header.pid == pid:
                return Path(words[5])
    return None


Run = tuple[int, ...]
"""What differs between two recordings of one name: their files, processes and first moments."""


def run_of(path: Path) -> Run:
    """Which run a file is of; another one may have taken the place of the first.

    Raises:
        TlmemError: the file is missing or no recording.
    """
    header = read_header(Source(path))
    try:
        about = os.stat(path)
    except OSError:
        raise MissingFile(f"{path} does not exist; check the path") from None
    return about.st_dev, about.st_ino, header.pid, header.created_unix_ns, header.first_ns


@dataclass
class Member:
    """One process of the family: the last look at it and the last full reading of it."""

    path: Path
    scanner: Scanner
    look: Glance
    run: Run
    full: Loaded | None = None
    read_at: float = 0.0
    took_s: float = 0.0

    @property
    def ended(self) -> bool:
        """Whether nothing will follow."""
        return not self.look.running or not is_running(self.look.pid)

    @property
    def way(self) -> str:
        """What has become of it, in words."""
        if not self.look.running:
            return "ended" if self.look.state == "sealed" else "recording stopped"
        return WAYS[is_running(self.look.pid)]

    @property
    def layers(self) -> Layers:
        """The best that is known of its memory over time."""
        if self.full is not None:
            behind = self.look.seconds - self.full.end_ns / 1e9
            if behind < FRESH_S or self.ended:
                return self.full.layers
        return layers_of(self.look.samples)

    def wants_reading(self, now: float) -> bool:
        """Whether it is time for a full reading: something is new, and enough time has passed."""
        if self.full is None:
            return True
        new = self.look.events > self.full.first_look.events
        new = new or self.look.state != self.full.first_look.state
        return new and now - self.read_at > max(SOON_S, self.took_s / SHARE)


@dataclass
class Follower:
    """The family of a recording that grows; ``runs`` counts the programs that wrote its file."""

    path: Path
    members: list[Member] = field(default_factory=list)
    runs: int = 0

    def look(self) -> None:
        """Looks at every process again, and for new ones; costs a few milliseconds each.

        When another run has taken the place of the file, nothing of the one before is kept.

        Raises:
            TlmemError: the recording of the first process cannot be read any more.
        """
        if not self.members or run_of(self.path) != self.members[0].run:
            self.members = [_first_look(self.path)]
            self.runs += 1
        known = {member.path: member for member in self.members}
        for path in [self.path, *family.find(self.path)]:
            member = known.get(path)
            try:
                if member is None:
                    self.members.append(_first_look(path))
                elif run_of(path) != member.run:
                    self.members[self.members.index(member)] = _first_look(path)
                elif member.look.running:
                    member.look = glance(path, member.scanner)
            except TlmemError:
                if path == self.path:
                    raise

    def read(self, clock: float | None = None) -> bool:
        """Reads one process in full if it is time for that; says whether it did."""
        now = time.monotonic() if clock is None else clock
        for member in list(self.members):
            if member.wants_reading(now):
                began = time.monotonic()
                try:
                    full = Loaded(member.path)
                    full.read_events()
                    _ = full.lanes
                    replaced = run_of(member.path) != member.run
                except TlmemError:
                    member.read_at = now  # the next look says what is wrong with it
                    return False
                if replaced:
                    return False  # the next look sees the other run
                member.full, member.took_s = full, time.monotonic() - began
                member.read_at = now + member.took_s
                return True
        return False

    def shift_ns(self, member: Member) -> int:
        """How long after the first process this one began."""
        return member.look.created_unix_ns - self.members[0].look.created_unix_ns

    @property
    def end_ns(self) -> int:
        """How long the family has been running."""
        return max(int(m.look.seconds * 1e9) + self.shift_ns(m) for m in self.members)

    @property
    def ended(self) -> bool:
        """Whether no process runs any more."""
        return all(member.ended for member in self.members)

    def read_until_ns(self, chosen: Member | None) -> int:
        """Up to when lines are known, on the clock of the first process; 0 before any reading."""
        members = self.members if chosen is None else [chosen]
        ends = [m.full.end_ns + self.shift_ns(m) for m in members if m.full is not None]
        return max(ends, default=0)

    def layers(self, chosen: Member | None) -> Layers:
        """Memory of one process, or of all together, on the clock of the first one."""
        members = self.members if chosen is None else [chosen]
        return combined([(self.shift_ns(m), m.layers, m.ended) for m in members])


def _first_look(path: Path) -> Member:
    run, scanner = run_of(path), Scanner(Source(path))
    return Member(path, scanner, glance(path, scanner), run)


def together(follower: Follower, chosen: Member | None, time_ns: int) -> str:
    """What one process, or all together, held at a moment, and how shared pages were counted."""
    layers = follower.layers(chosen).at(time_ns)
    total = 0.0 if layers is None else float(layers.sum())
    members = follower.members if chosen is None else [chosen]
    if len(members) == 1:
        return f"{format_bytes(total)} resident"
    text = f"{format_bytes(total)} resident in {len(members)} processes"
    shares = [_last(member, "pss") for member in members if not member.ended]
    if shares and time_ns >= follower.end_ns and all(share is not None for share in shares):
        once = sum(share for share in shares if share is not None)
        return f"{text}, {format_bytes(once)} with shared pages counted once"
    return f"{text}, shared pages counted in each"


def process_table(follower: Follower) -> TableData:
    """A row for each process."""
    rows = []
    for member in follower.members:
        look = member.look
        resident = (_last(member, "anon") or 0.0) + (_last(member, "file") or 0.0)
        rows.append(
            (
                str(look.pid),
                look.script,
                member.way,
                format_bytes(resident),
                format_count(look.events),
                format_seconds(look.seconds),
            )
        )
    heads = ("process", "program", "state", "resident", "events", "for")
    return TableData(heads, rows, ("process", "resident", "events", "for"))


@dataclass(frozen=True)
class LiveLine:
    """What a line holds at a moment; ``growth`` is in bytes per second over the last seconds."""

    frame: StackFrame
    alive_bytes: float
    alive_count: float
    made: float
    growth: float


def lines_at(follower: Follower, chosen: Member | None, time_ns: int, sort: str) -> list[LiveLine]:
    """The lines of one process, or of all, at a moment of the first one's clock.

    Args:
        sort: of ``SORTS``.
    """
    sums: dict[StackFrame, list[float]] = {}
    for member in follower.members if chosen is None else [chosen]:
        if member.full is None:
            continue
        at = min(time_ns - follower.shift_ns(member), member.full.end_ns)
        since = max(at - int(GROWTH_S * 1e9), 0)
        if at <= 0:
            continue
        lanes = member.full.lanes
        whole = View.whole(member.full.end_ns)
        recent = lanes.lines(whole.select(since, at), 1)
        made = {lane.line: float(lane.made.sum()) for lane in lanes.lines(whole.select(0, at), 1)}
        before = _alive(lanes.lines(whole.select(0, since), 1)) if since else {}
        for lane in recent:
            row = sums.setdefault(lane.frame, [0.0, 0.0, 0.0, 0.0])
            seconds = max((at - since) / 1e9, 1e-6)
            row[0] += float(lane.live_bytes[-1])
            row[1] += float(lane.live_count[-1])
            row[2] += made.get(lane.line, 0.0)
            row[3] += (float(lane.live_bytes[-1]) - before.get(lane.line, 0.0)) / seconds
    found = [LiveLine(frame, *row) for frame, row in sums.items()]
    keys = {
        "alive": lambda line: line.alive_bytes,
        "made": lambda line: line.made,
        "objects": lambda line: line.alive_count,
        "growth": lambda line: line.growth,
    }
    return sorted(found, key=keys[sort], reverse=True)


def line_table(lines: list[LiveLine]) -> TableData:
    """Lines as rows of texts."""
    rows = [
        (
            format_bytes(line.alive_bytes),
            format_count(line.alive_count),
            ("+" if line.growth > 0 else "") + format_rate(line.growth) if line.growth else "",
            format_count(line.made),
            f"{line.frame.file.rpartition('/')[2]}:{line.frame.line} {line.frame.function}"
            if line.frame.file
            else "no Python stack",
        )
        for line in lines
    ]
    heads = ("alive", "objects", "growth", "total", "line")
    return TableData(heads, rows, heads[:-1])


def _alive(lanes: list[LineLane]) -> dict[int, float]:
    """Bytes of each line that are alive at the end of its lane."""
    return {lane.line: float(lane.live_bytes[-1]) for lane in lanes}


def _last(member: Member, metric: str) -> float | None:
    if metric not in member.look.samples:
        return None
    values = member.look.samples[metric].dropna().to_numpy(np.float64)
    return float(values[-1]) if len(values) else None
