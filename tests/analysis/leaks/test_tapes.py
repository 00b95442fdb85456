"""Records that pile up on tapes without holding a tensor: a value made of those of all steps."""

from support.traces import Program

from tlmem.analysis import analyse

STEPS = 400


def chained(passes: int) -> Program:
    """A program whose tapes get a record more in each step, with so many passes on the way."""
    program = Program()
    for step in range(STEPS):
        program.temporary(10)
        if step % (STEPS // passes) == 0:
            program.passed(20)
        program.tapes += 10_000
        program.wait(1_000_000)
    return program


def test_records_that_pile_up_through_many_passes_are_a_leak() -> None:
    analysis = analyse(chained(STEPS).recording())
    (found,) = [each for each in analysis.findings if each.kind == "tape-growth"]

    assert analysis.verdict.outcome == "leak"
    assert analysis.verdict.sentence.startswith("Leak: Records on tapes grew by 2.")
    assert "Add loss.item()" in analysis.verdict.sentence
    assert (found.severity, found.bytes) == ("warning", analysis.verdict.grown_bytes)


def test_one_long_graph_is_no_leak() -> None:
    analysis = analyse(chained(1).recording())

    assert analysis.verdict.outcome == "stable", analysis.verdict.sentence
    assert [each for each in analysis.findings if each.severity != "info"] == []


def test_records_that_go_with_each_pass_are_no_leak() -> None:
    program = Program()
    for step in range(STEPS):
        program.temporary(10)
        program.tapes = 100_000 * (step % 23)
        if program.tapes == 0:
            program.passed(20)
        program.wait(1_000_000)

    assert analyse(program.recording()).verdict.outcome == "stable"


def test_records_are_a_part_of_resident_memory_of_their_own() -> None:
    program = chained(STEPS)
    parts = analyse(program.recording()).attribution

    assert (parts.tape_bytes, parts.recorder_bytes) == (STEPS * 10_000, 1_000_000)
    sums = parts.tracked_bytes - parts.untouched_bytes + parts.pool_bytes + parts.python_bytes
    sums += parts.allocator_free_bytes + parts.tape_bytes + parts.recorder_bytes
    assert sums + parts.other_bytes + parts.residual_bytes == parts.resident_bytes
