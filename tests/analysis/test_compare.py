"""Two recordings beside each other: lines are found again though they moved, findings too."""

import itertools
import json
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support import writer
from support.owners import ALLOC, FREE

from tlmem.analysis import analyse
from tlmem.analysis.compare import Difference, Line, Side, Sums, align, compare, failures, file_key
from tlmem.analysis.leaks import alive_at_end
from tlmem.analysis.model import Finding, StackFrame, Verdict
from tlmem.recording.reader import read
from tlmem.report import diff as diff_report

NUMPY, TICKS_PER_MS = 1, 2_000_000
MARK, BEGIN, END = 32, "tlmem:begin", "tlmem:end"


def side_of(
    folder: Path,
    lines: Sequence[tuple[int, int, bool]],
    begins: int = 1,
    script: str = "/home/a/train.py",
    steps: int = 500,
) -> Side:
    """A program whose function ``work`` makes arrays of (line, bytes), kept or freed, each step."""
    folder.mkdir(exist_ok=True)
    meta = [writer.code(1, script, "work", begins), writer.note("script", script)]
    meta += [writer.site(2 + n, 0, 1, line) for n, (line, _, _) in enumerate(lines)]
    meta += [writer.label(1, BEGIN), writer.label(2, END)]
    rows, address = [(1_000_000, 1, 0, 0, 0, MARK, 0)], 4096
    for step in range(1, steps + 1):
        for n, (_, size, kept) in enumerate(lines):
            address += 1 << 20
            ticks = 1_000_000 + step * TICKS_PER_MS + 8 * n
            rows.append((ticks, address, size, 2 + n, 1, ALLOC, NUMPY))
            if not kept:
                rows.append((ticks + 4, address, 0, 2 + n, 0, FREE, NUMPY))
    rows.append((1_000_000 + (steps + 1) * TICKS_PER_MS, 2, 0, 0, 0, MARK, 0))
    events = {1: writer.events(rows)}
    file = writer.RecordingWriter(form="sealed", meta=meta, threads=events)
    recording = read(file.write(folder / "x.tlm"))
    analysis = analyse(recording)
    totals = {
        name: getattr(recording.totals, name)
        for name in ("current_bytes", "peak_bytes", "total_bytes")
    }
    return Side([recording], analysis.verdict, analysis.findings, totals)


def moved(found: Difference) -> set[tuple[int | None, int | None]]:
    """Lines of both sides that are the same one."""
    return {
        (change.before.line if change.before else None, change.after.line if change.after else None)
        for change in found.lines
    }


# ---- which line is which ----

lines = st.builds(
    Line,
    line=st.just(0),
    offset=st.integers(0, 5),
    mean_bytes=st.integers(0, 2),
    inside=st.sampled_from([frozenset(), frozenset({"zeros"})]),
)


@given(st.lists(lines, max_size=8))
def test_lines_that_did_not_change_are_the_same(those: list[Line]) -> None:
    assert align(those, those) == [(n, n) for n in range(len(those))]


def likeness(first: Line, second: Line) -> int:
    return (
        2 * (first.mean_bytes == second.mean_bytes)
        + 2 * (first.inside == second.inside)
        + (first.offset == second.offset)
    )


@given(st.lists(lines, max_size=4), st.lists(lines, max_size=4))
def test_as_many_as_possible_are_paired_in_order_and_most_alike(
    first: list[Line], second: list[Line]
) -> None:
    found = align(first, second)
    pairs = [(a, b) for a, b in found if a is not None and b is not None]
    count = min(len(first), len(second))
    ways = (
        sum(likeness(first[a], second[b]) for a, b in zip(chosen, others, strict=True))
        for chosen in itertools.combinations(range(len(first)), count)
        for others in itertools.combinations(range(len(second)), count)
    )

    assert sorted(a for a, _ in found if a is not None) == list(range(len(first)))
    assert sorted(b for _, b in found if b is not None) == list(range(len(second)))
    assert pairs == sorted(pairs) and [b for _, b in pairs] == sorted(b for _, b in pairs)
    assert len(pairs) == count
    assert sum(likeness(first[a], second[b]) for a, b in pairs) == max(ways)


def test_very_many_lines_are_paired_by_their_place() -> None:
    first = [Line(n, n, n, frozenset()) for n in range(600)]

    assert align(first, first[:-1])[-2:] == [(598, 598), (599, None)]


