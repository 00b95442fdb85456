"""The table of mutants stays true to the code, and the tool notices what it should.

All mutants are run by ``make mutants``; one of each outcome is run here.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
from mutants import __main__ as tool
from mutants import running
from mutants.copies import ROOT, BrokenTool, Copy
from mutants.page import begin_of_row
from mutants.running import CAUGHT, SURVIVED, Result, run_tests
from mutants.seed_map import proofs, proofs_of
from mutants.table import MUTANTS, Mutant, mutants_in

KNOWN = proofs(ROOT)


def test_the_lines_of_each_mutant_are_in_its_file_exactly_once() -> None:
    stale = []
    for mutant in MUTANTS:
        count = (ROOT / mutant.file).read_text(encoding="utf-8").count(mutant.find)
        if count != 1 or mutant.find == mutant.replacement:
            stale.append(f"{mutant.name}: {count} times in {mutant.file}: {mutant.breaks}")

    assert stale == [], "change these in tests/mutants/table.txt"


def test_each_mechanism_of_the_seed_map_has_a_mutant_that_must_be_caught() -> None:
    broken = {mutant.mechanism for mutant in MUTANTS if not mutant.equivalent}

    assert sorted(set(KNOWN) - broken) == []
    assert sorted(broken - set(KNOWN)) == []


def test_no_two_mutants_of_a_mechanism_are_the_same() -> None:
    same = Counter((m.mechanism, m.file, m.find, m.replacement) for m in MUTANTS)

    assert [each for each, count in same.items() if count > 1] == []
    assert all(mutant.breaks and (ROOT / mutant.file).is_file() for mutant in MUTANTS)


def test_the_page_has_a_row_for_each_mutant_and_none_that_survived() -> None:
    """A row that is missing or changed: run ``make mutants``."""
    text = (ROOT / "docs" / "mutants.md").read_text(encoding="utf-8")
    rows = [line for line in text.splitlines() if line.startswith(("| S", "| B"))]

    assert "**survived**" not in text
    assert len(rows) == len(MUTANTS)
    for mutant, row in zip(MUTANTS, rows, strict=True):
        assert row.startswith(begin_of_row(mutant, KNOWN))
        assert ("equivalent: " in row) == bool(mutant.equivalent)


def test_the_seed_map_gives_the_tests_of_each_part_of_a_mechanism() -> None:
    assert proofs_of("S2", "native/memory/scope.c", KNOWN) == [
        "tests/runtime/ownership/test_scope_promises.py"
    ]
    both = [proofs_of("S21", file, KNOWN) for file in ("native/x.c", "tlmem/compiler/x.py")]
    assert both == [["tests/runtime/ownership/test_struct.py"], ["tests/compiler/test_moves.py"]]
    assert proofs_of("S21, compiled", "tlmem/compiler/x.py", KNOWN) == [
        "tests/compiler/test_moves.py",
        "tests/compiler/test_destinations.py",
        "-k",
        "test_s21_",
    ]


TWO = """\
S24: gradients are cleared before the first iteration, too
tlmem/runtime/autograd/training_loop.py
-        if 0 <= self._step < self.n and self._clears:
+        if self._step < self.n and self._clears:

S24: nothing
tlmem/runtime/autograd/training_loop.py
-        self._step = -1
+        self._step = 0 - 1
"""


def test_a_mutant_that_is_run_is_caught_and_one_that_changes_nothing_survives(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    copy = Copy(tmp_path / "copy")
    copy.require_own()
    tests = proofs_of("S24", "tlmem/runtime/autograd/training_loop.py", KNOWN)
    results: dict[str, Result] = {}
    for mutant in mutants_in(TWO):
        results[mutant.name] = running.tried(copy, mutant, [*tests, "-k", "s24"])
        text = (copy.place / mutant.file).read_text(encoding="utf-8")
        assert text == (ROOT / mutant.file).read_text(encoding="utf-8")

    assert [results[name].verdict for name in ("S24a", "S24b")] == [CAUGHT, SURVIVED]
    assert "test_tape_promises.py::test_s24_" in results["S24a"].by
    with pytest.raises(BrokenTool, match="0 times, not once"):
        copy.apply("tlmem/units.py", "no such line\n", "")
    with pytest.raises(BrokenTool, match="ends with 4"):
        run_tests(copy, ["tests/no_such_test.py"])


def mutant(name: str, equivalent: str = "") -> Mutant:
    return Mutant("S1", "a.py", "a\n", "b\n", "what breaks", equivalent, name)


@pytest.mark.parametrize(
    ("equivalent", "verdict", "status", "said"),
    [
        ("", CAUGHT, 0, "1 caught, 0 not"),
        ("", SURVIVED, 1, "survived: S1a, a.py: what breaks"),
        (
            "no one can see it",
            SURVIVED,
            0,
            "0 caught, 1 not",
        ),
        ("no one can see it", CAUGHT, 1, "not equivalent: S1a"),
    ],
)
def test_the_tool_ends_with_1_when_a_mutant_is_not_what_the_table_says(
    equivalent: str,
    verdict: str,
    status: int,
    said: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(tool, "MUTANTS", (mutant("S1a", equivalent),))
    monkeypatch.setattr(tool, "run_all", lambda *_: {"S1a": Result(verdict, "", 1.0)})
    monkeypatch.setattr("sys.argv", ["mutants", "--state", str(tmp_path)])

    assert tool.main() == status
    assert said in capsys.readouterr().out
