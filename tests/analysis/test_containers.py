"""Which Python container holds ever more, beside growth of memory that is no array's."""

import pytest
from support.traces import Program

from tlmem.analysis import Analysis, analyse
from tlmem.recording.format.chains import ChainStep as Step
from tlmem.recording.format.chains import StepKind

SECONDS = 4
CACHE = Step(StepKind.MODULE, "app", "cache")
FRAMES = Step(StepKind.MODULE, "__main__", "frames")
LOOKS = (0.5, 0.75, 1.1, 1.7, 2.5, 3.8)
"""When snapshots are taken, in seconds."""


def dict_of(items: int) -> list[Step]:
    return [CACHE, Step(StepKind.DICT, "dict", "[]", items)]


def list_of(items: int) -> list[Step]:
    return [FRAMES, Step(StepKind.LIST, "list", "[]", items)]


def run(counts: list[int], kind: str = "python", arrays: int = 0, rise: float = 4e6) -> Analysis:
    """Memory rises through the run; snapshots see a dict, and arrays over other memory."""
    program = Program(slowdown=1)
    looks = list(zip(LOOKS, counts, strict=False))
    for step in range(100 * SECONDS):
        program.temporary(90)
        program.wait(10_000_000)
        setattr(program, kind, getattr(program, kind) + rise / 100)
        if looks and program.now_ns >= looks[0][0] * 1e9:
            _, count = looks.pop(0)
            found = [(dict_of(count), count, 0)]
            if arrays:
                found.append((list_of(step), step, step * arrays))
            program.look(*found)
    return analyse(program.recording())


@pytest.mark.parametrize("kind", ["python", "native"])
def test_the_container_that_grew_most_is_named(kind: str) -> None:
    found = run([100, 200, 300, 450, 700, 1000], kind)
    (finding,) = [f for f in found.findings if f.kind == f"{kind}-growth"]
    said = (
        "The Python container that grew most is dict 'cache' (module app, 1 000 items): by 700 "
        "items in 2.7"
    ).replace(" 000", ",000")

    assert found.verdict.outcome == kind
    assert said in finding.evidence
    assert said in found.verdict.sentence
    assert [(h.kind, h.count) for h in finding.holders] == [("python", 1000)]


@pytest.mark.parametrize(
    "counts",
    [[1000] * 6, [100, 900, 200, 900, 300, 900], [100, 200], [100, 101, 102, 103, 104, 105]],
    ids=["full", "emptied", "seen twice", "a few"],
)
def test_what_does_not_grow_is_not_named(counts: list[int]) -> None:
    found = run(counts)

    assert found.verdict.outcome == "python"
    assert "container" not in found.verdict.sentence


def test_a_container_that_was_let_go_of_is_not_named() -> None:
    assert "container" not in run([100, 200, 300, 450]).verdict.sentence


def test_arrays_over_other_memory_are_named_first() -> None:
    found = run([100, 200, 300, 450, 700, 1000], "native", arrays=40_000)

    assert "The Python container" not in found.verdict.sentence
    assert (
        "Arrays whose memory NumPy did not allocate are held by list 'frames' (module __main__, "
        in found.verdict.sentence
    )
    assert [f.kind for f in found.findings if f.kind == "untracked-arrays"] == []


def test_arrays_over_other_memory_alone_are_an_info() -> None:
    found = run([100] * 6, arrays=2_000, rise=0.0)
    (finding,) = [f for f in found.findings if f.kind == "untracked-arrays"]

    assert found.verdict.outcome == "stable"
    assert (finding.severity, finding.holders[0].name[:13]) == ("info", "list 'frames'")
