"""Sampled small objects of Python, under each allocator that Python can be told to use."""

import sys
from pathlib import Path

import pandas as pd
import pytest
from support.programs import recorded

from tlmem.recording.reader import Recording, read

pytestmark = pytest.mark.skipif(
    sys.platform != "linux", reason="libraries have no slots that are known on this system"
)
KEEPING = """\
import sys
class Point:
    __slots__ = ("x", "y")
def make(count):
    return [Point() for _ in range(count)]
kept = make(100_000)
for _ in range(5):
    gone = make(20_000)
del gone
"""
POINTS = 4
POINT_BYTES = 48
FAST, THOROUGH, RAW = "domains", "domains, each free", "raw domain"


def heap_of(
    folder: Path, program: str, *options: str, **environment: str
) -> tuple[Recording, pd.DataFrame]:
    """The recording of a program, and its Python blocks with the line of the program."""
    (folder / "program.py").write_text(program)
    result = recorded(
        ["-f", "-o", "r.tlm", *options, "program.py"], folder, environment=environment
    )
    assert result.returncode == 0, result.stderr.decode()
    recording = read(folder / "r.tlm")
    assert not recording.problems
    heap = recording.heap[recording.heap["is_python"]]
    line = {}
    for site in heap["born_site"].unique():
        frames = [frame for frame in recording.stack(int(site)) if "program.py" in frame["file"]]
        line[site] = int(frames[0]["line"]) if frames else 0
    return recording, heap.assign(line=heap["born_site"].map(line))


def estimates(heap: pd.DataFrame, size: int) -> tuple[float, float]:
    """Bytes of all blocks of a size, and of those that were freed."""
    mine = heap[heap["size_bytes"] == size]
    mass = mine["size_bytes"] * mine["weight"]
    return float(mass.sum()), float(mass[mine["died_ns"] >= 0].sum())


ALLOCATORS = {
    "pymalloc": (FAST, {}),
    "pymalloc_debug": (THOROUGH, {}),
    "malloc": (RAW, {}),
    "malloc_debug": (THOROUGH, {}),
    "traced": (THOROUGH, {"PYTHONMALLOC": "pymalloc", "PYTHONTRACEMALLOC": "1"}),
}
if sys.version_info >= (3, 13):
    ALLOCATORS["mimalloc"] = (THOROUGH, {})


@pytest.mark.parametrize("allocator", ALLOCATORS)
def test_samples_stand_for_all_small_objects(allocator: str, tmp_path: Path) -> None:
    how, environment = ALLOCATORS[allocator]
    settings = environment or {"PYTHONMALLOC": allocator}
    recording, heap = heap_of(tmp_path, KEEPING, "--heap=20kB", "--heap-seed=5", **settings)
    made, freed = estimates(heap[heap["line"].isin((POINTS - 1, POINTS, POINTS + 1))], POINT_BYTES)

    assert recording.info["heap.python"] == how
    assert made == pytest.approx(200_000 * POINT_BYTES, rel=0.15)
    assert freed == pytest.approx(100_000 * POINT_BYTES, rel=0.25)


def test_every_object_is_seen_once(tmp_path: Path) -> None:
    program = "kept = [bytes(i) for i in range(101, 1101)]\n"
    recording, heap = heap_of(tmp_path, program, "--heap=all")
    header = sys.getsizeof(b"")
    mine = heap[(heap["line"] == 1) & heap["size_bytes"].between(header + 101, header + 1100)]

    assert recording.info["heap.python"] == THOROUGH
    assert sorted(mine["size_bytes"].unique()) == list(range(header + 101, header + 1101))
    assert len(mine) <= 1010


def test_what_moves_keeps_its_content_and_is_one_object(tmp_path: Path) -> None:
    program = "kept = []\n"
    program += "for i in range(40_000):\n"
    program += "    row = bytearray(b'abc')\n"
    program += "    for k in range(60): row += b'0123456'\n"
    program += "    assert row == b'abc' + b'0123456' * 60\n"
    program += "    if i < 20_000: kept.append(row)\n"
    program += "    del row[40:]\n"
    program += "    assert row == (b'abc' + b'0123456' * 60)[:40]\n"
    _, heap = heap_of(tmp_path, program, "--heap=20kB", "--heap-seed=2")
    alive = heap[(heap["died_ns"] < 0) & (heap["line"] > 0)]
    mass = float((alive["weight"] * alive["size_bytes"]).sum())

    row = bytearray(b"abc" + b"0123456" * 60)
    del row[40:]
    assert mass == pytest.approx(20_000 * sys.getsizeof(row) + 180_000, rel=0.35)


@pytest.mark.parametrize("rate", ["all", "20kB"])
def test_what_moves_does_not_put_off_larger_blocks(rate: str, tmp_path: Path) -> None:
    program = "for i in range(20_000):\n    row = bytearray(b'a' * 2_000)\n    del row[5:]\n"
    program += "    row += b'abcdefghij' * 3\n    row += b'abcdefghij' * 100\n"
    program += "kept = [bytes(4_000) for _ in range(5_000)]\n"
    _, heap = heap_of(tmp_path, program, f"--heap={rate}", "--heap-seed=5")
    made, _ = estimates(heap, sys.getsizeof(bytes(4_000)))

    assert made == pytest.approx(5_000 * 4_033, rel=0.1)


