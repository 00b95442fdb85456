"""What is reserved on a roomy device, and the smallest device on which a run completes.

Covers: both answers for one setting, the settings that a sweep tries. Does not cover: whether the
simulator may be believed (``proof``), who strands the memory (``stranded``).

The two answers are never mixed: an allocator that has room keeps what it could give back.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from tlmem.planning.buffers import load_of, planned_lives
from tlmem.replaying.cuda import Figures, run
from tlmem.replaying.settings import DEFAULT, MIB, Settings
from tlmem.replaying.trace import Trace

if TYPE_CHECKING:
    from tlmem.recording.reader import Recording

STEP_BYTES = 2 * MIB
"""Devices differ by this at least: the driver gives pages of it."""
STEPS = 2_000
"""The smallest device is known to this part of it, where that is more than a step."""
NEAR = 1.02
"""Devices whose sizes differ by less than this are as good as each other."""
PROBES = 12
"""A run may fail on a device and complete on a smaller one, as blocks lie elsewhere there. So many
sizes are tried from above, and none below the first that is too small is believed."""
SWEPT = (
    "",
    "expandable_segments:True",
    "max_split_size_mb:32",
    "max_split_size_mb:64",
    "max_split_size_mb:128",
    "max_split_size_mb:256",
    "max_split_size_mb:512",
    "roundup_power2_divisions:2",
    "roundup_power2_divisions:4",
    "roundup_power2_divisions:8",
    "roundup_power2_divisions:16",
    "expandable_segments:True,roundup_power2_divisions:8",
    "garbage_collection_threshold:0.6,per_process_memory_fraction:0.99",
    "garbage_collection_threshold:0.8,per_process_memory_fraction:0.99",
)
"""Lines that a sweep tries, each from the defaults. Without a memory fraction the threshold for
collecting does nothing, and expandable segments are not collected."""


class Named(Protocol):
    """Settings of an allocator: what a table calls them, and the line that sets them."""

    @property
    def name(self) -> str:
        """What a table calls them."""

    @property
    def conf(self) -> str:
        """The line that sets them."""


@dataclass(frozen=True)
class Answer:
    """One setting. ``roomy`` is on a device where nothing is refused. On one of ``smallest_bytes``
    the run completes, as on every larger one that was tried; on one of ``within_bytes`` less it
    does not. ``tight`` is what happens there.
    """

    settings: Named
    is_recorded: bool
    roomy: Figures
    smallest_bytes: int
    within_bytes: int
    tight: Figures


def answer(trace: Trace, settings: Settings, is_recorded: bool = False) -> Answer:
    """Both answers for one setting.

    Raises:
        MemoryError: no memory for the replay.
        Contradiction: the trace contradicts itself.
    """
    return found_by(
        lambda capacity: run(trace, settings.on(capacity)),
        settings,
        trace.peak_requested,
        is_recorded,
    )


def found_by(
    replay: Callable[[int], Figures], settings: Named, least: int, is_recorded: bool = False
) -> Answer:
    """Both answers of a replay: sizes are tried from above, then by bisection.

    Args:
        replay: runs the trace on a device of some size; 0 is a roomy one.
        least: bytes below which no device can do.
    """
    roomy = replay(0)
    low = least // STEP_BYTES * STEP_BYTES - STEP_BYTES
    high = upwards(max(roomy.peak_reserved_bytes, 1))
    tight = replay(high)
    while not tight.completes:  # collecting moves blocks, so that even the roomy peak may not do
        low, high = high, high + max(STEP_BYTES, upwards(high // 8))
        tight = replay(high)
    within = upwards(max(1, high // STEPS))
    step = max(STEP_BYTES, (high - low) // PROBES // STEP_BYTES * STEP_BYTES)
    while high - step > low:
        tried = replay(high - step)
        if not tried.completes:
            low = high - step
            break
        high, tight = high - step, tried
    while high - low > within:
        middle = upwards((low + high) // 2)
        middle = middle if middle < high else high - STEP_BYTES
        tried = replay(middle)
        if tried.completes:
            high, tight = middle, tried
        else:
            low = middle
    return Answer(settings, is_recorded, roomy, high, within, tight)


def upwards(size: int) -> int:
    """The next size that a device can have."""
    return -(-size // STEP_BYTES) * STEP_BYTES


def settings_to_sweep(recorded: Settings | None) -> Iterable[tuple[Settings, bool]]:
    """Every setting of a sweep, the recorded one first, and whether it is that."""
    if recorded is not None:
        yield recorded, True
    for line in SWEPT:
        made = DEFAULT.changed([line])
        if made != recorded:
            yield made, False


def best(answers: Iterable[Answer]) -> Answer:
    """The setting with the smallest device; of several that are near, what reserves least there is.

    Where two devices hardly differ, the setting that needs no retries is worth more.
    """
    every = list(answers)
    smallest = min(each.smallest_bytes for each in every)
    near = [
        each
        for each in every
        if each.smallest_bytes <= max(smallest + each.within_bytes, NEAR * smallest)
    ]
    return min(near, key=lambda each: (each.roomy.peak_reserved_bytes, len(each.settings.conf)))


def plan_bound(recording: Recording, memory: str) -> int:
    """What no plan needs less than, in bytes: the bound of ``tlmem plan``."""
    lives = planned_lives(recording, memory)
    return int(load_of(lives.first, lives.last, lives.units, len(lives.load)).max(initial=0))
