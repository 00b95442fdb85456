"""The command ``tlmem``: what the words of a command line mean. The work is done elsewhere.

Exit codes: 0 fine; 1 a check that was asked for did not pass; 2 usage, or nothing could be started
or read; 3 a recording that is recognised but empty or too damaged to use; 130 interrupted.
``tlmem record`` otherwise exits as the recorded program did.
"""

import signal
import sys
from importlib import import_module
from typing import Any

from tlmem.errors import TlmemError
from tlmem.output import stdio

INTERRUPTED = 128 + signal.SIGINT
"""As shells tell of a process that the signal ended."""
USAGE = """\
usage: tlmem COMMAND ...

  record    run a Python program and record its memory (alias: run)
  report    say what a recording shows: does it leak, where, how fast
  history   tell the life of one object: who took it, who gave it back
  balance   show the tree of stacks with what was taken, given back and left without a pair
  diff      say what differs between two recordings: verdicts, findings, lines
  check     decide whether recordings keep their budgets: the gate of a CI job
  plot      draw memory over time, lines, lifetimes, pools, growth: PNG, SVG, PDF
  plan      say how much memory a recorded program could have done with
  export    write a recording as Parquet, CSV, for Perfetto, speedscope or PyTorch's memory_viz
  tui       browse a recording in the terminal
  live      follow a program that is being recorded, in the terminal
  scenario  list or run small programs whose truth is known
  doctor    what is supported on this machine

tlmem COMMAND --help explains one command; tlmem --version prints the version.
"""

RECORD_USAGE = """\
usage: tlmem record [OPTIONS] (SCRIPT | - | -m MODULE | -c CODE) [ARGS ...]

Runs a program as python would and records its memory. What stands after SCRIPT, MODULE or CODE
belongs to the program. The exit code is the program's.

  -o, --output FILE    where to write (default: tlmem-SCRIPT.PID.tlm in this directory)
  -f, --force          overwrite FILE
  -q, --quiet          write nothing to stderr
  --source LIST        where events come from: auto, or names with commas between: numpy
  --stack-depth N      innermost frames kept of a stack, 0 to 1024 (default: 64)
  --max-file SIZE      keep FILE below SIZE (200MB, 1.5GB, 64MiB) by folding its oldest events into
                       exact sums
  --ring SIZE          the same under the name that flight recorders use
  --rss-interval MS    time between samples of resident memory (default: 10; 0: start and end only)
  --smaps              sample proportional and private memory and page faults too
  --holders auto|off   whether to find out which Python objects hold arrays: at the end, and while
                       the program runs, for at most 1 % of the time, 20 ms in the
                       first two seconds (default: auto)
  --zombie[=SIZE]      keep up to SIZE (default: 256MB) of freed memory unreadable, so that a use
                       after free is caught, with the places of allocation, free and use
  --zombie=sample      the same, and for one in 32 of the objects below 4096 bytes too
  --check              judge the recording afterwards, as tlmem check does, and exit as it does when
                       the program itself exited with 0; takes its options --budget, --config,
                       --no-config, --baseline, --suppressions, --allow, --strict and --write
"""

_RECORD_VALUES = {
    "-o": "output",
    "--output": "output",
    "--source": "source",
    "--stack-depth": "stack_depth",
    "--ring": "ring",
    "--max-file": "max_file",
    "--rss-interval": "rss_interval_ms",
    "--holders": "holders",
}
_RECORD_FLAGS = {
    "-f": "overwrite",
    "--force": "overwrite",
    "-q": "quiet",
    "--quiet": "quiet",
    "--smaps": "smaps",
    "-h": "help",
    "--help": "help",
}
_TARGETS = {"-m": "module", "-c": "code"}
_CHECK_VALUES = ("--budget", "--config", "--baseline", "--suppressions", "--allow", "--write")
_CHECK_FLAGS = ("--no-config", "--strict")
"""Options of ``check`` that ``record --check`` takes too."""
_ELSEWHERE = {
    "history": "cli_ledger",
    "balance": "cli_ledger",
    "diff": "cli_ledger",
    "check": "cli_check",
    "plot": "cli_pictures",
    "export": "cli_pictures",
    "plan": "cli_plan",
    "tui": "cli_screens",
    "live": "cli_screens",
}
"""Commands whose words are taken apart in another module, by its table ``COMMANDS``."""