@pytest.mark.parametrize(
    ("file", "info", "key"),
    [
        ("/a/run.py", {"script": "/a/run.py"}, "<script>"),
        ("/b/run2.py", {"script": "/b/run2.py", "cwd": "/b"}, "<script>"),
        ("/a/net/layer.py", {"script": "/a/run.py"}, "net/layer.py"),
        ("/a/net/layer.py", {"script": "/x/pytest", "cwd": "/a"}, "net/layer.py"),
        ("/c/layer.py", {"script": "/a/run.py", "cwd": "/a"}, "/c/layer.py"),
        (
            "/v/lib/x.py",
            {"python.sites": "/u:/v/lib", "script": "/v/run.py"},
            "<python.sites>/x.py",
        ),
        ("<string>", {"script": "-c"}, "<string>"),
        ("", {}, ""),
    ],
)
def test_a_file_is_known_as_the_program_sees_it(file: str, info: dict[str, str], key: str) -> None:
    assert file_key(file, info) == key


# ---- what differs ----


def test_code_above_a_function_moves_its_lines_and_changes_nothing(tmp_path: Path) -> None:
    before = side_of(tmp_path / "a", [(10, 5000, True), (12, 80, False)], begins=8)
    after = side_of(
        tmp_path / "b", [(40, 5000, True), (42, 80, False)], 38, script="/home/b/train2.py"
    )
    found = compare(before, after)

    assert moved(found) == {(10, 40), (12, 42)}
    assert (found.new, found.gone) == ((), ())
    places = [(a.kind, a.site.line, b.site.line) for a, b in found.kept if a.site and b.site]
    assert ("growing-site", 10, 40) in places
    assert {place[1:] for place in places} == {(10, 40)}
    assert not any(change.changed for change in found.lines)


def test_a_line_added_inside_a_function_is_the_only_new_one(tmp_path: Path) -> None:
    before = side_of(tmp_path / "a", [(10, 5000, False), (12, 80, False)], begins=8)
    after = side_of(
        tmp_path / "b", [(10, 999, False), (11, 5000, False), (13, 80, False)], begins=8
    )

    assert moved(compare(before, after)) == {(None, 10), (10, 11), (12, 13)}


def test_a_leak_that_came_is_new_and_one_that_went_is_gone(tmp_path: Path) -> None:
    fine = side_of(tmp_path / "a", [(10, 5000, False), (12, 80, False)])
    leaks = side_of(tmp_path / "b", [(10, 5000, True), (12, 80, False)])
    came, went = compare(fine, leaks), compare(leaks, fine)

    assert "growing-site" in {finding.kind for finding in came.new}
    assert {finding.site.line for finding in came.new if finding.site} == {10}
    assert (came.gone, came.kept, went.new, went.kept) == ((), (), (), ())
    assert went.gone == came.new
    assert came.lines[0].sums_after == Sums(500, 2_500_000, 500, 2_500_000)
    assert came.lines[0].sums_before.alive_bytes <= 5000


def test_the_lines_that_changed_most_come_first(tmp_path: Path) -> None:
    before = side_of(tmp_path / "a", [(10, 500, True), (12, 80, False), (14, 9000, True)])
    after = side_of(tmp_path / "b", [(10, 700, True), (12, 80, False), (14, 6000, True)])
    found = compare(before, after)

    assert [change.after.line for change in found.lines if change.after] == [14, 10, 12]


def test_processes_of_one_side_count_together(tmp_path: Path) -> None:
    one = side_of(tmp_path / "a", [(10, 500, True)])
    two = Side([*one.recordings] * 2, one.verdict, one.findings, one.totals)

    assert compare(one, two).lines[0].sums_after == Sums(1000, 500_000, 1000, 500_000)


def test_one_more_process_with_the_same_finding_is_no_new_one(tmp_path: Path) -> None:
    one = side_of(tmp_path / "a", [(10, 5000, True)])
    two = Side([*one.recordings] * 2, one.verdict, [*one.findings] * 2, one.totals)
    more, fewer = compare(one, two), compare(two, one)

    assert (more.new, more.gone, fewer.new, fewer.gone) == ((), (), (), ())
    assert len(more.kept) == len(fewer.kept) > 0


