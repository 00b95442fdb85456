"""Workers of ``multiprocessing`` record to files of their own, whatever starts them."""

import sys
from pathlib import Path

import pytest
from support.programs import plain, recorded

import tlmem

METHODS = ["fork", "spawn", "forkserver"]
WORKERS = """
import atexit, multiprocessing, os, sys, threading
import numpy as np

class Thing:
    def __init__(self, n):
        self.n = n

def late():
    kept_late.append(np.empty(6000, np.uint8))

kept, kept_late = [], []

def work(thing):
    kept.extend(np.empty(2000, np.uint8) for _ in range(thing.n))
    threading.Timer(0.02, late).start()
    return Thing(len(kept))

if __name__ == "__main__":
    multiprocessing.set_start_method(sys.argv[1])
    mine = [np.empty(4000, np.uint8) for _ in range(40)]
    with multiprocessing.Pool(1) as pool:
        print([thing.n for thing in pool.map(work, [Thing(10), Thing(20)])])
        pool.close()
        pool.join()
    worker = multiprocessing.Process(target=work, args=(Thing(5),))
    worker.start()
    worker.join()
    failing = multiprocessing.Process(target=sys.exit, args=(9,))
    failing.start()
    failing.join()
    print(worker.exitcode, failing.exitcode, multiprocessing.active_children())
"""


def made(path: Path, size: int) -> int:
    """How many arrays of this size a recording has."""
    return int((tlmem.read(path).objects.size_bytes == size).sum())


@pytest.mark.parametrize("method", METHODS)
def test_each_worker_has_a_sealed_file(method: str, tmp_path: Path) -> None:
    (tmp_path / "workers.py").write_text(WORKERS, encoding="utf-8")
    python = plain(["workers.py", method], tmp_path)
    done = recorded(["workers.py", method], tmp_path, options=("-q", "-o", "a.tlm"))
    parent = tlmem.read(tmp_path / "a.tlm")
    workers = sorted(tmp_path.glob("a.*.tlm"), key=lambda path: made(path, 2000))

    assert (done.returncode, done.stdout, done.stderr) == (
        python.returncode,
        python.stdout,
        python.stderr,
    )
    assert done.stdout == b"[10, 30]\n0 9 []\n"
    assert made(tmp_path / "a.tlm", 4000) == 40
    assert [made(path, 2000) for path in workers] == [0, 5, 30]
    # Their threads end after the worker's own work, and still belong to the recording.
    assert [made(path, 6000) for path in workers] == [0, 1, 2]
    for path in workers:
        recording = tlmem.read(path)
        assert recording.sealed and recording.parent_pid == parent.pid
        assert path.name == f"a.{recording.pid}.tlm"
        assert recording.info["command"] == f"workers.py {method}"


@pytest.mark.parametrize("method", METHODS)
def test_nothing_of_ours_is_left_in_a_worker(method: str, tmp_path: Path) -> None:
    program = """
import multiprocessing, os, sys
def look():
    print(sorted(k for k in os.environ if "TLM" in k), flush=True)
    print(sorted(vars(sys.modules["__main__"]))[:12], sys.path[0], sys.argv, flush=True)
    print([type(f).__name__ for f in sys.meta_path], flush=True)
    import multiprocessing.util
    # CPython's own tests count these.
    print(len(multiprocessing.util._afterfork_registry), flush=True)
if __name__ == "__main__":
    multiprocessing.set_start_method(sys.argv[1])
    worker = multiprocessing.Process(target=look)
    worker.start()
    worker.join()
"""
    (tmp_path / "look.py").write_text(program, encoding="utf-8")
    python = plain(["look.py", method], tmp_path)
    done = recorded(["look.py", method], tmp_path)

    assert (done.returncode, done.stdout, done.stderr) == (
        python.returncode,
        python.stdout,
        python.stderr,
    )


@pytest.mark.parametrize("method", METHODS)
def test_terminated_worker_leaves_an_open_file(method: str, tmp_path: Path) -> None:
    program = """
import multiprocessing, sys
import numpy as np
def work(ready):
    made = [np.empty(2000, np.uint8) for _ in range(20)]
    ready.send(1)
    ready.recv()
if __name__ == "__main__":
    multiprocessing.set_start_method(sys.argv[1])
    ours, theirs = multiprocessing.Pipe()
    worker = multiprocessing.Process(target=work, args=(theirs,))
    worker.start()
    ours.recv()
    worker.terminate()
    worker.join()
    print(worker.exitcode)
"""
    (tmp_path / "stop.py").write_text(program, encoding="utf-8")
    done = recorded(["stop.py", method], tmp_path, options=("-q", "-o", "a.tlm"))
    (worker,) = tmp_path.glob("a.*.tlm")

    assert (done.returncode, done.stdout, done.stderr) == (0, b"-15\n", b"")
    assert made(worker, 2000) == 20
    assert tlmem.read(worker).state == "open"


def test_module_run_with_m_spawns_workers(tmp_path: Path) -> None:
    (tmp_path / "package").mkdir()
    (tmp_path / "package" / "__init__.py").write_text("", encoding="utf-8")
    (tmp_path / "package" / "inner.py").write_text(WORKERS, encoding="utf-8")
    done = recorded(["-m", "package.inner", "spawn"], tmp_path, options=("-q", "-o", "a.tlm"))

    assert (done.returncode, done.stderr) == (0, b"")
    assert done.stdout == b"[10, 30]\n0 9 []\n"
    assert len(list(tmp_path.glob("a.*.tlm"))) == 3


def test_other_programs_are_not_recorded(tmp_path: Path) -> None:
    program = """
import os, subprocess, sys
command = [sys.executable, "-c", "import numpy; numpy.ones(5)"]
subprocess.run(command, check=True)
child = os.spawnv(os.P_NOWAIT, sys.executable, command[:1] + ["-c", "'pass'"])
print(os.waitpid(child, 0)[1])
"""
    done = recorded(["-c", program], tmp_path, options=("-q", "-o", "a.tlm"))
    executed = [path for path in tmp_path.glob("a.*.tlm") if len(tlmem.read(path).objects)]

    assert (done.returncode, done.stdout) == (0, b"0\n"), (done.stderr, sys.version)
    assert executed == []
