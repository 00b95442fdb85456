"""Who may read a recording, and where it is written: never through a link, never into a file of
another user.
"""

import os
import stat
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
from support.programs import plain, recorded

import tlmem

STRANGER = 65534
FORKING = """
import os, sys
import numpy as np
child = os.fork()
if child == 0:
    np.empty(10)
    sys.exit(0)
os.waitpid(child, 0)
print(child)
"""
SPAWNING = """
import multiprocessing
import numpy as np
def work(number):
    return np.empty(number).size
if __name__ == "__main__":
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        print(pool.map(work, [3]))
        pool.close()
        pool.join()
"""


def modes(folder: Path) -> set[int]:
    """Of all recordings in a folder; there are at least two."""
    found = [stat.S_IMODE(path.stat().st_mode) for path in folder.glob("*.tlm")]
    assert len(found) > 1
    return set(found)


@pytest.mark.parametrize("program", [FORKING, SPAWNING], ids=["fork", "spawn"])
@pytest.mark.parametrize(
    ("options", "mode"), [((), 0o600), (("--mode", "640"), 0o640), (("--mode=0666",), 0o666)]
)
def test_only_the_owner_reads_a_recording_unless_asked(
    program: str, options: tuple[str, ...], mode: int, tmp_path: Path
) -> None:
    """The same for the files of children, and whatever the umask."""
    (tmp_path / "program.py").write_text(program, encoding="utf-8")
    command = [sys.executable, "-m", "tlmem", "record", "-q", *options, "program.py"]
    for umask in (0o022, 0o077) if program == FORKING else (0o000,):
        subprocess.run(command, cwd=tmp_path, check=True, umask=umask, stdout=subprocess.DEVNULL)

    assert modes(tmp_path) == {mode}


def test_recorder_in_a_program_has_a_mode(tmp_path: Path) -> None:
    program = """
        import os, stat, tlmem
        from tlmem.recorder import CannotRecord
        for name, mode in (("a", {}), ("b", {"mode": 0o644})):
            with tlmem.Recorder(name, **mode):
                print(oct(stat.S_IMODE(os.stat(name).st_mode)))
        try:
            tlmem.Recorder("c", mode=0o444)
        except CannotRecord as refused:
            print(refused)
        """
    result = plain(["-c", textwrap.dedent(program)], tmp_path)

    assert result.stdout.decode().splitlines() == [
        "0o600",
        "0o644",
        "a mode of 0o444 is not between 0o600 and 0o777 with 0o600 in it.",
    ], result.stderr


@pytest.mark.parametrize("mode", ["", "rw", "888", "0o600", "-1", "444", "1600", "77777", "6 0"])
def test_mode_that_is_none_is_refused(mode: str, tmp_path: Path) -> None:
    result = recorded(["-c", "print(1)"], tmp_path, options=(f"--mode={mode}",))

    assert (result.returncode, result.stdout) == (2, b"")
    assert b"--mode" in result.stderr or f"'{mode}'".encode() in result.stderr
    assert result.stderr.startswith(b"tlmem: ") and result.stderr.count(b"\n") == 1
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("options", [("-o", "link"), ("-f", "-o", "link")])
@pytest.mark.parametrize("leads", ["to_a_file", "nowhere", "to_a_folder"])
def test_recording_is_not_written_through_a_link(
    options: tuple[str, ...], leads: str, tmp_path: Path
) -> None:
    victim = tmp_path / "victim"
    if leads == "to_a_file":
        victim.write_text("precious")
    elif leads == "to_a_folder":
        victim.mkdir()
    (tmp_path / "link").symlink_to(victim)

    result = recorded(["-c", "print(1)"], tmp_path, options=options)

    assert (result.returncode, result.stdout) == (2, b"")
    assert b"is a symbolic link" in result.stderr and b"-o" in result.stderr
    assert (tmp_path / "link").is_symlink()
    assert victim.exists() == (leads != "nowhere")
    assert leads != "to_a_file" or victim.read_text() == "precious"


def test_a_pipe_is_no_place_for_a_recording(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")

    for options in (("-o", "pipe"), ("-f", "-o", "pipe"), ("-f", "-o", "/dev/null")):
        result = recorded(["-c", "print(1)"], tmp_path, options=options)
        assert (result.returncode, result.stdout) == (2, b"")
        assert b"is not a regular file" in result.stderr

    assert (tmp_path / "pipe").is_fifo()


def test_force_replaces_the_file_and_not_its_other_names(tmp_path: Path) -> None:
    (tmp_path / "a.tlm").write_text("old")
    (tmp_path / "a.tlm").chmod(0o644)
    os.link(tmp_path / "a.tlm", tmp_path / "other name")

    result = recorded(["-c", "import numpy"], tmp_path, options=("-q", "-f", "-o", "a.tlm"))

    assert result.returncode == 0, result.stderr
    assert (tmp_path / "other name").read_text() == "old"
    assert stat.S_IMODE((tmp_path / "a.tlm").stat().st_mode) == 0o600
    assert tlmem.read(tmp_path / "a.tlm").complete


def test_link_in_a_child_s_place_is_not_followed(tmp_path: Path) -> None:
    """The child is not recorded and says why; what the link leads to is as it was."""
    victim = tmp_path / "victim"
    victim.write_text("precious")
    program = FORKING.replace(
        "child = os.fork()",
        """
for ahead in range(1, 400):
    os.symlink("victim", f"a.{os.getpid() + ahead}.tlm")
child = os.fork()""",
    )
    (tmp_path / "program.py").write_text(program, encoding="utf-8")

    result = recorded(["program.py"], tmp_path, options=("-o", "a.tlm"))

    assert result.returncode == 0
    assert victim.read_text() == "precious"
    child = int(result.stdout)
    if (tmp_path / f"a.{child}.tlm").is_symlink():  # else process numbers went on elsewhere
        assert f"process {child} is not recorded".encode() in result.stderr
        assert b"is a symbolic link" in result.stderr
    assert tlmem.read(tmp_path / "a.tlm").sealed


@pytest.mark.skipif(os.geteuid() != 0, reason="gives a file to another user, as only root can")
def test_file_of_another_user_in_a_folder_of_all(tmp_path: Path) -> None:
    """With the sticky bit it cannot be taken away, so nothing is written; not even with -f."""
    shared = tmp_path / "shared"
    shared.mkdir()
    (shared / "a.tlm").write_text("not yours")
    (shared / "a.tlm").chmod(0o666)
    os.chown(shared / "a.tlm", 1, 1)
    os.chown(shared, 2, 2)
    shared.chmod(0o1777)
    code = """
import os, sys
from tlmem._native import ffi, lib
os.setgid(STRANGER); os.setuid(STRANGER)
request = ffi.new("tlm_recording_options *")
path = ffi.new("char[]", b"a.tlm")
request.path, request.overwrite = path, 1
status = lib.tlm_recording_start(request)
print(ffi.string(lib.tlm_status_text(status)).decode(), os.strerror(lib.tlm_recording_errno()))
path = ffi.new("char[]", b"b.tlm")
request.path = path
print(lib.tlm_recording_start(request), oct(os.stat("b.tlm").st_mode), os.stat("b.tlm").st_uid)
lib.tlm_recording_stop(1)
""".replace("STRANGER", str(STRANGER))
    script = [sys.executable, "-c", code]
    result = subprocess.run(script, cwd=shared, capture_output=True, text=True, check=False)

    first, second = result.stdout.splitlines()
    assert first.endswith("Operation not permitted"), result.stderr
    assert second == f"0 0o100600 {STRANGER}"
    assert (shared / "a.tlm").read_text() == "not yours"
