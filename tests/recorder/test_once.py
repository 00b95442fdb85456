"""What a script's source says of how often its lines run."""

import json
from pathlib import Path

import pytest
from support.programs import recorded

import tlmem
from tlmem.recorder import once

SCRIPT = b"""
import lib

class Thing:
    def __init__(self):
        self.kept = lib.start()

def main():
    thing = Thing()
    for _ in range(3):
        helper(thing)
    return helper(
        thing
    )

def helper(thing):
    while thing:
        lib.step()
    return [lib.one(x) for x in thing]

main()
list(map(helper, []))
"""


def said(source: bytes) -> dict:
    return json.loads(once.describe(source, "x.py"))


def test_loops_are_lines_that_may_run_again() -> None:
    assert said(SCRIPT)["loops"] == [[10, 11], [17, 19], [22, 22]]


def test_calls_outside_of_loops_are_by_name() -> None:
    assert said(SCRIPT)["calls"] == {"main": [21], "Thing": [9], "helper": [12, 13, 14]}


@pytest.mark.parametrize(
    "line",
    [
        "x = {f(i) for i in y}",
        "x = {i: f(i) for i in y}",
        "x = sum(f(i) for i in y)",
        "while f(): pass",
        "x = list(itertools.starmap(f, y))",
        "functools.reduce(f, y)",
        "async def a():\n  async for i in y: f(i)",
    ],
)
def test_what_repeats_is_a_loop(line: str) -> None:
    found = said(b"def f(): pass\n" + line.encode())

    assert (found["loops"][0][1], found["calls"]) == (1 + len(line.splitlines()), {})


def test_a_source_that_is_none_or_too_long_is_not_described() -> None:
    assert once.describe(b"def", "x.py") == ""
    assert once.describe(b"x = 0\n" * once.LARGEST, "x.py") == ""
    assert once.describe(b"\0", "x.py") == ""


def test_a_script_is_described_in_its_recording_and_code_is_not(tmp_path: Path) -> None:
    (tmp_path / "x.py").write_bytes(b"def f(): pass\nf()\nwhile 0: pass\n")
    recorded(["x.py"], tmp_path, options=("-q", "-o", "x.tlm"))
    recorded(["-c", "pass"], tmp_path, options=("-q", "-o", "c.tlm"))

    note = tlmem.read(tmp_path / "x.tlm").info["once"]
    assert json.loads(note) == {"loops": [[3, 3]], "calls": {"f": [2]}}
    assert "once" not in tlmem.read(tmp_path / "c.tlm").info


def test_warnings_of_the_compiler_are_shown_once(tmp_path: Path) -> None:
    (tmp_path / "x.py").write_text("x = '\\d'\nx is 1\n")
    ended = recorded(["x.py"], tmp_path, ["-W", "always"], options=("-q", "-o", "x.tlm"))

    assert ended.stderr.count(b"invalid escape sequence") == 1
    assert ended.stderr.count(b'"is" with ') == 1
