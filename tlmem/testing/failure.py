"""What is said when a test took more than it may: a few lines, with the line to blame."""

from __future__ import annotations

import linecache
import os
import shlex
from pathlib import Path

from tlmem.testing.limits import LEAKS, PEAK, RSS, Limits
from tlmem.testing.measuring import Measured, Share
from tlmem.units import format_bytes, format_count


def failures(took: Measured, limits: Limits) -> list[str]:
    """What is over, some lines for each; empty when nothing is."""
    if took.lost and (limits.bytes or limits.misuse):
        return [
            f"{format_count(took.lost)} events of this test were lost, so its memory cannot be "
            "judged; give --tlmem-dir a folder with more room."
        ]
    found = []
    if took.peak > limits.bytes.get(PEAK, took.peak):
        found.append(_said("had", took.peak, "of arrays and tensors alive at once", PEAK, limits))
        found += _lines(took.peak_lines)
    if took.left > limits.bytes.get(LEAKS, took.left):
        each = " in each run" if took.runs > 1 else ""
        found.append(_said("left", took.left, f"of arrays and tensors behind{each}", LEAKS, limits))
        found += _lines(took.left_lines)
    if took.resident_low > limits.bytes.get(RSS, took.resident_low):
        runs = f" in {took.runs} runs" if took.runs > 1 else ""
        found.append(_said("took", took.resident, f"of resident memory{runs}", RSS, limits))
        found += _lines(took.left_lines)
    if limits.misuse and took.misuses:
        count = sum(finding.count for finding in took.misuses)
        times = "once" if count == 1 else f"{format_count(count)} times"
        found.append(f"this test misused objects {times} (no_misuse)")
        found += [f"  {finding.evidence}" for finding in took.misuses[:3]]
    return found


def text(found: list[str], path: Path) -> str:
    """The message of a failed test; ``path`` is its recording."""
    shown = os.path.relpath(path)
    return "\n".join([*found, f"see: tlmem report {shlex.quote(shown)}"])


def _said(verb: str, amount: float, what: str, name: str, limits: Limits) -> str:
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
        source = linecache.getline(share.site.file, share.site.line).strip()
        if source:
            found.append(f"      {source[:90]}")
    return found
