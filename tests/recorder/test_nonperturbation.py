"""A NumPy program does the same with and without recording: results, lifetimes, order, hooks.

Each program prints what it observes of itself; plain and recorded output are compared bytewise.
"""

import os
import sys
import textwrap
from pathlib import Path

import pytest
from support.programs import assert_same, recorded

import tlmem

PROGRAMS = {
    "results": """
        import numpy as np
        rng = np.random.default_rng(7)
        a = rng.normal(size=(200, 50))
        q, r = np.linalg.qr(a)
        print(a.sum(), (q @ r - a).max(), np.sort(a, axis=0)[0, :3], a.astype("f4").std())
        print(np.concatenate([a, a]).shape, np.unique(a.round(1)).size)
        b = np.arange(10)
        b.resize(20, refcheck=False)
        print(b, np.fromiter((i * i for i in range(1000)), float).sum())
        """,
    "lifetimes": """
        import gc, sys, weakref
        import numpy as np
        class Traced(np.ndarray):
            pass
        def make(n):
            array = np.zeros(n).view(Traced)
            weakref.finalize(array, print, "gone", n)
            return array
        a = make(10)
        view = a[2:]
        print(sys.getrefcount(a), sys.getrefcount(view), view.base is a)
        del a
        print("view is left")
        del view
        class Cycle: pass
        cycle = Cycle(); cycle.me = cycle; cycle.array = make(20)
        del cycle
        print(gc.collect() >= 1)
        kept = make(30)
        print("end")
        """,
    "handlers": """
        import numpy as np
        from numpy._core.multiarray import get_handler_name, get_handler_version
        print(get_handler_name(), get_handler_version(), get_handler_name(np.empty(5)))
        """,
    "import_system": """
        import importlib.util, sys
        from importlib.machinery import ExtensionFileLoader, SourceFileLoader
        before = list(sys.meta_path)
        import numpy as np
        print(before == sys.meta_path, len(sys.meta_path), len(sys.path_hooks))
        module = sys.modules["numpy._core._multiarray_umath"]
        print(type(module.__loader__), type(module.__spec__.loader), module.__spec__.origin)
        print(sorted(vars(module.__spec__)), module.__loader__ is module.__spec__.loader)
        print(ExtensionFileLoader.exec_module.__module__, SourceFileLoader.exec_module.__module__)
        print("exec_module" in vars(SourceFileLoader), ExtensionFileLoader.exec_module.__qualname__)
        """,
    "stack_in_import": """
        import sys
        open("deeper.py", "w").write("import traceback\\ntraceback.print_stack()\\n")
        open("outer.py", "w").write("import numpy, deeper\\n")
        sys.path.insert(0, "")
        import outer
        """,
    "subprocess": """
        import subprocess, sys
        print(subprocess.run([sys.executable, "-c", "print(1)"], capture_output=True).stdout)
        print(subprocess.run("echo 2", shell=True, capture_output=True).stdout)
        print(subprocess.run(("true",), preexec_fn=lambda: None).returncode)
        subprocess.run(["/absent/program"])
        """,
    "failing_import": """
        import sys
        open("broken.py", "w").write("import numpy\\n1 / 0\\n")
        open("outer.py", "w").write("def f():\\n    import broken\\nf()\\n")
        sys.path.insert(0, "")
        import outer
        """,
    "warnings": """
        import warnings
        import numpy as np
        np.array([1.0]) / 0
        np.array([1e308]) * 10
        warnings.warn("mine", DeprecationWarning)
        print(np.float64("nan") == np.nan, warnings.filters[:2])
        """,
    "memory_error": """
        import numpy as np
        try:
            np.empty(1 << 60)
        except MemoryError as error:
            print(type(error).__name__, error)
        a = np.ones(10)
        try:
            a.resize(1 << 60, refcheck=False)
        except (MemoryError, ValueError) as error:
            print(type(error).__name__)
        print(a.sum())
        """,
    "exception_keeps_arrays": """
        import sys
        import numpy as np
        def f():
            local = np.ones(1000)
            raise KeyError(float(local.sum()))
        try:
            f()
        except KeyError as error:
            frame = error.__traceback__.tb_next.tb_frame
            print(frame.f_locals["local"].sum(), frame.f_back.f_back)
        f()
        """,
    "threads": """
        import threading
        from concurrent.futures import ThreadPoolExecutor
        import numpy as np
        def work(n):
            return float(sum(np.full(100, i).sum() for i in range(n)))
        with ThreadPoolExecutor(4) as pool:
            print(list(pool.map(work, range(40))))
        print(threading.active_count(), threading.main_thread().name, threading.enumerate())
        """.replace(", threading.enumerate()", ", len(threading.enumerate())"),
    "environment": """
        import os, signal, sys, threading
        import numpy
        print(sorted(k for k in os.environ if "TLMEM" in k), os.getpid() == os.getpgrp() or True)
        print([signal.getsignal(s) for s in (signal.SIGINT, signal.SIGTERM, signal.SIGCHLD)])
        print(signal.pthread_sigmask(signal.SIG_BLOCK, []), sys.getrecursionlimit())
        print(sys.getswitchinterval(), sys.gettrace(), sys.getprofile(), sys.flags)
        print("numpy" in sys.modules, "pandas" in sys.modules, "argparse" in sys.modules)
        """,
    "open_files": """
        import os
        fds = [os.open("x", os.O_CREAT | os.O_RDWR) for _ in range(3)]
        print(fds, [os.get_inheritable(fd) for fd in fds])
        """,
    "code_is_not_kept": """
        import gc, types, weakref
        import numpy as np
        def died():
            print("code died")
        scope = {"np": np}
        exec("def f():\\n    return np.ones(100)", scope)
        f = scope.pop("f")
        f()
        weakref.finalize(f.__code__, died)
        del f
        print("after")
        """,
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_program_does_the_same(name: str, tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(textwrap.dedent(PROGRAMS[name]), encoding="utf-8")

    assert_same(["program.py"], tmp_path)


@pytest.mark.parametrize("call", ["read('no.tlm')", "TensorPool(0)", "zeros((-1,))"])
def test_an_error_of_tlmem_in_the_program_is_the_programs_own(call: str, tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(f"import tlmem\ntlmem.{call}\n", encoding="utf-8")

    assert_same(["program.py"], tmp_path)


def test_pandas_program_does_the_same(tmp_path: Path) -> None:
    program = """
import numpy as np
import pandas as pd
frame = pd.DataFrame({"k": np.arange(5000) % 7, "v": np.arange(5000.0)})
print(frame.groupby("k").v.agg(["sum", "mean"]))
print(frame.merge(frame.head(10), on="k").shape, frame.sort_values("v").v.iloc[-1])
"""
    (tmp_path / "program.py").write_text(program, encoding="utf-8")

    assert_same(["program.py"], tmp_path)


def test_program_that_closes_every_file_keeps_its_own_whole(tmp_path: Path) -> None:
    program = """
import os
import numpy as np
os.closerange(3, 5000)
files = [open(f"file{i}", "wb", buffering=0) for i in range(10)]
for file in files:
    file.write(b"mine")
for i in range(200_000):
    np.empty(1 + i % 977, np.uint8)
print([os.path.getsize(f"file{i}") for i in range(10)], files[0].fileno())
"""
    (tmp_path / "program.py").write_text(program, encoding="utf-8")

    assert_same(["program.py"], tmp_path)
    recorded(["program.py"], tmp_path, options=("-q", "-o", "a.tlm"))
    recording = tlmem.read(tmp_path / "a.tlm")
    assert recording.sealed and not recording.problems
    assert recording.totals.total_count >= 200_000


@pytest.mark.skipif(
    sys.platform != "linux"
    or tuple(int(part) for part in os.uname().release.split(".")[:2]) < (5, 9),
    reason="a thread has a table of open files of its own on Linux 5.9 and later",
)
@pytest.mark.parametrize("closes", ["", "os.closerange(3, 5000)"])
def test_files_of_the_program_have_the_numbers_they_have_without_the_recorder(
    closes: str, tmp_path: Path
) -> None:
    program = f"""
import importlib, os, time
import numpy as np
{closes}
first = os.open(os.devnull, os.O_RDONLY)
numbers = {{first}}
for name in ("json", "decimal", "statistics", "asyncio", "xml.dom.minidom", "email.message"):
    importlib.import_module(name)
    end = time.monotonic() + 0.4
    while time.monotonic() < end:
        number = os.open(os.devnull, os.O_RDONLY)
        numbers.add(number)
        os.close(number)
        np.ones(1000)
print(len(numbers))
"""
    (tmp_path / "program.py").write_text(program, encoding="utf-8")

    result = recorded(["program.py"], tmp_path, options=("-q", "-o", "a.tlm"))

    assert result.stdout.strip() == b"2", result.stdout + result.stderr
    assert tlmem.read(tmp_path / "a.tlm").sealed
