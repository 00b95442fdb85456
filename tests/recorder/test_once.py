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
    return json.loads(once.of_script(source, "x.py", "/nowhere").note)["x.py"]


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


def test_a_source_that_is_none_or_too_long_says_nothing() -> None:
    for source in (b"def", b"x = 0\n" * once.LARGEST, b"\0"):
        assert once.of_script(source, "x.py", "/nowhere") == ("", "")


def test_what_is_imported_is_known_and_libraries_are_not(tmp_path: Path) -> None:
    files = {
        "main.py": "import numpy, json\nfrom work import steps\nimport work.far as far\nfar.go()\n",
        "work/__init__.py": "",
        "work/steps.py": "from .near import go\nfrom ..outside import x\nfor i in go(): pass\n",
        "work/near.py": "def go(): return []\n",
        "work/far/__init__.py": "def go(): pass\n",
        "work/unused.py": "",
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True, parents=True)
        (tmp_path / name).write_text(text)
    main = tmp_path / "main.py"
    note = json.loads(once.of_script(main.read_bytes(), str(main), str(tmp_path)).note)

    assert {str(Path(file).relative_to(tmp_path)) for file in note} == {*files} - {"work/unused.py"}
    assert note[str(main)]["calls"] == {"go": [4]}
    assert note[str(tmp_path / "work/steps.py")] == {"loops": [[3, 3]], "calls": {}}


def test_files_are_left_out_when_there_is_no_room(tmp_path: Path) -> None:
    (tmp_path / "large.py").write_text("x = 0\n" * (once.LARGEST // 6))
    (tmp_path / "small.py").write_text("def f(): pass\n")
    source = b"import large\nimport small\nsmall.f()\n"
    note = json.loads(once.of_script(source, "main.py", str(tmp_path)).note)

    assert {Path(file).name for file in note} == {"main.py", "small.py"}


def test_a_path_with_any_letters_is_in_the_note(tmp_path: Path) -> None:
    name = 'a "b" \\ \n é 🎈.py'

    assert [*json.loads(once.of_script(b"x = 0", name, str(tmp_path)).note)] == [name]


CONSOLE = b"""
import re
import sys
from leaky.cli import app
if __name__ == '__main__':
    sys.argv[0] = re.sub(r'(-script\\.pyw|\\.exe)?$', '', sys.argv[0])
    sys.exit(app.main())
"""


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "site-packages"
    for name in ("leaky/__init__.py", "leaky/cli.py", "names/only/__init__.py", "alone.py"):
        (folder / name).parent.mkdir(exist_ok=True, parents=True)
        (folder / name).write_text("from .deep import x\n" if name == "leaky/cli.py" else "")
    (folder / "leaky/deep.py").write_text("def f(): pass\nf()\n")
    monkeypatch.setattr("sys.path", ["/nowhere", str(folder)])
    return folder


def test_a_console_script_is_the_package_that_it_starts(installed: Path) -> None:
    known = once.of_script(CONSOLE, "bin/leaky", "/nowhere")

    assert known.package == str(installed / "leaky")
    assert json.loads(known.note)[str(installed / "leaky/deep.py")]["calls"] == {"f": [2]}


@pytest.mark.parametrize(
    ("name", "package"),
    [
        ("leaky", "leaky"),
        ("leaky.cli", "leaky"),
        ("names.only", "names/only"),
        ("alone", "alone.py"),
    ],
)
def test_a_module_that_is_run_by_name_is_its_package(
    name: str, package: str, installed: Path
) -> None:
    assert once.of_module(name, "/nowhere").package == str(installed / package)


@pytest.mark.parametrize(
    "source",
    [
        b"from leaky.cli import main\nmain()\n",
        b"from leaky.cli import main\nfor i in (1, 2): main()\nraise SystemExit(main())\n",
        b"from leaky.cli import main\ndef go(): main()\nraise SystemExit(go())\n",
        b"import sys\nsys.exit(0)\n",
        b"import os, sys\nsys.exit(unknown())\n",
    ],
)
def test_a_script_that_does_more_is_no_console_script(source: bytes, installed: Path) -> None:
    assert once.of_script(source, "x.py", "/nowhere").package == ""


def test_a_module_of_the_user_is_no_installed_package(installed: Path, tmp_path: Path) -> None:
    (tmp_path / "leaky.py").write_text("def f(): pass\nf()\n")
    known = once.of_module("leaky", str(tmp_path))

    assert known.package == "" and [*json.loads(known.note)] == [str(tmp_path / "leaky.py")]


def test_scripts_and_modules_are_described_in_recordings_and_code_is_not(tmp_path: Path) -> None:
    (tmp_path / "x.py").write_bytes(b"def f(): pass\nf()\nwhile 0: pass\n")
    for name, program in {"s": ["x.py"], "m": ["-m", "x"], "c": ["-c", "pass"]}.items():
        recorded(program, tmp_path, options=("-q", "-o", f"{name}.tlm"))

    expected = {str(tmp_path / "x.py"): {"loops": [[3, 3]], "calls": {"f": [2]}}}
    for name in "sm":
        assert json.loads(tlmem.read(tmp_path / f"{name}.tlm").info["once"]) == expected
    assert "once" not in tlmem.read(tmp_path / "c.tlm").info


def test_warnings_of_the_compiler_are_shown_once(tmp_path: Path) -> None:
    (tmp_path / "x.py").write_text("x = '\\d'\nx is 1\n")
    ended = recorded(["x.py"], tmp_path, ["-W", "always"], options=("-q", "-o", "x.tlm"))

    assert ended.stderr.count(b"invalid escape sequence") == 1
    assert ended.stderr.count(b'"is" with ') == 1
