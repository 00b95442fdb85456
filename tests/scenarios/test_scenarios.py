"""Every scenario is recorded in a process of its own, and its truth must be found."""

import signal
import subprocess
import sys
import warnings
from dataclasses import replace
from pathlib import Path

import pytest
from tlmem.scenarios.harness import catalog

from tlmem import scenarios
from tlmem.analysis.leaks.cures import FIXES
from tlmem.analysis.ledger.misuse import WHAT
from tlmem.cli import scenario as scenario_command

ALL = catalog.scenarios()
LEAKS = {name for name, scenario in ALL.items() if scenario.outcome == "leak"}
CLOCKED = {"driver", "leak", "native", "python", "retained"}
"""Verdicts that rest on samples or on a clock, also where the runtime counts every object: one of
60 runs of a leak that takes 30 ms is missed if the machine stops the program several times."""
MISUSES = {name for name, scenario in ALL.items() if scenario.misuse}


def test_there_are_enough_of_each_kind() -> None:
    stable = {name for name, scenario in ALL.items() if scenario.outcome == "stable"}

    healthy = stable - MISUSES

    assert len(LEAKS) >= 24
    assert len(healthy) >= len(set(ALL) - healthy)
    assert {"native-malloc", "python-objects", "driver-growth"} <= set(ALL)


def source(name: str) -> str:
    """The text of a scenario's file."""
    return ALL[name].path.read_text(encoding="utf-8")


def test_each_leak_has_one_line_to_blame() -> None:
    marked = {name: (source(name).count(catalog.MARKER), ALL[name].line > 0) for name in LEAKS}

    assert {name for name in marked if marked[name] != (1, True)} == {"running-total"}


def test_each_misuse_has_one_line_where_it_happens() -> None:
    marked = {name: len(catalog.MISUSE_MARKER.findall(source(name))) for name in MISUSES}

    assert {name for name in MISUSES if marked[name] != 1} == set()
    assert {ALL[name].outcome for name in MISUSES} == {"stable"}


def test_every_kind_of_misuse_has_a_program() -> None:
    seen = {scenario.misuse[0] for scenario in ALL.values() if scenario.misuse}

    assert seen == set(WHAT)


def test_every_class_of_leaks_has_a_program() -> None:
    seen = {scenario.leak_class for scenario in ALL.values()} - {""}

    # Anomaly mode is on beside another class, that of torch-anomaly-mode.
    assert seen | {"anomaly-left-on"} == {*FIXES, catalog.OF_TAPES}


def test_every_fault_has_a_healthy_twin_that_is_recorded_in_the_same_way() -> None:
    twins = {name: ALL[known.twin] for name, known in ALL.items() if known.faulty}

    assert {name for name, twin in twins.items() if twin.faulty} == set()
    assert {name for name, twin in twins.items() if twin.record != ALL[name].record} == set()


def test_a_fault_and_its_twin_are_one_file_unless_the_twin_serves_another_program_too() -> None:
    faulty = {name: known for name, known in ALL.items() if known.faulty}
    apart = {name for name, known in faulty.items() if ALL[known.twin].path != known.path}

    assert apart == {"dict-cache", "nqueens-over-retained"}


def test_what_is_fixed_was_a_fault_and_runs_by_the_switch() -> None:
    fixed = {name: known for name, known in ALL.items() if name.endswith("-fixed")}
    wrong = {name for name in fixed if not ALL[name.removesuffix("-fixed")].faulty}

    assert wrong == set()
    assert {known.words for known in fixed.values()} == {("fixed",)}
    assert {name for name in fixed if "switch import FIXED" not in source(name)} == set()


def test_what_the_runtime_counts_is_stated_exactly() -> None:
    counted = {name for name in LEAKS if ALL[name].held_by and "import tlmem" in source(name)}

    assert {name for name in counted if not (ALL[name].count and ALL[name].bytes)} == set()


