"""Who holds what a line makes in Python: findings, classes and reports, from snapshots."""

import pytest
from support.traces import Program

from tlmem.analysis import analyse
from tlmem.analysis.leaks.cures import FIXES
from tlmem.analysis.model import Finding, StackFrame
from tlmem.recording.format.chains import ChainStep as Step
from tlmem.recording.format.chains import StepKind
from tlmem.report import json as json_report
from tlmem.report import text
from tlmem.report.summary import Process, Summary

MODULE = Step(StepKind.MODULE, "__main__", "heads")
LOCAL = Step(StepKind.LOCAL, "main\n/home/user/program.py\n12", "rows")
BASE = Step(StepKind.VIEW, "numpy.ndarray", "base")
CYCLE = Step(StepKind.CYCLE, "__main__.Node", "Node.parent -> Node.children[] -> Node", 3)
DATA = Step(StepKind.INSTANCE, "__main__.Node", "data")
CPU, HANDLE, VIEW, FOREIGN = 16, 3, 5, 11
STEPS = 400


def listed(items: int) -> Step:
    return Step(StepKind.LIST, "list", "[]", items)


def growing(
    steps: list[Step], used: float = 1.0, seen_at: int = 300, whole: bool = True, device: int = 1
) -> Program:
    """An array of line 10 is kept in each step; a snapshot sees those that there are."""
    program = Program()
    for step in range(STEPS):
        number = program.alloc(10, 8_000, device)
        if device >= CPU:
            program.hold(number, HANDLE, "handle", 10, number)
        program.temporary(90)
        program.wait(1_000_000)
        if step + 1 == seen_at:
            program.snapshot((steps, [2 * n for n in range(step + 1)], used), whole=whole)
    return program


def findings(program: Program) -> list[Finding]:
    return list(analyse(program.recording()).findings)


def of_kind(program: Program, kind: str) -> Finding:
    (found,) = [found for found in findings(program) if found.kind == kind]
    return found


def leak_class(program: Program) -> Finding:
    (found,) = [found for found in findings(program) if found.kind in FIXES]
    return found


def report(program: Program) -> str:
    recording = program.recording()
    return text.render(Summary((Process(recording, analyse(recording)),)))


@pytest.mark.parametrize("kind", ["growing-site", "live-at-end", "cache-only-grows"])
def test_findings_about_a_line_name_the_chain_that_holds_it(kind: str) -> None:
    (holder,) = of_kind(growing([MODULE, listed(300)]), kind).holders

    assert (holder.kind, holder.name) == ("python", "list 'heads' (module __main__, 300 items)")
    assert (holder.count, holder.held_bytes, holder.site) == (300, 2_400_000, None)
    assert holder.chain == "module __main__: heads -> list of 300[] -> array"
    assert holder.seen_ns is not None and holder.seen_ns > 0


def test_the_frame_that_holds_is_the_place_of_the_holder() -> None:
    (holder,) = of_kind(growing([LOCAL, listed(300)]), "growing-site").holders

    assert holder.site == StackFrame("/home/user/program.py", 12, "main")


def test_the_example_of_a_finding_is_an_object_that_a_snapshot_names() -> None:
    program = growing([MODULE, listed(300)])
    named = {int(number) for held in program.seen for number in held.addresses}

    assert of_kind(program, "growing-site").object in named


@pytest.mark.parametrize("kind", ["growing-site", "live-at-end"])
def test_what_a_variable_held_for_a_moment_is_no_example_of_all(kind: str) -> None:
    program = Program()
    for step in range(STEPS):
        number = program.alloc(10, 8_000)
        program.temporary(90)
        program.wait(1_000_000)
        if step + 1 == 300:
            program.snapshot(([LOCAL], [number], 1.0))
    found = of_kind(program, kind)

    assert found.object != number
    (holder,) = found.holders
    assert holder.name == "local variable 'rows' of main() at program.py:12"


def test_the_container_is_in_the_evidence_of_its_class() -> None:
    found = leak_class(growing([MODULE, listed(300)]))

    assert found.kind == "cache-only-grows"
    assert "are kept by list 'heads' (module __main__, 300 items), and none" in found.evidence
    assert found.evidence.endswith("was released: it only grows.")


def test_without_a_snapshot_nobody_is_named() -> None:
    program = growing([MODULE, listed(300)], seen_at=-1)

    assert of_kind(program, "growing-site").holders == ()
    assert "are kept by Python objects" in leak_class(program).evidence


def test_survivors_that_only_a_cycle_holds_are_a_reference_cycle() -> None:
    found = leak_class(growing([CYCLE, DATA]))

    assert found.kind == "reference-cycle"
    assert (
        "400 arrays allocated at program.py:10 are held only by a reference cycle: "
        "Node.children[] -> Node.parent -> Node through attribute 'data' of Node (seen after "
        in found.evidence
    )


def test_a_cycle_is_not_said_when_the_walk_was_given_up() -> None:
    assert leak_class(growing([CYCLE, DATA], whole=False)).kind == "cache-only-grows"