class UsageError(TlmemError):
    """The command line does not say what to do."""


def main(arguments: list[str] | None = None) -> int:
    """Runs one command and returns its exit code; ``record`` lets the program's end through."""
    words = sys.argv[1:] if arguments is None else arguments
    if words[:1] in (["record"], ["run"]):
        return _run(words)
    stdio.reopen()
    try:
        return stdio.finish(_run(words))
    except BrokenPipeError:
        return stdio.finish(0)
    except SystemExit as left:  # of argparse
        raise SystemExit(stdio.finish(int(left.code or 0))) from None


def _run(words: list[str]) -> int:
    try:
        return _dispatch(words)
    except TlmemError as error:
        if error.from_program:
            raise  # the recorded program's own, which Python prints as it does for any other
        sys.stderr.write(f"tlmem: {error}\n")
        return error.exit_code
    except KeyboardInterrupt:
        if words[0] in ("record", "run"):
            raise  # likewise
        sys.stderr.write("tlmem: interrupted\n")
        return INTERRUPTED


def _dispatch(words: list[str]) -> int:
    if not words:
        sys.stderr.write(USAGE)
        return 2
    command, rest = words[0], words[1:]
    if command in ("-h", "--help"):
        return stdio.to_stdout(USAGE)
    if command == "--version":
        import tlmem

        return stdio.to_stdout(f"tlmem {tlmem.__version__}\n")
    if command in ("record", "run"):
        return _record(rest)
    if command == "report":
        return _report(rest)
    if command in _ELSEWHERE:
        return import_module(f"tlmem.{_ELSEWHERE[command]}").COMMANDS[command](rest)
    if command == "scenario":
        import tlmem.scenarios

        return tlmem.scenarios.main(rest)
    if command == "doctor":
        return _doctor(rest)
    sys.stderr.write(f"tlmem: '{command}' is not a command of tlmem\n{USAGE}")
    return 2


def _record(words: list[str]) -> int:
    values, kind, target, rest = split_record(words)
    if "help" in values:
        stdio.reopen()
        return stdio.to_stdout(RECORD_USAGE)
    if target is None:
        raise UsageError(
            "there is nothing to record; give a SCRIPT, -m MODULE or -c CODE "
            "(tlmem record --help explains)."
        )
    if "check_words" in values and "check" not in values:
        raise UsageError(f"{values['check_words'][0]} needs --check.")
    if "check" in values:
        from tlmem.cli import check as cli_check

        own = values["own_words"]
        return cli_check.record(own, values["check_words"], kind, target, rest, values)
    path_of_program = sys.path
    # Under `python -m tlmem` the first entry is the current directory, and a module there may have
    # the name of one that the recorder uses.
    sys.path = path_of_program[0 if sys.flags.safe_path else 1 :]
    from tlmem.recorder.options import Options, parse_sources, parse_zombie
    from tlmem.recorder.run import record

    sys.path = path_of_program
    path = values.pop("output", None)
    sizes = {name: values.pop(name) for name in ("ring", "max_file") if name in values}
    if len(sizes) == 2:
        raise UsageError("--ring and --max-file say the same; give one of them.")
    try:
        if sizes:
            values["limit_bytes"] = _size(*sizes.values())
        for option in ("--stack-depth", "--rss-interval"):
            name = _RECORD_VALUES[option]
            if name in values:
                values[name] = _count(values[name], option)
        if "source" in values:
            values["sources"] = parse_sources(values.pop("source"))
        if "zombie" in values:
            values.update(parse_zombie(values.pop("zombie")))
    except ValueError as error:
        raise UsageError(f"{error}.") from None
    options = Options(**values)
    del words, values
    return record(kind, target, rest, path, options)


