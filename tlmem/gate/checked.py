"""The outcome of one call of ``tlmem check``: a decision about each program, and one exit code."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from tlmem.gate.decision import EXIT_OVER, EXIT_PASS, EXIT_UNKNOWN, OVER, UNKNOWN, UNSURE, Result

WORDS = {
    EXIT_PASS: "pass",
    EXIT_OVER: "fail",
    2: "error",
    EXIT_UNKNOWN: "cannot-judge",
}
"""What an exit code means, in one word."""


@dataclass(frozen=True)
class Unreadable:
    """A file that could not be read at all, and why."""

    path: Path
    sentence: str
    exit_code: int


@dataclass(frozen=True)
class Checked:
    """Decisions in the order of the files."""

    results: tuple[Result, ...]
    unreadable: tuple[Unreadable, ...] = ()

    @property
    def exit_code(self) -> int:
        """2 when a file is missing or no recording, else 1 when anything is over, else 3 when
        anything cannot be judged, else 0."""
        codes = {result.exit_code for result in self.results}
        codes |= {file.exit_code for file in self.unreadable}
        return next((code for code in (2, EXIT_OVER, EXIT_UNKNOWN) if code in codes), EXIT_PASS)

    @property
    def word(self) -> str:
        """``pass``, ``fail``, ``error`` or ``cannot-judge``."""
        return WORDS[self.exit_code]


def reasons(result: Result) -> list[str]:
    """Why a program did not pass, a sentence each; empty when it did."""
    if result.exit_code == EXIT_PASS:
        return []
    found = [doubt.sentence for doubt in result.refused]
    if result.exit_code == EXIT_OVER:
        return [row.sentence for row in result.of_state(OVER)]
    states = (UNKNOWN, UNSURE) if result.strict else (UNKNOWN,)
    unknown = result.of_state(*states)
    # That the verdict is not known follows from what was refused.
    found += [row.sentence for row in unknown if not (found and row.name == "verdict")]
    return list(dict.fromkeys(found))


def told(checked: Checked) -> list[str]:
    """What goes to stderr when the exit code is not 0: one sentence for each reason."""
    found = [file.sentence for file in checked.unreadable]
    for result in checked.results:
        found += reasons(result)
    return list(dict.fromkeys(found))
