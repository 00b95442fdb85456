"""``tlmem doctor``: show what is supported on this machine, by trying it.

Covers: versions, the extension module, the walk of stacks, NumPy's and PyTorch's hooks, clock,
compression, the runtime's devices, how the heap is sampled, the search for holders, which sources
of memory samples answer, whether processes of subprocess can be followed, and a small recording
that is made and read back.
Exits 0 when programs can be recorded and recordings read, 1 when one of both is not possible.
"""

import importlib
import os
import struct
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

ARRAYS = 100
ARRAY_BYTES = 5000
CLOCKS = {1: "CPU counter", 2: "CLOCK_MONOTONIC"}
CLOCK_OFFSET = 44
HEAP_RATE_BYTES = 256_000
SAMPLED_BY = {
    "domains": "sampled where they are allocated",
    "domains, each free": "sampled where they are allocated and freed, which is slower",
    "raw domain": "sampled in Python's raw domain, where all of them come from",
}
"""Python's small objects, by the note ``heap.python``."""


def run(words: list[str]) -> int:
    """Runs ``tlmem doctor [--cflags] [--libs]``."""
    from tlmem.cli.arguments import Parser

    parser = Parser(
        prog="tlmem doctor",
        description="Shows what is supported on this machine. Exits 0 when programs can be "
        "recorded and recordings read, 1 when one of these is not possible.",
    )
    parser.add_argument("--cflags", action="store_true", help="print flags for a C compiler only")
    parser.add_argument("--libs", action="store_true", help="print flags for a linker only")
    wanted = parser.parse_args(words)
    if not (wanted.cflags or wanted.libs):
        return _examine()
    from tlmem.recorder import linking

    flags = [linking.compile_flags()] if wanted.cflags else []
    flags += [linking.link_flags()] if wanted.libs else []
    sys.stdout.write(" ".join(flags) + "\n")
    return 0


def _examine() -> int:
    """Prints what is supported, one line each; returns the exit code."""
    import tlmem

    system = os.uname()
    _line("tlmem", tlmem.__version__)
    _line("python", f"{sys.version.split()[0]} ({sys.executable})")
    _line("platform", f"{system.sysname} {system.release} {system.machine}")
    for name in ("numpy", "pandas", "cffi", "psutil"):
        _line(name, _version(name))
    can_record = _extension()
    can_read = can_record and _trial()
    if not can_record:
        can_read = _reading_side()
    _line("recording", "works" if can_record and can_read else "does not work here")
    _line("reading", "works" if can_read else "does not work here")
    return 0 if can_record and can_read else 1


def _line(subject: str, text: str) -> None:
    sys.stdout.write(f"{subject + ':':<12} {text}\n")


def _version(name: str) -> str:
    try:
        module = importlib.import_module(name)
    except ImportError as error:
        return f"missing ({error})"
    return str(getattr(module, "__version__", "unknown version"))


def _extension() -> bool:
    try:
        from tlmem._native import ffi, lib
    except ImportError as error:
        _line("extension", f"missing ({error}); install tlmem where a C compiler is")
        return False
    _line("extension", "built")
    _line("stacks", ffi.string(lib.tlm_site_method()).decode())
    found = bool(lib.tlm_zlib_available())
    _line("compression", "zlib" if found else "none (zlib was not found), recordings are larger")
    _devices()
    return True


def _devices() -> None:
    """One line for each device of the runtime."""
    from tlmem.runtime.device import devices

    for each in devices():
        _line(each.name, f"device, missing: {each.reason}" if each.reason else "device, works")


def _reading_side() -> bool:
    try:
        import tlmem.recording  # noqa: F401
    except ImportError as error:
        _line("reader", f"missing ({error})")
        return False
    return True


def _trial() -> bool:
    """Records a few arrays and reads them back."""
    from tlmem.errors import TlmemError

    with tempfile.TemporaryDirectory(prefix="tlmem-doctor-") as folder:
        path = Path(folder) / "trial.tlm"
        try:
            _record_arrays(path)
            (clock,) = struct.unpack_from("<I", path.read_bytes()[:64], CLOCK_OFFSET)
            _line("clock", CLOCKS.get(clock, f"unknown ({clock})"))
            return _read_back(path)
        except (TlmemError, ImportError, OSError) as error:
            _line("trial", f"failed: {error}")
            return False


def _record_arrays(path: Path) -> None:
    import numpy

    from tlmem._native import lib
    from tlmem.recorder import Recorder

    with Recorder(path):
        lib.tlm_heap_install(HEAP_RATE_BYTES, 0)
        kept = [numpy.empty(ARRAY_BYTES, numpy.uint8) for _ in range(ARRAYS)]
        lib.tlm_heap_uninstall()
    del kept


def _torch_hook() -> str:
    """Whether PyTorch's memory can be recorded here. torch is imported only to find out."""
    from importlib.util import find_spec

    from tlmem.errors import TlmemError
    from tlmem.recorder import Recorder
    from tlmem.recording.reader import read

    if find_spec("torch") is None:
        return "not needed: PyTorch is not installed"
    with tempfile.TemporaryDirectory(prefix="tlmem-doctor-") as folder:
        path = Path(folder) / "torch.tlm"
        try:
            with Recorder(path):
                importlib.import_module("torch")
            hook = read(path).info.get("torch.hook", "none (its libraries were not met)")
        except (TlmemError, ImportError, OSError) as error:
            return f"not tried: {error}"
    return "found" if hook == "slots" else f"{hook}; its tensors cannot all be recorded"


def _follow() -> str:
    """Whether ``record --follow all`` works here. A process is started to find out."""
    from tlmem.errors import TlmemError
    from tlmem.recorder import Recorder
    from tlmem.recorder.children import HOOK, find_hook
    from tlmem.recording import family

    hook = find_hook()
    if not hook:
        return f"not found: {HOOK} is in no site folder of this Python; install tlmem with pip"
    with tempfile.TemporaryDirectory(prefix="tlmem-doctor-") as folder:
        path = Path(folder) / "follow.tlm"
        try:
            with Recorder(path, follow="all"):
                subprocess.run([sys.executable, "-c", "import numpy"], check=False)
            found = family.find(path)
        except (TlmemError, ImportError, OSError) as error:
            return f"not tried: {error}"
    return "works" if found else f"does not work: {sys.executable} does not read {hook}"


def _read_back(path: Path) -> bool:
    from tlmem.recording.reader import read

    recording = read(path)
    objects: Any = recording.objects
    seen = int((objects["size_bytes"] == ARRAY_BYTES).sum())
    _line("numpy hook", "found" if seen else "not found; arrays cannot be recorded")
    _line("heap", recording.info.get("heap.hook", "not sampled"))
    how = recording.info.get("heap.python", "")
    _line("objects", SAMPLED_BY.get(how, how) or "not sampled")
    named = not recording.holdings.empty
    _line("holders", "found" if named else "not found; reports do not say what holds arrays here")
    samples: Any = recording.samples
    taken = [name for name in samples.columns if name != "time_ns" and samples[name].notna().any()]
    _line("samples", ", ".join(taken) if taken else "none")
    _line("trial", f"{ARRAYS} arrays allocated, {seen} recorded and read back")
    _line("torch hook", _torch_hook())
    _line("follow all", _follow())
    return seen == ARRAYS
