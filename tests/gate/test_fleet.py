"""A folder of recordings against budgets."""

import json
import pickle
from pathlib import Path
from xml.etree import ElementTree

import pytest
from support.fleet_fixtures import run_folder as run_folder
from support.fleets import write_fleet

from tlmem import cli
from tlmem.gate.fleet import judge_files

WHO = "rank 5 (node b, pid 20005)"


def check(capsys: pytest.CaptureFixture[str], *given: object) -> tuple[int, str, str]:
    code = cli.main(["check", "--no-config", "--jobs", "1", *map(str, given)])
    said = capsys.readouterr()
    return code, said.out, said.err


def test_one_process_over_its_budget_fails_the_fleet_and_is_named(
    run_folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, out, err = check(capsys, run_folder)

    assert code == 1
    assert out.startswith("8 processes: 7 passed, 1 failed\n")
    assert WHO in out
    assert "            kept.append(batch * 2)" in out
    assert err.startswith(f"tlmem: {WHO}: Leak at ranks.py:12")


def test_a_budget_is_of_each_process_and_not_of_their_sum(
    run_folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    fine = check(capsys, run_folder, "--budget", "peak=200MB")
    over = check(capsys, run_folder, "--budget", "peak=100MB")

    assert fine[:2] == (0, "8 processes: 8 passed\n")
    assert over[0] == 1
    assert over[2] == f"tlmem: {WHO}: peak is 116 MB; at most 100 MB is allowed.\n"


@pytest.mark.parametrize("format", ["json", "markdown", "junit", "github", "sarif"])
def test_every_format_names_the_process(
    run_folder: Path, capsys: pytest.CaptureFixture[str], format: str
) -> None:
    code, out, _ = check(capsys, run_folder, "--budget", "peak=100MB", "--format", format)
    plain = out.replace("&#40;", "(").replace("&#41;", ")")

    assert code == 1
    assert WHO in plain
    if format == "json":
        assert [each["exit_code"] for each in json.loads(out)["programs"]] == [0] * 5 + [1, 0, 0]
    if format == "junit":
        assert ElementTree.fromstring(out).get("failures") == "1"


def test_what_cannot_be_read_is_said_and_the_code_is_its_own(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = write_fleet(tmp_path / "run", 2)
    (folder / "text.tlm").write_text("x")
    code, out, err = check(capsys, folder)

    assert code == 2
    assert "2 processes: 2 passed" in out
    assert "text.tlm is not a tlmem recording" in err


def test_a_result_travels_between_processes_without_its_recording(run_folder: Path) -> None:
    from tlmem.gate.budgets import CheckOptions

    (found,) = judge_files([str(run_folder / "r0005.tlm")], CheckOptions(), (), (), None)
    packed = pickle.dumps(found)

    assert pickle.loads(packed) == found
    assert len(packed) < 20_000


def test_very_many_failures_are_counted(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = write_fleet(tmp_path / "run", 8, steps=10)
    code, out, err = check(capsys, folder, "--budget", "peak=1MB", "--allow", "short")

    assert code == 1
    assert "8 processes: 0 passed, 8 failed" in out
    assert "and 3 more: rank 5 (node b, pid 20005), rank 6" in out
    assert len(err.splitlines()) == 8


def test_each_process_is_compared_with_the_baseline(
    run_folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    baseline = run_folder / "r0000.tlm"
    some = str(run_folder / "r000[45].tlm")
    code, out, err = check(capsys, some, "--baseline", baseline)

    assert code == 1
    assert "2 processes: 1 passed, 1 failed" in out
    assert "It grows (leak) and the baseline does not (stable)." in err