@pytest.mark.parametrize("name", sorted(name for name in ALL if not ALL[name].faulty))
def test_no_wrong_word_is_said_of_a_healthy_program(name: str, capsys) -> None:
    code, out, err = answer(name, capsys)

    assert (code, err) == (0, ""), out
    assert out.splitlines()[-1] == "right", out


@pytest.mark.parametrize("name", sorted(name for name in ALL if ALL[name].faulty))
def test_the_truth_is_found(name: str, capsys) -> None:
    """At once; where it rests on what a clock decides, or else in both of two more runs.

    Misuse of the runtime is exact. Of the others, which rest on samples and on searches for
    holders, 99 of 100 are promised to be found (docs/detection.md has what was measured): a machine
    may stop a program where it matters, and all are asked in every run of the tests. Missed in 1
    run of 100, such a fault passes in 9,998 of 10,000; missed in every second, in 63 of 100. A miss
    that is passed over is printed among the warnings.
    """
    answers = [answer(name, capsys)]
    runs_in_tlmem = "import tlmem" in ALL[name].path.read_text(encoding="utf-8")
    is_exact = runs_in_tlmem and ALL[name].outcome not in CLOCKED
    if answers[0][0] == 1 and not is_exact:
        answers += [answer(name, capsys) for _ in range(2)]
        warnings.warn(f"{name} was missed in the first run:\n{answers[0][1]}", stacklevel=1)

    for code, out, err in answers[-2:]:
        assert (code, err) == (0, ""), out
        assert out.splitlines()[-1] == "right", out


def answer(name: str, capsys) -> tuple[int, str, str]:
    """Exit code and what is printed by the command that runs a scenario."""
    code = scenarios.run_scenario(name)
    printed = capsys.readouterr()
    return code, printed.out, printed.err


def test_list_prints_one_line_for_each_and_nothing_else() -> None:
    listed = subprocess.run(
        [sys.executable, "-m", "tlmem", "scenario", "list"],
        capture_output=True,
        text=True,
        check=True,
    )

    assert [line.split()[0] for line in listed.stdout.splitlines()] == list(ALL)
    assert listed.stderr == ""


