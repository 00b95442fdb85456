"""``tlmem record --zombie``: a use after free is caught, named and recorded; nothing else is."""

import json
import re
import signal
import sys
from pathlib import Path

import pytest
from support.programs import command, recorded

import tlmem

ARRAY = """
import ctypes
import sys
import numpy as np

def make():
    return np.ones(10000)

def use(address):
    return ctypes.c_double.from_address(address + 16).value

if "faulthandler" in sys.argv:
    import faulthandler
    faulthandler.enable()
box = [make()]
address = box[0].ctypes.data
box.clear()
np.ones(5000)
print("before", flush=True)
use(address + int(sys.argv[1]))
print("after", flush=True)
"""
MADE, FREED, USED = 7, 17, 10

TENSOR = """
import ctypes
import tlmem

def work():
    with tlmem.scope("epoch"):
        return tlmem.ones(2000).numpy().ctypes.data

address = work()
print("before", flush=True)
ctypes.c_double.from_address(address).value = 3.0
"""

PAST_THE_END = """
import ctypes
import numpy as np
a = np.zeros(512)
print("before", flush=True)
ctypes.c_double.from_address(a.ctypes.data + 4096).value = 1.0
"""

SMALL = """
import ctypes
import numpy as np
box = [np.ones(300) for _ in range(64)]
addresses = [a.ctypes.data for a in box]
box.clear()
if __import__("sys").argv[1] == "write":
    ctypes.c_double.from_address(addresses[40]).value = 1.0
print(sum(ctypes.c_double.from_address(a).value == 1.0 for a in addresses))
"""

WITHOUT_GIL = """
import ctypes
import threading
import numpy as np

def work():
    return np.ones(100000).ctypes.data

view = np.ctypeslib.as_array((ctypes.c_double * 100000).from_address(work()))

def use():
    np.add(view, 1.0)

thread = threading.Thread(target=use)
thread.start()
thread.join()
"""

CHILDREN = """
import ctypes
import multiprocessing
import sys
import numpy as np

def child(uses):
    a = np.ones(5000)
    address = a.ctypes.data
    del a
    if uses:
        ctypes.c_double.from_address(address).value

if __name__ == "__main__":
    kind = multiprocessing.get_context(sys.argv[1])
    for uses in (False, True):
        process = kind.Process(target=child, args=(uses,))
        process.start()
        process.join()
        print(process.exitcode, flush=True)
"""

HEALTHY = """
import os
import sys
import time
import numpy as np
import tlmem

total = 0.0
end = time.monotonic() + 0.6
while time.monotonic() < end:
    for k in range(1, 60):
        a = np.arange(k * 50.0)
        b = np.resize(a[::2] + 1, k * 70)
        c = np.concatenate([a, b])
        c.sort()
        d = np.zeros(k)
        d.resize(1000 - k, refcheck=False)
        d.resize(k * 20, refcheck=False)
        total += c[-1] + d.sum()
    with tlmem.scope("step"):
        x = tlmem.ones(3000) * 2
        total += float(x.numpy()[0])
if os.fork() == 0:
    a = np.ones(9000)
    del a
    os._exit(0)
os.wait()
print("done")
sys.exit(7)
"""


def record(
    source: str, folder: Path, *arguments: str, options: tuple[str, ...] = ("--zombie",), code: int
) -> tuple[str, str]:
    """Records a program to ``folder/z.tlm``; its stdout and stderr."""
    (folder / "program.py").write_text(source, encoding="utf-8")
    words = ["program.py", *arguments]
    done = recorded(words, folder, options=("-f", "-o", "z.tlm", *options))

    assert done.returncode == code, done.stderr.decode()
    return done.stdout.decode(), done.stderr.decode()


def misuse(folder: Path) -> dict:
    """The one misuse of the recording."""
    (row,) = tlmem.read(folder / "z.tlm").misuses.to_dict("records")
    return row


def lines_after(said: str, what: str) -> list[int]:
    """Line numbers of the program in the stack under a heading."""
    block = said.split(f"tlmem:   {what}:\n")[1]
    block = re.split(r"^tlmem:   \S", block, flags=re.MULTILINE)[0]
    return [int(n) for n in re.findall(r"program\.py:(\d+) in", block)]


@pytest.mark.parametrize("later", [(), ("faulthandler",)])
def test_a_use_of_a_freed_array_is_told_with_three_stacks_and_ends_the_program_as_ever(
    tmp_path: Path, later: tuple[str, ...]
) -> None:
    out, said = record(ARRAY, tmp_path, "0", *later, code=-signal.SIGSEGV)

    assert out == "before\n"
    assert "tlmem: use after free: the program has " in said
    assert " byte 16 of a NumPy array of 80000 bytes after it had been freed.\n" in said
    assert lines_after(said, "used at") == [USED, 20]
    assert lines_after(said, "freed at") == [FREED]
    assert lines_after(said, "allocated at") == [MADE, 15]
    assert ("Fatal Python error: Segmentation fault" in said) == bool(later)


