"""Nanoseconds per event, measured inside one recorded process; prints them as JSON.

Stacks are exactly as deep as said: the measured loop runs with no frame below it. A loop in C hands
in two events a round, an allocation and a free. Loops in Python do so through NumPy; their own time
is measured by turns, with the source taken out, and subtracted. "Warm" is one segment at a time on
pages that were used before, "fresh" is pages of the file that nobody has touched, "sustained" is as
fast as one core can, so that compaction falls behind and the program has to help; this one is wall
time, all others are CPU time of the thread, which others on the machine disturb less.
"""

import json
import operator
import os
import statistics
import sys
import tempfile
import time
from _thread import start_new_thread
from collections import deque
from collections.abc import Callable
from itertools import starmap
from queue import SimpleQueue
from typing import Any

import numpy as np

from tlmem._native import ffi, lib

SEGMENT_EVENTS = 8184
DEPTHS = (1, 5, 20, 50)
Loop = Callable[[list[float], int], None]
calls: SimpleQueue[Any] = SimpleQueue()
done: SimpleQueue[None] = SimpleQueue()
# A thread with no frame of Python's own: what it is given to call is the outermost one.
start_new_thread(deque, (starmap(operator.call, iter(calls.get, None)), 0))


def start(compact: bool = True) -> str:
    """Begins a recording of this process and returns its path."""
    handle, path = tempfile.mkstemp(suffix=".tlm", dir=sys.argv[2])
    os.close(handle)
    name = ffi.new("char[]", os.fsencode(path))
    options = ffi.new("tlm_recording_options *")
    options.path, options.overwrite, options.compact = name, 1, compact
    options.stack_depth = 64
    check(lib.tlm_recording_start(options))
    return path


def stop(path: str) -> None:
    """Ends it and removes the file."""
    check(lib.tlm_recording_stop(0))
    os.unlink(path)


def check(status: int) -> None:
    """Ends the program when the core says no."""
    if status != lib.TLM_OK:
        sys.exit(ffi.string(lib.tlm_status_text(status)).decode())


def at_depth(depth: int, loop: Loop, count: int) -> float:
    """What ``loop`` appends to a list, run as frame number ``depth`` of its stack."""
    found: list[float] = []

    def descend(frames: int) -> None:
        if frames:
            descend(frames - 1)
        else:
            loop(found, count)

    calls.put((loop, found, count) if depth == 1 else (descend, depth - 2))
    calls.put((done.put, None))
    done.get(timeout=600)
    return found[0]


def without_stack(found: list[float], events: int) -> None:
    """Events whose site is 0."""
    began = time.thread_time_ns()
    lib.tlm_bench_events(events, 0)
    found.append((time.thread_time_ns() - began) / events)


def with_stack(found: list[float], events: int) -> None:
    """Events from one place: the stack is always the last one."""
    began = time.thread_time_ns()
    lib.tlm_bench_events(events, 1)
    found.append((time.thread_time_ns() - began) / events)


def two_lines(found: list[float], events: int) -> None:
    """Makes and drops an array: between two events only the line changes."""
    empty = np.empty
    began = time.thread_time_ns()
    for _ in range(events // 2):
        array = empty(250)
        del array
    found.append((time.thread_time_ns() - began) / events)


def make() -> np.ndarray:
    """One frame more, in which the array is made."""
    return np.empty(250)


def new_frame(found: list[float], events: int) -> None:
    """Makes the array in a function: before each event a frame came or went."""
    began = time.thread_time_ns()
    for _ in range(events // 2):
        array = make()
        del array
    found.append((time.thread_time_ns() - began) / events)


def wait_for_compaction() -> None:
    """Until 5 ms brought nothing more."""
    counters = ffi.new("tlm_recording_statistics *")
    before = -1
    while counters.compacted_events != before:
        before = counters.compacted_events
        time.sleep(0.005)
        lib.tlm_recording_stats(counters)


def warm(depth: int, loop: Loop, turns: int) -> float:
    """Median over segments, one at a time, after the first few."""
    path = start()
    found = []
    skipped = min(20, turns)
    for turn in range(turns + skipped):
        took = at_depth(depth, loop, SEGMENT_EVENTS)
        wait_for_compaction()
        if turn >= skipped:
            found.append(took)
    stop(path)
    return statistics.median(found)


def stream(depth: int, loop: Loop, events: int, compact: bool) -> float:
    """One long run, in CPU time without compaction, in wall time with it."""
    path = start(compact)
    at_depth(depth, loop, 1000)
    began = time.monotonic_ns()
    took = at_depth(depth, loop, events)
    wall = (time.monotonic_ns() - began) / events
    stop(path)
    return wall if compact else took


def through_numpy(depth: int, loop: Loop, turns: int) -> float:
    """What an event adds to ``loop``: median difference of neighbours with and without it."""
    path = start()
    found = []
    skipped = min(20, turns)
    for turn in range(turns + skipped):
        at_depth(depth, loop, SEGMENT_EVENTS)
        plain = at_depth(depth, loop, SEGMENT_EVENTS)
        check(lib.tlm_numpy_install())
        recorded = at_depth(depth, loop, SEGMENT_EVENTS)
        check(lib.tlm_numpy_uninstall())
        wait_for_compaction()
        if turn >= skipped:
            found.append(recorded - plain)
    stop(path)
    return statistics.median(found)


def measure(scale: float) -> dict[str, float]:
    """Every number by name: ``off``, and ``MANNER DEPTH`` with depth 0 for no stack."""
    probes = int(100_000_000 * scale)
    turns = max(3, int(60 * scale))
    many = max(100_000, int(4_000_000 * scale))
    found = {"off": min(lib.tlm_bench_disabled(probes) / probes for _ in range(5))}
    for depth in (0, *DEPTHS):
        loop, frames = (with_stack, depth) if depth else (without_stack, 1)
        found[f"warm {depth}"] = warm(frames, loop, turns)
        found[f"fresh {depth}"] = stream(frames, loop, many, False)
        found[f"sustained {depth}"] = stream(frames, loop, many, True)
        if depth:
            found[f"line {depth}"] = through_numpy(depth, two_lines, turns)
            found[f"frame {depth}"] = through_numpy(depth, new_frame, turns)
    return found


if __name__ == "__main__":
    print(json.dumps(measure(float(sys.argv[1]))))
