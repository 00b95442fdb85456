"""Code objects and frames that no compiler makes, arrays that no allocator likes."""

from pathlib import Path

import pytest
from support.hostile import Program, assert_undisturbed, cases

MAKE = """
import numpy as np
def run(source, name, **changes):
    scope = {"np": np}
    code = compile(source, "x", "exec")
    exec(code.replace(co_filename=name, **changes), scope)
    return scope
"""

PROGRAMS: dict[str, str | Program] = {
    "file names are odd": MAKE
    + """
import os
for name in ("", "\\n", "a\\nb", "\\udcff\\ud800", "\\0", "a\\0b", "<>", "<string>", "/", "//", "..",
             "./x", "././x", "x" * 5000, "é" * 3000, "\\U0001F600" * 2000, "~", "-", " ", "\\t", "\\x1b[31m"):
    kept = run("a = [np.ones(10) for _ in range(3)]", name)
    print(len(kept["a"]))
""",
    "file names are a megabyte long": MAKE
    + """
for n in range(5):
    print(len(run("a = np.ones(10)", "/" + str(n) * (1 << 20))["a"]))
""",
    "file names are of a class of their own": MAKE
    + """
class Name(str):
    def __str__(self): raise RuntimeError("str")
    def encode(self, *_): raise RuntimeError("encode")
    def __hash__(self): raise RuntimeError("hash")
    def __eq__(self, _): raise RuntimeError("eq")
try:
    print(len(run("a = np.ones(10)", Name("/x"))["a"]))
except (RuntimeError, TypeError) as error:
    print(type(error).__name__, error)
""",
    "names of functions are odd": MAKE
    + """
def f(): return np.ones(10)
for name in ("", "\\n", "\\udcff", "\\0", "x" * 100_000, "é" * 2000, "<lambda>", " ", "a.b"):
    f.__code__ = f.__code__.replace(co_name=name, co_qualname=name)
    f.__name__ = f.__qualname__ = name
    print(f().sum())
""",
    "line tables are forged": MAKE
    + """
import random
random.seed(3)
def f(): return np.ones(10)
original = f.__code__
for length in (0, 1, 2, 7, 64, 5000):
    f.__code__ = original.replace(co_linetable=bytes(random.randrange(256) | 128 for _ in range(length)))
    print(f().sum())
f.__code__ = original.replace(co_linetable=b"\\xff" * 100)
print(f().sum())
f.__code__ = original.replace(co_linetable=b"\\x00" * 100)
print(f().sum())
""",
    "first lines are odd": MAKE
    + """
def f(): return np.ones(10)
for line in (0, 1, 2**31 - 1, -1, -(2**31), 2**30):
    try:
        f.__code__ = f.__code__.replace(co_firstlineno=line)
        print(line, f().sum())
    except (ValueError, OverflowError) as error:
        print(type(error).__name__)
""",
    "code is replaced while it runs": """
        import numpy as np
        def f():
            f.__code__ = g.__code__
            return np.ones(10)
        def g(): return np.zeros(10)
        print(f().sum(), f().sum())
        """,
    "code has no lines": MAKE
    + """
code = compile("a = np.ones(10)", "x", "exec").replace(co_linetable=b"")
scope = {"np": np}; exec(code, scope); print(scope["a"].sum())
""",
    "code objects are made without end": Program(
        MAKE
        + """
source = "def f():\\n    return np.ones(3)"
code = compile(source, "x", "exec")
total = 0
for n in range(20_000):
    scope = {"np": np}
    exec(code.replace(co_filename=f"/f{n}"), scope)
    total += scope["f"]().sum()
print(total)
"""
    ),
    "a million code objects": Program(
        MAKE
        + """
code = compile("a = np.ones(3)", "x", "exec")
for n in range(1_000_000): exec(code.replace(co_firstlineno=n + 1), {"np": np})
print("end")
""",
        long=True,
    ),
    "a line of ten thousand calls": "import numpy as np\nkept = ["
    + "np.ones(3), " * 10_000
    + "]\n",
    "a function of ten thousand lines": "import numpy as np\ndef f():\n"
    + "    np.ones(3)\n" * 10_000
    + "f()\n",
    "classes are made without end": """
        import numpy as np
        for n in range(3000):
            cls = type(f"C{n}", (), {"make": lambda self: np.ones(3)})
            cls().make()
        print("end")
        """,
    "a stack of twenty thousand frames": """
        import sys
        import numpy as np
        sys.setrecursionlimit(30_000)
        def f(n): return f(n - 1) if n else np.ones(10)
        print(f(20_000).sum())
        """,
    "generators that run each other": """
        import numpy as np
        def g(n):
            if n:
                yield from g(n - 1)
            yield np.ones(n + 1)
        print(sum(a.sum() for a in g(300)))
        """,
    "frames are kept alive": """
        import sys
        import numpy as np
        kept = []
        def f():
            a = np.ones(10)
            kept.append(sys._getframe())
        for _ in range(100): f()
        print(sum(frame.f_locals["a"].sum() for frame in kept))
        """,
    "frames are cleared": """
        import sys
        import numpy as np
        def g():
            a = np.ones(10)
            yield sys._getframe()
        running = g(); frame = next(running)
        frame.clear()
        print(frame.f_locals)
        """,
    "f_locals is written": """
        import sys
        import numpy as np
        def f():
            a = np.ones(3)
            sys._getframe().f_locals["a"] = None
            return a.sum()
        print(f())
        """,
    "f_lineno is changed by a trace function": """
        import sys
        import numpy as np
        def trace(frame, event, _):
            if event == "line" and frame.f_lineno == 9 and frame.f_code.co_name == "f":
                frame.f_lineno = 10
            return trace
        def f():
            a = 1
            a = 2
            return a, np.ones(3).sum()
        sys.settrace(trace)
        result = f()
        sys.settrace(None)
        print(result)
        """,
    "switches between stacks": """
        import asyncio
        import numpy as np
        async def f(n):
            a = np.ones(n + 1)
            for _ in range(5): await asyncio.sleep(0)
            return a.sum()
        async def main(): print(sum(await asyncio.gather(*(f(n) for n in range(50)))))
        asyncio.run(main())
        """,
    "thousands of threads": """
        import threading
        import numpy as np
        def work(): np.ones(10)
        for _ in range(100):
            threads = [threading.Thread(target=work) for _ in range(20)]
            for t in threads: t.start()
            for t in threads: t.join()
        print("end")
        """,
    "ten thousand threads": Program(
        """
        import threading
        import numpy as np
        def work(): np.ones(10)
        for _ in range(10_000):
            t = threading.Thread(target=work); t.start(); t.join()
        print("end")
        """,
        long=True,
    ),
    "hundreds of threads at once": """
        import threading
        import numpy as np
        gate = threading.Barrier(201)
        def work():
            a = np.ones(10); gate.wait(); a.sum()
        threads = [threading.Thread(target=work) for _ in range(200)]
        for t in threads: t.start()
        gate.wait()
        for t in threads: t.join()
        print("end")
        """,
    "threads of C call Python": """
        import ctypes, sys
        import numpy as np
        libc = ctypes.CDLL(None)
        made = []
        @ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p)
        def work(_):
            made.append(np.ones(10)); return None
        threads = (ctypes.c_ulong * 5)()
        for i in range(5): libc.pthread_create(ctypes.byref(threads, i * ctypes.sizeof(ctypes.c_ulong)), None, work, None)
        for thread in threads: libc.pthread_join(ctypes.c_ulong(thread), None)
        print(len(made))
        """,
    "code extras are requested": """
        import ctypes
        api = ctypes.pythonapi
        name = "PyUnstable_Eval_RequestCodeExtraIndex" if hasattr(api, "PyUnstable_Eval_RequestCodeExtraIndex") else "_PyEval_RequestCodeExtraIndex"
        request = getattr(api, name); request.argtypes = [ctypes.c_void_p]; request.restype = ctypes.c_ssize_t
        print(request(None) >= 0)
        """,
    # ---- arrays ----
    "arrays that cannot be": """
        import numpy as np
        for shape in (1 << 40, 1 << 60, (1 << 31, 1 << 31), -1):
            for make in (np.empty, np.zeros, np.ones):
                try:
                    if make is np.ones and shape == 1 << 40: continue
                    a = make(shape)
                    print("made"); del a
                except (MemoryError, ValueError) as error: print(type(error).__name__)
        """,
    "arrays of nothing": """
        import numpy as np
        kept = [np.empty(0), np.empty((0, 5)), np.empty((3, 0, 2)), np.array(1.0), np.empty(5, "V0"), np.array([])]
        kept += [np.empty(0) for _ in range(10_000)]
        print(len(kept), kept[1].nbytes, kept[4].dtype)
        """,
    "the allocator is replaced by the program": """
        import ctypes, sys
        import numpy as np
        from numpy._core import _multiarray_umath as core
        table = ctypes.pythonapi.PyCapsule_GetPointer
        table.restype, table.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
        api = ctypes.cast(table(core._ARRAY_API, None), ctypes.POINTER(ctypes.c_void_p))
        get = ctypes.PYFUNCTYPE(ctypes.py_object)(api[305])
        change = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.py_object)(api[304])
        before = get()
        print(core.get_handler_name())
        change(before)
        print(np.ones(10).sum(), core.get_handler_name(np.ones(3)))
        """,
    "NumPy is imported twice": """
        import sys
        import numpy
        first = numpy.ones(5)
        for name in [n for n in sys.modules if n.startswith("numpy")]: del sys.modules[name]
        try:
            import numpy
            print(numpy.ones(5).sum() == first.sum())
        except (ImportError, RuntimeError) as error:
            print(type(error).__name__)
        """,
    "NumPy is reloaded": """
        import importlib, warnings
        warnings.simplefilter("ignore")
        import numpy
        importlib.reload(numpy)
        print(numpy.ones(5).sum())
        """,
    "NumPy is another module": Program(
        "import numpy; print(numpy.answer)", files={"numpy.py": "answer = 42"}
    ),
    "NumPy cannot be imported": """
        import sys
        sys.modules["numpy"] = None
        try: import numpy
        except ImportError as error: print(error)
        """,
    "NumPy is imported by a thread": """
        import threading
        def work():
            import numpy; print(numpy.ones(5).sum())
        t = threading.Thread(target=work); t.start(); t.join()
        """,
    "NumPy is imported by many threads": """
        import threading
        def work():
            import numpy; numpy.ones(5)
        threads = [threading.Thread(target=work) for _ in range(8)]
        for t in threads: t.start()
        for t in threads: t.join()
        print("end")
        """,
    "memory is freed by another thread": """
        import queue, threading
        import numpy as np
        q = queue.Queue()
        def work():
            while (a := q.get()) is not None: del a
        t = threading.Thread(target=work); t.start()
        for n in range(2000): q.put(np.ones(n % 50))
        q.put(None); t.join(); print("end")
        """,
    "arrays own the memory of others": """
        import ctypes
        import numpy as np
        kept = [np.frombuffer(bytearray(100), np.uint8), np.ctypeslib.as_array((ctypes.c_int * 10)())]
        kept += [memoryview(kept[0]), np.asarray(memoryview(b"abc")), np.lib.stride_tricks.as_strided(kept[0], (5,), (1,))]
        del kept[0]
        print(len(kept))
        """,
    "an array's base is a cycle": """
        import gc
        import numpy as np
        a = np.empty(1, object); a[0] = a
        b = np.empty(2, object); b[0], b[1] = b, a
        del a, b
        print(gc.collect() > 0)
        """,
    "objects whose class lies": """
        import numpy as np
        class Liar:
            __slots__ = ("a",)
            @property
            def __class__(self): raise RuntimeError("class")
            @property
            def __dict__(self): raise RuntimeError("dict")
            def __getattribute__(self, name): raise RuntimeError(name)
            def __hash__(self): raise RuntimeError("hash")
            def __repr__(self): raise RuntimeError("repr")
        liar = Liar()
        object.__setattr__(liar, "a", np.ones(1000))
        kept = [liar, {1: liar}]
        print("end")
        """,
    "names that are no identifiers": """
        import numpy as np
        globals()["a b"] = np.ones(100)
        globals()["\\udcff"] = np.ones(100)
        class A: pass
        a = A(); vars(a)["\\n"] = np.ones(100); vars(a)["x" * 100_000] = np.ones(100)
        d = {("t", 1): np.ones(100), 3.5: np.ones(100), None: np.ones(100)}
        print("end")
        """,
    "keys that raise when they are looked at": """
        import numpy as np
        class Key:
            armed = False
            def __hash__(self):
                if Key.armed: raise RuntimeError("hash")
                return 1
            def __eq__(self, other): raise RuntimeError("eq")
            def __repr__(self): raise RuntimeError("repr")
        kept = {Key(): np.ones(1000)}
        Key.armed = True
        print("end")
        """,
    "structures a hundred thousand deep": """
        import numpy as np
        kept = np.ones(10)
        for _ in range(100_000): kept = [kept]
        print("end")
        import os
        os.write(1, b"still here\\n")
        while isinstance(kept, list): kept = kept[0]
        """,
    "marks of nonsense": """
        import tlmem
        for label in ("", "\\0", "\\udcff", "x" * 100_000, None, 3, b"bytes", []):
            try: tlmem.mark(label)
            except Exception as error: print(type(error).__name__)
        for index in (-1, 2**63, 1.5, None, "a"):
            try: tlmem.mark("m", index)
            except Exception as error: print(type(error).__name__)
        tlmem.snapshot()
        print("end")
        """,
    "it records itself": """
        import tlmem
        try:
            with tlmem.Recorder("inner.tlm"): print("recorded")
        except Exception as error: print("recorded")
        """,
}


@pytest.mark.parametrize("program", cases(PROGRAMS))
def test_odd_code(program: Program, tmp_path: Path) -> None:
    assert_undisturbed(program, tmp_path)
