"""The same trace through a real allocator: a small program runs it, and resident memory is read.

Covers: running the player, what it answers, how near glibc came to the recorded run. Does not
cover: the trace (``host_trace``), allocators and settings (``host_allocators``).
See also: ``native/player/player.c``.
"""

from __future__ import annotations

import signal
import subprocess
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from tlmem.errors import TlmemError
from tlmem.replaying.host_allocators import HostSettings, NoAllocator, clean_environment
from tlmem.replaying.host_trace import HostTrace
from tlmem.replaying.settings import BadSetting
from tlmem.replaying.trace import MOST_ERROR
from tlmem.units import format_bytes

PLAYER = Path(__file__).resolve().parents[1] / "lib" / "tlmem-player"
MOST_SHARE = 0.8
"""Of the memory that this machine has left: a trace that held more is not replayed here."""
MALFORMED, NO_MEMORY, OTHER_ALLOCATOR = 2, 3, 4
LAST_ROW = 2**64 - 1


class PlayerFailed(TlmemError):
    """The player could not replay the trace."""

    exit_code = 2


@dataclass(frozen=True)
class HostAnswer:
    """One allocator under settings; all in bytes.

    ``resident`` is what the process grew by at each point of the trace. ``peak_bytes`` is the
    highest at any time, ``end_bytes`` at the program's end. ``live_bytes`` is what blocks held at
    most, ``live_end_bytes`` at the program's end.
    """

    settings: HostSettings
    peak_bytes: int
    end_bytes: int
    live_bytes: int
    live_end_bytes: int
    resident: NDArray[np.int64]

    @property
    def overhead(self) -> float:
        """What the peak has above the most that blocks held, as a share of that."""
        return self.peak_bytes / max(1, self.live_bytes) - 1


@dataclass(frozen=True)
class Agreement:
    """How near the player under glibc came to the recorded run, both as growth since arrays began.

    ``error`` is the difference of the peaks or the mean difference, whichever is larger, as a share
    of the recorded peak. ``recorded_end`` is at the last sample. ``parting`` is the first sample at
    which both differ by more than ``MOST_ERROR`` of the peak: time, recorded and replayed bytes.
    """

    error: float
    peak_error: float
    mean_error: float
    recorded_peak: int
    recorded_end: int
    played_peak: int
    samples: int
    parting: tuple[int, int, int] | None

    @property
    def holds(self) -> bool:
        """Whether the figures may be read, and not only their differences."""
        return self.error <= MOST_ERROR


def play(trace: HostTrace, settings: HostSettings) -> HostAnswer:
    """Runs the trace.

    Raises:
        NoAllocator: tlmem was installed without the player, or the library cannot be loaded.
        BadSetting: the allocator refuses the settings.
        PlayerFailed: memory of this machine does not do, or the player did not end well.
    """
    if not PLAYER.exists():
        raise NoAllocator(
            "tlmem was installed without its player, which runs allocators; install a C compiler "
            "and Python's headers, and tlmem again."
        )
    check_memory(trace.live_peak)
    done = subprocess.run(
        [PLAYER, settings.allocator.function],
        input=trace.stream_for(settings.allocator.knows_time),
        capture_output=True,
        env=clean_environment(settings),
        check=False,
    )
    if done.returncode != 0:
        raise _failure(done, settings)
    rows = np.frombuffer(done.stdout[: len(done.stdout) // 16 * 16], "<u8").reshape(-1, 2)
    points = len(trace.point_ns)
    if len(rows) != points + 1 or int(rows[-1, 0]) != LAST_ROW:
        raise PlayerFailed(
            f"the player answered {len(rows)} times instead of {points + 1} times; install tlmem "
            "again."
        )
    resident = rows[:-1, 1].astype(np.int64)
    return HostAnswer(
        settings=settings,
        peak_bytes=int(rows[-1, 1]),
        end_bytes=int(resident[trace.point_end]),
        live_bytes=trace.live_peak,
        live_end_bytes=int(trace.point_live[trace.point_end]),
        resident=resident,
    )


def _failure(done: subprocess.CompletedProcess[bytes], settings: HostSettings) -> TlmemError:
    """What is raised for a player that did not end well."""
    lines = done.stderr.decode("utf-8", "replace").strip().splitlines() or ["it says nothing"]
    name = settings.allocator.name
    if done.returncode == OTHER_ALLOCATOR:
        return NoAllocator(f"{settings.library} cannot be preloaded as {name}: {lines[0]}.")
    if done.returncode == -signal.SIGABRT and settings.pairs:
        return BadSetting(f"{name} does not take {settings.name}: {lines[0]}.")
    if done.returncode in (NO_MEMORY, -signal.SIGKILL):
        return PlayerFailed(
            f"this machine has not enough memory for the trace under {name}; replay it on a larger "
            "one."
        )
    how = (
        f"was ended by signal {-done.returncode}"
        if done.returncode < 0
        else f"ended with {done.returncode}"
    )
    return PlayerFailed(f"the player {how} under {name} ({settings.name}): {lines[0]}.")


def check_memory(wanted: int) -> None:
    """Whether this machine has room for a trace.

    Raises:
        PlayerFailed: it has not.
    """
    left = memory_left()
    if left is not None and wanted > MOST_SHARE * left:
        raise PlayerFailed(
            f"the trace held {format_bytes(wanted)} at once, and this machine has "
            f"{format_bytes(left)} of memory left; replay it on a larger one."
        )


def memory_left() -> int | None:
    """Bytes that this process could still get; None where that is not known."""
    found = []
    try:
        for line in Path("/proc/meminfo").read_text(encoding="ascii").splitlines():
            if line.startswith("MemAvailable:"):
                found.append(int(line.split()[1]) * 1024)
        group = Path("/sys/fs/cgroup")
        limit = (group / "memory.max").read_text(encoding="ascii").strip()
        used = int((group / "memory.current").read_text(encoding="ascii"))
        if limit != "max":
            found.append(max(0, int(limit) - used))
    except (OSError, ValueError, IndexError):
        pass
    return min(found) if found else None


def agreement(trace: HostTrace, answer: HostAnswer) -> Agreement | None:
    """How near an answer is to the recorded run; None when that was not sampled."""
    sampled = trace.sampled
    if sampled is None:
        return None
    now, before = answer.resident[sampled.point], answer.resident[sampled.before]
    begin = now[0]
    # A sample lies somewhere between the moment at which it was asked for and that of its answer.
    low, high = np.minimum(now, before) - begin, np.maximum(now, before) - begin
    recorded = sampled.grown_bytes
    played = np.clip(recorded, low, high)
    peak = int(recorded.max())
    if peak <= 0:
        return None
    mine = int(played.max())
    peak_error = abs(mine - peak) / peak
    mean_error = float(np.abs(played - recorded).mean()) / peak
    wide = np.flatnonzero(np.abs(played - recorded) > MOST_ERROR * peak)
    first = int(wide[0]) if len(wide) else -1
    return Agreement(
        error=max(peak_error, mean_error),
        peak_error=peak_error,
        mean_error=mean_error,
        recorded_peak=peak,
        recorded_end=int(recorded[-1]),
        played_peak=mine,
        samples=len(recorded),
        parting=None
        if first < 0
        else (int(sampled.time_ns[first]), int(recorded[first]), int(played[first])),
    )
