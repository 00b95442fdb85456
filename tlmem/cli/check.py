"""``tlmem check``: check recordings against budgets; ``tlmem.gate`` does the work."""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING

from tlmem.cli.arguments import (
    Parser,
    UsageError,
    add_budgets,
    add_jobs,
    add_output,
    add_source_root,
)

if TYPE_CHECKING:
    from tlmem.gate.budgets import CheckOptions


def run(words: list[str]) -> int:
    """Runs ``tlmem check FILE...`` or ``tlmem check --repeat N -- COMMAND``."""
    words, command = _without_command(words)
    given = make_parser().parse_args(words)
    if given.list_budgets:
        return _list_budgets()
    if given.repeat is not None:
        return _repeat(given, command)
    if command is not None:
        raise UsageError("a command after -- needs --repeat N; to record it once: tlmem record.")
    if not given.files:
        raise UsageError("there is nothing to check; give a FILE, or --repeat N -- COMMAND.")
    from tlmem.gate.check import check as check_files
    from tlmem.gate.check import report

    checked = check_files(given.files, options_of(given), given.source_root, given.jobs, given.on)
    return report(checked, given.format, given.output, more_of(given))


def _without_command(words: list[str]) -> tuple[list[str], list[str] | None]:
    """What stands before ``--``, and the command after it; None when there is none."""
    if "--repeat" not in words and not any(word.startswith("--repeat=") for word in words):
        return words, None
    if "--" not in words:
        return words, []
    at = words.index("--")
    return words[:at], words[at + 1 :]


def make_parser() -> argparse.ArgumentParser:
    """The options."""
    parser = Parser(
        prog="tlmem check",
        usage="tlmem check FILE [FILE ...] [OPTIONS]\n"
        "       tlmem check --repeat N [OPTIONS] -- (SCRIPT | -m MODULE | -c CODE) [ARGS ...]",
        description="Checks recordings against budgets, and exits with 0 (they are kept), 1 (one "
        "is surely exceeded), 2 (wrong usage, or not a recording) or 3 (cannot be judged). Without "
        "budgets the verdict must not be growth, and no finding an error.",
        allow_abbrev=False,
    )
    parser.add_argument(
        "files",
        nargs="*",
        metavar="FILE",
        help="a recording; of a folder of recordings, or a pattern, every process is judged",
    )
    parser.add_argument("--list-budgets", action="store_true", help="print every budget there is")
    add_budgets(parser)
    add_source_root(parser)
    add_jobs(parser)
    add_output(parser, "text", "json", "markdown", "junit", "github", "sarif")
    parser.add_argument(
        "--repeat",
        metavar="N",
        help="record and judge a command up to N times, and decide by all of the runs; each run "
        "makes more calls when the command has {calls} in it",
    )
    parser.add_argument(
        "--calls",
        metavar="C",
        help="what {calls} is in the first run; then 2 C, 3 C, ... (default: 100)",
    )
    return parser


def options_of(given: argparse.Namespace) -> CheckOptions:
    """What the options and the TOML file ask for."""
    from tlmem.gate import budgets

    if given.config and given.no_config:
        raise UsageError("--config and --no-config contradict each other; leave one out.")
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
            raise UsageError(
                f"--write {word!r} is not understood; write FORMAT=FILE, FORMAT one of "
                f"{', '.join(FORMATS)}."
            )
        if name in found:
            raise UsageError(f"--write {name} is given twice; leave one out.")
        found[name] = path
    return found


def _list_budgets() -> int:
    from tlmem.gate.budget_kinds import KINDS, LEAK_CLASSES, ROLES

    width = len("peak.module@PATTERN") + 2
    lines = [f"{kind.name:<{width}}{kind.meaning}" for kind in KINDS.values()]
    lines += [
        f"{'leaks-CLASS':<{width}}of one class: {', '.join(LEAK_CLASSES)}",
        f"{'leaks@PATTERN':<{width}}at places that match: model.py, model.py:30, Layer.forward",
        f"{'misuse-KIND':<{width}}of one kind: use-after-free, double-free, ...",
        f"{'peak.ROLE':<{width}}of PyTorch's memory at the peak: {', '.join(ROLES)}",
        f"{'peak.module@PATTERN':<{width}}of modules at the peak whose path matches: GPT/blocks.*",
        f"{'NAME-increase':<{width}}more than in --baseline: 10%, 1 MB, or 10% + 1 MB; NAME is "
        + ", ".join(name for name, kind in KINDS.items() if kind.increase)
        + ", or of the peak's parts",
    ]
    sys.stdout.write("\n".join(lines) + "\n")
    return 0


def _repeat(given: argparse.Namespace, command: list[str] | None) -> int:
    """Repeats a command and decides by all of its runs."""
    from pathlib import Path

    from tlmem.gate import repeat
    from tlmem.gate.check import report

    if given.files:
        raise UsageError(
            f"--repeat records by itself, and '{given.files[0]}' stands before --; leave one out."
        )
    what = repeat.asked(_python_words(command or []), given.repeat, given.calls)
    options, more = options_of(given), more_of(given)
    checked = repeat.repeat(what, options, Path.cwd())
    return report(checked, given.format, given.output, more)


def _python_words(command: list[str]) -> list[str]:
    """A command without the interpreter in front of it, which is ours."""
    name = command[0].rpartition("/")[2] if command else ""
    is_python = name.removeprefix("python").replace(".", "").isdecimal() or name == "python"
    return command[1:] if name.startswith("python") and is_python else command
