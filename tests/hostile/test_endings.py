"""Every way in which a program ends, and what still runs after its last line."""

from pathlib import Path

import pytest
from support.hostile import Program, assert_undisturbed, cases

PROGRAMS: dict[str, str | Program] = {
    "exit with a float": "import sys; sys.exit(1.5)",
    "exit with True": "import sys; sys.exit(True)",
    "exit with an enormous number": "import sys; sys.exit(1 << 70)",
    "exit with a text of surrogates": "import sys; sys.exit('\\udcff\\ud800')",
    "exit with an object that raises": """
        import sys
        class Odd:
            def __str__(self): raise RuntimeError("str")
        sys.exit(Odd())
        """,
    "exit with an object that exits": """
        import sys
        class Odd:
            def __str__(self): sys.exit(7)
        sys.exit(Odd())
        """,
    "exit with a list": "import sys; sys.exit([1, 2])",
    "exit with a subclass of int": "import sys\nclass N(int): pass\nsys.exit(N(5))\n",
    "a subclass of SystemExit": "class Mine(SystemExit): pass\nraise Mine(6)\n",
    "a subclass of SystemExit without a code": """
        class Mine(SystemExit):
            def __init__(self): pass
        raise Mine
        """,
    "a SystemExit whose code raises": """
        class Mine(SystemExit):
            @property
            def code(self): raise RuntimeError("code")
        raise Mine(3)
        """,
    "a SystemExit whose code changes": """
        class Mine(SystemExit):
            count = 0
            @property
            def code(self):
                Mine.count += 1
                return Mine.count
        raise Mine
        """,
    "a SystemExit class": "raise SystemExit",
    "a SystemExit from another exception": "try: 1 / 0\nexcept Exception as e: raise SystemExit(4) from e\n",
    "a subclass of KeyboardInterrupt": "class Mine(KeyboardInterrupt): pass\nraise Mine('x')\n",
    "an interrupt in a module": Program(
        words=("-m", "module"), files={"module.py": "raise KeyboardInterrupt"}
    ),
    "an exit in a module": Program(
        words=("-m", "module"), files={"module.py": "import sys; sys.exit('text')"}
    ),
    "an exception in a module": Program(
        words=("-m", "module"), files={"module.py": "def f(): 1 / 0\nf()\n"}
    ),
    "a module of a package without main": Program(
        words=("-m", "package"), files={"package/__init__.py": "print(1)"}, state=""
    ),
    "an exception group": "raise BaseExceptionGroup('g', [KeyboardInterrupt(), SystemExit(3), ValueError()])",
    "a GeneratorExit": "raise GeneratorExit",
    "a StopIteration": "raise StopIteration(3)",
    "a MemoryError": "raise MemoryError",
    "a RecursionError": "def f(): f()\nf()\n",
    "a RecursionError in C": """
        deep = []
        for _ in range(100_000): deep = [deep]
        try: repr(deep)
        except RecursionError as error: print(type(error).__name__)
        import copy
        try: copy.deepcopy(deep)
        except RecursionError as error: print(type(error).__name__)
        """,
    "a RecursionError while it is compiled": Program("(" * 150 + ")" * 150, state=""),
    "an exception with notes and a long chain": """
        error = ValueError("first")
        for n in range(30):
            try:
                try: raise error
                except Exception: raise KeyError(n)
            except Exception as e: error = e
        error.add_note("note"); raise error
        """,
    "it is killed by SIGKILL": Program("import os; os.kill(os.getpid(), 9)", state="open"),
    "it is killed by SIGTERM": Program("import os; os.kill(os.getpid(), 15)", state="open"),
    "it aborts": Program("import os; os.abort()", state="open"),
    "it leaves by os._exit": Program("import os; print('lost'); os._exit(3)", state="open"),
    "it leaves by the exit of C": Program(
        "import ctypes; print('end', flush=True); ctypes.CDLL(None).exit(5)", state=""
    ),
    "it leaves by the exit of C in a thread": Program(
        """
        import ctypes, threading
        t = threading.Thread(target=ctypes.CDLL(None)._exit, args=(5,)); t.start(); t.join()
        """,
        state="open",
    ),
    "it writes to address 0 with faulthandler on": Program(
        "import ctypes; ctypes.string_at(0)",
        flags=("-X", "faulthandler"),
        redirect="2>/dev/null",  # it lists the extension modules
        state="open",
    ),
    "it writes to address 0": Program("import ctypes; ctypes.string_at(0)", state="open"),
    "the stack overflows in C": Program(
        """
        import ctypes, sys
        f = ctypes.CFUNCTYPE(None)
        def again(): g()
        g = f(again)
        sys.setrecursionlimit(1 << 30)
        g()
        """,
        state="",
        long=True,
    ),
    "the stack overflows in Python": Program(
        """
        import sys
        sys.setrecursionlimit(20_000)
        def f(n): return n and f(n - 1)
        print(f(15_000))
        """
    ),
    "generators are closed at the end": """
        import numpy as np
        def g():
            try:
                yield np.ones(10)
            finally:
                print("closed")
        kept = g(); next(kept)
        """,
    "coroutines are left": "async def f(): pass\nkept = f()\n",
    "an asynchronous generator is left": """
        import asyncio
        async def g():
            try: yield 1
            finally: print("closed")
        async def main():
            async for _ in g(): break
        asyncio.run(main())
        """,
    "an event loop is left open": "import asyncio; loop = asyncio.new_event_loop(); print('end')",
    "finalizers make arrays": """
        import numpy as np
        class Odd:
            def __del__(self, np=np, print=print): print(np.ones(10).sum())
        class Holder: pass
        kept = Odd()
        cycle = Holder(); cycle.me, cycle.odd = cycle, Odd()
        """,
    "finalizers raise": """
        class Odd:
            def __del__(self): raise RuntimeError("del")
        kept = Odd()
        """,
    "finalizers exit": """
        import sys
        class Odd:
            def __del__(self, exit=sys.exit): exit(9)
        kept = Odd()
        """,
    "finalizers write to stderr": Program(
        """
        import sys
        class Odd:
            def __del__(self, err=sys.stderr): err.write("gone\\n")
        kept = Odd()
        """,
        spoken=True,
    ),
    "an object is revived": """
        kept = []
        class Odd:
            def __del__(self): kept.append(self); print("revived")
        odd = Odd(); del odd
        print(len(kept))
        """,
    "names of main are gone in their order": """
        class Noisy:
            def __init__(self, name): self.name = name
            def __del__(self, print=print): print(self.name)
        b = Noisy("b"); a = Noisy("a"); _c = Noisy("_c"); __d = Noisy("__d"); z = [Noisy("in z")]
        import sys; sys.kept = Noisy("of sys")
        import json; json.kept = Noisy("of json")
        """,
    "names of main are gone after an exit": """
        class Noisy:
            def __init__(self, name): self.name = name
            def __del__(self, print=print): print(self.name)
        b = Noisy("b"); a = Noisy("a"); _c = Noisy("_c")
        import sys; sys.exit(3)
        """,
    "names of main are gone after an exception": """
        class Noisy:
            def __init__(self, name): self.name = name
            def __del__(self, print=print): print(self.name)
        def f():
            local = Noisy("local")
            1 / 0
        b = Noisy("b"); a = Noisy("a")
        f()
        """,
    "names of a module are gone": Program(
        words=("-m", "module"),
        files={
            "module.py": """
            class Noisy:
                def __init__(self, name): self.name = name
                def __del__(self, print=print): print(self.name)
            b = Noisy("b"); a = Noisy("a"); _c = Noisy("_c")
            """
        },
    ),
    "names of a piece of code are gone": Program(
        words=(
            "-c",
            "class N:\n  def __del__(self, p=print): p('gone')\na = N(); f = lambda: a\n",
        )
    ),
    "main is removed from the modules": Program(
        "import sys; del sys.modules['__main__']; print('end')"
    ),
    "main is replaced in the modules": """
        import sys, types
        sys.modules["__main__"] = types.ModuleType("__main__")
        print(__name__)
        """,
    "main's globals are cleared": "print('end'); globals().clear()",
    "weak references are called back": """
        import weakref
        import numpy as np
        class Mine(np.ndarray): pass
        kept = np.ones(10).view(Mine)
        reference = weakref.ref(kept, lambda _: print("gone"))
        weakref.finalize(kept, print, "finalized")
        other = np.ones(10).view(Mine); weakref.finalize(other, print, "other").atexit = False
        """,
    "a finalizer fails at exit": """
        import weakref
        class A: pass
        a = A(); weakref.finalize(a, lambda: 1 / 0)
        """,
    "threads run beyond main": """
        import threading, time
        import numpy as np
        def work(n):
            time.sleep(0.02)
            print("thread", np.ones(n).sum(), flush=True)
        thread = threading.Thread(target=work, args=(3,)); thread.start()
        print("main ends", flush=True)
        """,
    "a thread starts threads at exit": """
        import threading
        def first():
            threading.main_thread().join()
            try:
                threading.Thread(target=print, args=("second",)).start()
            except RuntimeError as error:
                print("refused")
        threading.Thread(target=first).start()
        """,
    "daemons run at the end": """
        import threading
        import numpy as np
        def work():
            while True: np.ones(100)
        for _ in range(4): threading.Thread(target=work, daemon=True).start()
        print("end")
        """,
    "a daemon prints until the end": """
        import sys, threading
        def work():
            while True: sys.stdout.flush()
        threading.Thread(target=work, daemon=True).start()
        """,
    "exit handlers fail": """
        import atexit
        atexit.register(lambda: 1 / 0)
        atexit.register(print, "handler")
        @atexit.register
        def f(): raise SystemExit(3)
        """,
    "exit handlers register exit handlers": """
        import atexit
        @atexit.register
        def first(): atexit.register(print, "second")
        """,
    "exit handlers make arrays": """
        import atexit
        import numpy as np
        kept = []
        atexit.register(lambda: (kept.append(np.ones(100)), print(len(kept))))
        """,
    "exit handlers import NumPy": "import atexit\n@atexit.register\ndef f():\n  import numpy; print(numpy.ones(3).sum())\n",
    "exit handlers clear all": Program(
        "import atexit\natexit.register(print, 'never')\natexit.register(atexit._clear)\n", state=""
    ),
    "exit handlers fork and exec": """
        import atexit, subprocess
        atexit.register(lambda: print(subprocess.run(["echo", "a"], capture_output=True).stdout))
        """,
    "exit handlers change the streams": """
        import atexit, sys
        @atexit.register
        def f(): sys.stdout = sys.stderr = None
        """,
    "logging shuts down": """
        import logging
        logging.basicConfig(level=logging.DEBUG)
        logging.getLogger("a").info("message")
        class H(logging.Handler):
            def emit(self, record): pass
            def flush(self): print("flushed")
            def close(self): print("closed")
        logging.getLogger().addHandler(H())
        """,
    "temporary files go away": """
        import tempfile, os
        kept = tempfile.TemporaryDirectory()
        print(os.path.isdir(kept.name))
        """,
    "text is left in buffers": "import sys; sys.stdout.write('out'); sys.stderr.write('err')",
    "text is left in a file": "f = open('f', 'w'); f.write('text')\nimport atexit; atexit.register(lambda: f.flush())\n",
    "text is left in a file of C": """
        import ctypes
        c = ctypes.CDLL(None)
        c.puts(b"from C")
        print("from Python")
        """,
}


@pytest.mark.parametrize("program", cases(PROGRAMS))
def test_endings(program: Program, tmp_path: Path) -> None:
    assert_undisturbed(program, tmp_path)
