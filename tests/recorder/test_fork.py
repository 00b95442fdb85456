"""Forked children record to files of their own; parent and child know nothing of each other's."""

import sys
from pathlib import Path

import pytest
from support.programs import assert_same, plain, recorded

import tlmem
from tlmem.recording import family

FORK = """
import os, sys
import numpy as np
before = [np.empty(1000, np.uint8) for _ in range(10)]
child = os.fork()
if child == 0:
    made = [np.empty(2000, np.uint8) for _ in range(20)]
    del before
    grandchild = os.fork()
    if grandchild == 0:
        made = [np.empty(3000, np.uint8) for _ in range(30)]
        LEAVE
    print(os.waitstatus_to_exitcode(os.waitpid(grandchild, 0)[1]), flush=True)
    sys.exit(5)
after = [np.empty(4000, np.uint8) for _ in range(40)]
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""


def counts(path: Path) -> dict[int, int]:
    """How many arrays of each size were made."""
    sizes = tlmem.read(path).objects.size_bytes.value_counts()
    return {int(k): int(v) for k, v in sizes.items() if k in (1000, 2000, 3000, 4000)}


def by_size(folder: Path) -> dict[int, Path]:
    """The recordings in ``folder`` by the size of the arrays that only they made."""
    return {max(counts(path), default=0): path for path in folder.glob("*.tlm")}


@pytest.mark.parametrize("leave", ["sys.exit(3)", "os._exit(3)", "1 / 0", "os.abort()"])
def test_each_process_has_a_file_with_its_own_arrays(leave: str, tmp_path: Path) -> None:
    (tmp_path / "fork.py").write_text(FORK.replace("LEAVE", leave), encoding="utf-8")
    python = plain(["fork.py"], tmp_path)
    done = recorded(["fork.py"], tmp_path, options=("-q", "-o", "a.tlm"))
    files = by_size(tmp_path)

    assert (done.returncode, done.stdout, done.stderr) == (
        python.returncode,
        python.stdout,
        python.stderr,
    )
    assert {size: counts(path) for size, path in files.items()} == {
        4000: {1000: 10, 4000: 40},
        2000: {2000: 20},
        3000: {3000: 30},
    }


def test_files_are_named_after_the_parents_and_linked(tmp_path: Path) -> None:
    (tmp_path / "fork.py").write_text(FORK.replace("LEAVE", "sys.exit(3)"), encoding="utf-8")
    recorded(["fork.py"], tmp_path, options=("-q", "-o", "a.tlm"))
    files = by_size(tmp_path)
    parent, child, grandchild = (tlmem.read(files[size]) for size in (4000, 2000, 3000))

    assert files[4000].name == "a.tlm"
    assert files[2000].name == f"a.{child.pid}.tlm"
    assert files[3000].name == f"a.{child.pid}.{grandchild.pid}.tlm"
    assert (parent.parent_pid, child.parent_pid) == (0, parent.pid)
    assert grandchild.parent_pid == child.pid
    assert parent.sealed and child.sealed and grandchild.sealed
    assert (parent.info["exit"], child.info["exit"], grandchild.info["exit"]) == ("0", "5", "3")
    assert {Path(p).name for p in family.find(files[4000])} >= {files[2000].name}


def test_arrays_of_the_parent_that_a_child_frees_are_unknown_to_it(tmp_path: Path) -> None:
    (tmp_path / "fork.py").write_text(FORK.replace("LEAVE", "sys.exit(3)"), encoding="utf-8")
    recorded(["fork.py"], tmp_path, options=("-q", "-o", "a.tlm"))
    child = tlmem.read(by_size(tmp_path)[2000])

    assert child.totals.unknown_frees >= 10
    assert not child.problems


def test_child_keeps_the_parents_recording_options(tmp_path: Path) -> None:
    (tmp_path / "fork.py").write_text(FORK.replace("LEAVE", "sys.exit(3)"), encoding="utf-8")
    options = ("-q", "-o", "a.tlm", "--stack-depth", "3", "--max-file", "9MB")
    recorded(["fork.py"], tmp_path, options=options)
    child = tlmem.read(by_size(tmp_path)[3000])

    assert child.info["stack_depth"] == "3"
    assert child.limit_bytes == 9_000_000
    assert child.info["command"] == "fork.py"


def test_only_the_first_process_speaks(tmp_path: Path) -> None:
    (tmp_path / "fork.py").write_text(FORK.replace("LEAVE", "sys.exit(3)"), encoding="utf-8")
    done = recorded(["fork.py"], tmp_path, options=("-o", "a.tlm"))

    assert len(done.stderr.splitlines()) == 2


def test_fork_from_a_thread_is_followed(tmp_path: Path) -> None:
    program = """
