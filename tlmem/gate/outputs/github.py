"""A decision as annotations of GitHub Actions, which show at the line in the pull request.

Covers: workflow commands, and the step summary when ``GITHUB_STEP_SUMMARY`` names its file
(``check`` writes it, from ``markdown``). Source: GitHub's documentation, "Workflow commands".
"""

from __future__ import annotations

from tlmem.gate.decision import OVER, UNKNOWN, UNSURE, BudgetResult, Checked, Result
from tlmem.gate.outputs.locations import blamed, frame_of, name_of, relative
from tlmem.gate.outputs.text import conclusion
from tlmem.report.text import is_said, named


def render(checked: Checked) -> str:
    """A line for each annotation, and one for each program that says how it ended."""
    lines = []
    for result in checked.results:
        for row in result.rows:
            lines += _annotation(row, result)
        lines += [
            _command("error", {"title": "tlmem: cannot judge"}, doubt.sentence)
            for doubt in result.refused
        ]
        lines += [
            _command("warning", {"title": "tlmem: unused suppression"}, used.suppression.origin)
            for used in result.used
            if not used.findings
        ]
        who = f"{name_of(result)}, {result.process}" if result.process else name_of(result)
        lines.append(_line(f"{who}: {conclusion(result)}"))
    lines += [
        _command("error", {"title": "tlmem check"}, file.sentence) for file in checked.unreadable
    ]
    return "\n".join(lines) + "\n"


def _annotation(row: BudgetResult, result: Result) -> list[str]:
    """What a row says in the pull request; nothing when it passed."""
    if row.state == OVER or row.state == UNKNOWN:
        level = "error"
    elif row.state == UNSURE:
        level = "error" if result.strict else "notice"
    else:
        return []
    properties = {}
    frame = frame_of(row, result)
    if frame is not None:
        properties = {"file": relative(frame.file), "line": str(max(1, frame.line))}
    properties["title"] = f"tlmem: {row.name} {'is over budget' if row.state == OVER else 'unsure'}"
    finding = blamed(row)
    message = [f"{result.process}: {row.sentence}" if result.process else row.sentence]
    if finding is not None and not is_said(finding, row.sentence):
        message.append(finding.evidence)
    if finding is not None:
        message += [f"at {named(frame)}" for frame in finding.stack[:3]]
    return [_command(level, properties, "\n".join(message))]


def _command(name: str, properties: dict[str, str], message: str) -> str:
    """A workflow command with everything in it escaped."""
    given = ",".join(f"{key}={_property(value)}" for key, value in properties.items())
    return f"::{name} {given}::{_data(message)}"


def _line(text: str) -> str:
    """A line of the log that is no command."""
    return text.replace("::", ": :") if text.lstrip().startswith("::") else text


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")
