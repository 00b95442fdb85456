"""Whether what is said of a recording is right: by its findings, and by the gate.

Covers: judges, functions from a job and what was read of its recording to a judgement. Each run is
recorded and read once, and all judges are asked about the same reading.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from tlmem.scenarios.harness.catalog import Result

from tlmem.analysis.compare import GROWING
from tlmem.gate.budgets import INCOMPLETE, CheckOptions, from_words
from tlmem.gate.decision import EXIT_OVER, EXIT_PASS, EXIT_UNKNOWN, OVER, judge, reasons
from tlmem.gate.decision import Result as Decision
from tlmem.gate.inputs import Subject, read

from .plan import Job

FINDINGS, GATE = "findings", "gate"
PASS, FAIL, CANNOT_JUDGE, FAILED = "pass", "fail", "cannot-judge", "failed"
"""Outcomes: three of the gate; the last is that of a program that could not be recorded or read."""
GRAVEST = ((EXIT_OVER, FAIL), (EXIT_UNKNOWN, CANNOT_JUDGE), (EXIT_PASS, PASS))
"""Of two decisions the first of these counts."""


@dataclass(frozen=True)
class Judgement:
    """What was said of one recording: in one word, in all, and which errors and warnings."""

    right: bool
    outcome: str
    said: str
    wolves: tuple[str, ...] = ()


Judge = Callable[[Job, Subject], Judgement]


def by_findings(job: Job, subject: Subject) -> Judgement:
    """Verdict and findings beside the truth.

    Of a healthy program nothing may be said, of a scenario with a fault exactly its truth; a seeded
    leak is found when the verdict is right, its line is blamed, and no other is.
    """
    result = Result(job.scenario, subject.summary.processes[0].analysis)
    if job.group in ("seeded", "small"):
        right = result.located
    else:
        right = result.right and (job.scenario.faulty or not result.wolves)
    wolves = tuple(wolf.kind + (f" at {wolf.site}" if wolf.site else "") for wolf in result.wolves)
    return Judgement(right, result.analysis.verdict.outcome, result.found, wolves)


BUDGETS = (
    "verdict=stable",
    *(f"{kind}-growth=0 B/s" for kind in ("tracked", "native", "python", "resident")),
)
"""No growth at all is allowed, so that noise is all that could fail a healthy program."""
TOUCHING = ("preallocated-result",)
"""Programs that touch memory which they have had from the start: what is resident does grow."""
UNSEALED = ("early-exit", "early-exit-fixed")
"""Programs that end by ``os._exit``: a job of theirs says ``--allow incomplete``."""


def by_gate(job: Job, subject: Subject) -> Judgement:
    """What ``tlmem check`` says, without budgets and with budgets of no growth and no misuse.

    A healthy program must pass both. A seeded leak must fail without budgets, at its line. Of
    scenarios with a fault those must not pass whose truth is growth, without budgets, or misuse,
    with them; memory that is only retained passes without.
    """
    touching = job.scenario.name in TOUCHING
    budgets = [word for word in BUDGETS if not (touching and word.startswith("resident"))]
    allow = frozenset([INCOMPLETE] if job.scenario.name in UNSEALED else [])
    plain = judge(subject, CheckOptions(allow=allow))
    strict = judge(subject, from_words(budgets, allow))
    both = (plain, strict)
    if job.group in ("seeded", "small"):
        right = plain.exit_code == EXIT_OVER and is_located(job, plain)
    elif job.scenario.outcome in GROWING:
        right = plain.exit_code != EXIT_PASS
    elif job.scenario.misuse:
        right = strict.exit_code != EXIT_PASS
    elif job.scenario.faulty:
        right = plain.exit_code == EXIT_PASS
    else:
        right = all(decision.exit_code == EXIT_PASS for decision in both)
    codes = {decision.exit_code for decision in both}
    outcome = next(word for code, word in GRAVEST if code in codes)
    said = "; ".join(dict.fromkeys(word for decision in both for word in reasons(decision)))
    over = (row.name for decision in both for row in decision.of_state(OVER))
    return Judgement(right, outcome, said or outcome, tuple(dict.fromkeys(over)))


def is_located(job: Job, decision: Decision) -> bool:
    """Whether what is over names the line that leaks, where there is one."""
    rows = decision.of_state(OVER)
    lines = {finding.site.line for row in rows for finding in row.findings if finding.site}
    return not job.scenario.line or job.scenario.line in lines


JUDGES: Mapping[str, Judge] = {FINDINGS: by_findings, GATE: by_gate}


def judgements(job: Job, file: Path, judges: Iterable[str]) -> dict[str, Judgement]:
    """What each of these judges says of a recording, which is read once.

    Raises:
        TlmemError: it cannot be read.
    """
    subject = read([file])
    return {name: JUDGES[name](job, subject) for name in judges}
