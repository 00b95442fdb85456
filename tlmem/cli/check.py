"""The words of ``tlmem check`` and of ``tlmem record --check``; ``tlmem.gate`` does the work.

Covers: options and help. Does not cover: budgets (``gate.budgets``), other commands (``cli``).
"""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING, Any

from tlmem.errors import TlmemError

if TYPE_CHECKING:
    from tlmem.gate.budgets import CheckOptions

VALUES = ("--budget", "--config", "--baseline", "--suppressions", "--allow", "--write")
FLAGS = ("--no-config", "--strict")
"""Options of ``check`` that ``record --check`` has too."""


class WrongWords(TlmemError):
    """The options contradict each other."""


def check(words: list[str]) -> int:
    """Runs ``tlmem check FILE...`` or ``tlmem check --repeat N -- COMMAND``."""
    words, command = _without_command(words)
    given = parser().parse_args(words)
    if given.list_budgets:
        return _list_budgets()
    if given.repeat is not None:
        return _repeat(given, command)
    if command is not None:
        raise WrongWords("a command after -- needs --repeat N; to record it once: tlmem record.")
    if not given.files:
        raise WrongWords("there is nothing to check; give a FILE, or --repeat N -- COMMAND.")
    from tlmem.gate.check import check as check_files
    from tlmem.gate.check import report

    checked = check_files(given.files, options_of(given))
    return report(checked, given.format, given.output, more_of(given))


def _without_command(words: list[str]) -> tuple[list[str], list[str] | None]:
    """What stands before ``--``, and the command after it; None when there is none."""
    if "--repeat" not in words and not any(word.startswith("--repeat=") for word in words):
        return words, None
    if "--" not in words:
        return words, []
    at = words.index("--")
    return words[:at], words[at + 1 :]


def parser(prog: str = "tlmem check") -> argparse.ArgumentParser:
    """The options."""
    found = argparse.ArgumentParser(
        prog=prog,
        usage=f"{prog} FILE [FILE ...] [OPTIONS]\n"
        "       tlmem check --repeat N [OPTIONS] -- (SCRIPT | -m MODULE | -c CODE) [ARGS ...]",
        description="Decides whether recordings keep their budgets, and exits with 0 (yes), 1 "
        "(surely not), 2 (wrong usage, or no recording) or 3 (cannot be judged). Without budgets "
        "the verdict must not be growth, and no finding an error.",
        allow_abbrev=False,
    )
    found.add_argument("files", nargs="*", metavar="FILE", help="a recording")
    found.add_argument(
        "--budget",
        action="append",
        default=[],
        metavar="NAME=AMOUNT",
        help="as peak=24MB, 'resident-growth=100 kB/s', 'tracked-growth=1 kB per epoch'; may be "
        "given several times (--list-budgets)",
    )
    found.add_argument("--list-budgets", action="store_true", help="print every budget there is")
    found.add_argument(
        "--config",
        metavar="FILE",
        help="a TOML file with budgets (default: the table [tool.tlmem.check] of the nearest "
        "pyproject.toml)",
    )
    found.add_argument("--no-config", action="store_true", help="read no such file")
    found.add_argument("--baseline", metavar="FILE", help="a recording to compare with")
    found.add_argument(
        "--suppressions",
        action="append",
        default=[],
        metavar="FILE",
        help="known leaks, a line leak:PATTERN for each",
    )
    found.add_argument(
        "--allow",
        action="append",
        default=[],
        metavar="KIND",
        help="judge recordings that are short, lossy or incomplete all the same",
    )
    found.add_argument(
        "--strict", action="store_true", help="exit with 3 where a value is within noise"
    )
    found.add_argument(
        "--format",
        choices=("text", "json", "markdown", "junit", "github", "sarif"),
        default="text",
        help="default: %(default)s",
    )
    found.add_argument("-o", "--output", metavar="OUT", help="write here instead of to stdout")
    found.add_argument(
        "--write",
        action="append",
        default=[],
        metavar="FORMAT=FILE",
        help="write another format too, as junit=memory.xml; may be given several times",
    )
    found.add_argument(
        "--repeat",
        metavar="N",
        help="record and judge a command up to N times, and decide by all of the runs; each run "
        "makes more calls when the command has {calls} in it",
    )
    found.add_argument(
        "--calls",
        metavar="C",
        help="what {calls} is in the first run; then 2 C, 3 C, ... (default: 100)",
    )
    return found


