"""A decision as SARIF 2.1.0, for code scanning: a rule for each budget, a result for what is over.

Covers: suppressed leaks (results with ``suppressions``), what could not be judged (notifications).
Source: OASIS, "Static Analysis Results Interchange Format (SARIF) Version 2.1.0".
"""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any
from urllib.parse import quote

from tlmem.analysis.model import Finding, StackFrame
from tlmem.gate import budget_kinds
from tlmem.gate.decision import EXIT_PASS, OVER, UNKNOWN, BudgetResult, Checked, Result
from tlmem.gate.outputs.locations import frame_of, path_of, relative, root
from tlmem.report.json import document
from tlmem.report.text import is_said

SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
FINGERPRINT = "tlmemLine/v1"


def render(checked: Checked) -> str:
    """One JSON object, with a line feed at its end."""
    return document(to_dict(checked))


def to_dict(checked: Checked) -> dict[str, Any]:
    """The log as plain dicts, lists, texts and numbers."""
    results = [
        _result(row, result)
        for result in checked.results
        for row in result.rows
        if row.state == OVER
    ]
    results += [
        _suppressed(finding, result)
        for result in checked.results
        for finding in result.subject.suppressed
        if finding.kind == "growing-site"
    ]
    ids = list(dict.fromkeys(result["ruleId"] for result in results))
    for result in results:
        result["ruleIndex"] = ids.index(result["ruleId"])
    run = {
        "tool": {"driver": _driver(ids)},
        "invocations": [
            {
                "executionSuccessful": checked.exit_code in (EXIT_PASS, 1),
                "exitCode": checked.exit_code,
                "toolExecutionNotifications": _notifications(checked),
            }
        ],
        "originalUriBaseIds": {"SRCROOT": {"uri": Path(root()).resolve().as_uri() + "/"}},
        "columnKind": "unicodeCodePoints",
        "results": results,
    }
    return {"$schema": SCHEMA, "version": "2.1.0", "runs": [run]}


def _driver(ids: list[str]) -> dict[str, Any]:
    import tlmem

    return {
        "name": "tlmem",
        "semanticVersion": tlmem.__version__,
        "rules": [
            {
                "id": name,
                "name": "".join(part.capitalize() for part in name.split("-")),
                "shortDescription": {"text": _meaning(name)},
                "defaultConfiguration": {"level": "error"},
                "properties": {"tags": ["memory"]},
            }
            for name in ids
        ],
    }


def _meaning(name: str) -> str:
    """What a budget is about, as a sentence."""
    kind = budget_kinds.find(name)
    text = kind.meaning if kind else "findings that are errors"
    return text[:1].upper() + text[1:] + "."


def _result(row: BudgetResult, result: Result) -> dict[str, Any]:
    """What is over, at the line to blame."""
    frame = frame_of(row, result)
    message = row.sentence
    first = row.findings[0] if row.findings else None
    if first is not None and not is_said(first, message):
        message += f" {first.evidence}"
    if result.process:
        message = f"{result.process}: {message}"
    found: dict[str, Any] = {
        "ruleId": row.name,
        "level": "error",
        "kind": "fail",
        "message": {"text": message},
        "locations": [_location(frame)]
        if frame
        else [_location(StackFrame(path_of(result), 1, ""))],
        "partialFingerprints": {FINGERPRINT: _fingerprint(row.name, frame)},
    }
    others = [f.site for f in row.findings if f.site is not None and f.site != frame]
    if others:
        found["relatedLocations"] = [_location(site) for site in dict.fromkeys(others)]
    if first is not None and first.stack:
        found["stacks"] = [_stack(first)]
    return found


def _suppressed(finding: Finding, result: Result) -> dict[str, Any]:
    """A leak that a suppression accepts."""
    used = next(u for u in result.used if u.suppression.matches(finding))
    frame = finding.site or StackFrame(path_of(result), 1, "")
    return {
        "ruleId": "leaks",
        "level": "error",
        "kind": "fail",
        "message": {"text": finding.evidence},
        "locations": [_location(frame)],
        "partialFingerprints": {FINGERPRINT: _fingerprint("leaks", frame)},
        "suppressions": [
            {
                "kind": "external",
                "status": "accepted",
                "justification": f"leak:{used.suppression.pattern} ({used.suppression.origin})",
            }
        ],
    }


def _location(frame: StackFrame) -> dict[str, Any]:
    """A line of a file, as seen from the root of the checkout where it is below it."""
    place: dict[str, Any] = {
        "artifactLocation": _artifact(frame.file),
        "region": {"startLine": max(1, frame.line)},
    }
    found: dict[str, Any] = {"physicalLocation": place}
    if frame.function:
        found["logicalLocations"] = [{"fullyQualifiedName": frame.function, "kind": "function"}]
    return found


def _artifact(file: str) -> dict[str, str]:
    path = relative(file)
    if path.startswith("/"):
        return {"uri": f"file://{_quoted(path)}"}
    return {"uri": _quoted(path), "uriBaseId": "SRCROOT"}


def _quoted(path: str) -> str:
    """A path as part of a URI; of one whose bytes are not UTF-8, just these bytes."""
    try:
        return quote(path, errors="surrogateescape")
    except UnicodeEncodeError:
        return quote(path, errors="backslashreplace")


def _stack(finding: Finding) -> dict[str, Any]:
    frames = [{"location": _location(frame)} for frame in finding.stack if frame.file]
    return {"message": {"text": "Allocated at, innermost frame first."}, "frames": frames}


def _fingerprint(name: str, frame: StackFrame | None) -> str:
    """The same for the same function of the same file, wherever it stands in it."""
    known = [name, relative(frame.file) if frame else "", frame.function if frame else ""]
    return hashlib.sha256("\0".join(known).encode("utf-8", "backslashreplace")).hexdigest()[:32]


def _notifications(checked: Checked) -> list[dict[str, Any]]:
    """What could not be judged."""
    sentences = [file.sentence for file in checked.unreadable]
    for result in checked.results:
        sentences += [doubt.sentence for doubt in result.refused]
        sentences += [row.sentence for row in result.of_state(UNKNOWN)]
    return [{"level": "error", "message": {"text": text}} for text in dict.fromkeys(sentences)]
