"""``tlmem record``: run one program, record it, and write the summary at the end."""

import os
import shlex
from time import monotonic

from tlmem.recorder import children, runner, session
from tlmem.recorder.bound import STEADY
from tlmem.recorder.options import Options
from tlmem.recorder.runner import Program
from tlmem.recorder.session import Session
from tlmem.recorder.summary import Closing, say_fate

globals()["__builtins__"] = STEADY  # of the functions below


def record(kind: str, target: str, arguments: list[str], path: str | None, options: Options) -> int:
    """Runs a program and records it; whatever ends the program is let through.

    Args:
        kind: ``script``, ``module`` or ``code``.
        target: its path, its name or its source.
        arguments: the program's own.
        path: the recording; None for ``tlmem-NAME.PID.tlm`` in the current directory.
        options: how to record.

    Returns:
        0, when the program's main code came to its end.

    Raises:
        CannotRecord: before the program has started.
        BaseException: whatever the program raised.
    """
    session.require_native()
    children.require_hook(options)
    program = _program(kind, target, arguments)
    notes = {"command": shlex.join(program.words()), "script": program.script}
    if program.known.note:
        notes["once"] = program.known.note
    if program.known.package:
        notes["program"] = program.known.package
    recording = Session(path or f"tlmem-{program.name}.{os.getpid()}.tlm", options, notes=notes)
    recording.start()
    if program.text:
        recording.offer_source(program.file, program.text, program.code)
        program.text = b""
    children.follow()
    closing = Closing(recording)  # keeps the environment as it is for the judge
    children.announce()
    began = monotonic()

    def end(error: BaseException | None) -> None:
        if session.active is not None:  # in a forked child it is the child's own
            session.active.sample()
            session.active.mark("tlmem:end")
            session.active.note("exit", _exit_text(error))
            session.active.end(error)

    def finish() -> None:  # after the program's own exit handlers
        current = session.active
        if current is None:
            return
        seconds = monotonic() - began
        result = current.stop()
        if current is not recording:
            say_fate(current, result)
        elif not options.quiet:
            closing.write(result, seconds)

    runner.run(program, lambda: recording.mark("tlmem:begin"), end, finish)
    return 0


def _program(kind: str, target: str, arguments: list[str]) -> Program:
    if kind == "module":
        return runner.Module(target, arguments)
    try:
        if kind == "code":
            return runner.Code(target, arguments)
        return runner.find(target, arguments)
    except SyntaxError as error:
        error.__traceback__ = None
        runner.pass_through(error)
        raise


_code_of = SystemExit.__dict__["code"].__get__
"""A class derived from it may have a property of this name, which belongs to the program."""


def _exit_text(error: BaseException | None) -> str:
    if error is None:
        return "0"
    if isinstance(error, SystemExit):
        code = _code_of(error)
        if code is None:
            return "0"
        return str(code & 0xFF) if isinstance(code, int) else "1"
    return type(error).__qualname__