def split_record(words: list[str]) -> tuple[dict[str, Any], str, str | None, list[str]]:
    """Takes the options of ``record`` apart from what belongs to the program.

    Returns:
        Options by name (texts; flags are True), what kind of program (``script``, ``module``,
        ``code``), which one (None: none was given), and its arguments.

    Raises:
        UsageError: an option that is not known, or one without its value.
    """
    values: dict[str, Any] = {}
    own: list[str] = []
    rest = list(words)
    while rest:
        word = rest.pop(0)
        if word == "--":
            break
        if word == "-" or not word.startswith("-"):
            rest.insert(0, word)
            break
        name, has_value, value = word.partition("=") if word.startswith("--") else (word, "", "")
        if not word.startswith("--") and len(word) > 2:
            name, value = word[:2], word[2:]
            if name in _RECORD_FLAGS:
                rest.insert(0, f"-{value}")
            else:
                has_value = "="
        if name == "--check" and not has_value:
            values["check"], values["own_words"] = True, own
            values.setdefault("check_words", [])
            continue
        if name in _CHECK_FLAGS and not has_value:
            values.setdefault("check_words", []).append(name)
            continue
        if name in _CHECK_VALUES:
            value = value if has_value else _next_value(name, rest)
            values.setdefault("check_words", []).append(f"{name}={value}")
            continue
        if name not in _TARGETS:
            own.append(name if name in _RECORD_FLAGS and not has_value else word)
        if name == "--zombie":
            values["zombie"] = value
        elif name in _RECORD_FLAGS and (not has_value):
            values[_RECORD_FLAGS[name]] = True
        elif name in _RECORD_VALUES or name in _TARGETS:
            if not has_value:
                value = _next_value(name, rest)
                own += [value] if name not in _TARGETS else []
            if name in _TARGETS:
                return values, _TARGETS[name], value, rest
            if not value:
                raise UsageError(f"{name} needs a value, and '' is none.")
            values[_RECORD_VALUES[name]] = value
        else:
            raise UsageError(
                f"'{word}' is not an option of record (tlmem record --help lists them)."
            )
    return values, "script", rest[0] if rest else None, rest[1:]


def _next_value(name: str, rest: list[str]) -> str:
    """The value of an option, taken from what follows it."""
    if not rest:
        raise UsageError(f"{name} needs a value (tlmem record --help explains).")
    return rest.pop(0)


def _size(text: str) -> int:
    from tlmem.units import parse_bytes

    size = parse_bytes(text)
    if size == 0:
        raise ValueError(f"{text!r} leaves no room for a recording; give at least 8.4MB")
    return size


def _count(text: str, option: str) -> int:
    if not text.isdecimal():
        raise ValueError(f"{option} needs a whole number, not '{text}'")
    return int(text)


def _report(words: list[str]) -> int:
    import argparse

    parser = argparse.ArgumentParser(
        prog="tlmem report",
        description="Says what a recording shows: does it leak, where, how fast.",
        allow_abbrev=False,
    )
    parser.add_argument("files", nargs="+", metavar="FILE", help="a recording")
    parser.add_argument(
        "--format",
        choices=("text", "json", "html", "markdown"),
        default="text",
        help="default: %(default)s",
    )
    parser.add_argument("-o", "--output", metavar="OUT", help="write here instead of to stdout")
    given = parser.parse_args(words)
    from tlmem import report

    return report.run(given.files, given.format, given.output)


def _doctor(words: list[str]) -> int:
    import argparse

    parser = argparse.ArgumentParser(
        prog="tlmem doctor",
        description="Says what is supported on this machine. Exits 0 when programs can be recorded "
        "and recordings read, 1 when one of both is not possible.",
    )
    parser.add_argument("--cflags", action="store_true", help="print flags for a C compiler only")
    parser.add_argument("--libs", action="store_true", help="print flags for a linker only")
    wanted = parser.parse_args(words)
    if wanted.cflags or wanted.libs:
        from tlmem.recorder import linking

        flags = [linking.compile_flags()] if wanted.cflags else []
        flags += [linking.link_flags()] if wanted.libs else []
        sys.stdout.write(" ".join(flags) + "\n")
        return 0
    from tlmem.cli import doctor

    return doctor.main()
