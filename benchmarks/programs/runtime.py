"""What the runtime's operations cost, in C and from Python, beside malloc, NumPy and PyTorch.

Prints JSON: for each case the ns an operation took in each round, and for some of them what an
event added while they were recorded. All cases take turns in each round. PyTorch takes part when it
is installed.
"""

import ctypes
import json
import os
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from typing import Any

import numpy as np

import tlmem
from tlmem._native import ffi, lib

try:
    import torch
except ImportError:
    torch = None

TURNS, SCALE, FOLDER = int(sys.argv[1]), float(sys.argv[2]), sys.argv[3]
ROUND_NS = 4_000_000 * SCALE
RECORDED_EVENTS = 8000  # less than a segment: what is measured is not the next one
SIZES = {"64 B": 64, "4 kB": 4096, "1 MB": 1 << 20}
THREADS = (1, 2, 8)
SHARED_ROUNDS = int(200_000 * SCALE)  # so that starting the threads is nothing beside them
Case = Callable[[int], float]

# Called with the GIL held, as Python code that makes a tensor does.
core = ctypes.PyDLL(tlmem.get_library())
core.tlm_bench_runtime.restype = ctypes.c_uint64
core.tlm_bench_runtime.argtypes = [ctypes.c_int, ctypes.c_uint64, ctypes.c_uint64]


