"""Runs a script, a module or a piece of code in this process as ``python`` would run it.

Covers: ``sys.argv``, ``sys.path[0]``, a fresh ``__main__``, tracebacks without our frames, every
way of ending. Whatever ends the program is let through to the interpreter, which then does what it
always does: print, join threads, run exit handlers, choose the exit code.

Does not cover: recording. The runner works without the extension module.
"""

import atexit
import os
import sys
from collections.abc import Callable
from typing import Any

from tlmem.errors import TlmemError
from tlmem.recorder import once
from tlmem.recorder.bound import core
from tlmem.recorder.failure import CannotRecord

Call = Callable[..., Any]
HAS_CACHED = sys.version_info < (3, 15)
"""Whether modules have ``__cached__``."""


class Program:
    """What to run, checked and compiled as far as that is possible without running it.

    Attributes:
        name: for the default name of the recording: the script's or module's.
        script: absolute path of the script; empty for a module or a piece of code.
        text: its source, when no file has it; then ``file`` is what its code has for one.
        known: what its source says of how often its lines run, and which package it is.
    """

    name = ""
    script = ""
    file = ""
    text = b""
    known = once.Known("", "")
    code: Any = None

    def __init__(self, arguments: list[str]) -> None:
        self.arguments = arguments

    def words(self) -> list[str]:
        """What stands on a command line of ``python`` to run the same."""
        raise NotImplementedError

    def enter(self, main: Any) -> tuple[Any, Any]:
        """Prepares ``sys`` and the module ``__main__``.

        Returns:
            Code and its globals, or a function and its arguments.
        """
        raise NotImplementedError


class Script(Program):
    """A file of Python source or byte code."""

    def __init__(self, path: str, arguments: list[str]) -> None:
        super().__init__(arguments)
        self.path = path
        self.name = os.path.basename(path)
        self.script = _absolute(path)
        source = _read(path)
        if path.endswith(".pyc"):
            self.code = _unmarshal(path, source)
        else:
            self.code = compile(source, self.script, "exec", 0, True)
            folder = os.path.dirname(os.path.realpath(path))
            self.known = once.of_script(source, self.script, folder)

    def words(self) -> list[str]:
        return [self.path, *self.arguments]

    def enter(self, main: Any) -> tuple[Any, Any]:
        from importlib.machinery import SourceFileLoader, SourcelessFileLoader

        sys.argv = [self.path, *self.arguments]
        _set_path0(os.path.dirname(os.path.realpath(self.path)))
        loader = SourcelessFileLoader if self.path.endswith(".pyc") else SourceFileLoader
        main.__loader__ = loader("__main__", self.script)
        main.__file__ = self.script
        if HAS_CACHED:
            main.__cached__ = None
        code, self.code = self.code, None
        return code, main.__dict__


class Directory(Program):
    """A directory or zip file with a ``__main__`` in it."""

    def __init__(self, path: str, arguments: list[str]) -> None:
        super().__init__(arguments)
        self.path = path
        self.name = os.path.basename(os.path.normpath(path))
        self.script = _absolute(path)

    def words(self) -> list[str]:
        return [self.path, *self.arguments]

    def enter(self, main: Any) -> tuple[Any, Any]:
        import runpy

        sys.argv = [self.path, *self.arguments]
        if sys.flags.safe_path:
            sys.path.insert(0, self.script)
        else:
            _set_path0(self.script)
        return vars(runpy)["_run_module_as_main"], ("__main__", False)


class Module(Program):
    """A module or package by name, as after ``-m``."""

    def __init__(self, name: str, arguments: list[str]) -> None:
        super().__init__(arguments)
        self.name = name
        self.known = once.of_module(name, _directory())

    def words(self) -> list[str]:
        return ["-m", self.name, *self.arguments]

    def enter(self, main: Any) -> tuple[Any, Any]:
        import runpy

        sys.argv = ["-m", *self.arguments]
        _set_path0(os.getcwd())
        return vars(runpy)["_run_module_as_main"], (self.name, True)


