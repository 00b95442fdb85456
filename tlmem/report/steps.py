"""Growth per mark and per scope in words, and for other programs.

Covers: the block of the text report and the lists of the JSON report. Does not cover: how the
numbers are found; see ``analysis.per_mark`` and ``analysis.per_scope``.
"""

from __future__ import annotations

from typing import Any

from tlmem.analysis.model import CONFIDENCE, Analysis, MarkGrowth, Rate, ScopeGrowth, interval
from tlmem.units import format_bytes, format_count

BYTES = (
    ("tracked_bytes", "bytes of arrays and objects"),
    ("resident_bytes", "resident memory"),
    ("native_bytes", "native memory"),
    ("python_bytes", "Python's own heap"),
)


def steps_block(analysis: Analysis) -> str:
    """Growth of each label of marks and of scopes; empty without any."""
    rows = []
    for growth in analysis.per_mark:
        rows.append(
            f"  per {growth.label}, {format_count(growth.count)} of {format_count(growth.marks)} "
            "marks in steady state"
        )
        for name, words in BYTES:
            rate = getattr(growth, name)
            if rate is not None:
                rows.append(f"    {step_text(rate, format_bytes):>9}  {words}{sure(rate)}")
        if growth.tracked_objects is not None:
            text = step_text(growth.tracked_objects, number)
            doubt = interval(growth.tracked_objects, number)
            rows.append(f"    {text:>9}  arrays and objects alive ({doubt})")
    rows.extend(scope_row(growth) for growth in analysis.per_scope)
    return "\n".join(["Growth per step", *rows]) if rows else ""


def step_text(rate: Rate, form: Any) -> str:
    """``+4.10 kB``; ``none`` when the interval has 0 in it."""
    if rate.low <= 0 <= rate.high:
        return "none"
    return ("+" if rate.value > 0 else "") + form(rate.value)


def sure(rate: Rate) -> str:
    """The interval, in brackets."""
    return f" ({interval(rate, format_bytes)})"


def number(value: float) -> str:
    """A number of objects for each step: ``2``, ``0.25``."""
    rounded = round(value)
    close = abs(value - rounded) < 0.005
    return format_count(rounded) if close or abs(value) >= 100 else f"{value:.2f}"


def scope_row(growth: ScopeGrowth) -> str:
    """What outlives the scopes of a label, in one line."""
    return (
        f"  per scope '{growth.label}', {format_count(growth.scopes)} left: "
        f"{number(growth.made / growth.scopes)} made, "
        f"{number(growth.outlived / growth.scopes)} outlive it, "
        f"{number(growth.kept_per_scope)} kept, {format_bytes(growth.bytes_per_scope)}"
    )


def steps_dict(analysis: Analysis) -> dict[str, Any]:
    """``per_mark`` and ``per_scope`` of the JSON report."""
    return {
        "per_mark": [mark_dict(growth) for growth in analysis.per_mark],
        "per_scope": [scope_dict(growth) for growth in analysis.per_scope],
    }


def mark_dict(growth: MarkGrowth) -> dict[str, Any]:
    return {
        "label": growth.label,
        "marks": growth.marks,
        "judged": growth.count,
        "first_index": growth.first_index,
        "last_index": growth.last_index,
        "confidence": CONFIDENCE,
        **{
            name: rate_dict(getattr(growth, name))
            for name in ("tracked_objects", *(name for name, _ in BYTES))
        },
    }


def rate_dict(rate: Rate | None) -> dict[str, float] | None:
    """A slope and the ends of its interval."""
    if rate is None:
        return None
    return {name: round(float(getattr(rate, name)), 3) for name in ("value", "low", "high")}


def scope_dict(growth: ScopeGrowth) -> dict[str, Any]:
    return {
        "label": growth.label,
        "scopes": growth.scopes,
        "made": growth.made,
        "outlived": growth.outlived,
        "kept": growth.kept,
        "kept_bytes": growth.kept_bytes,
    }