def test_the_count_of_blocks_stays_right(tmp_path: Path) -> None:
    program = KEEPING + "before = sys.getallocatedblocks()\nmore = make(500_000)\n"
    program += "there = sys.getallocatedblocks()\ndel more\nafter = sys.getallocatedblocks()\n"
    program += "assert abs(there - before - 500_000) < 300, there - before\n"
    program += "assert abs(after - before) < 300, after - before\n"  # about 1,200 were samples
    heap_of(tmp_path, program, "--heap=20kB")


def test_threads_and_children_count_for_themselves(tmp_path: Path) -> None:
    program = KEEPING.replace("kept = make(100_000)\n", "")
    program += "import os\nfrom concurrent.futures import ThreadPoolExecutor\n"
    program += "with ThreadPoolExecutor(4) as pool: kept = list(pool.map(make, [25_000] * 8))\n"
    program += "child = os.fork()\n"
    program += "if child == 0:\n    del kept\n    mine = make(150_000)\n"
    program += "else:\n    os.waitpid(child, 0)\n"
    recording, heap = heap_of(tmp_path, program, "--heap=20kB", "--heap-seed=5")
    child = read(recording.family[0])
    theirs = child.heap[child.heap["is_python"]]

    assert not child.problems
    made, freed = estimates(heap, POINT_BYTES)
    assert made - freed == pytest.approx(200_000 * POINT_BYTES, rel=0.15)
    made, freed = estimates(theirs, POINT_BYTES)
    assert made == pytest.approx(150_000 * POINT_BYTES, rel=0.2)


def test_tracemalloc_may_come_and_go_over_it(tmp_path: Path) -> None:
    program = "import tracemalloc\ntracemalloc.start()\n" + KEEPING
    program += "assert tracemalloc.get_traced_memory()[0] > 4_000_000\ntracemalloc.stop()\n"
    program += "kept += make(100_000)\n"
    _, heap = heap_of(tmp_path, program, "--heap=20kB", "--heap-seed=5")
    made, _ = estimates(heap, POINT_BYTES)

    assert made == pytest.approx(300_000 * POINT_BYTES, rel=0.15)


def test_a_leak_of_small_objects_is_named_by_its_line(tmp_path: Path) -> None:
    from tlmem.analysis import analyse

    program = KEEPING.replace("kept = make(100_000)\n", "kept = []\n") + "import time\n"
    program += "for i in range(1_000):\n    kept += make(200)\n    make(400)\n"
    program += "    time.sleep(0.0005)\n"
    recording, _ = heap_of(tmp_path, program, "--heap=64kB")
    analysis = analyse(recording)

    assert analysis.verdict.outcome == "python"
    lines = [finding.site.line for finding in analysis.findings if finding.kind == "python-site"]
    assert lines[0] in (POINTS - 1, POINTS, POINTS + 1)


def test_samples_survive_a_kill(tmp_path: Path) -> None:
    program = KEEPING + "import os, signal\nos.kill(os.getpid(), signal.SIGKILL)\n"
    (tmp_path / "program.py").write_text(program)
    recorded(["-f", "-o", "r.tlm", "--heap=20kB", "program.py"], tmp_path)
    heap = read(tmp_path / "r.tlm").heap
    made, freed = estimates(heap[heap["is_python"]], POINT_BYTES)

    assert made - freed == pytest.approx(100_000 * POINT_BYTES, rel=0.25)


def test_signal_handlers_may_allocate(tmp_path: Path) -> None:
    program = KEEPING + "import signal\nrung = []\n"
    program += "def ring(*_): rung.append([Point() for _ in range(100)])\n"
    program += "signal.signal(signal.SIGALRM, ring)\n"
    program += "signal.setitimer(signal.ITIMER_REAL, 0.001, 0.001)\n"
    program += "while len(rung) < 100: make(100)\n"
    program += "signal.setitimer(signal.ITIMER_REAL, 0)\n"
    _, heap = heap_of(tmp_path, program, "--heap=1kB", "--heap-seed=5")

    assert len(heap)


@pytest.mark.parametrize("whose", ["Empty()", "Empty"])
def test_names_that_types_remember_are_not_kept_for_being_samples(
    whose: str, tmp_path: Path
) -> None:
    """A type's table of remembered names is indexed by their addresses, and samples have their own.

    As an extension does that asks for attributes by C strings. A class's attribute is looked for in
    two types, so the table has its name twice.
    """
    program = f"""\
import ctypes
class Empty:
    pass
def ask():
    get = ctypes.pythonapi.PyObject_GetAttrString
    get.argtypes, get.restype = (ctypes.py_object, ctypes.c_char_p), ctypes.py_object
    empty = {whose}
    for i in range(100_000):
        try:
            get(empty, b"a name of forty characters, number %6d" % i)
        except AttributeError:
            pass
ask()
"""
    _, heap = heap_of(tmp_path, program, "--heap=16kB", "--heap-seed=5")
    names = heap[(heap["line"] == 10) & (heap["size_bytes"].between(80, 100))]

    assert len(names) > 300
    assert (names["died_ns"] < 0).sum() <= 8
