"""Objects of the runtime: judged like arrays, with the names of who keeps them; and misuse."""

import pandas as pd
import pytest
from support.traces import Program

from tlmem.analysis import analyse
from tlmem.analysis.ledger.misuse import ERRORS, WHAT
from tlmem.analysis.model import Finding
from tlmem.events import MISUSE_NAMES
from tlmem.report import json as json_report
from tlmem.report import text
from tlmem.report.summary import Process, Summary

CPU = 16
SCOPE, HANDLE, FIELD, TAPE = 2, 3, 4, 9


def leaking(size: int, steps: int = 400) -> Program:
    """One object is kept in each step at line 10, and one is freed again at line 20."""
    program = Program()
    for _ in range(steps):
        program.alloc(10, size, CPU)
        program.free(program.alloc(20, 8_000, CPU))
        program.wait(1_000_000)
    return program


def kept_in_a_field(program: Program) -> Program:
    """What line 10 made is in fields that were set at line 30; some of it in a scope, too."""
    site = program.site_of(30)
    alive = [number for number, died in enumerate(program.died) if died < 0]
    program.held = [(number, FIELD, "field weight of Layer", site) for number in alive]
    program.held += [(number, SCOPE, "scope 'epoch'", program.site_of(10)) for number in alive[:7]]
    return program


def finding(program: Program, kind: str) -> Finding:
    return next(f for f in analyse(program.recording()).findings if f.kind == kind)


def report(program: Program) -> str:
    recording = program.recording()
    return text.render(Summary((Process(recording, analyse(recording)),)))


def test_a_leak_of_tensors_is_found_at_its_line() -> None:
    found = finding(leaking(8_000), "growing-site")

    assert found.site is not None and found.site.line == 10
    assert (found.severity, found.bytes) == ("error", found.count * 8_000)
    assert "objects allocated at program.py:10" in found.evidence


@pytest.mark.parametrize("also_arrays", [False, True])
def test_a_leak_of_views_shows_a_count(also_arrays: bool) -> None:
    program = Program()
    for _ in range(400):
        program.alloc(10, 0, CPU)
        if also_arrays:
            program.temporary(20)
        program.wait(1_000_000)
    analysis = analyse(program.recording())
    found = next(f for f in analysis.findings if f.kind == "growing-site")

    assert analysis.verdict.outcome == "leak"
    assert found.site is not None and found.site.line == 10
    assert found.count > 350 and found.bytes == 0
    assert "no bytes of their own" in found.evidence


def test_the_bytes_of_a_passing_object_do_not_make_a_leak_of_a_few_views() -> None:
    program = Program()
    for step in range(1600):
        buffer = program.alloc(10, 4_096, CPU)
        view = program.alloc(10, 0, CPU)
        if step % 50:
            program.free(view)
        program.free(buffer)
        program.wait(1_000_000)
    views = [number for number, died in enumerate(program.died) if died < 0]

    assert len(views) == 32
    assert analyse(program.recording()).verdict.outcome == "stable"


def test_views_that_come_and_go_disturb_nothing() -> None:
    program = Program()
    model = [program.alloc(5, 8_000, CPU) for _ in range(50)]
    for _ in range(400):
        program.free(program.alloc(20, 0, CPU))
        program.temporary(30)
        program.wait(1_000_000)
    analysis = analyse(program.recording())

    assert len(model) == 50
    assert analysis.verdict.outcome == "stable"


def test_the_holders_of_what_leaks_are_named_with_counts_and_lines() -> None:
    found = finding(kept_in_a_field(leaking(8_000)), "growing-site")
    field, scope = found.holders

    assert (field.kind, field.name, field.count) == ("field", "field weight of Layer", found.count)
    assert field.site is not None and field.site.line == 30
    assert (scope.kind, scope.name, scope.count) == ("scope", "scope 'epoch'", 7)


def test_holders_that_were_folded_are_counted_as_not_known() -> None:
    program = kept_in_a_field(leaking(8_000))
    program.held = program.held[-107:-7]
    found = finding(program, "growing-site")

    assert found.holders[0].name == "a holder that is not in the recording"
    assert [holder.count for holder in found.holders] == [found.count - 100, 100]


def test_what_is_alive_at_the_end_has_its_holders_too() -> None:
    program = Program()
    number = program.alloc(10, 8_000, CPU)
    program.held = [(number, HANDLE, "handle", program.site_of(10))]
    program.alloc(20, 8_000)
    program.wait(400_000_000)
    alive = {f.site.line: f for f in analyse(program.recording()).findings if f.site}

    assert [holder.name for holder in alive[10].holders] == ["handle"]
    assert alive[20].holders == ()


def test_arrays_are_still_called_arrays() -> None:
    program = Program()
    for _ in range(400):
        program.alloc(10)
        program.wait(1_000_000)

    assert "arrays allocated at program.py:10" in finding(program, "growing-site").evidence


def test_reports_show_who_holds() -> None:
    program = kept_in_a_field(leaking(8_000))
    shown = report(program)
    as_json = json_report.finding_dict(finding(program, "growing-site"))

    assert "held by field weight of Layer: 400, acquired at program.py:30" in shown
    assert as_json["holders"][0] == {
        "kind": "field",
        "name": "field weight of Layer",
        "site": {"file": "/home/user/program.py", "line": 30, "function": "work"},
        "count": 400,
        "chain": "",
        "seen_seconds": None,
        "held_bytes": None,
        "used_bytes": None,
    }


def misusing() -> Program:
    program = Program()
    number = program.alloc(10, 8_000, CPU)
    program.free(number, 20)
    site = program.site_of(30)
    program.misuses = [("use-after-free", number, "", site)] * 3
    program.misuses += [("double-register", -1, "scope 'epoch' #1", site)]
    program.wait(400_000_000)
    return program


