"""``tlmem.output.atomic_write``: a file is there whole, or not at all."""

import errno
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tlmem.output.atomic_write import CannotWrite, write_file, write_folder


def no_room(path: Path) -> None:
    path.write_text("half")
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def test_a_file_is_written_whole(tmp_path: Path) -> None:
    write_file(tmp_path / "out.txt", lambda path: path.write_text("all"), force=False)

    assert os.listdir(tmp_path) == ["out.txt"]
    assert (tmp_path / "out.txt").read_text() == "all"


def test_a_file_that_exists_is_kept_unless_forced(tmp_path: Path) -> None:
    out = tmp_path / "out.txt"
    out.write_text("old")

    with pytest.raises(CannotWrite, match="-f"):
        write_file(out, lambda path: path.write_text("new"), force=False)
    assert out.read_text() == "old"

    write_file(out, lambda path: path.write_text("new"), force=True)
    assert out.read_text() == "new"


def test_a_full_disk_leaves_nothing_half_and_the_old_file_as_it_was(tmp_path: Path) -> None:
    out = tmp_path / "out.txt"
    out.write_text("old")

    with pytest.raises(CannotWrite, match="room"):
        write_file(out, no_room, force=True)

    assert os.listdir(tmp_path) == ["out.txt"]
    assert out.read_text() == "old"


def test_who_may_read_a_file_stays_as_it_was(tmp_path: Path) -> None:
    out = tmp_path / "out.txt"
    out.write_text("old")
    out.chmod(0o640)

    write_file(out, lambda path: path.write_text("new"), force=True)

    assert out.stat().st_mode & 0o777 == 0o640


def test_a_link_stays_one(tmp_path: Path) -> None:
    (tmp_path / "there.txt").write_text("old")
    (tmp_path / "out.txt").symlink_to(tmp_path / "there.txt")

    write_file(tmp_path / "out.txt", lambda path: path.write_text("new"), force=True)

    assert (tmp_path / "out.txt").is_symlink()
    assert (tmp_path / "there.txt").read_text() == "new"


def test_a_pipe_is_written_to_and_not_replaced(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)

    write_file(pipe, lambda path: path.write_text("text"), force=False)

    assert os.read(reader, 100) == b"text"
    os.close(reader)
    assert pipe.is_fifo()


def test_a_place_that_does_not_exist_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(CannotWrite, match="No such file or directory.*-o"):
        write_file(tmp_path / "no" / "out", lambda path: path.write_text("x"), force=False)


def test_a_folder_is_written_whole_and_replaced_only_when_it_is_ours(tmp_path: Path) -> None:
    out = tmp_path / "tables"

    def write(folder: Path) -> None:
        (folder / "a.csv").write_text("1")

    write_folder(out, write, force=False, known=["a.csv"])
    with pytest.raises(CannotWrite, match="-f"):
        write_folder(out, write, force=False, known=["a.csv"])
    write_folder(out, write, force=True, known=["a.csv"])
    (out / "thesis.tex").write_text("years of work")
    with pytest.raises(CannotWrite, match="thesis.tex"):
        write_folder(out, write, force=True, known=["a.csv"])

    assert (out / "thesis.tex").read_text() == "years of work"
    assert os.listdir(tmp_path) == ["tables"]


def test_a_folder_is_not_left_half_written(tmp_path: Path) -> None:
    def write(folder: Path) -> None:
        no_room(folder / "a.csv")

    with pytest.raises(CannotWrite, match="room"):
        write_folder(tmp_path / "tables", write, force=False, known=["a.csv"])

    assert os.listdir(tmp_path) == []


def test_a_file_is_not_taken_for_a_folder(tmp_path: Path) -> None:
    (tmp_path / "tables").write_text("a file")

    with pytest.raises(CannotWrite, match="is not a folder"):
        write_folder(tmp_path / "tables", lambda folder: None, force=True, known=["a.csv"])

    assert (tmp_path / "tables").read_text() == "a file"


