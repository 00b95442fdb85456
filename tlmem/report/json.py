"""The report for other programs; docs/reference/json.md describes every field.

Covers: schema 1. Does not cover: how numbers are found; see ``tlmem.analysis``.
"""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

from tlmem.analysis.growth.per_mark import MarkGrowth
from tlmem.analysis.growth.per_scope import ScopeGrowth
from tlmem.analysis.growth.rates import CONFIDENCE, Rate
from tlmem.analysis.leaks.cures import fix_of
from tlmem.analysis.model import (
    Analysis,
    Attribution,
    Change,
    Cohorts,
    Estimate,
    Finding,
    HeldHeap,
    Holder,
    Peak,
    StackFrame,
    Verdict,
)
from tlmem.recording.format.segments import VERSION
from tlmem.report.allocator import allocator_dicts
from tlmem.report.ending import exit_of
from tlmem.report.explain import trace_list
from tlmem.report.peak import explained_for_report, peak_dict
from tlmem.report.summary import Process, Summary
from tlmem.report.text import STEP_BYTES

SCHEMA = 1


def render(summary: Summary) -> str:
    """One JSON object, with a line feed at its end."""
    return document(to_dict(summary))


def document(values: dict[str, Any]) -> str:
    """A JSON object as every command writes it: indented, in ASCII, with a line feed at its end."""
    text = io.StringIO()  # which joins what it has now and then, a list of all pieces is large
    text.writelines(pieces(values))
    return text.getvalue()


def pieces(values: dict[str, Any]) -> Iterator[str]:
    """``document`` piece by piece, for very many items.

    Args:
        values: may have iterators in the place of lists: an item is made when its turn comes.
    """
    yield from _pieces(values, "\n")
    yield "\n"


_LEAF = json.JSONEncoder(ensure_ascii=True, allow_nan=False)


def _pieces(value: Any, begin: str) -> Iterator[str]:
    """What ``json`` writes with ``indent=2``.

    Args:
        begin: a line feed and the indentation of the line that the value is on.
    """
    if isinstance(value, dict):
        items: Iterator[tuple[str, Any]] = ((f"{_LEAF.encode(k)}: ", v) for k, v in value.items())
        ends = "{}"
    elif isinstance(value, (list, tuple, Iterator)):
        items, ends = (("", item) for item in value), "[]"
    else:
        yield _LEAF.encode(value)
        return
    inside = mark = begin + "  "
    yield ends[0]
    for name, item in items:
        yield mark + name
        yield from _pieces(item, inside)
        mark = "," + inside
    yield begin + ends[1] if mark is not inside else ends[1]


def to_dict(summary: Summary) -> dict[str, Any]:
    """The report as plain dicts, lists, texts and numbers."""
    if not summary.is_family:
        return process_dict(summary.processes[0])
    report = process_dict(summary.processes[0])
    report |= {
        "verdict": verdict_dict(summary.verdict),
        **attributions(summary.attribution, summary.growth, summary.peak),
        "findings": [finding_dict(finding) for finding in summary.findings],
        "totals": summary.totals,
        "processes": dict(zip(keys_of(summary), map(process_dict, summary.processes), strict=True)),
    }
    return report


def keys_of(summary: Summary) -> list[str]:
    """The process ids as texts; one that occurs again, as on another host, has ``.2`` behind it."""
    keys: list[str] = []
    for process in summary.processes:
        key, number = str(process.recording.pid), 2
        while key in keys:
            key, number = f"{process.recording.pid}.{number}", number + 1
        keys.append(key)
    return keys


def process_dict(process: Process) -> dict[str, Any]:
    recording = process.recording
    analysis: Analysis = process.analysis
    return {
        "schema": SCHEMA,
        "recording": {
            "path": str(recording.path),
            "version": VERSION,
            "command": recording.info.get("command", ""),
            "events": int(recording.event_count),
            "lost": int(recording.lost_events),
            "seconds": round(float(recording.seconds), 9),
            "complete": bool(recording.complete),
            "exit": exit_of(recording),
            "worker": process.worker or None,
        },
        "identity": asdict(process.identity),
        "verdict": verdict_dict(analysis.verdict),
        **attributions(analysis.attribution, analysis.growth, analysis.peak),
        "findings": [finding_dict(finding) for finding in analysis.findings],
        "totals": process.totals,
        **steps_dict(process.analysis),
        **({"peak": peak_dict(peak)} if (peak := explained_for_report(recording)) else {}),
        **({"heap": [heap_dict(held) for held in analysis.heap]} if analysis.heap else {}),
        **({"allocators": found} if (found := allocator_dicts(recording)) else {}),
    }


def verdict_dict(verdict: Verdict) -> dict[str, Any]:
    return {
        "outcome": verdict.outcome,
        "slope_bytes_per_s": rounded(verdict.slope_bytes_per_s),
        "grown_bytes": verdict.grown_bytes,
        **interval_dict(verdict),
        "resolution_bytes_per_s": rounded(verdict.resolution_bytes_per_s),
        "sentence": verdict.sentence,
        "trace": trace_list(verdict),
    }


def interval_dict(sloped: Verdict | Finding) -> dict[str, float | None]:
    """The ends of a slope's interval and how often it holds; null where there is none."""
    low, high = rounded(sloped.slope_low_bytes_per_s), rounded(sloped.slope_high_bytes_per_s)
    return {
        "slope_low_bytes_per_s": low,
        "slope_high_bytes_per_s": high,
        "confidence": CONFIDENCE if low is not None else None,
    }


