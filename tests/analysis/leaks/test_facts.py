"""What the runtime counts exactly is a finding from the first object on."""

from pathlib import Path

import pytest
from support.programs import recorded
from support.traces import Program

from tlmem.analysis import Finding, analyse
from tlmem.recording.reader import read

FLOATING, SCOPE, HANDLE = 1, 2, 3
RUNTIME = 16


def a_run(objects: int, kind: int, holder: str) -> Program:
    """A program of the runtime that keeps a few objects, from its begin on."""
    program = Program()
    for _ in range(objects):
        program.hold(program.alloc(10, 64, RUNTIME), kind, holder, 11)
    for _ in range(300):
        program.temporary(20)
        program.wait(1_000_000)
    program.end_ns = program.now_ns
    return program


def facts(program: Program) -> list[Finding]:
    findings = analyse(program.recording()).findings
    return [found for found in findings if found.kind in ("floating", "scope-not-left")]


@pytest.mark.parametrize("objects", [1, 5, 300])
def test_a_floating_object_is_a_finding_from_the_first_one_on(objects: int) -> None:
    (found,) = facts(a_run(objects, FLOATING, "nobody"))

    assert (found.kind, found.severity, found.count) == ("floating", "warning", objects)
    assert found.site is not None and found.site.line == 10
    assert found.bytes == 64 * objects


def test_an_object_with_another_holder_does_not_float() -> None:
    program = a_run(1, FLOATING, "nobody")
    program.hold(0, HANDLE, "handle", 12)

    assert facts(program) == []


def test_an_object_that_was_freed_does_not_float() -> None:
    program = a_run(1, FLOATING, "nobody")
    program.free(0)

    assert facts(program) == []


def test_of_a_program_that_was_killed_it_is_not_known_what_floats() -> None:
    program = a_run(1, FLOATING, "nobody")
    program.end_ns = None

    assert facts(program) == []


SCRIPT = """
import threading, time
import tlmem

def promoted():
    with tlmem.scope("inner"):
        return tlmem.promote(tlmem.zeros((4,)) + 1)

def main():
    for _ in range(3):
        promoted()
    forgotten = tlmem.scope("forgotten")
    forgotten.__enter__()
    kept = tlmem.zeros((8,))
    time.sleep(0.2)

main()
"""


def test_a_real_program_that_forgets_objects_and_a_scope(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(SCRIPT, encoding="utf-8")
    options = ("-q", "-o", "a.tlm")
    assert recorded(["program.py"], tmp_path, options=options).returncode == 0
    recording = read(tmp_path / "a.tlm")
    found = {finding.kind: finding for finding in analyse(recording).findings}

    assert (found["floating"].count, found["scope-not-left"].count) == (3, 1)
    assert "program.py:13" in found["scope-not-left"].evidence
