"""A program may replace what the interpreter offers by name: modules, built-in functions, streams.

Whatever the recorder does once the program runs must not depend on any of it.
"""

from pathlib import Path

import pytest
from support.hostile import Program, assert_undisturbed, cases

ARRAYS = "import numpy as np; kept = [np.ones(100) for _ in range(50)]\n"

PROGRAMS: dict[str, str | Program] = {
    "modules are forgotten": Program("import sys; sys.modules.clear(); print('end')", spoken=True),
    "modules are forgotten before numpy is imported again": """
        import sys
        import numpy
        print(numpy.ones(3).sum())
        saved = dict(sys.modules); sys.modules.clear(); sys.modules.update(saved)
        print(numpy.ones(3).sum())
        """,
    "modules are None": """
        import sys
        for name in list(sys.modules):
            if name not in ("sys", "builtins", "__main__"):
                sys.modules[name] = None
        print("end")
        """,
    "only the recorder's modules are removed": """
        import sys
        for name in [n for n in sys.modules if n.startswith("tlmem")]:
            del sys.modules[name]
        """
    + ARRAYS,
    "the recorder's modules are replaced by others": """
        import sys, types
        for name in [n for n in sys.modules if n.startswith("tlmem")]:
            sys.modules[name] = types.ModuleType(name)
        """,
    "sys.modules is another mapping": """
        import sys
        class Mine(dict):
            def __missing__(self, key): raise RuntimeError(key)
            def __getitem__(self, key): raise RuntimeError(key)
            def get(self, *_): raise RuntimeError("get")
        sys.modules = Mine()
        print("end")
        """,
    "open is None": "import builtins; builtins.open = None; print('end')",
    "print is a function that raises": """
        import builtins, sys
        def broken(*_, **__): raise RuntimeError("print")
        sys.stdout.write("end\\n")
        builtins.print = broken
        """,
    "len isinstance range and sorted are None": Program(
        """
        import builtins
        print("end")
        for name in ("len", "isinstance", "range", "sorted", "list", "dict", "str", "int", "type",
                     "getattr", "next", "iter", "min", "max", "reversed", "tuple", "bytes", "set"):
            setattr(builtins, name, None)
        """,
        spoken=True,
    ),
    "import is forbidden": """
        import builtins
        def broken(name, *_): raise ImportError("no imports: " + name)
        builtins.__import__ = broken
        print("end")
        """,
    "import is reported": Program(
        """
        import builtins
        original = builtins.__import__
        def told(name, *rest):
            original("os").write(1, f"import {name}\\n".encode())
            return original(name, *rest)
        builtins.__import__ = told
        import beside
        """,
        files={"beside.py": ""},
    ),
    "import is deleted": "import builtins; print('end'); del builtins.__import__",
    "every builtin is deleted": """
        import builtins
        print("end")
        for name in list(vars(builtins)):
            if not name.startswith("__"):
                del builtins.__dict__[name]
        """,
    "every builtin is cleared": "import builtins; print('end'); vars(builtins).clear()",
    "exceptions are replaced": """
        import builtins
        print("end")
        builtins.OSError = builtins.ValueError = builtins.KeyboardInterrupt = "not a class"
        builtins.BaseException = builtins.SystemExit = builtins.ImportError = 7
        """,
    "builtins of main are another dictionary": """
        globals()["__builtins__"] = {"print": print, "__import__": __import__}
        import sys
        print(sys.version_info > (3,))
        """,
    "os is emptied": """
        import os
        print("end")
        vars(os).clear()
        """,
    "functions of os raise": """
        import os, sys
        def broken(*_, **__): raise RuntimeError("os")
        sys.stdout.write("end\\n"); sys.stdout.flush()
        for name in ("getpid", "write", "open", "close", "pipe", "fstat", "fspath", "fsencode",
                     "getcwd", "posix_spawn", "waitpid", "read", "uname", "strerror", "kill"):
            setattr(os, name, broken)
        """,
    "os.environ is None": "import os; os.environ = None; print('end')",
    "os.environ is cleared": "import os; os.environ.clear(); print('end')",
    "os.environ is full of nonsense": Program(
        """
        import os
        for name in ("PYTHONHOME", "PYTHONPATH", "PYTHONSTARTUP", "LD_LIBRARY_PATH", "TMPDIR"):
            os.environ[name] = "/absent/\\udcff"
        print("end")
        """,
        spoken=True,
    ),
    "os.path is None": "import os, sys; os.path = sys.modules['posixpath'] = None; print('end')",
    "time stands still": """
        import time
        def broken(): raise RuntimeError("time")
        time.monotonic = time.time = time.perf_counter = broken
        """,
    "gc is emptied": "import gc; print('end'); vars(gc).clear()",
    "sys is emptied": Program(
        "import sys; sys.stdout.write('end\\n'); sys.stdout.flush(); vars(sys).clear()",
        state="",
    ),
    "sys.path is deleted": "import sys; print('end'); del sys.path",
    "sys.path names folders with modules of the same names": Program(
        """
        import sys
        sys.path.insert(0, "evil")
        print("end")
        """,
        files={
            f"evil/{name}.py": "import os; os.write(2, b'imported'); raise SystemExit(3)"
            for name in ("json", "argparse", "pandas", "tlmem", "shlex", "contextlib", "io")
        },
        spoken=True,
    ),
    "sys.meta_path is empty": "import sys; sys.meta_path.clear(); print('end')",
    "sys.path_hooks are empty": "import sys; sys.path_hooks.clear(); print('end')",
    "sys.stdout is None": "import sys; print('one'); sys.stdout = None; print('two')",
    "sys.stderr is None": "import sys; sys.stderr = None; print('two')",
    "sys.stderr is deleted": "import sys; del sys.stderr; print('two')",
    "sys.stdout is an object without flush": """
        import os, sys
        class Odd:
            def write(self, text): os.write(1, b"odd " + text.encode())
        sys.stdout = sys.stderr = Odd()
        print("end")
        """,
    "sys.stdout counts how often it is flushed": Program(
        """
        import os, sys
        class Odd:
            flushes = 0
            def write(self, text): pass
            def flush(self, write=os.write):
                Odd.flushes += 1
                write(1, b"flush %d\\n" % Odd.flushes)
        sys.stdout = sys.stderr = Odd()
        """,
        spoken=True,
    ),
    "sys.stdout raises when it is flushed": Program(
        """
        import sys
        class Odd:
            def write(self, text): pass
            def flush(self): raise RuntimeError("flush")
        print("end")
        sys.stdout = sys.stderr = Odd()
        """,
        spoken=True,
    ),
    "sys.stdout has a property that raises": """
        import sys
        class Odd:
            def __getattr__(self, name): raise KeyboardInterrupt(name)
        print("end", flush=True)
        sys.stdout = Odd()
        """,
    "sys.stdout is closed": "import sys; print('end'); sys.stdout.close()",
    "sys.stderr is closed": "import sys; print('end'); sys.stderr.close()",
    "sys.exit is None": "import sys; sys.exit = None; print('end')",
    "sys.executable is empty": Program(
        "import sys; sys.executable = ''; print('end')", spoken=True
    ),
    "sys.executable is None": Program(
        "import sys; sys.executable = None; print('end')", spoken=True
    ),
    "sys.executable is something else": Program(
        "import sys; sys.executable = '/bin/echo'; print('end')", spoken=True
    ),
    "sys.flags is None": "import sys; sys.flags = None; print('end')",
    "sys.argv is deleted": "import sys; del sys.argv, sys.orig_argv; print('end')",
    "sys.version_info is a string": "import sys; sys.version_info = 'none'; print('end')",
    "os._exit is reported": """
        import os
        original = os._exit
        def told(code):
            os.write(1, b"leaving\\n")
            original(code)
        os._exit = told
        if (pid := os.fork()) == 0:
            os._exit(3)
        print(os.waitpid(pid, 0)[1])
        """,
    "os.fork is replaced": """
        import os
        os.fork = None
        import multiprocessing
        print("end")
        """,
    "threading is emptied": Program(
        "import threading; print('end'); vars(threading).clear()", state=""
    ),
    "threading is patched": """
        import threading
        class Mine(threading.Thread):
            def start(self):
                print("started")
                super().start()
        threading.Thread = Mine
        threading.Thread(target=print, args=("ran",)).start()
        threading.current_thread = threading.main_thread = None
        threading._shutdown = lambda: print("shutdown")
        """,
    "_thread is patched": """
        import _thread
        _thread.get_native_id = _thread.get_ident = None
        import os
        if (pid := os.fork()) == 0:
            os._exit(0)
        print(os.waitpid(pid, 0)[1])
        """,
    "signal is emptied": "import signal; print('end'); vars(signal).clear()",
    "atexit is cleared": Program("import atexit; atexit._clear(); print('end')", state=""),
    "atexit counts its callbacks": """
        import atexit
        print(atexit._ncallbacks())
        """,
    "atexit compares what is registered": """
        import atexit
        class Nosy:
            def __eq__(self, other):
                print("compared", getattr(other, "__name__", other))
                return True
        atexit.unregister(Nosy())
        """,
    "exit handlers are run early": """
        import atexit
        atexit.register(print, "handler")
        atexit._run_exitfuncs()
        print("still here")
        """
    + "import numpy as np; kept = np.ones(10)\n",
    "warnings are errors": """
        import warnings
        warnings.simplefilter("error")
        import os, threading
        if (pid := os.fork()) == 0:
            os._exit(0)
        print(os.waitpid(pid, 0)[1])
        """,
    "warnings are shown by a function that raises": """
        import warnings
        def broken(*_, **__): raise RuntimeError("warning")
        warnings.showwarning = warnings.formatwarning = broken
        try:
            warnings.warn("mine")
        except RuntimeError as error:
            print(error)
        """,
    "codecs are gone": """
        import codecs, encodings
        codecs.register_error("backslashreplace", lambda error: 1 / 0)
        vars(encodings).clear()
        print("end")
        """,
    "every str method of os is a lambda": """
        import posixpath
        for name in ("abspath", "join", "dirname", "basename", "realpath", "normpath"):
            setattr(posixpath, name, lambda *_: 1 / 0)
        print("end")
        """,
    "the working directory is removed": Program(
        """
        import os, tempfile
        folder = tempfile.mkdtemp()
        os.chdir(folder)
        os.rmdir(folder)
        print("end")
        """,
        spoken=True,
    ),
    "importlib is patched": """
        import importlib.machinery, importlib._bootstrap_external as external
        def broken(*_): raise RuntimeError("loader")
        importlib.machinery.ExtensionFileLoader.exec_module = broken
        try:
            import numpy
        except RuntimeError as error:
            print("refused", error)
        except ImportError as error:
            print("refused as ImportError")
        """,
    "_imp is patched": """
        import _imp
        print(_imp.exec_dynamic, type(_imp.exec_dynamic), _imp.exec_dynamic.__name__,
              _imp.exec_dynamic.__module__, _imp.exec_dynamic.__text_signature__)
        original = _imp.exec_dynamic
        def told(module):
            if module.__name__ == "numpy._core._multiarray_umath":
                print("told", module.__name__)
            return original(module)
        _imp.exec_dynamic = told
        import numpy as np
        print(np.ones(5).sum())
        """,
    "_posixsubprocess is looked at": """
        import _posixsubprocess, subprocess, sys
        f = _posixsubprocess.fork_exec
        print(repr(f)[:28], type(f), f.__name__, f.__qualname__, f.__module__, f is subprocess._fork_exec)
        print(f.__doc__[:20], f.__text_signature__, type(f.__self__))
        try:
            f()
        except TypeError as error:
            print(error)
        print(subprocess.run([sys.executable, "-c", "print(1)"], capture_output=True).stdout)
        """,
    "_posixsubprocess is given sequences of the program's": """
        import subprocess, sys
        class Sequence:
            def __init__(self, name):
                self.name = name
            def __len__(self):
                print(self.name, "has a length")
                return sys.maxsize
            def __getitem__(self, i):
                print(self.name, "is asked")
                return b"python" * (i < 3) or 1 / 0
        original = subprocess._fork_exec
        for at in (1, 5):
            def odd(*arguments):
                return original(*arguments[:at], Sequence(f"argument {at}"), *arguments[at + 1:])
            subprocess._fork_exec = odd
            try:
                subprocess.run([sys.executable, "-c", "pass"], env={})
            except (MemoryError, ArithmeticError, TypeError) as error:
                print(type(error))
        """,
    "cffi is removed": """
        import sys
        for name in [n for n in sys.modules if "cffi" in n]:
            del sys.modules[name]
        """,
}


@pytest.mark.parametrize("program", cases(PROGRAMS))
def test_replaced_names(program: Program, tmp_path: Path) -> None:
    assert_undisturbed(program, tmp_path)