def in_c(what: int, nbytes: int = 64) -> Case:
    """A loop of the core, in rounds of a hundred."""

    def measure(count: int) -> float:
        rounds = max(100, count // 100 * 100)
        return core.tlm_bench_runtime(what, rounds, nbytes) / rounds

    return measure


def by_threads(threads: int) -> Case:
    """Threads at one pool: wall time of the whole, for each hit and put of any of them."""

    def measure(count: int) -> float:
        rounds = max(SHARED_ROUNDS, count) // threads
        return lib.tlm_bench_runtime(14, rounds, threads) / rounds / threads

    return measure


def called(function: Callable[..., object], *arguments: object, **options: object) -> Case:
    """A call from Python; what it returns dies at once."""

    def measure(count: int) -> float:
        began = time.perf_counter_ns()
        for _ in range(count):
            function(*arguments, **options)
        return (time.perf_counter_ns() - began) / count

    return measure


def beside_a_thread(case: Case) -> Case:
    """The same while a second thread waits: memory that is computed on is pinned then."""

    def measure(count: int) -> float:
        done = threading.Event()
        thread = threading.Thread(target=done.wait)
        thread.start()
        took = case(count)
        done.set()
        thread.join()
        return took

    return measure


def empty_scope(count: int) -> float:
    """A scope in which nothing happens."""
    began = time.perf_counter_ns()
    for _ in range(count):
        with tlmem.scope():
            pass
    return (time.perf_counter_ns() - began) / count


def c_cases() -> dict[str, Case]:
    """What the core does, and the same of the C library."""
    cases = {
        "scope": in_c(0),
        "register": in_c(9),
        "register, release": in_c(1),
        "acquire, release": in_c(2),
        "pool hit": in_c(13),
        "pool put": in_c(12),
        "pool hit, put": in_c(4),
        "pool miss": in_c(5),
        "frame": in_c(8),
        "arena 64 B": in_c(6),
    }
    for name, size in SIZES.items():
        cases[f"object {name}"] = in_c(3, size)
        cases[f"malloc {name}"] = in_c(7, size)
        cases[f"object, touched {name}"] = in_c(10, size)
        cases[f"malloc, touched {name}"] = in_c(11, size)
    cases |= {f"pool, threads {threads}": by_threads(threads) for threads in THREADS}
    return cases


def python_cases() -> dict[str, Case]:
    """The same work by tlmem, NumPy and PyTorch."""
    cases = {"scope, tlmem": empty_scope}
    for name, size in SIZES.items():
        shape = (size // 4,)
        cases[f"empty {name}, tlmem"] = called(tlmem.empty, shape)
        cases[f"empty {name}, numpy"] = called(np.empty, shape, np.float32)
        if torch:
            cases[f"empty {name}, torch"] = called(torch.empty, shape)
    for side in (64, 1000):
        arrays = [np.ones((side, side), np.float32) for _ in range(3)]
        cases |= additions(f"add {side}", tlmem.add, map(tlmem.tensor, arrays), "tlmem")
        cases |= additions(f"add {side}", np.add, arrays, "numpy")
        if torch:
            cases |= additions(f"add {side}", torch.add, map(torch.tensor, arrays), "torch")
    for library in ("tlmem", "numpy", *(["torch"] if torch else [])):
        cases[f"add 64 threads, {library}"] = beside_a_thread(cases[f"add 64, {library}"])
    return cases


def additions(name: str, add: Any, operands: Any, library: str) -> dict[str, Case]:
    """A sum as a new tensor, and into one that is there."""
    left, right, out = operands
    return {
        f"{name}, {library}": called(add, left, right),
        f"{name} out, {library}": called(add, left, right, out=out),
    }


def calibrated(case: Case) -> int:
    """How many operations take about a round's time."""
    count = 100
    while (took := case(count) * count) < ROUND_NS / 4:
        count *= 4
    return max(1, int(count * ROUND_NS / took))


def by_turns(cases: dict[str, Case], rounds: int) -> dict[str, list[float]]:
    """Every case once a round."""
    counts = {name: calibrated(case) for name, case in cases.items()}
    found: dict[str, list[float]] = {name: [] for name in cases}
    for _ in range(rounds):
        for name, case in cases.items():
            found[name].append(case(counts[name]))
    return found


# ---- while it is recorded ----


def start() -> str:
    """Begins a recording of this process and returns its path."""
    handle, path = tempfile.mkstemp(suffix=".tlm", dir=FOLDER)
    os.close(handle)
    name = ffi.new("char[]", os.fsencode(path))
    options = ffi.new("tlm_recording_options *")
    options.path, options.overwrite, options.compact, options.stack_depth = name, 1, 1, 64
    if lib.tlm_recording_start(options) != lib.TLM_OK:
        sys.exit("nothing can be recorded here")
    return path


def events() -> int:
    """How many events there are so far, once all full segments are compacted."""
    counters = ffi.new("tlm_recording_statistics *")
    before = -1
    while counters.compacted_events != before:
        before = counters.compacted_events
        time.sleep(0.005)
        lib.tlm_recording_stats(counters)
    return counters.events


def while_recorded(case: Case) -> tuple[float, float]:
    """What an operation takes, and how many events it makes."""
    count = 400
    before = events()
    case(count)
    each = (events() - before) / count
    count = max(100, int(RECORDED_EVENTS / max(each, 1)) // 100 * 100)
    case(count)
    events()
    return case(count), each


def recorded(cases: dict[str, Case], rounds: int) -> dict[str, dict[str, float]]:
    """Medians of what each event adds, plain and recorded by turns."""
    found: dict[str, list[float]] = {name: [] for name in cases}
    each: dict[str, float] = {}
    for _ in range(rounds):
        plain = {name: case(4000) for name, case in cases.items()}
        path = start()
        for name, case in cases.items():
            took, each[name] = while_recorded(case)
            found[name].append((took - plain[name]) / each[name])
        lib.tlm_recording_stop(0)
        os.unlink(path)
    return {n: {"ns": statistics.median(found[n]), "events": each[n]} for n in cases}


RECORDED = (
    *("scope", "register, release", "acquire, release", "object 64 B", "pool hit, put"),
    *("pool miss", "arena 64 B", "frame", "scope, tlmem", "empty 64 B, tlmem", "add 64, tlmem"),
)


if __name__ == "__main__":
    if torch:
        torch.set_num_threads(1)
    all_cases = {**c_cases(), **python_cases()}
    sizes = ("scope", "object", "record", "pool key", "context")
    print(
        json.dumps(
            {
                "rounds": by_turns(all_cases, TURNS),
                "recorded": recorded({name: all_cases[name] for name in RECORDED}, TURNS),
                "bytes": {name: lib.tlm_bench_sizes(i) for i, name in enumerate(sizes)},
                "torch": torch.__version__ if torch else None,
            }
        )
    )
