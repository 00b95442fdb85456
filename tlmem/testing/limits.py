"""What a test may take, and the message for one that took more, with the line to blame.

Covers: limits from markers, and from settings where a test has none; comparing. Does not cover:
options of pytest (``pytest_plugin``), what a test took (``measuring``).
"""

from __future__ import annotations

import os
import shlex
from dataclasses import dataclass
from pathlib import Path

import pytest

from tlmem.gate.amounts import BYTES, parse_amount
from tlmem.testing.measuring import Measured, Share
from tlmem.units import format_bytes, format_count

PEAK, LEAKS, RSS = "limit_tensors", "limit_leaks_tensors", "limit_rss"
MISUSE = "no_misuse"
NOT_RECORDED = "no_tlmem"
AMOUNTS = (PEAK, LEAKS, RSS)


@dataclass(frozen=True)
class Limits:
    """Bytes by name of the limit; ``misuse`` says that there may be none."""

    bytes: dict[str, float]
    misuse: bool = False


def limits_of(item: pytest.Item) -> Limits:
    """The limits of a test; the marker nearest to it counts.

    Raises:
        pytest.UsageError: a marker or setting is not an amount.
    """
    found = {}
    for name in AMOUNTS:
        marker = item.get_closest_marker(name)
        if marker is not None:
            found[name] = _amount(_argument(marker, item), f"{item.nodeid}: {name}")
        elif setting := str(item.config.getini(f"tlmem_{name}")):
            found[name] = _amount(setting, f"the setting tlmem_{name}")
    misuse = item.get_closest_marker(MISUSE)
    if misuse is not None and (misuse.args or misuse.kwargs):
        raise pytest.UsageError(f"{item.nodeid}: {MISUSE} takes no arguments; leave them out.")
    return Limits(found, misuse is not None or bool(item.config.getini(f"tlmem_{MISUSE}")))


def _argument(marker: pytest.Mark, item: pytest.Item) -> str:
    if len(marker.args) != 1 or marker.kwargs or not isinstance(marker.args[0], str):
        given = ", ".join(
            [*map(repr, marker.args), *(f"{k}={v!r}" for k, v in marker.kwargs.items())]
        )
        raise pytest.UsageError(
            f"{item.nodeid}: {marker.name}({given}) is not understood; write one amount, as "
            f"{marker.name}('24 MB')."
        )
    return marker.args[0]


def _amount(text: str, origin: str) -> float:
    try:
        return parse_amount(text, (BYTES,), rates=False).value
    except ValueError as error:
        raise pytest.UsageError(f"{origin} = {text!r} {error}.") from None


@dataclass(frozen=True)
class Loop:
    """How often a test function runs: ``warmup`` times before, ``runs`` times under measurement."""

    warmup: int = 0
    runs: int = 1


def parse_loop(text: str) -> Loop:
    """``5:20`` is five runs, then twenty that are measured; ``20`` is ``0:20``.

    Raises:
        pytest.UsageError: it is not such a text.
    """
    if not text:
        return Loop()
    warmup, colon, runs = text.rpartition(":")
    if not runs.isdecimal() or (colon and not warmup.isdecimal()) or int(runs) == 0:
        raise pytest.UsageError(
            f"--tlmem-loop {text!r} is not understood; write WARMUP:RUNS, as 5:20."
        )
    return Loop(int(warmup or 0), int(runs))


def exceeded(took: Measured, limits: Limits) -> list[str]:
    """A few lines for each limit that was exceeded."""
    if took.lost and (limits.bytes or limits.misuse):
        return [
            f"{format_count(took.lost)} events of this test were lost, so its memory cannot be "
            "judged; give --tlmem-dir a folder with more room."
        ]
    found = []
    if took.peak > limits.bytes.get(PEAK, took.peak):
        found.append(
            _sentence("had", took.peak, "of arrays and tensors alive at once", PEAK, limits)
        )
        found += _lines(took.peak_lines)
    if took.left > limits.bytes.get(LEAKS, took.left):
        each = " in each run" if took.runs > 1 else ""
        found.append(
            _sentence("left", took.left, f"of arrays and tensors behind{each}", LEAKS, limits)
        )
        found += _lines(took.left_lines)
    if took.resident_low > limits.bytes.get(RSS, took.resident_low):
        runs = f" in {took.runs} runs" if took.runs > 1 else ""
        found.append(_sentence("took", took.resident, f"of resident memory{runs}", RSS, limits))
        found += _lines(took.left_lines)
    if limits.misuse and took.misuses:
        count = sum(finding.count for finding in took.misuses)
        times = "once" if count == 1 else f"{format_count(count)} times"
        found.append(f"this test misused objects {times} (no_misuse)")
        found += [f"  {finding.evidence}" for finding in took.misuses[:3]]
    return found


def message(found: list[str], path: Path) -> str:
    """The message of a failed test; ``path`` is its recording."""
    shown = os.path.relpath(path)
    return "\n".join([*found, f"see: tlmem report {shlex.quote(shown)}"])


def _sentence(verb: str, amount: float, what: str, name: str, limits: Limits) -> str:
    limit = format_bytes(limits.bytes[name])
    return f"this test {verb} {format_bytes(amount)} {what}, and {limit} is its limit ({name})"


def _lines(shares: tuple[Share, ...]) -> list[str]:
    """The lines that hold most, with their text."""
    found = []
    for share in shares:
        objects = f"{format_count(share.count)} object{'' if share.count == 1 else 's'}"
        if not share.site.file:
            found.append(f"  no Python stack: {objects}, {format_bytes(share.bytes)}")
            continue
        place = f"{os.path.relpath(share.site.file)}:{share.site.line} in {share.site.function}"
        found.append(f"  {place}: {objects}, {format_bytes(share.bytes)}")
        if share.site.text:
            found.append(f"      {share.site.text[:90]}")
    return found