def test_a_wrong_answer_is_not_a_success(
    kept: catalog.Result, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    lie = with_truth(kept, outcome="stable", line=0)
    monkeypatch.setattr(catalog, "scenarios", lambda: {"lie": lie.scenario})
    monkeypatch.setattr(catalog, "run", lambda scenario: lie)

    assert scenarios.run_scenario("lie") == 1
    assert "WRONG" in capsys.readouterr().out


@pytest.mark.parametrize("number, right", [(2000, True), (1999, False)])
def test_a_number_that_the_truth_states_must_be_found(
    kept: catalog.Result, number: int, right: bool
) -> None:
    assert with_truth(kept, count=number, bytes=8_000_000).right is right


def test_a_program_that_ends_by_another_signal_is_told(tmp_path) -> None:
    scenario = written(tmp_path, 'OUTCOME = "stable"\nEXIT = "SIGSEGV"\n')

    with pytest.raises(catalog.ScenarioFailed, match="exit code 0"):
        catalog.run(scenario)


TENSORS_FREED_TWICE = """
import tlmem

OUTCOME = "stable"
for _ in range(20_000):
    tensor = tlmem.ones(100)
    tensor.free()
    try:
        tensor.free()
    except tlmem.DoubleFree:
        pass
"""
TENSORS_KEPT = """
import tlmem

OUTCOME = "leak"
HELD_BY = "list"
CLASS = "over-retained"
for _ in range(2000):
    tlmem.acquire(tlmem.ones(1000), "list")  # leaks here
"""


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> catalog.Result:
    """What is found in ``TENSORS_KEPT``, recorded once."""
    return catalog.run(written(tmp_path_factory.mktemp("kept"), TENSORS_KEPT))


def with_truth(result: catalog.Result, **changes: object) -> catalog.Result:
    """The same recording beside another truth."""
    return replace(result, scenario=replace(result.scenario, **changes))


def test_a_misuse_must_be_marked_where_it_is_found(tmp_path) -> None:
    result = catalog.run(written(tmp_path, TENSORS_FREED_TWICE))

    assert result.analysis.verdict.outcome == "stable"
    assert result.misuses == [("double-free", ("written.py", 9))]
    assert not result.right
    assert with_truth(result, misuse=("double-free", 9)).right
    assert not with_truth(result, misuse=("double-free", 6)).right
    assert not with_truth(result, misuse=("wrong-device", 9)).right


def test_a_mark_names_the_misuse_and_its_line(tmp_path) -> None:
    text = TENSORS_FREED_TWICE.replace("ones(100)", "ones(100)  # wrong-device here")

    assert written(tmp_path, text).misuse == ("wrong-device", 6)


@pytest.mark.parametrize("holder, right", [("list", True), ("cache", False)])
def test_the_holder_must_be_the_one_that_is_named(
    kept: catalog.Result, holder: str, right: bool
) -> None:
    assert kept.found == "leak at written.py:8, held by list, over-retained"
    assert with_truth(kept, held_by=holder).right is right


@pytest.mark.parametrize("kind", ["floating", ""])
def test_a_class_that_is_not_the_true_one_is_not_a_success(kept: catalog.Result, kind: str) -> None:
    assert kept.leak_class == "over-retained"
    assert not with_truth(kept, leak_class=kind).right


def test_why_it_leaks_must_be_said(kept: catalog.Result) -> None:
    said = "2,000 objects allocated at written.py:8"

    assert with_truth(kept, because=said).right
    assert said in with_truth(kept, because=said).found
    assert not with_truth(kept, because="the moon is full").right


REPAIRED = '''"""It keeps tensors.

More about it.

Fixed: It keeps
none.
"""
'''


def test_a_file_with_a_repair_is_two_scenarios(tmp_path) -> None:
    path = tmp_path / "written.py"
    path.write_text(REPAIRED + TENSORS_KEPT + 'RECORD = "--zombie"\nEXIT = "SIGSEGV"\n')
    fault, twin = catalog.read_scenarios(path)

    assert (fault.name, fault.description) == ("written", "It keeps tensors.")
    assert (twin.name, twin.description) == ("written-fixed", "It keeps none.")
    assert (fault.twin, fault.words, twin.words) == (twin.name, (), ("fixed",))
    assert (fault.exit, twin.exit) == (-signal.SIGSEGV, 0)
    assert twin.truth == "stable" and not twin.faulty
    assert fault.record == twin.record == ("--zombie",)


def test_a_file_without_a_repair_is_one_scenario_or_none(tmp_path) -> None:
    assert len(catalog.read_scenarios(written(tmp_path, TENSORS_KEPT).path)) == 1
    (tmp_path / "none.py").write_text(REPAIRED)

    assert catalog.read_scenarios(tmp_path / "none.py") == []


def written(folder: Path, text: str) -> catalog.Scenario:
    path = folder / "written.py"
    path.write_text(text)
    scenario = catalog.read_scenario(path)
    assert scenario is not None
    return scenario


@pytest.mark.parametrize("words", [[], ["run"], ["list", "more"], ["sing"]])
def test_a_wrong_command_line_is_usage(
    words: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit, match="2"):
        scenario_command.run(words)
    assert "usage" in capsys.readouterr().err


def test_an_unknown_name_is_one_sentence(capsys: pytest.CaptureFixture[str]) -> None:
    assert scenarios.run_scenario("nothing") == 2
    assert capsys.readouterr().err.count("\n") == 1


def test_a_program_that_fails_is_told(tmp_path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "broken.py"
    path.write_text('OUTCOME = "stable"\nraise SystemExit("out of paper")\n')
    scenario = catalog.read_scenario(path)
    assert scenario is not None

    with pytest.raises(catalog.ScenarioFailed, match="out of paper"):
        catalog.run(scenario)
