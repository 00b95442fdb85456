"""A recorded program runs as ``python`` runs it: same output, same errors, same exit code.

Each case is run twice, plainly and with ``tlmem record -q``, and every byte is compared.
"""

import os
import textwrap
import zipfile
from pathlib import Path

import pytest
from support.programs import assert_same, plain, recorded

SCRIPTS = {
    "arguments": "import sys; print(sys.argv, sys.path[0], __name__, __file__, sys.orig_argv[1:])",
    "globals": "print(sorted(globals()), __spec__, __package__, __doc__, __cached__)",
    "loader": "print(type(__loader__), __loader__.name, __loader__.path, __builtins__)",
    "no_exit": "import sys; sys.exit()",
    "exit_number": "import sys; sys.exit(7)",
    "exit_large": "import sys; sys.exit(257)",
    "exit_negative": "import sys; sys.exit(-1)",
    "exit_text": "import sys; sys.exit('no more')",
    "exit_object": "import sys; sys.exit((1, 2))",
    "exit_none": "raise SystemExit(None)",
    "os_exit": "import os; os.write(1, b'left'); os._exit(9)",
    "abort": "import os; os.abort()",
    "killed": "import os, signal; os.kill(os.getpid(), signal.SIGTERM)",
    "interrupted": "import os, signal; os.kill(os.getpid(), signal.SIGINT); input()",
    "interrupt_raised": "raise KeyboardInterrupt",
    "exception": "def f():\n    return 1 / 0\nf()",
    "exception_cause": """
        def f():
            try:
                {}["a"]
            except KeyError as error:
                raise ValueError("b") from error
        try:
            f()
        except ValueError:
            raise OSError("c")
        """,
    "exception_group": "raise ExceptionGroup('many', [ValueError(1), TypeError(2)])",
    "own_hook": """
        import sys
        def hook(kind, value, trace):
            names = []
            while trace:
                names.append(trace.tb_frame.f_code.co_name)
                trace = trace.tb_next
            print(kind, value, names, sys.last_value is value, sys.excepthook is hook)
            print("file" in dir(), "__file__" in globals())
        sys.excepthook = hook
        def g(): raise LookupError("x")
        g()
        """,
    "failing_file_at_exit": """
        import atexit
        atexit.register(lambda: print("__file__" in globals()))
        1 / 0
        """,
    "exit_handlers": """
        import atexit, threading, time
        atexit.register(print, "first registered")
        atexit.register(print, "second registered")
        release = threading.Event()
        def work():
            release.wait()
            print("thread ends")
        threading.Thread(target=work).start()
        threading.Timer(0.05, release.set).start()
        print("main ends")
        """,
    "daemon": """
        import threading
        def work():
            while True:
                sum(range(100))
        threading.Thread(target=work, daemon=True).start()
        print("main ends")
        """,
    "thread_fails": """
        import threading
        def work(): raise RuntimeError("in a thread")
        thread = threading.Thread(target=work, name="worker")
        thread.start()
        thread.join()
        """,
    "asyncio": """
        import asyncio
        async def wait(n):
            await asyncio.sleep(0)
            return n
        async def main():
            print(await asyncio.gather(*(wait(n) for n in range(5))))
        asyncio.run(main())
        """,
    "stack": """
        import inspect, sys, traceback
        print(len(inspect.stack()))
        traceback.print_stack()
        try:
            sys._getframe(1)
        except ValueError as error:
            print(error)
        """,
    "recursion": """
        import sys
        def f(n):
            try:
                return f(n + 1)
            except RecursionError:
                return n
        print(f(0))
        sys.setrecursionlimit(300)
        print(f(0))
        """,
    "warnings": """
        import warnings
        warnings.warn("here")
        warnings.warn("above", stacklevel=2)
        warnings.warn("far above", stacklevel=9)
        print("\\d")
        """,
    "hooks": """
        import sys
        print([getattr(f, "__name__", type(f).__name__) for f in sys.meta_path])
        print(len(sys.path_hooks), sys.excepthook, sys.displayhook)
        print(sys.gettrace(), sys.getprofile(), sys.getswitchinterval())
        """,
    "import_fails": "import nothing_of_this_name",
    "stdin": "import sys; print(sys.stdin.read())",
    "unflushed": "import sys; sys.stdout.write('no end of line')",
    "closed_stdout": "import sys; sys.stdout.close()",
    "closed_stderr": "import os; os.close(2); print('still here')",
    "replaced_streams": "import io, sys; sys.stdout = io.StringIO(); sys.stderr = io.StringIO()",
    "pickle": """
        import pickle
        class Thing:
            pass
        print(type(pickle.loads(pickle.dumps(Thing()))) is Thing)
        """,
    "finalisation": """
        import gc, weakref
        class Noisy:
            def __init__(self, name): self.name = name
            def __del__(self): print("gone", self.name)
        kept = Noisy("kept")
        cycle = Noisy("cycle"); cycle.me = cycle
        print(gc.isenabled(), gc.get_threshold(), gc.callbacks)
        weakref.finalize(kept, print, "finalizer")
        """,
    "exec": "import os, sys; os.execv(sys.executable, [sys.executable, '-c', 'print(1)'])",
    "chdir": "import os; os.chdir('/'); print(os.getcwd())",
    "reuse_of_stderr": """
        import os
        os.close(2)
        fd = os.open("other", os.O_CREAT | os.O_WRONLY)
        print(fd)
        """,
}


