"""What an analysis hands on: places in a program, findings, the verdict, the attribution.

Covers: plain values without behaviour, shared by every analysis and every report.
Does not cover: how they are found; each question has its own module.
"""

from __future__ import annotations

from dataclasses import dataclass, field

OUTCOMES = ("stable", "leak", "native", "python", "retained", "driver", "cannot-judge")
"""Every outcome of a verdict."""
SEVERITIES = ("error", "warning", "info")
"""Most important first."""


@dataclass(frozen=True)
class Frame:
    """One place in a program; ``line`` is 0 where it is not known."""

    file: str
    line: int
    function: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line}"


@dataclass(frozen=True)
class Holder:
    """Somebody who keeps objects alive: ``count`` of them, most of them taken at ``site``."""

    kind: str
    name: str
    site: Frame | None = None
    count: int = 1


@dataclass(frozen=True)
class Finding:
    """One thing worth telling, with the numbers that show it.

    ``count`` objects of together ``bytes``; ``object`` is the number of one of them as an example;
    ``stack`` is innermost first; ``evidence`` is one sentence. Of misuse, ``stack`` is where it was
    committed, ``allocated`` and ``freed`` are where that object was, and ``earlier`` is the other
    place of two that collide: where a value had been saved, where the pass before began.
    """

    kind: str
    severity: str
    count: int
    bytes: int
    evidence: str
    object: int | None = None
    site: Frame | None = None
    stack: tuple[Frame, ...] = ()
    holders: tuple[Holder, ...] = ()
    slope_bytes_per_s: float | None = None
    allocated: tuple[Frame, ...] = ()
    freed: tuple[Frame, ...] = ()
    earlier: tuple[Frame, ...] = ()


@dataclass(frozen=True)
class Verdict:
    """The answer to "does it grow?": one of ``OUTCOMES`` and the sentence that says why.

    ``slope_bytes_per_s`` and ``grown_bytes`` are 0 when nothing grows and None when that could not
    be judged.
    """

    outcome: str
    sentence: str
    slope_bytes_per_s: float | None = None
    grown_bytes: int | None = None


@dataclass(frozen=True)
class Attribution:
    """Where resident memory is, in bytes; parts and residual add up to ``resident_bytes``."""

    resident_bytes: int = 0
    tracked_bytes: int = 0
    untouched_bytes: int = 0
    pool_bytes: int = 0
    python_bytes: int = 0
    allocator_free_bytes: int = 0
    tape_bytes: int = 0
    recorder_bytes: int = 0
    other_bytes: int = 0
    residual_bytes: int = 0
    known: bool = field(default=False, compare=False)


@dataclass(frozen=True)
class Analysis:
    """Everything found in one recording, findings most important first."""

    verdict: Verdict
    attribution: Attribution
    findings: tuple[Finding, ...]
