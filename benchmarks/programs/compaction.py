"""What happens to events after they were recorded: compacted, folded, sealed; prints JSON.

Records in this process the allocation storm, and arrays of many sizes from many lines; these once
more within 8 MiB, so that the oldest events are folded all the time. CPU time is that of the
threads that did the work.
"""

import json
import os
import sys
import tempfile
import time
from collections.abc import Callable

import storm
import ten_million

from tlmem._native import ffi, lib

LIMIT_BYTES = 8 << 20


def record(work: Callable[..., object], *arguments: object, limit_bytes: int = 0) -> dict[str, int]:
    """Records a call and returns the core's counters and what the end took."""
    handle, path = tempfile.mkstemp(suffix=".tlm", dir=sys.argv[2])
    os.close(handle)
    name = ffi.new("char[]", os.fsencode(path))
    options = ffi.new("tlm_recording_options *")
    options.path, options.overwrite, options.compact = name, 1, 1
    options.stack_depth, options.sample_ms, options.limit_bytes = 64, 10, limit_bytes
    if lib.tlm_recording_start(options) != lib.TLM_OK or lib.tlm_numpy_install() != lib.TLM_OK:
        sys.exit("nothing can be recorded here")
    began = time.monotonic_ns()
    work(*arguments)
    ended = time.monotonic_ns()
    lib.tlm_numpy_uninstall()
    sealing = time.monotonic_ns()
    lib.tlm_recording_stop(1)
    sealed = time.monotonic_ns()
    counters = ffi.new("tlm_recording_statistics *")
    lib.tlm_recording_stats(counters)
    os.unlink(path)
    return {
        "events": counters.events,
        "compacted": counters.compacted_events,
        "folded": counters.folded_events,
        "compact_ns": counters.compact_ns,
        "fold_ns": counters.fold_ns,
        "file_bytes": counters.file_bytes,
        "own_bytes": counters.own_bytes,
        "run_ns": ended - began,
        "seal_ns": sealed - sealing,
    }


if __name__ == "__main__":
    scale = float(sys.argv[1])
    pairs = int(3_000_000 * scale)
    found = {
        "storm": record(storm.iterate, 8, int(1_000_000 * scale)),
        "variety": record(ten_million.work, pairs, []),
        "variety, 8 MiB": record(ten_million.work, pairs, [], limit_bytes=LIMIT_BYTES),
    }
    print(json.dumps(found))