def rounded(number: float | None) -> float | None:
    """To three digits behind the point."""
    return None if number is None else round(float(number), 3)


def attributions(parts: Attribution, growth: Change | None, peak: Peak | None) -> dict[str, Any]:
    """Where resident memory was when judged, what it grew by, and where it was at its peak."""
    return {
        "attribution": attribution_dict(parts),
        "other_attribution": other_dict(parts),
        "growth_attribution": None
        if growth is None
        else {
            "begin_seconds": rounded(growth.begin_s),
            "end_seconds": rounded(growth.end_s),
            **attribution_dict(growth.parts),
            "other": other_dict(growth.parts),
        },
        "peak_attribution": None
        if peak is None
        else {
            "seconds": rounded(peak.at_s),
            **attribution_dict(peak.parts),
            "other": other_dict(peak.parts),
        },
    }


def other_dict(parts: Attribution) -> dict[str, int]:
    """What ``other_bytes`` consists of."""
    return {
        "library_bytes": parts.library_bytes,
        "native_bytes": parts.native_bytes,
        "mapped_bytes": parts.mapped_bytes,
        "file_bytes": parts.file_bytes,
        "shared_bytes": parts.shared_bytes,
        "stack_bytes": parts.stack_bytes,
    }


def attribution_dict(parts: Attribution) -> dict[str, int]:
    return {
        "resident_bytes": parts.resident_bytes,
        "tracked_bytes": parts.tracked_bytes,
        "untouched_bytes": parts.untouched_bytes,
        "pool_bytes": parts.pool_bytes,
        "python_bytes": parts.python_bytes,
        "allocator_free_bytes": parts.allocator_free_bytes,
        "tape_bytes": parts.tape_bytes,
        "recorder_bytes": parts.recorder_bytes,
        "other_bytes": parts.other_bytes,
        "residual_bytes": parts.residual_bytes,
    }


def finding_dict(finding: Finding) -> dict[str, Any]:
    return {
        "kind": finding.kind,
        "severity": finding.severity,
        "count": finding.count,
        "bytes": finding.bytes,
        "object": finding.object,
        "site": frame_dict(finding.site),
        "holders": [holder_dict(holder) for holder in finding.holders],
        "stack": [frame_dict(frame) for frame in finding.stack],
        "allocated": [frame_dict(frame) for frame in finding.allocated],
        "freed": [frame_dict(frame) for frame in finding.freed],
        "earlier": [frame_dict(frame) for frame in finding.earlier],
        "slope_bytes_per_s": rounded(finding.slope_bytes_per_s),
        **interval_dict(finding),
        "cohorts": cohorts_dict(finding.cohorts),
        "exit_count": finding.exit_count,
        "exit_bytes": finding.exit_bytes,
        "fix": fix_of(finding) or None,
        "types": [
            {
                "type": types.type,
                "more": types.more,
                "count": types.count,
                "since_seconds": round(types.since_s, 9),
            }
            for types in finding.types
        ],
        "evidence": finding.evidence,
    }


def cohorts_dict(cohorts: Cohorts | None) -> dict[str, Any] | None:
    """When the objects of a line were made, and how many of them lived at each time."""
    if cohorts is None:
        return None
    return {
        "times_seconds": [round(time, 9) for time in cohorts.times_s],
        "rows": [
            {
                "begin_seconds": round(row.begin_s, 9),
                "end_seconds": round(row.end_s, 9),
                "made": row.made,
                "made_bytes": row.made_bytes,
                "alive": list(row.alive),
                "alive_bytes": list(row.alive_bytes),
            }
            for row in cohorts.rows
        ],
        "known_from_seconds": round(cohorts.known_from_s, 9),
        "one_known_of": cohorts.thinned,
    }


def heap_dict(held: HeldHeap) -> dict[str, Any]:
    """Sampled heap of one kind of memory."""
    return {
        "memory": held.memory,
        **estimate_dict(held.whole),
        "confidence": CONFIDENCE,
        "lines": [
            {
                "site": frame_dict(line.site),
                **estimate_dict(line.about),
                "samples": line.samples,
            }
            for line in held.lines
        ],
        "other_lines": held.others,
        "other_bytes": round(held.rest.bytes) if held.rest else 0,
    }


def estimate_dict(about: Estimate) -> dict[str, int]:
    """An estimate of bytes with its interval, and of blocks."""
    return {
        "bytes": round(about.bytes),
        "low_bytes": round(about.low),
        "high_bytes": round(about.high),
        "blocks": round(about.count),
    }


def frame_dict(frame: StackFrame | None) -> dict[str, Any] | None:
    if frame is None:
        return None
    return {"file": frame.file, "line": frame.line, "function": frame.function}


def holder_dict(holder: Holder) -> dict[str, Any]:
    return {
        "kind": holder.kind,
        "name": holder.name,
        "site": frame_dict(holder.site),
        "count": holder.count,
        "chain": holder.chain,
        "seen_seconds": None if holder.seen_ns is None else round(holder.seen_ns / 1e9, 9),
        "held_bytes": holder.held_bytes,
        "used_bytes": holder.used_bytes,
    }


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
            for name in ("tracked_objects", *(name for name, _ in STEP_BYTES))
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
