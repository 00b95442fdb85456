"""Leak classes: what kind of leak a growing line is, and silence where nothing grows or is known.

Each test builds a program whose owners are known; a line that keeps one object in each step is
line 10.
"""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from support.traces import Program

from tlmem.analysis import analyse
from tlmem.analysis.leaks.cures import FIXES
from tlmem.analysis.model import Finding
from tlmem.report import json as json_report
from tlmem.report import text
from tlmem.report.summary import Process, Summary

NUMPY, CPU = 1, 16
FLOATING, SCOPE, HANDLE, FIELD, VIEW, POOL, TAPE, FOREIGN = 1, 2, 3, 4, 5, 7, 9, 11
REGISTER, PROMOTE = 6, 8
GRADIENT, EXP = 2 << 40, 19 << 40
STEPS = 400

Step = Callable[[Program, int], None]
"""What happens to the object of a step after it was allocated at line 10."""


def program_of(step: Step, device: int = CPU, steps: int = STEPS) -> Program:
    """An object is made in each step and floats; a temporary comes and goes."""
    program = Program()
    for _ in range(steps):
        step(program, program.alloc(10, 8_000, device))
        program.temporary(90)
        program.wait(1_000_000)
    return program


def classes(program: Program) -> list[Finding]:
    return [found for found in analyse(program.recording()).findings if found.kind in FIXES]


def only_class(program: Program) -> Finding:
    (found,) = classes(program)
    assert found.site is not None and found.site.line == 10
    assert found.severity == "warning"
    assert found.bytes == found.count * 8_000
    return found


def scoped(program: Program, number: int) -> None:
    """A scope takes the object and ends."""
    program.let_go(program.hold(number, FLOATING, "nobody", 10), 10, REGISTER)
    program.let_go(program.hold(number, SCOPE, "scope 'step'", 10), 12)


def retained(program: Program, number: int) -> None:
    reader = program.hold(number, FOREIGN, "reader", 20, 50)
    scoped(program, number)
    if number % 8:
        program.let_go(reader, 21)
        program.free(number, 12)


def promoted(program: Program, number: int) -> None:
    program.let_go(program.hold(number, SCOPE, "scope 'step'", 10), 30, PROMOTE)
    program.hold(number, FLOATING, "nobody", 30)


def never_taken(program: Program, number: int) -> None:
    program.hold(number, FLOATING, "nobody", 10)


def in_a_field(program: Program, number: int) -> None:
    scoped(program, number)
    program.hold(number, FIELD, "field weight of Layer", 40, number)


def under_a_view(program: Program, number: int) -> None:
    scoped(program, number)
    program.hold(number, VIEW, "view", 50, number)


def in_one_scope(program: Program, number: int) -> None:
    program.scopes[1] = program.site_of(5)
    program.hold(number, SCOPE, "scope 'all' #1", 10, 1)


def in_a_scope_each(program: Program, number: int) -> None:
    """Half of the objects are also looked into by views of the same scopes."""
    program.scopes[number] = program.site_of(9)
    program.hold(number, SCOPE, f"scope 'step' #{number}", 10, number)
    if number % 4:
        program.hold(number, VIEW, "view", 50, number)


def in_a_list(program: Program, number: int) -> None:
    program.hold(number, HANDLE, "handle", 10, number)


def saved(program: Program, number: int) -> None:
    program.let_go(program.hold(number, HANDLE, "handle", 10, number), 11)
    program.hold(number, TAPE, f"tape 'exp' #{number}", 60, EXP | number)


def saved_and_retained(program: Program, number: int) -> None:
    saved(program, number)
    program.passed(70)


def saved_beside_a_pass(program: Program, number: int) -> None:
    """The pass runs another graph and lets go of what that had saved."""
    saved(program, number)
    other = program.alloc(80, 8_000, CPU)
    row = program.hold(other, TAPE, f"tape 'exp' #{number + 9000}", 81, EXP | number + 9000)
    program.wait(program.step_ns)
    begin = program.now_ns
    program.let_go(row, 70)
    program.free(other, 70)
    program.passes.append((program.site_of(70), begin, program.now_ns, 0))


def gradient_with_history(program: Program, number: int) -> None:
    row = program.hold(number, TAPE, f"gradient #{number}", 70, GRADIENT | number)
    program.hold(number, TAPE, f"tape 'multiply' #{number}", 60, EXP | number)
    program.let_go(row, 71)


def gradient_of_new_leaf(program: Program, number: int) -> None:
    program.hold(number, TAPE, f"gradient #{number}", 70, GRADIENT | number)