def test_misuse_is_a_finding_with_its_line_and_its_object() -> None:
    found = finding(misusing(), "use-after-free")

    assert (found.severity, found.count, found.object) == ("error", 3, 0)
    assert found.site is not None and found.site.line == 30
    assert found.evidence == (
        "An object was used after it had been freed: 3 times, at program.py:30; object 0 was "
        "allocated at program.py:10 and freed at program.py:20."
    )
    assert [stack[0].line for stack in (found.stack, found.allocated, found.freed)] == [30, 10, 20]
    assert found.earlier == ()


def test_a_free_after_the_misuse_is_not_where_the_object_was_freed_before() -> None:
    program = Program()
    number = program.alloc(10, 8_000, CPU)
    program.misuses = [("double-register", number, "", program.site_of(30))]
    recording = program.recording()
    program.free(number, 20)
    later = program.recording()
    later.misuses = recording.misuses
    found = next(f for f in analyse(later).findings if f.kind == "double-register")

    assert found.allocated[0].line == 10 and found.freed == ()
    assert "freed at" not in found.evidence


def test_a_change_of_a_saved_value_names_where_it_was_saved() -> None:
    program = Program()
    number = program.alloc(10, 8_000, CPU)
    program.hold(number, TAPE, "tape 'exp' #7", 40, 19 << 40 | 7)
    program.hold(number, TAPE, "tape 'exp' #8", 50, 19 << 40 | 8)
    program.wait(1_000)
    program.misuses = [("in-place-on-saved", number, "tape 'exp' #7", program.site_of(30))]
    found = finding(program, "in-place-on-saved")

    assert [frame.line for frame in found.earlier] == [40]
    assert "it had been saved at program.py:40; by tape 'exp' #7." in found.evidence
    assert "it had been saved at\n" in report(program)


def test_a_second_backward_names_the_last_whole_pass_before_it() -> None:
    program = Program()
    number = program.alloc(10, 8_000, CPU)
    program.passed(40)
    program.passed(50, status=16)
    program.misuses = [("second-backward", number, "tape 'mean' #6", program.site_of(30))]
    found = finding(program, "second-backward")

    assert [frame.line for frame in found.earlier] == [40]
    assert "the last whole pass before it was at program.py:40" in found.evidence


def test_misuse_without_harm_is_a_warning() -> None:
    found = finding(misusing(), "double-register")

    assert (found.severity, found.object) == ("warning", None)
    assert found.evidence.endswith("once, at program.py:30; by scope 'epoch' #1.")


def test_misuse_is_in_the_text_report_with_its_stack() -> None:
    shown = report(misusing())

    assert "Misuse\n  An object was used after it had been freed: 3 times" in shown
    assert "> /home/user/program.py:30 in work" in shown
    assert "allocated at\n            /home/user/program.py:10 in work" in shown
    assert "freed at\n            /home/user/program.py:20 in work" in shown


def test_every_misuse_has_a_sentence() -> None:
    assert set(WHAT) == set(MISUSE_NAMES.values())
    assert set(ERRORS) == {
        "use-after-free",
        "double-free",
        "over-release",
        "wrong-device",
        "past-the-end",
        "written-after-free",
    }


def test_misuses_that_a_size_limit_folded_are_counted() -> None:
    recording = misusing().recording()
    recording.fold = {"misuse_count": 1500, "live_stride": 1}
    recording.misuses["thread"] = 0
    recording.site_totals = pd.DataFrame(
        {"alloc_count": [1], "live_count": [0], "live_bytes": [0], "first_ns": [0]}, index=[2]
    )
    (folded,) = [f for f in analyse(recording).findings if f.kind == "misuse"]

    assert folded.count == 1496


def test_pools_are_a_part_of_resident_memory() -> None:
    program = Program(native=5e6, pool_bytes=4e6)
    program.alloc(10, 1_000_000, CPU)
    program.wait(500_000_000)
    parts = analyse(program.recording()).attribution

    assert parts.pool_bytes == 4_000_000
    assert parts.other_bytes == 35_000_000, "30 MB of files, 5 MB native"
    sums = parts.tracked_bytes + parts.pool_bytes + parts.python_bytes + parts.recorder_bytes
    assert sums + parts.other_bytes + parts.residual_bytes == parts.resident_bytes


def test_a_driver_that_keeps_what_is_freed_is_named_and_is_no_leak() -> None:
    program = Program()
    for _ in range(400):
        program.free(program.alloc(10, 50_000, CPU))
        program.driver_keeps += 50_000
        program.wait(1_000_000)
    analysis = analyse(program.recording())

    assert analysis.verdict.outcome == "driver"
    assert analysis.verdict.sentence.startswith("Driver: Memory that devices hold beyond")
    assert [f.kind for f in analysis.findings if f.severity == "warning"] == ["driver-growth"]


def test_a_pool_of_buffers_that_is_never_used_again_is_named() -> None:
    program = Program()
    for _ in range(400):
        program.free(program.alloc(10, 50_000, CPU))
        program.pool_bytes += 50_000
        program.wait(1_000_000)

    assert analyse(program.recording()).verdict.outcome == "driver"


def test_a_pool_that_keeps_its_level_while_what_is_alive_shrinks_is_stable() -> None:
    program = Program()
    held = [program.alloc(10, 100_000, CPU) for _ in range(400)]
    while held:
        program.free(held.pop(0), 20)
        program.pool_bytes += 100_000
        program.temporary(30)
        program.wait(1_000_000)
    verdict = analyse(program.recording()).verdict

    assert verdict.outcome == "stable", verdict.sentence
