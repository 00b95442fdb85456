"""Every scenario is recorded in a process of its own, and its truth must be found."""

import subprocess
import sys

import pytest
from tlmem.scenarios import catalog

from tlmem import scenarios

ALL = catalog.scenarios()
LEAKS = {name for name, scenario in ALL.items() if scenario.outcome == "leak"}


def test_there_are_enough_of_each_kind() -> None:
    stable = {name for name, scenario in ALL.items() if scenario.outcome == "stable"}

    assert len(LEAKS) >= 9
    assert len(stable) >= 10
    assert {"native-malloc", "python-objects"} <= set(ALL)


@pytest.mark.parametrize("name", sorted(LEAKS))
def test_a_leak_has_one_line_to_blame(name: str) -> None:
    text = ALL[name].path.read_text(encoding="utf-8")

    assert text.count(catalog.MARKER) == 1
    assert ALL[name].line > 0


@pytest.mark.parametrize("name", sorted(ALL))
def test_the_truth_is_found(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    code = scenarios.main(["run", name])
    printed = capsys.readouterr()

    assert (code, printed.err) == (0, ""), printed.out
    assert printed.out.splitlines()[-1] == "right"


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
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    leak = ALL["dict-cache"]
    lie = catalog.Scenario(leak.name, leak.path, leak.description, "stable", 0)
    monkeypatch.setattr(catalog, "scenarios", lambda: {"dict-cache": lie})

    assert scenarios.main(["run", "dict-cache"]) == 1
    assert "WRONG" in capsys.readouterr().out


@pytest.mark.parametrize("words", [[], ["run"], ["list", "more"], ["sing"]])
def test_a_wrong_command_line_is_usage(
    words: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert scenarios.main(words) == 2
    assert "usage" in capsys.readouterr().err


def test_an_unknown_name_is_one_sentence(capsys: pytest.CaptureFixture[str]) -> None:
    assert scenarios.main(["run", "nothing"]) == 2
    assert capsys.readouterr().err.count("\n") == 1


def test_a_program_that_fails_is_told(tmp_path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "broken.py"
    path.write_text('OUTCOME = "stable"\nraise SystemExit("out of paper")\n')
    scenario = catalog.read_scenario(path)
    assert scenario is not None

    with pytest.raises(catalog.ScenarioFailed, match="out of paper"):
        catalog.run(scenario)
