"""What samples say when a program takes memory of one kind at a time.

The program asks for a sample before and after each step, so no clock decides what is seen.
"""

import sys
from pathlib import Path

import pandas as pd
import pytest
from support import programs

import tlmem

MB = 1_000_000
PROGRAM = """
import ctypes, sys
import numpy as np
import tlmem
from tlmem._native import lib

libc = ctypes.CDLL(None)
libc.malloc.restype, libc.malloc.argtypes = ctypes.c_void_p, [ctypes.c_size_t]
libc.memset.argtypes = [ctypes.c_void_p, ctypes.c_int, ctypes.c_size_t]
libc.mallopt(-3, 64 << 20)  # from here on blocks below 64 MB come from the heap
kept = {}

def step(name, call):
    tlmem.mark(name, 0)
    lib.tlm_sample_now()
    kept[name] = call()
    lib.tlm_sample_now()
    tlmem.mark(name, 1)

def native(size):
    block = libc.malloc(size)
    libc.memset(block, 1, size)

def drop():
    kept.clear()

step("untouched", lambda: np.empty(80_000_000, np.uint8))
step("touched", lambda: np.ones(80_000_000, np.uint8))
step("native", lambda: native(30_000_000))
step("native untouched", lambda: libc.malloc(40_000_000))
step("bytes", lambda: bytes(20_000_000))
step("objects", lambda: [float(i) for i in range(1_000_000)])
step("drop", drop)
"""


def changes(recording: tlmem.Recording) -> pd.DataFrame:
    """How much each metric changed in each step of the program."""
    marks = recording.marks
    samples = recording.samples.set_index("time_ns").ffill()
    rows = {}
    for name in marks.label.unique():
        begin, end = marks.time_ns[marks.label == name]
        inside = samples[(samples.index >= begin) & (samples.index <= end)]
        rows[name] = inside.iloc[-1] - inside.iloc[0]
    return pd.DataFrame(rows).T


def record(
    folder: Path,
    program: str,
    *options: str,
    environment: "dict[str, str] | None" = None,
) -> tlmem.Recording:
    """The recording of a program, with few samples of its own."""
    (folder / "program.py").write_text(program)
    result = programs.recorded(
        ["program.py"],
        folder,
        environment=environment,
        options=("-q", "-o", "made.tlm", *options),
    )
    assert (result.returncode, result.stderr.decode()) == (0, "")
    return tlmem.read(folder / "made.tlm")


@pytest.mark.skipif(sys.platform != "linux", reason="the numbers are those of Linux and glibc")
def test_each_kind_of_memory_shows_in_its_own_metric(tmp_path: Path) -> None:
    change = changes(record(tmp_path, PROGRAM)) / MB

    def is_about(step: str, metric: str, expected: float) -> None:
        assert abs(change.at[step, metric] - expected) < 4, (step, metric, change.loc[step])

    for step, metric, expected in [
        ("untouched", "untouched", 80),
        ("untouched", "anon", 0),
        ("untouched", "malloc_used", 80),
        ("untouched", "tracked", 80),
        ("touched", "untouched", 0),
        ("touched", "anon", 80),
        ("touched", "tracked", 80),
        ("touched", "python_large", 0),
        ("native", "anon", 30),
        ("native", "malloc_used", 30),
        ("native", "tracked", 0),
        ("native", "python_large", 0),
        ("native untouched", "anon", 0),
        ("native untouched", "malloc_used", 40),
        ("bytes", "python_large", 20),
        ("bytes", "malloc_used", 20),
        ("bytes", "tracked", 0),
        ("objects", "python_arena", 32),
        ("objects", "python_large", 8),
        ("drop", "tracked", -160),
        ("drop", "untouched", -80),
        ("drop", "python_large", -28),
        ("drop", "python_arena", -32),
    ]:
        is_about(step, metric, expected)


@pytest.mark.skipif(sys.platform != "linux", reason="the numbers are those of Linux and glibc")
def test_resident_memory_is_the_sum_of_its_parts(tmp_path: Path) -> None:
    recording = record(tmp_path, PROGRAM)
    last = recording.samples.ffill().iloc[-2]

    parts = last.malloc_used + last.python_arena + last.recorder - last.untouched
    assert last.anon <= parts + last.malloc_free + 8 * MB
    assert last.high_water >= last.anon + last.file - MB


def test_the_stack_of_frames_counts_as_far_as_it_was_used(tmp_path: Path) -> None:
    program = """
import sys, threading
import tlmem
from tlmem._native import lib

def begin(name):
    tlmem.mark(name, 0); lib.tlm_sample_now()

def end(name):
    lib.tlm_sample_now(); tlmem.mark(name, 1)

def down(depth):
    if depth:
        down(depth - 1)
    else:
        end("deep")

sys.setrecursionlimit(200_000)
begin("deep")
begin("gone")
down(100_000)
end("gone")
wait = threading.Event()
threading.stack_size(64 << 10)
threads = [threading.Thread(target=wait.wait) for _ in range(400)]
begin("threads")
for thread in threads: thread.start()
end("threads")
wait.set()
"""
    change = changes(record(tmp_path, program)).python_arena / MB

    assert change["deep"] > 8  # 88 bytes and more for each frame
    assert -3 < change["gone"] < 3  # an arena that came meanwhile
    assert change["threads"] < 4  # of 400 pieces of 16 kB


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux says which pages were touched")
def test_the_newest_arena_counts_as_far_as_it_was_touched(tmp_path: Path) -> None:
    """A program that fills its heap evenly is seen to do so, and not an arena of 1 MB at a time."""
    program = """
import tlmem
from tlmem._native import lib
kept = []
for step in range(100):
    kept.append([float(i) for i in range(2_000)])
    lib.tlm_sample_now()
"""
    recording = record(tmp_path, program)
    arenas = recording.samples.python_arena.dropna().to_numpy()[-100:]
    steps = arenas[1:] - arenas[:-1]

    assert arenas[-1] - arenas[0] > 4 * MB
    assert steps.max() < MB / 2
    assert (steps > 0).sum() > 90