def test_findings_without_a_line_are_known_by_their_kind(tmp_path: Path) -> None:
    side = side_of(tmp_path / "a", [(10, 5000, False)])
    finding = Finding("native-growth", "warning", 0, 5_000_000, "Native memory grows.")
    other = Finding("python-growth", "warning", 0, 5_000_000, "Python's heap grows.")
    first = Side(side.recordings, side.verdict, [finding], side.totals)
    second = Side(side.recordings, side.verdict, [finding, other], side.totals)

    assert compare(first, second).new == compare(second, first).gone == (other,)
    assert compare(first, second).kept == ((finding, finding),)


# ---- whether it is worse ----


def difference(before: str, after: str, new: int = 0) -> Difference:
    finding = Finding(
        "growing-site", "error", 1, 1, "It grows.", site=StackFrame("/a/b.py", 3, "f")
    )
    sides = [Side([], Verdict(outcome, ""), (), {}) for outcome in (before, after)]
    return Difference(sides[0], sides[1], (), (finding,) * new, (), ())


@pytest.mark.parametrize(
    ("before", "after", "fails"),
    [
        ("stable", "stable", False),
        ("stable", "leak", True),
        ("stable", "driver", True),
        ("stable", "retained", False),
        ("leak", "leak", False),
        ("native", "leak", True),
        ("leak", "stable", False),
        ("cannot-judge", "python", True),
        ("cannot-judge", "stable", False),
        ("stable", "cannot-judge", True),
        ("cannot-judge", "cannot-judge", True),
    ],
)
def test_growth_fails_when_it_was_not_there(before: str, after: str, fails: bool) -> None:
    assert bool(failures(difference(before, after), ["growth"])) is fails
    assert failures(difference(before, after), []) == []


@pytest.mark.parametrize("new", [0, 1, 5])
def test_new_findings_fail_and_are_named(new: int) -> None:
    why = failures(difference("stable", "stable", new), ["new-findings"])

    assert len(why) == bool(new)
    assert all("growing-site at b.py:3" in sentence for sentence in why)
    assert failures(difference("stable", "stable", new), ["growth"]) == []


# ---- how it looks ----


def test_the_text_has_both_verdicts_new_findings_and_moved_lines(tmp_path: Path) -> None:
    before = side_of(tmp_path / "a", [(10, 5000, False), (12, 80, False)], begins=8)
    after = side_of(tmp_path / "b", [(20, 5000, True), (22, 80, False)], begins=18)
    text = diff_report.render_text(compare(before, after))

    assert "   Cannot judge: " in text and "   Leak at train.py:20: " in text
    assert "New in B\n  error, growing-site: " in text and "Gone in B" not in text
    assert "2.50 MB  train.py:20 work (A: line 10)" in text
    assert max(len(line) for line in text.splitlines() if not line.startswith(("A ", "B "))) <= 100


def test_what_did_not_change_is_said(tmp_path: Path) -> None:
    same = side_of(tmp_path / "a", [(10, 5000, False)])

    assert "No line allocated or kept more or less" in diff_report.render_text(compare(same, same))


def test_json_has_both_sides_of_each_line(tmp_path: Path) -> None:
    before = side_of(tmp_path / "a", [(10, 5000, False)])
    after = side_of(tmp_path / "b", [(10, 5000, True)])
    told = json.loads("".join(diff_report.render_json(compare(before, after))))

    assert (told["a"]["verdict"]["outcome"], told["b"]["verdict"]["outcome"]) == (
        "cannot-judge",
        "leak",
    )
    assert "growing-site" in {finding["kind"] for finding in told["findings"]["new"]}
    assert told["lines"][0]["b"]["alive_bytes"] == 2_500_000
    assert told["lines"][0]["site_a"]["line"] == 10


def test_a_recording_that_was_analysed_is_not_gone_through_again(tmp_path, monkeypatch) -> None:
    known = side_of(tmp_path, [(3, 800, True), (5, 100, False)])
    fresh = Side([read(tmp_path / "x.tlm")], known.verdict, known.findings, known.totals)
    expected = [change.sums_after for change in compare(fresh, fresh).lines]

    def never(*_: object) -> None:
        raise AssertionError("objects were gone through a second time")

    monkeypatch.setattr(alive_at_end, "lifetimes", never)

    assert [change.sums_after for change in compare(known, known).lines] == expected
    assert expected[0].alive_count == 500
