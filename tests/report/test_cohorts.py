"""The cohorts of a growing line in words: units, columns that have room, what is unknown."""

import json
from dataclasses import replace

import pytest
from support.summaries import leaking, process_of
from support.traces import Program

from tlmem.analysis.model import Cohort, Cohorts
from tlmem.report import html, markdown, text
from tlmem.report import json as json_report
from tlmem.report.cohorts import cohort_lines, cohort_table
from tlmem.report.summary import Process, Summary
from tlmem.units import format_count


def cohorts_of(*alive: tuple[int | None, ...], part_s: float = 1.25, made: int = 1000) -> Cohorts:
    """Rows of parts that are ``part_s`` long."""
    times = tuple(part_s * number for number in range(1, len(alive) + 1))
    rows = tuple(
        Cohort(time - part_s, time, made, 8 * made, row, row)
        for time, row in zip(times, alive, strict=True)
    )
    return Cohorts(times, rows)


LEAK = cohorts_of((500, 500, 500), (0, 500, 500), (0, 0, 600))


def of(lines: list[str]) -> str:
    """Lines with plain spaces in numbers."""
    return "\n".join(lines).replace("\N{NO-BREAK SPACE}", ",")


def test_a_leak_is_a_table_of_parts_by_times() -> None:
    assert of(cohort_lines(LEAK, 88)) == (
        "still alive, of the arrays allocated in each part of the run\n"
        "allocated      made  at 1.2 s  2.5 s  3.8 s\n"
        "0.0 to 1.2 s  1,000       500    500    500\n"
        "1.2 to 2.5 s  1,000              500    500\n"
        "2.5 to 3.8 s  1,000                     600"
    )


@pytest.mark.parametrize(
    ("width", "heads"),
    [
        (42, "allocated      made  at 1.2 s  2.5 s  3.8 s"),
        (41, "allocated      made  at 1.2 s  2.5  3.8"),
        (37, "allocated      made  at 1.2 s  3.8 s"),
        (10, "allocated      made  at 3.8 s"),
    ],
)
def test_what_has_no_room_is_left_out_but_not_the_end(width: int, heads: str) -> None:
    found = cohort_lines(replace(LEAK, rows=tuple(replace(r, made=9) for r in LEAK.rows)), width)

    assert found[1].split() == heads.split()
    assert width < 20 or max(map(len, found[1:])) <= width


@pytest.mark.parametrize(
    ("part_s", "span", "last"),
    [
        (0.010, "0 to 10 ms", "30 ms"),
        (0.12, "0 to 120 ms", "360 ms"),
        (0.6, "0.0 to 0.6 s", "1.8 s"),
        (12.0, "0 to 12 s", "36 s"),
        (300.0, "0 to 5 min", "15 min"),
        (36_000.0, "0 to 10 h", "30 h"),
    ],
)
def test_times_of_a_table_have_one_unit(part_s: float, span: str, last: str) -> None:
    table = cohort_table(cohorts_of((1, 1, 1), (0, 1, 1), (0, 0, 1), part_s=part_s))

    assert table.rows[0][0] == span
    assert table.heads[-1] == last


def test_a_single_moment_is_told() -> None:
    assert cohort_table(Cohorts((1.5,), (Cohort(1.5, 1.5, 3, 24, (3,), (24,)),))).rows == (
        ("1.5 to 1.5 s", "3", "3"),
    )


def test_shares_are_of_what_was_made() -> None:
    assert cohort_table(LEAK).shares == ((0.5, 0.5, 0.5), (None, 0.5, 0.5), (None, None, 0.6))


def test_a_part_in_which_nothing_was_made_has_no_share() -> None:
    table = cohort_table(cohorts_of((0, 0), (0, 0), made=0))

    assert table.shares == ((None, None), (None, None))
    assert table.rows[0][1:] == ("0", "0", "0")


def test_what_was_folded_is_told_to_be_unknown() -> None:
    rows = list(cohorts_of((None, 4, 5), (0, None, 7), (0, 0, 9), made=10).rows)
    rows[:2] = (replace(row, made=None, made_bytes=None) for row in rows[:2])
    found = Cohorts((1.25, 2.5, 3.75), tuple(rows), known_from_s=2.0, thinned=4)
    *lines, first, second = cohort_lines(found, 88)

    assert lines[1].split() == ["allocated", "made", "at", "2.5", "s", "3.8", "s"]
    assert [line.split("s ")[1].split() for line in lines[2:]] == [
        ["?", "4", "5"],
        ["?", "?", "7"],
        ["10", "9"],
    ]
    assert first == "?: of what was freed before 2.00 s only sums are known"
    assert second == "of those alive at 2.00 s one of 4 is known; their counts are estimates"


def test_without_cohorts_there_are_no_lines() -> None:
    assert cohort_lines(None, 88) == []


@pytest.fixture(scope="module")
def many() -> Process:
    """Five lines that leak."""
    program = Program()
    for _ in range(400):
        for line in (20, 30, 40, 50, 60):
            program.alloc(line)
        program.temporary(10)
        program.wait(1_000_000)
    return process_of(program)


def test_the_report_shows_the_cohorts_of_the_first_lines(many: Process) -> None:
    report = text.render(Summary((many,)))

    assert report.count("still alive, of the arrays allocated") == text.MOST_COHORTS
    assert max(map(len, report.splitlines())) <= text.WIDTH


def test_the_page_has_them_all_and_those_of_the_first_lines_unfolded(many: Process) -> None:
    page = html.render(Summary((many,)))
    page = page[: page.index("Pictures")]
    unfolded = page
    while "<details>" in unfolded:
        before, _, rest = unfolded.partition("<details>")
        unfolded = before + rest.partition("</details>")[2]

    assert page.count('<table class="cohorts">') == 5
    assert unfolded.count('<table class="cohorts">') == text.MOST_COHORTS


def test_cells_of_the_page_are_shaded_by_share() -> None:
    process = leaking()
    analysis = process.analysis
    found = tuple(replace(f, cohorts=LEAK) for f in analysis.findings)
    page = html.render(Summary((replace(process, analysis=replace(analysis, findings=found)),)))

    assert page.count('style="--lives: 0.50"') == 5 * len(found)
    made = format_count(1000)
    assert f'<th scope="row">0.0 to 1.2 s</th><td class="number">{made}</td>' in page
    assert "--shade: 216 150 196;" in page and "--shade: 141 79 125;" in page


def test_a_comment_has_the_table_in_the_folded_report(many: Process) -> None:
    assert "still alive, of the arrays allocated" in markdown.render(Summary((many,)))


def test_json_has_times_and_numbers(many: Process) -> None:
    report = json.loads(json_report.render(Summary((many,))))
    found = next(f for f in report["findings"] if f["kind"] == "growing-site")["cohorts"]

    assert list(found) == ["times_seconds", "rows", "known_from_seconds", "one_known_of"]
    assert len(found["times_seconds"]) == len(found["rows"]) == 8
    assert [row["alive"][-1] for row in found["rows"]] == [row["made"] for row in found["rows"]]
    assert sum(row["made_bytes"] for row in found["rows"]) == 400 * 8_000
    assert all(row["end_seconds"] == time for row, time in zip(found["rows"],
               found["times_seconds"], strict=True))  # fmt: skip
    assert {f["kind"] for f in report["findings"] if f["cohorts"]} == {"growing-site"}
