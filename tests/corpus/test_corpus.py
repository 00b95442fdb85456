"""The corpus is whole: each program has its truth, and what is judged is counted."""

from corpus.__main__ import CORPUS, TRUTHS, Program, judged, main, programs


def test_each_program_has_its_truth_and_each_truth_its_program() -> None:
    every = programs()

    assert {program.path.name for program in every.values()} == {
        path.name for path in (CORPUS / "programs").glob("*.py")
    }
    assert {program.truth for program in every.values()} == set(TRUTHS)


def test_a_leak_has_lines_to_blame_and_nothing_else_has() -> None:
    every = programs()

    assert [name for name, p in every.items() if bool(p.lines) != (p.truth == "leak")] == []


def test_a_program_is_recorded_and_judged(capsys, tmp_path) -> None:
    assert main(["calib_scalars", "--keep", str(tmp_path)]) == 0
    assert main(["calib_scalars", "--keep", str(tmp_path), "--judge-only"]) == 0
    assert main(["calib_scalars", "--keep", str(tmp_path), "--judge-only", "--detail", "0.1"]) == 0

    assert "clean: 1 of 1 right" in capsys.readouterr().out


LEAKS_IN_A_CHILD = """
import multiprocessing
import time

import numpy as np


def work():
    kept, start = [], time.monotonic()
    while time.monotonic() - start < 2.5:
        kept.append(np.ones(2_000))
        time.sleep(0.002)


if __name__ == "__main__":
    child = multiprocessing.get_context("fork").Process(target=work)
    child.start()
    child.join()
"""


def test_a_program_is_judged_by_the_worst_of_its_processes(tmp_path) -> None:
    path = tmp_path / "leaks_in_a_child.py"
    path.write_text(LEAKS_IN_A_CHILD, encoding="utf-8")

    [(_, answer, sentence)] = judged({"child": Program(path, "leak", (11,))}, tmp_path, False)

    assert (answer, "leaks_in_a_child.py:11" in sentence) == ("right", True), sentence


def test_a_recording_that_is_missing_is_not_right(capsys, tmp_path) -> None:
    assert main(["calib_scalars", "--keep", str(tmp_path), "--judge-only"]) == 1

    assert "failed: calib_scalars" in capsys.readouterr().out
