"""What still rose when a program ended is no pass; pages of mapped files that rise are no leak."""

import pytest
from support.traces import Program

from tlmem.analysis import Attribution, analyse
from tlmem.analysis.memory.mappings import mapped_file_findings
from tlmem.analysis.model import Change, Verdict

STEPS = 110
LATE = 94


def verdict_of(begin: int, end: int = STEPS, python: float = 0, native: float = 0) -> Verdict:
    """A program of 2 s in which memory outside arrays rises between two steps."""
    program = Program()
    for step in range(STEPS):
        program.temporary(20, 500_000)
        if begin <= step < end:
            program.python += python
            program.native += native
        program.wait(2_000_000)
    return analyse(program.recording()).verdict


@pytest.mark.parametrize(
    ("kind", "name"), [("python", "Python's heap"), ("native", "native memory")]
)
def test_what_rises_too_late_to_be_judged_is_no_pass(kind: str, name: str) -> None:
    verdict = verdict_of(LATE, **{kind: 2_000_000})

    assert verdict.outcome == "cannot-judge"
    assert f"{name} rose by 32.0 MB in the last" in verdict.sentence
    assert verdict.sentence.endswith("Run it for longer.")


def test_what_rose_and_stopped_is_settled() -> None:
    assert verdict_of(60, 75, python=2_000_000).outcome == "stable"


def test_little_that_rises_late_is_no_doubt() -> None:
    assert verdict_of(LATE, python=400_000).outcome == "stable"


def test_what_rises_all_the_time_is_judged_and_not_in_doubt() -> None:
    assert verdict_of(0, python=2_000_000).outcome == "python"


def grown(**parts: int) -> Change:
    return Change(Attribution(**parts, known=True), 1.0, 3.0)


def test_pages_of_mapped_files_that_grow_are_told_as_no_leak() -> None:
    level = Attribution(resident_bytes=100_000_000, known=True)
    (found,) = mapped_file_findings(level, grown(file_bytes=40_000_000, shared_bytes=10))

    assert (found.kind, found.severity, found.bytes) == ("mapped-files", "info", 40_000_000)
    assert "grew by 40.0 MB in 2.00 s: they are copies of files on disk" in found.evidence
    assert found.slope_bytes_per_s == 20_000_000


def test_few_pages_of_files_are_not_worth_a_sentence() -> None:
    level = Attribution(resident_bytes=100_000_000, known=True)

    assert mapped_file_findings(level, grown(file_bytes=14_000_000)) == []
    assert mapped_file_findings(level, None) == []