def options_of(given: argparse.Namespace) -> CheckOptions:
    """What the options and the TOML file ask for."""
    from tlmem.gate import budgets

    if given.config and given.no_config:
        raise WrongWords("--config and --no-config contradict each other; leave one out.")
    options = budgets.from_words(
        given.budget, given.allow, given.strict, given.baseline, given.suppressions
    )
    below = budgets.CheckOptions() if given.no_config else budgets.from_file(given.config)
    return options.over(below).checked()


def more_of(given: argparse.Namespace) -> dict[str, str]:
    """Formats that are written beside the first one, and to which files."""
    from tlmem.gate.outputs import FORMATS

    found: dict[str, str] = {}
    for word in given.write:
        name, equals, path = word.partition("=")
        if name not in FORMATS or not equals or not path:
            raise WrongWords(
                f"--write {word!r} is not understood; write FORMAT=FILE, FORMAT one of "
                f"{', '.join(FORMATS)}."
            )
        if name in found:
            raise WrongWords(f"--write {name} is given twice; leave one out.")
        found[name] = path
    return found


def _list_budgets() -> int:
    from tlmem.gate.catalogue import KINDS, LEAK_CLASSES

    width = max(map(len, KINDS)) + 2
    lines = [f"{kind.name:<{width}}{kind.meaning}" for kind in KINDS.values()]
    lines += [
        f"{'leaks-CLASS':<{width}}of one class: {', '.join(LEAK_CLASSES)}",
        f"{'leaks@PATTERN':<{width}}at places that match: model.py, model.py:30, Layer.forward",
        f"{'misuse-KIND':<{width}}of one kind: use-after-free, double-free, ...",
        f"{'NAME-increase':<{width}}more than in --baseline: 10 %, 1 MB, or 10 % + 1 MB; NAME is "
        + ", ".join(name for name, kind in KINDS.items() if kind.increase),
    ]
    sys.stdout.write("\n".join(lines) + "\n")
    return 0


def _repeat(given: argparse.Namespace, command: list[str] | None) -> int:
    """Repeats a command and decides by all of its runs."""
    from pathlib import Path

    from tlmem.gate import repeat
    from tlmem.gate.check import report

    if given.files:
        raise WrongWords(
            f"--repeat records by itself, and '{given.files[0]}' stands before --; leave one out."
        )
    what = repeat.asked(_python_words(command or []), given.repeat, given.calls)
    options, more = options_of(given), more_of(given)
    checked = repeat.repeat(what, options, Path.cwd())
    return report(checked, given.format, given.output, more)


def record(
    own: list[str],
    check_words: list[str],
    kind: str,
    target: str,
    arguments: list[str],
    values: dict[str, Any],
) -> int:
    """Runs ``tlmem record --check``: records in a process of its own, then judges the recording.

    Args:
        own: options of ``record``, as they were given.
        check_words: options of ``check``.
        kind, target, arguments: the program.
        values: options of ``record`` by name.

    Returns:
        What the program exited with, if that is not 0; else what ``check`` says. A program that a
        signal ended takes this process with it.
    """
    import os

    from tlmem.gate import subprocess_record
    from tlmem.gate.check import check as check_files
    from tlmem.gate.check import report_after

    given = parser("tlmem record --check").parse_args(check_words)
    options, more = options_of(given), more_of(given)
    name = {"code": "string", "module": target}.get(kind) or os.path.basename(
        os.path.normpath(target)
    )
    path = values.get("output") or f"tlmem-{name}.{os.getpid()}.tlm"
    program = {"module": ["-m", target], "code": ["-c", target]}.get(kind, [target])
    code = subprocess_record.run([*own, "-o", path, *program, *arguments])
    quiet = bool(values.get("quiet"))
    if code:
        if not quiet:
            sys.stderr.write(f"tlmem: not checked, as the program exited with {code}.\n")
        return code
    return report_after(check_files([path], options), more, quiet)


def _python_words(command: list[str]) -> list[str]:
    """A command without the interpreter in front of it, which is ours."""
    name = command[0].rpartition("/")[2] if command else ""
    is_python = name.removeprefix("python").replace(".", "").isdecimal() or name == "python"
    return command[1:] if name.startswith("python") and is_python else command


COMMANDS = {"check": check}
