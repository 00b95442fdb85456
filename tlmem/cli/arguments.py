"""Options that several commands share, and what they accept.

Covers: parsers, formats and outputs, ranges of time, budgets. Does not cover: what is done with
them, which each command says itself.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Callable, Iterable
from typing import NoReturn

from tlmem.errors import TlmemError

LONGEST_S = 1e9
"""Thirty years."""
MOST_JOBS = 1_000


class UsageError(TlmemError):
    """The command line does not say what to do, or contradicts itself."""


class Parser(argparse.ArgumentParser):
    """argparse whose errors are sentences: what is wrong, and what would be right."""

    def error(self, message: str) -> NoReturn:
        """Writes usage and one sentence to stderr, and exits with 2."""
        self.print_usage(sys.stderr)
        self.exit(2, f"tlmem: {self._sentence(message)} ({self.prog} --help explains).\n")

    def _sentence(self, message: str) -> str:
        command = self.prog.partition(" ")[2]
        options = [name for action in self._actions for name in action.option_strings]
        for pattern, write in SENTENCES:
            if found := re.fullmatch(pattern, message, re.DOTALL):
                return write(command, options, *found.groups())
        return message


def _too_many(command: str, options: list[str], words: str) -> str:
    first = words.split()[0]
    if not first.startswith("-"):
        return f"'{first}' is one word too many for {command}"
    return f"'{first}' is not an option of {command}" + did_you_mean(first, options)


def _choose(command: str, options: list[str], name: str, given: str, choices: str) -> str:
    names = [choice.strip(" '\"") for choice in choices.split(",")]
    guess = did_you_mean(given, names)
    return f"{name} cannot be '{given}'{guess or '; choose from ' + ', '.join(names)}"


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """The end of a sentence that names the nearest known word; empty where none is near."""
    import difflib  # a recorded program does not find it imported

    near = difflib.get_close_matches(word.partition("=")[0], known, 1, 0.6)
    return f"; did you mean {near[0]}?" if near else ""


SENTENCES: tuple[tuple[str, Callable[..., str]], ...] = (
    (r"unrecognized arguments: (.*)", _too_many),
    (r"the following arguments are required: (.*)", lambda _, __, names: f"{names} is missing"),
    (r"argument (?:.*/)?(\S+): invalid choice: '?(.*?)'? \(choose from (.*)\)", _choose),
    (
        r"argument (?:.*/)?(\S+): expected (?:one|at least one) argument",
        lambda _, __, name: f"{name} needs a value",
    ),
    (
        r"argument (?:.*/)?(\S+): invalid (.*) value: (.*)",
        lambda _, __, name, kind, given: f"{name} needs a {kind}, not {given}",
    ),
    (r"argument (?:.*/)?(\S+): (.*)", lambda _, __, name, why: f"{name}: {why}"),
)
"""What argparse says, and how tlmem says it: command, options, and the groups of the pattern."""


def new_parser(command: str, description: str) -> argparse.ArgumentParser:
    """A parser for ``tlmem COMMAND``; options cannot be abbreviated."""
    return Parser(prog=f"tlmem {command}", description=description, allow_abbrev=False)


def add_output(parser: argparse.ArgumentParser, *formats: str) -> None:
    """The options for a text: its format, the first one by default, and where it goes."""
    add_format(parser, *formats)
    parser.add_argument("-o", "--output", metavar="OUT", help="write here instead of to stdout")


def add_format(parser: argparse.ArgumentParser, *formats: str) -> None:
    """``--format``, the first one by default, and ``--json`` for short."""
    parser.add_argument(
        "--format", choices=formats, default=formats[0], help="default: %(default)s"
    )
    parser.add_argument(
        "--json",
        action="store_const",
        dest="format",
        const="json",
        help="the same as --format json",
    )


def add_range(parser: argparse.ArgumentParser) -> None:
    """The options for a range of time."""
    for option, what in (("--since", "from"), ("--until", "up to")):
        parser.add_argument(
            option,
            metavar="SECONDS",
            type=_seconds,
            help=f"only {what} this time after the start of the recording",
        )


def add_source_root(parser: argparse._ActionsContainer) -> None:
    """The option that lets files be read for source lines."""
    parser.add_argument(
        "--source-root",
        action="append",
        default=[],
        metavar="DIR",
        help="read source lines that the recording does not have from files below this folder; "
        "may be given several times",
    )


def add_jobs(parser: argparse._ActionsContainer) -> None:
    """The options for where more than a few recordings are analysed."""
    parser.add_argument(
        "--jobs",
        metavar="N",
        type=jobs_number,
        help="analyse more than a few recordings in N processes (default: one for each core)",
    )
    parser.add_argument(
        "--on",
        metavar="dask://HOST:PORT",
        help="analyse them on a Dask cluster whose workers see the files under the same paths",
    )


def add_budgets(parser: argparse._ActionsContainer) -> None:
    """The options of ``check`` that ``record --check`` takes too."""
    parser.add_argument(
        "--budget",
        action="append",
        default=[],
        metavar="NAME=AMOUNT",
        help="as peak=24MB, 'resident-growth=100 kB/s', 'tracked-growth=1 kB per epoch'; may be "
        "given several times (tlmem check --list-budgets)",
    )
    parser.add_argument(
        "--config",
        metavar="FILE",
        help="a TOML file with budgets (default: the table [tool.tlmem.check] of the nearest "
        "pyproject.toml)",
    )
    parser.add_argument("--no-config", action="store_true", help="read no such file")
    parser.add_argument("--baseline", metavar="FILE", help="a recording to compare with")
    parser.add_argument(
        "--suppressions",
        action="append",
        default=[],
        metavar="FILE",
        help="known leaks, a line leak:PATTERN for each",
    )
    parser.add_argument(
        "--allow",
        action="append",
        default=[],
        metavar="KIND",
        help="judge recordings that are short, lossy or incomplete all the same",
    )
    parser.add_argument(
        "--strict", action="store_true", help="exit with 3 where a value is within noise"
    )
    parser.add_argument(
        "--write",
        action="append",
        default=[],
        metavar="FORMAT=FILE",
        help="write another format too, as junit=memory.xml; may be given several times",
    )


def count(text: str) -> int:
    """A count: 0 or more."""
    number = int(text)
    if number < 0:
        raise argparse.ArgumentTypeError(f"'{text}' is less than 0")
    return number


def require_terminal(file: str) -> None:
    """Refuses to draw screens where keys cannot be read and screens cannot be drawn.

    Raises:
        UsageError: it names the command that prints ``file`` instead.
    """
    if not all(each is not None and each.isatty() for each in (sys.__stdin__, sys.__stderr__)):
        raise UsageError(
            f"this needs a terminal to draw on; tlmem report {file} prints what it would show."
        )


def jobs_number(text: str) -> int:
    """A number of processes."""
    number = int(text)
    if not 1 <= number <= MOST_JOBS:
        raise argparse.ArgumentTypeError(f"'{text}' is not a number from 1 to {MOST_JOBS:,}")
    return number


jobs_number.__name__ = "number of processes"


def _seconds(text: str) -> float:
    """A number of seconds that is not negative and has an end."""
    seconds = float(text)
    if not 0 <= seconds <= LONGEST_S:
        raise argparse.ArgumentTypeError(
            f"'{text}' is not a time from 0 to {LONGEST_S:.0f} seconds"
        )
    return seconds


_seconds.__name__ = "number of seconds"  # argparse says "invalid number of seconds value: 'x'"
