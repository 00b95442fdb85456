"""Which types of objects became more, beside growth of Python's heap."""

import pytest
from support.traces import Program

from tlmem.analysis import Analysis, Finding, analyse
from tlmem.recording.format.chains import ChainStep as Step
from tlmem.recording.format.chains import StepKind

SECONDS = 4
LOOKS = (0.5, 0.75, 1.1, 1.7, 2.5, 3.8)
"""When snapshots are taken, in seconds."""
NOTHING = ([Step(StepKind.MODULE, "app", "cache"), Step(StepKind.DICT, "dict", "[]", 1)], 1, 0)


def run(counts: list[dict[str, int]], kind: str = "python") -> Analysis:
    """Memory rises through the run; snapshots count objects."""
    program = Program(slowdown=1)
    looks = list(zip(LOOKS, counts, strict=False))
    for _ in range(100 * SECONDS):
        program.temporary(90)
        program.wait(10_000_000)
        setattr(program, kind, getattr(program, kind) + 4e6 / 100)
        if looks and program.now_ns >= looks[0][0] * 1e9:
            program.look(NOTHING)
            program.count(**looks.pop(0)[1])
    return analyse(program.recording())


def growth(found: Analysis, kind: str = "python") -> Finding:
    (finding,) = [f for f in found.findings if f.kind == f"{kind}-growth"]
    return finding


def test_types_that_became_more_are_named_with_the_moment_they_are_counted_from() -> None:
    counts = [{"dict": 5000 + 1000 * i, "__main__.Session": 100 + 500 * i} for i in range(6)]
    found = run(counts)
    finding = growth(found)
    said = "Objects that became more since 1.10 s: dict +3,000, Session +1,500."

    assert finding.evidence.endswith(said)
    assert said in found.verdict.sentence
    assert [(t.type, t.more, t.count) for t in finding.types] == [
        ("dict", 3000, 10_000),
        ("__main__.Session", 1500, 2600),
    ]


def test_a_type_that_is_not_among_the_most_is_counted_from_the_rarest_that_is() -> None:
    many = {f"t{i}": 700 for i in range(64)}
    counts = [many] * 3 + [{**many, "new": 900 + 300 * i} for i in range(3)]

    assert [(t.type, t.more) for t in growth(run(counts)).types] == [("new", 1500 - 700)]


@pytest.mark.parametrize(
    "counts",
    [[9000] * 6, [0, 0, 5000, 100, 5000, 9000], [10] * 5 + [60], [9000] * 4 + [9200, 9400]],
    ids=["all the time", "up and down", "a few", "a few of many"],
)
def test_types_that_come_and_go_are_not_named(counts: list[int]) -> None:
    found = run([{"list": count} for count in counts])

    assert growth(found).types == ()
    assert "No type of object that Python's collector follows became more" in (
        growth(found).evidence
    )
    assert "No type" not in found.verdict.sentence


def test_a_count_while_the_program_ends_does_not_hide_what_grew() -> None:
    found = run([{"list": count} for count in (1000, 2000, 3000, 4000, 5000, 900)])

    assert [(t.type, t.more) for t in growth(found).types] == [("list", 2000)]


@pytest.mark.parametrize("counts", [[1000], [1000, 2000, 3000]], ids=["once", "early"])
def test_counts_that_do_not_span_the_growth_say_nothing(counts: list[int]) -> None:
    finding = growth(run([{"list": count} for count in counts]))

    assert finding.types == ()
    assert "collector" not in finding.evidence


def test_native_memory_has_no_types() -> None:
    finding = growth(run([{"dict": 1000 * i} for i in range(6)], "native"), "native")

    assert finding.types == ()
    assert "became more" not in finding.evidence
