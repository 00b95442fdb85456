"""What grew, stopped and was kept is told with its size and period; loads and caches are not."""

import pytest
from support.traces import Program, Ring

from tlmem.analysis import Analysis, Finding, analyse

STEP = 1_000_000
SIZE = 200_000


def past(analysis: Analysis) -> list[Finding]:
    return [finding for finding in analysis.findings if finding.kind == "grew-and-kept"]


def phases(
    grown: int = 150,
    after: int = 250,
    before: int = 20,
    size: int = SIZE,
    work: int = 6,
    same: bool = False,
    leak: int = 0,
) -> Program:
    """Steps of a first phase, of one that keeps an array of line 12 each, and of a last one.

    Each step makes ``work`` temporaries, in the last phase at another line unless ``same``.
    """
    program = Program()
    for step in range(before + grown + after):
        growing = before <= step < before + grown
        if growing:
            program.alloc(12, size)
        if leak:
            program.alloc(50, leak)
        for _ in range(work):
            program.temporary(30 if growing or same else 40, SIZE)
        program.wait(STEP)
    return program


def test_what_grew_and_was_kept_is_a_warning_with_size_and_period() -> None:
    analysis = analyse(phases().recording())
    found = past(analysis)

    assert [(f.severity, f.count, f.bytes) for f in found] == [("warning", 150, 150 * SIZE)]
    assert found[0].site is not None and found[0].site.line == 12
    assert found[0].evidence.startswith(
        "30.0 MB in 150 arrays allocated at program.py:12 between 2"
    )
    assert found[0].evidence.endswith(" were kept until the end; nothing was added since.")
    assert analysis.verdict.outcome == "stable"
    assert found[0].evidence in analysis.verdict.sentence


def test_growth_is_told_that_is_larger_than_a_leak() -> None:
    analysis = analyse(phases(leak=1_000).recording())
    kinds = [finding.kind for finding in analysis.findings]

    assert analysis.verdict.sentence.startswith("Leak at program.py:50: 420 of 420 arrays")
    assert "Larger, though it grows no more: 30.0 MB in 150 arrays" in analysis.verdict.sentence
    assert kinds[:2] == ["growing-site", "grew-and-kept"]


def test_growth_that_is_smaller_than_a_leak_is_not_in_its_sentence() -> None:
    analysis = analyse(phases(leak=100_000).recording())

    assert analysis.verdict.outcome == "leak" and len(past(analysis)) == 1
    assert "grows no more" not in analysis.verdict.sentence


def test_a_small_one_is_only_an_info() -> None:
    assert [f.severity for f in past(analyse(phases(size=30_000).recording()))] == ["info"]
    assert past(analyse(phases(size=3_000).recording())) == []


def test_a_cache_that_is_full_is_only_an_info() -> None:
    analysis = analyse(phases(same=True).recording())

    assert [f.severity for f in past(analysis)] == ["info"]
    assert past(analysis)[0].evidence.endswith("a cache that is full.")
    assert past(analysis)[0].evidence not in analysis.verdict.sentence


@pytest.mark.parametrize("share", [0.1, 0.2])
@pytest.mark.parametrize("work", [0, 1, 3, 8])
def test_a_load_at_the_begin_is_not_told(share: float, work: int) -> None:
    grown = int(400 * share)
    program = phases(grown=grown, after=400 - grown, before=0, work=work)

    assert past(analyse(program.recording())) == []


def test_a_long_load_at_the_begin_is_no_warning() -> None:
    program = phases(grown=160, after=240, before=0, work=2)

    assert [f.severity for f in past(analyse(program.recording()))] == ["info"]


def test_training_from_the_begin_is_a_warning() -> None:
    program = phases(grown=160, after=240, before=0, work=8)

    assert [f.severity for f in past(analyse(program.recording()))] == ["warning"]


def test_a_table_that_is_made_to_the_end_is_not_told() -> None:
    assert past(analyse(phases(grown=380, after=0).recording())) == []
    assert past(analyse(phases(grown=360, after=20).recording())) == []


def test_a_ring_that_is_no_longer_filled_is_not_told() -> None:
    program = Program()
    ring = Ring(program, 12, 100, SIZE)
    for step in range(500):
        if step < 250:
            ring.add()
        program.temporary(30, SIZE)
        program.temporary(30 if step < 250 else 40, SIZE)
        program.wait(STEP)

    assert past(analyse(program.recording())) == []


def test_what_is_given_back_is_not_told() -> None:
    program, held = Program(), []
    for step in range(400):
        if 20 <= step < 170:
            held.append(program.alloc(12, SIZE))
        program.temporary(30 if step < 170 else 40, SIZE)
        program.wait(STEP)
        if step == 250:
            for number in held:
                program.free(number)

    assert past(analyse(program.recording())) == []


def test_two_bursts_are_no_growth() -> None:
    program = Program()
    for step in range(400):
        if step in (20, 170):
            for _ in range(60):
                program.alloc(12, SIZE)
        program.temporary(30 if step < 171 else 40, SIZE)
        program.wait(STEP)

    assert past(analyse(program.recording())) == []


def test_a_line_that_still_grows_is_told_once() -> None:
    analysis = analyse(phases(grown=400, after=0, before=0).recording())

    assert analysis.verdict.outcome == "leak" and past(analysis) == []


def test_findings_are_sorted_by_severity_and_by_bytes() -> None:
    found = analyse(phases(leak=1_000).recording()).findings
    of_info = [f.bytes for f in found if f.severity == "info" and not f.passing]

    assert of_info == sorted(of_info, reverse=True)