@pytest.mark.parametrize("name", SCRIPTS)
def test_script_runs_as_under_python(name: str, tmp_path: Path) -> None:
    (tmp_path / "script.py").write_text(textwrap.dedent(SCRIPTS[name]), encoding="utf-8")

    assert_same(["script.py", "a", "-b", "--", "-o"], tmp_path, stdin=b"one\ntwo\n")


@pytest.mark.parametrize("path", ["sub/script.py", "./sub/script.py", "sub/../sub/script.py"])
def test_path_of_a_script_is_shown_as_python_shows_it(path: str, tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "script.py").write_text(SCRIPTS["arguments"] + "\n1 / 0", encoding="utf-8")

    assert_same([path], tmp_path)


def test_link_to_a_script_finds_the_modules_beside_its_target(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "real" / "beside.py").write_text("print(__name__)", encoding="utf-8")
    (tmp_path / "real" / "script.py").write_text("import beside", encoding="utf-8")
    os.symlink("real/script.py", tmp_path / "link.py")

    assert_same(["link.py"], tmp_path)


@pytest.mark.parametrize(
    "source",
    ["a = (", "def f(:\n  pass", "  indented", "x = 'é'\n\0", "'\\d'; return", "# coding: nope\n"],
)
def test_source_that_does_not_compile_is_reported_by_python(source: str, tmp_path: Path) -> None:
    (tmp_path / "script.py").write_text(source, encoding="utf-8")
    python, ours = plain(["script.py"], tmp_path), recorded(["script.py"], tmp_path)

    assert (ours.returncode, ours.stdout) == (python.returncode, python.stdout) == (1, b"")
    assert ours.stderr.splitlines()[-1].split(b":")[0] == b"SyntaxError" or (
        ours.stderr == python.stderr
    )
    assert not list(tmp_path.glob("*.tlm"))


def test_byte_code_runs(tmp_path: Path) -> None:
    import py_compile

    source = tmp_path / "script.py"
    source.write_text("import sys; print(sys.argv, __file__, __loader__.path)", encoding="utf-8")
    py_compile.compile(str(source), cfile=str(tmp_path / "script.pyc"))

    assert_same(["script.pyc", "x"], tmp_path)


def test_directories_and_archives_with_a_main_run(tmp_path: Path) -> None:
    program = SCRIPTS["arguments"] + "\nimport beside\nprint(__spec__.name)\n1 / 0"
    (tmp_path / "folder").mkdir()
    with zipfile.ZipFile(tmp_path / "archive.zip", "w") as archive:
        for name, text in (("__main__.py", program), ("beside.py", "print(__file__)")):
            (tmp_path / "folder" / name).write_text(text, encoding="utf-8")
            archive.writestr(name, text)

    assert_same(["folder", "x"], tmp_path)
    assert_same(["./archive.zip", "x"], tmp_path)


@pytest.mark.parametrize("module", ["single", "package", "package.inner", "absent", "json.tool"])
def test_module_runs_as_under_python(module: str, tmp_path: Path) -> None:
    program = SCRIPTS["arguments"] + "\nprint(__spec__.name, __package__)\n{}['missing']"
    (tmp_path / "package").mkdir()
    (tmp_path / "package" / "__init__.py").write_text("print('package')", encoding="utf-8")
    for name in ("single.py", "package/__main__.py", "package/inner.py"):
        (tmp_path / name).write_text(program, encoding="utf-8")

    assert_same(["-m", module, "-o", "x"], tmp_path, stdin=b"{}")


@pytest.mark.parametrize(
    "code",
    [
        "import sys; print(sys.argv, sys.path[0] == '', sorted(globals()))",
        "1 / 0",
        "def f():\n  raise ValueError\nf()",
        "raise SystemExit('bye')",
        "raise KeyboardInterrupt",
        "a b",
        "",
    ],
)
def test_code_runs_as_under_python(code: str, tmp_path: Path) -> None:
    assert_same(["-c", code, "-q", "x"], tmp_path)


def test_safe_path_is_respected(tmp_path: Path) -> None:
    (tmp_path / "script.py").write_text("import sys; print(sys.path[0])", encoding="utf-8")

    assert_same(["script.py"], tmp_path, environment={"PYTHONSAFEPATH": "1"})


@pytest.mark.parametrize("flags", [["-W", "error"], ["-X", "dev"], ["-O"], ["-u", "-B"]])
def test_flags_of_the_interpreter_hold_for_the_program(flags: list[str], tmp_path: Path) -> None:
    (tmp_path / "script.py").write_text(
        "import sys; print(sys.flags, sys.orig_argv[1:], __debug__)", encoding="utf-8"
    )

    assert_same(["script.py"], tmp_path, flags=flags)


STDIN = {
    "names": "import sys; print(sys.argv, repr(sys.path[0]), sys.orig_argv[1:], __file__, "
    "__loader__, sorted(globals()))",
    "rest": "import sys; print(repr(sys.stdin.read()))",
    "exit": "import sys; sys.exit(7)",
    "exception": "def f():\n    return 1 / 0\nf()",
    "file_at_exit": "import atexit; atexit.register(lambda: print('__file__' in globals()))",
    "syntax": "x = (",
    "encoding": "print(ascii('é'))",
    "empty": "",
}


@pytest.mark.parametrize("name", STDIN)
def test_a_program_from_standard_input_runs_as_python_runs_it(name: str, tmp_path: Path) -> None:
    assert_same(["-", "a", "--b"], tmp_path, stdin=STDIN[name].encode())