def test_a_cycle_of_objects_that_do_not_grow_is_nothing() -> None:
    program = Program()
    for step in range(STEPS):
        number = program.alloc(10)
        program.wait(1_000_000)
        if step == 300:
            program.snapshot(([CYCLE, DATA], [number], 1.0))
        program.free(number)

    assert [found.kind for found in findings(program) if found.severity != "info"] == []


def test_a_holder_of_few_survivors_is_not_named_for_all() -> None:
    """Each of five lists has a fifth of what was made until the snapshot."""
    program = Program()
    for step in range(STEPS):
        program.alloc(10)
        program.temporary(90)
        program.wait(1_000_000)
        if step == 300:
            lists = [Step(StepKind.MODULE, "__main__", name) for name in "abcde"]
            program.snapshot(
                *(
                    ([name, listed(60)], list(range(2 * at, 602, 10)), 1.0)
                    for at, name in enumerate(lists)
                )
            )
    found = leak_class(program)

    assert found.kind == "cache-only-grows"
    assert "are kept by several holders (mixed; the largest is list 'a' (module" in found.evidence
    assert ", with 20%), and none" in found.evidence
    assert found.evidence.endswith("was released: they only grow.")


@pytest.mark.parametrize("chain", [[CYCLE, DATA], [MODULE, listed(20), BASE]])
def test_a_class_is_not_said_of_many_for_the_few_that_were_seen(chain: list[Step]) -> None:
    found = leak_class(growing(chain, used=0.01, seen_at=40))

    assert found.kind == "cache-only-grows"
    assert "are kept by Python objects" in found.evidence


def test_small_views_of_big_arrays_pin_their_bases() -> None:
    found = leak_class(growing([MODULE, listed(300), BASE], used=0.01))

    assert found.kind == "view-pins-base"
    assert (
        "by list 'heads' (module __main__, 300 items) through the view's base: the views of "
        "300 of them, seen after" in found.evidence
    )
    assert "use 24.0 kB of 2.40 MB" in found.evidence


def test_views_that_show_most_of_what_they_keep_are_no_fault_of_theirs() -> None:
    assert leak_class(growing([MODULE, listed(300), BASE], used=0.9)).kind == "cache-only-grows"


def test_tensors_that_handles_hold_have_their_container_named() -> None:
    found = of_kind(growing([MODULE, listed(300)], device=CPU), "growing-site")

    assert [holder.kind for holder in found.holders] == ["handle", "python"]
    assert [holder.count for holder in found.holders] == [400, 300]


@pytest.mark.parametrize("steps, said", [([listed(400), BASE], True), ([listed(400)], False)])
def test_tensors_whose_views_a_list_keeps_have_a_class(steps: list[Step], said: bool) -> None:
    """The Python object of a view keeps that of its base, and so the base's own handle."""
    program = growing([MODULE, *steps], seen_at=400, device=CPU)
    for number in range(0, 2 * STEPS, 2):
        program.hold(number, VIEW, "view", 20, number)
    found = [found for found in findings(program) if found.kind in FIXES]

    assert [found.kind for found in found] == ["cache-only-grows"] * said
    for leak in found:
        assert "kept by their Python handles and views, acquired at program.py:10" in leak.evidence
        assert "in list 'heads' (module __main__, 400 items) through the view's" in leak.evidence


def test_a_cycle_is_not_said_of_tensors_that_others_hold_as_well() -> None:
    program = growing([CYCLE, DATA], device=CPU)
    for number in range(0, 2 * STEPS, 2):
        program.hold(number, FOREIGN, "reader", 20, 50)

    assert "reference-cycle" not in {found.kind for found in findings(program)}


def test_the_latest_snapshot_that_saw_most_of_them_speaks() -> None:
    """After main() has returned, the last snapshot sees only what is left."""
    program = growing([LOCAL, listed(300)])
    program.snapshot(([MODULE], [0], 1.0))
    found = of_kind(program, "growing-site")

    assert [holder.name for holder in found.holders] == [
        "list 'rows' (local variable of main() at program.py:12, 300 items)"
    ]


@pytest.mark.parametrize(
    "seen, whole, speaks",
    [
        (200, True, True),  # half is enough for a search that looked at everything
        (140, True, False),
        (280, False, True),  # nine tenths for one that was cut short
        (260, False, False),
        (200, False, False),
        (400, False, True),
    ],
)
def test_a_search_that_was_cut_short_must_have_seen_nearly_all_to_speak(
    seen: int, whole: bool, speaks: bool
) -> None:
    """The search before it, a whole one, has seen 300."""
    program = growing([LOCAL, listed(300)])
    program.snapshot(([MODULE, listed(seen)], list(range(0, 2 * seen, 2)), 1.0), whole=whole)
    (holder,) = of_kind(program, "growing-site").holders

    later, earlier = "list 'heads' (module __main__", "list 'rows' (local variable of main()"
    assert holder.name.startswith(later if speaks else earlier)
    assert holder.count == (seen if speaks else 300)


def test_searches_that_were_all_cut_short_still_name_who_holds() -> None:
    program = growing([LOCAL, listed(300)], whole=False)
    program.snapshot(([MODULE, listed(200)], list(range(0, 400, 2)), 1.0), whole=False)
    (holder,) = of_kind(program, "growing-site").holders

    assert (holder.name.partition(" (")[0], holder.count) == ("list 'rows'", 300)