def test_a_use_of_a_freed_array_is_an_error_in_the_report_of_the_killed_program(
    tmp_path: Path,
) -> None:
    record(ARRAY, tmp_path, "0", code=-signal.SIGSEGV)
    done = command(["report", "--format", "json", "z.tlm"], tmp_path)
    (found,) = [f for f in json.loads(done.stdout)["findings"] if f["kind"] == "use-after-free"]

    assert (found["severity"], found["site"]["line"]) == ("error", USED)
    assert f"was allocated at program.py:{MADE}" in found["evidence"]


def test_a_view_of_a_freed_tensor_traps(tmp_path: Path) -> None:
    out, said = record(TENSOR, tmp_path, code=-signal.SIGSEGV)
    row = misuse(tmp_path)

    assert out == "before\n"
    assert " byte 0 of a tensor of 8000 bytes (handle " in said
    assert lines_after(said, "used at") == [11]
    assert lines_after(said, "freed at") == [6, 9]
    assert lines_after(said, "allocated at") == [7, 9]
    assert row["misuse"] == "use-after-free" and row["object"] >= 0


def test_a_loop_of_numpy_in_a_thread_without_the_gil_is_named(tmp_path: Path) -> None:
    _, said = record(WITHOUT_GIL, tmp_path, code=-signal.SIGSEGV)

    assert re.search(r" has (read|used) byte 0 of a NumPy array of 800000 bytes ", said)
    assert lines_after(said, "used at") == [12]
    assert lines_after(said, "freed at") == [7, 9]
    assert lines_after(said, "allocated at") == [7, 9]


@pytest.mark.parametrize("kind", ["fork", "spawn"])
def test_children_have_zombies_of_their_own(tmp_path: Path, kind: str) -> None:
    out, said = record(CHILDREN, tmp_path, kind, options=("-q", "--zombie"), code=0)

    assert out == f"0\n{-signal.SIGSEGV}\n"
    assert said.count("tlmem: use after free") == 1
    assert lines_after(said, "freed at")[0] == 10
    assert lines_after(said, "used at")[0] == 12


def test_the_byte_behind_an_array_traps(tmp_path: Path) -> None:
    out, said = record(PAST_THE_END, tmp_path, code=-signal.SIGSEGV)

    assert out == "before\n"
    assert "byte 4096 of a NumPy array of 4096 bytes, which is past its end" in said
    assert lines_after(said, "allocated at") == [4]
    assert misuse(tmp_path)["misuse"] == "past-the-end"


def test_a_small_array_that_is_written_after_its_free_is_found_at_the_end(tmp_path: Path) -> None:
    out, said = record(SMALL, tmp_path, "write", code=0)
    row = misuse(tmp_path)
    stack = tlmem.read(tmp_path / "z.tlm").stack(int(row["site"]))

    assert out == "1\n"  # the others have lost their contents
    assert row["misuse"] == "written-after-free" and stack[0]["line"] == 6
    assert "1 uses after a free were found" in said


def test_samples_of_small_arrays_trap(tmp_path: Path) -> None:
    out, said = record(SMALL, tmp_path, "read", options=("--zombie=sample",), code=-signal.SIGSEGV)

    assert out == "" and "byte 0 of a NumPy array of 2400 bytes after it had been freed" in said


def test_without_zombie_mode_nothing_is_said(tmp_path: Path) -> None:
    out, said = record(SMALL, tmp_path, "read", options=("-q",), code=0)

    assert out.strip().isdecimal() and said == ""
    assert len(tlmem.read(tmp_path / "z.tlm").misuses) == 0


@pytest.mark.parametrize("option", ["--zombie", "--zombie=sample", "--zombie=1MB"])
def test_a_healthy_program_is_silent_and_ends_as_ever(tmp_path: Path, option: str) -> None:
    out, said = record(HEALTHY, tmp_path, options=(option,), code=7)
    recording = tlmem.read(tmp_path / "z.tlm")

    assert out == "done\n"
    assert re.search(r"^tlmem: zombie: .* none was touched\.$", said, re.MULTILINE)
    assert all(line.startswith("tlmem: ") for line in said.splitlines())
    assert "Leak" not in said and "native memory grows by" not in said
    assert recording.problems == [] and len(recording.misuses) == 0


@pytest.mark.skipif(sys.platform == "win32", reason="there are no signals of POSIX")
def test_a_signal_that_is_sent_ends_the_program_as_ever(tmp_path: Path) -> None:
    source = "import os, signal\nos.kill(os.getpid(), signal.SIGSEGV)\n"
    out, said = record(source, tmp_path, code=-signal.SIGSEGV)

    assert (out, said) == ("", "")