def test_a_count_that_is_not_given_back_is_over_retained() -> None:
    found = only_class(program_of(retained))

    assert found.kind == "over-retained"
    assert [holder.name for holder in found.holders] == ["reader"]
    assert (
        f"held only by reader, which acquired {STEPS} at program.py:20 and released "
        f"{STEPS * 3 // 4}; all other holders" in found.evidence
    )


def test_a_name_that_is_the_only_holder_there_ever_was_is_not_over_retained() -> None:
    def owned(program: Program, number: int) -> None:
        program.hold(number, FOREIGN, "cache", 20, 50)

    assert classes(program_of(owned)) == []


@pytest.mark.parametrize(
    "step, told",
    [
        (promoted, "unregistered at program.py:30 and not acquired"),
        (never_taken, "most of them were never acquired"),
    ],
)
def test_what_nobody_holds_floats(step: Step, told: str) -> None:
    found = only_class(program_of(step))

    assert found.kind == "floating"
    assert told in found.evidence


@pytest.mark.parametrize(
    "step, kind, told",
    [
        (in_a_field, "field-forgotten", "only by field weight of Layer, set at program.py:40"),
        (
            under_a_view,
            "view-pins-base",
            f"only by views, {STEPS} of them, created at program.py:50",
        ),
        (in_one_scope, "scope-not-left", "scope 'all', entered at program.py:5 and not left"),
        (in_a_scope_each, "scope-not-left", f"'step', of which {STEPS} were entered, most at"),
        (in_a_list, "cache-only-grows", "kept by their Python handles, acquired at program.py:10"),
    ],
)
def test_the_only_kind_of_holder_tells_the_class(step: Step, kind: str, told: str) -> None:
    found = only_class(program_of(step))

    assert found.kind == kind
    assert told in found.evidence


@pytest.mark.parametrize("step", [in_a_field, under_a_view, promoted, retained, saved])
def test_a_second_holder_takes_the_class_away(step: Step) -> None:
    def both(program: Program, number: int) -> None:
        step(program, number)
        if program.died[number] < 0:
            program.hold(number, POOL, "pool 'all'", 5)

    assert classes(program_of(both)) == []


def test_values_saved_for_a_pass_that_never_comes_are_not_released() -> None:
    found = only_class(program_of(saved))

    assert found.kind == "tape-not-released"
    assert "saved at program.py:60 for a backward pass that was never run" in found.evidence


def test_values_of_a_retained_graph_outlive_their_pass() -> None:
    found = only_class(program_of(saved_and_retained))

    assert found.kind == "saved-outlives-backward"
    assert "it ran with retain_graph" in found.evidence


def test_a_pass_that_lets_go_of_others_was_not_that_of_these_values() -> None:
    assert only_class(program_of(saved_beside_a_pass)).kind == "tape-not-released"


@pytest.mark.parametrize(
    "step, told",
    [
        (
            gradient_with_history,
            "cleared, but tape 'multiply' still holds them, acquired at program.py:60",
        ),
        (gradient_of_new_leaf, "never cleared"),
    ],
)
def test_gradients_that_outlive_their_step_are_told_before_what_keeps_them(
    step: Step, told: str
) -> None:
    found = only_class(program_of(step))

    assert found.kind == "grads-outlive-step"
    assert told in found.evidence


def pooled(hits: int, misses: int) -> Program:
    def put(program: Program, number: int) -> None:
        scoped(program, number)
        program.hold(number, POOL, "pool 'buffers'", 55, 3)

    program = program_of(put)
    program.pools = [("pool 'buffers'", 3, hits, misses, STEPS + hits, 0, STEPS, STEPS * 8_000)]
    return program


@pytest.mark.parametrize(
    "misses, told",
    [(0, "was never asked for one"), (700, "served 0 of 700 requests")],
)
def test_a_pool_that_nobody_takes_from_is_named(misses: int, told: str) -> None:
    found = only_class(pooled(0, misses))

    assert found.kind == "pool-never-hits"
    assert (
        f"pool 'buffers', put there at program.py:55: it received {STEPS} and {told}"
        in found.evidence
    )


def test_a_pool_that_serves_is_not() -> None:
    assert classes(pooled(STEPS, 0)) == []


def growing_device(hits: int) -> Program:
    program = Program()
    for _ in range(STEPS):
        program.free(program.alloc(10, 50_000, CPU))
        program.pool_bytes += 50_000
        program.wait(1_000_000)
    program.pools = [("buffers of cpu", -1, hits, STEPS, STEPS, 0, STEPS, STEPS * 50_000)]
    return program


def test_a_device_that_keeps_buffers_and_uses_none_is_named() -> None:
    (found,) = classes(growing_device(0))

    assert (found.kind, found.bytes, found.site) == ("pool-never-hits", STEPS * 50_000, None)
    assert "buffers of cpu are kept and not reused" in found.evidence