import os, threading
import numpy as np
def work():
    child = os.fork()
    if child == 0:
        made = [np.empty(2000, np.uint8) for _ in range(20)]
        os._exit(0)
    os.waitpid(child, 0)
thread = threading.Thread(target=work)
thread.start()
thread.join()
made = [np.empty(4000, np.uint8) for _ in range(40)]
"""
    done = recorded(["-c", program], tmp_path, options=("-q", "-o", "a.tlm"))

    assert done.returncode == 0
    assert {size: counts(p) for size, p in by_size(tmp_path).items()} == {
        4000: {4000: 40},
        2000: {2000: 20},
    }


def test_fork_while_other_threads_allocate(tmp_path: Path) -> None:
    program = """
import os, threading
import numpy as np
stop = threading.Event()
def work():
    while not stop.is_set():
        np.empty(5000, np.uint8)
threads = [threading.Thread(target=work) for _ in range(3)]
for thread in threads: thread.start()
for _ in range(15):
    child = os.fork()
    if child == 0:
        made = [np.empty(2000, np.uint8) for _ in range(20)]
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
stop.set()
"""
    done = recorded(
        ["-W", "ignore", "-c", program][2:],
        tmp_path,
        options=("-q", "-o", "a.tlm"),
        environment={"PYTHONWARNINGS": "ignore"},
    )
    files = sorted(tmp_path.glob("a.*.tlm"))

    assert (done.returncode, done.stderr) == (0, b"")
    assert [counts(path) for path in files] == [{2000: 20}] * 15
    assert tlmem.read(tmp_path / "a.tlm").sealed


@pytest.mark.skipif(sys.version_info < (3, 12), reason="Python 3.12 began to warn of threads")
@pytest.mark.parametrize(
    "handlers", ["", "import logging\nos.register_at_fork(after_in_parent=lambda: sorted([2, 1]))"]
)
def test_python_does_not_count_our_thread_when_it_forks(handlers: str, tmp_path: Path) -> None:
    """Neither one that is started again before the fork has ended, nor one that is about to end."""
    program = f"""
import os
{handlers}
for _ in range(50):
    child = os.fork()
    if child == 0:
        os._exit(0)
    os.waitpid(child, 0)
"""
    assert_same(["-c", program], tmp_path, flags=["-W", "always"])


def test_sampling_goes_on_after_a_fork(tmp_path: Path) -> None:
    program = """
import os, time
from tlmem._native import ffi, lib
counters, deadline = ffi.new("tlm_recording_statistics *"), time.monotonic() + 60
child = os.fork()
while counters.events < 300 and time.monotonic() < deadline:  # in both, of which one may stall
    time.sleep(0.01)  # nothing but samples is recorded, each of less than 30 numbers
    lib.tlm_recording_stats(counters)
if child == 0:
    os._exit(0)
os.waitpid(child, 0)
"""
    recorded(["-c", program], tmp_path, options=("-q", "-o", "a.tlm", "--rss-interval", "5"))

    for path in tmp_path.glob("*.tlm"):
        assert len(tlmem.read(path).samples) >= 10


def test_child_that_cannot_record_runs_all_the_same(tmp_path: Path) -> None:
    program = """
import os, shutil
import numpy as np
os.mkdir("gone")
with __import__("tlmem").Recorder("gone/a.tlm"):
    os.rename("gone", "moved")
    child = os.fork()
    if child == 0:
        np.empty(2000, np.uint8)
        os._exit(7)
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""
    done = plain(["-c", program], tmp_path)

    assert (done.returncode, done.stdout, done.stderr) == (0, b"7\n", b"")
    assert [path.name for path in (tmp_path / "moved").iterdir()] == ["a.tlm"]
