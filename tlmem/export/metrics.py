"""A recorded program for Prometheus: its files are read while it runs, nothing is added to it.

Covers: live bytes and growth by line, resident memory and the verdict of each process of a family.
Does not cover: which file is meant (``tlmem.cli.live``).

Labels are bounded: the lines that hold most, the rest together as ``other``, and so many processes.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tlmem.analysis import analyse
from tlmem.errors import TlmemError
from tlmem.recording import family
from tlmem.recording.identity import identity_of
from tlmem.recording.reader import read_for_command
from tlmem.report.site_sums import line_totals

if TYPE_CHECKING:
    from tlmem.analysis.model import Analysis
    from tlmem.recording.reader import Recording

MOST_LINES = 20
MOST_PROCESSES = 100
SHARE = 0.2
"""At most this share of the time goes into reading; between readings the last answer is given."""
SOON_S = 1.0
OUTCOMES = ("leak", "native", "python", "driver", "cannot-judge", "retained", "stable")
OTHER = ("other", "other")
OF_PROCESS = ("process", "rank", "worker")
GROWING = "growing-site"

Value = tuple[tuple[str, ...], float]
"""The labels of a sample, and its value."""


class NoPrometheus(TlmemError):
    """The library that speaks to Prometheus is missing, or its port is taken."""


@dataclass(frozen=True)
class Member:
    """What one process holds so far; each value with its labels."""

    labels: tuple[str, str, str]
    ended: bool
    live_bytes: list[Value]
    live_objects: list[Value]
    growth: list[Value]
    resident_bytes: int
    events: int
    lost: int
    outcome: str

    @classmethod
    def of(cls, recording: Recording, analysis: Analysis) -> Member:
        """What a recording shows until now."""
        who = identity_of(recording)
        lines = [each for each in line_totals(recording) if each.alive_count]
        shown, rest = lines[:MOST_LINES], lines[MOST_LINES:]
        held = [(line_labels(each.frame), each.alive_bytes, each.alive_count) for each in shown]
        held.append(
            (OTHER, sum(each.alive_bytes for each in rest), sum(each.alive_count for each in rest))
        )
        growing = [found for found in analysis.findings if found.kind == GROWING]
        slopes: list[Value] = [(line_labels(f.site), f.slope_bytes_per_s or 0.0) for f in growing]
        slopes = [*slopes[:MOST_LINES], (OTHER, sum(slope for _, slope in slopes[MOST_LINES:]))]
        return cls(
            (str(who.pid), "" if who.rank is None else str(who.rank), who.worker),
            recording.state != "open",
            summed([(labels, alive) for labels, alive, _ in held]),
            summed([(labels, count) for labels, _, count in held]),
            summed(slopes),
            analysis.attribution.resident_bytes,
            int(recording.event_count),
            int(recording.lost_events),
            analysis.verdict.outcome,
        )


def line_labels(frame: Any) -> tuple[str, str]:
    """``FILE:LINE`` and the function."""
    return (f"{frame.file}:{frame.line}", frame.function) if frame is not None else OTHER


def summed(values: Iterable[Value]) -> list[Value]:
    """The same with one value for each labels: a sample may be there only once."""
    sums: dict[tuple[str, ...], float] = {}
    for labels, value in values:
        sums[labels] = sums.get(labels, 0) + value
    return list(sums.items())


class Watch:
    """Reads the recordings of a family when they are asked for, at most ``SHARE`` of the time.

    Args:
        path: of the first process.
        clock: seconds.
    """

    def __init__(self, path: Path, clock: Callable[[], float] = time.monotonic) -> None:
        self.path = path
        self._clock = clock
        self._lock = threading.Lock()
        self._members: dict[Path, Member] = {}
        self._count = 0
        self._next_s = clock()

    def members(self) -> tuple[list[Member], int]:
        """What each process holds, and how many there are; files that cannot be read are left out.

        Scrapes that come together wait for one reading.
        """
        with self._lock:
            began = self._clock()
            if began >= self._next_s:
                self._read()
                now = self._clock()
                self._next_s = now + max(SOON_S, (now - began) / SHARE)
            return list(self._members.values()), self._count

    def _read(self) -> None:
        try:
            paths = [self.path, *family.find(self.path)]
        except TlmemError:
            paths = [self.path]
        self._count = len(paths)
        kept: dict[Path, Member] = {}
        for path in paths[:MOST_PROCESSES]:
            member = self._members.get(path)
            if member is None or not member.ended:
                try:
                    recording = read_for_command(path)
                    member = Member.of(recording, analyse(recording))
                except TlmemError:  # it has no event yet, or is being replaced
                    member = None
            if member is not None:
                kept[path] = member
        self._members = kept


def collector(watch: Watch, library: Any) -> Any:
    """What ``prometheus_client`` asks for metrics at each scrape."""
    gauge = library.core.GaugeMetricFamily

    class Collector:
        def collect(self) -> Iterator[Any]:
            members, count = watch.members()
            yield gauge("tlmem_processes", "Recordings of the family.", count)
            of_line = (*OF_PROCESS, "line", "function")
            for name, text, attribute in (
                ("tlmem_live_bytes", "Bytes alive, by allocating line.", "live_bytes"),
                ("tlmem_live_objects", "Objects alive, by allocating line.", "live_objects"),
                ("tlmem_growth_bytes_per_second", "Growth of lines that grow.", "growth"),
            ):
                family_of = gauge(name, text, labels=of_line)
                for member in members:
                    for labels, value in getattr(member, attribute):
                        family_of.add_metric([*member.labels, *labels], value)
                yield family_of
            for name, text, attribute in (
                ("tlmem_resident_bytes", "Resident memory.", "resident_bytes"),
                ("tlmem_recorded_events", "Events in the recording.", "events"),
                ("tlmem_lost_events", "Events that could not be recorded.", "lost"),
            ):
                family_of = gauge(name, text, labels=OF_PROCESS)
                for member in members:
                    family_of.add_metric(list(member.labels), getattr(member, attribute))
                yield family_of
            verdicts = gauge("tlmem_verdict", "1 of the verdict.", labels=(*OF_PROCESS, "outcome"))
            for member in members:
                for outcome in OUTCOMES:
                    verdicts.add_metric([*member.labels, outcome], member.outcome == outcome)
            yield verdicts

    return Collector()


def parse_address(text: str) -> tuple[str, int]:
    """``:9109``, ``9109`` or ``HOST:PORT``; without a host it is this machine alone.

    Raises:
        ValueError: the text is none of these.
    """
    host, _, port = text.rpartition(":")
    if not (port.isascii() and port.isdecimal()) or int(port) > 65535:
        raise ValueError(f"'{text}' is not an address; give :PORT or HOST:PORT, such as :9109")
    return host.removeprefix("[").removesuffix("]") or "127.0.0.1", int(port)


def serve(path: Path, address: tuple[str, int]) -> tuple[Any, int]:
    """Answers scrapes from another thread until the server is shut down.

    Args:
        path: the recording of the first process.
        address: of ``parse_address``; port 0 is any that is free.

    Returns:
        The server, and its port.

    Raises:
        NoPrometheus: ``prometheus_client`` is missing, or the address cannot be used.
    """
    try:
        import prometheus_client as library
        import prometheus_client.core
    except ImportError:
        raise NoPrometheus(
            "metrics need prometheus_client, which is not installed; "
            "pip install 'tlmem[prometheus]'."
        ) from None
    registry = library.CollectorRegistry()
    registry.register(collector(Watch(path), library))
    host, port = address
    try:
        server, _ = library.start_http_server(port, addr=host, registry=registry)
    except OSError as error:
        raise NoPrometheus(
            f"cannot listen on {host}:{port} ({error.strerror or error}); give another port."
        ) from None
    return server, int(server.server_port)