class Code(Program):
    """A piece of source, as after ``-c``."""

    name = "string"
    file = "<string>"

    def __init__(self, source: str, arguments: list[str]) -> None:
        super().__init__(arguments)
        self.source = source + "\n"
        self.text = self.source.encode("utf-8", "surrogatepass")
        self.code = compile(self.source, self.file, "exec", 0, True)

    def words(self) -> list[str]:
        return ["-c", self.source[:-1], *self.arguments]

    def enter(self, main: Any) -> tuple[Any, Any]:
        sys.argv = ["-c", *self.arguments]
        _set_path0("")
        if sys.version_info >= (3, 13):
            import linecache

            by_code = "_interactive_cache" in vars(linecache)  # 3.13.0 still has it by name
            register: Any = vars(linecache)["_register_code"]
            register(self.code if by_code else self.file, self.source, self.file)
        code, self.code = self.code, None
        return code, main.__dict__


class Input(Program):
    """A program that is read from standard input to its end, as for ``python -``."""

    name = "stdin"
    file = "<stdin>"

    def __init__(self, arguments: list[str]) -> None:
        super().__init__(arguments)
        self.text = _standard_input()
        self.code = compile(self.text, self.file, "exec", 0, True)

    def words(self) -> list[str]:
        return ["-", *self.arguments]

    def enter(self, main: Any) -> tuple[Any, Any]:
        sys.argv = ["-", *self.arguments]
        _set_path0("")
        main.__file__ = "<stdin>"
        if HAS_CACHED:
            main.__cached__ = None
        code, self.code = self.code, None
        return code, main.__dict__


def _directory() -> str:
    try:
        return os.getcwd()
    except OSError:  # it is gone
        return ""


def _next_step(path: str) -> str:
    """What to do about a script that does not exist: it may be a command."""
    from shutil import which

    found = which(path) if os.path.dirname(path) == "" else None
    if found is None:
        return "check its path"
    with open(found, "rb") as file:
        is_python = b"python" in file.readline(200)
    if not is_python:
        return f"the command {found} is no Python script"
    return f"a command is recorded by its path: tlmem record {found}"


def find(path: str, arguments: list[str]) -> Program:
    """The program at ``path``: a file, or a directory or archive that holds a ``__main__``.

    ``-`` is standard input.

    Raises:
        CannotRecord: there is nothing that can be read.
        SyntaxError: as Python raises it.
    """
    if path == "-":
        return Input(arguments)
    if not os.path.exists(path):
        raise CannotRecord(
            f"cannot open the script '{path}' (No such file or directory); {_next_step(path)}."
        )
    for hook in sys.path_hooks:
        try:
            hook(path)
        except ImportError:
            continue
        return Directory(path, arguments)
    return Script(path, arguments)


_replaced: list[Any] = []
"""The module that was ``__main__``: Python uses its names to the end, without a reference."""


def run(
    program: Program, begin: Call, end: Callable[[BaseException | None], None], finish: Call
) -> None:
    """Runs a program and ends the process as Python does after it.

    Returns, or lets through what ended the program, only where the interpreter goes on by hand
    (``python -i``) or is one that the extension module does not know.

    Args:
        program: what to run; usable once.
        begin: called right before its first line.
        end: called right after its last, with the exception that ended it or None, while its frames
            are still alive.
        finish: called after its exit handlers.
    """
    main = _fresh_main()
    _replaced.append(sys.modules.get("__main__"))
    sys.modules["__main__"] = main
    prefix = sys.orig_argv[: len(sys.orig_argv) - len(sys.argv) + 1]
    prefix = prefix[: -2 if prefix[-2:-1] == ["-m"] else -1] or [sys.executable]
    outcome: list[Any] = [*program.enter(main)]  # only the list holds them: at the end nothing may
    sys.orig_argv = [*prefix, *program.words()]
    is_script = isinstance(program, Script | Input)
    del main, program, prefix
    begin()
    is_over = _run_outermost(outcome, end, finish, is_script)
    atexit.register(finish)
    if not is_over:
        _call(outcome)
    error = outcome.pop()
    if not is_over:
        end(error)
    scope = vars(sys.modules["__main__"]) if is_script else {}
    if error is None or not isinstance(error, SystemExit):
        _leave(scope, error)
    if isinstance(error, TlmemError):
        error.from_program = True
    if error is not None:
        try:
            raise error
        finally:
            error = None


