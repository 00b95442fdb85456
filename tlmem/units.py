"""Numbers as people read and write them: bytes, durations and counts in SI units.

Covers: formatting for reports and parsing of sizes and times given by users.
Does not cover: machine-readable output; JSON has plain numbers.
"""

from __future__ import annotations

import math
import re

_DECIMAL = ("B", "kB", "MB", "GB", "TB", "PB", "EB")
_FACTORS = {
    "": 1,
    "b": 1,
    **{f"{unit}{end}": 1000**i for i, unit in enumerate("kmgtp", 1) for end in ("", "b")},
    **{f"{unit}i{end}": 1024**i for i, unit in enumerate("kmgtp", 1) for end in ("", "b")},
}


def format_bytes(value: float) -> str:
    """Bytes with three significant digits and an SI unit: ``4.10 MB``, ``-12.0 kB``, ``999 B``."""
    sign, size = ("-" if value < 0 else ""), abs(float(value))
    step = 0
    while size >= 999.5 and step < len(_DECIMAL) - 1:
        size /= 1000
        step += 1
    if step == 0:
        return f"{sign}{size:.0f} B"
    digits = 2 if size < 9.995 else 1 if size < 99.95 else 0
    return f"{sign}{size:.{digits}f} {_DECIMAL[step]}"


def format_rate(bytes_per_second: float) -> str:
    """Bytes per second: ``2.10 MB/s``."""
    return f"{format_bytes(bytes_per_second)}/s"


def format_count(value: float) -> str:
    """A count with a comma between thousands: ``1,998``."""
    return f"{round(value):,}"


def counted(count: int, noun: str) -> str:
    """``1 segment``, ``2 segments``, ``3 trace entries``."""
    many = f"{noun[:-1]}ies" if noun.endswith("y") else f"{noun}s"
    return f"{format_count(count)} {noun if count == 1 else many}"


def format_figure(value: float) -> str:
    """A number with three significant digits, from 1,000 on as a count: ``0.125``, ``1,200``."""
    return format_count(value) if abs(value) >= 999.5 else f"{value:.3g}"


def format_seconds(seconds: float) -> str:
    """A duration: ``12.3 ms``, ``1.90 s``, ``3 min 20 s``, ``2 h 05 min``."""
    if math.isnan(seconds):
        return "unknown"
    if seconds < 0:
        return "-" + format_seconds(-seconds)
    if seconds < 0.9995:
        return f"{seconds * 1e3:.3g} ms" if seconds * 1e3 < 999.5 else "1.00 s"
    if seconds < 99.95:
        return f"{seconds:.2f} s" if seconds < 9.995 else f"{seconds:.1f} s"
    whole = round(seconds)
    if whole < 3600:
        return f"{whole // 60} min {whole % 60:02d} s"
    return f"{whole // 3600} h {whole % 3600 // 60:02d} min"


_SECONDS = {"": 1.0, "s": 1.0, "sec": 1.0, "ms": 1e-3, "us": 1e-6, "µs": 1e-6, "min": 60.0}


def parse_seconds(text: str) -> float | None:
    """Seconds of a time such as ``12``, ``1.5 s``, ``20ms``, ``2 min`` or ``1:30``.

    None for what is not a time.
    """
    clock = re.fullmatch(r"\s*(?:([0-9]{1,6}):)?([0-9]{1,6}):([0-9]{1,2}(?:\.[0-9]+)?)\s*", text)
    if clock is not None:
        return 3600.0 * int(clock[1] or 0) + 60.0 * int(clock[2]) + float(clock[3])
    match = re.fullmatch(r"\s*([0-9]+(?:\.[0-9]*)?|\.[0-9]+)\s*([a-zµ]*)\s*", text)
    if match is None or match[2] not in _SECONDS:
        return None
    return float(match[1]) * _SECONDS[match[2]]


def parse_bytes(text: str) -> int:
    """Bytes of a size such as ``200MB``, ``1.5 GB``, ``64KiB`` or ``4096``, in any letter case.

    Raises:
        ValueError: not a number with a known unit, or negative.
    """
    match = re.fullmatch(r"\s*([0-9]+(?:\.[0-9]+)?)\s*([a-zA-Z]*)\s*", text)
    factor = _FACTORS.get(match.group(2).lower()) if match else None
    if match is None or factor is None:
        raise ValueError(f"{text!r} is not a size; write for example 200MB, 1.5GB or 64KiB")
    return round(float(match.group(1)) * factor)
