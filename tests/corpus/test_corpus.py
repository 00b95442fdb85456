"""The corpus is whole: each program has its truth, and what is judged is counted."""

from corpus.__main__ import CORPUS, TRUTHS, main, programs


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

    assert "clean: 1 of 1 right" in capsys.readouterr().out


def test_a_recording_that_is_missing_is_not_right(capsys, tmp_path) -> None:
    assert main(["calib_scalars", "--keep", str(tmp_path), "--judge-only"]) == 1

    assert "failed: calib_scalars" in capsys.readouterr().out