def test_a_cause_stands_before_the_memory_that_grows() -> None:
    kinds = [found.kind for found in analyse(growing_device(0).recording()).findings]

    assert kinds[:2] == ["pool-never-hits", "driver-growth"]


def test_a_device_that_grows_although_it_uses_what_it_keeps_has_no_class() -> None:
    assert analyse(growing_device(STEPS).recording()).verdict.outcome == "driver"
    assert classes(growing_device(STEPS)) == []


def test_arrays_that_only_ever_accumulate_are_in_something_that_only_grows() -> None:
    found = only_class(program_of(lambda program, number: None, NUMPY))

    assert found.kind == "cache-only-grows"
    assert "arrays allocated at program.py:10 are kept by Python objects" in found.evidence
    assert found.holders == ()


def test_a_line_that_lets_go_of_a_part_does_not_only_grow() -> None:
    kept: list[int] = []

    def two_in_three_stay(program: Program, number: int) -> None:
        kept.append(number)
        if number % 3 == 0 and len(kept) > 60:
            program.free(kept.pop(0))

    program = program_of(two_in_three_stay, NUMPY)

    assert analyse(program.recording()).verdict.outcome == "leak"
    assert classes(program) == []


def healthy() -> Iterator[tuple[str, Program]]:
    """Programs in which each kind of holder keeps something, a bounded number of objects."""
    steps = [
        *(promoted, never_taken, in_a_field, under_a_view, in_a_list, saved, saved_and_retained),
        *(in_one_scope, in_a_scope_each, gradient_with_history, gradient_of_new_leaf),
    ]
    for step in steps:
        alive: list[int] = []

        def bounded(program: Program, number: int, step=step, alive=alive) -> None:
            step(program, number)
            alive.append(number)
            if len(alive) > 40:
                oldest = alive.pop(0)
                for row, held in enumerate(program.ledger):
                    if held[0] == oldest and held[5] < 0:
                        program.let_go(row, 15)
                program.free(oldest, 15)

        yield step.__name__, program_of(bounded)


@pytest.mark.parametrize("name, program", list(healthy()), ids=lambda value: str(value)[:20])
def test_whoever_holds_a_bounded_number_is_no_leak(name: str, program: Program) -> None:
    analysis = analyse(program.recording())

    assert (name, analysis.verdict.outcome) == (name, "stable")
    assert [found.kind for found in analysis.findings if found.severity != "info"] == []


@pytest.mark.parametrize("what", ["lost_events", "missing_events"])
def test_nothing_is_said_where_events_are_not_there(what: str) -> None:
    recording = program_of(retained).recording()
    setattr(recording, what, 3)

    assert [f.kind for f in analyse(recording).findings if f.kind in FIXES] == []


def test_objects_whose_holders_were_folded_have_no_class() -> None:
    program = program_of(in_a_field)
    program.ledger.clear()

    assert analyse(program.recording()).verdict.outcome == "leak"
    assert classes(program) == []


def test_the_latest_speak_for_those_whose_holders_were_folded_and_the_sentence_says_so() -> None:
    program = program_of(in_a_field)
    del program.ledger[: len(program.ledger) // 2]

    assert (
        "allocated at program.py:10, judged by the 200 whose holders are"
        in only_class(program).evidence
    )


@pytest.mark.parametrize("known, kinds", [(9, []), (12, ["field-forgotten"])])
def test_a_few_do_not_speak_for_the_others(known: int, kinds: list[str]) -> None:
    program = program_of(in_a_field)
    del program.ledger[: -3 * known]

    assert [found.kind for found in classes(program)] == kinds


def test_reports_tell_the_class_and_what_to_do() -> None:
    recording = program_of(retained).recording()
    summary = Summary((Process(recording, analyse(recording)),))
    shown = " ".join(text.render(summary).split())

    assert "Causes over-retained: 100 objects allocated at program.py:10 are held only by" in shown
    assert f"Fix: {FIXES['over-retained']}." in shown
    kinds = [found["kind"] for found in json_report.to_dict(summary)["findings"]]
    assert kinds[:2] == ["growing-site", "over-retained"]


def test_the_class_of_a_leak_does_not_change_the_verdict() -> None:
    analysis = analyse(program_of(retained).recording())

    assert analysis.verdict.sentence.startswith("Leak at program.py:10: 100 of 400 objects")


def test_every_class_has_a_page_and_is_in_the_contract_of_the_report() -> None:
    docs = Path(__file__).resolve().parents[3] / "docs"
    pages = {path.stem for path in (docs / "findings").glob("*.md")}
    contract = (docs / "reference" / "json.md").read_text(encoding="utf-8")

    assert pages >= set(FIXES)
    assert [kind for kind in FIXES if f"`{kind}`" not in contract] == []
