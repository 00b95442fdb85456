"""Which array data the NumPy source sees: every thread's, older arrays, no foreign handler."""

import ctypes
import gc
import json
import sys
from pathlib import Path

import numpy as np
from recorder.test_stacks import record
from support import programs

import tlmem
from tlmem._native import ffi, lib

HANDLER_SLOT = 306


def counts_by_size(recording: tlmem.Recording) -> dict[int, int]:
    """How many allocations there were of each size."""
    counts = recording.objects.size_bytes.value_counts()
    return dict(zip(counts.index.tolist(), counts.tolist(), strict=True))


def handler_words() -> list[int]:
    """The five words of NumPy's default allocator: context and functions."""
    umath = sys.modules["numpy._core._multiarray_umath"]
    pointer = ctypes.pythonapi.PyCapsule_GetPointer
    pointer.restype, pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    table = ctypes.cast(pointer(umath._ARRAY_API, None), ctypes.POINTER(ctypes.c_void_p))
    slot = ctypes.cast(table[HANDLER_SLOT], ctypes.POINTER(ctypes.py_object))
    address = pointer(slot.contents.value, b"mem_handler")
    return list((ctypes.c_uint64 * 5).from_address(address + 128))


def test_every_thread_is_seen(tmp_path: Path) -> None:
    program = """
import asyncio, concurrent.futures, contextvars, multiprocessing.pool, threading
import numpy as np
def made(n): return np.empty(n, np.uint8)
async def main():
    made(5004); await asyncio.to_thread(made, 5005)
    await asyncio.get_running_loop().run_in_executor(None, made, 5006)
made(5001)
one = threading.Thread(target=made, args=(5002,)); one.start(); one.join()
with concurrent.futures.ThreadPoolExecutor(1) as pool: pool.submit(made, 5003).result()
asyncio.run(main())
with multiprocessing.pool.ThreadPool(1) as pool: pool.map(made, [5007])
contextvars.Context().run(made, 5008)
"""
    counts = counts_by_size(record(tmp_path, program))

    assert {n: counts.get(n) for n in range(5001, 5009)} == dict.fromkeys(range(5001, 5009), 1)


def test_operations_that_make_arrays_are_seen(tmp_path: Path) -> None:
    program = """
import numpy as np
a = np.arange(2003, dtype=np.uint8); b = np.concatenate([a, a]); c = b[b > 3]
d = np.zeros(3001, np.int16); e = d.astype(np.float64); f = e + 1; g = np.array("x" * 900)
kept = [np.empty(11, np.int8) for _ in range(1000)]; del kept
h = np.fromiter((i for i in range(5000)), np.int32)
"""
    counts = counts_by_size(record(tmp_path, program))

    assert counts[2003] >= 1 and counts[4006] >= 2 and counts[6002] == 1
    assert counts[24008] == 2 and counts[3600] == 1
    assert counts[11] == 1000  # also those that NumPy's cache of small blocks serves
    assert counts[20000] >= 1  # grown by resizes


def test_resizes_and_their_failures_keep_the_account(tmp_path: Path) -> None:
    program = """
import numpy as np
a = np.empty(7001, np.uint8)
a.resize(7002, refcheck=False); a.resize(900007, refcheck=False); a.resize(7003, refcheck=False)
b = np.empty(7010, np.uint8)
try:
    b.resize(1 << 61, refcheck=False)
except MemoryError:
    pass
else:
    raise SystemExit("the machine has too much memory")
import os
os._exit(0)  # so that nothing is freed at the end
"""
    recording = record(tmp_path, program)
    objects = recording.objects.set_index("size_bytes")

    assert objects.died_ns[7003] == -1 and objects.died_ns[7010] == -1
    assert all(objects.died_ns[n] > 0 for n in (7001, 7002, 900007))
    numbers = dict(zip(recording.objects.size_bytes, recording.objects.index, strict=True))
    assert objects.resized_from[7003] == numbers[900007]
    assert objects.resized_from[900007] == numbers[7002]
    assert objects.resized_from[7002] == numbers[7001]
    assert objects.resized_from[7010] == -1
    assert recording.unknown_frees == 0


def test_arrays_older_and_younger_than_the_recording(tmp_path: Path) -> None:
    older = [np.ones(6001) for _ in range(50)]
    small = [np.ones(3) for _ in range(50)]
    words = handler_words()
    with tlmem.Recorder(tmp_path / "a.tlm"):
        assert handler_words() != words
        del older[:25], small[:25]
        gc.collect()
        younger = [np.ones(6002) for _ in range(20)]
        older[0].resize(6003, refcheck=False)
    assert handler_words() == words
    recording = tlmem.read(tmp_path / "a.tlm")
    objects = recording.objects

    assert recording.unknown_frees >= 51  # 25 large, 25 small, one resized
    assert recording.problems == []
    births = objects[objects.size_bytes == 8 * 6002]
    assert len(births) == 20 and (births.died_ns == -1).all()
    assert sum(a.sum() for a in younger) == 20 * 6002  # and they can be used and freed afterwards
    assert sum(a.sum() for a in older[1:]) == 24 * 6001