@pytest.mark.parametrize("place", [".", "..", "/"])
def test_a_folder_is_not_written_as_a_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    monkeypatch.chdir(tmp_path)

    with pytest.raises(CannotWrite, match="Is a directory"):
        write_file(place, lambda path: path.write_text("new"), force=True)
    with pytest.raises(CannotWrite, match="-o"):
        write_folder(place, lambda path: None, force=True, known=os.listdir(place))
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("force", [False, True])
def test_nothing_is_written_through_a_link_that_was_put_beside(tmp_path: Path, force: bool) -> None:
    """In a folder of all users the place of half a file could be guessed, and be a link by then."""
    victim = tmp_path / "victim"
    victim.write_text("precious")
    shared = tmp_path / "shared"
    shared.mkdir()
    for name in ("out.txt", "tables"):
        (shared / f".{name}.{os.getpid()}.part").symlink_to(victim)
    if force:
        (shared / "out.txt").write_text("old")

    write_file(shared / "out.txt", lambda path: path.write_text("new"), force=force)
    write_folder(shared / "tables", lambda path: (path / "a").write_text("1"), force, ["a"])

    assert victim.read_text() == "precious"
    assert (shared / "out.txt").read_text() == "new"
    assert (shared / "tables" / "a").read_text() == "1"


def test_half_a_file_is_where_only_its_owner_looks(tmp_path: Path) -> None:
    def write(path: Path) -> None:
        path.write_text("new")
        seen.append(path)
        modes.append(path.parent.stat().st_mode & 0o777)

    seen: list[Path] = []
    modes: list[int] = []
    for _ in range(2):
        write_file(tmp_path / "out.txt", write, force=True)

    assert modes == [0o700, 0o700]
    assert seen[0].parent != seen[1].parent and seen[0].parent.parent == tmp_path
    assert os.listdir(tmp_path) == ["out.txt"]


@pytest.mark.parametrize("umask", [0o022, 0o077, 0o002])
def test_who_may_read_a_new_file_is_as_the_umask_says(tmp_path: Path, umask: int) -> None:
    before = os.umask(umask)
    try:
        write_file(tmp_path / "out.txt", lambda path: path.write_text("new"), force=False)
        write_folder(tmp_path / "tables", lambda path: (path / "a").write_text("1"), False, ["a"])
    finally:
        os.umask(before)

    assert (tmp_path / "out.txt").stat().st_mode & 0o777 == 0o666 & ~umask
    assert (tmp_path / "tables").stat().st_mode & 0o777 == 0o777 & ~umask
    assert (tmp_path / "tables" / "a").stat().st_mode & 0o777 == 0o666 & ~umask


def test_a_dash_is_standard_output(capfdbinary, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)

    write_file("-", lambda path: path.write_bytes(b"\x00\xff"), force=False)

    assert capfdbinary.readouterr().out == b"\x00\xff"
    assert os.listdir(tmp_path) == []


def test_a_folder_does_not_go_to_standard_output() -> None:
    with pytest.raises(CannotWrite, match="folder of files"):
        write_folder("-", lambda path: None, force=True, known=())


def test_a_terminal_is_spared_what_is_not_text(monkeypatch, capfdbinary) -> None:
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True, raising=False)

    with pytest.raises(CannotWrite, match="garble"):
        write_file("-", lambda path: path.write_bytes(b"\x89PNG\x00"), force=False)

    assert capfdbinary.readouterr().out == b""


@pytest.mark.parametrize(
    ("words", "part"),
    [
        (["report", "-o", "-"], b"Recording"),
        (["export", "--to", "speedscope", "-o", "-"], b"speedscope"),
    ],
)
def test_commands_write_to_standard_output_for_a_dash(
    words: list[str], part: bytes, tmp_path: Path
) -> None:
    file = tmp_path / "a.tlm"
    tlmem = [sys.executable, "-m", "tlmem"]
    source = "import numpy, time\nfor i in range(300): numpy.ones(9); time.sleep(0.001)"
    subprocess.run([*tlmem, "record", "-q", "-o", str(file), "-c", source], check=True)

    done = subprocess.run(
        [*tlmem, words[0], str(file), *words[1:]], cwd=tmp_path, capture_output=True, check=True
    )

    assert part in done.stdout
    assert os.listdir(tmp_path) == ["a.tlm"]


def test_a_recording_does_not_go_to_standard_output(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "tlmem", "record", "-o", "-", "-c", "pass"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )

    assert (done.returncode, os.listdir(tmp_path)) == (2, [])
    assert "standard output" in done.stderr
