"""Settings of PyTorch's caching allocator, as ``PYTORCH_ALLOC_CONF`` has them.

Covers: reading ``KEY:VALUE`` and ``KEY=VALUE``, the settings in a snapshot, writing the line that
sets them. Does not cover: what they do (``native/replay``).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from tlmem.errors import TlmemError

MIB = 1 << 20
INTERVALS = 16
"""Of sizes that have divisions of their own: from 1 MiB, 2 MiB, ..., 32 GiB on."""
LARGEST_MB = 1 << 26
LEAST_FRACTION = 0.01
"""Of a device that a process limits itself to."""
WITHOUT_EFFECT = (
    "backend",
    "release_lock_on_cudamalloc",
    "release_lock_on_hipmalloc",
    "pinned_use_cuda_host_register",
    "pinned_use_hip_host_register",
    "pinned_num_register_threads",
    "pinned_use_background_threads",
    "pinned_reserve_segment_size_mb",
    "graph_capture_record_stream_reuse",
    "throw_on_cudamalloc_oom",
)
"""Settings that a recorded line may have and that say nothing of where blocks lie."""


class BadSetting(TlmemError):
    """A setting that the allocator does not have, or a value that it does not take."""

    exit_code = 2


@dataclass(frozen=True)
class Settings:
    """One configuration; the defaults are those of PyTorch. Sizes are in MiB, 0 is no limit.

    ``divisions`` are those between powers of two, by size from 1 MiB on; 0 and 1: none.
    ``capacity_bytes`` is what the device has; 0: more than is asked for. ``memory_fraction`` is the
    part of it that the process may have; 1: all, and the threshold for collecting does nothing.
    """

    max_split_size_mb: int = 0
    max_non_split_rounding_mb: int = 20
    large_segment_size_mb: int = 20
    garbage_collection_threshold: float = 0.0
    memory_fraction: float = 1.0
    expandable_segments: bool = False
    divisions: tuple[int, ...] = (0,) * INTERVALS
    capacity_bytes: int = 0

    @property
    def conf(self) -> str:
        """The line that sets it; empty for the defaults."""
        parts = []
        if self.expandable_segments:
            parts.append("expandable_segments:True")
        if self.max_split_size_mb:
            parts.append(f"max_split_size_mb:{self.max_split_size_mb}")
        if self.max_non_split_rounding_mb != 20:
            parts.append(f"max_non_split_rounding_mb:{self.max_non_split_rounding_mb}")
        if self.large_segment_size_mb != 20:
            parts.append(f"large_segment_size_mb:{self.large_segment_size_mb}")
        if any(number > 1 for number in self.divisions):
            parts.append(f"roundup_power2_divisions:{divisions_text(self.divisions)}")
        if self.garbage_collection_threshold:
            parts.append(f"garbage_collection_threshold:{self.garbage_collection_threshold:g}")
        if self.memory_fraction < 1:
            parts.append(f"per_process_memory_fraction:{self.memory_fraction:g}")
        return ",".join(parts)

    @property
    def name(self) -> str:
        """What a table calls it."""
        return self.conf or "default"

    @property
    def allowed_bytes(self) -> int:
        """What the process may have of the device; 0: all of it."""
        return int(self.memory_fraction * self.capacity_bytes) if self.memory_fraction < 1 else 0

    def on(self, capacity_bytes: int) -> Settings:
        """The same on a device of some size."""
        return replace(self, capacity_bytes=capacity_bytes)

    def changed(self, pairs: Iterable[str]) -> Settings:
        """The same with some settings changed, each as ``KEY=VALUE`` or ``KEY:VALUE``.

        Raises:
            BadSetting: there is no such setting, or it does not take the value.
        """
        made = self
        for text in pairs:
            for key, value in parts_of(text):
                made = made._with(key, value)
        smallest = made.large_segment_size_mb
        if 0 < made.max_split_size_mb < smallest:
            raise BadSetting(
                f"max_split_size_mb={made.max_split_size_mb} is too small; give "
                f"{smallest} or more, the size of a large segment."
            )
        return made

    def _with(self, key: str, value: str) -> Settings:
        if key == "max_split_size_mb":
            return replace(self, max_split_size_mb=_whole(key, value, 20, LARGEST_MB))
        if key == "max_non_split_rounding_mb":
            return replace(self, max_non_split_rounding_mb=_whole(key, value, 20, LARGEST_MB))
        if key == "large_segment_size_mb":
            size = _whole(key, value, 12, 1024)
            if size % 2:
                raise BadSetting(
                    f"large_segment_size_mb={size} is odd; segments are whole pages of 2 MiB."
                )
            return replace(self, large_segment_size_mb=size)
        if key == "garbage_collection_threshold":
            return replace(self, garbage_collection_threshold=_share(key, value))
        if key == "per_process_memory_fraction":
            return replace(self, memory_fraction=_fraction(key, value))
        if key == "expandable_segments":
            return replace(self, expandable_segments=_truth(key, value))
        if key == "roundup_power2_divisions":
            return replace(self, divisions=divisions_of(value))
        if key in WITHOUT_EFFECT:
            raise BadSetting(f"{key} cannot be replayed: it says nothing of where blocks lie.")
        raise BadSetting(
            f"'{key}' is not a setting that can be replayed; these can: max_split_size_mb, "
            "roundup_power2_divisions, garbage_collection_threshold, expandable_segments, "
            "max_non_split_rounding_mb, large_segment_size_mb, per_process_memory_fraction."
        )


DEFAULT = Settings()


def recorded_settings(notes: Mapping[str, str]) -> tuple[Settings, list[str]]:
    """The settings that a snapshot had, and a sentence about each that cannot be replayed.

    Args:
        notes: those of the recording; ``allocator.KEY`` are settings.
    """
    said = {
        key.removeprefix("allocator."): value
        for key, value in notes.items()
        if key.startswith("allocator.")
    }
    made, problems = DEFAULT, []
    line = said.get("PYTORCH_CUDA_ALLOC_CONF", "") or said.get("PYTORCH_ALLOC_CONF", "")
    try:
        for key, value in parts_of(line):
            if key in WITHOUT_EFFECT and not (key == "backend" and value != "native"):
                continue
            made = made.changed([f"{key}:{value}"])
    except BadSetting as error:
        problems.append(f"the settings of the recorded allocator, '{line[:200]}': {error}")
    split = said.get("max_split_size", "")
    if split.isdecimal() and 20 * MIB <= int(split) <= LARGEST_MB * MIB:
        made = replace(made, max_split_size_mb=int(split) // MIB)
    if said.get("expandable_segments") in ("True", "False"):
        made = replace(made, expandable_segments=said["expandable_segments"] == "True")
    collect = said.get("garbage_collection_threshold", "")
    if re.fullmatch(r"0?\.\d{1,17}", collect):
        made = replace(made, garbage_collection_threshold=float(collect))
    listed = re.findall(r"(\d{1,6}):(\d{1,7})(?:,|$)", said.get("roundup_power2_divisions", ""))
    if listed:
        numbers = {int(size).bit_length() - 1: int(number) for size, number in listed}
        found = tuple(numbers.get(place, 0) for place in range(INTERVALS))
        if all(number == 0 or number & (number - 1) == 0 for number in found):
            made = replace(made, divisions=found)
    return made, problems


def parts_of(text: str) -> list[tuple[str, str]]:
    """Keys and values of a line; commas within brackets divide nothing.

    Raises:
        BadSetting: a part is not of that form.
    """
    found = []
    for part in re.split(r",(?![^\[]*\])", text.replace(" ", "")):
        if not part:
            continue
        match = re.fullmatch(r"(\w+)[:=](.+)", part)
        if match is None:
            raise BadSetting(
                f"'{part}' is not a setting; write KEY=VALUE, as max_split_size_mb=128."
            )
        found.append((match[1], match[2]))
    return found


def divisions_of(text: str) -> tuple[int, ...]:
    """Divisions of each interval, from one number or from ``[256:1,512:2,>:8]``.

    A number before a colon is the begin of an interval in MiB; what stands before the first one has
    its divisions, ``>`` are all above the last one.

    Raises:
        BadSetting: a number is not a power of two, or there is another form.
    """
    key = "roundup_power2_divisions"
    if not text.startswith("["):
        return (_power(key, text),) * INTERVALS
    found = [0] * INTERVALS
    last, is_first = 0, True
    for part in text.removeprefix("[").removesuffix("]").split(","):
        size, _, number = part.partition(":")
        divisions = _power(key, number) if number != "0" else 0
        if size == ">":
            found[last:] = [divisions] * (INTERVALS - last)
            continue
        place = min(_power(key, size).bit_length() - 1, INTERVALS - 1)
        if is_first:
            found[:place] = [divisions] * place
        found[place] = divisions
        last, is_first = place, False
    return tuple(found)


def divisions_text(divisions: tuple[int, ...]) -> str:
    """The same as a text."""
    if len(set(divisions)) == 1:
        return str(divisions[0])
    return "[" + ",".join(f"{1 << n}:{number}" for n, number in enumerate(divisions)) + "]"


def _power(key: str, text: str) -> int:
    number = _whole(key, text, 1, 1 << 20)
    if number & (number - 1):
        raise BadSetting(f"{key}: {number} is not a power of two.")
    return number


def _whole(key: str, text: str, least: int, most: int) -> int:
    if not text.isdecimal() or len(text) > 12 or not least <= int(text) <= most:
        raise BadSetting(f"{key}={text}: give a whole number from {least} to {most}.")
    return int(text)


def _share(key: str, text: str) -> float:
    if not re.fullmatch(r"\d*\.\d+", text) or not 0 < float(text) < 1:
        raise BadSetting(f"{key}={text}: give a number between 0 and 1, as 0.8.")
    return float(text)


def _fraction(key: str, text: str) -> float:
    if not re.fullmatch(r"[01]|[01]?\.\d{1,17}", text) or not LEAST_FRACTION <= float(text) <= 1:
        raise BadSetting(f"{key}={text}: give a number from {LEAST_FRACTION} to 1, as 0.9.")
    return float(text)


def _truth(key: str, text: str) -> bool:
    if text not in ("True", "False"):
        raise BadSetting(f"{key}={text}: give True or False.")
    return text == "True"
