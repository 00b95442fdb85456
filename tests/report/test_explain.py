"""Why a verdict is what it is: the trace of a leak, of a stable program, of one not judged."""

import json

from support.traces import Program

from tlmem.analysis import analyse
from tlmem.analysis.model import Asked, Question, Verdict
from tlmem.report import json as json_report
from tlmem.report import text
from tlmem.report.explain import explain_block
from tlmem.report.summary import Process, Summary


def summary_of(keeps: bool, steps: int = 400) -> Summary:
    """A program that keeps, or frees, what line 10 makes in each step."""
    program = Program()
    for _ in range(steps):
        number = program.alloc(10, 10_000)
        if not keeps:
            program.free(number)
        program.wait(1_000_000)
    recording = program.recording()
    return Summary((Process(recording, analyse(recording)),))


def rows_of(summary: Summary) -> list[str]:
    return explain_block(summary.verdict).splitlines()


def answers(summary: Summary) -> list[str]:
    """The answer to each question, in order."""
    rows = [row for row in rows_of(summary) if row.lstrip()[:2].rstrip(".").isdecimal()]
    return [row.split()[-1] for row in rows]


def test_a_leak_is_the_last_question_and_its_line_has_figures_and_thresholds() -> None:
    summary = summary_of(keeps=True)
    rows = rows_of(summary)
    at = rows.index("      program.py:10: grows")

    assert rows[0] == "Why this verdict"
    assert answers(summary) == ["no", "yes"]
    assert "Does a line keep more and more objects?" in rows[2]
    assert rows[at + 1].split() == ["few_survivors", "400", "at", "least", "20", "yes"]
    assert all(row.endswith(" yes") for row in rows[at + 1 :])


def test_a_line_that_grows_in_another_manner_says_in_which() -> None:
    """It has no conditions: those of lines that keep more and more objects are not its own."""
    program = Program()
    joined = program.alloc(10, 4_000)
    for step in range(2, 1_000):
        new = program.alloc(11, 4_000)
        before, joined = joined, program.alloc(10, 4_000 * step)
        program.free(before)
        program.free(new)
        program.wait(2_000_000)
    recording = program.recording()
    summary = Summary((Process(recording, analyse(recording)),))
    rows = rows_of(summary)

    assert answers(summary) == ["no", "yes"]
    assert rows[3] == (
        "      program.py:10: grows; each replaced a smaller one, to which new data were joined"
    )
    assert not any("does not grow" in row for row in rows)


def test_a_stable_program_answers_every_question_with_no_and_says_what_failed() -> None:
    summary = summary_of(keeps=False)
    shown = "\n".join(rows_of(summary))

    assert answers(summary) == ["no"] * 15
    assert "native memory: does not grow\n        native_bytes " in shown
    assert "at least 500 kB     no\n          native_bytes: native memory of a healthy" in shown


def test_a_short_run_ends_at_the_question_about_its_length() -> None:
    summary = summary_of(keeps=False, steps=20)

    assert summary.verdict.outcome == "cannot-judge"
    assert answers(summary) == ["no"] * 11 + ["yes"]
    assert "12. Are there too few samples of resident memory?" in rows_of(summary)[-1]


def test_the_report_has_it_behind_the_verdict_only_on_request() -> None:
    summary = summary_of(keeps=True)

    assert "Why this verdict" not in text.render(summary)
    assert text.render(summary, explain=True).split("\n\n")[1].startswith("Why this verdict\n")
    assert max(map(len, text.render(summary, explain=True).splitlines())) <= text.WIDTH


def test_json_has_the_trace_of_each_verdict() -> None:
    trace = json.loads(json_report.render(summary_of(keeps=True)))["verdict"]["trace"]
    (asked,) = (asked for asked in trace[-1]["asked"] if asked["grows"])

    assert [question["answer"] for question in trace] == ["no", "yes"]
    assert trace[0] == {
        "question": "Are events missing from the middle of the recording?",
        "answer": "no",
        "asked": [],
    }
    assert asked["subject"] == "program.py:10"
    assert asked["checks"][0] == {
        "rule": "few_survivors",
        "figure": 400.0,
        "how": "at least",
        "threshold": 20.0,
        "unit": "objects",
        "held": True,
        "reason": asked["checks"][0]["reason"],
    }
    assert asked["checks"][0]["reason"]


def test_a_curve_with_too_few_samples_is_said_to_be_not_judged() -> None:
    asked = Asked("native memory", ())
    verdict = Verdict("stable", "", trace=(Question("Does it grow?", "no", (asked,)),))

    assert not asked.held
    assert "native memory: not judged, there are too few samples" in explain_block(verdict)