@pytest.mark.parametrize(
    ("allocator", "arena", "large"),
    [("pymalloc", True, True), ("malloc", True, True), ("debug", True, False)],
)
def test_what_is_known_of_pythons_heap_depends_on_its_allocator(
    tmp_path: Path, allocator: str, arena: bool, large: bool
) -> None:
    program = """
import tlmem
from tlmem._native import lib
tlmem.mark("objects", 0); lib.tlm_sample_now()
kept = [float(i) for i in range(500_000)]
lib.tlm_sample_now(); tlmem.mark("objects", 1)
"""
    recording = record(tmp_path, program, environment={"PYTHONMALLOC": allocator})
    known = recording.samples.notna().any()
    grown = changes(recording).loc["objects"].fillna(0)

    assert (bool(known.python_arena), bool(known.python_large)) == (arena, large)
    assert grown.python_arena + grown.python_large > 12 * MB


def test_pythons_allocators_are_wrapped_and_given_back(tmp_path: Path) -> None:
    program = """
import tracemalloc
from tlmem._native import lib
ok, on, off = lib.TLM_OK, lib.TLM_ALREADY_RUNNING, lib.TLM_NOT_RUNNING
assert lib.tlm_pyheap_uninstall() == off
assert lib.tlm_pyheap_install() == ok and lib.tlm_pyheap_install() == on
before = [bytes(1000) for _ in range(1000)]
assert lib.tlm_pyheap_uninstall() == ok and lib.tlm_pyheap_uninstall() == off
del before
assert lib.tlm_pyheap_install() == ok
tracemalloc.start()  # lies over our wrapper, which therefore stays, doing nothing
assert lib.tlm_pyheap_uninstall() == lib.TLM_UNSUPPORTED
kept = [bytes(1000) for _ in range(1000)] + [float(i) for i in range(100_000)]
assert tracemalloc.get_traced_memory()[0] > 3_000_000
tracemalloc.stop()  # puts our wrapper back
assert lib.tlm_pyheap_install() == ok and lib.tlm_pyheap_uninstall() == ok
del kept
"""
    result = programs.plain(["-c", program], tmp_path)
    assert (result.returncode, result.stderr.decode()) == (0, "")


def test_page_faults_and_smaps_on_request_only(tmp_path: Path) -> None:
    program = "import numpy as np\nkept = np.ones(3_000_000)\n"
    on_request = ["minor_faults", "major_faults"]
    if sys.platform == "linux":
        on_request += ["pss", "private"]
    asked = record(tmp_path, program, "--smaps").samples
    plain = record(tmp_path, program, "-f").samples

    assert asked[on_request].notna().any().all()
    assert plain[on_request].isna().all().all()
    assert asked.minor_faults.dropna().is_monotonic_increasing


@pytest.mark.skipif(
    not Path("/proc/self/schedstat").exists(), reason="this system does not count delays"
)
def test_how_long_the_main_thread_waited_for_a_processor(tmp_path: Path) -> None:
    """One processor for a program and for a process that never rests: each waits for the other."""
    program = """
import os, subprocess, sys, time
os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
end = time.process_time() + 0.5
while time.process_time() < end:
    pass
other = subprocess.Popen([sys.executable, "-c", "while True: pass"])
end = time.process_time() + 0.5
while time.process_time() < end:
    pass
other.kill()
other.wait()
"""
    delayed = record(tmp_path, program).samples.delayed.dropna()

    assert delayed.is_monotonic_increasing
    assert 0.2e9 <= delayed.iloc[-1] - delayed.iloc[0]


def test_a_forked_child_samples_itself(tmp_path: Path) -> None:
    program = """
import os
import numpy as np
pid = os.fork()
kept = np.ones(50_000_000 if pid == 0 else 1, np.uint8)
if pid:
    os.waitpid(pid, 0)
else:
    from tlmem._native import lib
    lib.tlm_sample_now()
"""
    recording = record(tmp_path, program)
    [child] = (tlmem.read(path) for path in recording.family if path.name != "made.tlm")

    assert child.parent_pid == recording.pid
    assert child.samples.anon.max() > recording.samples.anon.max() + 40 * MB


def test_samples_are_taken_while_the_program_runs(tmp_path: Path) -> None:
    program = """
import time
import numpy as np
kept = []
for _ in range(300):
    kept.append(np.ones(10_000))
    time.sleep(0.003)
"""
    recording = record(tmp_path, program, "--rss-interval", "5")
    samples = recording.samples

    assert len(samples) > 10
    assert samples.malloc_used.notna().sum() > 10
    assert samples.time_ns.is_monotonic_increasing
    assert samples.anon.iloc[-1] > samples.anon.iloc[0]
