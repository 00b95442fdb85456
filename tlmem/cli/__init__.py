"""The command ``tlmem``: a table of commands, each a module of its own that is imported when used.

In: the words of a command line. Out: an exit code, text on stdout, errors on stderr.
May import: errors, output. Inside functions: tlmem, units, recording, fleets, planning, replaying,
report, export, importing, gate, recorder, compiler, runtime, dashboards, scenarios, _native.
Third-party: none. Inside functions: numpy.

Exit codes: 0 success; 1 a check that was asked for did not pass; 2 usage, or a file that cannot be
read or a program that cannot be started; 3 a recording that is recognised but empty or too damaged
to use; 130 interrupted. ``tlmem record`` otherwise exits as the recorded program did.
"""

import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module

from tlmem.errors import TlmemError
from tlmem.output import stdio

INTERRUPTED = 128 + signal.SIGINT
"""What shells report for a process that the signal ended."""
COMMANDS = {
    "record": "run a Python program and record its memory (alias: run)",
    "report": "summarize a recording: does it leak, where, how fast",
    "history": "show one object's history: who acquired it, who released it",
    "balance": "show which stacks acquire objects without releasing them",
    "peak": "show what memory consisted of at its peak, and what would lower it",
    "stats": "show how a program allocates: sizes, lines, memory freed at once",
    "diff": "compare two recordings: verdicts, findings, lines",
    "check": "check recordings against budgets: the gate of a CI job",
    "plot": "draw memory over time, lines, lifetimes, pools, growth: PNG, SVG, PDF",
    "plan": "show the lowest peak a recorded program could reach, and what prevents it",
    "replay": "show what other allocators or settings would have needed, and who strands memory",
    "export": "write a recording as Parquet, CSV, for Perfetto, speedscope or PyTorch's memory_viz",
    "index": "keep the sums of recordings, so that later commands are fast",
    "import": "make a recording from a memory snapshot of PyTorch (CUDA)",
    "tui": "browse a recording in the terminal",
    "live": "follow a program while it is recorded, in the terminal",
    "attach": "record a Python process that is running already",
    "scenario": "list or run small programs with a known truth",
    "doctor": "show what is supported on this machine",
}
"""``tlmem.cli.NAME`` has ``run(words)``, which returns the exit code."""
MODULES = {"import": "import_"}
"""Modules whose names differ, as Python has the words for itself."""
ALIASES = {"run": "record"}
USAGE = "\n".join(
    [
        "usage: tlmem COMMAND ...\n",
        *(f"  {name:<9} {meaning}" for name, meaning in COMMANDS.items()),
        "\ntlmem COMMAND --help explains one command; tlmem --version prints the version.\n",
    ]
)


def main(arguments: list[str] | None = None) -> int:
    """Runs one command and returns its exit code; ``record`` lets the program's end through."""
    words = sys.argv[1:] if arguments is None else arguments
    if _is_record(words):
        return _run(words)
    stdio.reopen()
    try:
        return stdio.finish(_run(words))
    except BrokenPipeError:
        return stdio.finish(0)
    except SystemExit as left:  # of argparse
        raise SystemExit(stdio.finish(int(left.code or 0))) from None


def _is_record(words: list[str]) -> bool:
    return bool(words) and ALIASES.get(words[0], words[0]) == "record"


def _run(words: list[str]) -> int:
    try:
        return _dispatch(words)
    except TlmemError as error:
        if error.from_program:
            raise  # the recorded program's own, which Python prints as it does for any other
        return stdio.fail(str(error), error.exit_code)
    except KeyboardInterrupt:
        if _is_record(words):
            raise  # likewise
        return stdio.fail("interrupted", INTERRUPTED)


def _dispatch(words: list[str]) -> int:
    if not words:
        sys.stderr.write(USAGE)
        return 2
    command = ALIASES.get(words[0], words[0])
    if command in ("-h", "--help"):
        return stdio.to_stdout(USAGE)
    if command == "--version":
        import tlmem

        return stdio.to_stdout(f"tlmem {tlmem.__version__}\n")
    if command not in COMMANDS:
        from tlmem.cli.arguments import did_you_mean

        guess = did_you_mean(command, COMMANDS)
        sys.stderr.write("" if guess else USAGE)
        return stdio.fail(f"'{command}' is not a command of tlmem{guess or '.'}", 2)
    with own_path():
        module = import_module(f"tlmem.cli.{MODULES.get(command, command)}")
    code: int = module.run(words[1:])
    return code


@contextmanager
def own_path() -> Iterator[None]:
    """Imports in the block skip the first entry of ``sys.path``.

    Under ``python -m tlmem`` that is the current directory, and a module there may have the name
    of one that tlmem uses.
    """
    whole = sys.path
    sys.path = whole[0 if sys.flags.safe_path else 1 :]
    try:
        yield
    finally:
        sys.path = whole
