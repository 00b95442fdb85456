"""A folder of recordings against budgets: every process is judged for itself, and named.

Covers: judging in bounded memory and in several processes; what is kept of a result when its
recording is closed. Does not cover: programs that are named one by one (``check``), where the
processes of a family are judged together.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, fields, replace
from functools import partial
from pathlib import Path
from typing import Any, cast

from tlmem.analysis.model import Finding, StackFrame
from tlmem.errors import TlmemError
from tlmem.fleets.engine import spread
from tlmem.gate import inputs
from tlmem.gate.budgets import CheckOptions
from tlmem.gate.decision import Result, Unreadable, judge
from tlmem.gate.inputs import Subject
from tlmem.gate.suppressions import Suppression
from tlmem.recording.identity import identity
from tlmem.report.summary import Summary, summarise

ASKED_NOTES = ("script", "command")
"""Notes that outputs show."""


def judge_fleet(
    files: Sequence[Path],
    options: CheckOptions,
    known: tuple[Suppression, ...],
    source_roots: Sequence[str] = (),
    baseline: Subject | None = None,
    executor: Executor | None = None,
    jobs: int | None = None,
) -> tuple[list[Result], list[Unreadable]]:
    """The decision about each process, by rank; of each a few kilobytes are kept.

    Args:
        baseline: what each is compared with; it stays in this process, and so does the work then.
    """
    task = partial(
        judge_files, options=options, known=known, source_roots=source_roots, baseline=baseline
    )
    names = [str(file) for file in files]
    only_here = baseline is not None and executor is None
    answers = spread(task, names, executor, 1 if only_here else jobs, _ended)
    found = [answer for _, answer in answers]
    results = [each for each in found if isinstance(each, _Named)]
    results.sort(key=lambda each: each.order)
    unreadable = [each for each in found if isinstance(each, Unreadable)]
    unreadable.sort(key=lambda each: each.path)
    return [each.result for each in results], unreadable


@dataclass(frozen=True)
class _Named:
    """A result, and where in the fleet it stands."""

    order: tuple[object, ...]
    result: Result


def judge_files(
    names: Sequence[str],
    options: CheckOptions,
    known: tuple[Suppression, ...],
    source_roots: Sequence[str],
    baseline: Subject | None,
) -> list[_Named | Unreadable]:
    """The task: decisions about some processes, one recording open at a time."""
    return [_judge_file(name, options, known, source_roots, baseline) for name in names]


def _judge_file(
    name: str,
    options: CheckOptions,
    known: tuple[Suppression, ...],
    source_roots: Sequence[str],
    baseline: Subject | None,
) -> _Named | Unreadable:
    try:
        subject = inputs.Subject(summarise([name], source_roots, alone=True), known)
        result = judge(subject, options, baseline)
        recording = subject.summary.processes[0].recording
        who = identity(recording.info, recording.pid)
        result = remembered(replace(result, title=f"{who}, {name}", process=str(who)))
        return _Named(who.order, result)
    except TlmemError as error:
        return Unreadable(Path(name), str(error), error.exit_code)


def _ended(name: str) -> _Named | Unreadable:
    return Unreadable(
        Path(name), f"{name} ended the process that judged it, maybe for want of memory", 3
    )


# ---- what is kept ----


@dataclass(frozen=True)
class _Recording:
    """What outputs ask of a recording."""

    path: Path
    info: dict[str, str]
    seconds: float


@dataclass(frozen=True)
class _Process:
    recording: _Recording


@dataclass(frozen=True)
class _Text:
    """The text of a line, known once and for all."""

    text: str

    def __call__(self, file: str, line: int, function: str) -> str:
        return self.text


def remembered(result: Result) -> Result:
    """The same decision without the recording and its tables, so that it can travel."""
    subject = result.subject
    recording = subject.summary.processes[0].recording
    info = {key: text for key, text in recording.info.items() if key in ASKED_NOTES}
    light = _Process(_Recording(recording.path, info, float(recording.seconds)))
    _, gone, used = subject._sorted
    kept = Subject(Summary((cast(Any, light),)), subject.suppressions)
    # What a subject computes once is here known already; nothing else is asked of it.
    kept.__dict__["_sorted"] = ([], [detached(finding) for finding in gone], used)
    kept.__dict__["verdict"] = replace(subject.verdict, trace=())
    kept.__dict__["processes"] = ()
    rows = tuple(
        replace(row, findings=tuple(detached(finding) for finding in row.findings))
        for row in result.rows
    )
    return replace(result, subject=kept, rows=rows)


def detached(finding: Finding) -> Finding:
    """The same finding, whose frames keep the text of their lines instead of the recording."""
    changed: dict[str, Any] = {"cohorts": None}
    for field in fields(Finding):
        value = getattr(finding, field.name)
        if isinstance(value, StackFrame):
            changed[field.name] = _frame(value)
        elif isinstance(value, tuple) and value and isinstance(value[0], StackFrame):
            changed[field.name] = tuple(_frame(frame) for frame in value)
        elif field.name == "holders":
            changed[field.name] = tuple(
                replace(holder, site=holder.site and _frame(holder.site)) for holder in value
            )
    return replace(finding, **changed)


def _frame(frame: StackFrame) -> StackFrame:
    return replace(frame, source=_Text(frame.text) if frame.source else None)
