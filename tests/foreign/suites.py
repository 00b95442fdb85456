"""What is run: suites, each in parts. A part is run in one process, twice."""

import importlib.metadata
import importlib.util
import platform
from dataclasses import dataclass
from pathlib import Path

CPYTHON = """
    code gc weakref frame descr generators coroutines asyncgen
    monitoring sys_setprofile sys_settrace trace bdb pdb profile cprofile
    sys inspect traceback tracemalloc atexit capi
    threading
    thread threading_local threadsignals fork1 popen
    interpreters _xxsubinterpreters _xxinterpchannels _interpreters _interpchannels
    signal
    subprocess
    faulthandler
    importlib import
    ctypes mmap os posix pty openpty wait3 wait4
    builtin types dis exceptions except_star exception_group baseexception raise finalization
    runpy cmd_line_script
    embed perf_profiler
    asyncio
    concurrent_futures
    multiprocessing_fork
    multiprocessing_forkserver
    multiprocessing_spawn
    multiprocessing_main_handling
    socket
    select selectors
    dict list set tuple functools contextlib contextlib_async context memoryview buffer array bytes
    io fileio memoryio file tempfile
    linecache warnings support doctest marshal pickle copy audit
    regrtest
    unittest
    dynamic scope super class metaclass property gettext hash itertools iter enumerate random
    resource queue sched time site pkgutil zipimport modulefinder code_module codeop
    compile peepholer opcache patma named_expressions unpack yield_from type_cache optimizer call
    """
"""A line is a part: the files ``test_NAME`` that one process runs."""
LEFT_OUT = {
    "ProcessPoolForkExecutorDeadlockTest.test_shutdown_deadlock_pickle": "on 3.13.0 it often does "
    "not end, plain as well",
    "test_print_exception_gh_102056": "on 3.13.0 it often does not end, plain as well",
    "ThreadedVSOCKSocketStreamTest.testStream": "in a virtual machine that cannot reach itself by "
    "VSOCK it does not end, plain as well",
}
"""Tests of CPython that are not run, and why."""

NUMPY = """
    _core/tests lib/tests linalg/tests ma/tests random/tests fft/tests polynomial/tests
    matrixlib/tests testing/tests tests
    """
SCIPY = """
    linalg/tests ndimage/tests signal/tests sparse/linalg sparse/csgraph/tests sparse/tests
    fft fftpack/tests cluster/tests spatial/tests interpolate/tests io integrate/tests
    """
PANDAS = """
    tests/reshape tests/arrays tests/copy_view tests/internals tests/frame tests/groupby
    tests/series tests/indexing tests/window tests/libs tests/tools
    """
FOLDERS = {"numpy": NUMPY, "scipy": SCIPY, "pandas": PANDAS}
"""Below the package."""

NAMES = ("cpython", *FOLDERS)


@dataclass(frozen=True)
class Part:
    """What one process runs.

    Attributes:
        suite: one of ``NAMES``.
        name: of CPython the first test file without ``test_``, of a package a folder or file.
        files: of CPython all that belong to the part; of a package the only ones to run, below the
            folder that packages are installed in, or none for all.
    """

    suite: str
    name: str
    files: tuple[str, ...] = ()

    def path(self) -> Path:
        """The folder or file of a package's tests."""
        return site() / self.suite / self.name


def site() -> Path:
    """The folder that NumPy, SciPy and pandas are installed in."""
    spec = importlib.util.find_spec("numpy")
    assert spec is not None and spec.origin is not None
    return Path(spec.origin).parents[1]


def cpython_tests() -> Path | None:
    """CPython's own tests; some distributions leave them out."""
    spec = importlib.util.find_spec("test")
    origin = spec and spec.origin
    found = Path(origin).parent if origin else None
    return found if found and (found / "test_gc.py").exists() else None


def version(suite: str) -> str:
    """Of what is tested."""
    return platform.python_version() if suite == "cpython" else importlib.metadata.version(suite)


def parts(suite: str) -> list[Part]:
    """The parts of a suite that this Python and this release have."""
    if suite != "cpython":
        found = [Part(suite, name) for name in FOLDERS[suite].split()]
        return [part for part in found if part.path().exists()]
    folder = cpython_tests()
    if folder is None:
        return []
    here = {path.stem for path in folder.glob("test_*")}
    lines = [
        [name for name in line.split() if f"test_{name}" in here] for line in CPYTHON.splitlines()
    ]
    return [Part(suite, line[0], tuple(line)) for line in lines if line]
