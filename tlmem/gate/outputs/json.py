"""A decision for other programs; docs/how-to/gate.md describes every field. Covers: schema 1."""

from __future__ import annotations

import math
from typing import Any

from tlmem.gate.decision import BudgetResult, Checked, Doubt, Result
from tlmem.gate.outputs.locations import path_of
from tlmem.report.json import document, finding_dict, verdict_dict

SCHEMA = 1


def render(checked: Checked) -> str:
    """One JSON object, with a line feed at its end."""
    return document(to_dict(checked))


def to_dict(checked: Checked) -> dict[str, Any]:
    """The decision as plain dicts, lists, texts and numbers."""
    return {
        "schema": SCHEMA,
        "exit_code": checked.exit_code,
        "result": checked.word,
        "programs": [program_dict(result) for result in checked.results],
        "unreadable": [
            {"path": str(file.path), "exit_code": file.exit_code, "sentence": file.sentence}
            for file in checked.unreadable
        ],
    }


def program_dict(result: Result) -> dict[str, Any]:
    recording = result.subject.summary.processes[0].recording
    return {
        "path": path_of(result),
        **({"process": result.process} if result.process else {}),
        "command": recording.info.get("command", ""),
        "seconds": round(float(recording.seconds), 9),
        "exit_code": result.exit_code,
        "verdict": verdict_dict(result.verdict),
        "budgets": [row_dict(row) for row in result.rows],
        "refused": [doubt_dict(doubt) for doubt in result.refused],
        "allowed": [doubt_dict(doubt) for doubt in result.allowed],
        "suppressions": [
            {
                "pattern": used.suppression.pattern,
                "origin": used.suppression.origin,
                "used": bool(used.findings),
                "count": used.objects,
                "bytes": used.bytes,
            }
            for used in result.used
        ],
        "suppressed": [finding_dict(finding) for finding in result.subject.suppressed],
        "baseline": None if result.baseline is None else str(result.baseline),
        "notes": list(result.notes),
    }


def row_dict(row: BudgetResult) -> dict[str, Any]:
    return {
        "name": row.name,
        "state": row.state,
        "limit": row.limit,
        "measured": row.measured,
        "value": _number(row.value),
        "low": _number(row.low),
        "high": _number(row.high),
        "sentence": row.sentence,
        "findings": [finding_dict(finding) for finding in row.findings],
    }


def doubt_dict(doubt: Doubt) -> dict[str, str]:
    return {"kind": doubt.kind, "sentence": doubt.sentence}


def _number(value: float | None) -> float | None:
    return round(float(value), 6) if value is not None and math.isfinite(value) else None
