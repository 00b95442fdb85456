"""Which recordings folders, patterns and files stand for."""

import os
from pathlib import Path

import pytest
from support.fleets import write_rank

from tlmem.errors import MissingFile
from tlmem.fleets.members import NoSuchProcess, chosen, files_of, is_many


def names(files: list[Path]) -> list[str]:
    return [file.name for file in files]


def test_a_folder_stands_for_every_recording_in_it_and_below(tmp_path: Path) -> None:
    (tmp_path / "node b").mkdir()
    for name in ("2.tlm", "1.tlm", "node b/3.tlm", "notes.txt"):
        (tmp_path / name).write_bytes(b"")

    assert names(files_of(tmp_path)) == ["1.tlm", "2.tlm", "3.tlm"]


def test_a_pattern_that_the_shell_left_alone_is_matched(tmp_path: Path) -> None:
    for name in ("r1.tlm", "r2.tlm", "x.tlm"):
        (tmp_path / name).write_bytes(b"")

    assert names(files_of(f"{tmp_path}/r*.tlm")) == ["r1.tlm", "r2.tlm"]


def test_a_file_whose_name_looks_like_a_pattern_is_that_file(tmp_path: Path) -> None:
    odd = tmp_path / "r[1].tlm"
    odd.write_bytes(b"")

    assert files_of(odd) == [odd]
    assert not is_many(odd)


def test_a_file_stands_for_its_family_and_each_recording_comes_once(tmp_path: Path) -> None:
    first = write_rank(tmp_path / "a.tlm", None, pid=10, steps=1)
    write_rank(tmp_path / "a.11.tlm", None, pid=11, parent_pid=10, steps=1)
    write_rank(tmp_path / "a.11.12.tlm", None, pid=12, parent_pid=11, steps=1)
    write_rank(tmp_path / "a.13.tlm", None, pid=13, parent_pid=99, steps=1)

    assert names(files_of(first)) == ["a.tlm", "a.11.tlm", "a.11.12.tlm"]
    assert names(files_of([first, tmp_path])) == [
        "a.tlm",
        "a.11.tlm",
        "a.11.12.tlm",
        "a.13.tlm",
    ]


def test_the_same_file_by_two_ways_comes_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("a.tlm").write_bytes(b"")

    assert files_of(["a.tlm", tmp_path / "a.tlm", "."]) == [Path("a.tlm")]


def test_an_empty_folder_and_a_pattern_without_a_match_are_refused(tmp_path: Path) -> None:
    with pytest.raises(MissingFile, match="has no recordings"):
        files_of(tmp_path)
    with pytest.raises(MissingFile, match="matches no file"):
        files_of(f"{tmp_path}/*.tlm")


def test_a_process_is_chosen_by_rank_then_worker_then_pid(tmp_path: Path) -> None:
    files = [
        write_rank(tmp_path / "a.tlm", 7, pid=40, steps=1),
        write_rank(tmp_path / "b.tlm", 8, pid=7, steps=1),
        write_rank(tmp_path / "c.tlm", None, pid=41, steps=1, notes={"worker": "gw3"}),
        tmp_path / "damaged.tlm",
    ]
    files[3].write_bytes(b"nothing of ours")

    assert [chosen(files, word).name for word in ("7", "40", "gw3")] == ["a.tlm", "a.tlm", "c.tlm"]
    with pytest.raises(NoSuchProcess, match="no process has .* 99; there are rank 7, rank 8"):
        chosen(files, "99")


def test_a_rank_that_several_runs_have_is_refused(tmp_path: Path) -> None:
    files = [write_rank(tmp_path / f"{pid}.tlm", 0, pid=pid, steps=1) for pid in (1, 2)]

    with pytest.raises(NoSuchProcess, match="2 processes are called 0"):
        chosen(files, "0")
    assert chosen(files, "2").name == "2.tlm"


def test_a_folder_that_links_to_itself_is_read_once(tmp_path: Path) -> None:
    (tmp_path / "a.tlm").write_bytes(b"")
    os.symlink(tmp_path, tmp_path / "again")

    assert names(files_of(tmp_path)) == ["a.tlm"]
