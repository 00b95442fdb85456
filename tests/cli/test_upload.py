"""``record --upload``: a copy in storage, however the program ends; the file stays."""

import signal
import subprocess
import sys
from pathlib import Path

import pytest

import tlmem
from tlmem.export.upload import CannotUpload, check_url, upload

pytest.importorskip("fsspec", reason="fsspec is not installed (tlmem[remote])")

KEEPS = "import numpy as np; kept = [np.zeros(100) for _ in range(9)]"


def record(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "tlmem", "record", "-o", "a.tlm", *words]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True)


def test_a_recording_is_copied_and_stays(tmp_path: Path) -> None:
    url = f"file://{tmp_path}/there"
    (tmp_path / "there").mkdir()
    done = record(tmp_path, "--upload", f"{url}/", "-c", KEEPS)

    assert done.returncode == 0
    assert f"tlmem: copied to {url}/a.tlm\n" in done.stderr
    assert (tmp_path / "there/a.tlm").read_bytes() == (tmp_path / "a.tlm").read_bytes()
    assert tlmem.read(f"{url}/a.tlm").complete


def test_a_program_that_a_signal_ended_is_copied_and_its_end_passed_on(tmp_path: Path) -> None:
    (tmp_path / "there").mkdir()
    killed = f"{KEEPS}; import os, signal; os.kill(os.getpid(), signal.SIGKILL)"
    done = record(tmp_path, "-q", "--upload", f"file://{tmp_path}/there", "-c", killed)

    assert done.returncode == -signal.SIGKILL
    assert done.stderr == ""
    assert tlmem.read(tmp_path / "there/a.tlm").totals.total_count >= 9


def test_a_copy_that_fails_is_said_and_the_file_stays(tmp_path: Path) -> None:
    done = record(tmp_path, "-q", "--upload", f"file://{tmp_path}/not-there", "-c", KEEPS)

    assert done.returncode == 2
    assert "a.tlm could not be copied to file://" in done.stderr
    assert (tmp_path / "a.tlm").exists()


def test_what_is_no_url_is_refused_before_the_program_starts(tmp_path: Path) -> None:
    done = record(tmp_path, "--upload", "there", "-c", "print('started')")

    assert (done.returncode, done.stdout) == (2, "")
    assert "--upload there is not a URL; write for example s3://bucket/run" in done.stderr
    with pytest.raises(CannotUpload):
        check_url("there")


def test_recordings_of_children_are_copied_too(tmp_path: Path) -> None:
    from support.fleets import write_rank

    first = write_rank(tmp_path / "a.tlm", None, pid=10, steps=1)
    write_rank(tmp_path / "a.11.tlm", None, pid=11, parent_pid=10, steps=1)

    assert upload(first, "memory://upload") == [
        "memory://upload/a.tlm",
        "memory://upload/a.11.tlm",
    ]
    with pytest.raises(CannotUpload, match="was not written"):
        upload(tmp_path / "b.tlm", "memory://upload")