def test_installing_twice_and_taking_off_what_is_not_on() -> None:
    words = handler_words()
    assert lib.tlm_numpy_uninstall() == lib.TLM_NOT_RUNNING
    assert lib.tlm_numpy_install() == lib.TLM_OK
    kept = np.ones(10000)
    assert lib.tlm_numpy_install() == lib.TLM_ALREADY_RUNNING
    assert lib.tlm_numpy_uninstall() == lib.TLM_OK
    assert handler_words() == words
    assert kept.sum() == 10000


def test_without_numpy_there_is_nothing_to_install(tmp_path: Path) -> None:
    program = """
import sys
from tlmem._native import lib
assert "numpy" not in sys.modules
print(lib.tlm_numpy_install() == lib.TLM_UNSUPPORTED)
print(lib.tlm_numpy_uninstall() == lib.TLM_NOT_RUNNING)
"""
    result = programs.plain(["-c", program], tmp_path)
    assert result.stdout.split() == [b"True", b"True"], result.stderr.decode()


FOREIGN = """
import ctypes, json, sys
import numpy as np
from numpy._core.multiarray import get_handler_name
word, address = ctypes.c_size_t, ctypes.c_void_p
FUNCTIONS = ("context", "take", "zeroed", "resize", "release")
class Handler(ctypes.Structure):
    _fields_ = [("name", ctypes.c_char * 127), ("version", ctypes.c_uint8)]
    _fields_ += [(name, address) for name in FUNCTIONS]
python, libc = ctypes.pythonapi, ctypes.CDLL(None)
for call, words in ((libc.malloc, 1), (libc.calloc, 2), (libc.realloc, 2), (libc.free, 1)):
    call.restype, call.argtypes = word, [word] * words
take = ctypes.CFUNCTYPE(word, word, word)(lambda c, n: libc.malloc(n))
zeroed = ctypes.CFUNCTYPE(word, word, word, word)(lambda c, n, m: libc.calloc(n, m))
resize = ctypes.CFUNCTYPE(word, word, word, word)(lambda c, p, n: libc.realloc(p, n))
release = ctypes.CFUNCTYPE(None, word, word, word)(lambda c, p, n: libc.free(p))
calls = [ctypes.cast(call, address) for call in (take, zeroed, resize, release)]
handler = Handler(b"somebody", 1, None, *calls)
python.PyCapsule_GetPointer.restype = address
python.PyCapsule_GetPointer.argtypes = [ctypes.py_object, ctypes.c_char_p]
python.PyCapsule_New.restype = ctypes.py_object
python.PyCapsule_New.argtypes = [address, ctypes.c_char_p, address]
interface = python.PyCapsule_GetPointer(np._core._multiarray_umath._ARRAY_API, None)
table = ctypes.cast(interface, ctypes.POINTER(address))
set_handler = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.py_object)(table[304])
a = np.ones(8001, np.uint8)
former = set_handler(python.PyCapsule_New(ctypes.addressof(handler), b"mem_handler", None))
b = np.ones(8002, np.uint8)
names = [get_handler_name(a), get_handler_name(b)]
del b
set_handler(former)
c = np.ones(8003, np.uint8)
print(json.dumps([*names, get_handler_name(c)]))
"""


def test_a_handler_of_somebody_else_is_left_alone_and_unseen(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(FOREIGN)
    result = programs.recorded(["program.py"], tmp_path, options=("-q", "-o", "made.tlm"))
    assert result.returncode == 0, result.stderr.decode()
    counts = counts_by_size(tlmem.read(tmp_path / "made.tlm"))

    assert json.loads(result.stdout) == ["default_allocator", "somebody", "default_allocator"]
    assert [counts.get(8000 + n, 0) for n in (1, 2, 3)] == [1, 0, 1]


def test_the_version_of_numpy_and_its_handler_are_noted(tmp_path: Path) -> None:
    recording = record(tmp_path, "import numpy")

    assert recording.info["numpy"] == np.__version__
    assert recording.info["numpy.handler"] == "default_allocator"
    assert ffi.string(lib.tlm_status_text(lib.TLM_UNSUPPORTED))


def test_events_go_on_while_threads_come_and_the_source_is_taken_off(tmp_path: Path) -> None:
    program = """
import sys, threading
import numpy as np
import tlmem
stop = False
def churn():
    while not stop:
        a = np.empty(5001, np.uint8); a.resize(5002, refcheck=False); b = a + 1; del a, b
team = [threading.Thread(target=churn) for _ in range(3)]
for one in team: one.start()
for i in range(40):
    recorder = tlmem.Recorder(sys.argv[1], force=True); recorder.start()
    x = [np.empty(100) for _ in range(500)]
    recorder.stop()
stop = True
for one in team: one.join()
r = tlmem.read(sys.argv[1])
print(len(r.problems), r.lost_events, bool((r.objects.size_bytes == 800).sum() >= 500))
"""
    result = programs.plain(["-c", program, str(tmp_path / "a.tlm")], tmp_path)
    assert result.stdout.split() == [b"0", b"0", b"True"], result.stderr.decode()
