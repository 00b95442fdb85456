"""What ran or held memory beside a recording: processes that have none, packages that allocate
themselves.

Covers: two notes for the file, taken when the program's code has ended. Does not cover: giving
children a recording of their own (``children``).
"""

from os import fsencode
from time import time
from types import ModuleType
from typing import Any

from tlmem.recorder.bound import STEADY, core

globals()["__builtins__"] = STEADY  # of the functions below

PACKAGES = (
    *("torch", "tensorflow", "jax", "cupy", "mxnet", "paddle", "onnxruntime"),
    *("pyarrow", "polars", "duckdb", "cv2", "vtk", "lightgbm", "xgboost"),
)
"""Packages that take memory of their own, which is not NumPy's."""
SUMS = ("followed", "others", "pythons", "own_cpu_ns", "children_cpu_ns")
"""What has been counted since the process began, of ``tlm_processes``; the rest is as it is now."""
LEVELS = (
    *("own_peak_bytes", "children_peak_bytes"),
    *("running", "running_cpu_ns", "running_peak_bytes"),
)


def sums_now() -> dict[str, int]:
    """What has been counted so far."""
    out = core.ffi.new("tlm_processes *")
    core.lib.tlm_made_processes(core.ffi.NULL, 0, out)
    return {name: int(getattr(out, name)) for name in SUMS} | {"since_s": int(time())}


def process_note(path: str, before: dict[str, int]) -> str:
    """The processes of this one, as ``name=number`` with blanks between.

    Args:
        path: of this process' recording, which those of children are named after.
        before: what had been counted when it began, of ``sums_now``.
    """
    out = core.ffi.new("tlm_processes *")
    core.lib.tlm_made_processes(fsencode(path.removesuffix(".tlm")), before["since_s"], out)
    counts = {name: int(getattr(out, name)) - before[name] for name in SUMS}
    # Processes that others have started between us and them are known by their files alone.
    counts["followed"] = max(counts["followed"], int(out.recordings))
    counts |= {name: int(getattr(out, name)) for name in LEVELS}
    return " ".join([f"{name}={number}" for name, number in counts.items()])


def worker_note(modules: dict[str, Any]) -> str:
    """``0 of 2`` in a worker of PyTorch's ``DataLoader``, with its number; empty in others.

    Values are read where the worker keeps them; nothing of the program is called.
    """
    module = modules.get("torch.utils.data._utils.worker")
    about = vars(module).get("_worker_info") if type(module) is ModuleType else None
    if about is None or type(about).__module__ != "torch.utils.data._utils.worker":
        return ""
    try:
        number = object.__getattribute__(about, "id")
        count = object.__getattribute__(about, "num_workers")
    except AttributeError:
        return ""
    if type(number) is not int or type(count) is not int:
        return ""
    return f"{number} of {count}"


def package_note(modules: dict[str, Any]) -> str:
    """Which of ``PACKAGES`` the program has imported, with commas between."""
    return ",".join([name for name in PACKAGES if name in modules])
