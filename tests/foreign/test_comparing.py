"""What is a difference, what is flaky, and what of a run that dies is kept."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from foreign import comparing, pages, running
from foreign.comparing import Difference, Result, compare, result_of
from foreign.running import PROCESS, Recordings, Run
from foreign.suites import Part

PART = Part("numpy", "lib/tests")
FILE = "numpy/lib/tests/test_io.py"


def run_of(outcomes: dict[str, str]) -> Run:
    """A run that took a second and left one recording."""
    return Run({PROCESS: "exit 0", **outcomes}, 1.0, "", Recordings(1, 10, 0))


class Replay:
    """Gives the outcomes of one test in turn, plain and recorded apart; remembers the parts."""

    def __init__(self, plain: str, recorded: str) -> None:
        self.left: dict[bool, Iterator[str]] = {False: iter(plain), True: iter(recorded)}
        self.asked: list[tuple[Part, bool]] = []

    def __call__(self, part: Part, recorded: bool) -> Run:
        self.asked.append((part, recorded))
        return run_of({f"{FILE}::test_it": next(self.left[recorded]), f"{FILE}::test_other": "p"})


def test_equal_outcomes_are_run_once_each_way() -> None:
    replay = Replay("p", "p")
    result = compare(PART, replay)

    assert (result.tests, result.outcomes, result.different, result.flaky) == (2, {"p": 2}, [], [])
    assert replay.asked == [(PART, False), (PART, True)]


def test_what_always_differs_is_different() -> None:
    result = compare(PART, Replay("ppp", "fff"))

    assert result.different == [Difference(f"{FILE}::test_it", ["p"] * 3, ["f"] * 3)]
    assert result.flaky == []


@pytest.mark.parametrize("plain, recorded", [("ppf", "fff"), ("ppp", "fpp"), ("fpp", "pff")])
def test_what_has_an_outcome_in_common_is_flaky(plain: str, recorded: str) -> None:
    result = compare(PART, Replay(plain, recorded))

    assert (result.different, len(result.flaky)) == ([], 1)


def test_only_the_file_with_the_difference_is_run_again() -> None:
    replay = Replay("ppp", "fff")
    compare(PART, replay)

    assert {part for part, _ in replay.asked[2:]} == {Part("numpy", "lib/tests", (FILE,))}


def test_a_process_that_dies_is_a_difference_and_so_is_every_test_it_did_not_run() -> None:
    def run(part: Part, recorded: bool) -> Run:
        died = {PROCESS: "SIGSEGV", "a.py::one": "passed", "a.py::two": "began"}
        whole = {"a.py::one": "passed", "a.py::two": "passed", "a.py::three": "passed"}
        return run_of(died if recorded else whole)

    result = compare(PART, run)

    assert [(each.test, each.recorded[0]) for each in result.different] == [
        (PROCESS, "SIGSEGV"),
        ("a.py::two", "began"),
        ("a.py::three", comparing.MISSING),
    ]


def test_a_result_is_the_same_after_it_was_kept() -> None:
    result = compare(PART, Replay("ppp", "fff"))

    assert result_of(json.loads(json.dumps(result.as_dict()))) == result


def test_the_plugin_and_the_reader_agree_on_every_outcome(tmp_path: Path) -> None:
    (tmp_path / "test_all.py").write_text(
        "import pytest, os\n"
        "def test_passed(): pass\n"
        "def test_failed(): assert 0\n"
        "def test_skipped(): pytest.skip()\n"
        "@pytest.mark.xfail\ndef test_xfailed(): assert 0\n"
        "@pytest.mark.xfail\ndef test_xpassed(): pass\n"
        "@pytest.fixture\ndef broken(): assert 0\n"
        "def test_error(broken): pass\n"
        "@pytest.fixture\ndef late():\n    yield\n    assert 0\n"
        "def test_late(late): pass\n"
        "def test_dies(): os._exit(7)\n"
        "def test_never(): pass\n"
    )
    found = running.run(Part("numpy", str(tmp_path)), tmp_path / "run", recorded=False).outcomes
    names = {test.rpartition("_")[2]: outcome for test, outcome in found.items()}

    assert names == {
        "passed": "passed",
        "failed": "failed",
        "skipped": "skipped",
        "xfailed": "xfailed",
        "xpassed": "xpassed",
        "error": "error",
        "late": "error",
        "dies": "began",
        PROCESS: "exit 7",
    }


def test_a_recording_that_is_damaged_or_missing_is_a_fault(tmp_path: Path) -> None:
    (tmp_path / "run.tlm").write_bytes(b"not a recording")
    (tmp_path / "run.5.tlm").write_bytes(b"neither is this")
    found = running.check(tmp_path / "run.tlm")
    missing = running.check(tmp_path / "none" / "run.tlm")

    assert [fault.split(":")[0] for fault in found.faults] == ["tlmem report", "run.5.tlm"]
    assert len(missing.faults) == 1


def test_the_page_replaces_the_rows_of_this_suite_and_python_only(tmp_path: Path) -> None:
    page, kept, state = tmp_path / "page.md", tmp_path / "sums.json", tmp_path / "state"
    page.write_text(f"above\n{pages.BEGIN}{pages.END}below\n")
    for python, tests in (("3.11", 5), ("3.12", 7)):
        (state / python).mkdir(parents=True)
        result = Result("numpy", "lib", tests, {"passed": tests})
        (state / python / "numpy-2.4-lib.json").write_text(json.dumps(result.as_dict()))
    pages.write(page, state, kept)
    (state / "3.11" / "numpy-2.4-lib.json").unlink()
    newer = Result("numpy", "lib", 9, {"passed": 9})
    (state / "3.12" / "numpy-2.4-lib.json").unlink()
    (state / "3.12" / "numpy-2.5-lib.json").write_text(json.dumps(newer.as_dict()))
    pages.write(page, state, kept)
    text = page.read_text()
    rows = [line.split(" | ")[:4] for line in text.splitlines() if line.startswith("| NumPy")]

    assert rows == [["| NumPy 2.4", "3.11", "1", "5"], ["| NumPy 2.5", "3.12", "1", "9"]]
    assert text.startswith(
        f"above\n{pages.BEGIN}14 tests of all Pythons together were run both ways; 0 of them"
    )
    assert text.endswith(f"{pages.END}below\n")
