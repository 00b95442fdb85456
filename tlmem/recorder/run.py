"""``tlmem record``: run one program, record it, and write the summary at the end."""

import atexit
import os
import shlex
import sys
import time

from tlmem.recorder import children, runner, session, summary
from tlmem.recorder.options import Options
from tlmem.recorder.runner import Program
from tlmem.recorder.session import Session


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
    program = _program(kind, target, arguments)
    recording = Session(
        path or f"tlmem-{program.name}.{os.getpid()}.tlm",
        options,
        notes={"command": shlex.join(program.words()), "script": program.script},
    )
    summary.remember_stderr()
    recording.start()
    if program.text:
        recording.offer_source(program.file, program.text, program.code)
        program.text = b""
    children.follow()
    began = time.monotonic()
    atexit.register(_finish, recording, began)

    def end(error: BaseException | None) -> None:
        if session.active is not None:  # in a forked child it is the child's own
            session.active.sample()
            session.active.mark("tlmem:end")
            session.active.note("exit", _exit_text(error))
            session.active.end(error)

    runner.run(program, lambda: recording.mark("tlmem:begin"), end)
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


def _exit_text(error: BaseException | None) -> str:
    if error is None:
        return "0"
    if isinstance(error, SystemExit):
        if error.code is None:
            return "0"
        return str(error.code & 0xFF) if isinstance(error.code, int) else "1"
    return type(error).__qualname__


def _finish(recording: Session, began: float) -> None:
    """Runs after the program's own exit handlers: seals, then speaks unless in a forked child.

    Args:
        recording: of the program.
        began: ``time.monotonic()`` when it started.
    """
    current = session.active
    if current is None:
        return
    seconds = time.monotonic() - began
    result = current.stop()
    if current is not recording:
        summary.say_fate(current, result)
        return
    if recording.options.quiet:
        return
    if sys.stdout is not None:
        try:
            sys.stdout.flush()
        except (OSError, ValueError):
            pass  # Python meets the same failure in a moment and reports it its own way
    summary.write(recording, result, seconds)