def _run_outermost(outcome: list[Any], end: Call, finish: Call, is_script: bool) -> bool:
    """Runs to the end of the process, or leaves the outcome; False when nothing was run.

    Args:
        outcome: what to call and its arguments; then None or the exception.
        end, finish: as of ``run``.
        is_script: it has a ``__file__`` that goes when it is over.
    """
    try:
        core.load()
    except ImportError:
        return False
    program = core.ffi.new("tlm_program *")
    program.end, program.finish = id(end), id(finish)
    program.add_exit_handler, program.outcome = id(atexit.register), id(outcome)
    program.is_script, program.inspects = is_script, sys.flags.interactive
    return bool(core.lib.tlm_run_program(program) == core.lib.TLM_OK)


def _call(outcome: list[Any]) -> None:
    """Calls and leaves None or the exception, whose traceback begins with the called code."""
    call, arguments = outcome
    outcome.clear()
    try:
        if isinstance(arguments, dict):
            exec(call, arguments)
        else:
            call(*arguments)
    except BaseException as error:
        trace = error.__traceback__
        error.__traceback__ = trace.tb_next if trace is not None else None
        outcome.append(error)
    else:
        outcome.append(None)


def _leave(scope: dict[str, Any], error: BaseException | None) -> None:
    """Does what Python does when main code is over: prints, then takes ``__file__`` away.

    Args:
        scope: of a script's ``__main__``; empty for programs that Python does not do this to.
        error: what ended the program, not a SystemExit; it is about to pass through our frames.
    """

    def forget_file() -> None:
        scope.pop("__file__", None)
        scope.pop("__cached__", None)

    if error is None:
        forget_file()
        return
    pass_through(error, forget_file)


def pass_through(error: BaseException, after: Call | None = None) -> None:
    """Lets the interpreter print ``error`` as if it had not passed through our frames.

    Args:
        error: about to be raised; its traceback is as the user should see it.
        after: called once it was printed.
    """
    hook = sys.excepthook
    trace = error.__traceback__

    def show(kind: Any, value: Any, _: Any) -> None:
        sys.excepthook = hook
        value.__traceback__ = sys.last_traceback = trace
        try:
            hook(kind, value, trace)
        finally:
            if after is not None:
                after()

    sys.excepthook = show


def _fresh_main() -> Any:
    import builtins
    from importlib.machinery import BuiltinImporter

    main: Any = type(sys)("__main__")
    if sys.version_info < (3, 14):
        main.__annotations__ = {}
    main.__builtins__ = builtins
    main.__loader__ = BuiltinImporter
    return main


def _set_path0(path: str) -> None:
    """Replaces the directory of ``tlmem`` itself, which Python puts there except with ``-P``."""
    if not sys.flags.safe_path:
        sys.path[0] = path


def _absolute(path: str) -> str:
    """Absolute as Python makes the path of its script: joined, not normalised."""
    return path if os.path.isabs(path) else os.path.join(os.getcwd(), path)


def _standard_input() -> bytes:
    if sys.stdin is None or sys.stdin.isatty():
        raise CannotRecord(
            "'-' reads the program from standard input, and that is "
            f"{'closed' if sys.stdin is None else 'a terminal'}; give a script or redirect it."
        )
    try:
        return sys.stdin.buffer.read()
    except OSError as error:
        raise CannotRecord(
            f"cannot read the program from standard input ({error.strerror}); give a script."
        ) from None


def _read(path: str) -> bytes:
    try:
        with open(path, "rb") as file:
            return file.read()
    except OSError as error:
        raise CannotRecord(
            f"cannot open the script '{path}' ({error.strerror}); check its path."
        ) from None


def _unmarshal(path: str, data: bytes) -> Any:
    import marshal
    from importlib.util import MAGIC_NUMBER

    if data[:4] != MAGIC_NUMBER:
        raise CannotRecord(f"'{path}' was compiled by another Python; record its source instead.")
    return marshal.loads(data[16:])
