"""The report for other programs; docs/reference/json.md describes every field.

Covers: schema 1. Does not cover: how numbers are found; see ``tlmem.analysis``.
"""

from __future__ import annotations

import json
from typing import Any

from tlmem.analysis.model import Analysis, Attribution, Finding, Frame, Holder, Verdict
from tlmem.report.summary import Process, Summary
from tlmem.segments import VERSION

SCHEMA = 1


def render(summary: Summary) -> str:
    """One JSON object, with a line feed at its end."""
    return json.dumps(to_dict(summary), indent=2, ensure_ascii=True, allow_nan=False) + "\n"


def to_dict(summary: Summary) -> dict[str, Any]:
    """The report as plain dicts, lists, texts and numbers."""
    if not summary.is_family:
        return process_dict(summary.processes[0])
    report = process_dict(summary.processes[0])
    report |= {
        "verdict": verdict_dict(summary.verdict),
        "attribution": attribution_dict(summary.attribution),
        "findings": [finding_dict(finding) for finding in summary.findings],
        "totals": summary.totals,
        "processes": {str(p.recording.pid): process_dict(p) for p in summary.processes},
    }
    return report


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
        },
        "verdict": verdict_dict(analysis.verdict),
        "attribution": attribution_dict(analysis.attribution),
        "findings": [finding_dict(finding) for finding in analysis.findings],
        "totals": process.totals,
    }


def verdict_dict(verdict: Verdict) -> dict[str, Any]:
    slope = verdict.slope_bytes_per_s
    return {
        "outcome": verdict.outcome,
        "slope_bytes_per_s": None if slope is None else round(float(slope), 3),
        "grown_bytes": verdict.grown_bytes,
        "sentence": verdict.sentence,
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
        "evidence": finding.evidence,
    }


def frame_dict(frame: Frame | None) -> dict[str, Any] | None:
    if frame is None:
        return None
    return {"file": frame.file, "line": frame.line, "function": frame.function}


def holder_dict(holder: Holder) -> dict[str, Any]:
    return {
        "kind": holder.kind,
        "name": holder.name,
        "site": frame_dict(holder.site),
        "count": holder.count,
    }
