"""The words of ``tlmem history``, ``tlmem balance`` and ``tlmem diff``.

Covers: options and help of these commands. Does not cover: other commands (``cli``).
"""

from __future__ import annotations

import argparse


def history(words: list[str]) -> int:
    """Runs ``tlmem history FILE OBJECT``."""
    parser = _parser(
        "history", "Tells the life of one object: every event, who took it, who gave it back."
    )
    parser.add_argument("file", metavar="FILE", help="a recording")
    parser.add_argument(
        "object",
        metavar="OBJECT",
        help="its number, as reports print it, or 0x and its handle or address",
    )
    parser.add_argument("--all", action="store_true", help="every step of a long life")
    given = parser.parse_args(words)
    from tlmem.report.history import run_history

    return run_history(given.file, given.object, given.format, given.output, given.all)


def balance(words: list[str]) -> int:
    """Runs ``tlmem balance FILE``."""
    parser = _parser(
        "balance",
        "Shows the tree of stacks with how often objects were taken under each frame, given back, "
        "and how often what was taken there has not been given back.",
    )
    parser.add_argument("file", metavar="FILE", help="a recording")
    parser.add_argument(
        "--site",
        metavar="PATTERN",
        help="only objects made there: FILE:LINE, FILE, FUNCTION, or a pattern with * or ?",
    )
    parser.add_argument(
        "--at-exit",
        action="store_true",
        help="count up to the end of the recording, not to the end of the program's own work",
    )
    parser.add_argument(
        "--all", action="store_true", help="also branches in which everything has its pair"
    )
    given = parser.parse_args(words)
    from tlmem.report.balance import run_balance

    return run_balance(given.file, given.site, given.format, given.output, given.all, given.at_exit)


def diff(words: list[str]) -> int:
    """Runs ``tlmem diff A B``."""
    parser = _parser(
        "diff",
        "Says what differs between two recordings of a program, before and after a change: "
        "verdicts, findings that came and went, lines that keep or make more. Lines are known by "
        "file, function and rank, so that code above them may have moved them.",
    )
    parser.add_argument("a", metavar="A", help="the recording before")
    parser.add_argument("b", metavar="B", help="the recording after")
    parser.add_argument("--all", action="store_true", help="every line that changed")
    parser.add_argument(
        "--fail-on",
        action="append",
        choices=("new-findings", "growth"),
        default=[],
        help="exit with 1 when B has warnings or errors that A has not, or when it grows as A does "
        "not; also when B cannot be judged. May be given twice",
    )
    given = parser.parse_args(words)
    from tlmem.report.diff import run_diff

    return run_diff(given.a, given.b, given.format, given.output, given.all, given.fail_on)


def _parser(command: str, description: str) -> argparse.ArgumentParser:
    """A parser with the options that all of these commands have."""
    parser = argparse.ArgumentParser(
        prog=f"tlmem {command}", description=description, allow_abbrev=False
    )
    parser.add_argument(
        "--format", choices=("text", "json"), default="text", help="default: %(default)s"
    )
    parser.add_argument("-o", "--output", metavar="OUT", help="write here instead of to stdout")
    return parser


COMMANDS = {"history": history, "balance": balance, "diff": diff}