def test_cycles_that_only_come_from_unwinding_do_not_speak() -> None:
    """A list of exceptions in main() is in a cycle with main()'s frame, once that has gone."""
    program = growing([LOCAL, listed(300)], seen_at=100)
    program.snapshot(([CYCLE, DATA], list(range(0, 2 * STEPS, 2)), 1.0))

    assert leak_class(program).kind == "cache-only-grows"
    assert "kept by list 'rows' (local variable of main()" in leak_class(program).evidence


def test_cycles_speak_when_only_a_few_of_them_were_reached_before() -> None:
    """The tree that is just being worked on is in a variable; those before are not."""
    program = Program()
    for step in range(STEPS):
        program.alloc(10)
        program.temporary(90)
        program.wait(1_000_000)
        if step == 200:
            program.snapshot(([LOCAL, listed(20)], list(range(362, 402, 2)), 1.0))
    program.snapshot(([CYCLE, DATA], list(range(0, 2 * STEPS, 2)), 1.0))

    assert leak_class(program).kind == "reference-cycle"


def test_a_later_snapshot_that_sees_as_much_replaces_an_earlier_one() -> None:
    program = growing([LOCAL, listed(300)])
    program.snapshot(([MODULE, listed(400)], list(range(0, 2 * STEPS, 2)), 1.0))
    (holder,) = of_kind(program, "growing-site").holders

    assert (holder.name, holder.count) == ("list 'heads' (module __main__, 400 items)", 400)


def test_a_chain_counts_for_a_line_by_the_share_of_its_named_objects() -> None:
    program = Program()
    for _ in range(STEPS):
        program.alloc(10)
        program.alloc(20)
        program.temporary(90)
        program.wait(1_000_000)
    of_10 = list(range(0, 3 * STEPS, 3))
    program.snapshot(([MODULE, listed(600)], of_10 + [n + 1 for n in of_10[:200]], 1.0))
    by_line = {
        found.site.line: found.holders[0].count
        for found in findings(program)
        if found.kind == "growing-site" and found.site
    }

    assert by_line[10] == pytest.approx(400, rel=0.05)
    assert by_line[20] == pytest.approx(200, rel=0.05)


def test_objects_that_are_gone_when_judged_do_not_speak() -> None:
    program = growing([MODULE, listed(300)])
    temporaries = list(range(1, 2 * STEPS, 2))
    program.snapshot(([LOCAL, listed(9)], temporaries, 1.0))
    (holder,) = of_kind(program, "growing-site").holders

    assert holder.name.startswith("list 'heads'")


def test_reports_say_who_holds_when_it_was_seen_and_what_is_used() -> None:
    shown = report(growing([LOCAL, listed(300), BASE], used=0.01))
    flat = " ".join(shown.split())

    assert (
        "held by list 'rows' (local variable of main() at program.py:12, 300 items) through the "
        "view's base: 300, seen after" in flat
    )
    assert "uses 24.0 kB of 2.40 MB held" in flat
    assert max(map(len, shown.splitlines())) <= text.WIDTH


def test_json_has_the_chain_of_a_holder() -> None:
    found = of_kind(growing([LOCAL, listed(300)]), "growing-site")
    (holder,) = json_report.finding_dict(found)["holders"]

    assert holder["kind"] == "python"
    assert holder["site"] == {"file": "/home/user/program.py", "line": 12, "function": "main"}
    assert holder["chain"] == "main() at program.py:12: rows -> list of 300[] -> array"
    assert (holder["held_bytes"], holder["used_bytes"]) == (2_400_000, 2_400_000)
    assert holder["seen_seconds"] > 0


OURS = "/lib/tlmem"


def test_frames_of_tlmem_above_the_blamed_line_are_one_line() -> None:
    inner = [StackFrame(f"{OURS}/runtime/storage.py", line, "make") for line in (7, 8, 9)]
    site, outer = (
        StackFrame("/home/user/a.py", 3, "f"),
        StackFrame(f"{OURS}/recorder/runner.py", 1, "run"),
    )
    rows = text.frames((*inner, site, outer), site, OURS)

    assert [row.strip() for row in rows] == [
        "... 3 frames of tlmem",
        "> /home/user/a.py:3 in f",
        f"{OURS}/recorder/runner.py:1 in run",
    ]


@pytest.mark.parametrize("ours", ["", "/lib/tl", "/other/tlmem"])
def test_frames_of_others_are_all_shown(ours: str) -> None:
    stack = tuple(StackFrame(f"{OURS}/runtime/storage.py", line, "make") for line in (7, 8))

    assert len(text.frames((*stack, StackFrame("/home/user/a.py", 3, "f")), None, ours)) == 3


def test_a_stack_that_is_all_of_tlmem_is_shown() -> None:
    stack = tuple(StackFrame(f"{OURS}/runtime/storage.py", line, "make") for line in (7, 8))

    assert len(text.frames(stack, None, OURS)) == 2
